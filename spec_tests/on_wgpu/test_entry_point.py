"""Kernels of more workgroups than a dimension of a dispatch has."""

import numpy as np
import pytest

from spec_tests.support.both_devices import computed


@pytest.mark.sampled(7)
async def test_more_workgroups_than_a_dimension_has(ml):
    count = 4 * 256 * 65_535 + 5  # four elements for each of 256 invocations
    array = (np.arange(count, dtype=np.uint32) % 251).astype(np.uint8)
    got = await computed(ml, [array], lambda b, x: b.add(x, b.constant(1, data_type="uint8")))
    assert (got == array + np.uint8(1)).all()
