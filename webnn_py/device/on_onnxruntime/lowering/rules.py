"""How operators are written for the device: by ``webnn_py.onnx_export``, or by a rule of its own.

A model that is saved is read and optimized by others, and says each operator in the words that they look for. Here it
is only computed: what onnxruntime computes otherwise than the specification means is said in others of its operators.
"""

import math
from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_onnxruntime.lowering.scan import rolled
from webnn_py.device.on_onnxruntime.lowering.trees import tree_ensemble
from webnn_py.device.on_onnxruntime.own_operators.quantized_lstm import decomposition as step_by_step
from webnn_py.graph import Node
from webnn_py.onnx_export import writing
from webnn_py.onnx_export.body import BOOL, Array, Body, Drawing, OnnxTensor
from webnn_py.onnx_export.image_layouts import channels_first, laid_out
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.nodes import MICROSOFT
from webnn_py.onnx_export.registry import RULES as SAVED
from webnn_py.onnx_export.rules.indexing import in_range
from webnn_py.onnx_export.rules.pooling import pooling_attributes
from webnn_py.onnx_export.table import Rule, Written
from webnn_py.operators.casting import cast_number
from webnn_py.operators.composites import dynamically_quantized
from webnn_py.operators.limits import FLOATS

LEAST_GELU: Final = np.array(-1000, np.float32)
"""Below it gelu is 0, also of -Infinity, of which onnxruntime would compute -Infinity · 0."""

SIGMOID_IS_ONE: Final = np.array(32, np.float32)
"""From it on the sigmoid is 1 in float32, and exp is far from its end."""


def _float(value: float) -> np.ndarray[tuple[()], np.dtype[np.float32]]:
    return np.array(value, np.float32)


def beside(x: OnnxTensor, number: Array) -> Array:
    """A number that stands beside a tensor: of as many axes where the last one of the tensor has one element.

    Beside a number of fewer axes onnxruntime goes over such tensors element by element, which takes 18 times as long.
    """
    return number.reshape((1,) * x.rank) if x.rank and x.shape[-1] == 1 else number


def _is_finite(array: Array | None) -> bool:
    """Whether all elements are known to be finite, which is found fastest where their sum of squares is."""
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
    """First less the mean; BatchNormalization adds what is left of mean and bias to the product, which cancels."""
    axis = node.options["axis"]
    sizes = tuple(input.shape[axis] if place == axis else 1 for place in range(input.rank))

    def laid(operand: OnnxTensor) -> OnnxTensor | Array:
        known = body.known(operand)
        if known is not None:
            return known.astype(np.float32).reshape(sizes)
        return body.node("Reshape", body.cast(operand, "float32"), shape(*sizes))

    epsilon = _float(cast_number(node.options["epsilon"], node.outputs[0].data_type))
    factor = _factor(body, _float(1) if scale is None else laid(scale), laid(variance), epsilon)
    result = body.node("Mul", body.node("Sub", body.cast(input, "float32"), laid(mean)), factor)
    return body.cast(result if bias is None else body.node("Add", result, laid(bias)), input.data_type)


def _factor(body: Body, scale: Array | OnnxTensor, variance: Array | OnnxTensor, epsilon: Array) -> Array | OnnxTensor:
    """The scale by the root of the variance, computed at once where both are known: to the same bits."""
    if isinstance(scale, OnnxTensor) or isinstance(variance, OnnxTensor):
        return body.node("Div", scale, body.node("Sqrt", body.node("Add", variance, epsilon)))
    with np.errstate(all="ignore"):
        factor: Array = scale / np.sqrt(variance + epsilon)
    return factor


def conv2d(body: Body, node: Node, input: OnnxTensor, filter: OnnxTensor, bias: OnnxTensor | None = None) -> Written:
    """Conv; of images that are padded before, unless the filter is known to be finite: Conv leaves padding out."""
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
    """What graphs say it in."""
    drawing = Drawing(body)
    return [drawing.tensor(operand) for operand in dynamically_quantized(drawing, drawing.of(input))]


def gelu(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Gelu, of nothing infinite below zero."""
    x = body.node("Max", body.cast(input, "float32"), beside(input, LEAST_GELU))
    return body.cast(body.node("Gelu", x), input.data_type)


def gemm(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor, c: OnnxTensor | None = None) -> Written:
    """Gemm, which leaves out what is multiplied by 0, even if that is not a number."""
    operands = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}
    if c is not None and node.options["beta"] == 0:
        return body.decomposed(node, operands)
    return writing.write(body, node, operands)


def hard_swish(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Min(6, x + 3) · x / 6, of an x of at least -3; HardSwish would multiply by 1/6, and -Infinity by 0."""
    least, three, six = (beside(input, _float(value)) for value in (-3, 3, 6))
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
    """MatMulInteger, with zero points in the shapes that it takes."""
    zero_points = [
        body.node("Reshape", zero_point, shape(-1)) if zero_point is not None and zero_point.rank > 1 else zero_point
        for zero_point in (a_zero_point, b_zero_point)
    ]
    return body.node("MatMulInteger", a, b, *zero_points, data_type="int32")


def max_pool2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """MaxPool, less the mean of what is NaN where the image is, else 0: onnxruntime passes over NaN.

    Of -Infinity alone it makes the lowest number; so -Infinity is put where nothing is greater.
    """
    how = pooling_attributes(node)
    if how is None or input.data_type not in FLOATS:
        return writing.write(body, node, {"input": input})
    images = body.cast(channels_first(body, input, node.options["layout"]), "float32")
    zero_or_nan = body.node("AveragePool", body.node("Clip", images, _float(0), _float(0)), **how)
    low = _float(-math.inf)
    is_greater = body.cast(body.node("Greater", images, low, data_type=BOOL), "float32")
    has_greater = body.cast(body.node("MaxPool", is_greater, **how), BOOL)
    greatest = body.node("Where", has_greater, body.node("MaxPool", images, **how), low, data_type="float32")
    greatest = body.node("Sub", greatest, zero_or_nan)
    return body.cast(laid_out(body, greatest, node.options["layout"]), input.data_type)


def quantize_linear(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """The decomposition: of NaN QuantizeLinear makes the lowest integer."""
    return body.decomposed(node, operands)


def resample2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Resize; by whole factors with scales and in the words for which onnxruntime has kernels of its own layout."""
    old, new = input.shape, node.outputs[0].shape
    are_whole = all(after % before == 0 for before, after in zip(old, new, strict=True))
    if node.options["mode"] != "nearest-neighbor" or input.data_type != "float32" or old == new or not are_whole:
        return writing.write(body, node, {"input": input})
    scales = np.array([after // before for before, after in zip(old, new, strict=True)], np.float32)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    return body.node("Resize", input, None, scales, **how)


def scatter_nd(body: Body, node: Node, input: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """ScatterND of updates of which those to one place are all the last one, since its threads overtake each other."""
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
    nobody = body.node("Expand", np.array(0, np.int64), shape(math.prod(sizes)))
    last = body.node("ScatterElements", nobody, places, np.arange(count), axis=0)
    winners = body.node("Gather", last, places, axis=0)
    rows = body.node("Reshape", updates, shape(count, math.prod(input.shape[depth:])))
    same = body.node("Reshape", body.node("Gather", rows, winners, axis=0), shape(*updates.shape))
    return body.node("ScatterND", input, within, same)


def prelu(body: Body, node: Node, input: OnnxTensor, slope: OnnxTensor) -> Written:
    """PRelu, where slopes are known to be finite: it leaves them out above zero, where an infinite one makes NaN."""
    if input.data_type not in FLOATS or _is_finite(body.known(slope)):
        return writing.write(body, node, {"input": input, "slope": slope})
    x = body.cast(input, "float32")
    zero = beside(input, _float(0))
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
    """MatMulIntegerToFloat, with one number in place of several that are equal."""
    steps = [_listed(body, item) for item in (a_scale, b_scale, a_zero_point, b_zero_point)]
    return body.nodes_of(MICROSOFT, "MatMulIntegerToFloat", [a, b, *steps], ["float32"])[0]


def _listed(body: Body, tensor: OnnxTensor) -> Array:
    """The elements of a constant, or the number that all of them are."""
    array = body.known(tensor)
    assert array is not None  # noqa: S101 - scales and zero points are known
    if array.size > 1 and (array != array.flat[0]).any():
        return array.reshape(-1)
    return array.reshape(-1)[:1].reshape(())


def sigmoid(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """The quotient of exp(x) and exp(x) + 1; Sigmoid is good to 2⁻²³ of 1 only, however small the result is."""
    power = body.node("Exp", body.node("Min", body.cast(input, "float32"), beside(input, SIGMOID_IS_ONE)))
    sum_ = body.node("Add", power, beside(input, _float(1)))
    return body.cast(body.node("Div", power, sum_), input.data_type)


def quantized_lstm(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """What graphs say it in."""
    drawing = Drawing(body)
    drawn = {name: drawing.of(tensor) for name, tensor in operands.items()}
    return [drawing.tensor(operand) for operand in step_by_step(drawing, **drawn, **node.options)]


def reduce_l2(body: Body, node: Node, input: OnnxTensor) -> Written:
    """In float64, in which no square is too large or too small."""
    return _reduced_in_float64(body, "ReduceL2", node, input)


def reduce_log_sum_exp(body: Body, node: Node, input: OnnxTensor) -> Written:
    """NaN where something is; ReduceLogSumExp is infinite where there is an infinite number behind it."""
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
    """In float64, in which no sum is too large."""
    return _reduced_in_float64(body, "ReduceMean", node, input)


def reduce_sum_square(body: Body, node: Node, input: OnnxTensor) -> Written:
    """In float64: a million squares, added one after the other, would be off by 4e-4."""
    return _reduced_in_float64(body, "ReduceSumSquare", node, input)


def _reduced_in_float64(body: Body, operator: str, node: Node, input: OnnxTensor) -> Written:
    axes = node.options["axes"]
    if axes == () or not input.rank or input.data_type not in FLOATS:
        return writing.write(body, node, {"input": input})
    places = range(input.rank) if axes is None else axes
    wide = body.cast(input, "float64")
    reduced = body.node(operator, wide, shape(*places), keepdims=int(node.options["keep_dimensions"]))
    return body.cast(reduced, input.data_type)


WITHOUT_FLOAT16: Final = frozenset(
    {
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
    }
)
"""Operators of which onnxruntime has no kernels for float16, and which therefore say that they compute in float32.

The casts that it would put in, it drops together with the one that rounds what they read.
"""

RULES: Final[Mapping[str, Rule]] = {**SAVED} | {
    rule.__name__: rule
    for rule in (
        batch_normalization,
        conv2d,
        dynamic_quantize,
        gelu,
        gemm,
        hard_swish,
        integer_matmul,
        max_pool2d,
        prelu,
        quantize_linear,
        quantized_lstm,
        reduce_l2,
        reduce_log_sum_exp,
        reduce_mean,
        reduce_sum_square,
        resample2d,
        rolled,
        scaled_matmul,
        scatter_nd,
        sigmoid,
        tree_ensemble,
    )
}
"""By the operator's Python name: the device's own, and those of what is saved."""

write: Final = writing.by(RULES)
"""By the rules that hold for all numbers."""
