"""Timing one operator: webnn_py, onnxruntime-webgpu and torch.

What computes runs in chains, each operator on what the one before returned, by webnn_py as by onnxruntime: a dispatch
of a single one would take the host longer than the GPU. webnn_py dispatches what is bound by memory again and again,
with the same buffers, as torch does it; onnxruntime, which has no device tensors in Python, runs a chain there, too. Of
its last value one number is read. Always the time of many less the time of few is what counts.
"""

from functools import partial

import numpy as np
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.gpu_cases import ONNXRUNTIME, Case
from spec_tests.labs.benchmarks.measure import compare
from spec_tests.support.onnx_programs import make_model
from webnn_py import MLGraphBuilder, MLOperand

REPEATS = 7
WARM_UP = 2

SPREAD = 0.01
"""Of the inputs: so small that what a chain returns stays finite."""

LENGTH = 22
"""Operators in a graph that computes."""

DISPATCHES = {"memory": (20, 220), "milliseconds": (1, 2), "microseconds": (1, 11)}
"""Few and many dispatches: of what is bound by memory, and of what computes for so long."""

CHAINS = {"memory": (2, 102), "milliseconds": (2, 22), "microseconds": (2, 222)}
"""Few and many operators in onnxruntime's chain, with as much work in between, if memory lets it."""


def kind_of(case: Case) -> str:
    """Return how a case is timed."""
    if case.is_bound_by_memory:
        return "memory"
    return "milliseconds" if case.takes_milliseconds else "microseconds"


def feeds_of(case: Case) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        f"i{index}": (SPREAD * rng.standard_normal(shape, np.float32)).astype(case.data_type)
        for index, shape in enumerate(case.shapes)
    }


async def time_ours(ml: webnn_py.ML, case: Case) -> float:
    """Return the seconds of one operator."""
    context = await ml.create_context(backend="wgpu", float16_accumulation=case.float16_accumulation)
    length = 1 if case.is_bound_by_memory else LENGTH
    few, many = DISPATCHES[kind_of(case)]

    def chain(builder: MLGraphBuilder, y: MLOperand, *others: MLOperand) -> MLOperand:
        for _ in range(length):
            y = case.draw(builder, y, *others)
        return y

    built = await Built.from_drawing(context, chain, feeds_of(case))
    runs = {str(count): partial(built.run, count) for count in (few, many)}
    taken = (await compare(case.name, runs, runs=REPEATS, warm_up=WARM_UP)).seconds
    context.destroy()
    return (taken[str(many)] - taken[str(few)]) / (many - few) / length


def onnxruntime_session(model: bytes, *, optimized: bool):
    """Return a session on WebGPU, its graph rewritten first or taken as it is."""
    import onnxruntime  # noqa: PLC0415 - optional

    if "WebGpuExecutionProvider" not in onnxruntime.get_available_providers():
        raise ImportError("this onnxruntime has no WebGPU")
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["WebGpuExecutionProvider"])


async def time_onnxruntime(case: Case) -> float:
    """Return the seconds of one operator in a chain."""
    feeds = feeds_of(case)

    async def median(length: int) -> float:
        peer = onnxruntime_session(_chain(case, feeds, length), optimized=False)
        runs = {ONNXRUNTIME: partial(peer.run, None, feeds)}
        return (await compare(case.name, runs, runs=REPEATS, warm_up=WARM_UP)).seconds[ONNXRUNTIME]

    few, many = CHAINS[kind_of(case)]
    seconds = (await median(many) - await median(few)) / (many - few)
    if seconds <= 0:
        raise RuntimeError("a longer chain takes no longer")
    return seconds


def _chain(case: Case, feeds: dict[str, np.ndarray], length: int) -> bytes:
    """Return an ONNX model of a chain of one operator, of whose last value one number is the output."""
    operator, attributes = case.node
    others = [f"i{index}" for index in range(1, len(case.shapes))]
    steps: list[tuple[str, dict, list[str]]] = [
        (before, {}, [other]) for before, other in zip(case.before, others, strict=False)
    ]
    steps.append((operator, attributes, others[len(steps) :]))
    names = ["i0", *(f"v{index}" for index in range(length * len(steps) - 1)), "last"]
    nodes = [
        helper.make_node(name, [given, *more], [result], **of_node)
        for (name, of_node, more), given, result in zip(steps * length, names, names[1:], strict=False)
    ]
    nodes.append(helper.make_node("ReduceMax", ["last"], ["y"], keepdims=0))
    return make_model(nodes, feeds, ["y"], opset=17)


def time_torch(case: Case, count: int = 50) -> float:
    """Return the seconds of one operator, by events of the GPU."""
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
