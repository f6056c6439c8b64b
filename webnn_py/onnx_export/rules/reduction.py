"""Reductions, indices of extremes, and the cumulative sum."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import reduction
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import COMPUTED, WIDER, ordered, shape, unordered
from webnn_py.onnx_export.table import Rule, rule, rules

OfOne = Callable[[Body, OnnxTensor], OnnxTensor]
"""The reductions of a single element."""

OfRows = Callable[[Body, OnnxTensor, int], OnnxTensor]
"""The reductions of rows of int64, [rows, count] to [rows, 1]."""


def _axes(node: Node) -> tuple[int, ...]:
    axes: tuple[int, ...] | None = node.options["axes"]
    return tuple(range(node.operand("input").rank)) if axes is None else axes


def _reduce(body: Body, operator: str, x: OnnxTensor, node: Node, *, is_twin: bool) -> OnnxTensor:
    write = body.twin if is_twin else body.node
    return write(operator, x, shape(*_axes(node)), keepdims=int(node.options["keep_dimensions"]))


def _reduction(operator: str, of_one: OfOne, of_integers: OfRows | None = None) -> Rule:
    """Return the rule of a reduction; without axes, ONNX has none that does so with each element.

    Args:
        operator: ONNX's.
        of_one: what it makes of each element, without axes.
        of_integers: what it makes of rows of integers; None where there are only floats.
    """

    def write(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
        if body.computes(operator, input.data_type) and _axes(node):
            return _reduce(body, operator, input, node, is_twin=True)
        if not input.data_type.startswith("float") and of_integers is not None:
            wide = body.cast(input, "int64")
            is_magnitude = of_one is _magnitude and input.data_type.startswith("uint")
            single = wide if is_magnitude else of_one(body, wide)
            return body.cast(of_rows(body, node, single, of_integers), input.data_type)
        wide = body.cast(input, "float32")
        reduced = _reduce(body, operator, wide, node, is_twin=False) if _axes(node) else of_one(body, wide)
        return body.cast(reduced, input.data_type)

    return write


def of_rows(body: Body, node: Node, x: OnnxTensor, combine: OfRows) -> OnnxTensor:
    """Lay what is reduced together side by side, [rows, count], and combine it."""
    axes, sizes = _axes(node), node.operand("input").shape
    if not axes:
        return body.node("Identity", x)
    count = math.prod(sizes[axis] for axis in axes)
    kept = [axis for axis in range(len(sizes)) if axis not in axes]
    in_order = body.node("Transpose", x, perm=[*kept, *axes])
    rows = body.node("Reshape", in_order, shape(math.prod(sizes) // count, count))
    return body.node("Reshape", combine(body, rows, count), shape(*node.outputs[0].shape))


def _sum(body: Body, rows: OnnxTensor, count: int) -> OnnxTensor:
    """Return a product with ones: onnxruntime 1.31 adds integers up as floats, which do not wrap around, and round."""
    ones = body.node("Expand", np.array(1, np.int64), shape(count, 1))
    return body.node("MatMul", rows, ones)


def _product(body: Body, rows: OnnxTensor, count: int) -> OnnxTensor:
    """Multiply one half by the other, until there is one element: onnxruntime multiplies integers as floats, too."""
    while count > 1:
        half = count // 2
        low, high = (
            body.node("Slice", rows, shape(start), shape(start + half), shape(1), shape(1)) for start in (0, half)
        )
        halves = body.node("Mul", low, high)
        if count % 2:
            last = body.node("Slice", rows, shape(count - 1), shape(count), shape(1), shape(1))
            halves = body.node("Concat", halves, last, axis=1)
        rows, count = halves, half + count % 2
    return rows


def _of_one(operator: str) -> OfOne:
    return lambda body, x: body.node(operator, x)


_itself, _magnitude, _logarithm = map(_of_one, ("Identity", "Abs", "Log"))


def _square(body: Body, x: OnnxTensor) -> OnnxTensor:
    return body.node("Mul", x, x)


for _operator, _name, _single, _rows in (
    (reduction.reduce_l1, "ReduceL1", _magnitude, _sum),
    (reduction.reduce_l2, "ReduceL2", _magnitude, None),
    (reduction.reduce_log_sum, "ReduceLogSum", _logarithm, None),
    (reduction.reduce_log_sum_exp, "ReduceLogSumExp", _itself, None),
    (reduction.reduce_mean, "ReduceMean", _itself, None),
    (reduction.reduce_product, "ReduceProd", _itself, _product),
    (reduction.reduce_sum, "ReduceSum", _itself, _sum),
    (reduction.reduce_sum_square, "ReduceSumSquare", _square, _sum),
):
    rule(_operator)(_reduction(_name, _single, _rows))


def _extreme(body: Body, node: Node, operator: str, input: OnnxTensor) -> OnnxTensor:
    """Write the extreme; NaN, which onnxruntime skips, where the sum of what is not negative is NaN."""
    if not _axes(node):
        return body.node("Identity", input)
    if input.data_type.startswith("uint") and input.data_type != "uint8":
        extreme = _reduce(body, operator, ordered(body, input), node, is_twin=False)
        return unordered(body, extreme, input.data_type)
    if not input.data_type.startswith("float"):
        return _reduce(body, operator, input, node, is_twin=True)
    wide = body.cast(input, "float32")
    extreme = _reduce(body, operator, wide, node, is_twin=False)
    total = _reduce(body, "ReduceSum", body.node("Relu", wide), node, is_twin=False)
    has_nan = body.node("IsNaN", total, data_type=BOOL)
    nan = np.array(np.nan, np.float32)
    return body.cast(body.node("Where", has_nan, nan, extreme, data_type="float32"), input.data_type)


rules(_extreme, {reduction.reduce_max: "ReduceMax", reduction.reduce_min: "ReduceMin"})


def _place(body: Body, node: Node, operator: str, input: OnnxTensor) -> OnnxTensor:
    """Return the first place of the extreme, or of NaN."""
    how: dict[str, Any] = {"axis": node.options["axis"], "keepdims": int(node.options["keep_dimensions"])}
    wanted = node.outputs[0].data_type
    if input.data_type.startswith("float"):
        wide = body.cast(input, "float32")
        place = body.node(operator, wide, data_type="int64", **how)
        nans = body.cast(body.node("IsNaN", wide, data_type=BOOL), "uint8")
        first_nan = body.node("ArgMax", nans, data_type="int64", **how)
        axes = shape(node.options["axis"])
        has_nan = body.cast(body.node("ReduceMax", nans, axes, keepdims=how["keepdims"]), BOOL)
        return body.cast(body.node("Where", has_nan, first_nan, place, data_type="int64"), wanted)
    numbers = ordered(body, input) if input.data_type in ("uint32", "uint64") else input
    if wanted == "int64":
        return body.twin(operator, numbers, data_type="int64", **how)
    return body.cast(body.node(operator, numbers, data_type="int64", **how), wanted)


rules(_place, {reduction.arg_min: "ArgMin", reduction.arg_max: "ArgMax"})


@rule(reduction.cumulative_sum)
def cumulative_sum(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Write CumSum."""
    how: dict[str, Any] = {"exclusive": int(node.options["exclusive"]), "reverse": int(node.options["reversed"])}
    axis = np.array(node.options["axis"], np.int64)
    if input.data_type in COMPUTED:
        return body.twin("CumSum", input, axis, **how)
    wide = body.cast(input, WIDER[input.data_type])
    return body.cast(body.node("CumSum", wide, axis, **how), input.data_type)
