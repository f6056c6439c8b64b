"""Quantizing and taking the same numbers back, in one step: floats that are integers need not become such."""

from __future__ import annotations

from typing import Final

import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.passes.matching import Matched, check
from webnn_py.device.on_numpy.routines.blocks import reshaped_in_blocks
from webnn_py.device.on_numpy.table import Array, Kernel, kernel, scalar
from webnn_py.graph import Node
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.conversion import blockwise_shapes
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand

BYTES: Final = ("int8", "uint8")

ROUNDING: Final = 3 * 2**22
INTEGERS: Final = scalar(ROUNDING, "float32")
"""Sums with it are integers, rounded ties to even, as far as eight bits go and further; taken away, it leaves those."""


def requantized(input: MLOperand, scale: MLOperand, zero_point: MLOperand) -> MLOperandDescriptor:
    """What is left of float32 that is quantized to eight bits; the operands are those of ``quantize_linear``."""
    del scale, zero_point
    return MLOperandDescriptor("float32", input.shape)


REQUANTIZED: Final = Operator(requantized, "dequantizeLinear", {}, elementwise=True)


def _work(node: Node) -> float:
    return 6 * node.outputs[0].element_count


@kernel(REQUANTIZED, work=_work)
def make_requantized(node: Node) -> Kernel:
    """The kernel; see the operator."""
    bounds = INTEGER_RANGES[node.operand("zero_point").data_type]
    lowest, highest = (scalar(ROUNDING + bound, "float32") for bound in bounds)

    def step(x: Array, scale: Array, zero_point: Array, y: Array) -> None:
        point = zero_point.astype(np.float32)
        np.divide(x, scale, out=y)
        np.add(y, INTEGERS, out=y)
        y.clip(lowest - point, highest - point, out=y)
        if np.isnan(y.max()):
            np.copyto(y, INTEGERS - point, where=np.isnan(y))
        np.subtract(y, INTEGERS, out=y)
        np.multiply(y, scale, out=y)

    blocks, ones = blockwise_shapes(node.outputs[0].shape, node.operand("scale").shape)
    return reshaped_in_blocks(node, (blocks, ones, ones), blocks, step)


def requantization(node: Node) -> Node:
    """The node that does what another does with the one before it.

    Raises:
        UnlikeError: it does not take back what that one has quantized.
    """
    matched = Matched()
    quantized = matched.before(node.operands["input"], "quantize_linear")
    for name in ("scale", "zero_point"):
        check(matched.through_reshapes(node.operands[name]) is matched.through_reshapes(quantized.operands[name]))
        check(node.operand(name).shape == quantized.operand(name).shape)
    types = [quantized.operand(name).data_type for name in ("input", "scale")]
    check([*types, node.outputs[0].data_type] == ["float32"] * 3)
    check(quantized.outputs[0].data_type in BYTES)
    matched.include(node)
    return Node(REQUANTIZED, quantized.operands, {}, node.outputs, node.label, matched.drawn)
