"""Conversion between data types: cast, and quantization (sections "cast" and "Quantization operations")."""

from collections.abc import Sequence

from webnn_py.core.descriptors import MLOperandDataTypeLike, MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import ANY, BYTES_TOO, FLOATS, QUANTIZED, LimitsRow, limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_shape, output, refuse

CAST: LimitsRow = {
    "input": limit(ANY, required=BYTES_TOO),
    "output": limit(ANY, required=BYTES_TOO, rank_of="input"),
}
QUANTIZE: LimitsRow = {
    "input": limit(FLOATS),
    "scale": limit(FLOATS, type_of="input", rank_of="input"),
    "zero_point": limit(QUANTIZED, required=("uint8", "int8"), rank_of="input"),
    "output": limit(QUANTIZED, required=("uint8", "int8"), type_of="zero_point", rank_of="input"),
}
DEQUANTIZE: LimitsRow = {
    "input": limit(QUANTIZED, required=("uint8", "int8")),
    "scale": limit(FLOATS, rank_of="input"),
    "zero_point": limit(QUANTIZED, required=("uint8", "int8", "int32"), type_of="input", rank_of="input"),
    "output": limit(FLOATS, type_of="scale", rank_of="input"),
}


@operator("cast", CAST, elementwise=True)
def cast(input: MLOperand, data_type: MLOperandDataTypeLike, *, label: str = "") -> MLOperandDescriptor:
    """Convert each element to another data type.

    A float takes the nearest representable value, beyond the range infinity. From float to integer, values truncate
    toward zero, those beyond the range saturate, and NaN becomes 0. From integer to integer, the low bits are kept.

    Args:
        input: the tensor to convert.
        data_type: the output's data type, or numpy's dtype of that name.

    Returns:
        The converted elements, of the shape of ``input``.
    """
    assert isinstance(data_type, str)  # noqa: S101 - for type checkers: it is converted by now
    return output(data_type, input.shape)


@operator("quantizeLinear", QUANTIZE, elementwise=True)
def quantize_linear(
    input: MLOperand, scale: MLOperand, zero_point: MLOperand, *, label: str = ""
) -> MLOperandDescriptor:
    """Quantize floats: input / scale, rounded half to even, plus ``zero_point``, saturating.

    NaN, as 0 / 0 is, becomes 0; a negative scale is taken as it is.

    Args:
        input: what to quantize.
        scale: the steps, of the input's data type and rank; each dimension divides the input's, and each element
            serves for a block of elements.
        zero_point: what 0 becomes, of the scale's shape; its data type is the output's.

    Returns:
        The quantized elements, of the shape of ``input`` and the data type of ``zero_point``.
    """
    _check_blocks(input, scale, zero_point)
    return output(zero_point.data_type, input.shape)


@operator("dequantizeLinear", DEQUANTIZE, elementwise=True, propagates_nan=("scale",))
def dequantize_linear(
    input: MLOperand, scale: MLOperand, zero_point: MLOperand, *, label: str = ""
) -> MLOperandDescriptor:
    """Turn quantized numbers back into floats: (input - zero_point) · scale.

    Args:
        input: what was quantized.
        scale: the steps, of the input's rank; each dimension divides the input's, and each element serves for a
            block of elements. Its data type is the output's.
        zero_point: what stands for 0, of the scale's shape and the input's data type.

    Returns:
        The floats, of the shape of ``input`` and the data type of ``scale``.
    """
    _check_blocks(input, scale, zero_point)
    return output(scale.data_type, input.shape)


def _check_blocks(input: MLOperand, scale: MLOperand, zero_point: MLOperand) -> None:
    """Refuse a scale that is not "blockwise broadcastable" to the input, and a zero point of another shape."""
    # spec: dequantizeLinear 8; quantizeLinear 8
    check_shape("zero_point", zero_point, scale.shape)
    # spec: dequantizeLinear 9-10; quantizeLinear 9-10; blockwise broadcasting 1-3; blockwise broadcastable 0
    if any(size % blocks for size, blocks in zip(input.shape, scale.shape, strict=True)):
        refuse("the shape of scale", scale.shape, f"such that its dimensions divide those of {list(input.shape)}")


def blockwise_shapes(input: Sequence[int], scale: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes in which blockwise broadcasting is ordinary broadcasting: each axis as blocks and their sizes."""
    blocks = [dimension for size, count in zip(input, scale, strict=True) for dimension in (count, size // count)]
    ones = [dimension for count in scale for dimension in (count, 1)]
    return tuple(blocks), tuple(ones)
