"""Element-wise unary operators in WGSL."""

from webnn_py.core.graph import Node
from webnn_py.core.operators import unary
from webnn_py.devices.wgpu.records.element import compute_type, literal
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.table import expression, expressions, layout

expressions(
    {
        unary.ceil: "ceil({0})",
        unary.cos: "cos_f32({0})",
        unary.exp: "exp_f32({0})",
        unary.floor: "floor({0})",
        unary.log: "log_f32({0})",
        unary.reciprocal: "quotient(1.0, {0})",
        unary.round_even: "round({0})",
        unary.sin: "sin_f32({0})",
        unary.sqrt: "root({0})",
        unary.tan: "tan_f32({0})",
    }
)


@expression(unary.abs_)
def abs_(node: Node, x: str) -> str:
    if compute_type(node.outputs[0].data_type) == "f32":
        return f"bitcast<f32>(bitcast<u32>({x}) & 0x7fffffffu)"
    return f"select({x}, -{x}, {x} < {literal(0, compute_type(node.outputs[0].data_type))})"


@expression(unary.erf)
def erf(node: Node, x: str) -> str:
    name = "erf_half" if node.outputs[0].data_type == "float16" else "erf_f32"
    return f"{name}({x})"


@layout(unary.identity)
def identity(_node: Node, operand: Layout) -> Layout:
    return operand


@expression(unary.neg)
def neg(node: Node, x: str) -> str:
    if compute_type(node.outputs[0].data_type) == "f32":
        return f"bitcast<f32>(bitcast<u32>({x}) ^ 0x80000000u)"
    return f"-{x}"


@expression(unary.sign)
def sign(node: Node, x: str) -> str:
    kind = compute_type(node.outputs[0].data_type)
    zero, one = literal(0, kind), literal(1, kind)
    if kind == "f32":
        return f"select(f32(sign(order({x}))), 0.0, is_nan({x}))"
    return f"select(select({zero}, -{one}, {x} < {zero}), {one}, {x} > {zero})"
