"""Dynamic quantization in one step: a graph says it in some twenty operators, most of them on single numbers.

What is quantized by the range of its own elements, and then taken less its zero point as float32, is what products of
integers are made of in WebNN, which multiplies floats only. Here it never becomes integers, but whole floats. Every
result has the bits that the operators give it.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.passes.matching import Matched, check, is_number, single
from webnn_py.device.on_numpy.table import Array, Kernel, kernel, scalar
from webnn_py.graph import Node, Value
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand

HIGHEST: Final = 255
LOWEST_PLACE, HIGHEST_PLACE = scalar(0, "float32"), scalar(HIGHEST, "float32")
ZERO, ONE, MOST = (np.float32(number) for number in (0, 1, HIGHEST))
PIECE: Final = 2**16
"""The elements that are quantized at a time: they stay in the cache."""


def dynamic_differences(input: MLOperand) -> list[MLOperandDescriptor]:
    """An operand of float32, quantized to uint8 by its own range into which 0 is taken, less the zero point.

    Returns:
        The differences, as float32, and the scale.
    """
    return [MLOperandDescriptor("float32", input.shape), MLOperandDescriptor("float32", ())]


DYNAMIC_DIFFERENCES: Final = Operator(dynamic_differences, "quantizeLinear", {})


def _work(node: Node) -> float:
    return 6 * node.outputs[0].element_count


@kernel(DYNAMIC_DIFFERENCES, work=_work)
def make_differences(node: Node) -> Kernel:
    """The kernel; see the operator."""
    count = node.outputs[0].element_count
    pieces = [slice(start, start + PIECE) for start in range(0, count, PIECE)]

    def run(x: Array, differences: Array, scale: Array) -> None:
        lowest, highest = _range(x)
        span = highest - lowest
        scale[...] = step = span / MOST if span != 0 else ONE
        point = float(np.rint(-lowest / step))
        zero_point = np.float32(min(point, HIGHEST)) if point > 0 else ZERO  # of NaN 0
        # Division and rounding keep the order: so the ends tell whether anything between them is to be saturated.
        ends = np.rint(lowest / step) + zero_point, np.rint(highest / step) + zero_point
        is_within = bool(ends[0] >= 0 and ends[1] <= HIGHEST)
        flat, result = x.reshape(-1), differences.reshape(-1)
        for piece in pieces:
            _quantize(flat[piece], scale, zero_point, result[piece], is_within=is_within)

    return run


def _range(x: Array) -> tuple[np.float32, np.float32]:
    """The lowest and the highest element, and 0; NaN where one is NaN."""
    lowest, highest = np.minimum.reduce(x, axis=None), np.maximum.reduce(x, axis=None)
    return ZERO if lowest > 0 else lowest, ZERO if highest < 0 else highest


def _quantize(x: Array, scale: Array, zero_point: np.float32, y: Array, *, is_within: bool) -> None:
    np.divide(x, scale, out=y)
    np.rint(y, out=y)
    np.add(y, zero_point, out=y)  # also turns -0 into 0
    if not is_within:
        y.clip(LOWEST_PLACE, HIGHEST_PLACE, out=y)
        np.copyto(y, 0, where=np.isnan(y))
    np.subtract(y, zero_point, out=y)


@attrs.frozen
class DynamicQuantization:
    """What a graph says in many operators.

    Attributes:
        input: what is quantized.
        scale: its scale.
        drawn: the places of the operators.
    """

    input: Value
    scale: Value
    drawn: tuple[int, ...]

    @classmethod
    def at(cls, differences: Node) -> DynamicQuantization:
        """What ends in a subtraction of the zero point.

        Raises:
            UnlikeError: the node is none.
        """
        matched = Matched()
        quantized = matched.before(
            matched.before(differences.operands["a"], "cast").operands["input"], "quantize_linear"
        )
        zero_point = single(matched.before(differences.operands["b"], "cast").operands["input"])
        x = single(quantized.operands["input"])
        scale = matched.through_reshapes(quantized.operands["scale"])
        check(matched.through_reshapes(quantized.operands["zero_point"]) is zero_point)
        lowest = _matched_scale(matched, x, scale)
        _match_zero_point(matched, zero_point, lowest, scale)
        check(x.descriptor.data_type == differences.outputs[0].data_type == "float32")
        check(quantized.outputs[0].data_type == zero_point.descriptor.data_type == "uint8")
        check(differences.outputs[0].shape == x.descriptor.shape and x.descriptor.element_count > 0)
        matched.include(differences)
        return cls(x, scale, matched.drawn)

    def node(self, label: str) -> Node:
        """The same as one node."""
        outputs = (MLOperandDescriptor("float32", self.input.descriptor.shape), self.scale.descriptor)
        return Node(DYNAMIC_DIFFERENCES, {"input": self.input}, {}, outputs, label, self.drawn)


def _matched_scale(matched: Matched, x: Value, scale: Value) -> Value:
    """Match the scale, and return the lowest number of the range that it is for."""
    check(scale.descriptor.shape == ())
    chosen = matched.before(scale, "where").operands
    check(is_number(chosen["true_value"], 1))
    quotient = matched.before(chosen["false_value"], "div").operands
    check(is_number(quotient["b"], HIGHEST))
    is_nothing = matched.before(chosen["condition"], "equal").operands
    check(is_nothing["a"] is quotient["a"] and is_number(is_nothing["b"], 0))
    span = matched.before(quotient["a"], "sub").operands
    for end, extreme, reduction in (("a", "max", "reduce_max"), ("b", "min", "reduce_min")):
        pair = matched.before(span[end], extreme).operands
        check(is_number(pair["b"], 0))
        reduced = matched.before(pair["a"], reduction)
        check(
            reduced.operands["input"] is x
            and len(reduced.options["axes"] or range(x.descriptor.rank)) == x.descriptor.rank
        )
    return single(span["b"])


def _match_zero_point(matched: Matched, zero_point: Value, lowest: Value, scale: Value) -> None:
    clamped = matched.before(matched.before(zero_point, "cast").operands["input"], "clamp")
    check(clamped.options["min_value"] == 0 and clamped.options["max_value"] == HIGHEST)
    rounded = matched.before(clamped.operands["input"], "round_even")
    quotient = matched.before(rounded.operands["input"], "div").operands
    check(quotient["b"] is scale and matched.before(quotient["a"], "neg").operands["input"] is lowest)
