"""Kernels of more workgroups than a dimension of a dispatch has."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder


@pytest.mark.sampled(7)
async def test_more_workgroups_than_a_dimension_has(ml):
    count = 4 * 256 * 65_535 + 5  # four elements for each of 256 invocations
    array = (np.arange(count, dtype=np.uint32) % 251).astype(np.uint8)
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="uint8", shape=[count])
    drawn = {"y": builder.add(x, builder.constant(1, data_type="uint8"))}
    got = (await compute(context, builder, {"x": array}, drawn))["y"]
    assert (got == array + np.uint8(1)).all()
