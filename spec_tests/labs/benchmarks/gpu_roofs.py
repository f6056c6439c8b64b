"""Single operators on a GPU beside its roof: ``python -m spec_tests.labs.benchmarks.gpu_roofs [WORD…]``.

The roof is what the device copies and multiplies at that moment, by webnn_py: an operator takes at least the larger of
its bytes by the one rate and its operations by the other. Each is timed in a graph of several of its kind, which have
inputs and weights of their own, so that a cache does not keep them: the time of many runs less that of few.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Self

import attrs
import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.gpu_cases import ONNXRUNTIME, TORCH
from spec_tests.labs.benchmarks.gpu_contenders import onnxruntime_session
from spec_tests.labs.benchmarks.measure import OURS, as_text
from spec_tests.labs.benchmarks.roof_cases import ROOF_CASES, RoofCase, product
from webnn_py import MLBuffer, MLContext, MLGraph, MLGraphBuilder

REPEATS = 5
LONG = 0.008
"""Seconds that the runs take which are timed, less one: shorter ones say as much about waiting as about the GPU."""
MOST_RUNS = 400
COPIES = 8

COPY = RoofCase(
    "copy of 64 MB",
    [4096, 4096],
    (),
    lambda builder, x: builder.abs(x),
    ("Abs", {}),
    lambda torch, x: torch.abs(x),
    4096**2,
    0,
)
MULTIPLY = product(4096)


@attrs.frozen
class Effort:
    """How much is run: copies of an operator in a graph, and how often all is timed."""

    copies: int = COPIES
    repeats: int = REPEATS


@lru_cache(2)
def random_array(shape: tuple[int, ...], data_type: str) -> np.ndarray:
    """A little noise, repeated."""
    noise = np.random.default_rng(1).standard_normal(2**16 + 1, np.float32) / 100
    return np.resize(noise.astype(data_type), shape)


def weights_of(case: RoofCase, index: int) -> np.ndarray:
    """The weights of one of several operators: no other's, or they would have one memory."""
    weights = random_array(tuple(case.weights), case.data_type).copy()
    weights.flat[0] = index
    return weights


def enough(several: float, one: float, count: int) -> int:
    """So many runs are long enough, given what ``count`` took, and one."""
    taken = max((several - one) / (count - 1), LONG / MOST_RUNS)
    return max(3, min(MOST_RUNS, round(LONG / taken)))


def slope(run: Callable[[int], float], effort: Effort) -> float:
    """Seconds of one operator, given the seconds of so many runs of a graph."""
    run(1)
    many = enough(run(6), run(1), 6)
    samples = [(run(1), run(many)) for _ in range(effort.repeats)]
    return statistics.median(long - short for short, long in samples) / (many - 1) / effort.copies


@attrs.frozen
class Prepared:
    """A graph of several of one operator, with buffers for all that it reads and returns."""

    context: MLContext
    graph: MLGraph
    inputs: dict[str, MLBuffer]
    outputs: dict[str, MLBuffer]

    @classmethod
    async def of(cls, ml: webnn_py.ML, case: RoofCase, copies: int) -> Self:
        """Build it."""
        context = await ml.create_context(backend="wgpu")
        builder = MLGraphBuilder(context)
        inputs, outputs, drawn = {}, {}, {}
        for index in range(copies):
            x = builder.input(f"x{index}", data_type=case.data_type, shape=case.shape)
            constants = [builder.constant(weights_of(case, index))] if case.weights else []
            drawn[f"y{index}"] = case.draw(builder, x, *constants)
            buffer = await context.create_buffer(data_type=case.data_type, shape=case.shape, writable=True)
            context.write_buffer(buffer, random_array(tuple(case.shape), case.data_type))
            inputs[f"x{index}"] = buffer
        graph = await builder.build(drawn)
        for name, y in drawn.items():
            outputs[name] = await context.create_buffer(data_type=y.data_type, shape=y.shape)
        return cls(context, graph, inputs, outputs)

    async def run(self, count: int) -> float:
        """Seconds of so many dispatches."""
        started = perf_counter()
        for _ in range(count):
            self.context.dispatch(self.graph, self.inputs, self.outputs)
        await self.context.drain()
        return perf_counter() - started

    async def enough(self) -> int:
        """So many dispatches are long enough."""
        await self.run(1)
        return enough(await self.run(6), await self.run(1), 6)

    async def time(self, many: int) -> float:
        """Seconds of one operator, once."""
        short, long = await self.run(1), await self.run(many)
        return (long - short) / (many - 1) / len(self.outputs)


async def in_turn(contenders: Sequence[Prepared], repeats: int) -> list[float]:
    """Seconds of each one's operator, timed in turn, since a GPU's clock changes."""
    counts = [await prepared.enough() for prepared in contenders]
    samples = [
        [await prepared.time(many) for prepared, many in zip(contenders, counts, strict=True)] for _ in range(repeats)
    ]
    return [statistics.median(column) for column in zip(*samples, strict=True)]


def time_torch(case: RoofCase, effort: Effort) -> float:
    """Seconds of one operator in a CUDA graph, without TF32."""
    import torch  # noqa: PLC0415 - optional

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    kind = {"float32": torch.float32, "float16": torch.float16}[case.data_type]
    shapes = [shape for shape in (case.shape, case.weights) if shape]
    tensors = [[torch.randn(*shape, device="cuda", dtype=kind) for shape in shapes] for _ in range(effort.copies)]
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


def time_onnxruntime(case: RoofCase, effort: Effort) -> float:
    """Seconds of one operator, and of taking one number from what it returns."""
    feeds = {"x": random_array(tuple(case.shape), case.data_type)}

    def median(copies: int) -> float:
        peer = onnxruntime_session(_copies(case, copies), optimized=False)
        samples = []
        for _ in range(effort.repeats + 1):
            started = perf_counter()
            peer.run(None, feeds)
            samples.append(perf_counter() - started)
        return statistics.median(samples[1:])

    return (median(5 * effort.copies) - median(effort.copies)) / 4 / effort.copies


def _copies(case: RoofCase, copies: int) -> bytes:
    """An ONNX model of so many of one operator."""
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - optional

    kind = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[case.data_type]
    rank = len(case.shape)
    constants = {"first": np.zeros(rank, np.int64), "last": np.ones(rank, np.int64)}
    if case.weights:
        constants["w"] = random_array(tuple(case.weights), case.data_type)
    operator, attributes = case.node
    names = ["x", "w"] if case.weights else ["x"]
    nodes = []
    for index in range(copies):
        nodes.append(helper.make_node(operator, names, [f"v{index}"], **attributes))
        nodes.append(helper.make_node("Slice", [f"v{index}", "first", "last"], [f"y{index}"]))
    graph = helper.make_graph(
        nodes,
        "copies",
        [helper.make_tensor_value_info("x", kind, case.shape)],
        [helper.make_tensor_value_info(f"y{index}", kind, [1] * rank) for index in range(copies)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


PEERS: dict[str, Callable[[RoofCase, Effort], float]] = {TORCH: time_torch, ONNXRUNTIME: time_onnxruntime}


@attrs.frozen
class Roof:
    """What a device does at most: bytes and operations a second."""

    byte_rate: float
    flop_rate: float

    def cells(self, case: RoofCase, seconds: float) -> list[str]:
        """Time, rates and the share of the roof."""
        share = case.least_seconds(self.byte_rate, self.flop_rate) / seconds
        rates = f"{case.byte_length / seconds / 1e12:.2f} TB/s", f"{case.flops / seconds / 1e12:.1f} TFLOP/s"
        return [as_text(seconds), *rates, f"{share:.0%}"]


async def measure(cases: Sequence[RoofCase], peers: Sequence[str], effort: Effort) -> None:
    """Time all cases, each in turn with the roof; and print a table as it comes."""
    async with webnn_py.open_ml() as ml:
        copying, multiplying = await Prepared.of(ml, COPY, 8), await Prepared.of(ml, MULTIPLY, 2)
        print(f"| | {OURS} | | | of the roof | {' | '.join(peers)} |")
        print(f"|{'---|' * (5 + len(peers))}")
        for case in cases:
            prepared = await Prepared.of(ml, case, effort.copies)
            copy, multiply, seconds = await in_turn([copying, multiplying, prepared], effort.repeats)
            prepared.context.destroy()
            cells = Roof(COPY.byte_length / copy, MULTIPLY.flops / multiply).cells(case, seconds)
            for peer in peers:
                cells.append(as_text(_attempt(PEERS[peer], case, effort)))
            print(f"| {' | '.join([case.name, *cells])} |", flush=True)


def _attempt(time: Callable[[RoofCase, Effort], float], case: RoofCase, effort: Effort) -> float:
    """What a peer takes; NaN where it cannot."""
    try:
        return time(case, effort)
    except Exception as error:  # noqa: BLE001 - a peer may fail in any way
        print(f"{case.name}: {type(error).__name__}: {error}")
        return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.gpu_roofs", description=__doc__)
    parser.add_argument("words", nargs="*", help="only what has one of these in its name")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS), help="beside whom")
    parser.add_argument("--copies", type=int, default=COPIES, help="of an operator in a graph (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="default: %(default)s")
    options = parser.parse_args()
    words = options.words
    cases = [case for case in ROOF_CASES if not words or any(word in case.name for word in words)]
    trio.run(measure, cases, options.peers, Effort(options.copies, options.repeats))


if __name__ == "__main__":
    main()
