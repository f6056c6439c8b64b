"""Conversion between data types in WGSL.

Quantization computes in float32, where the host computes 32-bit integers in float64: beyond 2²⁴ the results of
``dequantizeLinear`` are one rounding further from exact, and those of ``quantizeLinear`` are what the quotient in
float32 rounds to.
"""

from collections.abc import Sequence

from webnn_py.core.decompositions.conversion import blockwise_expand
from webnn_py.core.descriptors import FOUR_BITS
from webnn_py.core.graph import Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators import conversion
from webnn_py.core.operators.conversion import blockwise_shapes
from webnn_py.core.operators.limits import MAX_RANK
from webnn_py.devices.wgpu.codegen.expressions import converted_integer
from webnn_py.devices.wgpu.records.element import compute_type
from webnn_py.devices.wgpu.records.table import composite, expression

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
    if wanted == "f32" and source in ("int32", "uint32"):
        return f"float_{given}({x})"
    return converted_integer(x, given, wanted)


def in_blocks(node: Node, builder: RewriteBuilder) -> list[Value] | None:
    """Make an operator with a scale for blocks of more than one element into one whose scale is broadcast."""
    shape, scale = node.outputs[0].shape, node.operand("scale").shape
    if all(count in {1, size} for size, count in zip(shape, scale, strict=True)):
        return None
    operands = {name: builder.operand(value) for name, value in node.operands.items() if isinstance(value, Value)}
    blocks, ones = merged(*blockwise_shapes(shape, scale))
    if len(blocks) > MAX_RANK:  # one axis of blocks less; what remains is a composite again
        axis = next(axis for axis, count in enumerate(scale) if count not in {1, shape[axis]})
        wider = (*scale[:axis], shape[axis], *scale[axis + 1 :])
        for name in ("scale", "zero_point"):
            operands[name] = blockwise_expand(builder, operands[name], wider)
        return [builder.value(getattr(builder, node.operator.name)(**operands))]
    operands = {
        name: builder.reshape(operand, blocks if name == "input" else ones) for name, operand in operands.items()
    }
    output = getattr(builder, node.operator.name)(**operands)
    return [builder.value(builder.reshape(output, shape))]


def merged(blocks: Sequence[int], ones: Sequence[int]) -> tuple[list[int], list[int]]:
    """Two shapes, of which the second broadcasts to the first, with as few axes as will do."""
    axes: list[tuple[int, int]] = []
    for size, one in zip(blocks, ones, strict=True):
        if size == 1:
            continue
        if axes and (axes[-1][1] == 1) == (one == 1):
            axes[-1] = (axes[-1][0] * size, axes[-1][1] * one)
        else:
            axes.append((size, one))
    return [size for size, _ in axes], [one for _, one in axes]


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
    if node.operand("input").data_type in (*BYTES, *FOUR_BITS):
        return f"f32(i32({x}) - i32({zero_point})) * {scale}"
    # The distance of 32-bit integers needs 32 bits and a sign.
    distance = f"f32(select(u32({zero_point}) - u32({x}), u32({x}) - u32({zero_point}), {x} >= {zero_point}))"
    return f"select(-{distance}, {distance}, {x} >= {zero_point}) * {scale}"
