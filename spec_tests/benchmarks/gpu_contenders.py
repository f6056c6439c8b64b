"""How long one operator takes: webnn_py, onnxruntime-webgpu and torch.

What is bound by memory runs again and again on the same buffers, by webnn_py as by torch. What computes is drawn many
times into one graph: a dispatch would take the host longer than one of them takes the GPU. onnxruntime has no device
tensors in Python, so that it runs a chain, whose last value alone is reduced and read. Always the time of many less
the time of few is what counts.
"""

import statistics
from time import perf_counter

import numpy as np

import webnn_py
from spec_tests.benchmarks.gpu_cases import Case
from webnn_py import MLBuffer, MLContext, MLGraphBuilder

REPEATS = 7
WARM_UP = 2

LENGTHS = (2, 22)
"""Operators in a graph that computes."""

DISPATCHES = (20, 220)
"""Dispatches of a graph that is bound by memory."""

CHAINS = (2, 102)
"""Operators in a chain that is bound by memory, for onnxruntime: copying its input takes longer than many of them."""


async def time_ours(ml: webnn_py.ML, case: Case) -> float:
    """Seconds of one operator."""
    context = await ml.create_context(backend="wgpu", float16_accumulation=case.float16_accumulation)
    rng = np.random.default_rng(1)
    inputs = {}
    for index, shape in enumerate(case.shapes):
        buffer = await context.create_buffer(data_type=case.data_type, shape=shape, writable=True)
        context.write_buffer(buffer, rng.standard_normal(shape, np.float32).astype(case.data_type))
        inputs[f"i{index}"] = buffer
    if case.is_bound_by_memory:
        few, many = [await _median(context, inputs, case, 1, dispatches) for dispatches in DISPATCHES]
        seconds = (many - few) / (DISPATCHES[1] - DISPATCHES[0])
    else:
        few, many = [await _median(context, inputs, case, length, 1) for length in LENGTHS]
        seconds = (many - few) / (LENGTHS[1] - LENGTHS[0])
    context.destroy()
    return seconds


async def _median(context: MLContext, inputs: dict[str, MLBuffer], case: Case, length: int, dispatches: int) -> float:
    """Seconds of some dispatches of a graph of as many operators, each with an output buffer of its own."""
    builder = MLGraphBuilder(context)
    operands = [builder.input(name, data_type=b.data_type, shape=b.shape) for name, b in inputs.items()]
    drawn = {f"y{index}": case.draw(builder, *operands) for index in range(length)}
    graph = await builder.build(drawn)
    outputs = {
        name: await context.create_buffer(data_type=operand.data_type, shape=operand.shape)
        for name, operand in drawn.items()
    }
    samples = []
    for _ in range(REPEATS + WARM_UP):
        started = perf_counter()
        for _ in range(dispatches):
            context.dispatch(graph, inputs, outputs)
        await context.drain()
        samples.append(perf_counter() - started)
    for buffer in outputs.values():
        buffer.destroy()
    graph.destroy()
    return statistics.median(samples[WARM_UP:])


def onnxruntime_session(model: bytes, *, optimized: bool):
    """A session on WebGPU, its graph rewritten first or taken as it is."""
    import onnxruntime  # noqa: PLC0415 - optional

    if "WebGpuExecutionProvider" not in onnxruntime.get_available_providers():
        raise ImportError("this onnxruntime has no WebGPU")
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["WebGpuExecutionProvider"])


def time_onnxruntime(case: Case) -> float:
    """Seconds of one operator in a chain."""
    rng = np.random.default_rng(1)
    feeds = {
        f"i{index}": (0.01 * rng.standard_normal(shape, np.float32)).astype(case.data_type)
        for index, shape in enumerate(case.shapes)
    }

    def median(length: int) -> float:
        peer = onnxruntime_session(_chain(case, feeds, length), optimized=False)
        samples = []
        for _ in range(REPEATS + WARM_UP):
            started = perf_counter()
            peer.run(None, feeds)
            samples.append(perf_counter() - started)
        return statistics.median(samples[WARM_UP:])

    few, many = CHAINS if case.is_bound_by_memory else LENGTHS
    return (median(many) - median(few)) / (many - few)


def _chain(case: Case, feeds: dict[str, np.ndarray], length: int) -> bytes:
    """An ONNX model of a chain of one operator. Of its last value one number is put out."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - optional

    kind = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[case.data_type]
    operator, attributes = case.node
    names = ["i0", *(f"v{index}" for index in range(length - 1)), "last"]
    others = [f"i{index}" for index in range(1, len(case.shapes))]
    nodes = [
        helper.make_node(operator, [names[index], *others], [names[index + 1]], **attributes) for index in range(length)
    ]
    nodes.append(helper.make_node("ReduceMax", ["last"], ["y"], keepdims=0))
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info(name, kind, array.shape) for name, array in feeds.items()],
        [helper.make_tensor_value_info("y", kind, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


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
