"""Small graphs that many tests use."""

import numpy as np

from spec_tests.support.computing import run_graph
from webnn_py import MLBuffer, MLContext, MLGraph, MLGraphBuilder, MLPromise


async def build_add_one(context: MLContext, shape, data_type="float32", *, keep_source=False) -> MLGraph:
    """y = x + 1."""
    return await build_add_number(context, 1, shape, data_type, keep_source=keep_source)


def build_add_number(
    context: MLContext, number, shape, data_type="float32", *, keep_source=False
) -> MLPromise[MLGraph]:
    """y = x + number; built, but not awaited."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type=data_type, shape=shape)
    outputs = {"y": builder.add(x, builder.constant(number, data_type=data_type))}
    return builder.build(outputs, keep_source=keep_source)


def build_add_buffer(context: MLContext, buffer: MLBuffer, *, keep_source=False) -> MLPromise[MLGraph]:
    """y = x + a constant buffer; built, but not awaited."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type=buffer.data_type, shape=buffer.shape)
    return builder.build({"y": builder.add(x, builder.constant(buffer))}, keep_source=keep_source)


def build_sum_and_difference(context: MLContext, shape, data_type="float32") -> MLPromise[MLGraph]:
    """s = a + b, d = a - b; built, but not awaited."""
    builder = MLGraphBuilder(context)
    a, b = (builder.input(name, data_type=data_type, shape=shape) for name in "ab")
    return builder.build({"s": builder.add(a, b), "d": builder.sub(a, b)})


async def run(context: MLContext, graph: MLGraph, **inputs) -> dict[str, list]:
    """Dispatch once, with these values for the inputs, and give what each output then holds."""
    results = await run_graph(context, graph, {name: np.asarray(values) for name, values in inputs.items()})
    return {name: array.tolist() for name, array in results.items()}
