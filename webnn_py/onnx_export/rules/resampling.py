"""Resampling."""

from webnn_py.core.graph import Node
from webnn_py.core.operators import resampling
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.table import Written, rule


def _is_exact(old: int, new: int) -> bool:
    """Return whether coordinates are exact in float32: the factor, or its inverse, is a small power of two."""
    small, large = sorted((old, new))
    return large % small == 0 and large // small in (1, 2, 4, 8)


@rule(resampling.resample2d)
def resample2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Resize, where its places are exact; elsewhere elements are gathered from the right ones."""
    old, new = input.shape, node.outputs[0].shape
    is_linear = node.options["mode"] == "linear"
    if old == new:
        return body.node("Identity", input)
    is_exact = is_linear or all(_is_exact(*sizes) for sizes in zip(old, new, strict=True))
    is_supported = not is_linear or old[:2] == new[:2]
    if input.data_type != "float32" or not is_exact or not is_supported:
        return body.decomposed(node, {"input": input})
    how = {"mode": "linear"} if is_linear else {"mode": "nearest", "nearest_mode": "round_prefer_floor"}
    return body.twin("Resize", input, None, None, shape(*new), coordinate_transformation_mode="half_pixel", **how)
