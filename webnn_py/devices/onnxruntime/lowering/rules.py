"""Lowering rules for the device: those of ``webnn_py.onnx_export``, or the device's own.

A saved model is read and optimized by others, who look for certain operators. Here the model is only computed: where
onnxruntime's operator differs from the specification, it is replaced by others of its operators.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.limits import FLOATS
from webnn_py.devices.composites.dynamic_quantization import dynamically_quantized
from webnn_py.devices.onnxruntime.lowering.attention import group_query_attention
from webnn_py.devices.onnxruntime.lowering.block_quantized import matmul_nbits
from webnn_py.devices.onnxruntime.lowering.scan import loop
from webnn_py.devices.onnxruntime.lowering.tree_ensemble import tree_ensemble
from webnn_py.devices.onnxruntime.own_operators.quantized_lstm import decomposition as step_by_step
from webnn_py.onnx_export import writing
from webnn_py.onnx_export.body import BOOL, Array, Body, Drawing, Float16Kernels, OnnxTensor
from webnn_py.onnx_export.image_layouts import channels_first, laid_out
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.nodes import MICROSOFT
from webnn_py.onnx_export.registry import RULES as SAVED
from webnn_py.onnx_export.rules.indexing import in_range
from webnn_py.onnx_export.rules.pooling import pooling_attributes
from webnn_py.onnx_export.table import Rule, Written

LEAST_GELU: Final = np.array(-1000, np.float32)
"""Below it gelu is 0, also for -Infinity, for which onnxruntime would compute -Infinity · 0."""

SIGMOID_IS_ONE: Final = np.array(32, np.float32)
"""From it on, the sigmoid is 1 in float32, and exp is far from overflow."""


def _float(value: float) -> np.ndarray[tuple[()], np.dtype[np.float32]]:
    return np.array(value, np.float32)


def in_rank_of(x: OnnxTensor, number: Array) -> Array:
    """Return a number in the rank of the other operand, a tensor, where its last axis has one element.

    With a number of fewer axes, onnxruntime broadcasts such tensors element by element, which takes 18 times as long.
    """
    return number.reshape((1,) * x.rank) if x.rank and x.shape[-1] == 1 else number


def _is_finite(array: Array | None) -> bool:
    """Return whether all elements are constant and finite; a finite sum of squares shows it fastest."""
    return array is not None and (math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all()))


def batch_normalization(
    body: Body,
    node: Node,
    input: OnnxTensor,
    mean: OnnxTensor,
    variance: OnnxTensor,
    scale: OnnxTensor | None = None,
    bias: OnnxTensor | None = None,
) -> OnnxTensor:
    """Subtract the mean first; BatchNormalization adds the bias less the scaled mean to the product, which cancels."""
    axis = node.options["axis"]
    sizes = tuple(input.shape[axis] if place == axis else 1 for place in range(input.rank))

    def along_axis(operand: OnnxTensor) -> OnnxTensor | Array:
        known = body.known(operand)
        if known is not None:
            return known.astype(np.float32).reshape(sizes)
        return body.node("Reshape", body.cast(operand, "float32"), shape(*sizes))

    epsilon = _float(cast_number(node.options["epsilon"], node.outputs[0].data_type))
    factor = _factor(body, _float(1) if scale is None else along_axis(scale), along_axis(variance), epsilon)
    result = body.node("Mul", body.node("Sub", body.cast(input, "float32"), along_axis(mean)), factor)
    return body.cast(result if bias is None else body.node("Add", result, along_axis(bias)), input.data_type)


def _factor(body: Body, scale: Array | OnnxTensor, variance: Array | OnnxTensor, epsilon: Array) -> Array | OnnxTensor:
    """Return the scale by the root of the variance, folded where both are constant: to the same bits."""
    if isinstance(scale, OnnxTensor) or isinstance(variance, OnnxTensor):
        return body.node("Div", scale, body.node("Sqrt", body.node("Add", variance, epsilon)))
    with np.errstate(all="ignore"):
        factor: Array = scale / np.sqrt(variance + epsilon)
    return factor


def cast(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Cast; where a larger integer was cast from floats before, keep onnxruntime from making one cast of both.

    What a processor makes of a float beyond the range of the smaller integer is undefined.
    """
    sizes = [np.dtype(data_type).itemsize for data_type in (input.data_type, node.outputs[0].data_type)]
    is_narrowed = input.data_type in ("int32", "int64") and sizes[1] < sizes[0]
    if is_narrowed and any(written.operator == "Cast" and input.name in written.outputs for written in body.nodes):
        return writing.write(body, node, {"input": body.node("Neg", body.node("Neg", input))})
    return writing.write(body, node, {"input": input})


def conv2d(body: Body, node: Node, input: OnnxTensor, filter: OnnxTensor, bias: OnnxTensor | None = None) -> Written:
    """Write Conv; pad images first, unless the filter is constant and finite: Conv skips products with padding."""
    padding = node.options["padding"]
    if not any(padding or ()) or _is_finite(body.known(filter)):
        return SAVED["conv2d"](body, node, input, filter, bias)
    top, bottom, left, right = padding
    begins, ends = (
        (0, 0, *along) if node.options["input_layout"] == "nchw" else (0, *along, 0)
        for along in ((top, left), (bottom, right))
    )
    operands = {"input": input, "filter": filter} if bias is None else {"input": input, "filter": filter, "bias": bias}
    operands["input"] = body.node("Pad", input, shape(*begins, *ends), np.zeros((), input.data_type))
    return writing.write(body, attrs.evolve(node, options={**node.options, "padding": None}), operands)


def dynamic_quantize(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write the decomposition."""
    drawing = Drawing(body)
    return [drawing.tensor(operand) for operand in dynamically_quantized(drawing, drawing.of(input))]


def gelu(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Write Gelu with -Infinity excluded."""
    computed = body.computed("Gelu", input)
    x = body.node("Max", computed, in_rank_of(input, LEAST_GELU.astype(computed.data_type)))
    return body.cast(body.node("Gelu", x), input.data_type)


def gemm(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor, c: OnnxTensor | None = None) -> Written:
    """Write Gemm, which omits C where beta is 0, even if C is not finite: then write the decomposition."""
    operands = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}
    if c is not None and node.options["beta"] == 0:
        return body.decomposed(node, operands)
    return writing.write(body, node, operands)


def hard_swish(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Compute min(6, max(x, -3) + 3) / 6 · max(x, -3); HardSwish would multiply by 1/6, and -Infinity by 0."""
    least, three, six = (in_rank_of(input, _float(value)) for value in (-3, 3, 6))
    x = body.node("Max", body.cast(input, "float32"), least)
    gate = body.node("Min", body.node("Add", x, three), six)
    return body.cast(body.node("Mul", x, body.node("Div", gate, six)), input.data_type)


def integer_matmul(
    body: Body,
    node: Node,
    a: OnnxTensor,
    b: OnnxTensor,
    a_zero_point: OnnxTensor | None = None,
    b_zero_point: OnnxTensor | None = None,
) -> OnnxTensor:
    """Write MatMulInteger, with zero points in the shapes that it takes."""
    zero_points = [
        body.node("Reshape", zero_point, shape(-1)) if zero_point is not None and zero_point.rank > 1 else zero_point
        for zero_point in (a_zero_point, b_zero_point)
    ]
    return body.node("MatMulInteger", a, b, *zero_points, data_type="int32")


def max_pool2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write MaxPool with NaN propagated; Clip makes 0 of everything but NaN."""

    def zero_or_nan(images: OnnxTensor) -> OnnxTensor:
        zero = np.zeros((), images.data_type)
        return body.node("Clip", images, zero, zero)

    return max_pool2d_with(zero_or_nan, body, node, input)


def max_pool2d_with(
    zero_or_nan: Callable[[OnnxTensor], OnnxTensor], body: Body, node: Node, input: OnnxTensor
) -> Written:
    """Write MaxPool with NaN propagated: a second pool gives NaN for windows that have one, else 0, and is subtracted.

    For windows of -Infinity alone MaxPool gives the lowest finite number, so that -Infinity is selected there instead.
    """
    how = pooling_attributes(node)
    if how is None or input.data_type not in FLOATS:
        return writing.write(body, node, {"input": input})
    images = body.computed("MaxPool", channels_first(body, input, node.options["layout"]))
    low = np.array(-math.inf, images.data_type)
    nan_of_window = body.node("AveragePool", zero_or_nan(images), **how)
    is_greater = body.cast(body.node("Greater", images, low, data_type=BOOL), images.data_type)
    has_greater = body.cast(body.node("MaxPool", is_greater, **how), BOOL)
    greatest = body.node("Where", has_greater, body.node("MaxPool", images, **how), low, data_type=images.data_type)
    greatest = body.node("Sub", greatest, nan_of_window)
    return body.cast(laid_out(body, greatest, node.options["layout"]), input.data_type)


def quantize_linear(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """Write the decomposition: QuantizeLinear gives the lowest integer for NaN."""
    return body.decomposed(node, operands)


def resample2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Resize; for whole factors, with the scales and mode for which onnxruntime has kernels in its own layout."""
    old, new = input.shape, node.outputs[0].shape
    are_whole = all(after % before == 0 for before, after in zip(old, new, strict=True))
    if node.options["mode"] != "nearest-neighbor" or input.data_type != "float32" or old == new or not are_whole:
        return writing.write(body, node, {"input": input})
    scales = np.array([after // before for before, after in zip(old, new, strict=True)], np.float32)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    return body.node("Resize", input, None, scales, **how)


def scatter_nd(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """Write ScatterND; duplicate indices all get the last update, since onnxruntime's threads write in any order."""
    depth = indices.shape[-1]
    sizes, count = input.shape[:depth], math.prod(indices.shape[:-1])
    within = in_range(body, indices, sizes, is_coordinates=True)
    if count == 1:
        return body.twin("ScatterND", input, within, updates)
    is_behind = body.node("Less", within, np.array(0, np.int64), data_type=BOOL)
    turned = body.node("Add", within, shape(*sizes), data_type="int64")
    coordinates = body.node("Where", is_behind, turned, within, data_type="int64")
    strides = np.array([math.prod(sizes[axis + 1 :]) for axis in range(depth)], np.int64).reshape(depth, 1)
    places = body.node("MatMul", body.node("Reshape", coordinates, shape(count, depth)), strides)
    places = body.node("Reshape", places, shape(count))
    unset = body.node("Expand", np.array(0, np.int64), shape(math.prod(sizes)))
    last = body.node("ScatterElements", unset, places, np.arange(count), axis=0)
    winners = body.node("Gather", last, places, axis=0)
    rows = body.node("Reshape", updates, shape(count, math.prod(input.shape[depth:])))
    same = body.node("Reshape", body.node("Gather", rows, winners, axis=0), shape(*updates.shape))
    return body.node("ScatterND", input, within, same)


def prelu(body: Body, node: Node, input: OnnxTensor, slope: OnnxTensor) -> Written:
    """Write PRelu for constant finite slopes: it ignores slopes above zero, where infinite ones give NaN."""
    if input.data_type not in FLOATS or _is_finite(body.known(slope)):
        return writing.write(body, node, {"input": input, "slope": slope})
    x = body.cast(input, "float32")
    zero = in_rank_of(input, _float(0))
    below = body.node("Mul", body.node("Min", x, zero), body.cast(slope, "float32"))
    return body.cast(body.node("Add", body.node("Max", x, zero), below), input.data_type)


def scaled_matmul(
    body: Body,
    node: Node,
    a: OnnxTensor,
    b: OnnxTensor,
    a_scale: OnnxTensor,
    b_scale: OnnxTensor,
    a_zero_point: OnnxTensor,
    b_zero_point: OnnxTensor,
) -> OnnxTensor:
    """Write MatMulIntegerToFloat, with scalars in place of constants whose elements are all equal."""
    steps = [_listed(body, item) for item in (a_scale, b_scale, a_zero_point, b_zero_point)]
    return body.nodes_outputs("MatMulIntegerToFloat", [a, b, *steps], ["float32"], domain=MICROSOFT)[0]


def _listed(body: Body, tensor: OnnxTensor) -> Array:
    """Return the elements of a constant as a list, or a scalar where all are equal."""
    array = body.known(tensor)
    assert array is not None  # noqa: S101 - scales and zero points are constant
    if array.size > 1 and (array != array.flat[0]).any():
        return array.reshape(-1)
    return array.reshape(-1)[:1].reshape(())


def sigmoid(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Compute exp(x) / (exp(x) + 1); Sigmoid has an absolute error of 2⁻²³, however small the result is."""
    power = body.node("Exp", body.node("Min", body.cast(input, "float32"), in_rank_of(input, SIGMOID_IS_ONE)))
    sum_ = body.node("Add", power, in_rank_of(input, _float(1)))
    return body.cast(body.node("Div", power, sum_), input.data_type)


def quantized_lstm(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """Write the decomposition."""
    drawing = Drawing(body)
    drawn = {name: drawing.of(tensor) for name, tensor in operands.items()}
    return [drawing.tensor(operand) for operand in step_by_step(drawing, **drawn, **node.options)]


def reduce_l2(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Reduce in float64, in which no square overflows or underflows."""
    return _reduced_in_float64(body, "ReduceL2", node, input)


def reduce_log_sum_exp(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Propagate NaN; ReduceLogSumExp is infinite where an infinity follows NaN."""
    written = writing.write(body, node, {"input": input})
    axes = node.options["axes"]
    if axes == () or not input.rank:
        return written
    places = range(input.rank) if axes is None else axes
    marks = body.cast(body.node("IsNaN", body.cast(input, "float32"), data_type=BOOL), "float32")
    marked = body.node("ReduceMax", marks, shape(*places), keepdims=int(node.options["keep_dimensions"]))
    nan = np.array(math.nan, input.data_type)
    return body.node("Where", body.cast(marked, BOOL), nan, written[0], data_type=input.data_type)


def reduce_mean(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Reduce in float64, in which no sum overflows."""
    return _reduced_in_float64(body, "ReduceMean", node, input)


def reduce_sum_square(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Reduce in float64: a million squares, added sequentially, would have a relative error of 4e-4."""
    return _reduced_in_float64(body, "ReduceSumSquare", node, input)


def _reduced_in_float64(body: Body, operator: str, node: Node, input: OnnxTensor) -> Written:
    axes = node.options["axes"]
    if axes == () or not input.rank or input.data_type not in FLOATS:
        return writing.write(body, node, {"input": input})
    places = range(input.rank) if axes is None else axes
    wide = body.cast(input, "float64")
    reduced = body.node(operator, wide, shape(*places), keepdims=int(node.options["keep_dimensions"]))
    return body.cast(reduced, input.data_type)


FLOAT16: Final = Float16Kernels(
    missing={
        "Abs",
        "Ceil",
        "Equal",
        "Floor",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Neg",
        "Pad",
        "Relu",
        "Tile",
        "Trilu",
        "Where",
    },
)
"""On the CPU, these operators are written in float32 with explicit casts, for lack of float16 kernels.

onnxruntime would insert casts itself, but removes them together with the cast that rounds the operand.
"""

RULES: Final[Mapping[str, Rule]] = {**SAVED} | {
    rule.__name__: rule
    for rule in (
        batch_normalization,
        cast,
        conv2d,
        dynamic_quantize,
        gelu,
        gemm,
        group_query_attention,
        hard_swish,
        integer_matmul,
        loop,
        matmul_nbits,
        max_pool2d,
        prelu,
        quantize_linear,
        quantized_lstm,
        reduce_l2,
        reduce_log_sum_exp,
        reduce_mean,
        reduce_sum_square,
        resample2d,
        scaled_matmul,
        scatter_nd,
        sigmoid,
        tree_ensemble,
    )
}
"""Rules by the operator's Python name: the device's own, and those of saved models."""

write: Final = writing.by(RULES)
"""Writes an operator by the rules that hold for all numbers."""
