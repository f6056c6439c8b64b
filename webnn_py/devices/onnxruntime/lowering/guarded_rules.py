"""Fast lowering rules that hold for usual numbers only, each with a guard: a tensor that shows if they may not hold.

A graph is first run as these rules write it. If a guard is triggered, the graph is written again by ``rules`` alone,
which hold for all numbers, and run again.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Graph, Node
from webnn_py.core.operators import conversion, indexing, pooling
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.windows import image_shape
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION
from webnn_py.devices.onnxruntime.analyses.propagated_nan import values_with_visible_nan
from webnn_py.devices.onnxruntime.analyses.quantized_gates import quantized_gates
from webnn_py.devices.onnxruntime.analyses.unneeded_guards import (
    are_divisors,
    finite_nodes,
    nodes_with_indices_in_range,
    value_ranges,
)
from webnn_py.devices.onnxruntime.lowering import attention, rules
from webnn_py.devices.rewriting.passes import ReadConstant
from webnn_py.onnx_export import writing
from webnn_py.onnx_export.body import Array, Body, OnnxTensor, Operands
from webnn_py.onnx_export.guards import Must
from webnn_py.onnx_export.image_layouts import channels_first, laid_out
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.nodes import MICROSOFT
from webnn_py.onnx_export.rules.pooling import pooling_attributes
from webnn_py.onnx_export.table import Rule, Written

LOWEST: Final = np.array(np.finfo(np.float32).min)

MOST_MAGNITUDES: Final = 2**13
"""The most elements whose sum of magnitudes of 2⁻¹²⁷ implies that one of them is quantized to more than 0."""

MOST_ADDED: Final = 2**14
"""The most elements that GlobalAveragePool, which adds sequentially, averages with an error of a few millionths."""

CHANNELS_END: Final = 2
"""The first axis behind batch and channels; global pools reduce from there on."""

IMAGE_RANK: Final = 4

MOST_SQUARES: Final = 2.0**120
"""A sum of squares below this is finite in float32, in whatever order it is added up."""

SQUARES: Final[Mapping[str, Array | None]] = {
    "int8": None,
    "uint8": None,
    "int32": np.array(2.0**61, np.float32),
    "int64": np.array(2.0**125, np.float32),
}
"""The sum of squares below which every number is in the range of a data type; None where numbers are clipped to it."""


def cast(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Cast to integers with a guard: ONNX's result for NaN and numbers out of range is undefined.

    Values are clipped to the range of 8-bit types. For other types, the guard is a square root, NaN where the sum of
    squares exceeds the square of the highest number.
    """
    target = node.outputs[0].data_type
    if input.data_type != "float32" or target not in SQUARES:
        return rules.write(body, node, {"input": input})
    squares = SQUARES[target]
    if squares is not None:
        left = body.node("Sub", squares, body.node("ReduceSumSquare", input, keepdims=0))
        body.guard(body.node("Sqrt", left), is_number=True)
        return body.cast(input, target)
    body.guard(input)
    bounds = (np.array(bound, np.float32) for bound in INTEGER_RANGES[target])
    return body.cast(body.node("Clip", input, *bounds), target)


def dynamic_quantize(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write DynamicQuantizeLinear, whose results are wrong for NaN, and where the scale is 0."""
    body.guard(input, Must.BE_FINITE)
    results = body.nodes_outputs("DynamicQuantizeLinear", [input], [item.data_type for item in node.outputs])
    body.guard(results[1], Must.BE_ABOVE_ZERO, is_number=True)
    return results


def max_pool2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write MaxPool; where a number is not finite, the guard, the mean of the channel, is not finite either."""
    attributes, layout = pooling_attributes(node), node.options["layout"]
    if input.data_type != "float32" or attributes is None:
        return rules.max_pool2d(body, node, input)
    images = channels_first(body, input, layout)
    batch, channels, _, _ = image_shape(input.shape, layout)
    body.guard(body.node("GlobalAveragePool", images), Must.BE_FINITE, shape=(batch, channels, 1, 1))
    return laid_out(body, body.node("MaxPool", images, **attributes), layout)


def quantize_linear(body: Body, node: Node, input: OnnxTensor, scale: OnnxTensor, zero_point: OnnxTensor) -> Written:
    """Write QuantizeLinear, which gives the lowest integer for NaN: in the input, or from 0 / 0."""
    operands = {"input": input, "scale": scale, "zero_point": zero_point}
    if input.data_type != "float32" or not zero_point.data_type.endswith("8"):
        return rules.quantize_linear(body, node, **operands)
    body.guard(input)
    known = body.known(scale)
    if known is None or not are_divisors(known):
        body.guard(body.node("Div", scale, scale))
    return writing.write(body, node, operands)


def quantized_lstm(
    body: Body,
    node: Node,
    x: OnnxTensor,
    hidden: OnnxTensor,
    cell: OnnxTensor,
    bias: OnnxTensor | None = None,
    **weights: OnnxTensor,
) -> Written:
    """Write DynamicQuantizeLSTM, whose gates do not propagate NaN, and whose results are wrong where a scale is 0.

    Numbers that are large enough for an infinite gate have infinite squares, so that the squares are guarded.
    """
    given = [x, hidden, cell, weights["w_scale"], weights["r_scale"], *([] if bias is None else [bias])]
    for tensor in given:
        if not _has_finite_squares(body.known(tensor)):
            body.guard(body.node("ReduceSumSquare", tensor, keepdims=0), Must.BE_FINITE, is_number=True)
    w, r = ((weights[name], weights[f"{name}_scale"], weights[f"{name}_zero_point"]) for name in "wr")
    inputs = [x, w[0], r[0], bias, None, hidden, cell, None, *w[1:], *r[1:]]
    way = "reverse" if node.options["is_backward"] else "forward"
    how: dict[str, Any] = {"hidden_size": hidden.shape[-1], "direction": way}
    made = body.nodes_outputs("DynamicQuantizeLSTM", inputs, ["float32"] * 3, domain=MICROSOFT, **how)
    for tensor in (x, hidden):
        known = body.known(tensor)
        if known is None or known.any():
            body.guard(_amounts(body, tensor, tensor.shape), Must.BE_NONE_OR_SOME)
    body.guard(_amounts(body, made[0], node.outputs[0].shape), Must.BE_NONE_OR_SOME)
    return made


def _has_finite_squares(array: Array | None) -> bool:
    """Return whether an array is constant, with a sum of squares far below infinity in float32."""
    if array is None:
        return False
    wide = array.astype(np.float64)
    return bool(np.vdot(wide, wide) < MOST_SQUARES)


def _amounts(body: Body, x: OnnxTensor, sizes: Sequence[int]) -> OnnxTensor:
    """Return a guard for each first index: 0 where all elements are 0, and small where the quantization scale is 0.

    The scale is the largest magnitude divided by 255; it is more than 0 from about 2⁻¹⁴¹ on.
    """
    axes = range(1, len(sizes))
    if math.prod(sizes[1:]) <= MOST_MAGNITUDES:
        return body.node("ReduceL1", x, shape(*axes), keepdims=0)
    return body.node("ReduceMax", body.node("Abs", x), shape(*axes), keepdims=0)


def reduce_log_sum_exp(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write ReduceLogSumExp, which may not propagate NaN where the result is infinite."""
    if input.data_type != "float32" or not _places(node, input.rank):
        return rules.reduce_log_sum_exp(body, node, input)
    written = writing.write(body, node, {"input": input})
    body.guard(written[0], Must.BE_FINITE, shape=node.outputs[0].shape)
    return written


def reduce_mean(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write the mean in float32; where the sum overflows, the mean is not finite."""
    places = _places(node, input.rank)
    if input.data_type != "float32" or not places:
        return rules.reduce_mean(body, node, input)
    is_small = math.prod(input.shape[2:]) <= MOST_ADDED
    if places == (2, 3) and input.rank == 4 and node.options["keep_dimensions"] and is_small:
        mean = body.node("GlobalAveragePool", input)
    else:
        mean = body.node("ReduceMean", input, shape(*places), keepdims=int(node.options["keep_dimensions"]))
    body.guard(mean, Must.BE_FINITE, shape=node.outputs[0].shape)
    return mean


def reduce_max(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write ReduceMax, which ignores NaN; the guard, the sum, propagates it.

    Along the last axes, but not along all, it is written as GlobalMaxPool, which is many times as fast but gives the
    lowest finite number for -Infinity alone: that number less itself, divided by itself, is NaN.
    """
    places = _places(node, input.rank)
    first = input.rank - len(places)
    if input.data_type != "float32" or not first or places != tuple(range(first, input.rank)) or not places:
        return _extreme(body, "ReduceMax", node, input)
    body.guard(input)
    rows, sizes = input, input.shape
    if first != CHANNELS_END or len(sizes) > IMAGE_RANK:
        sizes = (1, math.prod(sizes[:first]), math.prod(sizes[first:]))
        rows = body.node("Reshape", input, shape(*sizes))
    greatest = body.node("GlobalMaxPool", rows)
    distance = body.node("Sub", greatest, LOWEST.reshape((1,) * len(sizes)))  # see rules.in_rank_of()
    body.guard(body.node("Div", distance, distance))
    if node.options["keep_dimensions"] and rows is input:
        return greatest
    return body.node("Reshape", greatest, shape(*node.outputs[0].shape))


def reduce_min(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write ReduceMin, which ignores NaN; the guard, the sum, propagates it."""
    return _extreme(body, "ReduceMin", node, input)


def _extreme(body: Body, operator: str, node: Node, input: OnnxTensor) -> Written:
    places = _places(node, input.rank)
    if input.data_type != "float32" or not places:
        return rules.write(body, node, {"input": input})
    body.guard(input)
    return body.node(operator, input, shape(*places), keepdims=int(node.options["keep_dimensions"]))


def _places(node: Node, rank: int) -> tuple[int, ...]:
    """Return the reduced axes in ascending order."""
    axes = node.options["axes"]
    return tuple(range(rank)) if axes is None else tuple(sorted(axes))


RULES: Final[Mapping[str, Rule]] = {**rules.RULES} | {
    rule.__name__: rule
    for rule in (
        cast,
        dynamic_quantize,
        max_pool2d,
        quantize_linear,
        quantized_lstm,
        reduce_log_sum_exp,
        reduce_max,
        reduce_mean,
        reduce_min,
    )
}
"""Rules by the operator's Python name: the guarded rules, and the rules that need no guard."""

_write: Final = writing.by(RULES)

WITH_NAN: Final[Mapping[str, str]] = {"gelu": "Gelu", "hard_swish": "HardSwish"}
"""Operators for which onnxruntime's own gives NaN for -Infinity, by Python name; used where that NaN is visible."""

OWN_IF_FINITE: Final = WITH_NAN.keys() | {"quantize_linear"}
"""Operators that are written as onnxruntime's own where they read finite numbers only."""


def _is_guarded(node: Node) -> bool:
    """Return whether a node with float32 input and output has a guard that NaN in the input triggers."""
    if node.operator is pooling.max_pool2d:
        return pooling_attributes(node) is not None
    is_reduction = node.operator.keeps_one_element
    return is_reduction and bool(_places(node, node.operand("input").rank))


def _unguarded(body: Body, node: Node, operands: Any) -> list[OnnxTensor]:
    """Write a quantization of finite numbers, an operator whose NaN is visible, or a gate."""
    if node.operator is conversion.quantize_linear:
        return writing.write(body, node, operands)
    return [body.node(WITH_NAN.get(node.operator.name, "Sigmoid"), operands["input"])]


INDEXED: Final[Mapping[str, str]] = {"gather": "Gather", "gather_elements": "GatherElements", "gather_nd": "GatherND"}
"""ONNX's names of operators with indices in range, by Python name."""


def _has_unknown_indices(body: Body, node: Node, operands: Any) -> bool:
    """Return whether an operator is a gather with indices that are not constant."""
    return node.operator is indexing.gather and body.known(operands["indices"]) is None


def _gathered(body: Body, node: Node, operands: Any) -> OnnxTensor:
    """Write an operator with its indices unchanged; Gather fails where one is out of range."""
    name, indices = node.operator.name, operands["indices"]
    if name == "gather_nd" or indices.data_type == "uint32":
        indices = body.cast(indices, "int64")
    axis = {} if name == "gather_nd" else {"axis": node.options["axis"]}
    return body.twin(INDEXED[name], operands["input"], indices, **axis)


class GuardedRules:
    """Writes the operators of one graph with guards.

    Args:
        graph: the graph.
        contents: returns the values of constants.
        checks_indices: whether a Gather with an index out of range makes a run fail.

    Attributes:
        may_fail: whether runs may fail because indices or lengths are out of range: then the exact rules are needed.
    """

    def __init__(self, graph: Graph, contents: ReadConstant, *, checks_indices: bool) -> None:
        self._checks_indices = checks_indices
        self.may_fail = False
        ranges = value_ranges(contents)
        self._in_range = nodes_with_indices_in_range(graph, ranges)
        self._finite = finite_nodes(graph, ranges, contents)
        # Results that are written without a guard of their own, and outputs that are guarded instead.
        unguarded = {node for node in self._finite if node.operator.name in OWN_IF_FINITE}
        with_nan = [node for node in graph.nodes if node.operator.name in WITH_NAN and node not in self._finite]
        visible = values_with_visible_nan(graph, _is_guarded) if with_nan else frozenset()
        unguarded.update(node for node in with_nan if node.results[0] in visible)
        self._unguarded = {node.results[0] for node in unguarded} | quantized_gates(graph)
        is_nan_in_outputs = any(node.results[0] in visible for node in with_nan)
        self._guarded_outputs = visible.intersection(graph.outputs.values()) if is_nan_in_outputs else frozenset()

    def __call__(self, body: Body, node: Node, operands: Operands) -> list[OnnxTensor]:
        """Write an operator into a body, with a guard where its rule has one.

        Returns:
            The outputs, in the node's data types.
        """
        guards = len(body.guards)
        is_in_range = node in self._in_range
        if self._checks_indices and node.operator is GROUP_QUERY_ATTENTION and attention.has_kernel(node):
            self.may_fail = True
            outputs = attention.whole(body, node, operands)
        elif is_in_range or (self._checks_indices and _has_unknown_indices(body, node, operands)):
            self.may_fail |= not is_in_range
            outputs = [_gathered(body, node, operands)]
        else:
            write = _unguarded if node.results[0] in self._unguarded else _write
            outputs = write(body, node, operands)
        if node in self._finite:
            del body.guards[guards:]
        if self._guarded_outputs:
            for value, tensor in zip(node.results, outputs, strict=True):
                if value in self._guarded_outputs:
                    body.guard(tensor)
        return outputs
