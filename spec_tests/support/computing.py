"""From a drawing to arrays: build, dispatch and read in one line."""

from collections.abc import Mapping

import numpy as np

from webnn_py import MLContext, MLGraphBuilder, MLOperand


async def compute(
    context: MLContext, builder: MLGraphBuilder, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, MLOperand]
) -> dict[str, np.ndarray]:
    """The values of ``outputs``, for these ``inputs`` of the drawing; nothing is left behind."""
    graph = await builder.build(outputs)
    given = {
        name: await context.create_buffer(data_type=array.dtype.name, shape=array.shape, writable=True)
        for name, array in inputs.items()
    }
    targets = {
        name: await context.create_buffer(data_type=operand.data_type, shape=operand.shape, readable=True)
        for name, operand in outputs.items()
    }
    for name, buffer in given.items():
        context.write_buffer(buffer, inputs[name])
    needed = {name: buffer for name, buffer in given.items() if name in graph.input_descriptors}
    context.dispatch(graph, needed, targets)
    arrays = {name: await context.read_buffer(target) for name, target in targets.items()}
    for thing in (graph, *given.values(), *targets.values()):
        thing.destroy()
    return arrays
