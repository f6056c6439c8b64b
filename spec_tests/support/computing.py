"""From a drawing, or from a graph, to arrays: build, dispatch and read in one line."""

from collections.abc import Callable, Mapping

import numpy as np

from webnn_py import MLContext, MLGraph, MLGraphBuilder, MLOperand
from webnn_py.testing.device_cases.drawing import compute

__all__ = ["compute", "compute_graph", "result_of"]


async def result_of(context: MLContext, draw: Callable[..., MLOperand], **arrays: np.ndarray) -> np.ndarray:
    """Return what ``draw(builder, **operands)`` computes of these arrays, which are inputs of a new graph."""
    builder = MLGraphBuilder(context)
    operands = {
        name: builder.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in arrays.items()
    }
    return (await compute(context, builder, arrays, {"y": draw(builder, **operands)}))["y"]


async def compute_graph(context: MLContext, graph: MLGraph, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a graph for these inputs, cast to its data types; nothing is left in the context."""
    buffers = []
    try:
        inputs, outputs = {}, {}
        for name, descriptor in graph.input_descriptors.items():
            inputs[name] = await context.create_buffer(
                data_type=descriptor.data_type, shape=descriptor.shape, writable=True
            )
            buffers.append(inputs[name])
            context.write_buffer(inputs[name], feeds[name].astype(descriptor.data_type))
        for name, descriptor in graph.output_descriptors.items():
            outputs[name] = await context.create_buffer(
                data_type=descriptor.data_type, shape=descriptor.shape, readable=True
            )
            buffers.append(outputs[name])
        context.dispatch(graph, inputs, outputs)
        return {name: await context.read_buffer(buffer) for name, buffer in outputs.items()}
    finally:
        for thing in (*buffers, graph):
            thing.destroy()
