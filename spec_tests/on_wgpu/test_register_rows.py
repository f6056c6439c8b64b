"""Rows that are kept in registers, and those that are too long."""

import pytest

from spec_tests.support.both_devices import check_both, integers


@pytest.mark.sampled(7)
@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5_000, 2), (2, 3, 40_001), (1_030, 4, 130)])
async def test_softmax_and_layer_normalization(ml, axis, shape):
    def draw(b, x):
        return b.add(b.softmax(x, axis), b.layer_normalization(x, axes=[axis]))

    await check_both(ml, [integers(shape)], draw, rtol=2e-5)
