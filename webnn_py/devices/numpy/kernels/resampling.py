"""Resampling on arrays, one axis at a time, in tiles that stay in cache."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import resampling
from webnn_py.devices.numpy.routines.tiling import tile_size, tile_starts
from webnn_py.devices.numpy.scratch import allowance
from webnn_py.devices.numpy.table import Array, Kernel, elements, kernel

TILE: Final = 2**16
"""The elements of a tile of the output."""

Places = slice | Array
"""Indices along an axis; a slice where they are evenly spaced, which saves a copy."""

ResampleStep = Callable[[Array, Array], None]
"""Fills its second argument with its first, one axis resampled."""


@attrs.frozen
class Stretch:
    """An axis that is stretched or shrunk.

    Attributes:
        axis: the axis.
        size: its length before.
        new_size: its length after.
        linear: whether to interpolate.
    """

    axis: int
    size: int
    new_size: int
    linear: bool

    def whole(self) -> ResampleStep:
        """Return the step that resamples the whole axis."""
        needed, step = self.part(0, self.new_size)
        return lambda source, target: step(source[at(self.axis, needed)], target)

    def part(self, begin: int, end: int) -> tuple[slice, ResampleStep]:
        """Return the old elements that the new ones from ``begin`` to ``end`` need, and the resampling step."""
        # The centers of the new elements, relative to the centers of the old, in units of 1 / (2 · new size).
        unit = 2 * self.new_size
        places = (2 * np.arange(begin, end) + 1) * self.size - self.new_size
        places = np.clip(places, 0, (self.size - 1) * unit)
        if not self.linear:
            nearest = -((self.new_size - places) // unit)
            return slice(nearest[0], nearest[-1] + 1), partial(pick, self.axis, spaced(nearest - nearest[0]))
        below, rest = np.divmod(places, unit)
        above = below + (rest > 0)
        # At an element's own place, it is mixed with itself in halves: infinity times 0 would be NaN.
        weight = np.where(rest == 0, 0.5, rest / unit).astype(np.float32)
        neighbors = (spaced(below - below[0]), spaced(above - below[0]), weight)
        return slice(below[0], above[-1] + 1), partial(mix, self.axis, neighbors)


def spaced(places: Array) -> Places:
    """Return indices as a slice if they are evenly spaced."""
    first, last = int(places[0]), int(places[-1])
    step = int(places[1]) - first if len(places) > 1 else 1
    if step > 0 and np.array_equal(places, np.arange(first, last + 1, step)):
        return slice(first, last + 1, step)
    return places


@kernel(resampling.resample2d, work=lambda node: 4 * elements(node))
def resample2d(node: Node) -> Kernel:
    options: Any = node.options
    shape, new_shape = node.operand("input").shape, node.outputs[0].shape
    first, second = sorted(options["axes"] or (2, 3))
    linear = options["mode"] == "linear"
    before, after = (
        (prod(sizes[:first]), sizes[first], prod(sizes[first + 1 : second]), sizes[second], prod(sizes[second + 1 :]))
        for sizes in (shape, new_shape)
    )
    stretches = [Stretch(axis, before[axis], after[axis], linear) for axis in (1, 3) if before[axis] != after[axis]]
    rounded = bool(stretches) and linear and node.outputs[0].data_type in ("int8", "uint8")
    most = allowance(node)
    item_bytes = np.dtype(node.outputs[0].data_type).itemsize
    row_bytes = row_cost(stretches, before, after, item_bytes, rounded=rounded)
    rows = tile_size(after[1], min(most / row_bytes, TILE / prod(after[2:])))
    wholes = {stretch.axis: stretch.whole() for stretch in stretches}
    tiles = [
        (old_rows, slice(row, row + rows), in_succession(steps, linear=linear, rounded=rounded))
        for row in tile_starts(after[1], rows)
        for old_rows, steps in [rows_of(stretches, wholes, row, row + rows, after[1])]
    ]
    planes = tile_size(after[0], min(most / (rows * row_bytes), TILE / prod(after[1:])))

    def run(images: Array, output: Array) -> None:
        images, output = images.reshape(before), output.reshape(after)
        for start in tile_starts(after[0], planes):
            here = slice(start, start + planes)
            for old_rows, new_rows, resample in tiles:
                resample(images[here, old_rows], output[here, new_rows])

    return run


def row_cost(
    stretches: Sequence[Stretch], before: Sequence[int], after: Sequence[int], item_bytes: int, *, rounded: bool
) -> float:
    """Estimate the scratch bytes of a row of the output: between two steps, and within one."""
    sizes = list(before)
    between, within = 0, 0
    for index, stretch in enumerate(stretches):
        sizes[stretch.axis] = stretch.new_size
        within = max(within, prod(sizes[1:]))
        if rounded or index < len(stretches) - 1:
            between += prod(sizes[1:])
    if any(stretch.linear for stretch in stretches):
        # Interpolating takes two float32 arrays, and the elements picked for one of them.
        return (4 * between + (8 + item_bytes) * within) / after[1]
    return max(1, item_bytes * (between + within) / after[1])


def rows_of(
    stretches: Sequence[Stretch], wholes: Mapping[int, ResampleStep], begin: int, end: int, height: int
) -> tuple[slice, list[tuple[int, int, ResampleStep]]]:
    """Return the steps that compute some rows of the output.

    Returns:
        The rows of the input that they read; and each step's axis, the new length along it, and the step.
    """
    if end - begin == height:
        return slice(None), [(stretch.axis, stretch.new_size, wholes[stretch.axis]) for stretch in stretches]
    old_rows = slice(begin, end)
    steps = []
    for stretch in stretches:
        if stretch.axis == 1:
            old_rows, step = stretch.part(begin, end)
            steps.append((1, end - begin, step))
        else:
            steps.append((stretch.axis, stretch.new_size, wholes[stretch.axis]))
    return old_rows, steps


def in_succession(steps: Sequence[tuple[int, int, ResampleStep]], *, linear: bool, rounded: bool) -> ResampleStep:
    """Return a step that resamples one axis after the other.

    Args:
        steps: each step's axis, the new length along it, and the step.
        linear: whether the steps interpolate.
        rounded: whether the interpolated values have to be integers.
    """

    def resample(source: Array, output: Array) -> None:
        for index, (axis, size, step) in enumerate(steps):
            target = output
            if rounded or index < len(steps) - 1:
                shape = (*source.shape[:axis], size, *source.shape[axis + 1 :])
                target = np.empty(shape, np.float32 if linear else source.dtype)
            step(source, target)
            source = target
        if source is output:
            return
        if rounded:
            np.rint(source, out=source)
        np.copyto(output, source, casting="unsafe")

    return resample


def at(axis: int, part: Places | int) -> tuple[Places | int, ...]:
    """Return the index of a part of an axis."""
    return (*(slice(None),) * axis, part)


def take(source: Array, axis: int, places: Places) -> Array:
    """Return the elements at some places of an axis."""
    if isinstance(places, slice):
        return source[at(axis, places)]
    return np.take(source, places, axis, mode="clip")


def pick(axis: int, places: Places, source: Array, target: Array) -> None:
    """Take the nearest elements."""
    np.copyto(target, take(source, axis, places))


def mix(axis: int, neighbors: tuple[Places, Places, Array], source: Array, target: Array) -> None:
    """Interpolate between the elements below and above each position, given the weight of the one above."""
    below, above, weight = neighbors
    weight = weight.reshape(-1, *(1,) * (source.ndim - 1 - axis))
    low = weighted(source, axis, below, 1 - weight)
    np.add(low, weighted(source, axis, above, weight), out=target)


def weighted(source: Array, axis: int, places: Places, weight: Array) -> Array:
    """Return the elements at some places of an axis, times their weights, in float32."""
    found = take(source, axis, places)
    if isinstance(places, slice) or found.dtype != np.float32:
        return np.multiply(found, weight, dtype=np.float32)
    return np.multiply(found, weight, out=found)
