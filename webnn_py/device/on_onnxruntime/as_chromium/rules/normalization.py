"""Normalizations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, Drawn, Given, int64s, rule, shape_of
from webnn_py.device.on_onnxruntime.as_chromium.rules.windows import channels_first, laid_out
from webnn_py.graph import Node
from webnn_py.operators.normalization import layer_axes


def _full(node: Node, shape: Sequence[int], value: float) -> Any:
    return np.full(tuple(shape), value, node.outputs[0].data_type)


@rule("batch_normalization")
def _batch(
    drawing: ChromiumDrawing,
    node: Node,
    input: str,
    mean: str,
    variance: str,
    scale: str | None = None,
    bias: str | None = None,
) -> Drawn:
    shape, axis = shape_of(node, "input"), node.options["axis"]
    order = list(range(len(shape)))
    if len(shape) == 1:
        images, channels = drawing.reshape(input, [1, *shape]), shape[0]
    else:
        order[1], order[axis] = order[axis], order[1]
        images, channels = drawing.transpose(input, order), shape[axis]
    factors: Given = _full(node, [channels], 1) if scale is None else scale
    offsets: Given = _full(node, [channels], 0) if bias is None else bias
    output = drawing.node(
        "BatchNormalization", images, factors, offsets, mean, variance, epsilon=float(node.options["epsilon"])
    )
    return drawing.reshape(output, shape) if len(shape) == 1 else drawing.transpose(output, order)


@rule("instance_normalization")
def _instance(
    drawing: ChromiumDrawing, node: Node, input: str, scale: str | None = None, bias: str | None = None
) -> Drawn:
    layout = node.options["layout"]
    channels = shape_of(node, "input")[layout.index("c")]
    factors: Given = _full(node, [channels], 1) if scale is None else scale
    offsets: Given = _full(node, [channels], 0) if bias is None else bias
    images = channels_first(drawing, input, layout)
    output = drawing.node("InstanceNormalization", images, factors, offsets, epsilon=float(node.options["epsilon"]))
    return laid_out(drawing, output, layout)


@rule("layer_normalization")
def _layer(
    drawing: ChromiumDrawing, node: Node, input: str, scale: str | None = None, bias: str | None = None
) -> Drawn:
    shape = shape_of(node, "input")
    axes = layer_axes(node.options["axes"], len(shape))
    if not axes:
        if bias is None:
            return drawing.node("Sub", input, input)
        return drawing.node("Add", bias, _full(node, shape, 0))
    order = sorted(range(len(axes)), key=lambda index: axes[index])
    axes = tuple(sorted(axes))
    scale, bias = (None if given is None else drawing.transpose(given, order) for given in (scale, bias))
    if axes != tuple(range(len(shape) - len(axes), len(shape))):
        return _spelled_out(drawing, node, input, axes, scale, bias)
    factors: Given = _full(node, [shape[axis] for axis in axes], 1) if scale is None else scale
    given = [input, factors] if bias is None else [input, factors, bias]
    return drawing.node("LayerNormalization", *given, axis=axes[0], epsilon=float(node.options["epsilon"]))


def _spelled_out(
    drawing: ChromiumDrawing, node: Node, input: str, axes: Sequence[int], scale: str | None, bias: str | None
) -> Drawn:
    """Draw the normalization of axes other than the last ones."""
    shape = shape_of(node, "input")
    wide = [size if axis in axes else 1 for axis, size in enumerate(shape)]

    def mean(tensor: str) -> str:
        return drawing.node("ReduceMean", tensor, int64s(axes), keepdims=1, noop_with_empty_axes=1)

    def in_place(given: str) -> str:
        return given if len(axes) == len(shape) else drawing.reshape(given, wide)

    centred = drawing.node("Sub", input, mean(input))
    variance = mean(drawing.node("Pow", centred, _full(node, [], 2)))
    deviation = drawing.node("Sqrt", drawing.node("Add", variance, _full(node, [], node.options["epsilon"])))
    factors: Given = _full(node, wide, 1) if scale is None else in_place(scale)
    scaled = drawing.node("Mul", factors, drawing.node("Div", centred, deviation))
    return scaled if bias is None else drawing.node("Add", scaled, in_place(bias))
