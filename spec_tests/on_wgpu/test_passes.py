"""The passes of the WebGPU device are named, reported, and can be left out where graphs do without them."""

import numpy as np
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu.passes.pipeline import PASSES
from webnn_py.rewriting.passes import passes_left_out

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


async def passes_of(context):
    """What is reported of two linear layers of one input, and a gemm and a pooling that are composites."""
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[4, 16])
    sides = [b.matmul(x, b.constant(np.ones((16, 32), np.float32))) for _ in range(2)]
    image = b.average_pool2d(b.reshape(b.matmul(sides[0], b.transpose(sides[1])), [1, 1, 4, 4]))
    graph = await b.build({"y": image})
    lines = graph.describe(passes=True).splitlines()
    return [line.strip().partition(":")[0] for line in lines[lines.index("passes") + 1 :]]


async def test_a_graph_describes_the_passes(gpu):
    assert await passes_of(gpu) == ["composites", "horizontal-fusion"]


async def test_an_optional_pass_can_be_left_out(gpu):
    assert PASSES.optional == ("horizontal-fusion",)
    with passes_left_out("horizontal-fusion"):
        assert await passes_of(gpu) == ["composites"]


async def test_composites_have_to_be_expanded(gpu):
    with passes_left_out("composites"), pytest.raises(Exception, match="'composites' are required"):
        await passes_of(gpu)
