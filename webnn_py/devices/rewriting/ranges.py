"""Value ranges: bounds of all elements of a value, for all inputs of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.graph import Constant, Node, Output, Value
from webnn_py.core.operators import activation, arithmetic, conversion, convolution, matrix, reduction
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.declaration import Operator

MOST: Final = 2.0**120
"""Below this magnitude, values and partial sums are finite in float32, in whatever order they are added."""

MOST_CONSTANTS: Final = 2**18
"""The most elements of constants that are read for a graph, which takes 0.1 ms."""

ROUNDING: Final = 0.02
"""The largest relative error of a float32 sum, of as many elements as a value may have."""

Range = tuple[float, float]
"""The lowest and the highest number; exact for integers."""

RangeRule = Callable[["ValueRanges", Node], Range | None]
"""Returns the range of a node's results before rounding; None where it is unknown."""


class ValueRanges:
    """The ranges of values of graphs, computed when they are needed, and once.

    A value of float32 has a range if all its elements are finite numbers below :data:`MOST`; one of integers always has
    one, which may be that of its data type. Values of other data types have none.

    Args:
        contents: returns the arrays of constants.
        rules: for operators that are not in the specification.
    """

    def __init__(
        self,
        contents: Callable[[Constant], NDArray[Any]],
        rules: Mapping[Operator[..., Any], RangeRule] = MappingProxyType({}),
    ) -> None:
        self._constants = _ReadConstants(contents)
        self._rules = {**RULES, **rules}
        self._found: dict[Value, Range | None] = {}

    def of(self, value: object) -> Range | None:
        """Return the range of a value; None where it is unknown, and for None."""
        if isinstance(value, Constant):
            return self._constants.range_of(value)
        if not isinstance(value, Value):
            return None
        ahead = [value]
        while ahead:
            one = ahead[-1]
            operands = self._operands(one) if one not in self._found else ()
            missing = [operand for operand in operands if isinstance(operand, Output) and operand not in self._found]
            if missing:
                ahead += missing
                continue
            ahead.pop()
            if one not in self._found:
                self._found[one] = self._computed(one)
        return self._found[value]

    def magnitude(self, value: object) -> float:
        """Return the largest magnitude of an element; infinity where it is unknown."""
        found = self.of(value)
        return math.inf if found is None else max(-found[0], found[1])

    def sum_of_magnitudes(self, filters: Value, axis: int) -> float:
        """Return the largest sum of magnitudes of a convolution's filter, over the positions along an axis."""
        if isinstance(filters, Constant):
            return self._constants.sum_of_magnitudes(filters, axis)
        shape = filters.descriptor.shape
        return self.magnitude(filters) * math.prod(shape) / shape[axis]

    def _operands(self, value: Value) -> tuple[Value, ...]:
        """Return the values that the range of a value is computed from."""
        if not isinstance(value, Output) or not _may_be_known(value):
            return ()
        operator = value.node.operator
        is_computed = operator in self._rules or operator.is_no_larger or operator.result_range is not None
        return value.node.inputs if is_computed and not operator.is_boolean else ()

    def _computed(self, value: Value) -> Range | None:
        found = self._of_result(value.node) if isinstance(value, Output) and _may_be_known(value) else None
        return _in_data_type(found, value.descriptor.data_type)

    def _of_result(self, node: Node) -> Range | None:
        operator = node.operator
        rule = self._rules.get(operator)
        found = rule(self, node) if rule is not None else _by_facts(self, node)
        if found is not None and node.outputs[0].data_type == "float32" and not operator.selected_operands:
            error = ROUNDING * max(-found[0], found[1])
            found = found[0] - error, found[1] + error
        if operator.result_range is None or found is None:
            return found
        low, high = operator.result_range
        return max(found[0], low), min(found[1], high)


class _ReadConstants:
    """The ranges and sums of constants, until :data:`MOST_CONSTANTS` elements have been read."""

    def __init__(self, contents: Callable[[Constant], NDArray[Any]]) -> None:
        self.contents = contents
        self._left = MOST_CONSTANTS
        self._ranges: dict[Constant, Range | None] = {}
        self._sums: dict[tuple[Constant, int], float] = {}

    def range_of(self, value: Constant) -> Range | None:
        if value not in self._ranges:
            self._ranges[value] = _in_data_type(self._read_range(value), value.descriptor.data_type)
        return self._ranges[value]

    def sum_of_magnitudes(self, filters: Constant, axis: int) -> float:
        if (filters, axis) not in self._sums:
            self._sums[filters, axis] = self._read_sum(filters, axis)
        return self._sums[filters, axis]

    def _read_range(self, value: Constant) -> Range | None:
        count = value.descriptor.element_count
        if not self._may_read(value):
            return None
        array = self.contents(value)
        if count == 1:  # most constants; numpy's reductions take ten times as long
            return array.item(), array.item()
        return array.min().item(), array.max().item()

    def _read_sum(self, filters: Constant, axis: int) -> float:
        if not self._may_read(filters):
            return math.inf
        others = tuple([place for place in range(filters.descriptor.rank) if place != axis])
        magnitudes = np.abs(self.contents(filters)).reshape(filters.descriptor.shape)
        return float(magnitudes.sum(axis=others, dtype=np.float64).max())

    def _may_read(self, value: Constant) -> bool:
        count = value.descriptor.element_count
        if not _may_be_known(value) or not 0 < count <= self._left:
            return False
        self._left -= count
        return True


def _may_be_known(value: Value) -> bool:
    return value.descriptor.data_type == "float32" or value.descriptor.data_type in INTEGER_RANGES


def _in_data_type(found: Range | None, data_type: MLOperandDataType) -> Range | None:
    """Return a range if the data type holds it; else the whole range of an integer type, or None for floats."""
    if data_type == "float32":
        return found if found is not None and -MOST < found[0] <= found[1] < MOST else None
    limits = INTEGER_RANGES.get(data_type)
    if limits is None:
        return None
    return found if found is not None and limits[0] <= found[0] and found[1] <= limits[1] else limits


# --- rules ---------------------------------------------------------------------------------------------------------


def _by_facts(ranges: ValueRanges, node: Node) -> Range | None:
    """Return the range that follows from the facts of an operator's declaration."""
    operator = node.operator
    if operator.is_boolean:
        return 0, 1
    values = node.inputs
    if operator.selected_operands:
        operands = [node.operands[name] for name in operator.selected_operands if name in node.operands]
        values = tuple([one for item in operands for one in (item if isinstance(item, tuple) else (item,))])
    found = [ranges.of(value) for value in values]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    low, high = min(low for low, _ in known), max(high for _, high in known)
    if operator.selected_operands:
        return low, high
    largest = max(-low, high)
    if operator.is_average:  # the mean is computed from a sum, which may overflow
        is_finite = largest * node.inputs[0].descriptor.element_count < MOST
        return (low, high) if is_finite else None
    return (-largest, largest) if operator.is_no_larger else operator.result_range


def _symmetric(magnitude: float) -> Range:
    return -magnitude, magnitude


def _cast(ranges: ValueRanges, node: Node) -> Range | None:
    is_of_integers = node.operand("input").data_type in INTEGER_RANGES
    return ranges.of(node.operands["input"]) if is_of_integers or node.outputs[0].data_type == "float32" else None


def _clamp(ranges: ValueRanges, node: Node) -> Range | None:
    found = ranges.of(node.operands["input"])
    if found is None:
        return None
    options = node.options
    lowest, highest = activation.clamp_bounds(node.outputs[0].data_type, options["min_value"], options["max_value"])
    low, high = [min(max(end, lowest), highest) for end in found]
    return low, high


def _combined(combine: Callable[[float, float], float]) -> RangeRule:
    """Return the rule of a binary operator whose extremes are at the extremes of its operands."""

    def rule(ranges: ValueRanges, node: Node) -> Range | None:
        a, b = map(ranges.of, node.inputs)
        if a is None or b is None:
            return None
        ends = [combine(x, y) for x in a for y in b]
        return min(ends), max(ends)

    return rule


def _div(ranges: ValueRanges, node: Node) -> Range | None:
    divisor = ranges.of(node.operands["b"])
    if node.outputs[0].data_type != "float32" or divisor is None or divisor[0] <= 0 <= divisor[1]:
        return None
    return _symmetric(ranges.magnitude(node.operands["a"]) / min(map(abs, divisor)))


def _reduce_sum(ranges: ValueRanges, node: Node) -> Range | None:
    found = ranges.of(node.operands["input"])
    count = node.operand("input").element_count // node.outputs[0].element_count
    return None if found is None else (count * found[0], count * found[1])


def _matmul(ranges: ValueRanges, node: Node) -> Range:
    a, b = [ranges.magnitude(node.operands[name]) for name in "ab"]
    return _symmetric(node.operand("a").shape[-1] * a * b)


def _gemm(ranges: ValueRanges, node: Node) -> Range:
    a, b = [ranges.magnitude(node.operands[name]) for name in "ab"]
    length = node.operand("a").shape[0 if node.options["a_transpose"] else 1]
    product = abs(node.options["alpha"]) * length * a * b
    third = node.operands.get("c")
    return _symmetric(product if third is None else product + abs(node.options["beta"]) * ranges.magnitude(third))


def _conv2d(ranges: ValueRanges, node: Node) -> Range:
    """Return the range of the largest sum of one window and filter, if all its products have the same sign."""
    filters, bias = node.value("filter"), node.operands.get("bias")
    images = ranges.magnitude(node.operands["input"])
    if images == math.inf:
        return _symmetric(math.inf)
    product = images * ranges.sum_of_magnitudes(filters, node.options["filter_layout"].index("o"))
    return _symmetric(product if bias is None else product + ranges.magnitude(bias))


def _dequantize_linear(ranges: ValueRanges, node: Node) -> Range | None:
    found, zero_point = ranges.of(node.operands["input"]), ranges.of(node.operands["zero_point"])
    if found is None or zero_point is None:
        return None
    largest = max(found[1] - zero_point[0], zero_point[1] - found[0])
    return _symmetric(largest * ranges.magnitude(node.operands["scale"]))


RULES: Final[Mapping[Operator[..., Any], RangeRule]] = {
    activation.clamp: _clamp,
    activation.leaky_relu: lambda ranges, node: _symmetric(
        max(abs(node.options["alpha"]), 1) * ranges.magnitude(node.operands["input"])
    ),
    arithmetic.add: _combined(lambda a, b: a + b),
    arithmetic.div: _div,
    arithmetic.mul: _combined(lambda a, b: a * b),
    arithmetic.sub: _combined(lambda a, b: a - b),
    conversion.cast: _cast,
    conversion.dequantize_linear: _dequantize_linear,
    convolution.conv2d: _conv2d,
    matrix.gemm: _gemm,
    matrix.matmul: _matmul,
    **dict.fromkeys(
        (reduction.arg_max, reduction.arg_min),
        lambda _ranges, node: (0, node.operand("input").shape[node.options["axis"]] - 1),
    ),
    reduction.reduce_sum: _reduce_sum,
}
"""Operators whose ranges do not follow from the facts of their declarations, or are narrower."""
