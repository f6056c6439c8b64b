"""What the two timelines cost: round trips, many small operators, whole lives, and how live the event loop stays."""

import gc
import statistics
import subprocess
import sys
import tracemalloc
from time import perf_counter

import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.measure import OURS, Result, compare
from webnn_py import MLContext, MLGraphBuilder

F32 = "float32"


async def _buffers(context: MLContext, shape: list[int]):
    x = await context.create_buffer(data_type=F32, shape=shape, writable=True)
    y = await context.create_buffer(data_type=F32, shape=shape, readable=True)
    return x, y


def _onnx_session(node_types: list[str], shape: list[int]):
    """The same chain of operators for onnxruntime, or None where it is not installed."""
    try:
        import onnx  # noqa: PLC0415 - optional
        import onnxruntime  # noqa: PLC0415 - optional
    except ImportError:
        return None
    from onnx import helper  # noqa: PLC0415 - optional

    nodes = [helper.make_node(kind, [f"v{index}", "k"], [f"v{index + 1}"]) for index, kind in enumerate(node_types)]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("v0", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"v{len(nodes)}", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor("k", onnx.TensorProto.FLOAT, shape, np.full(shape, 0.5, np.float32).ravel())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


async def round_trip(ml: webnn_py.ML) -> Result:
    """One-element add: write, dispatch, awaited read."""
    context = await ml.create_context(backend="numpy")
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type=F32, shape=[1])
    graph = await builder.build({"y": builder.add(operand, builder.constant(0.5, data_type=F32))})
    x, y = await _buffers(context, [1])
    data = np.ones(1, np.float32)

    async def ours() -> None:
        context.write_buffer(x, data)
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.read_buffer(y)

    contenders = {OURS: ours, "numpy": lambda: np.add(data, np.float32(0.5))}
    session = _onnx_session(["Add"], [1])
    if session is not None:
        contenders["onnxruntime"] = lambda: session.run(None, {"v0": data})
    result = await compare("1-element add: write + dispatch + read", contenders, runs=3000, limit="30 µs")
    context.destroy()
    return result


async def fifty_operators(ml: webnn_py.ML) -> Result:
    """Fifty element-wise operators on 1,000 floats, written, dispatched and read."""
    context = await ml.create_context(backend="numpy")
    builder = MLGraphBuilder(context)
    value = builder.input("x", data_type=F32, shape=[1000])
    half = np.full(1000, 0.5, np.float32)
    constant = builder.constant(half)
    for index in range(50):
        value = builder.add(value, constant) if index % 2 else builder.mul(value, constant)
    graph = await builder.build({"y": value})
    x, y = await _buffers(context, [1000])
    data = np.ones(1000, np.float32)

    async def ours() -> None:
        context.write_buffer(x, data)
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.read_buffer(y)

    def plain() -> None:
        result = data
        for index in range(50):
            result = np.add(result, half) if index % 2 else np.multiply(result, half)

    contenders = {OURS: ours, "numpy": plain}
    session = _onnx_session(["Mul", "Add"] * 25, [1000])
    if session is not None:
        contenders["onnxruntime"] = lambda: session.run(None, {"v0": data})
    name = "50 element-wise operators on 1,000 floats"
    result = await compare(name, contenders, runs=1000, limit="numpy + 60 µs")
    context.destroy()
    return result


async def two_hundred_lives(ml: webnn_py.ML) -> Result:
    """200 × create a context, build, dispatch, read, destroy; and whether memory grows."""
    data = np.ones(4, np.float32)

    async def lives() -> None:
        for _ in range(200):
            context = await ml.create_context(backend="numpy")
            builder = MLGraphBuilder(context)
            operand = builder.input("x", data_type=F32, shape=[4])
            graph = await builder.build({"y": builder.add(operand, operand)})
            x, y = await _buffers(context, [4])
            context.write_buffer(x, data)
            context.dispatch(graph, {"x": x}, {"y": y})
            await context.read_buffer(y)
            context.destroy()

    result = await compare("200 × (context, build, dispatch, read, destroy)", {OURS: lives}, runs=7, limit="150 ms")
    tracemalloc.start()
    await lives()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    await lives()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"memory growth over 200 lives: {after - before} bytes", file=sys.stderr)
    return result


async def liveness(ml: webnn_py.ML) -> Result:
    """How late a task is that sleeps 1 ms in a loop while a long matmul runs on the device timeline."""
    context = await ml.create_context(backend="numpy")
    builder = MLGraphBuilder(context)
    size = 5000
    a = builder.input("x", data_type=F32, shape=[size, size])
    graph = await builder.build({"y": builder.matmul(a, a)})
    x, y = await _buffers(context, [size, size])
    context.write_buffer(x, np.random.default_rng(1).random((size, size), np.float32))
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
        started = perf_counter()
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.drain()
        seconds = perf_counter() - started
        nursery.cancel_scope.cancel()
    context.destroy()
    name = f"worst lateness of a 1 ms sleeper beside a {seconds:.1f} s matmul ({len(lateness)} wake-ups)"
    return Result(name, {OURS: max(lateness)}, "20 ms")


async def importing(_ml: webnn_py.ML) -> Result:
    """``import webnn_py`` in a fresh interpreter."""
    program = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        run = subprocess.run([sys.executable, "-c", program.format(module)], check=True, capture_output=True, text=True)
        return float(run.stdout)

    taken = {
        name: statistics.median(seconds(module) for _ in range(9))
        for name, module in ((OURS, "webnn_py"), ("numpy and trio alone", "numpy, trio"))
    }
    return Result("import webnn_py", taken, "150 ms")


BENCHMARKS = (round_trip, fifty_operators, two_hundred_lives, liveness, importing)
