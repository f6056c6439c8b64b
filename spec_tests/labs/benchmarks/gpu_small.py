"""Small work on a GPU, where the host decides: latencies, building, downloading, and lives of contexts."""

import statistics
from collections.abc import Sequence
from time import perf_counter

import numpy as np

import webnn_py
from spec_tests.labs.benchmarks.built import Built, Draw
from spec_tests.labs.benchmarks.gpu_cases import Goal
from spec_tests.labs.benchmarks.measure import seconds_of
from webnn_py import MLContext, MLGraphBuilder, MLOperand

ROUNDS = 10
RUNS = 100


async def built(context: MLContext, shape: Sequence[int], draw: Draw) -> Built:
    return await Built.of_drawing(context, draw, {"x": np.random.default_rng(1).random(shape, np.float32)})


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
    """Draw 150 products of fifty shapes, each with a softmax behind it."""
    rng = np.random.default_rng(5)
    for index in range(150):
        width = 32 + 2 * (index % 50)
        weights = builder.constant(rng.standard_normal((x.shape[1], width), np.float32))
        x = builder.softmax(builder.matmul(x, weights), 1)
    return x


LATENCIES: dict[str, tuple[list[int], Draw, Goal]] = {
    "1-element add": ([1], lambda b, x: b.add(x, x), Goal(seconds=160e-6)),
    "50 element-wise operators on 1,000 floats": ([1000], fifty, Goal(seconds=250e-6)),
    "100 separate small kernels": ([16, 64], hundred, Goal(seconds=700e-6)),
}
COLD, WARM = "build() of 300 kernels, cold", "build() of 300 kernels, warm"
DOWNLOAD = "download of 64 MB"
LIVES = "200 × (context, build, dispatch, read, destroy)"


async def latencies(ml: webnn_py.ML) -> dict[str, float]:
    """Return medians over rounds in turn, since the host is now faster, now slower."""
    context = await ml.create_context(backend="wgpu")
    graphs = {name: await built(context, shape, draw) for name, (shape, draw, _) in LATENCIES.items()}
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            samples[name] += [await seconds_of(graph.trip) for _ in range(RUNS)]
    context.destroy()
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def builds(ml: webnn_py.ML) -> dict[str, float]:
    context = await ml.create_context(backend="wgpu")
    results = {name: (await built(context, [16, 32], three_hundred)).seconds for name in (COLD, WARM)}
    context.destroy()
    return results


async def download(ml: webnn_py.ML) -> dict[str, float]:
    context = await ml.create_context(backend="wgpu")
    big = await context.create_buffer(data_type="float32", shape=[2**24], readable=True, writable=True)
    context.write_buffer(big, np.zeros(2**24, np.float32))
    samples = [await seconds_of(lambda: context.read_buffer(big)) for _ in range(9)]
    context.destroy()
    return {DOWNLOAD: statistics.median(samples)}


async def lives(ml: webnn_py.ML) -> dict[str, float]:
    started = perf_counter()
    for _ in range(200):
        context = await ml.create_context(backend="wgpu")
        await (await built(context, [8], lambda b, x: b.relu(x))).trip()
        context.destroy()
    return {LIVES: perf_counter() - started}


SMALL = {
    latencies: {name: goal for name, (_, _, goal) in LATENCIES.items()},
    builds: {COLD: Goal(seconds=1.5), WARM: Goal(seconds=0.3)},
    download: {DOWNLOAD: Goal(seconds=2**26 / 6e9)},
    lives: {LIVES: None},
}
"""Measurements: each returns seconds by name, and has the goals of these."""
