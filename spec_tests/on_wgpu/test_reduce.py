"""Reductions of any length and number, along any axes, in one kernel or two."""

import pytest

from spec_tests.support.both_devices import check_both, integers

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
