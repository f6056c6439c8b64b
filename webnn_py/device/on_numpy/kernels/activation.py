"""Activation functions on arrays.

``clip`` with both bounds stands for max and min with a number: numpy vectorizes it, but not ``maximum`` with a scalar.
"""

import numpy as np

from webnn_py.device.on_numpy.kernels import _special
from webnn_py.device.on_numpy.kernels._blocks import float_blocks, float_ufunc, in_blocks, passes
from webnn_py.device.on_numpy.kernels._float16 import INFINITY_BITS, MAGNITUDE_BITS
from webnn_py.device.on_numpy.kernels._softmax import softmax_along
from webnn_py.device.on_numpy.table import Array, Kernel, kernel, scalar
from webnn_py.graph import Node
from webnn_py.operators import activation
from webnn_py.operators.activation import clamp_bounds
from webnn_py.operators.casting import cast_number

ZERO, ONE, THREE, SIX = (scalar(number, "float32") for number in (0, 1, 3, 6))
MINUS_THREE = scalar(-3, "float32")
INFINITY = scalar(np.inf, "float32")
MINUS_INFINITY = scalar(-np.inf, "float32")
LARGEST = scalar(float(np.finfo(np.float32).max), "float32")
LOWEST = scalar(float(np.finfo(np.float32).min), "float32")

LOWEST_POWER = scalar(-88, "float32")
"""Below it exp(-x) overflows soon, and exp(x) is the sigmoid of x."""

SIGN = scalar(15, "int16")


def option(node: Node, name: str) -> Array:
    """A number that is an option, cast to the operand's data type, for computing in float32."""
    return scalar(cast_number(node.options[name], node.outputs[0].data_type), "float32")


@kernel(activation.clamp)
def clamp(node: Node) -> Kernel:
    data_type = node.outputs[0].data_type
    return clipping(node, *clamp_bounds(data_type, node.options["min_value"], node.options["max_value"]))


@kernel(activation.relu)
def relu(node: Node) -> Kernel:
    return clipping(node, *clamp_bounds(node.outputs[0].data_type, 0, None))


def clipping(node: Node, lowest: float, highest: float) -> Kernel:
    data_type = node.outputs[0].data_type
    if data_type == "float16":
        return float16_clipping(node, lowest, highest)
    bounds = scalar(lowest, data_type), scalar(highest, data_type)
    return lambda x, y: x.clip(*bounds, out=y)


def float16_clipping(node: Node, lowest: float, highest: float) -> Kernel:
    """Clip float16 as integers of the same order, which is many times faster than numpy's float16 arithmetic."""
    bounds = np.empty(2, np.int16)
    to_order(np.array([lowest, highest], np.float16).view(np.int16), bounds)

    def clip(x: Array, y: Array, order: Array) -> None:
        bits, result = x.view(np.int16), y.view(np.int16)
        to_order(bits, order)
        order.clip(bounds[0], bounds[1], out=order)
        to_order(order, result)
        np.bitwise_and(bits, MAGNITUDE_BITS, out=order)
        if order.max() > INFINITY_BITS:
            np.copyto(result, bits, where=order > INFINITY_BITS)

    return in_blocks(node, clip, np.int16)


def to_order(bits: Array, order: Array) -> None:
    """Turn float16's bits into integers of the same order, NaN apart, or back: flip negative numbers' magnitude."""
    np.right_shift(bits, SIGN, out=order)
    np.bitwise_and(order, MAGNITUDE_BITS, out=order)
    np.bitwise_xor(order, bits, out=order)


@kernel(activation.elu, work=passes(6))
def elu(node: Node) -> Kernel:
    alpha = option(node, "alpha")

    def step(x: Array, y: Array, positive: Array) -> None:
        x.clip(MINUS_INFINITY, ZERO, out=y)
        np.expm1(y, out=y)
        np.multiply(y, alpha, out=y)
        x.clip(ZERO, INFINITY, out=positive)
        np.add(y, positive, out=y)

    return float_blocks(node, step, np.float32)


@kernel(activation.gelu, work=passes(16))
def gelu(node: Node) -> Kernel:
    return float_blocks(node, _special.gelu, np.float32, np.float32)


@kernel(activation.hard_sigmoid)
def hard_sigmoid(node: Node) -> Kernel:
    alpha, beta = option(node, "alpha"), option(node, "beta")

    def step(x: Array, y: Array) -> None:
        np.multiply(x, alpha, out=y)
        np.add(y, beta, out=y)
        y.clip(ZERO, ONE, out=y)

    return float_blocks(node, step)


@kernel(activation.hard_swish, work=passes(2))
def hard_swish(node: Node) -> Kernel:
    def step(x: Array, y: Array, factor: Array) -> None:
        np.add(x, THREE, out=y)
        y.clip(ZERO, SIX, out=y)
        np.divide(y, SIX, out=y)
        x.clip(MINUS_THREE, INFINITY, out=factor)  # where y is 0, lest -Infinity times it be NaN
        np.multiply(y, factor, out=y)

    return float_blocks(node, step, np.float32)


@kernel(activation.leaky_relu)
def leaky_relu(node: Node) -> Kernel:
    alpha = option(node, "alpha")
    if alpha == 0:
        return relu(node)  # Infinity · 0 is NaN
    higher_or_lower = np.maximum if alpha <= 1 else np.minimum

    def step(x: Array, y: Array) -> None:
        np.multiply(x, alpha, out=y)
        higher_or_lower(x, y, out=y)

    return float_blocks(node, step)


@kernel(activation.linear)
def linear(node: Node) -> Kernel:
    alpha, beta = option(node, "alpha"), option(node, "beta")

    def step(x: Array, y: Array) -> None:
        np.multiply(x, alpha, out=y)
        np.add(y, beta, out=y)

    return float_blocks(node, step)


@kernel(activation.prelu, work=passes(2))
def prelu(node: Node) -> Kernel:
    data_type = node.outputs[0].data_type
    in_type = "float32" if data_type == "float16" else data_type
    lowest, highest = (scalar(bound, in_type) for bound in clamp_bounds(in_type, None, None))
    zero = scalar(0, in_type)

    def step(x: Array, slope: Array, y: Array, positive: Array) -> None:
        x.clip(lowest, zero, out=y)
        np.multiply(y, slope, out=y)
        x.clip(zero, highest, out=positive)
        np.add(y, positive, out=y)

    return float_blocks(node, step, in_type) if data_type == "float16" else in_blocks(node, step, in_type)


@kernel(activation.sigmoid, work=passes(5))
def sigmoid(node: Node) -> Kernel:
    def step(x: Array, y: Array) -> None:
        np.negative(x, out=y)
        np.exp(y, out=y)
        np.add(y, ONE, out=y)
        np.reciprocal(y, out=y)
        if not x.min() >= LOWEST_POWER:
            np.exp(x, out=y, where=x < LOWEST_POWER)

    return float_blocks(node, step)


@kernel(activation.softmax, work=passes(8))
def softmax(node: Node) -> Kernel:
    return softmax_along(node)


@kernel(activation.softplus, work=passes(9))
def softplus(node: Node) -> Kernel:
    def step(x: Array, y: Array, positive: Array) -> None:
        """max(0, x) + ln(1 + exp(-|x|)), where nothing overflows or cancels."""
        np.abs(x, out=y)
        np.negative(y, out=y)
        np.exp(y, out=y)
        np.log1p(y, out=y)
        x.clip(ZERO, INFINITY, out=positive)
        np.add(y, positive, out=y)

    return float_blocks(node, step, np.float32)


@kernel(activation.softsign, work=passes(2))
def softsign(node: Node) -> Kernel:
    def step(x: Array, y: Array, magnitude: Array) -> None:
        x.clip(LOWEST, LARGEST, out=y)  # the limit of infinities, which would give NaN
        np.abs(y, out=magnitude)
        np.add(magnitude, ONE, out=magnitude)
        np.divide(y, magnitude, out=y)

    return float_blocks(node, step, np.float32)


@kernel(activation.tanh, work=passes(3))
def tanh(node: Node) -> Kernel:
    return float_ufunc(node, np.tanh)
