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
from webnn_py.device.on_numpy.passes.matching import Matched, UnlikeError, check, single
from webnn_py.device.on_numpy.table import Array, Kernel, kernel, scalar
from webnn_py.graph import Node
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting.dynamic_quantization import DynamicQuantization, recognized

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
class DynamicDifferences:
    """What a graph says in many operators.

    Attributes:
        quantized: what makes the integers.
        drawn: the places of the operators, those that take the zero point off among them.
    """

    quantized: DynamicQuantization
    drawn: tuple[int, ...]

    @classmethod
    def at(cls, differences: Node) -> DynamicDifferences:
        """What ends in a subtraction of the zero point.

        Raises:
            UnlikeError: the node is none.
        """
        matched = Matched()
        integers, zero_point = (
            single(matched.before(differences.operands[name], "cast").operands["input"]) for name in "ab"
        )
        found = recognized(matched.before(integers, "quantize_linear"))
        if found is None:
            raise UnlikeError
        check(found.zero_point is zero_point and differences.outputs[0].data_type == "float32")
        check(differences.outputs[0].shape == found.input.descriptor.shape)
        for node in (*found.nodes, differences):
            matched.include(node)
        return cls(found, matched.drawn)

    def node(self, label: str) -> Node:
        """The same as one node."""
        x, scale = self.quantized.input, self.quantized.scale
        outputs = (MLOperandDescriptor("float32", x.descriptor.shape), scale.descriptor)
        return Node(DYNAMIC_DIFFERENCES, {"input": x}, {}, outputs, label, self.drawn)
