"""From a drawing, or from a graph, to arrays: build, dispatch and read in one line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from webnn_py import MLContext, MLGraph, MLGraphBuilder, MLOperand
from webnn_py.testing.device_cases.graphs import compute

__all__ = ["compute", "compute_graph", "result_of", "results_of", "run_graph"]


async def results_of(context: MLContext, draw: Callable[..., Any], arrays: Sequence[Any] | Mapping[str, Any]) -> Any:
    """Return what a drawing computes in a new graph: an array, or arrays by name where it has several outputs.

    Args:
        context: where the graph is built.
        draw: a function of a builder and the operands; it returns an output, a tuple of outputs, or outputs by name.
        arrays: what the operands are given, in order (they are called x0, x1, …) or by name.
    """
    is_named = isinstance(arrays, Mapping)
    inputs = arrays if is_named else {f"x{index}": array for index, array in enumerate(arrays)}
    builder = MLGraphBuilder(context)
    operands = {
        name: builder.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in inputs.items()
    }
    drawn = draw(builder, **operands) if is_named else draw(builder, *operands.values())
    if isinstance(drawn, tuple):
        drawn = {str(index): operand for index, operand in enumerate(drawn)}
    results = await compute(context, builder, inputs, drawn if isinstance(drawn, dict) else {"y": drawn})
    return results if isinstance(drawn, dict) else results["y"]


async def result_of(context: MLContext, draw: Callable[..., MLOperand], **arrays: np.ndarray) -> np.ndarray:
    """Return what ``draw(builder, **operands)`` computes of these arrays, which are inputs of a new graph."""
    return await results_of(context, draw, arrays)


async def compute_graph(context: MLContext, graph: MLGraph, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a graph for these inputs, cast to its data types; nothing is left in the context."""
    try:
        return await run_graph(context, graph, feeds)
    finally:
        graph.destroy()


async def run_graph(context: MLContext, graph: MLGraph, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a graph for these inputs, cast to its data types; the graph stays."""
    inputs, outputs = {}, {}
    try:
        for name, item in graph.input_descriptors.items():
            inputs[name] = await context.create_buffer(data_type=item.data_type, shape=item.shape, writable=True)
            context.write_buffer(inputs[name], feeds[name].astype(item.data_type))
        for name, item in graph.output_descriptors.items():
            outputs[name] = await context.create_buffer(data_type=item.data_type, shape=item.shape, readable=True)
        context.dispatch(graph, inputs, outputs)
        return {name: await context.read_buffer(buffer) for name, buffer in outputs.items()}
    finally:
        for buffer in (*inputs.values(), *outputs.values()):
            buffer.destroy()
