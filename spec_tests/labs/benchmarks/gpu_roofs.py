"""Measure single operators on a GPU beside its peak: ``python -m spec_tests.labs.benchmarks.gpu_roofs [WORD…]``.

The roof is what the device copies and multiplies at that moment, by webnn_py: an operator takes at least the larger of
its bytes by the one rate and its operations by the other. Each is timed in a graph of several of its kind, which have
inputs and weights of their own, so that a cache does not keep them: the time of many runs less that of few.
"""

import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Self

import attrs
import numpy as np
import trio
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.gpu_cases import ONNXRUNTIME, ROOF_CASES, TORCH, Case, product
from spec_tests.labs.benchmarks.gpu_contenders import onnxruntime_session
from spec_tests.labs.benchmarks.measure import OURS, WORDS, as_text, head, is_wanted, parser, row
from spec_tests.support.onnx_programs import make_model
from webnn_py import MLGraphBuilder

REPEATS = 5
LONG = 0.008
"""Seconds that the runs take which are timed, less one: shorter ones say as much about waiting as about the GPU."""
MOST_RUNS = 400
COPIES = 8

COPY = Case(
    "copy of 64 MB", [[4096, 4096]], lambda builder, x: builder.abs(x), ("Abs", {}), lambda torch, x: torch.abs(x)
)
MULTIPLY = product(4096)


@attrs.frozen
class Effort:
    """An amount of work: copies of an operator in a graph, and how often all is timed."""

    copies: int = COPIES
    repeats: int = REPEATS


@lru_cache(2)
def random_array(shape: tuple[int, ...], data_type: str) -> np.ndarray:
    """Return a little noise, repeated."""
    noise = np.random.default_rng(1).standard_normal(2**16 + 1, np.float32) / 100
    return np.resize(noise.astype(data_type), shape)


def weights_of(case: Case, index: int) -> np.ndarray:
    """Return the weights of one of several operators: no other's, or they would have one memory."""
    weights = random_array(tuple(case.shapes[1]), case.data_type).copy()
    weights.flat[0] = index
    return weights


def enough(several: float, one: float, count: int) -> int:
    """Return how many runs are long enough, given the seconds of ``count`` and of one."""
    taken = max((several - one) / (count - 1), LONG / MOST_RUNS)
    return max(3, min(MOST_RUNS, round(LONG / taken)))


def slope(run: Callable[[int], float], effort: Effort) -> float:
    """Return the seconds of one operator, given what takes the seconds of several runs of a graph."""
    run(1)
    many = enough(run(6), run(1), 6)
    samples = [(run(1), run(many)) for _ in range(effort.repeats)]
    return statistics.median(long - short for short, long in samples) / (many - 1) / effort.copies


@attrs.frozen
class Prepared:
    """A graph of several of one operator."""

    built: Built

    @classmethod
    async def of(cls, ml: webnn_py.ML, case: Case, copies: int) -> Self:
        """Build it."""
        context = await ml.create_context(backend="wgpu")
        builder = MLGraphBuilder(context)
        drawn, data = {}, {}
        for index in range(copies):
            x = builder.input(f"x{index}", data_type=case.data_type, shape=case.shapes[0])
            constants = [builder.constant(weights_of(case, index))] if case.shapes[1:] else []
            drawn[f"y{index}"] = case.draw(builder, x, *constants)
            data[f"x{index}"] = random_array(tuple(case.shapes[0]), case.data_type)
        return cls(await Built.of(context, builder, drawn, data))

    async def enough(self) -> int:
        """Return how many dispatches are long enough."""
        await self.built.run()
        return enough(await self.built.run(6), await self.built.run(), 6)

    async def time(self, many: int) -> float:
        """Return the seconds of one operator, measured once."""
        short, long = await self.built.run(), await self.built.run(many)
        return (long - short) / (many - 1) / len(self.built.outputs)


async def in_turn(contenders: Sequence[Prepared], repeats: int) -> list[float]:
    """Return the seconds of each one's operator, timed in turn, since a GPU's clock changes."""
    counts = [await prepared.enough() for prepared in contenders]
    samples = [
        [await prepared.time(many) for prepared, many in zip(contenders, counts, strict=True)] for _ in range(repeats)
    ]
    return [statistics.median(column) for column in zip(*samples, strict=True)]


def time_torch(case: Case, effort: Effort) -> float:
    """Return the seconds of one operator in a CUDA graph, without TF32."""
    import torch  # noqa: PLC0415 - optional

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    kind = {"float32": torch.float32, "float16": torch.float16}[case.data_type]
    tensors = [[torch.randn(*shape, device="cuda", dtype=kind) for shape in case.shapes] for _ in range(effort.copies)]
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(2):
            case.torch(torch, *tensors[0])
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = [case.torch(torch, *some) for some in tensors]
    torch.cuda.synchronize()

    def run(count: int) -> float:
        started = perf_counter()
        for _ in range(count):
            graph.replay()
        torch.cuda.synchronize()
        return perf_counter() - started

    seconds = slope(run, effort)
    kept.clear()
    return seconds


def time_onnxruntime(case: Case, effort: Effort) -> float:
    """Return the seconds of one operator, and of taking one number from what it returns."""
    feeds = {"x": random_array(tuple(case.shapes[0]), case.data_type)}

    def median(copies: int) -> float:
        peer = onnxruntime_session(_copies(case, copies), optimized=False)
        samples = []
        for _ in range(effort.repeats + 1):
            started = perf_counter()
            peer.run(None, feeds)
            samples.append(perf_counter() - started)
        return statistics.median(samples[1:])

    return (median(5 * effort.copies) - median(effort.copies)) / 4 / effort.copies


def _copies(case: Case, copies: int) -> bytes:
    """Return an ONNX model of some of one operator."""
    rank = len(case.shapes[0])
    constants = {"first": np.zeros(rank, np.int64), "last": np.ones(rank, np.int64)}
    if case.shapes[1:]:
        constants["w"] = random_array(tuple(case.shapes[1]), case.data_type)
    operator, attributes = case.node
    nodes = []
    for index in range(copies):
        nodes.append(helper.make_node(operator, ["x", "w"][: len(case.shapes)], [f"v{index}"], **attributes))
        nodes.append(helper.make_node("Slice", [f"v{index}", "first", "last"], [f"y{index}"]))
    data = {"x": random_array(tuple(case.shapes[0]), case.data_type), **constants}
    return make_model(nodes, data, [f"y{index}" for index in range(copies)], constants, opset=17)


PEERS: dict[str, Callable[[Case, Effort], float]] = {TORCH: time_torch, ONNXRUNTIME: time_onnxruntime}


@attrs.frozen
class Roof:
    """The most bytes and operations that a device does in a second."""

    byte_rate: float
    flop_rate: float

    def cells(self, case: Case, seconds: float) -> list[str]:
        """Return the time, the rates and the share of the roof."""
        share = case.least_seconds(self.byte_rate, self.flop_rate) / seconds
        rates = f"{case.byte_length / seconds / 1e12:.2f} TB/s", f"{case.flops / seconds / 1e12:.1f} TFLOP/s"
        return [as_text(seconds), *rates, f"{share:.0%}"]


async def measure(cases: Sequence[Case], peers: Sequence[str], effort: Effort) -> None:
    """Time all cases, each in turn with the roof; and print a table as it comes."""
    async with webnn_py.open_ml() as ml:
        copying, multiplying = await Prepared.of(ml, COPY, 8), await Prepared.of(ml, MULTIPLY, 2)
        print(head("", OURS, "", "", "of the roof", *peers))
        for case in cases:
            prepared = await Prepared.of(ml, case, effort.copies)
            copy, multiply, seconds = await in_turn([copying, multiplying, prepared], effort.repeats)
            prepared.built.context.destroy()
            cells = Roof(COPY.byte_length / copy, MULTIPLY.flops / multiply).cells(case, seconds)
            for peer in peers:
                cells.append(as_text(_attempt(PEERS[peer], case, effort)))
            print(row(case.name, *cells), flush=True)


def _attempt(time: Callable[[Case, Effort], float], case: Case, effort: Effort) -> float:
    """Return the seconds that a peer takes; NaN where it cannot."""
    try:
        return time(case, effort)
    except Exception as error:  # noqa: BLE001 - a peer may fail in any way
        print(f"{case.name}: {type(error).__name__}: {error}")
        return float("nan")


def main() -> None:
    arguments = parser("gpu_roofs", __doc__)
    arguments.add_argument("words", **WORDS)
    arguments.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS), help="beside whom")
    arguments.add_argument(
        "--copies", type=int, default=COPIES, help="of an operator in a graph (default: %(default)s)"
    )
    arguments.add_argument("--repeats", type=int, default=REPEATS, help="default: %(default)s")
    options = arguments.parse_args()
    cases = [case for case in ROOF_CASES if is_wanted(case.name, options.words)]
    trio.run(measure, cases, options.peers, Effort(options.copies, options.repeats))


if __name__ == "__main__":
    main()
