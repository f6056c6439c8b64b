"""Single operators and a long chain on the numpy device, beside onnxruntime on two threads and beside plain numpy."""

import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.measure import OURS, Contender, Result, compare
from webnn_py import MLGraphBuilder, MLOperand

FLOAT = onnx.TensorProto.FLOAT
CHAIN = ["Mul", "Add", "Relu", "Sub", "Abs", "Mul", "Add", "Sigmoid", "Mul", "Sub"] * 2


def session(nodes: Sequence[onnx.NodeProto], inputs: dict[str, Sequence[int]], output: Sequence[int]):
    """A model of ``nodes`` for onnxruntime; the output is called y."""
    graph = helper.make_graph(
        list(nodes),
        "benchmark",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, output)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    # Threads that spin after a run would take the other contenders' processors.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


async def ours(
    ml: webnn_py.ML, shapes: dict[str, Sequence[int]], draw: Callable[..., MLOperand], backend: str = "numpy"
) -> tuple[Contender, dict[str, np.ndarray]]:
    """A function that dispatches once and waits, and the data that were written before."""
    context = await ml.create_context(backend=backend)
    builder = MLGraphBuilder(context)
    operands = {name: builder.input(name, data_type="float32", shape=shape) for name, shape in shapes.items()}
    output = draw(builder, *operands.values())
    graph = await builder.build({"y": output})
    rng = np.random.default_rng(7)
    data = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    inputs = {}
    for name, array in data.items():
        inputs[name] = await context.create_buffer(data_type="float32", shape=array.shape, writable=True)
        context.write_buffer(inputs[name], array)
    y = await context.create_buffer(data_type="float32", shape=output.shape, readable=True)

    async def run() -> None:
        context.dispatch(graph, inputs, {"y": y})
        await context.drain()

    return run, data


async def against_onnxruntime(  # noqa: PLR0917 - a row of a table
    ml: webnn_py.ML,
    name: str,
    shapes: dict[str, Sequence[int]],
    draw: Callable[..., MLOperand],
    nodes: Sequence[onnx.NodeProto],
    output: Sequence[int],
    limit: str,
) -> Result:
    """One row: webnn_py and onnxruntime."""
    run, data = await ours(ml, shapes, draw)
    peer = session(nodes, shapes, output)
    contenders = {OURS: run, "onnxruntime": lambda: peer.run(None, data)}
    return await compare(name, contenders, runs=15, limit=limit)


def conv_node(**attributes) -> onnx.NodeProto:
    return helper.make_node("Conv", ["x", "w"], ["y"], **attributes)


async def matmul(ml: webnn_py.ML) -> Result:
    """matmul 1024³, beside numpy's own call."""
    shapes = {"a": [1024, 1024], "b": [1024, 1024]}
    run, data = await ours(ml, shapes, lambda builder, a, b: builder.matmul(a, b))
    peer = session([helper.make_node("MatMul", ["a", "b"], ["y"])], shapes, [1024, 1024])
    out = np.empty((1024, 1024), np.float32)
    contenders = {
        OURS: run,
        "numpy": lambda: np.matmul(data["a"], data["b"], out=out),
        "onnxruntime": lambda: peer.run(None, data),
    }
    return await compare("matmul 1024³", contenders, runs=15, limit="1.05 × numpy")


async def conv_3x3(ml: webnn_py.ML) -> Result:
    """conv2d 3×3, 64 channels to 64 at 56×56."""
    return await against_onnxruntime(
        ml,
        "conv2d 3×3, 64 → 64 at 56×56",
        {"x": [1, 64, 56, 56], "w": [64, 64, 3, 3]},
        lambda builder, x, w: builder.conv2d(x, w, padding=[1, 1, 1, 1]),
        [conv_node(pads=[1, 1, 1, 1])],
        [1, 64, 56, 56],
        "4 × onnxruntime",
    )


async def conv_1x1(ml: webnn_py.ML) -> Result:
    """conv2d 1×1, 256 channels to 256 at 56×56."""
    return await against_onnxruntime(
        ml,
        "conv2d 1×1, 256 → 256 at 56×56",
        {"x": [1, 256, 56, 56], "w": [256, 256, 1, 1]},
        lambda builder, x, w: builder.conv2d(x, w),
        [conv_node()],
        [1, 256, 56, 56],
        "2 × onnxruntime",
    )


async def depthwise(ml: webnn_py.ML) -> Result:
    """Depthwise conv2d 3×3, 256 channels at 56×56."""
    return await against_onnxruntime(
        ml,
        "depthwise conv2d 3×3, 256 at 56×56",
        {"x": [1, 256, 56, 56], "w": [256, 1, 3, 3]},
        lambda builder, x, w: builder.conv2d(x, w, padding=[1, 1, 1, 1], groups=256),
        [conv_node(pads=[1, 1, 1, 1], group=256)],
        [1, 256, 56, 56],
        "4 × onnxruntime",
    )


async def softmax(ml: webnn_py.ML) -> Result:
    """softmax over the last axis of 4096×4096."""
    return await against_onnxruntime(
        ml,
        "softmax 4096×4096",
        {"x": [4096, 4096]},
        lambda builder, x: builder.softmax(x, 1),
        [helper.make_node("Softmax", ["x"], ["y"], axis=1)],
        [4096, 4096],
        "4 × onnxruntime",
    )


async def layer_normalization(ml: webnn_py.ML) -> Result:
    """layerNormalization of 512×768 over the last axis, with scale and bias."""
    return await against_onnxruntime(
        ml,
        "layerNormalization 512×768",
        {"x": [512, 768], "s": [768], "b": [768]},
        lambda builder, x, s, b: builder.layer_normalization(x, axes=[1], scale=s, bias=b),
        [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=1)],
        [512, 768],
        "4 × onnxruntime",
    )


async def chain(ml: webnn_py.ML) -> Result:
    """Twenty element-wise operators on 4 M floats, beside onnxruntime and plain numpy."""
    size = 4_000_000
    names = ["x", *(f"v{index}" for index in range(len(CHAIN) - 1)), "y"]
    nodes = [
        helper.make_node(kind, [names[i], "k"] if kind in ("Mul", "Add", "Sub") else [names[i]], [names[i + 1]])
        for i, kind in enumerate(CHAIN)
    ]

    def draw(builder: MLGraphBuilder, x: MLOperand, k: MLOperand) -> MLOperand:
        for kind in CHAIN:
            method = getattr(builder, kind.lower())
            x = method(x, k) if kind in ("Mul", "Add", "Sub") else method(x)
        return x

    run, data = await ours(ml, {"x": [size], "k": [size]}, draw)
    peer = session(nodes, {"x": [size], "k": [size]}, [size])
    functions = {
        "Mul": lambda r: r * data["k"],
        "Add": lambda r: r + data["k"],
        "Sub": lambda r: r - data["k"],
        "Relu": lambda r: np.maximum(r, 0),
        "Abs": np.abs,
        "Sigmoid": lambda r: 1 / (1 + np.exp(-r)),
    }

    def plain() -> None:
        result = data["x"]
        for kind in CHAIN:
            result = functions[kind](result)

    contenders = {OURS: run, "onnxruntime": lambda: peer.run(None, data), "numpy": plain}
    limit = "1.5 × onnxruntime, less than numpy"
    return await compare("20 element-wise operators on 4 M floats", contenders, runs=9, limit=limit)


async def peak_memory(ml: webnn_py.ML) -> None:
    """Print the peak memory of a dispatch beside inputs, outputs, constants and the two largest intermediates."""
    context = await ml.create_context(backend="numpy")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[1, 64, 112, 112])
    rng = np.random.default_rng(3)
    weights = builder.constant(rng.standard_normal((64, 64, 3, 3), np.float32))
    value = x
    for _ in range(6):
        value = builder.relu(builder.conv2d(value, weights, padding=[1, 1, 1, 1]))
    tracemalloc.start()
    graph = await builder.build({"y": value})
    buffers = [
        await context.create_buffer(data_type="float32", shape=x.shape, readable=True, writable=True) for _ in "xy"
    ]
    context.dispatch(graph, {"x": buffers[0]}, {"y": buffers[1]})
    await context.drain()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    one = 64 * 112 * 112 * 4
    needed = 4 * one + 64 * 64 * 9 * 4
    print(f"peak memory of a dispatch of 6 × (conv2d, relu): {peak / needed:.2f} × what it needs (goal 1.3)")
    context.destroy()


BENCHMARKS = (matmul, conv_3x3, conv_1x1, depthwise, softmax, layer_normalization, chain)
