"""Element-wise logical operators in WGSL. Truth is uint8, computed as u32."""

from typing import Any

from webnn_py.core.graph import Node
from webnn_py.core.operators import logical
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.wgpu.records.element import compute_type
from webnn_py.devices.wgpu.records.table import expression, expressions

TRUTH = "select(0u, 1u, {})"
"""A condition as a number."""


def comparison(operator: Operator[..., Any], sign: str, of_floats: str) -> None:
    """Register a comparison: its sign, and its condition for floats, where NaN and subnormal numbers need care."""

    @expression(operator)
    def compare(node: Node, a: str, b: str) -> str:
        is_of_floats = compute_type(node.operand("a").data_type) == "f32"
        return TRUTH.format(of_floats.format(a, b) if is_of_floats else f"{a} {sign} {b}")


comparison(logical.equal, "==", "is_equal({0}, {1})")
comparison(logical.not_equal, "!=", "!is_equal({0}, {1})")
comparison(logical.greater, ">", "is_less({1}, {0})")
comparison(logical.greater_or_equal, ">=", "is_less({1}, {0}) || is_equal({0}, {1})")
comparison(logical.lesser, "<", "is_less({0}, {1})")
comparison(logical.lesser_or_equal, "<=", "is_less({0}, {1}) || is_equal({0}, {1})")

expressions(
    {
        logical.logical_not: TRUTH.format("{0} == 0u"),
        logical.logical_and: TRUTH.format("{0} != 0u && {1} != 0u"),
        logical.logical_or: TRUTH.format("({0} | {1}) != 0u"),
        logical.logical_xor: TRUTH.format("({0} != 0u) != ({1} != 0u)"),
        logical.is_nan: TRUTH.format("is_nan({0})"),
        logical.is_infinite: TRUTH.format("is_infinite({0})"),
        logical.where: "select({2}, {1}, {0} != 0u)",
    }
)
