"""Graphs with buffers for all that they read and return, which are run again and again."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Self

import attrs
import numpy as np

from webnn_py import MLBuffer, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLPromise
from webnn_py.onnx_models import OnnxModel

Draw = Callable[..., MLOperand]
"""Draws one output, given a builder and the inputs."""


@attrs.frozen
class Built:
    """A graph with its buffers.

    Attributes:
        data: what its inputs are given.
        seconds: how long ``build()`` took.
    """

    context: MLContext
    graph: MLGraph
    inputs: Mapping[str, MLBuffer]
    outputs: Mapping[str, MLBuffer]
    data: Mapping[str, np.ndarray]
    seconds: float

    @classmethod
    async def on_context(
        cls,
        context: MLContext,
        builder: MLGraphBuilder,
        outputs: Mapping[str, MLOperand],
        data: Mapping[str, np.ndarray],
        *,
        clock: Callable[[], float] = perf_counter,
    ) -> Self:
        """Build what is drawn, and write the inputs."""
        began = clock()
        graph = await builder.build(outputs)
        seconds = clock() - began
        inputs = {
            name: await context.create_buffer(data_type=item.data_type, shape=item.shape, writable=True)
            for name, item in graph.input_descriptors.items()
        }
        targets = {
            name: await context.create_buffer(data_type=item.data_type, shape=item.shape, readable=True)
            for name, item in graph.output_descriptors.items()
        }
        made = cls(context, graph, inputs, targets, data, seconds)
        made.write()
        return made

    @classmethod
    async def from_drawing(cls, context: MLContext, draw: Draw, data: Mapping[str, np.ndarray]) -> Self:
        """Build what a function draws of inputs that are like the data; the output is called y."""
        builder = MLGraphBuilder(context)
        operands = [builder.input(name, data_type=str(a.dtype), shape=a.shape) for name, a in data.items()]
        return await cls.on_context(context, builder, {"y": draw(builder, *operands)}, data)

    @classmethod
    async def from_model(cls, context: MLContext, model: bytes, data: np.ndarray) -> Self:
        """Build an ONNX model of one input, which is called x."""
        builder = MLGraphBuilder(context)
        outputs = OnnxModel.load(model).convert(builder, {"x": list(data.shape)})
        return await cls.on_context(context, builder, outputs, {"x": data})

    def write(self) -> None:
        for name, buffer in self.inputs.items():
            self.context.write_buffer(buffer, self.data[name])

    def dispatch(self) -> None:
        self.context.dispatch(self.graph, self.inputs, self.outputs)

    async def trip(self) -> Sequence[np.ndarray]:
        """Write, dispatch and read; return the outputs."""
        self.write()
        self.dispatch()
        return await MLPromise.all([self.context.read_buffer(buffer) for buffer in self.outputs.values()])

    def destroy(self) -> None:
        for thing in (self.graph, *self.inputs.values(), *self.outputs.values()):
            thing.destroy()

    async def run(self, count: int = 1) -> float:
        """Dispatch so often without a read between, and return the seconds until all is done."""
        began = perf_counter()
        for _ in range(count):
            self.dispatch()
        await self.context.drain()
        return perf_counter() - began


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two results, as a part of the largest number."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(np.abs(one - other).max() / np.abs(other).max())
