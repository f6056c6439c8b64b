"""Small work on a GPU, where the host decides: latencies, building, downloading, and lives of contexts."""

import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Self

import attrs
import numpy as np

import webnn_py
from spec_tests.labs.benchmarks.gpu_cases import Goal
from webnn_py import MLBuffer, MLContext, MLGraph, MLGraphBuilder, MLOperand

Drawing = Callable[[MLGraphBuilder, MLOperand], MLOperand]

ROUNDS = 10
RUNS = 100


@attrs.frozen
class Small:
    """Something to be timed.

    Attributes:
        time: takes seconds by name.
        goals: what is to be reached, if anything, by these names.
    """

    time: Callable[[webnn_py.ML], Awaitable[dict[str, float]]]
    goals: Mapping[str, Goal | None]

    @property
    def names(self) -> Sequence[str]:
        return list(self.goals)

    def __call__(self, ml: webnn_py.ML) -> Awaitable[dict[str, float]]:
        return self.time(ml)


@attrs.frozen
class Trip:
    """A graph with its buffers, to be written, dispatched and read again and again.

    Attributes:
        build_seconds: how long ``build()`` took.
    """

    build_seconds: float
    context: MLContext
    graph: MLGraph
    data: np.ndarray
    source: MLBuffer
    target: MLBuffer

    @classmethod
    async def build(cls, context: MLContext, shape: list[int], draw: Drawing) -> Self:
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=shape)
        y = draw(builder, x)
        started = perf_counter()
        graph = await builder.build({"y": y})
        seconds = perf_counter() - started
        source = await context.create_buffer(data_type="float32", shape=shape, writable=True)
        target = await context.create_buffer(data_type="float32", shape=y.shape, readable=True)
        return cls(seconds, context, graph, np.random.default_rng(1).random(shape, np.float32), source, target)

    async def take(self, runs: int) -> list[float]:
        """Seconds of write, dispatch and awaited read, each time."""
        samples = []
        for _ in range(runs):
            started = perf_counter()
            self.context.write_buffer(self.source, self.data)
            self.context.dispatch(self.graph, {"x": self.source}, {"y": self.target})
            await self.context.read_buffer(self.target)
            samples.append(perf_counter() - started)
        return samples


def fifty(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    half = builder.constant(np.full(1000, 0.5, np.float32))
    for index in range(50):
        x = builder.add(x, half) if index % 2 else builder.mul(x, half)
    return x


def hundred(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    for _ in range(100):
        x = builder.softmax(x, 1)
    return x


def three_hundred(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    """150 products of fifty shapes, each with a softmax behind it."""
    rng = np.random.default_rng(5)
    for index in range(150):
        width = 32 + 2 * (index % 50)
        weights = builder.constant(rng.standard_normal((x.shape[1], width), np.float32))
        x = builder.softmax(builder.matmul(x, weights), 1)
    return x


LATENCIES: dict[str, tuple[list[int], Drawing, Goal]] = {
    "1-element add": ([1], lambda b, x: b.add(x, x), Goal(seconds=160e-6)),
    "50 element-wise operators on 1,000 floats": ([1000], fifty, Goal(seconds=250e-6)),
    "100 separate small kernels": ([16, 64], hundred, Goal(seconds=700e-6)),
}
COLD, WARM = "build() of 300 kernels, cold", "build() of 300 kernels, warm"
DOWNLOAD = "download of 64 MB"
LIVES = "200 × (context, build, dispatch, read, destroy)"


async def latencies(ml: webnn_py.ML) -> dict[str, float]:
    """Medians over rounds in turn, since the host is now faster, now slower."""
    context = await ml.create_context(backend="wgpu")
    trips = {name: await Trip.build(context, shape, draw) for name, (shape, draw, _) in LATENCIES.items()}
    samples: dict[str, list[float]] = {name: [] for name in trips}
    for _ in range(ROUNDS):
        for name, trip in trips.items():
            samples[name] += await trip.take(RUNS)
    context.destroy()
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def builds(ml: webnn_py.ML) -> dict[str, float]:
    context = await ml.create_context(backend="wgpu")
    results = {name: (await Trip.build(context, [16, 32], three_hundred)).build_seconds for name in (COLD, WARM)}
    context.destroy()
    return results


async def download(ml: webnn_py.ML) -> dict[str, float]:
    context = await ml.create_context(backend="wgpu")
    big = await context.create_buffer(data_type="float32", shape=[2**24], readable=True, writable=True)
    context.write_buffer(big, np.zeros(2**24, np.float32))
    samples = []
    for _ in range(9):
        started = perf_counter()
        await context.read_buffer(big)
        samples.append(perf_counter() - started)
    context.destroy()
    return {DOWNLOAD: statistics.median(samples)}


async def lives(ml: webnn_py.ML) -> dict[str, float]:
    started = perf_counter()
    for _ in range(200):
        context = await ml.create_context(backend="wgpu")
        trip = await Trip.build(context, [8], lambda b, x: b.relu(x))
        await trip.take(1)
        context.destroy()
    return {LIVES: perf_counter() - started}


SMALL = [
    Small(latencies, {name: goal for name, (_, _, goal) in LATENCIES.items()}),
    Small(builds, {COLD: Goal(seconds=1.5), WARM: Goal(seconds=0.3)}),
    Small(download, {DOWNLOAD: Goal(seconds=2**26 / 6e9)}),
    Small(lives, {LIVES: None}),
]
