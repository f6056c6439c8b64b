"""Gathers and scatters, whose indices Chromium clamps into range first."""

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, Drawn, int64s, rule, shape_of
from webnn_py.graph import Node


def _clamped(drawing: ChromiumDrawing, node: Node, indices: str) -> str:
    """Clamp indices along the axis of the node."""
    size = shape_of(node, "input")[node.options["axis"]]
    data_type = node.operand("indices").data_type
    return drawing.node("Clip", indices, np.array(-size, data_type), np.array(size - 1, data_type))


def _clamped_rows(drawing: ChromiumDrawing, node: Node, indices: str) -> str:
    """Clamp indices along the first axes, as int64."""
    sizes = shape_of(node, "input")[: shape_of(node, "indices")[-1]]
    if node.operand("indices").data_type != "int64":
        indices = drawing.cast(indices, "int64")
    least = drawing.node("Max", indices, int64s([-size for size in sizes]))
    return drawing.node("Min", least, int64s([size - 1 for size in sizes]))


@rule("gather")
def _gather(drawing: ChromiumDrawing, node: Node, input: str, indices: str) -> Drawn:
    return drawing.node("Gather", input, _clamped(drawing, node, indices), axis=node.options["axis"])


@rule("gather_elements")
def _gather_elements(drawing: ChromiumDrawing, node: Node, input: str, indices: str) -> Drawn:
    return drawing.node("GatherElements", input, _clamped(drawing, node, indices), axis=node.options["axis"])


@rule("gather_nd")
def _gather_nd(drawing: ChromiumDrawing, node: Node, input: str, indices: str) -> Drawn:
    return drawing.node("GatherND", input, _clamped_rows(drawing, node, indices))


@rule("scatter_elements")
def _scatter_elements(drawing: ChromiumDrawing, node: Node, input: str, indices: str, updates: str) -> Drawn:
    clamped = _clamped(drawing, node, indices)
    return drawing.node("ScatterElements", input, clamped, updates, axis=node.options["axis"])


@rule("scatter_nd")
def _scatter_nd(drawing: ChromiumDrawing, node: Node, input: str, indices: str, updates: str) -> Drawn:
    return drawing.node("ScatterND", input, _clamped_rows(drawing, node, indices), updates)
