"""Operators that move elements."""

from typing import Final

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, Drawn, int64s, rule, shape_of
from webnn_py.graph import Node
from webnn_py.operators.casting import cast_number

_MODES: Final = {"constant": "constant", "edge": "edge", "reflection": "reflect"}
_INT64_MIN: Final = -(2**63)


@rule("concat")
def _concat(drawing: ChromiumDrawing, node: Node, inputs: tuple[str, ...]) -> Drawn:
    return drawing.node("Concat", *inputs, axis=node.options["axis"])


@rule("expand")
def _expand(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    return drawing.node("Expand", input, int64s(node.outputs[0].shape))


@rule("pad")
def _pad(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    options, data_type = node.options, node.outputs[0].data_type
    pads = int64s([*options["beginning_padding"], *options["ending_padding"]])
    is_constant = options["mode"] == "constant"
    value = [np.array(cast_number(options["value"], data_type), data_type)] if is_constant else []
    return drawing.node("Pad", input, pads, *value, mode=_MODES[options["mode"]])


@rule("reshape")
def _reshape(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    return drawing.reshape(input, node.outputs[0].shape)


@rule("reverse")
def _reverse(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    rank, axes = len(shape_of(node, "input")), node.options["axes"]
    axes = list(range(rank)) if axes is None else list(axes)
    if not axes:
        return drawing.node("Identity", input)
    count = len(axes)
    backwards = int64s([-1] * count)
    return drawing.node("Slice", input, backwards, int64s([_INT64_MIN] * count), int64s(axes), backwards)


@rule("slice")
def _slice(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    starts, sizes = node.options["starts"], node.options["sizes"]
    steps = node.options["strides"] or [1] * len(starts)
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    return drawing.node("Slice", input, int64s(starts), int64s(ends), int64s(range(len(starts))), int64s(steps))


@rule("split")
def _split(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    axis = node.options["axis"]
    sizes = int64s([output.shape[axis] for output in node.outputs])
    return drawing.nodes("Split", [input, sizes], [True] * len(node.outputs), axis=axis)


@rule("tile")
def _tile(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    if not shape_of(node, "input"):
        return drawing.node("Identity", input)
    return drawing.node("Tile", input, int64s(node.options["repetitions"]))


@rule("transpose")
def _transpose(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    permutation = node.options["permutation"]
    rank = len(shape_of(node, "input"))
    return drawing.node("Transpose", input, perm=list(range(rank))[::-1] if permutation is None else list(permutation))


@rule("triangular")
def _triangular(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    diagonal = np.array(node.options["diagonal"], np.int64)
    return drawing.node("Trilu", input, diagonal, upper=int(node.options["upper"]))
