"""Kernels for all sizes of named dimensions: where they cannot be written there are kernels for one set of sizes."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.computing import run_graph
from spec_tests.support.stand_ins import failing
from webnn_py import MLDynamicDimension, MLGraphBuilder, OperationError
from webnn_py.device.on_wgpu.codegen.size_uniforms import UnwritableSizeError
from webnn_py.device.on_wgpu.runtime import dynamic_executable
from webnn_py.named_sizes.decisions import UnknownSizeError


@pytest.fixture
async def built(monkeypatch):
    """Build a graph of which no kernels for all sizes can be made, for the reason given."""
    async with webnn_py.open_ml(experimental={"dynamic-shapes"}) as ml:
        context = await ml.create_context(backend="wgpu")

        async def build(reason):
            monkeypatch.setattr(dynamic_executable, "Variant", failing(reason))
            builder = MLGraphBuilder(context)
            x = builder.input("x", data_type="float32", shape=[MLDynamicDimension("n", 6)])
            return await builder.build({"y": builder.neg(x)})

        yield build


@pytest.mark.parametrize("reason", [UnwritableSizeError("no place"), UnknownSizeError("no number")], ids=type)
async def test_sizes_that_no_text_can_have_get_kernels_of_their_own(built, reason):
    graph = await built(reason)
    context = graph._context
    for size in (6, 3):
        results = await run_graph(context, graph, {"x": np.arange(size, dtype="float32")}, {"y": (size,)})
        assert results["y"].tolist() == [-float(number) for number in range(size)], size
    graph.destroy()


async def test_a_mistake_in_what_writes_kernels_is_told(built):
    with pytest.raises(OperationError, match="a mistake of ours"):
        await built(TypeError("a mistake of ours"))
