"""Operators along axes, moved before a reshape of their operand where the axes were there as well.

Importers draw one-dimensional convolutions between two reshapes, since WebNN's convolve images. Operators that are
computed in the images' shape leave no reshape between two such convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Node, Value
from webnn_py.core.operators import movement
from webnn_py.devices.rewriting.reshapes import long, origin_of, places, reshaped

Shape = tuple[int, ...]

REDUCTIONS: Final = (
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_product",
    "reduce_sum",
    "reduce_sum_square",
)


def concat(node: Node) -> Sequence[Value] | None:
    """Concatenate before the reshapes, along an axis that all operands had."""
    given, axis = node.inputs, node.options["axis"]
    origins = [origin_of(value) for value in given]
    found = [
        places(value.descriptor.shape, origin.descriptor.shape, axis)
        for value, origin in zip(given, origins, strict=True)
    ]
    size = node.outputs[0].shape[axis]
    for place in sorted(set.intersection(*found)):
        shapes = {_with(origin.descriptor.shape, {place: size}) for origin in origins}
        if len(shapes) == 1:
            joined = _made(node, {"inputs": tuple(origins)}, {"axis": place}, shapes.pop())
            return [reshaped(joined, node.outputs[0].shape, node)]
    return None


def split(node: Node) -> Sequence[Value] | None:
    """Split before the reshape, along an axis that the operand had."""
    origin, (place,) = _origin(node), _along(node, [node.options["axis"]]) or (None,)
    if place is None:
        return None
    outputs = tuple(
        attrs.evolve(output, shape=_with(origin.descriptor.shape, {place: output.shape[node.options["axis"]]}))
        for output in node.outputs
    )
    pieces = attrs.evolve(
        node, operands={"input": origin}, options={**node.options, "axis": place}, outputs=outputs
    ).results
    return [reshaped(piece, output.shape, node) for piece, output in zip(pieces, node.outputs, strict=True)]


def pad(node: Node) -> Sequence[Value] | None:
    """Pad before the reshape, along axes that the operand had."""
    origin, padding = _origin(node), ("beginning_padding", "ending_padding")
    axes = [axis for axis, sizes in enumerate(zip(*map(node.options.get, padding), strict=True)) if any(sizes)]
    found = _along(node, axes)
    if found is None:
        return None
    zeros = (0,) * origin.descriptor.rank
    options = {
        name: _with(zeros, {place: node.options[name][axis] for axis, place in zip(axes, found, strict=True)})
        for name in padding
    }
    sizes = {place: node.outputs[0].shape[axis] for axis, place in zip(axes, found, strict=True)}
    padded = _made(node, {"input": origin}, options, _with(origin.descriptor.shape, sizes))
    return [reshaped(padded, node.outputs[0].shape, node)]


def batch_normalization(node: Node) -> Sequence[Value] | None:
    """Normalize before the reshape, with channels along an axis that the operand had."""
    origin, found = _origin(node), _along(node, [node.options["axis"]])
    if found is None:
        return None
    operands = {**node.operands, "input": origin}
    normalized = _made(node, operands, {"axis": found[0]}, origin.descriptor.shape)
    return [reshaped(normalized, node.outputs[0].shape, node)]


def reduction(node: Node) -> Sequence[Value] | None:
    """Reduce before the reshape, along axes that the operand had; axes of size 1 need no reduction."""
    origin, shape, axes = _origin(node), node.operand("input").shape, node.options["axes"]
    found = _along(node, [axis for axis in sorted(range(len(shape)) if axes is None else axes) if shape[axis] > 1])
    if not found:
        return None
    # onnxruntime merges adjacent axes: axes of size 1 between them are reduced, too.
    between = range(found[0], found[-1])
    found = sorted({*found, *(axis for axis in between if origin.descriptor.shape[axis] == 1)})
    options = {"axes": tuple(found), "keep_dimensions": True}
    reduced = _made(node, {"input": origin}, options, _with(origin.descriptor.shape, dict.fromkeys(found, 1)))
    return [reshaped(reduced, node.outputs[0].shape, node)]


def slice_(node: Node) -> Sequence[Value] | None:
    """Slice before a reshape that only adds or removes axes of size 1, which are sliced as well."""
    value, origin, output = node.inputs[0], _origin(node), node.outputs[0]
    if long(origin.descriptor.shape) != long(value.descriptor.shape):
        return None
    if output.element_count == value.descriptor.element_count:  # also of a number, which has no axis to cut
        return [reshaped(origin, output.shape, node)]
    options = node.options
    strides = options["strides"] or [1] * value.descriptor.rank
    along = zip(value.descriptor.shape, options["starts"], options["sizes"], strides, strict=True)
    cuts = iter([cut for size, *cut in along if size > 1])
    every = [next(cuts) if size > 1 else [0, 1, 1] for size in origin.descriptor.shape]
    return [reshaped(sliced(origin, every, node), output.shape, node)]


def sliced(value: Value, cuts: Sequence[Sequence[int]], like: Node) -> Value:
    """Return a slice, given the start, size and stride along each axis."""
    starts, sizes, strides = (tuple(numbers) for numbers in zip(*cuts, strict=True))
    shape = tuple(-(-size // stride) for size, stride in zip(sizes, strides, strict=True))
    output = MLOperandDescriptor(value.descriptor.data_type, shape)
    options = {"starts": starts, "sizes": sizes, "strides": strides}
    return Node(movement.slice_, {"input": value}, options, (output,), like.label, like.drawn).results[0]


def broadcast_shape(small: Shape, shape: Shape, before: Shape) -> Shape | None:
    """Return the shape that broadcasts to ``before`` as ``small`` does to ``shape``; they differ in axes of size 1."""
    if len(small) > len(shape) or long(shape) != long(before):
        return None
    padded = (1,) * (len(shape) - len(small)) + small
    sizes = iter([size for size, along in zip(padded, shape, strict=True) if along > 1])
    return tuple([next(sizes) if along > 1 else 1 for along in before])


def _origin(node: Node) -> Value:
    return origin_of(node.value("input"))


def _along(node: Node, axes: Sequence[int]) -> list[int] | None:
    """Return the places of axes of a node's operand before it was reshaped; None unless all were there."""
    shape, before = node.operand("input").shape, _origin(node).descriptor.shape
    found: list[int] = []
    for axis in axes:
        there = places(shape, before, axis).difference(found)
        if not there:
            return None
        found.append(min(there))
    return found


def _with(sizes: Shape, others: Mapping[int, int]) -> Shape:
    return tuple([others.get(axis, size) for axis, size in enumerate(sizes)])


def _made(
    node: Node, operands: Mapping[str, Value | tuple[Value, ...]], options: Mapping[str, object], shape: Shape
) -> Value:
    """Return the result of a node's operator with other operands, some other options, and another shape."""
    outputs = (MLOperandDescriptor(node.outputs[0].data_type, shape),)
    return Node(node.operator, operands, {**node.options, **options}, outputs, node.label, node.drawn).results[0]


BEFORE: Final[Mapping[str, Callable[[Node], Sequence[Value] | None]]] = {
    "batch_normalization": batch_normalization,
    "concat": concat,
    "pad": pad,
    "slice": slice_,
    "split": split,
    **dict.fromkeys(REDUCTIONS, reduction),
}
"""Functions by operator: (a node that reads a reshaped value) → its results, computed before the reshape and reshaped
afterwards; None where that is impossible."""
