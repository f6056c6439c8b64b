"""Convolutions, in ONNX's one layout; float16 is computed in float32."""

from collections.abc import Sequence
from functools import cache

from webnn_py.core.graph import Node
from webnn_py.core.operators import convolution
from webnn_py.core.operators.windows import image_shape, slides
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.image_layouts import channels_first, laid_out, onnx_pads, reordered
from webnn_py.onnx_export.missing_data_types import FLOAT, widened
from webnn_py.onnx_export.table import Written, rule


@cache
def _axes(layout: str, wanted: str) -> tuple[int, ...]:
    """Return the places of the wanted axes in a layout of filters."""
    return tuple(layout.index(axis) for axis in wanted)


def _steps(node: Node) -> dict[str, Sequence[int]]:
    options = node.options
    return {
        "pads": onnx_pads(options["padding"]),
        "strides": options["strides"] or (1, 1),
        "dilations": options["dilations"] or (1, 1),
    }


@rule(convolution.conv2d)
def conv2d(body: Body, node: Node, input: OnnxTensor, filter: OnnxTensor, bias: OnnxTensor | None = None) -> OnnxTensor:
    """Conv."""
    options = node.options
    layout, filter_layout, sizes = options["input_layout"], options["filter_layout"], filter.shape
    images = channels_first(body, input, layout)
    filters = reordered(body, filter, _axes(filter_layout, "oihw"))
    biases = [] if bias is None else [bias]
    window = [sizes[axis] for axis in _axes(filter_layout, "hw")]
    how = {"group": options["groups"], "kernel_shape": window, **_steps(node)}
    output = widened(body, "Conv", images, filters, *biases, native=FLOAT, **how)
    return laid_out(body, output, layout)


@rule(convolution.conv_transpose2d)
def conv_transpose2d(
    body: Body, node: Node, input: OnnxTensor, filter: OnnxTensor, bias: OnnxTensor | None = None
) -> Written:
    """Write ConvTranspose; an output larger than the other options give has padding at its end."""
    options = node.options
    filters = reordered(body, filter, _axes(options["filter_layout"], "iohw"))
    _, _, *sizes = image_shape(input.shape, options["input_layout"])
    _, _, *new_sizes = image_shape(node.outputs[0].shape, options["input_layout"])
    window = [filter.shape[axis] for axis in _axes(options["filter_layout"], "hw")]
    along = slides(sizes, window, options["padding"], options["strides"], options["dilations"])
    appended = [size - slide.transposed_size for slide, size in zip(along, new_sizes, strict=True)]
    images = channels_first(body, input, options["input_layout"])
    biases = [] if bias is None else [bias]
    how = {"group": options["groups"], "kernel_shape": window, "output_padding": appended, **_steps(node)}
    output = widened(body, "ConvTranspose", images, filters, *biases, native=FLOAT, **how)
    return laid_out(body, output, options["input_layout"])
