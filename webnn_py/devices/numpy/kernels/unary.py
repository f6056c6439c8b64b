"""Elementwise unary operators on arrays."""

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import unary
from webnn_py.devices.numpy.routines import special
from webnn_py.devices.numpy.routines.blocks import float_blocks, float_blocks_with, float_ufunc, passes
from webnn_py.devices.numpy.table import Array, Kernel, View, kernel, kernels, scalar, view

ZERO = scalar(0, "float32")

kernels(lambda _node, function: function, {unary.abs_: np.abs, unary.neg: np.negative})
kernels(
    float_ufunc,
    {
        unary.ceil: np.ceil,
        unary.floor: np.floor,
        unary.reciprocal: np.reciprocal,
        unary.round_even: np.rint,
        unary.sqrt: np.sqrt,
    },
)
kernels(float_ufunc, {unary.exp: np.exp, unary.log: np.log}, work=passes(4))
kernels(float_ufunc, {unary.cos: np.cos, unary.sin: np.sin, unary.tan: np.tan}, work=passes(8))
kernels(float_blocks_with(*[np.float64] * 3), {unary.erf: special.erf}, work=passes(16))


@view(unary.identity)
def identity(_node: Node) -> View:
    return lambda x: x


@kernel(unary.sign)
def sign(node: Node) -> Kernel:
    if node.outputs[0].data_type in ("float32", "float16"):
        return float_blocks(node, float_sign, np.int8, np.int8)
    return np.sign


def float_sign(x: Array, y: Array, positive: Array, negative: Array) -> None:
    """Compute (x > 0) - (x < 0), which is 0 for NaN, unlike np.sign."""
    np.greater(x, ZERO, out=positive.view(np.bool_))
    np.less(x, ZERO, out=negative.view(np.bool_))
    np.subtract(positive, negative, out=positive)
    np.copyto(y, positive)
