"""Small work on a GPU, where the host decides: latencies and downloading."""

import statistics
from collections.abc import Sequence

import numpy as np

import webnn_py
from spec_tests.labs.benchmarks.built import Built, Draw
from spec_tests.labs.benchmarks.measure import seconds_of
from webnn_py import MLContext, MLGraphBuilder, MLOperand

ROUNDS = 10
RUNS = 100


async def built(context: MLContext, shape: Sequence[int], draw: Draw) -> Built:
    return await Built.from_drawing(context, draw, {"x": np.random.default_rng(1).random(shape, np.float32)})


def fifty(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    half = builder.constant(np.full(1000, 0.5, np.float32))
    for index in range(50):
        x = builder.add(x, half) if index % 2 else builder.mul(x, half)
    return x


def hundred(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    for _ in range(100):
        x = builder.softmax(x, 1)
    return x


LATENCIES: dict[str, tuple[list[int], Draw]] = {
    "1-element add": ([1], lambda b, x: b.add(x, x)),
    "50 element-wise operators on 1,000 floats": ([1000], fifty),
    "100 separate small kernels": ([16, 64], hundred),
}
DOWNLOAD = "download of 64 MB"


async def latencies(ml: webnn_py.ML) -> dict[str, float]:
    """Return medians over rounds in turn, since the host is now faster, now slower."""
    context = await ml.create_context(backend="wgpu")
    graphs = {name: await built(context, shape, draw) for name, (shape, draw) in LATENCIES.items()}
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            samples[name] += [await seconds_of(graph.trip) for _ in range(RUNS)]
    context.destroy()
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def download(ml: webnn_py.ML) -> dict[str, float]:
    context = await ml.create_context(backend="wgpu")
    big = await context.create_buffer(data_type="float32", shape=[2**24], readable=True, writable=True)
    context.write_buffer(big, np.zeros(2**24, np.float32))
    samples = [await seconds_of(lambda: context.read_buffer(big)) for _ in range(9)]
    context.destroy()
    return {DOWNLOAD: statistics.median(samples)}


SMALL = {latencies: (*LATENCIES,), download: (DOWNLOAD,)}
"""Measurements, with the names of which each returns the seconds."""
