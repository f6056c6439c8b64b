"""Measure graphs on the numpy device beside plain numpy and onnxruntime, on two threads, and the cost of contexts."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import attrs
import numpy as np
import onnx
import onnxruntime
import trio
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.built import Built, Draw
from spec_tests.labs.benchmarks.measure import OURS, Contender, Result, compare
from spec_tests.labs.real_models.comparison import session_of
from spec_tests.support.onnx_programs import make_model
from webnn_py import MLGraphBuilder, MLOperand

CHAIN = ["Mul", "Add", "Relu", "Sub", "Abs", "Mul", "Add", "Sigmoid", "Mul", "Sub"] * 2
FUNCTIONS: dict[str, Callable] = {
    "Mul": np.multiply,
    "Add": np.add,
    "Sub": np.subtract,
    "Relu": lambda x: np.maximum(x, 0),
    "Abs": np.abs,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def session(nodes: Sequence[onnx.NodeProto], data: Mapping[str, np.ndarray], constants: Mapping[str, np.ndarray]):
    """Return onnxruntime's session of a model whose output is called y."""
    model = make_model(nodes, {**data, **constants}, ["y"], constants, opset=17)
    return session_of(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, threads=2)


@attrs.frozen
class Case:
    """A graph of the output y.

    Attributes:
        shapes: of the inputs.
        plain: the same by numpy, if it is a contender.
        constants: those of the ONNX model.
        transfers: whether inputs are written, and the output is read, at each run.
    """

    name: str
    shapes: Mapping[str, Sequence[int]]
    draw: Draw
    nodes: Sequence[onnx.NodeProto]
    limit: str
    plain: Callable[[Mapping[str, np.ndarray]], object] | None = None
    constants: Mapping[str, np.ndarray] = {}
    transfers: bool = False
    runs: int = 15

    async def measure(self, ml: webnn_py.ML) -> Result:
        rng = np.random.default_rng(7)
        data = {name: rng.standard_normal(shape, np.float32) for name, shape in self.shapes.items()}
        context = await ml.create_context(backend="numpy")
        built = await Built.from_drawing(context, self.draw, data)
        peer = session(self.nodes, data, self.constants)
        contenders: dict[str, Contender] = {OURS: built.trip if self.transfers else built.run}
        if self.plain is not None:
            plain = self.plain
            contenders["numpy"] = lambda: plain(data)
        contenders["onnxruntime"] = lambda: peer.run(None, data)
        result = await compare(self.name, contenders, runs=self.runs, limit=self.limit)
        context.destroy()
        return result


def chain(name: str, kinds: Sequence[str], size: int, limit: str, **options) -> Case:
    """Return a chain of element-wise operators, each of which has a constant for its second operand, if any."""
    constant = np.full(size, 0.5, np.float32)

    def operands(kind: str, x: object, other: object) -> list:
        return [x, other] if kind in {"Mul", "Add", "Sub"} else [x]

    def draw(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
        half = builder.constant(constant)
        for kind in kinds:
            x = getattr(builder, kind.lower())(*operands(kind, x, half))
        return x

    def plain(data: Mapping[str, np.ndarray]) -> None:
        x = data["x"]
        for kind in kinds:
            x = FUNCTIONS[kind](*operands(kind, x, constant))

    names = ["x", *(f"v{index}" for index in range(len(kinds) - 1)), "y"]
    nodes = [helper.make_node(kind, operands(kind, names[i], "k"), [names[i + 1]]) for i, kind in enumerate(kinds)]
    return Case(name, {"x": [size]}, draw, nodes, limit, plain, {"k": constant}, **options)


def conv(name: str, channels: int, window: int, limit: str, groups: int = 1) -> Case:
    pads = [window // 2] * 4
    shapes = {"x": [1, channels, 56, 56], "w": [channels, channels // groups, window, window]}
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=pads, group=groups)
    return Case(name, shapes, lambda b, x, w: b.conv2d(x, w, padding=pads, groups=groups), [node], limit)


PRODUCT = np.empty((1024, 1024), np.float32)
CASES = {
    "round_trip": chain("1-element add: write + dispatch + read", ["Add"], 1, "30 µs", transfers=True, runs=3000),
    "fifty_operators": chain(
        "50 element-wise operators on 1,000 floats",
        ["Mul", "Add"] * 25,
        1000,
        "numpy + 60 µs",
        transfers=True,
        runs=1000,
    ),
    "matmul": Case(
        "matmul 1024³",
        {"a": [1024, 1024], "b": [1024, 1024]},
        lambda builder, a, b: builder.matmul(a, b),
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        "1.05 × numpy",
        lambda data: np.matmul(data["a"], data["b"], out=PRODUCT),
    ),
    "conv_3x3": conv("conv2d 3×3, 64 → 64 at 56×56", 64, 3, "4 × onnxruntime"),
    "conv_1x1": conv("conv2d 1×1, 256 → 256 at 56×56", 256, 1, "2 × onnxruntime"),
    "depthwise": conv("depthwise conv2d 3×3, 256 at 56×56", 256, 3, "4 × onnxruntime", 256),
    "softmax": Case(
        "softmax 4096×4096",
        {"x": [4096, 4096]},
        lambda builder, x: builder.softmax(x, 1),
        [helper.make_node("Softmax", ["x"], ["y"], axis=1)],
        "4 × onnxruntime",
    ),
    "layer_normalization": Case(
        "layerNormalization 512×768",
        {"x": [512, 768], "s": [768], "b": [768]},
        lambda builder, x, s, b: builder.layer_normalization(x, axes=[1], scale=s, bias=b),
        [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=1)],
        "4 × onnxruntime",
    ),
    "chain": chain(
        "20 element-wise operators on 4 M floats", CHAIN, 4_000_000, "1.5 × onnxruntime, less than numpy", runs=9
    ),
}


async def two_hundred_lives(ml: webnn_py.ML) -> Result:
    """Create a context, build, dispatch, read and destroy 200 times, and say whether memory grows."""
    data = {"x": np.ones(4, np.float32)}

    async def lives() -> None:
        for _ in range(200):
            context = await ml.create_context(backend="numpy")
            built = await Built.from_drawing(context, lambda builder, x: builder.add(x, x), data)
            await built.trip()
            context.destroy()

    result = await compare("200 × (context, build, dispatch, read, destroy)", {OURS: lives}, runs=7, limit="150 ms")
    tracemalloc.start()
    live = []
    for _ in range(2):
        await lives()
        gc.collect()
        live.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    print(f"memory growth over 200 lives: {live[1] - live[0]} bytes", file=sys.stderr)
    return result


async def liveness(ml: webnn_py.ML) -> Result:
    """Measure how late a task is that sleeps 1 ms in a loop while a long matmul runs on the device timeline."""
    context = await ml.create_context(backend="numpy")
    data = {"x": np.random.default_rng(1).random((5000, 5000), np.float32)}
    built = await Built.from_drawing(context, lambda builder, x: builder.matmul(x, x), data)
    lateness: list[float] = []

    async def ticker() -> None:
        while True:
            due = perf_counter() + 0.001
            await trio.sleep(0.001)
            lateness.append(perf_counter() - due)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ticker)
        await trio.sleep(0.01)
        lateness.clear()
        seconds = await built.run()
        nursery.cancel_scope.cancel()
    context.destroy()
    name = f"worst lateness of a 1 ms sleeper beside a {seconds:.1f} s matmul ({len(lateness)} wake-ups)"
    return Result(name, {OURS: max(lateness)}, "20 ms")


async def peak_memory(ml: webnn_py.ML) -> None:
    """Print the peak memory of a dispatch beside inputs, outputs, constants and the two largest intermediates."""
    context = await ml.create_context(backend="numpy")
    weights = np.random.default_rng(3).standard_normal((64, 64, 3, 3), np.float32)
    data = {"x": np.zeros((1, 64, 112, 112), np.float32)}

    def draw(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
        filter_ = builder.constant(weights)
        for _ in range(6):
            x = builder.relu(builder.conv2d(x, filter_, padding=[1, 1, 1, 1]))
        return x

    tracemalloc.start()
    built = await Built.from_drawing(context, draw, data)
    await context.drain()
    tracemalloc.reset_peak()
    await built.run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    needed = 4 * data["x"].nbytes + weights.nbytes
    print(f"peak memory of a dispatch of 6 × (conv2d, relu): {peak / needed:.2f} × what it needs (goal 1.3)")
    context.destroy()


BENCHMARKS = {name: case.measure for name, case in CASES.items()}
BENCHMARKS |= {"two_hundred_lives": two_hundred_lives, "liveness": liveness}
