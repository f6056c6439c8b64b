"""Single operators on a GPU, beside onnxruntime-webgpu and torch: ``python -m spec_tests.benchmarks.gpu``.

One dispatch runs many of them and one runs few; the difference is the time. onnxruntime has no device tensors in
Python, so that it runs them as a chain, whose last value alone is reduced and read. torch is timed by its own events.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import attrs
import numpy as np
import trio

import webnn_py
from webnn_py import MLGraphBuilder, MLOperand

REPEATS = 7


@attrs.frozen
class Case:
    """One operator.

    Attributes:
        name: what the table says.
        shapes: the inputs; the output has the first input's shape, so that onnxruntime can chain it.
        draw: (builder, operands) → the output.
        node: ONNX operator and attributes; its other inputs are the inputs after the first.
        torch: (torch, tensors) → the output.
        amount: what one run does, in ``unit``.
        unit: of the rate: TFLOP or GB.
        data_type: of every input.
    """

    name: str
    shapes: Sequence[Sequence[int]]
    draw: Callable[..., MLOperand]
    node: tuple[str, dict]
    torch: Callable
    amount: float
    unit: str
    data_type: str = "float32"


def matmul_case(size: int, data_type: str = "float32") -> Case:
    return Case(
        f"matmul {size}³ {data_type}",
        [[size, size], [size, size]],
        lambda builder, a, b: builder.matmul(a, b),
        ("MatMul", {}),
        lambda torch, a, b: torch.matmul(a, b),
        2 * size**3 / 1e12,
        "TFLOP/s",
        data_type,
    )


def conv_case(name: str, channels: int, size: int, window: int, groups: int = 1) -> Case:
    pad = window // 2
    shapes = [[1, channels, size, size], [channels, channels // groups, window, window]]
    flops = 2 * channels * (channels // groups) * window**2 * size**2
    return Case(
        name,
        shapes,
        lambda builder, x, w: builder.conv2d(x, w, padding=[pad] * 4, groups=groups),
        ("Conv", {"pads": [pad] * 4, "group": groups}),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=pad, groups=groups),
        flops / 1e12,
        "TFLOP/s",
    )


def row_case(  # noqa: PLR0917 - a row of a table
    name: str, size: int, draw: Callable, node: tuple[str, dict], torch: Callable, elements: int = 2
) -> Case:
    shapes = [[size, size]] if size < 2**20 else [[size]]
    count = size * size if size < 2**20 else size
    return Case(name, shapes, draw, node, torch, elements * 4 * count / 1e9, "GB/s")


CASES = [
    matmul_case(4096),
    matmul_case(1024),
    matmul_case(4096, "float16"),
    conv_case("conv2d 3×3, 64 at 56²", 64, 56, 3),
    conv_case("conv2d 3×3, 256 at 14²", 256, 14, 3),
    conv_case("conv2d 1×1, 256 at 56²", 256, 56, 1),
    conv_case("depthwise 3×3, 256 at 56²", 256, 56, 3, groups=256),
    row_case("sigmoid, 16 M", 2**24, lambda b, x: b.sigmoid(x), ("Sigmoid", {}), lambda t, x: t.sigmoid(x)),
    row_case(
        "softmax 4096²", 4096, lambda b, x: b.softmax(x, 1), ("Softmax", {"axis": 1}), lambda t, x: t.softmax(x, 1)
    ),
    Case(
        "layerNormalization 4096²",
        [[4096, 4096], [4096], [4096]],
        lambda b, x, s, c: b.layer_normalization(x, axes=[1], scale=s, bias=c),
        ("LayerNormalization", {"axis": 1}),
        lambda t, x, s, c: t.nn.functional.layer_norm(x, [4096], s, c),
        2 * 4 * 4096 * 4096 / 1e9,
        "GB/s",
    ),
    row_case(
        "transpose 4096²",
        4096,
        lambda b, x: b.transpose(x),
        ("Transpose", {"perm": [1, 0]}),
        lambda t, x: t.t(x).contiguous(),
    ),
]


async def time_ours(ml: webnn_py.ML, case: Case, few: int = 2, many: int = 22) -> float:
    """Seconds of one operator among many of one graph, each with an output buffer of its own."""
    context = await ml.create_context(backend="wgpu")
    rng = np.random.default_rng(1)
    inputs = {}
    for index, shape in enumerate(case.shapes):
        buffer = await context.create_buffer(data_type=case.data_type, shape=shape, writable=True)
        context.write_buffer(buffer, rng.standard_normal(shape, np.float32).astype(case.data_type))
        inputs[f"i{index}"] = buffer

    async def median(length: int) -> float:
        builder = MLGraphBuilder(context)
        operands = [builder.input(name, data_type=b.data_type, shape=b.shape) for name, b in inputs.items()]
        drawn = {f"y{index}": case.draw(builder, *operands) for index in range(length)}
        graph = await builder.build(drawn)
        outputs = {
            name: await context.create_buffer(data_type=operand.data_type, shape=operand.shape)
            for name, operand in drawn.items()
        }
        samples = []
        for _ in range(REPEATS + 2):
            started = perf_counter()
            context.dispatch(graph, inputs, outputs)
            await context.drain()
            samples.append(perf_counter() - started)
        for buffer in outputs.values():
            buffer.destroy()
        graph.destroy()
        return statistics.median(samples[2:])

    seconds = (await median(many) - await median(few)) / (many - few)
    context.destroy()
    return seconds


async def small_work(  # noqa: C901 - one measurement after the other
    ml: webnn_py.ML,
) -> dict[str, float]:
    """Latencies: one small operator, fifty fused ones, a hundred kernels, building and downloading."""
    context = await ml.create_context(backend="wgpu")
    results = {}

    async def latency(name: str, shape: list[int], draw: Callable, runs: int = 200) -> None:
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=shape)
        started = perf_counter()
        graph = await builder.build({"y": draw(builder, x)})
        results[f"{name}: build"] = perf_counter() - started
        xb = await context.create_buffer(data_type="float32", shape=shape, writable=True)
        yb = await context.create_buffer(data_type="float32", shape=graph.output_descriptors["y"].shape, readable=True)
        data = np.random.default_rng(1).random(shape, np.float32)
        samples = []
        for _ in range(runs):
            started = perf_counter()
            context.write_buffer(xb, data)
            context.dispatch(graph, {"x": xb}, {"y": yb})
            await context.read_buffer(yb)
            samples.append(perf_counter() - started)
        results[name] = statistics.median(samples)

    await latency("1-element add", [1], lambda b, x: b.add(x, x))

    def fifty(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
        half = builder.constant(np.full(1000, 0.5, np.float32))
        for index in range(50):
            x = builder.add(x, half) if index % 2 else builder.mul(x, half)
        return x

    await latency("50 element-wise operators on 1,000 floats", [1000], fifty)

    def hundred(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
        for _ in range(100):
            x = builder.softmax(x, 1)
        return x

    await latency("100 separate small kernels", [16, 64], hundred)

    def model(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
        rng = np.random.default_rng(5)
        for index in range(150):
            width = 32 + 2 * (index % 50)
            weights = builder.constant(rng.standard_normal((x.shape[1], width), np.float32))
            x = builder.softmax(builder.matmul(x, weights), 1)
        return x

    for name in ("300 kernels, cold", "300 kernels, warm"):
        await latency(name, [16, 32], model, runs=3)
    big = await context.create_buffer(data_type="float32", shape=[2**24], readable=True, writable=True)
    context.write_buffer(big, np.zeros(2**24, np.float32))
    samples = []
    for _ in range(9):
        started = perf_counter()
        await context.read_buffer(big)
        samples.append(perf_counter() - started)
    results["download of 64 MB"] = statistics.median(samples)
    context.destroy()
    return results


def time_onnxruntime(case: Case, few: int = 2, many: int = 22) -> float:
    """Seconds of one operator in a chain."""
    import onnx  # noqa: PLC0415 - optional
    import onnxruntime  # noqa: PLC0415 - optional
    from onnx import helper  # noqa: PLC0415 - optional

    if "WebGpuExecutionProvider" not in onnxruntime.get_available_providers():
        raise ImportError("this onnxruntime has no WebGPU")
    kind = {"float32": onnx.TensorProto.FLOAT, "float16": onnx.TensorProto.FLOAT16}[case.data_type]
    rng = np.random.default_rng(1)
    feeds = {
        f"i{index}": (0.01 * rng.standard_normal(shape, np.float32)).astype(case.data_type)
        for index, shape in enumerate(case.shapes)
    }

    def session(length: int):
        operator, attributes = case.node
        names = ["i0", *(f"v{index}" for index in range(length - 1)), "last"]
        others = [f"i{index}" for index in range(1, len(case.shapes))]
        nodes = [
            helper.make_node(operator, [names[index], *others], [names[index + 1]], **attributes)
            for index in range(length)
        ]
        # One number is all that is read back.
        nodes.append(helper.make_node("ReduceMax", ["last"], ["y"], keepdims=0))
        graph = helper.make_graph(
            nodes,
            "chain",
            [helper.make_tensor_value_info(name, kind, array.shape) for name, array in feeds.items()],
            [helper.make_tensor_value_info("y", kind, [])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        providers = ["WebGpuExecutionProvider"]
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)

    def median(length: int) -> float:
        peer = session(length)
        samples = []
        for _ in range(REPEATS + 2):
            started = perf_counter()
            peer.run(None, feeds)
            samples.append(perf_counter() - started)
        return statistics.median(samples[2:])

    return (median(many) - median(few)) / (many - few)


def time_torch(case: Case, count: int = 50) -> float:
    """Seconds of one operator, by events of the GPU."""
    import torch  # noqa: PLC0415 - optional

    kind = {"float32": torch.float32, "float16": torch.float16}[case.data_type]
    tensors = [torch.randn(*shape, device="cuda", dtype=kind) for shape in case.shapes]
    for _ in range(3):
        case.torch(torch, *tensors)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        case.torch(torch, *tensors)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000 / count


def attempt(time: Callable[[Case], float], case: Case) -> float | None:
    """The time, or None where the peer cannot do it; the reason goes to standard error."""
    try:
        return time(case)
    except Exception as error:  # noqa: BLE001 - a peer may fail in any way
        print(f"{time.__name__} {case.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None


async def measure(cases: Sequence[Case]) -> dict[str, dict[str, float | None]]:
    rows: dict[str, dict[str, float | None]] = {}
    async with webnn_py.open_ml() as ml:
        for case in cases:
            ours = await time_ours(ml, case)
            peers = {"onnxruntime-webgpu": attempt(time_onnxruntime, case), "torch": attempt(time_torch, case)}
            rows[case.name] = {"webnn_py": ours, **peers}
            rates = ", ".join(
                f"{name} {case.amount / seconds:,.1f}" for name, seconds in rows[case.name].items() if seconds
            )
            print(f"{case.name}: {rates} {case.unit}", flush=True)
        for name, seconds in (await small_work(ml)).items():
            rows[name] = {"webnn_py": seconds}
            print(f"{name}: {seconds * 1e6:,.0f} µs", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m spec_tests.benchmarks.gpu", description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose names contain one of these")
    parser.add_argument("--json", type=Path, help="also write seconds here")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.words or any(word in case.name for word in options.words)]
    rows = trio.run(measure, cases)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
