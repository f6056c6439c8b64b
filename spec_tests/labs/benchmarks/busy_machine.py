"""Products on the processor's devices, idle and on a busy machine.

``python -m spec_tests.labs.benchmarks.busy_machine``.

The machine is kept busy by processes that do nothing but compute, some for each core. Prints a Markdown table of
medians and of what nine in ten runs stay below, the best of several rounds: what others do on the machine counts less.
"""

import argparse
import contextlib
import itertools
import os
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

import attrs
import numpy as np
import trio
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.measure import as_text
from spec_tests.labs.benchmarks.operators import ours, session
from webnn_py import MLGraphBuilder, MLOperand

COUNT = 24


@attrs.frozen
class Row:
    """One case and who runs it: seconds at the median, and those that nine in ten runs stay below."""

    case: str
    contender: str
    median: float
    most: float


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy by so many processes."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


async def time_runs(run: Callable[[], Awaitable[object]], seconds: float) -> tuple[float, float]:
    """The median and the ninth decile of what runs take, one after the other for so long."""
    await run()
    taken = []
    end = perf_counter() + seconds
    while len(taken) < 5 or perf_counter() < end:
        began = perf_counter()
        await run()
        taken.append(perf_counter() - began)
    return statistics.median(taken), statistics.quantiles(taken, n=10)[-1]


def small_products(builder: MLGraphBuilder, x: MLOperand, *weights: MLOperand) -> MLOperand:
    for weight in weights:
        x = builder.matmul(x, weight)
    return x


async def contenders(ml: webnn_py.ML, case: str) -> dict[str, Callable[[], Awaitable[object]]]:
    """The two devices, numpy's own calls and onnxruntime itself, doing the same."""
    if case.startswith(str(COUNT)):
        shapes = {"x": [32, 256], **{f"w{index}": [256, 256] for index in range(COUNT)}}
        names = ["x", *(f"v{index}" for index in range(COUNT - 1)), "y"]
    else:
        size = int(case.removeprefix("matmul ").removesuffix("³"))
        shapes, names = {"x": [size, size], "w0": [size, size]}, ["x", "y"]
    nodes = [
        helper.make_node("MatMul", [before, f"w{index}"], [after])
        for index, (before, after) in enumerate(itertools.pairwise(names))
    ]
    run, data = await ours(ml, shapes, small_products)
    by_engine, _ = await ours(ml, shapes, small_products, "onnxruntime")
    peer = session(nodes, shapes, shapes["x"])
    x, *weights = (array / np.float32(16) for array in data.values())

    async def with_numpy() -> None:
        result = x
        for weight in weights:
            result = result @ weight
        await trio.lowlevel.checkpoint()

    async def with_onnxruntime() -> None:
        peer.run(None, data)
        await trio.lowlevel.checkpoint()

    return {
        "device numpy": run,
        "numpy": with_numpy,
        "device onnxruntime": by_engine,
        "onnxruntime": with_onnxruntime,
    }


async def measure(cases: list[str], rounds: int, seconds: float) -> list[Row]:
    """Every case and contender, the best of some rounds."""
    rows = []
    async with webnn_py.open_ml() as ml:
        for case in cases:
            for name, run in (await contenders(ml, case)).items():
                taken = [await time_runs(run, seconds) for _ in range(rounds)]
                rows.append(Row(case, name, *min(taken)))
                print(".", end="", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.busy_machine", description=__doc__)
    parser.add_argument("--spinning", type=int, default=2, help="processes for each core that keep it busy")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best is taken")
    parser.add_argument("--seconds", type=float, default=2, help="of each round")
    options = parser.parse_args()
    cases = [f"{COUNT} products of 32×256×256", "matmul 512³", "matmul 1024³"]
    idle = trio.run(measure, cases, options.rounds, options.seconds)
    with busy(options.spinning * len(os.sched_getaffinity(0))):
        loaded = trio.run(measure, cases, options.rounds, options.seconds)
    print("\n| | | idle: median, nine in ten | busy: median, nine in ten | median × |\n|---|---|---|---|---|")
    for before, after in zip(idle, loaded, strict=True):
        idle_text, busy_text = (f"{as_text(row.median)}, {as_text(row.most)}" for row in (before, after))
        ratio = after.median / before.median
        print(f"| {before.case} | {before.contender} | {idle_text} | {busy_text} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
