"""Guards that a graph does not need, since its numbers are finite and its indices in range for all inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Constant, Graph, Node, Output
from webnn_py.core.operators import activation, conversion, indexing, pooling, reduction
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.onnxruntime.own_operators.integer_products import SCALED_MATMUL
from webnn_py.devices.rewriting.passes import ReadConstant
from webnn_py.devices.rewriting.ranges import Range, ValueRanges

MOST: Final = 2.0**60
"""Below this magnitude numbers, their squares, and sums of as many as a value may have, are finite in float32."""

WRONG_FOR_INFINITE: Final = frozenset(
    {
        activation.gelu,
        activation.hard_swish,
        conversion.quantize_linear,
        pooling.max_pool2d,
        reduction.reduce_log_sum_exp,
        reduction.reduce_max,
        reduction.reduce_mean,
        reduction.reduce_min,
    }
)
"""Operators whose fast forms are wrong only for numbers that are not finite, and for some scales."""

INDEXED_SIZE: Final[Mapping[Operator[..., Any], Callable[[Node], int]]] = {
    indexing.gather: lambda node: node.operand("input").shape[node.options["axis"]],
    indexing.gather_elements: lambda node: node.operand("input").shape[node.options["axis"]],
    indexing.gather_nd: lambda node: min(node.operand("input").shape[: node.operand("indices").shape[-1]]),
}
"""The size of the axis that indices select from; the least of several."""


def _scaled_matmul(ranges: ValueRanges, node: Node) -> Range:
    scales = [ranges.magnitude(node.operands[name]) for name in ("a_scale", "b_scale")]
    largest = node.operand("a").shape[-1] * 2**16 * math.prod(scales)
    return -largest, largest


def value_ranges(contents: ReadConstant) -> ValueRanges:
    """Return the value ranges of graphs that have been rewritten for onnxruntime."""
    return ValueRanges(contents, {SCALED_MATMUL: _scaled_matmul})


def finite_nodes(graph: Graph, ranges: ValueRanges, contents: ReadConstant) -> frozenset[Node]:
    """Return the nodes that read finite numbers only, in graphs that dequantize something.

    Args:
        graph: the graph.
        ranges: the ranges of its values.
        contents: returns the arrays of constants.
    """
    if not any(node.operator is conversion.dequantize_linear for node in graph.nodes):
        return frozenset()
    guarded = [node for node in graph.nodes if node.operator in WRONG_FOR_INFINITE and _divides(node, contents)]
    return frozenset(node for node in guarded if ranges.magnitude(node.inputs[0]) < MOST)


def _divides(node: Node, contents: ReadConstant) -> bool:
    """Return whether the scale of a quantization is constant, and neither 0 nor infinite."""
    if node.operator is not conversion.quantize_linear:
        return True
    scale = node.operands["scale"]
    return isinstance(scale, Constant) and are_divisors(contents(scale))


def are_divisors(scale: np.ndarray) -> bool:
    """Return whether finite numbers may be divided by each of these."""
    if scale.size == 1:  # nearly all scales; numpy's functions take ten times as long
        return math.isfinite(number := scale.item()) and number != 0
    return bool((np.isfinite(scale) & (scale != 0)).all())


def nodes_with_indices_in_range(graph: Graph, ranges: ValueRanges) -> frozenset[Node]:
    """Return the nodes whose indices are computed in the graph and are never out of range."""
    found = set()
    for node in graph.nodes:
        size_of = INDEXED_SIZE.get(node.operator)
        if size_of is None or not isinstance(node.operands["indices"], Output):
            continue
        indices, size = ranges.of(node.operands["indices"]), size_of(node)
        if indices is not None and -size <= indices[0] and indices[1] < size:
            found.add(node)
    return frozenset(found)
