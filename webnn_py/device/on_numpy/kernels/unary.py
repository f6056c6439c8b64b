"""Elementwise unary operators on arrays."""

import numpy as np

from webnn_py.device.on_numpy.routines import special
from webnn_py.device.on_numpy.routines.blocks import float_blocks, float_ufunc, passes
from webnn_py.device.on_numpy.table import Array, Kernel, View, kernel, scalar, view
from webnn_py.graph import Node
from webnn_py.operators import unary

ZERO = scalar(0, "float32")


@kernel(unary.abs_)
def abs_(_node: Node) -> Kernel:
    return np.abs


@kernel(unary.ceil)
def ceil(node: Node) -> Kernel:
    return float_ufunc(node, np.ceil)


@kernel(unary.cos, work=passes(8))
def cos(node: Node) -> Kernel:
    return float_ufunc(node, np.cos)


@kernel(unary.erf, work=passes(16))
def erf(node: Node) -> Kernel:
    return float_blocks(node, special.erf, *[np.float64] * 3)


@kernel(unary.exp, work=passes(4))
def exp(node: Node) -> Kernel:
    return float_ufunc(node, np.exp)


@kernel(unary.floor)
def floor(node: Node) -> Kernel:
    return float_ufunc(node, np.floor)


@view(unary.identity)
def identity(_node: Node) -> View:
    return lambda x: x


@kernel(unary.log, work=passes(4))
def log(node: Node) -> Kernel:
    return float_ufunc(node, np.log)


@kernel(unary.neg)
def neg(_node: Node) -> Kernel:
    return np.negative


@kernel(unary.reciprocal)
def reciprocal(node: Node) -> Kernel:
    return float_ufunc(node, np.reciprocal)


@kernel(unary.round_even)
def round_even(node: Node) -> Kernel:
    return float_ufunc(node, np.rint)


@kernel(unary.sin, work=passes(8))
def sin(node: Node) -> Kernel:
    return float_ufunc(node, np.sin)


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


@kernel(unary.sqrt)
def sqrt(node: Node) -> Kernel:
    return float_ufunc(node, np.sqrt)


@kernel(unary.tan, work=passes(8))
def tan(node: Node) -> Kernel:
    return float_ufunc(node, np.tan)
