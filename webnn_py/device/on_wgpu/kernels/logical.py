"""Element-wise logical operators in WGSL. Truth is uint8, computed as u32."""

from webnn_py.device.on_wgpu.records.element import compute_type
from webnn_py.device.on_wgpu.records.table import expression
from webnn_py.graph import Node
from webnn_py.operators import logical


def compares_floats(node: Node) -> bool:
    """Whether a comparison is one of floats, where NaN and subnormal numbers need care."""
    return compute_type(node.operand("a").data_type) == "f32"


def truth(condition: str) -> str:
    """A condition as a number."""
    return f"select(0u, 1u, {condition})"


@expression(logical.equal)
def equal(node: Node, a: str, b: str) -> str:
    return truth(f"is_equal({a}, {b})" if compares_floats(node) else f"{a} == {b}")


@expression(logical.not_equal)
def not_equal(node: Node, a: str, b: str) -> str:
    return truth(f"!is_equal({a}, {b})" if compares_floats(node) else f"{a} != {b}")


@expression(logical.greater)
def greater(node: Node, a: str, b: str) -> str:
    return truth(f"is_less({b}, {a})" if compares_floats(node) else f"{a} > {b}")


@expression(logical.greater_or_equal)
def greater_or_equal(node: Node, a: str, b: str) -> str:
    return truth(f"is_less({b}, {a}) || is_equal({a}, {b})" if compares_floats(node) else f"{a} >= {b}")


@expression(logical.lesser)
def lesser(node: Node, a: str, b: str) -> str:
    return truth(f"is_less({a}, {b})" if compares_floats(node) else f"{a} < {b}")


@expression(logical.lesser_or_equal)
def lesser_or_equal(node: Node, a: str, b: str) -> str:
    return truth(f"is_less({a}, {b}) || is_equal({a}, {b})" if compares_floats(node) else f"{a} <= {b}")


@expression(logical.logical_not)
def logical_not(_node: Node, a: str) -> str:
    return truth(f"{a} == 0u")


@expression(logical.logical_and)
def logical_and(_node: Node, a: str, b: str) -> str:
    return truth(f"{a} != 0u && {b} != 0u")


@expression(logical.logical_or)
def logical_or(_node: Node, a: str, b: str) -> str:
    return truth(f"({a} | {b}) != 0u")


@expression(logical.logical_xor)
def logical_xor(_node: Node, a: str, b: str) -> str:
    return truth(f"({a} != 0u) != ({b} != 0u)")


@expression(logical.is_nan)
def is_nan(_node: Node, a: str) -> str:
    return truth(f"is_nan({a})")


@expression(logical.is_infinite)
def is_infinite(_node: Node, a: str) -> str:
    return truth(f"is_infinite({a})")


@expression(logical.where)
def where(_node: Node, condition: str, true_value: str, false_value: str) -> str:
    return f"select({false_value}, {true_value}, {condition} != 0u)"
