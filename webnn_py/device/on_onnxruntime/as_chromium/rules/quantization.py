"""quantizeLinear and dequantizeLinear."""

from typing import Any

from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, Drawn, int64s, rule, shape_of
from webnn_py.graph import Node


@rule("quantize_linear", "dequantize_linear")
def _linear(drawing: ChromiumDrawing, node: Node, input: str, scale: str, zero_point: str) -> Drawn:
    """Draw with one scale, one for each element of an axis, or one for each block; blocks of more axes are resized."""
    shape, scales = shape_of(node, "input"), shape_of(node, "scale")
    wide = [axis for axis, size in enumerate(scales) if size != 1]
    same = [axis for axis in wide if scales[axis] == shape[axis]]
    how: dict[str, Any] = {}
    if not wide:
        if scales:
            scale, zero_point = drawing.reshape(scale, []), drawing.reshape(zero_point, [])
    elif same and len(wide) == 1:
        how = {"axis": same[0]}
        if len(scales) != 1:
            scale, zero_point = (drawing.reshape(tensor, [shape[same[0]]]) for tensor in (scale, zero_point))
    else:
        blocked = [axis for axis, size in enumerate(scales) if size != shape[axis]]
        how = {"axis": 0, "block_size": 1}
        if len(blocked) == 1:
            how = {"axis": blocked[0], "block_size": shape[blocked[0]] // scales[blocked[0]]}
        elif blocked:
            scale, zero_point = (
                drawing.node("Resize", tensor, None, None, int64s(shape), mode="nearest")
                for tensor in (scale, zero_point)
            )
    operator = "QuantizeLinear" if node.operator.name == "quantize_linear" else "DequantizeLinear"
    return drawing.node(operator, input, scale, zero_point, **how)
