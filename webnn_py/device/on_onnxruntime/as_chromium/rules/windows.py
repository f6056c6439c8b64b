"""Convolutions, pooling and resampling, of images whose channels are moved before height and width."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, Drawn, int64s, rule, shape_of
from webnn_py.graph import Node
from webnn_py.onnx_export.image_layouts import onnx_pads
from webnn_py.operators.windows import slides

_POOLS: Final = {"average_pool2d": "AveragePool", "l2_pool2d": "LpPool", "max_pool2d": "MaxPool"}


def channels_first(drawing: ChromiumDrawing, images: str, layout: str) -> str:
    """Return images as [batch, channels, height, width]."""
    return drawing.transpose(images, [layout.index(axis) for axis in "nchw"])


def laid_out(drawing: ChromiumDrawing, images: str, layout: str) -> str:
    """Return images with their channels first in a layout."""
    return drawing.transpose(images, ["nchw".index(axis) for axis in layout])


def _sizes(shape: Sequence[int], layout: str) -> list[int]:
    """Return height and width."""
    return [shape[layout.index(axis)] for axis in "hw"]


def _steps(node: Node, name: str) -> list[int]:
    return list(node.options[name] or (1, 1))


@rule("conv2d", "conv_transpose2d")
def _convolution(drawing: ChromiumDrawing, node: Node, input: str, filter: str, bias: str | None = None) -> Drawn:
    options = node.options
    is_transposed = node.operator.name == "conv_transpose2d"
    layout, filter_layout = options["input_layout"], options["filter_layout"]
    images = channels_first(drawing, input, layout)
    order = "iohw" if is_transposed else "oihw"
    filters = drawing.transpose(filter, [filter_layout.index(axis) for axis in order])
    how: dict[str, Any] = {
        "dilations": _steps(node, "dilations"),
        "group": options["groups"],
        "pads": onnx_pads(options["padding"]),
        "strides": _steps(node, "strides"),
    }
    if is_transposed:
        windows = slides(
            _sizes(shape_of(node, "input"), layout),
            _sizes(shape_of(node, "filter"), filter_layout),
            options["padding"],
            options["strides"],
            options["dilations"],
        )
        made = _sizes(node.outputs[0].shape, layout)
        how["output_padding"] = [size - slide.transposed_size for size, slide in zip(made, windows, strict=True)]
    given = [images, filters] if bias is None else [images, filters, bias]
    return laid_out(drawing, drawing.node("ConvTranspose" if is_transposed else "Conv", *given, **how), layout)


@rule(*_POOLS)
def _pool(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    options, layout = node.options, node.options["layout"]
    sizes = _sizes(shape_of(node, "input"), layout)
    window = list(options["window_dimensions"] or sizes)
    height, _ = slides(sizes, window, options["padding"], options["strides"], options["dilations"])
    how: dict[str, Any] = {
        "dilations": _steps(node, "dilations"),
        "strides": _steps(node, "strides"),
        "kernel_shape": window,
        "pads": onnx_pads(options["padding"]),
        "ceil_mode": int(height.output_size < _sizes(node.outputs[0].shape, layout)[0]),
    }
    if node.operator.name == "l2_pool2d":
        how["p"] = 2
    output = drawing.node(_POOLS[node.operator.name], channels_first(drawing, input, layout), **how)
    return laid_out(drawing, output, layout)


@rule("resample2d")
def _resample(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    options, shape = node.options, node.outputs[0].shape
    axes = list(options["axes"] or (2, 3))
    order = [0, 1, 2, 3]
    if drawing.resamples_last_axes_only:
        for place, axis in zip((2, 3), sorted(axes), strict=True):
            there = order.index(axis)
            order[place], order[there] = order[there], order[place]
    mode = "linear" if options["mode"] == "linear" else "nearest"
    images = drawing.transpose(input, order)
    if options["sizes"] is None:
        scales = dict(zip(axes, options["scales"] or (1.0, 1.0), strict=True))
        factors = np.array([scales.get(axis, 1.0) for axis in order], np.float32)
        output = drawing.node("Resize", images, None, factors, None, mode=mode)
    else:
        output = drawing.node("Resize", images, None, None, int64s([shape[axis] for axis in order]), mode=mode)
    return drawing.transpose(output, [order.index(axis) for axis in range(4)])
