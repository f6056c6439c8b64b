"""Element-wise binary operators in WGSL."""

import math
from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import arithmetic
from webnn_py.devices.wgpu.codegen.expressions import extreme
from webnn_py.devices.wgpu.records.element import compute_type, literal
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar, sign_of_zero
from webnn_py.devices.wgpu.records.table import expression

LEAST_DIVISOR: Final = 2.0**-40
"""Constants from this to one divided by this have an inverse that is a normal number, and so are most quotients."""


def kind_of(node: Node) -> str:
    """Return the WGSL type in which a node's output is computed."""
    return compute_type(node.outputs[0].data_type)


@expression(arithmetic.add)
def add(_node: Node, a: str, b: str) -> str:
    return " + ".join(sorted((a, b)))  # so that residuals on either side share a pipeline


@expression(arithmetic.sub)
def sub(_node: Node, a: str, b: str) -> str:
    return f"{a} - {b}"


@expression(arithmetic.mul)
def mul(node: Node, a: str, b: str) -> str:
    if kind_of(node) == "f32":
        for name, other in (("a", b), ("b", a)):
            sign = sign_of_zero(node.value(name))
            if sign is not None:
                return f"zero_times({sign}({other}))"
    return f"{a} * {b}"


@expression(arithmetic.div)
def div(node: Node, a: str, b: str) -> str:
    kind = kind_of(node)
    if kind != "f32":
        return f"quotient_{kind}({a}, {b})"
    number = constant_scalar(node.value("b"))
    if number is None or not LEAST_DIVISOR <= abs(number) <= 1 / LEAST_DIVISOR:
        return f"quotient({a}, {b})"
    inverse = literal(float(1 / np.float32(number)), "f32")
    if node.outputs[0].data_type == "float16" and is_halved_by_inverse(number):
        return f"{a} * {inverse}"
    return f"quotient_by({a}, {b}, {inverse})"


def is_halved_by_inverse(divisor: float) -> bool:
    """Return whether float16 numbers times a divisor's inverse in float32 round to the same float16 as the quotients.

    The product is off by less than 2⁻²³ of it. Quotients of 11 bits by 11 bits are farther than that from what lies
    half-way between two float16, or just there: with an inverse that is exact, or half-way between subnormal numbers,
    which are odd multiples of 2⁻²⁵. A float16, of which all are multiples of 2⁻²⁴, is that times an even number.
    """
    return divisor % 2 != 0 or abs(math.frexp(divisor)[0]) == 0.5


@expression(arithmetic.max_)
def max_(node: Node, a: str, b: str) -> str:
    return extreme("max", kind_of(node), a, b)


@expression(arithmetic.min_)
def min_(node: Node, a: str, b: str) -> str:
    return extreme("min", kind_of(node), a, b)


@expression(arithmetic.pow_)
def pow_(node: Node, a: str, b: str) -> str:
    number = constant_scalar(node.value("b"))
    if number in {1, 2, 3}:  # the only ones in many models
        return " * ".join([a] * int(number))
    kind = kind_of(node)
    return f"pow_f32({a}, {b})" if kind == "f32" else f"power_{kind}({a}, {b})"
