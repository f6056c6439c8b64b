"""Conversion between data types in WGSL.

Quantization computes in float32, where the host computes 32-bit integers in float64: beyond 2²⁴ the results of
``dequantizeLinear`` are one rounding further from exact, and those of ``quantizeLinear`` are what the quotient in
float32 rounds to.
"""

from webnn_py.device.on_wgpu.redrawing import Redrawing
from webnn_py.device.on_wgpu.table import composite, expression
from webnn_py.device.on_wgpu.wgsl import compute_type
from webnn_py.graph import Node, Value
from webnn_py.operators import conversion
from webnn_py.operators.conversion import blockwise_shapes
from webnn_py.operators.operand import MLOperand

BYTES = {"int8": (-128, 127), "uint8": (0, 255)}


@expression(conversion.cast)
def cast(node: Node, x: str) -> str:
    source, target = node.operand("input").data_type, node.outputs[0].data_type
    given, wanted = compute_type(source), compute_type(target)
    if given == wanted and (given != "f32" or source == target or target == "float16"):
        return x  # narrowed where it is stored
    if given == "f32" and target in BYTES:
        lowest, highest = BYTES[target]
        return f"{wanted}(clamp(saturated_i32({x}), {lowest}i, {highest}i))"
    if given == "f32":
        return x if wanted == "f32" else f"saturated_{wanted}({x})"
    if (given, wanted) in {("i32", "u64"), ("u32", "i64")}:  # first to the same signedness, which says how to extend
        return f"{wanted}({given[0]}64({x}))"
    return f"{wanted}({x})"


def in_blocks(node: Node, redrawing: Redrawing) -> list[Value] | None:
    """Draw an operator with a scale for blocks of more than one element as one whose scale is broadcast."""
    shape, scale = node.outputs[0].shape, node.operand("scale").shape
    if all(count in {1, size} for size, count in zip(shape, scale, strict=True)):
        return None
    blocks, ones = blockwise_shapes(shape, scale)

    def reshaped(name: str, shape: tuple[int, ...]) -> MLOperand:
        value = node.operands[name]
        assert isinstance(value, Value)  # noqa: S101 - for type checkers
        operand: MLOperand = redrawing.reshape(redrawing.operand(value), shape)
        return operand

    draw = getattr(redrawing, node.operator.name)
    output = draw(reshaped("input", blocks), reshaped("scale", ones), reshaped("zero_point", ones))
    return [redrawing.value(redrawing.reshape(output, shape))]


composite(conversion.quantize_linear)(in_blocks)
composite(conversion.dequantize_linear)(in_blocks)


@expression(conversion.quantize_linear)
def quantize_linear(node: Node, x: str, scale: str, zero_point: str) -> str:
    data_type = node.outputs[0].data_type
    kind = compute_type(data_type)
    steps = f"round(quotient({x}, {scale}))"
    if data_type not in BYTES:
        return f"quantized_{kind}({steps}, {zero_point})"
    lowest, highest = BYTES[data_type]
    return f"{kind}(quantized_8({steps}, i32({zero_point}), {lowest}i, {highest}i))"


@expression(conversion.dequantize_linear)
def dequantize_linear(node: Node, x: str, scale: str, zero_point: str) -> str:
    if node.operand("input").data_type in BYTES:
        return f"f32(i32({x}) - i32({zero_point})) * {scale}"
    # The distance of 32-bit integers needs 32 bits and a sign.
    distance = f"f32(select(u32({zero_point}) - u32({x}), u32({x}) - u32({zero_point}), {x} >= {zero_point}))"
    return f"select(-{distance}, {distance}, {x} >= {zero_point}) * {scale}"
