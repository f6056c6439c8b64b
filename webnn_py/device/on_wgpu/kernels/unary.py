"""Element-wise unary operators in WGSL."""

from webnn_py.device.on_wgpu.records.element import compute_type, literal
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.table import expression, layout
from webnn_py.graph import Node
from webnn_py.operators import unary


@expression(unary.abs_)
def abs_(node: Node, x: str) -> str:
    if compute_type(node.outputs[0].data_type) == "f32":
        return f"bitcast<f32>(bitcast<u32>({x}) & 0x7fffffffu)"
    return f"select({x}, -{x}, {x} < {literal(0, compute_type(node.outputs[0].data_type))})"


@expression(unary.ceil)
def ceil(_node: Node, x: str) -> str:
    return f"ceil({x})"


@expression(unary.cos)
def cos(_node: Node, x: str) -> str:
    return f"cos_f32({x})"


@expression(unary.erf)
def erf(node: Node, x: str) -> str:
    name = "erf_half" if node.outputs[0].data_type == "float16" else "erf_f32"
    return f"{name}({x})"


@expression(unary.exp)
def exp(_node: Node, x: str) -> str:
    return f"exp_f32({x})"


@expression(unary.floor)
def floor(_node: Node, x: str) -> str:
    return f"floor({x})"


@layout(unary.identity)
def identity(_node: Node, operand: Layout) -> Layout:
    return operand


@expression(unary.log)
def log(_node: Node, x: str) -> str:
    return f"log_f32({x})"


@expression(unary.neg)
def neg(node: Node, x: str) -> str:
    if compute_type(node.outputs[0].data_type) == "f32":
        return f"bitcast<f32>(bitcast<u32>({x}) ^ 0x80000000u)"
    return f"-{x}"


@expression(unary.reciprocal)
def reciprocal(_node: Node, x: str) -> str:
    return f"quotient(1.0, {x})"


@expression(unary.round_even)
def round_even(_node: Node, x: str) -> str:
    return f"round({x})"


@expression(unary.sin)
def sin(_node: Node, x: str) -> str:
    return f"sin_f32({x})"


@expression(unary.sign)
def sign(node: Node, x: str) -> str:
    kind = compute_type(node.outputs[0].data_type)
    zero, one = literal(0, kind), literal(1, kind)
    if kind == "f32":
        return f"select(f32(sign(order({x}))), 0.0, is_nan({x}))"
    return f"select(select({zero}, -{one}, {x} < {zero}), {one}, {x} > {zero})"


@expression(unary.sqrt)
def sqrt(_node: Node, x: str) -> str:
    return f"root({x})"


@expression(unary.tan)
def tan(_node: Node, x: str) -> str:
    return f"tan_f32({x})"
