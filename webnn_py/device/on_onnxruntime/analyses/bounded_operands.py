"""Which operators read nothing but what is far below infinity, whatever a graph is given: such as is dequantized."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from webnn_py.device.on_onnxruntime.analyses.finite_max_pools import ADDS, KEEPS
from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.operators.casting import INTEGER_RANGES

MOST: Final = 2.0**60
"""Below this values, their squares, and sums of as many as there may be, are finite in float32."""

MOST_CONSTANTS: Final = 2**18
"""Elements of constants that are looked at."""

NO_LARGER: Final = KEEPS | {
    "average_pool2d",
    "expand",
    "gelu",
    "hard_swish",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
}
"""Operators of which no element is larger than all of the operands'."""

UP_TO_ONE: Final = frozenset({"erf", "sigmoid", "softmax", "tanh"})

GUARDED: Final = frozenset(
    {
        "gelu",
        "hard_swish",
        "max_pool2d",
        "quantize_linear",
        "reduce_log_sum_exp",
        "reduce_max",
        "reduce_mean",
        "reduce_min",
    }
)
"""Operators whose quick forms are wrong only for what is not finite, or for scales."""


def settled(graph: Graph, contents: ReadConstant) -> frozenset[Node]:
    """The operators that need no guard, of graphs that have something dequantized.

    Args:
        graph: the graph.
        contents: gives the values of constants.
    """
    if not any(node.operator.name == "dequantize_linear" for node in graph.nodes):
        return frozenset()
    bounds = _Bounds(contents)
    found = set()
    for node in graph.nodes:
        if node.operator.name in GUARDED and bounds.of(node.inputs[0]) < MOST and _divides(node, contents):
            found.add(node)
        bounds.add(node)
    return frozenset(found)


def _divides(node: Node, contents: ReadConstant) -> bool:
    """Whether the scale of a quantization is known, and neither 0 nor infinite."""
    if node.operator.name != "quantize_linear":
        return True
    scale = node.operands["scale"]
    return isinstance(scale, Constant) and are_divisors(contents(scale))


def are_divisors(scale: np.ndarray) -> bool:
    """Whether what is finite may be divided by each of these."""
    if scale.size == 1:  # as nearly all are, and numpy takes ten times as long
        return math.isfinite(number := scale.item()) and number != 0
    return bool((np.isfinite(scale) & (scale != 0)).all())


class _Bounds:
    """What elements of values of float32 cannot exceed, of the nodes that were added.

    Args:
        contents: gives the values of constants.
    """

    def __init__(self, contents: ReadConstant) -> None:
        self._contents = contents
        self._found: dict[Value, float] = {}
        self._left = MOST_CONSTANTS

    def of(self, value: Value | tuple[Value, ...]) -> float:
        """The bound of a value, infinite where none is known."""
        assert isinstance(value, Value)  # noqa: S101 - asked of those only
        if value not in self._found and isinstance(value, Constant):
            self._found[value] = self._of_constant(value)
        return self._found.get(value, math.inf)

    def least(self, value: object) -> float:
        """The least magnitude of a constant of one element; 0 of anything else."""
        if not isinstance(value, Constant) or value.descriptor.element_count != 1:
            return 0.0
        return abs(float(self._contents(value).item()))

    def add(self, node: Node) -> None:
        """Find those of a node's results."""
        rule = RULES.get(node.operator.name)
        if rule is None or any(item.data_type != "float32" for item in node.outputs):
            return
        bound = rule(self, node)
        if bound < MOST:
            self._found.update(dict.fromkeys(node.results, bound))

    def _of_constant(self, value: Constant) -> float:
        count = value.descriptor.element_count
        if value.descriptor.data_type != "float32" or not 0 < count <= self._left:
            return math.inf
        self._left -= count
        array = self._contents(value)
        largest = abs(array.item()) if count == 1 else float(max(array.max(), -array.min()))
        return largest if largest < MOST else math.inf  # NaN is below nothing


def _dequantized(bounds: _Bounds, node: Node) -> float:
    lowest, highest = INTEGER_RANGES.get(node.operand("input").data_type, (0, math.inf))  # not those of 4 bits
    return (highest - lowest) * bounds.of(node.operands["scale"])


def _scaled_matmul(bounds: _Bounds, node: Node) -> float:
    return (
        node.operand("a").shape[-1] * 2**16 * bounds.of(node.operands["a_scale"]) * bounds.of(node.operands["b_scale"])
    )


def _matmul(bounds: _Bounds, node: Node) -> float:
    return node.operand("a").shape[-1] * bounds.of(node.operands["a"]) * bounds.of(node.operands["b"])


def _gemm(bounds: _Bounds, node: Node) -> float:
    length = max(node.operand("a").shape)
    product = abs(node.options["alpha"]) * length * bounds.of(node.operands["a"]) * bounds.of(node.operands["b"])
    third = node.operands.get("c")
    return float(product if third is None else product + abs(node.options["beta"]) * bounds.of(third))


def _conv2d(bounds: _Bounds, node: Node) -> float:
    product = (
        node.operand("filter").element_count * bounds.of(node.operands["input"]) * bounds.of(node.operands["filter"])
    )
    bias = node.operands.get("bias")
    return product if bias is None else product + bounds.of(bias)


def _added(bounds: _Bounds, node: Node) -> float:
    return sum(map(bounds.of, node.inputs))


def _multiplied(bounds: _Bounds, node: Node) -> float:
    return math.prod(map(bounds.of, node.inputs))


def _divided(bounds: _Bounds, node: Node) -> float:
    least = bounds.least(node.operands["b"])
    return bounds.of(node.operands["a"]) / least if least else math.inf


def _no_larger(bounds: _Bounds, node: Node) -> float:
    return max(map(bounds.of, node.inputs))


def _up_to_one(bounds: _Bounds, node: Node) -> float:
    return 1.0 if _no_larger(bounds, node) < MOST else math.inf


RULES: Final[Mapping[str, Callable[[_Bounds, Node], float]]] = {
    **dict.fromkeys(ADDS, _added),
    **dict.fromkeys(NO_LARGER, _no_larger),
    **dict.fromkeys(UP_TO_ONE, _up_to_one),
    "conv2d": _conv2d,
    "div": _divided,
    "dequantize_linear": _dequantized,
    "gemm": _gemm,
    "matmul": _matmul,
    "mul": _multiplied,
    "scaled_matmul": _scaled_matmul,
}
"""By the operator's Python name."""
