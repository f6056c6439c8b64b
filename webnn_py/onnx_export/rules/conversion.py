"""Conversion between data types, and quantization."""

from collections.abc import Sequence

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import conversion
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.limits import FLOATS
from webnn_py.onnx_export.body import BOOL, Array, Body, OnnxTensor, element_type
from webnn_py.onnx_export.table import Written, rule, rules


@rule(conversion.cast)
def cast(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Cast, of which ONNX leaves open what becomes of floats beyond the range of an integer."""
    target = node.outputs[0].data_type
    if input.data_type == target:
        return body.twin("Identity", input)
    if input.data_type not in FLOATS or target in FLOATS:
        return body.twin("Cast", input, data_type=target, to=element_type(target))
    x = body.cast(input, "float32")
    number = body.node("Where", body.node("IsNaN", x, data_type=BOOL), np.array(0, np.float32), x, data_type="float32")
    lowest, highest = INTEGER_RANGES[target]
    if not target.endswith("64"):
        exact = body.cast(number, "float32" if target.endswith("8") else "float64")
        bounds = [np.array(bound, exact.data_type) for bound in (lowest, highest)]
        return body.cast(body.node("Clip", exact, *bounds), target)
    end = np.array(highest + 1, np.float32)
    bounds = [np.array(lowest, np.float32), np.array(np.nextafter(end, np.float32(0)))]
    whole = body.cast(body.node("Clip", number, *bounds), target)
    return _where_beyond(body, number, end, np.array(highest, target), whole)


def _where_beyond(body: Body, number: OnnxTensor, end: Array, highest: Array, whole: OnnxTensor) -> OnnxTensor:
    """Return the integers, and the highest one where the float is too high."""
    is_beyond = body.node("GreaterOrEqual", number, end, data_type=BOOL)
    signed = body.cast(whole, "int64")
    chosen = body.node("Where", is_beyond, highest.view(np.int64), signed, data_type="int64")
    return body.cast(chosen, whole.data_type)


def _quantization(
    body: Body, node: Node, operator: str, x: OnnxTensor, scale: OnnxTensor, zero_point: OnnxTensor
) -> Written:
    """Write a conversion to or from bytes with the scale and the zero point in the shape that ONNX wants.

    The scale is one number, one for each place along an axis, or in blocks of one. Others are decomposed: onnxruntime
    has no zero points of 32 bits.
    """
    operands, steps = {"input": x, "scale": scale, "zero_point": zero_point}, [scale, zero_point]
    axis, block_size, wanted = _granularity(x.shape, steps[0].shape)
    is_of_bytes = zero_point.data_type.endswith("8")
    if not is_of_bytes or wanted is None or any(item.data_type == "float16" for item in operands.values()):
        return body.decomposed(node, operands)
    values = [body.known(item) for item in steps]
    data_type = node.outputs[0].data_type
    attributes = {"axis": axis, "block_size": block_size or None}
    if block_size and not all(value is not None for value in values):
        return body.decomposed(node, operands)  # blocks in a function would ask for a newer opset
    if all(value is not None for value in values):
        arrays = [value.reshape(wanted) for value in values if value is not None]
        return body.twin(operator, x, *arrays, data_type=data_type, **attributes)
    reshaped = [body.node("Reshape", item, np.array(wanted, np.int64)) for item in steps]
    return body.node(operator, x, *reshaped, data_type=data_type, **attributes)


rules(
    _quantization,
    {conversion.dequantize_linear: "DequantizeLinear", conversion.quantize_linear: "QuantizeLinear"},
)


def _granularity(shape: Sequence[int], scale: Sequence[int]) -> tuple[int | None, int, tuple[int, ...] | None]:
    """Axis and block size as ONNX says them, and the shape of the scale there; None for it where it cannot."""
    cut = [axis for axis, (size, count) in enumerate(zip(shape, scale, strict=True)) if size != count]
    if all(count == 1 for count in scale):
        return None, 0, ()
    several = [axis for axis, count in enumerate(scale) if count > 1]
    if len(several) == 1 and scale[several[0]] == shape[several[0]]:
        return several[0], 0, (scale[several[0]],)
    if len(cut) == 1:
        return cut[0], shape[cut[0]] // scale[cut[0]], tuple(scale)
    return None, 0, None
