"""Products on the processor's devices, idle and on a busy machine.

``python -m spec_tests.labs.benchmarks.busy_machine``.

The machine is kept busy by processes that do nothing but compute, some for each core. Prints a Markdown table of
medians and of what nine in ten runs stay below, the best of several rounds: what others do on the machine counts less.
"""

import contextlib
import itertools
import os
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

import numpy as np
import trio
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.measure import as_text, head, parser, row, seconds_of
from spec_tests.labs.benchmarks.numpy_device import session
from webnn_py import MLGraphBuilder, MLOperand

COUNT = 24


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy by some processes."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


async def time_runs(run: Callable[[], Awaitable[object]], seconds: float) -> tuple[float, float]:
    """Return the median and the ninth decile of what runs take, one after the other for so long."""
    await run()
    taken = []
    end = perf_counter() + seconds
    while len(taken) < 5 or perf_counter() < end:
        taken.append(await seconds_of(run))
    return statistics.median(taken), statistics.quantiles(taken, n=10)[-1]


def small_products(builder: MLGraphBuilder, x: MLOperand, *weights: MLOperand) -> MLOperand:
    for weight in weights:
        x = builder.matmul(x, weight)
    return x


async def contenders(ml: webnn_py.ML, case: str) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return the two devices, numpy's own calls and onnxruntime itself, doing the same."""
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
    rng = np.random.default_rng(7)
    data = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    devices = [
        (await Built.of_drawing(await ml.create_context(backend=backend), small_products, data)).run
        for backend in ("numpy", "onnxruntime")
    ]
    peer = session(nodes, data, {})
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
        "device numpy": devices[0],
        "numpy": with_numpy,
        "device onnxruntime": devices[1],
        "onnxruntime": with_onnxruntime,
    }


async def measure(cases: list[str], rounds: int, seconds: float) -> dict[tuple[str, str], tuple[float, float]]:
    """Return, of every case and contender, the best of some rounds: the median and the ninth decile."""
    best = {}
    async with webnn_py.open_ml() as ml:
        for case in cases:
            for name, run in (await contenders(ml, case)).items():
                best[case, name] = min([await time_runs(run, seconds) for _ in range(rounds)])
                print(".", end="", file=sys.stderr, flush=True)
    return best


def main() -> None:
    arguments = parser("busy_machine", __doc__)
    arguments.add_argument("--spinning", type=int, default=2, help="processes for each core that keep it busy")
    arguments.add_argument("--rounds", type=int, default=3, help="of which the best is taken")
    arguments.add_argument("--seconds", type=float, default=2, help="of each round")
    options = arguments.parse_args()
    cases = [f"{COUNT} products of 32×256×256", "matmul 512³", "matmul 1024³"]
    idle = trio.run(measure, cases, options.rounds, options.seconds)
    with busy(options.spinning * len(os.sched_getaffinity(0))):
        loaded = trio.run(measure, cases, options.rounds, options.seconds)
    print("\n" + head("", "", "idle: median, nine in ten", "busy: median, nine in ten", "median ×"))
    for key, before in idle.items():
        texts = [", ".join(map(as_text, pair)) for pair in (before, loaded[key])]
        print(row(*key, *texts, f"{loaded[key][0] / before[0]:.1f}"))


if __name__ == "__main__":
    main()
