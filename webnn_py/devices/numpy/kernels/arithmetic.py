"""Elementwise binary operators on arrays."""

from functools import partial
from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import arithmetic
from webnn_py.devices.numpy.routines.blocks import float_blocks, in_blocks
from webnn_py.devices.numpy.table import Array, Kernel, kernel, kernels

FEW: Final = 2**12
"""The elements up to which numpy's float16 loops are faster than a conversion to float32 and back."""


def is_much_float16(node: Node) -> bool:
    """Return whether a node has so many float16 elements that converting them is faster than numpy's own loops."""
    return node.outputs[0].data_type == "float16" and node.outputs[0].element_count > FEW


def float_arithmetic(node: Node, function: np.ufunc) -> Kernel:
    """Make the kernel of a numpy function, which computes large float16 arrays in float32."""
    return float_blocks(node, function) if is_much_float16(node) else function


kernels(float_arithmetic, {arithmetic.add: np.add, arithmetic.sub: np.subtract, arithmetic.mul: np.multiply})


@kernel(arithmetic.div)
def div(node: Node) -> Kernel:
    if node.outputs[0].data_type in ("float32", "float16"):
        return float_arithmetic(node, np.divide)
    item = np.dtype(node.outputs[0].data_type)
    return in_blocks(node, truncated_division, item, allocated=4) if item.kind == "i" else np.floor_divide


def truncated_division(a: Array, b: Array, output: Array, remainder: Array) -> None:
    """Divide integers toward zero; x / 0 is 0, and the lowest integer / -1 wraps to itself.

    numpy's floor_divide gives 0 for x / 0 and wraps, but rounds down: where there is a remainder and the signs
    differ, its quotient is one too low.
    """
    np.floor_divide(a, b, out=output)
    np.remainder(a, b, out=remainder)
    too_low = (remainder != 0) & ((a < 0) != (b < 0))
    np.add(output, too_low, out=output, casting="unsafe")


def extreme(node: Node, choose: np.ufunc) -> Kernel:
    """Make the kernel of numpy's maximum or minimum, which computes large float16 arrays in float32, with SIMD."""
    compute = partial(choose_into, choose)
    return float_blocks(node, compute) if is_much_float16(node) else compute


def choose_into(choose: np.ufunc, a: Array, b: Array, output: Array) -> None:
    """Fill the output with the greater or lesser elements: these ufuncs take an output by name only."""
    choose(a, b, out=output)


kernels(extreme, {arithmetic.max_: np.maximum, arithmetic.min_: np.minimum})


@kernel(arithmetic.pow_)
def pow_(node: Node) -> Kernel:
    if is_much_float16(node):
        return float_blocks(node, np.power)
    if node.outputs[0].data_type in ("float32", "float16", "uint32", "uint64", "uint8"):
        return np.power
    item = np.dtype(node.outputs[0].data_type)
    return in_blocks(node, integer_power, item, allocated=2 * item.itemsize + 4)


def integer_power(a: Array, b: Array, output: Array, exponent: Array) -> None:
    """Raise signed integers to powers, wrapping; a negative exponent truncates toward zero, and 0 to it is 0."""
    np.maximum(b, 0, out=exponent)
    np.power(a, exponent, out=output)
    negative = b < 0
    if negative.any():
        odd = (b & 1).astype(bool)
        truncated = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0))
        np.copyto(output, truncated, where=negative, casting="unsafe")
