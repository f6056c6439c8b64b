"""The number of arithmetic operations of a node, from its operator and its shapes alone.

A multiplication, an addition, a comparison that picks a maximum, and a function of one element, such as an exponential,
count one each, whatever their data type. Moves, selections, comparisons, casts and logic count nothing. Factors such as
``alpha``, and operations that a device saves or adds in its own implementation, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from webnn_py.core.graph import Node
from webnn_py.core.operators.recurrent import PEEPHOLE_GATES

Count = Callable[[Node], int]

ELEMENTWISE: Final = {"activation", "arithmetic", "unary"}
"""The categories whose elementwise operators count one for each element of the result."""

FREE: Final = {"identity"}
"""The operators among them that only copy."""

LERP: Final = 3
"""The operations of a linear interpolation: a difference, a product, a sum."""

SUM_AND_FUNCTION: Final = 2
"""The operations of a gate, apart from its two products and biases."""

NEW_STATE: Final = 5
"""The operations of a new state of sums and products, and of its function."""


def flops(node: Node) -> int:
    """Return the number of arithmetic operations of a node."""
    operator = node.operator
    count = COUNTS.get(operator.name) or COUNTS_OF_PARTS.get(operator.name)
    if count is not None:
        return count(node)
    is_counted = operator.is_elementwise and operator.category in ELEMENTWISE and operator.name not in FREE
    return _results(node) if is_counted else 0


def _results(node: Node) -> int:
    return node.outputs[0].element_count


def _of_results(each: int) -> Count:
    return lambda node: each * _results(node)


def _of_inputs(each: int) -> Count:
    return lambda node: each * node.operand("input").element_count


def _has(node: Node, name: str) -> bool:
    return name in node.operands


def _matmul(node: Node) -> int:
    return 2 * _results(node) * node.operand("a").shape[-1]


def _gemm(node: Node) -> int:
    inner: int = node.operand("a").shape[0 if node.options["a_transpose"] else 1]
    return _results(node) * (2 * inner + _has(node, "c"))


def _conv2d(node: Node) -> int:
    filters = node.operand("filter")
    each: int = filters.element_count // filters.shape[node.options["filter_layout"].index("o")]
    return _results(node) * (2 * each + _has(node, "bias"))


def _conv_transpose2d(node: Node) -> int:
    filters = node.operand("filter")
    each: int = filters.element_count // filters.shape[node.options["filter_layout"].index("i")]
    return 2 * node.operand("input").element_count * each + _results(node) * _has(node, "bias")


def _pooled(each: int) -> Count:
    def count(node: Node) -> int:
        window = node.options["window_dimensions"]
        if window is None:
            shape = node.operand("input").shape
            window = shape[2:] if node.options["layout"] == "nchw" else shape[1:3]
        elements: int = prod(window)
        return each * _results(node) * elements

    return count


def _recurrent(gates: int) -> Count:
    """Count one step of a network of some gates, or all of them in all directions.

    The gates include the candidate for the new state.
    """

    def count(node: Node) -> int:
        batch, features = node.operand("input").shape[-2:]
        hidden: int = node.options["hidden_size"]
        weight = node.operand("weight").shape
        runs: int = batch if len(weight) == 2 else batch * weight[0] * node.options["steps"]
        biases = _has(node, "bias") + _has(node, "recurrent_bias")
        of_gates = gates * (2 * (features + hidden) + SUM_AND_FUNCTION + biases)
        peepholes = 6 if _has(node, "peephole_weight") else 0
        return runs * hidden * (of_gates + peepholes + NEW_STATE)

    return count


def _recurrent_steps(gates: int) -> Count:
    """Count all steps of a network whose product of input and weight is counted separately; see :func:`_recurrent`."""

    def count(node: Node) -> int:
        hidden, steps = node.options["hidden_size"], node.options["steps"]
        is_peephole = _has(node, "extra") and gates > len(PEEPHOLE_GATES)
        of_gates = gates * (2 * hidden + SUM_AND_FUNCTION + (_has(node, "extra") and not is_peephole))
        total: int = steps * _results(node) * (of_gates + 6 * is_peephole + NEW_STATE)
        return total

    return count


def _normalized(*, with_statistics: bool) -> Count:
    """Count for each element: mean, difference, square, sum and product; only two of them with given statistics."""
    own = 5 if with_statistics else 2
    return lambda node: _results(node) * (own + _has(node, "scale") + _has(node, "bias"))


def _loop(node: Node) -> int:
    total: int = node.options["steps"] * sum(map(flops, node.options["step"].nodes))
    return total


COUNTS: Final[Mapping[str, Count]] = {
    "matmul": _matmul,
    "gemm": _gemm,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "average_pool2d": _pooled(1),
    "l2_pool2d": _pooled(2),
    "max_pool2d": _pooled(1),
    **dict.fromkeys(("lstm", "lstm_cell"), _recurrent(4)),
    **dict.fromkeys(("gru", "gru_cell"), _recurrent(3)),
    "batch_normalization": _normalized(with_statistics=False),
    "instance_normalization": _normalized(with_statistics=True),
    "layer_normalization": _normalized(with_statistics=True),
    # For each element: maximum, difference, exponential, sum, quotient.
    "softmax": _of_results(5),
    "resample2d": lambda node: 3 * LERP * _results(node) if node.options["mode"] == "linear" else 0,
    "quantize_linear": _of_results(2),
    "dequantize_linear": _of_results(2),
    "arg_min": _of_inputs(1),
    "arg_max": _of_inputs(1),
    "cumulative_sum": _of_inputs(1),
    "reduce_l1": _of_inputs(2),
    "reduce_l2": _of_inputs(2),
    "reduce_log_sum": _of_inputs(1),
    "reduce_log_sum_exp": _of_inputs(2),
    "reduce_max": _of_inputs(1),
    "reduce_mean": _of_inputs(1),
    "reduce_min": _of_inputs(1),
    "reduce_product": _of_inputs(1),
    "reduce_sum": _of_inputs(1),
    "reduce_sum_square": _of_inputs(2),
}
"""Operators with counts of their own, by name."""

COUNTS_OF_PARTS: Final[Mapping[str, Count]] = {
    "loop": _loop,
    "lstm_steps": _recurrent_steps(4),
    "gru_steps": _recurrent_steps(3),
    # Three sigmoids, two tanh, three products and a sum; other operators count the sums of gates.
    "gated_cell": _of_results(9),
    # The extremes, a quotient, a sum and a difference; and eight operations on scalars.
    "dynamic_differences": lambda node: 5 * _results(node) + 8,
    "requantized": _of_results(4),
}
"""Counts of operators that devices and importers create and scripts do not draw, by name."""
