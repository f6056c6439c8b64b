"""Operators that move elements, of any data type."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import movement
from webnn_py.core.operators.casting import cast_number
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.table import rule, rules

MODES: Final = {"constant": "constant", "edge": "edge", "reflection": "reflect"}

BEFORE_THE_FIRST: Final = -(2**63)
"""The end of a slice that goes backwards through all elements."""


@rule(movement.concat)
def concat(body: Body, node: Node, inputs: Sequence[OnnxTensor]) -> OnnxTensor:
    """Concat."""
    return body.twin("Concat", *inputs, axis=node.options["axis"])


def _of_sizes(body: Body, node: Node, operator: str, x: OnnxTensor) -> OnnxTensor:
    """Write an operator with a list of integers, which is its only option."""
    (sizes,) = node.options.values()
    return body.twin(operator, x, shape(*sizes))


rules(_of_sizes, {movement.expand: "Expand", movement.reshape: "Reshape"})


@rule(movement.pad)
def pad(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Pad."""
    if input.rank == 0:
        return body.node("Identity", input)
    mode, data_type = node.options["mode"], node.outputs[0].data_type
    value = np.array(cast_number(node.options["value"], data_type), data_type) if mode == "constant" else None
    pads = shape(*node.options["beginning_padding"], *node.options["ending_padding"])
    return body.twin("Pad", input, pads, value, mode=MODES[mode])


@rule(movement.reverse)
def reverse(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Return a slice that goes backwards."""
    axes = range(input.rank) if node.options["axes"] is None else node.options["axes"]
    count = len(axes)
    if count == 0:
        return body.node("Identity", input)
    ends = shape(*[BEFORE_THE_FIRST] * count)
    return body.node("Slice", input, shape(*[-1] * count), ends, shape(*axes), shape(*[-1] * count))


@rule(movement.slice_)
def slice_(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Slice, along the axes of which elements are left out: what cuts in one is recognized as a part of Split."""
    if input.rank == 0:
        return body.node("Identity", input)
    given = node.options["starts"], node.options["sizes"], node.options["strides"] or [1] * input.rank
    cuts = list(enumerate(zip(*given, strict=True)))
    cuts = [cut for cut in cuts if cut[1] != (0, input.shape[cut[0]], 1)] or cuts[:1]
    axes = [axis for axis, _ in cuts]
    starts, sizes, strides = zip(*(cut for _, cut in cuts), strict=True)
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    return body.twin("Slice", input, shape(*starts), shape(*ends), shape(*axes), shape(*strides))


@rule(movement.split)
def split(body: Body, node: Node, input: OnnxTensor) -> list[OnnxTensor]:
    """Split."""
    axis = node.options["axis"]
    sizes = shape(*(output.shape[axis] for output in node.outputs))
    return body.twin_outputs("Split", [input, sizes], [input.data_type] * len(node.outputs), axis=axis)


@rule(movement.tile)
def tile(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Write Tile."""
    return _of_sizes(body, node, "Tile", input) if input.rank else body.node("Identity", input)


@rule(movement.transpose)
def transpose(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Transpose."""
    permutation = node.options["permutation"]
    if input.rank == 0:
        return body.node("Identity", input)
    order = tuple(range(input.rank))[::-1] if permutation is None else permutation
    return body.twin("Transpose", input, perm=list(order))


@rule(movement.triangular)
def triangular(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Trilu, which has fewer data types."""
    height, width = input.shape[-2:]
    diagonal = np.array(min(max(node.options["diagonal"], -height), width), np.int64)  # one further changes no more
    upper = int(node.options["upper"])
    if input.data_type in ("float32", "float16", "int64"):
        return body.twin("Trilu", input, diagonal, upper=upper)
    return body.cast(body.node("Trilu", body.cast(input, "int64"), diagonal, upper=upper), input.data_type)
