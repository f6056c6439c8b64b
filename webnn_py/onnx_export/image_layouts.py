"""Images in the layout that ONNX has for them, and padding in its order."""

from collections.abc import Sequence

from webnn_py.core.operators.windows import InputLayout, image_axes
from webnn_py.onnx_export.body import Body, OnnxTensor


def reordered(body: Body, x: OnnxTensor, permutation: Sequence[int]) -> OnnxTensor:
    """Return the axes in another order."""
    return x if tuple(permutation) == (0, 1, 2, 3) else body.node("Transpose", x, perm=list(permutation))


def channels_first(body: Body, x: OnnxTensor, layout: InputLayout) -> OnnxTensor:
    """Return images of a layout as [batch, channels, height, width]."""
    return x if layout == "nchw" else reordered(body, x, image_axes(layout))


def laid_out(body: Body, x: OnnxTensor, layout: InputLayout) -> OnnxTensor:
    """Return images with their channels first in a layout."""
    return x if layout == "nchw" else reordered(body, x, [0, 2, 3, 1])


def onnx_pads(padding: Sequence[int] | None) -> list[int]:
    """Return padding in ONNX's order: the beginnings of all axes, then the endings."""
    top, bottom, left, right = padding or (0, 0, 0, 0)
    return [top, left, bottom, right]
