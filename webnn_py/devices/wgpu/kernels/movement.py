"""Operators that move elements, in WGSL. What strides can say is a view; the rest moves bits once."""

import math
from collections.abc import Sequence

import attrs
import numpy as np

from webnn_py.core.descriptors import BYTES_PER_ELEMENT
from webnn_py.core.graph import Node, Value
from webnn_py.core.operators import movement
from webnn_py.core.operators.casting import cast_number
from webnn_py.devices.wgpu.codegen.copies import copy_kernel
from webnn_py.devices.wgpu.codegen.data_movement import MovementKernel
from webnn_py.devices.wgpu.records.buffer import Buffer, Place
from webnn_py.devices.wgpu.records.layout import Layout, dense_strides
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import kernels, layout

MOST_JOINED = 16
"""The most tensors that one kernel joins, where the adapter can bind as many buffers."""


@layout(movement.reshape)
def reshape(node: Node, operand: Layout) -> Layout | None:
    return operand.reshape(node.outputs[0].shape)


@layout(movement.transpose)
def transpose(node: Node, operand: Layout) -> Layout:
    permutation = node.options["permutation"]
    return operand.permute(range(len(operand.shape))[::-1] if permutation is None else permutation)


@layout(movement.expand)
def expand(node: Node, operand: Layout) -> Layout:
    return operand.broadcast(node.outputs[0].shape)


@layout(movement.slice_)
def slice_(node: Node, operand: Layout) -> Layout:
    starts = node.options["starts"]
    return operand.window(starts, node.outputs[0].shape, node.options["strides"] or (1,) * len(starts))


@layout(movement.reverse)
def reverse(node: Node, operand: Layout) -> Layout:
    shape, axes = operand.shape, node.options["axes"]
    backwards = [axes is None or axis in axes for axis in range(len(shape))]
    starts = [size - 1 if turned else 0 for size, turned in zip(shape, backwards, strict=True)]
    return operand.window(starts, shape, [-1 if turned else 1 for turned in backwards])


@layout(movement.split)
def split(node: Node, operand: Layout) -> list[Layout]:
    axis, rank = node.options["axis"], len(operand.shape)
    pieces, start = [], 0
    for output in node.outputs:
        starts = [start if index == axis else 0 for index in range(rank)]
        pieces.append(operand.window(starts, output.shape, (1,) * rank))
        start += output.shape[axis]
    return pieces


@kernels(movement.tile)
def tile(node: Node, lowering: Lowering) -> None:
    """A copy of the input with an axis of stride 0 before each of its own."""
    result = node.results[0]
    place = lowering.place(next(iter(node.inputs)))
    shape, strides = place.layout.shape, place.layout.strides
    repeated = Layout(
        tuple(number for pair in zip(node.options["repetitions"], shape, strict=True) for number in pair),
        tuple(number for stride in strides for number in (0, stride)),
        place.layout.offset,
    )
    lowering.emit(copy_kernel(Place(place.buffer, repeated), lowering.target(result), result.descriptor))


@kernels(movement.concat)
def concat(node: Node, lowering: Lowering) -> None:
    result = node.results[0]
    axis, shape = node.options["axis"], result.descriptor.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    joined = [(lowering.place(value), value.descriptor.shape[axis] * inner) for value in node.inputs]
    most = max(2, min(MOST_JOINED, lowering.features.max_storage_buffers - 1))
    while len(joined) > most:  # then in two steps
        groups = [joined[start : start + most] for start in range(0, len(joined), most)]
        joined = [group[0] if len(group) == 1 else join_aside(lowering, result, group, outer) for group in groups]
    join(lowering, result, joined, outer, lowering.target(result))


def join_aside(lowering: Lowering, like: Value, joined: Sequence[tuple[Place, int]], outer: int) -> tuple[Place, int]:
    """Join into an intermediate; returns it with its length."""
    length = sum(length for _, length in joined)
    target = Buffer("block", outer * length * BYTES_PER_ELEMENT[like.descriptor.data_type])
    join(lowering, like, joined, outer, target)
    return Place(target, Layout.dense((outer, length))), length


def join(lowering: Lowering, like: Value, joined: Sequence[tuple[Place, int]], outer: int, target: Buffer) -> None:
    """One kernel that writes rows, each made of a row of each of the joined tensors, given with their lengths."""
    lengths = [length for _, length in joined]
    moving = MovementKernel(lowering, like, [place for place, _ in joined], math.gcd(*lengths))
    moving.emit("concat", outer * sum(lengths), target, _row_of(moving, joined))


def _row_of(moving: MovementKernel, joined: Sequence[tuple[Place, int]]) -> str:
    """Statements that return the unit number ``i`` of joined tensors."""
    total = sum(length for _, length in joined) // moving.width
    lines = [f"  let row = i / {total}u;", f"  let at = i % {total}u;"]
    start = 0
    for place, length in joined:
        units = length // moving.width
        load = moving.load(place, f"row * {units}u + (at - {start}u)")
        start += units
        lines.append(f"  if (at < {start}u) {{ return {load}; }}" if start < total else f"  return {load};")
    return "\n".join(lines)


@kernels(movement.triangular)
def triangular(node: Node, lowering: Lowering) -> None:
    result = node.results[0]
    *_, rows, columns = result.descriptor.shape
    place = lowering.place(next(iter(node.inputs)))
    moving = MovementKernel(lowering, result, [place], 1)
    # Beyond the corners all diagonals keep everything, or nothing.
    diagonal = min(max(node.options["diagonal"], -rows), columns)
    distance = f"i32(i % {columns}u) - i32(i / {columns}u % {rows}u)"
    kept = f"{distance} >= {diagonal}i" if node.options["upper"] else f"{distance} <= {diagonal}i"
    statements = f"  if ({kept}) {{ return {moving.load(place, 'i')}; }}\n  return {moving.literal(0)};"
    moving.emit("triangular", result.descriptor.element_count, lowering.target(result), statements)


@attrs.frozen
class PaddedAxis:
    """An axis, or several adjacent ones that are not padded.

    Attributes:
        size: its elements.
        begin: elements that are added before.
        end: elements that are added after.
    """

    size: int
    begin: int
    end: int

    @property
    def padded(self) -> int:
        return self.begin + self.size + self.end

    def source(self, at: str, mode: movement.PaddingMode) -> str:
        """Return the source of the element at a coordinate of the output, also for a coordinate beyond a margin."""
        if mode == "constant" or self.padded == self.size:
            return f"{at} - {self.begin}u"
        if mode == "edge":
            return f"clamp({at}, {self.begin}u, {self.begin + self.size - 1}u) - {self.begin}u"
        return f"u32({self.size - 1}i - abs({self.size - 1}i - abs(i32({at}) - {self.begin}i)))"


@kernels(movement.pad)
def pad(node: Node, lowering: Lowering) -> None:
    result, mode = node.results[0], node.options["mode"]
    place = lowering.place(next(iter(node.inputs)))
    margins = _margins(place.layout.shape, node.options["beginning_padding"], node.options["ending_padding"])
    run = margins[-1].size if margins[-1].padded == margins[-1].size else 1
    moving = MovementKernel(lowering, result, [place], run)
    if moving.width > 1:
        margins[-1] = PaddedAxis(margins[-1].size // moving.width, 0, 0)
    below = dense_strides([margin.padded for margin in margins])
    lines, outside = [], []
    for axis, margin in enumerate(margins):
        lines.append(f"  let at{axis} = i / {below[axis]}u % {margin.padded}u;")
        lines.append(f"  let from{axis} = {margin.source(f'at{axis}', mode)};")
        if margin.padded != margin.size:
            outside.append(f"from{axis} >= {margin.size}u")  # what is before it wraps around
    if mode == "constant" and outside:
        lines.append(f"  if ({' || '.join(outside)}) {{ return {moving.literal(_bits_of_value(node))}; }}")
    strides = dense_strides([margin.size for margin in margins])
    index = " + ".join(f"from{axis} * {stride}u" for axis, stride in enumerate(strides))
    lines.append(f"  return {moving.load(place, index)};")
    moving.emit("pad", result.descriptor.element_count, lowering.target(result), "\n".join(lines))


def _margins(shape: Sequence[int], beginning: Sequence[int], ending: Sequence[int]) -> list[PaddedAxis]:
    """Return the axes of a padding, with neighbours that are not padded merged; one at least."""
    margins: list[PaddedAxis] = []
    for size, begin, end in zip(shape, beginning, ending, strict=True):
        if margins and begin == end == 0 and margins[-1].padded == margins[-1].size:
            margins[-1] = PaddedAxis(margins[-1].size * size, 0, 0)
        else:
            margins.append(PaddedAxis(size, begin, end))
    return margins or [PaddedAxis(1, 0, 0)]


def _bits_of_value(node: Node) -> int:
    """Return the bits of the value that a padding is made of."""
    data_type = node.outputs[0].data_type
    value = np.array(cast_number(node.options["value"], data_type), data_type)
    return int(value.view(f"u{value.itemsize}"))
