"""A decoder whose cache grows by one position a step: one graph for all lengths, beside a graph for each length.

The proposal "dynamic shapes" (docs/proposals/dynamic_shapes.md), which ``open_ml(experimental={"dynamic-shapes"})``
switches on. Both ways must give the same numbers; the times of the steps are compared.

    python examples/dynamic_decoder.py --backend numpy
    python examples/dynamic_decoder.py --backend wgpu --layers 8 --width 1024 --steps 128
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import trio

from webnn_py import MLBuffer, MLContext, MLDynamicDimension, MLGraph, MLGraphBuilder, MLOperand, MLPromise, open_ml

Array = npt.NDArray[np.float32]
Buffers = dict[str, MLBuffer]


class Decoder:
    """Some layers of attention and a perceptron, with weights in constant buffers, which all graphs share."""

    def __init__(self, context: MLContext, layers: int, heads: int, width: int) -> None:
        self.context, self.heads, self.width, self.head = context, heads, width, width // heads
        self.layers = layers
        self.weights: list[Buffers] = []
        self.cache_names = [f"{kind}{layer}" for layer in range(layers) for kind in ("key", "value")]

    async def load(self) -> None:
        """Make the weights, which are random."""
        random = np.random.default_rng(7)
        shapes = {"queries": (self.width, 3 * self.width), "out": (self.width, self.width)}
        shapes |= {"up": (self.width, 4 * self.width), "down": (4 * self.width, self.width)}
        self.weights = [
            {
                name: await self.context.create_constant_buffer(
                    random.standard_normal(shape, np.float32) / shape[0] ** 0.5, data_type="float32", shape=shape
                )
                for name, shape in shapes.items()
            }
            for _ in range(self.layers)
        ]

    def reshape(self, builder: MLGraphBuilder, operand: MLOperand, shape: list[int]) -> MLOperand:
        """Return an operand in another shape."""
        return builder.reshape(operand, shape)

    def build(self, past: int | str | MLDynamicDimension) -> MLPromise[MLGraph]:
        """The graph of one step; ``past`` is how many positions the caches have, or a dimension or its name."""
        builder = MLGraphBuilder(self.context)
        caches: list[int | str | MLDynamicDimension] = [1, self.heads, past, self.head]
        state = builder.input("state", data_type="float32", shape=[1, self.width])
        outputs: dict[str, MLOperand] = {}
        for layer, weights in enumerate(self.weights):
            constants = {name: builder.constant(buffer) for name, buffer in weights.items()}
            normal = builder.layer_normalization(state)
            mixed = builder.split(builder.matmul(normal, constants["queries"]), 3, axis=1)
            query, key, value = (self.reshape(builder, item, [1, self.heads, 1, self.head]) for item in mixed)
            key = builder.concat([builder.input(f"key{layer}", data_type="float32", shape=caches), key], 2)
            value = builder.concat([builder.input(f"value{layer}", data_type="float32", shape=caches), value], 2)
            scores = builder.matmul(query, builder.transpose(key, permutation=[0, 1, 3, 2]))
            scores = builder.mul(scores, builder.constant(self.head**-0.5, data_type="float32"))
            attended = self.reshape(builder, builder.matmul(builder.softmax(scores, 3), value), [1, self.width])
            state = builder.add(state, builder.matmul(attended, constants["out"]))
            hidden = builder.gelu(builder.matmul(builder.layer_normalization(state), constants["up"]))
            state = builder.add(state, builder.matmul(hidden, constants["down"]))
            outputs |= {f"key{layer}": key, f"value{layer}": value}
        return builder.build({"state": builder.identity(state), **outputs})


class Run:
    """The buffers of a run from ``first`` positions on, and how long its steps have taken."""

    def __init__(self, decoder: Decoder, first: int, steps: int) -> None:
        self.decoder, self.lengths = decoder, range(first, first + steps)
        self.seconds: list[float] = []
        self.states: list[MLBuffer] = []
        self.caches: dict[int, Buffers] = {}

    async def open(self) -> None:
        """Make the buffers, a cache of each length."""
        context, decoder = self.decoder.context, self.decoder
        self.states = [
            await context.create_buffer(data_type="float32", shape=[1, decoder.width], readable=True, writable=True)
            for _ in range(2)
        ]
        self.caches = {
            length: {
                name: await context.create_buffer(
                    data_type="float32", shape=[1, decoder.heads, length, decoder.head], writable=True
                )
                for name in decoder.cache_names
            }
            for length in [*self.lengths, self.lengths[-1] + 1]
        }

    async def go(self, graph_of: Callable[[int], MLGraph]) -> Array:
        """Take every step; returns the last state."""
        context, random = self.decoder.context, np.random.default_rng(8)
        context.write_buffer(self.states[0], random.standard_normal((1, self.decoder.width), np.float32))
        for buffer in self.caches[self.lengths[0]].values():
            context.write_buffer(buffer, random.standard_normal(buffer.shape, np.float32))
        await context.drain()
        self.seconds = []
        for step, length in enumerate(self.lengths):
            began = time.perf_counter()
            before, after = self.states[step % 2], self.states[(step + 1) % 2]
            inputs = {"state": before, **self.caches[length]}
            context.dispatch(graph_of(length), inputs, {"state": after, **self.caches[length + 1]})
            state = await context.read_buffer(after)
            self.seconds.append(time.perf_counter() - began)
        return np.asarray(state)


async def main(arguments: argparse.Namespace) -> None:
    """Run both ways, and compare."""
    async with open_ml(experimental={"dynamic-shapes"}) as ml:
        context = await ml.create_context(backend=arguments.backend)
        decoder = Decoder(context, arguments.layers, arguments.heads, arguments.width)
        await decoder.load()
        run = Run(decoder, arguments.first, arguments.steps)
        await run.open()
        longest = run.lengths[-1]
        began = time.perf_counter()
        dynamic = await decoder.build(MLDynamicDimension("past", longest))
        built = time.perf_counter()
        fixed = {length: await decoder.build(length) for length in run.lengths}
        print(
            f"{context.backend}\nbuild: {built - began:.2f} s once, {time.perf_counter() - built:.2f} s for each length"
        )
        ways: dict[str, Callable[[int], MLGraph]] = {
            "fixed": lambda length: fixed[length],
            "dynamic": lambda _: dynamic,
        }
        states = {}
        for name, graph_of in ways.items():
            states[name] = await run.go(graph_of)
            print(f"{name}: the first time {1e3 * statistics.mean(run.seconds):.3f} ms a step")
        np.testing.assert_array_equal(states["dynamic"], states["fixed"])
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(arguments.repeats):
            for name, graph_of in ways.items():
                await run.go(graph_of)
                times[name].append(statistics.median(run.seconds))
        best = {name: min(seconds) for name, seconds in times.items()}
        print(", ".join(f"{name} {1e3 * seconds:.3f} ms a step" for name, seconds in best.items()))
        print(f"dynamic / fixed = {best['dynamic'] / best['fixed']:.3f}; the numbers are the same")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--first", type=int, default=64, help="positions before the first step")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    trio.run(main, parser.parse_args())
