"""Rows, columns and tensors that are long, in one kernel or several."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both, computed, integers

REDUCED = {
    "one long row": [(300_000,), [0]],
    "a few long rows": [(3, 100_001), [1]],
    "long rows in vec4s": [(4, 65_536), [1]],
    "many rows": [(5_000, 70), [1]],
    "long columns": [(30_000, 7), [0]],
    "long columns in vec4s": [(20_000, 16), [0]],
    "long columns side by side": [(9_000, 70), [0]],
    "both ends": [(90, 40, 100), [0, 2]],
    "the middle": [(30, 2_000, 6), [1]],
}

REDUCTIONS = ["reduce_sum", "reduce_max", "reduce_min", "reduce_l1", "reduce_sum_square", "reduce_mean", "reduce_l2"]


@pytest.mark.sampled(23, full=2)
@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("method", REDUCTIONS)
@pytest.mark.parametrize(("shape", "axes"), REDUCED.values(), ids=REDUCED)
async def test_reductions(ml, method, shape, axes):
    rounds = method in ("reduce_mean", "reduce_l2")
    await check_both(ml, [integers(shape)], lambda b, x: getattr(b, method)(x, axes=axes), rtol=1e-6 if rounds else 0)


@pytest.mark.sampled(23, full=2)
@pytest.mark.parametrize("data_type", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("method", ["arg_max", "arg_min"])
@pytest.mark.parametrize(("shape", "axes"), [row for row in REDUCED.values() if len(row[1]) == 1])
async def test_the_first_of_the_greatest_and_least(ml, data_type, method, shape, axes):
    await check_both(ml, [integers(shape, data_type)], lambda b, x: getattr(b, method)(x, axes[0]))


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


@pytest.mark.sampled(7)
@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5_000, 2), (2, 3, 40_001), (1_030, 4, 130)])
async def test_softmax_and_layer_normalization(ml, axis, shape):
    """Of rows that are kept in registers, and that are too long for it."""
    await check_both(
        ml, [integers(shape)], lambda b, x: b.add(b.softmax(x, axis), b.layer_normalization(x, axes=[axis])), rtol=2e-5
    )


@pytest.mark.sampled(7)
async def test_more_workgroups_than_a_dimension_has(ml):
    count = 4 * 256 * 65_535 + 5  # four elements for each of 256 invocations
    array = (np.arange(count, dtype=np.uint32) % 251).astype(np.uint8)
    got = await computed(ml, [array], lambda b, x: b.add(x, b.constant(1, data_type="uint8")))
    assert (got == array + np.uint8(1)).all()
