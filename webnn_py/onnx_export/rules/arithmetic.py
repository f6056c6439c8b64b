"""Element-wise binary operators. Integers wrap around, and division by zero gives 0."""

from functools import partial
from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import arithmetic
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import COMPUTED, FLOAT, WIDER, computed, extreme, ordered, widened
from webnn_py.onnx_export.table import rule, rules

ONE: Final = np.array(1, np.int64)


def _extreme(body: Body, node: Node, operator: str, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    return extreme(body, operator, a, b)


rules(partial(computed, native=COMPUTED), {arithmetic.add: "Add", arithmetic.sub: "Sub", arithmetic.mul: "Mul"})
rules(_extreme, {arithmetic.max_: "Max", arithmetic.min_: "Min"})


@rule(arithmetic.div)
def div(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Div; where an integer's divisor is 0, or -1, which the lowest integer cannot be divided by, it does not run."""
    if a.data_type in ("float32", "float16"):
        return widened(body, "Div", a, b, native=FLOAT)
    if a.data_type == "uint64":
        return _unsigned_quotient(body, a, b)
    divisors = body.known(b)
    if a.data_type in COMPUTED and divisors is not None and not np.isin(divisors, [0, -1]).any():
        return body.twin("Div", a, b)
    data_type = a.data_type
    a, b = (body.cast(item, WIDER.get(data_type, data_type)) for item in (a, b))
    zero, one, minus_one = (np.array(value, a.data_type) for value in (0, 1, -1))
    is_zero = body.node("Equal", b, zero, data_type=BOOL)
    is_minus_one = body.node("Equal", b, minus_one, data_type=BOOL)
    special = body.node("Or", is_zero, is_minus_one)
    quotient = body.node("Div", a, body.node("Where", special, one, b, data_type=b.data_type))
    negated = body.node("Sub", zero, a, data_type=a.data_type)
    quotient = body.node("Where", is_minus_one, negated, quotient, data_type=a.data_type)
    return body.cast(body.node("Where", is_zero, zero, quotient, data_type=a.data_type), data_type)


def _unsigned_quotient(body: Body, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Divide uint64 in int64: half of a divided by b, twice, and one more where the rest allows it.

    A divisor of 2⁶³ or more, which is negative there, goes into a once or not at all.
    """
    half = body.cast(body.node("BitShift", a, np.array(1, np.uint64), direction="RIGHT"), "int64")
    high_a, high_b = ordered(body, a), ordered(body, b)
    a, b = body.cast(a, "int64"), body.cast(b, "int64")
    zero = np.array(0, np.int64)
    usual = body.node("Greater", b, zero, data_type=BOOL)
    divisor = body.node("Where", usual, b, ONE, data_type="int64")
    quotient = body.node("Div", half, divisor)
    quotient = body.node("Add", quotient, quotient)
    rest = body.node("Sub", a, body.node("Mul", quotient, divisor))
    lowest = np.array(-(2**63), np.int64)
    is_more = body.node(
        "GreaterOrEqual", body.node("Add", rest, lowest), body.node("Add", divisor, lowest), data_type=BOOL
    )
    quotient = body.node("Add", quotient, body.cast(is_more, "int64"))
    once = body.cast(body.node("GreaterOrEqual", high_a, high_b, data_type=BOOL), "int64")
    quotient = body.node("Where", usual, quotient, once, data_type="int64")
    is_zero = body.node("Equal", b, zero, data_type=BOOL)
    return body.cast(body.node("Where", is_zero, zero, quotient, data_type="int64"), "uint64")


@rule(arithmetic.pow_)
def pow_(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Pow of floats; powers of integers are products, as ONNX's pass through floats."""
    if a.data_type in ("float32", "float16"):
        return widened(body, "Pow", a, b, native=FLOAT)
    exponents = body.known(b)
    highest = INTEGER_RANGES[node.outputs[0].data_type][1] if exponents is None else int(exponents.max(initial=0))
    data_type = a.data_type
    base, bits = body.cast(a, "int64"), body.cast(b, "int64")
    result = body.node("Expand", ONE, np.array(node.outputs[0].shape, np.int64))
    for bit in range(max(highest, 0).bit_length()):
        mask = np.array(1 << bit, np.uint64).view(np.int64)
        is_set = body.cast(body.node("BitwiseAnd", bits, mask), BOOL)
        result = body.node("Where", is_set, body.node("Mul", result, base), result, data_type="int64")
        base = body.node("Mul", base, base)
    if data_type.startswith("int") and (exponents is None or exponents.min(initial=0) < 0):
        result = _or_inverse(body, body.cast(a, "int64"), bits, result)
    return body.cast(result, data_type)


def _or_inverse(body: Body, a: OnnxTensor, b: OnnxTensor, power: OnnxTensor) -> OnnxTensor:
    """Return the power for negative exponents: 1 or -1 for those bases, otherwise 0."""
    zero, minus_one = np.array(0, np.int64), np.array(-1, np.int64)
    is_odd = body.cast(body.node("BitwiseAnd", b, ONE), BOOL)
    sign = body.node("Where", is_odd, minus_one, ONE, data_type="int64")
    is_minus_one = body.node("Equal", a, minus_one, data_type=BOOL)
    is_one = body.cast(body.node("Equal", a, ONE, data_type=BOOL), "int64")
    inverse = body.node("Where", is_minus_one, sign, is_one, data_type="int64")
    return body.node("Where", body.node("Less", b, zero, data_type=BOOL), inverse, power, data_type="int64")
