"""Running sums of any length and number, along any axis."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both, integers

SCANNED = {
    "a long row": [(1, 70_001), 1],
    "a few long rows": [(3, 20_000), 1],
    "many rows": [(700, 300), 1],
    "a long column": [(40_003, 1), 0],
    "a few long columns": [(9_001, 5), 0],
    "columns in vec4s": [(5_000, 8), 0],
    "columns side by side": [(700, 64), 0],
    "long columns side by side": [(5_000, 33), 0],
    "in the middle": [(3, 4_100, 4), 1],
    "in the middle, side by side": [(2, 1_100, 48), 1],
}


@pytest.mark.sampled(23, full=2)
@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("data_type", ["float32", "float16", "int32"])
@pytest.mark.parametrize("options", [{}, {"exclusive": True, "reversed": True}], ids=["", "exclusive and reversed"])
@pytest.mark.parametrize(("shape", "axis"), SCANNED.values(), ids=SCANNED)
async def test_cumulative_sum(ml, data_type, options, shape, axis):
    array = np.where(integers(shape) > 0, 1, integers(shape, low=-1, high=1)).astype(data_type)
    if data_type == "float16":  # sums stay below 2,048, where they are exact
        array = (np.arange(array.size).reshape(shape) % 97 == 0).astype(data_type)
    await check_both(ml, [array], lambda b, x: b.cumulative_sum(x, axis, **options))
