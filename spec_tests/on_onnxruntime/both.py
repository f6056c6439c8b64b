"""Drawings of one output computed on onnxruntime and on numpy."""

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder


async def on_both(contexts, draw, *feeds):
    """What a drawing of one output computes on each of two contexts."""
    results = []
    for context in contexts:
        builder = MLGraphBuilder(context)
        inputs = {f"x{number}": array for number, array in enumerate(feeds)}
        operands = [
            builder.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in inputs.items()
        ]
        results.append((await compute(context, builder, inputs, {"y": draw(builder, *operands)}))["y"])
    return results
