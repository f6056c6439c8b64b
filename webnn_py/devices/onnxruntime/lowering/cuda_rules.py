"""Lowering rules for the CUDA provider: where its kernels differ from the specification, and from the CPU's."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.core.graph import Node, Output
from webnn_py.core.operators import convolution
from webnn_py.core.operators.limits import FLOATS
from webnn_py.devices.onnxruntime.claimed_operators import NOT_CLAIMED
from webnn_py.devices.onnxruntime.lowering.attention import scattering_attention
from webnn_py.devices.onnxruntime.lowering.rules import RULES as ON_CPU
from webnn_py.devices.onnxruntime.lowering.rules import SIGMOID_IS_ONE
from webnn_py.onnx_export import writing
from webnn_py.onnx_export.body import BOOL, Array, Body, Float16Kernels, OnnxTensor
from webnn_py.onnx_export.missing_data_types import ordered, shape, unordered
from webnn_py.onnx_export.registry import RULES as SAVED
from webnn_py.onnx_export.rules.indexing import in_range
from webnn_py.onnx_export.rules.pooling import pooled
from webnn_py.onnx_export.rules.reduction import of_rows
from webnn_py.onnx_export.table import Rule, Written

DECOMPOSED: Final[Mapping[str, str]] = {
    **NOT_CLAIMED,
    "instance_normalization": "It adds the bias less the scaled mean to the product, and makes NaN of single elements.",
    "l2_pool2d": "There is no LpPool of the current version.",
    "softplus": "Small results are off by up to ten units in the last place.",
    "tan": "There is no Tan.",
}
"""The operators that are expanded, by Python name, each with the fault of the CUDA provider's own."""


def arg_extreme(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write ArgMax or ArgMin, which give an index out of range where no element exceeds the lowest finite number."""
    written = SAVED[node.operator.name](body, node, input=input)
    assert isinstance(written, OnnxTensor)  # noqa: S101 - there is one output
    if not input.data_type.startswith("float"):
        return written
    size, first = (np.array(number, written.data_type) for number in (input.shape[node.options["axis"]], 0))
    is_in_range = body.node("Less", written, size, data_type=BOOL)
    return body.node("Where", is_in_range, written, first, data_type=written.data_type)


def conv_transpose2d(
    body: Body, node: Node, input: OnnxTensor, filter: OnnxTensor, bias: OnnxTensor | None = None
) -> Written:
    """Write ConvTranspose, which has 32 bits for strides and dilations; decompose longer ones."""
    operands = {"input": input, "filter": filter, **({} if bias is None else {"bias": bias})}
    longest = max(*(node.options["strides"] or (1,)), *(node.options["dilations"] or (1,)))
    return body.decomposed(node, operands) if longest >= 2**31 else writing.write(body, node, operands)


def dequantize_linear(body: Body, node: Node, input: OnnxTensor, scale: OnnxTensor, zero_point: OnnxTensor) -> Written:
    """Write DequantizeLinear with one scale; it fails for several in some shapes, which are decomposed."""
    operands = {"input": input, "scale": scale, "zero_point": zero_point}
    if math.prod(scale.shape) != 1:
        return body.decomposed(node, operands)
    return writing.write(body, node, operands)


def gelu(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Gelu, which refuses scalars."""
    if input.rank:
        return ON_CPU["gelu"](body, node, input=input)
    row = body.node("Reshape", body.cast(input, "float32"), shape(1))
    limited = body.node("Max", row, np.array([-1000], np.float32))
    return body.cast(body.node("Reshape", body.node("Gelu", limited), shape()), input.data_type)


def gemm(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor, c: OnnxTensor | None = None) -> Written:
    """Write Gemm, which omits the product where alpha is 0, even if it is not finite: then write the decomposition."""
    if node.options["alpha"] == 0:
        return body.decomposed(node, {"a": a, "b": b, **({} if c is None else {"c": c})})
    return ON_CPU["gemm"](body, node, a=a, b=b, c=c)


def hard_swish(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Write HardSwish of x limited to -3 from below, since it would multiply -Infinity by 0.

    Behind a convolution, which gives that only where it overflows or reads an infinity, the limit is left out: it takes
    as long as the activation.
    """
    x, read = body.cast(input, "float32"), node.operands["input"]
    if not (isinstance(read, Output) and read.node.operator is convolution.conv2d):
        x = body.node("Clip", x, np.array(-3, np.float32), np.array(math.inf, np.float32))
    return body.cast(body.node("HardSwish", x), input.data_type)


def matmul(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> Written:
    """Write MatMul, which mistakes the places of matrices where both operands are broadcast."""
    batch = node.outputs[0].shape[:-2]
    batches = [_without_ones(operand.shape[:-2]) for operand in (a, b)]
    if () in batches or batches[0] == batches[1]:
        return SAVED["matmul"](body, node, a=a, b=b)
    whole = [
        operand if own == _without_ones(batch) else body.node("Expand", operand, shape(*batch, *operand.shape[-2:]))
        for operand, own in zip((a, b), batches, strict=True)
    ]
    return SAVED["matmul"](body, node, a=whole[0], b=whole[1])


def _without_ones(batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of a batch without leading ones."""
    first = next((index for index, size in enumerate(batch) if size > 1), len(batch))
    return batch[first:]


def max_pool2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write MaxPool alone where nothing is -Infinity: it propagates NaN, but makes -Infinity the lowest finite number.

    With dilations, another kernel computes it.
    """
    read = node.operands["input"]
    known = read.node.operator.result_range if isinstance(read, Output) else None
    has_dilations = any(size != 1 for size in node.options["dilations"] or ())
    if input.data_type in FLOATS and known is not None and known[0] > -math.inf and not has_dilations:
        return pooled(body, node, "MaxPool", input)
    return ON_CPU["max_pool2d"](body, node, input=input)


def recurrent_network(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """Write GRU or LSTM with constant biases; it omits others where onnxruntime can make constants of the weights."""
    biases = [operands[name] for name in ("bias", "recurrent_bias") if name in operands]
    if any(body.known(bias) is None for bias in biases):
        return body.decomposed(node, operands)
    return SAVED[node.operator.name](body, node, **operands)


def reduce_extreme(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write ReduceMax or ReduceMin; of integers of 64 bits, which pass through floats there, TopK.

    Of nothing but -Infinity, ReduceMax makes the lowest finite number, and ReduceMin of Infinity the highest.
    """
    is_max = node.operator.name == "reduce_max"
    if input.data_type.endswith("64"):

        def first_of(body: Body, rows: OnnxTensor, count: int) -> OnnxTensor:
            return body.nodes_outputs("TopK", [rows, shape(1)], ["int64"] * 2, axis=1, largest=int(is_max))[0]

        extreme = of_rows(body, node, ordered(body, input), first_of)
        return unordered(body, extreme, input.data_type)
    written = SAVED[node.operator.name](body, node, input=input)
    assert isinstance(written, OnnxTensor)  # noqa: S101 - there is one output
    if not input.data_type.startswith("float") or node.options["axes"] == () or not input.rank:
        return written
    numbers = np.finfo(np.float32)
    limit, mistaken = (np.float32(-math.inf), numbers.min) if is_max else (np.float32(math.inf), numbers.max)
    comparison, places = ("Greater" if is_max else "Less"), node.options["axes"] or range(input.rank)
    is_inside = body.node(comparison, body.cast(input, "float32"), np.array(limit), data_type=BOOL)
    marks, keepdims = body.cast(is_inside, "float32"), int(node.options["keep_dimensions"])
    has_inside = body.cast(body.node("ReduceMax", marks, shape(*places), keepdims=keepdims), BOOL)
    is_mistaken = body.node("Equal", body.cast(written, "float32"), np.array(mistaken), data_type=BOOL)
    is_limit = body.node("And", is_mistaken, body.node("Not", has_inside))
    edge = np.array(limit, written.data_type)
    return body.node("Where", is_limit, edge, written, data_type=written.data_type)


def resample2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Resize; decompose the linear mode, in which it multiplies neighbours, perhaps infinite, by 0."""
    if node.options["mode"] == "linear" and input.shape != node.outputs[0].shape:
        return body.decomposed(node, {"input": input})
    return ON_CPU["resample2d"](body, node, input=input)


def scatter_elements(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """Write ScatterElements, whose threads write in any order; equal indices all get the last update."""
    axis, sizes = node.options["axis"], indices.shape
    within = in_range(body, indices, [input.shape[axis]])
    numbers = np.arange(sizes[axis]).reshape([-1 if place == axis else 1 for place in range(len(sizes))])
    numbers = np.ascontiguousarray(np.broadcast_to(numbers, sizes))
    unset = body.node("Expand", np.array(-1, np.int64), shape(*input.shape))
    last = body.node(
        "ScatterElements", unset, _not_negative(body, within, input.shape[axis]), numbers, axis=axis, reduction="max"
    )
    winners = body.node("GatherElements", last, within, axis=axis)
    same = body.node("GatherElements", updates, winners, axis=axis)
    return body.node("ScatterElements", input, within, same, axis=axis)


def scatter_nd(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """Write ScatterND, whose threads write in any order; equal indices all get the last update."""
    depth = indices.shape[-1]
    sizes, count = input.shape[:depth], math.prod(indices.shape[:-1])
    within = in_range(body, indices, sizes, is_coordinates=True)
    if count == 1:
        return body.twin("ScatterND", input, within, updates)
    coordinates = body.node("Reshape", _not_negative(body, within, *sizes), shape(count, depth))
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(depth)]
    # CUDA has no MatMul of integers.
    places = body.node("ReduceSum", body.node("Mul", coordinates, shape(*strides)), shape(1), keepdims=0)
    unset = body.node("Expand", np.array(-1, np.int64), shape(math.prod(sizes)))
    last = body.node("ScatterElements", unset, places, np.arange(count), axis=0, reduction="max")
    winners = body.node("Gather", last, places, axis=0)
    rows = body.node("Reshape", updates, shape(count, math.prod(input.shape[depth:])))
    same = body.node("Reshape", body.node("Gather", rows, winners, axis=0), shape(*updates.shape))
    return body.node("ScatterND", input, within, same)


def _not_negative(body: Body, indices: OnnxTensor | Array, *sizes: int) -> OnnxTensor | Array:
    """Return indices counted from the start, as int64."""
    if not isinstance(indices, OnnxTensor):
        wide = indices.astype(np.int64)
        return np.where(wide < 0, wide + sizes, wide)
    signed = body.cast(indices, "int64")
    is_behind = body.node("Less", signed, np.array(0, np.int64), data_type=BOOL)
    turned = body.node("Add", signed, shape(*sizes))
    return body.node("Where", is_behind, turned, signed, data_type="int64")


def sigmoid(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Sigmoid for float16, whose error of 2⁻²³ rounding hides; otherwise exp(x) / (1 + exp(x)) by Softsign."""
    if input.data_type == "float16":
        return SAVED["sigmoid"](body, node, input=input)
    return body.node("Softsign", body.node("Exp", body.node("Min", input, SIGMOID_IS_ONE)))


FLOAT16: Final = Float16Kernels(
    computing={
        "Add",
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "Cos",
        "Div",
        "Erf",
        "Exp",
        "Gelu",
        "Gemm",
        "HardSigmoid",
        "LayerNormalization",
        "LeakyRelu",
        "Log",
        "MatMul",
        "MaxPool",
        "Mul",
        "Pow",
        "Reciprocal",
        "ReduceL1",
        "ReduceProd",
        "ReduceSum",
        "Sigmoid",
        "Sin",
        "Softmax",
        "Sqrt",
        "Sub",
        "Tanh",
    }
)
"""Their kernels accumulate in float32. A convolution rounds once more before the bias is added."""

RULES: Final[Mapping[str, Rule]] = {
    **ON_CPU,
    "arg_max": arg_extreme,
    "arg_min": arg_extreme,
    "conv_transpose2d": conv_transpose2d,
    "dequantize_linear": dequantize_linear,
    "gelu": gelu,
    "gemm": gemm,
    "group_query_attention": scattering_attention,
    "gru": recurrent_network,
    "hard_swish": hard_swish,
    "lstm": recurrent_network,
    "matmul": matmul,
    "max_pool2d": max_pool2d,
    "reduce_max": reduce_extreme,
    "reduce_min": reduce_extreme,
    "resample2d": resample2d,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "sigmoid": sigmoid,
}
"""Rules by the operator's Python name."""
