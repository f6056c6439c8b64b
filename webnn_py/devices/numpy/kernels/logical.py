"""Elementwise logical operators on arrays."""

from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import logical
from webnn_py.devices.numpy.routines.blocks import in_blocks
from webnn_py.devices.numpy.routines.float16 import float32
from webnn_py.devices.numpy.table import Array, Kernel, kernel, kernels, scalar

ZERO = scalar(0, "uint8")
ONE = scalar(1, "int8")

FEW: Final = 2**9
"""The elements up to which numpy's choice element by element is faster than several passes."""


def to_uint8(test: np.ufunc) -> Kernel:
    """Make the kernel of a ufunc with boolean results, which fill uint8: both are one byte, 0 or 1."""

    def fill(*arrays: Array) -> None:
        test(*arrays[:-1], out=arrays[-1].view(np.bool_))

    return fill


kernels(
    lambda _node, test: to_uint8(test),
    {
        logical.logical_not: np.logical_not,
        logical.logical_and: np.logical_and,
        logical.logical_or: np.logical_or,
        logical.logical_xor: np.logical_xor,
        logical.is_nan: np.isnan,
        logical.is_infinite: np.isinf,
    },
)


def comparison(node: Node, test: np.ufunc) -> Kernel:
    """Make the kernel of a comparison, which compares float16 in float32: numpy has no SIMD for float16."""
    fill = to_uint8(test)
    if node.operand("a").data_type != "float16":
        return fill
    return in_blocks(node, lambda a, b, output: fill(float32(a), float32(b), output), allocated=8)


kernels(
    comparison,
    {
        logical.equal: np.equal,
        logical.not_equal: np.not_equal,
        logical.greater: np.greater,
        logical.greater_or_equal: np.greater_equal,
        logical.lesser: np.less,
        logical.lesser_or_equal: np.less_equal,
    },
)


@kernel(logical.where)
def where(node: Node) -> Kernel:
    if node.outputs[0].element_count <= FEW:
        return lambda condition, chosen, other, output: np.copyto(output, np.where(condition, chosen, other))
    bits = np.dtype(f"int{8 * np.dtype(node.outputs[0].data_type).itemsize}")

    def choose(condition: Array, true_value: Array, false_value: Array, output: Array, mask: Array) -> None:
        """Blend bits, false ^ ((true ^ false) & mask): numpy's masked copies branch at each element."""
        test = np.asarray(np.equal(condition, ZERO)).view(np.int8)  # numpy turns a 0-d array into a scalar
        np.subtract(test, ONE, out=test)
        np.copyto(mask, test)
        chosen, other = output.view(bits), false_value.view(bits)
        np.bitwise_xor(true_value.view(bits), other, out=chosen)
        np.bitwise_and(chosen, mask, out=chosen)
        np.bitwise_xor(chosen, other, out=chosen)

    return in_blocks(node, choose, bits, allocated=1)
