"""Fuses dynamic quantization, which graphs draw in some twenty operators, most of them on single numbers.

An operand that is quantized by its own range, less its zero point as float32, is a factor of an integer product:
WebNN multiplies floats only. The fused node computes the differences as floats that are integers, to the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Graph, Node, Output, Value
from webnn_py.core.operators import arithmetic, conversion
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.numpy.table import Array, Kernel, kernel, scalar
from webnn_py.devices.rewriting.dynamic_quantization import DynamicQuantization, recognized
from webnn_py.devices.rewriting.node_rules import NodeRule, of_operators
from webnn_py.devices.rewriting.passes import PassContext

HIGHEST: Final = 255
LOWEST_PLACE, HIGHEST_PLACE = scalar(0, "float32"), scalar(HIGHEST, "float32")
ZERO, ONE, MOST = (np.float32(number) for number in (0, 1, HIGHEST))
PIECE: Final = 2**16
"""The elements that are quantized at a time, which stay in the cache."""


def dynamic_differences(input: MLOperand) -> list[MLOperandDescriptor]:
    """Quantize float32 to uint8 by its own range, which includes 0, and subtract the zero point.

    Returns:
        The differences, as float32 of the shape of ``input``, and the scale, a float32 number.
    """
    return [MLOperandDescriptor("float32", input.shape), MLOperandDescriptor("float32", ())]


DYNAMIC_DIFFERENCES: Final = Operator(dynamic_differences, "quantizeLinear", {})


def _work(node: Node) -> float:
    return 6 * node.outputs[0].element_count


@kernel(DYNAMIC_DIFFERENCES, work=_work)
def make_differences(node: Node) -> Kernel:
    """Make the kernel of :func:`dynamic_differences`."""
    count = node.outputs[0].element_count
    pieces = [slice(start, start + PIECE) for start in range(0, count, PIECE)]

    def run(x: Array, differences: Array, scale: Array) -> None:
        lowest, highest = _range(x)
        span = highest - lowest
        scale[...] = step = span / MOST if span != 0 else ONE
        point = float(np.rint(-lowest / step))
        zero_point = np.float32(min(point, HIGHEST)) if point > 0 else ZERO  # 0 where the range is NaN
        # Division and rounding are monotonic: where the ends need not saturate, nothing between them does.
        ends = np.rint(lowest / step) + zero_point, np.rint(highest / step) + zero_point
        is_within = bool(ends[0] >= 0 and ends[1] <= HIGHEST)
        flat, result = x.reshape(-1), differences.reshape(-1)
        for piece in pieces:
            _quantize(flat[piece], scale, zero_point, result[piece], is_within=is_within)

    return run


def _range(x: Array) -> tuple[np.float32, np.float32]:
    """Return the lowest and the highest of the elements and 0; NaN where an element is NaN."""
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


def fused_dynamic_quantization(_graph: Graph, _context: PassContext) -> NodeRule:
    """Return the rule that fuses the operators up to the subtraction of the zero point.

    Several products may read one quantization: it is computed once.
    """
    made: dict[Value, Node] = {}

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        found = _quantized_operand(node)
        if found is None:
            return None
        fused = made.get(found.scale)
        if fused is None:
            fused = made[found.scale] = _fused(node, found, _input_of(current))
        differences, scale = fused.results
        return {node.results[0]: differences, found.scale: scale}

    return of_operators(replace, arithmetic.sub)


def _quantized_operand(differences: Node) -> DynamicQuantization | None:
    """Return the dynamic quantization whose zero point a subtraction takes off; None where it is another one."""
    integers, zero_point = map(_cast_operand, differences.inputs)
    if not isinstance(integers, Output) or zero_point is None:
        return None
    found = recognized(integers.node)
    if found is None or found.zero_point is not zero_point:
        return None
    output = differences.outputs[0]
    return found if output == MLOperandDescriptor("float32", found.input.descriptor.shape) else None


def _cast_operand(value: Value) -> Value | None:
    """Return the value that a cast reads; None where a value is not the result of one."""
    return value.node.inputs[0] if isinstance(value, Output) and value.node.operator is conversion.cast else None


def _input_of(differences: Node) -> Value:
    """Return the operand that is quantized, as other replacements have left it."""
    integers = _cast_operand(differences.inputs[0])
    assert isinstance(integers, Output)  # noqa: S101 - it was found to be quantized
    return integers.node.inputs[0]


def _fused(differences: Node, found: DynamicQuantization, x: Value) -> Node:
    casts = [value.node for value in differences.inputs if isinstance(value, Output)]
    nodes = (*found.nodes, *casts, differences)
    drawn = tuple(sorted({place for one in nodes for place in one.drawn}))
    outputs = (MLOperandDescriptor("float32", x.descriptor.shape), found.scale.descriptor)
    return Node(DYNAMIC_DIFFERENCES, {"input": x}, {}, outputs, differences.label, drawn)
