"""Normalization operators on arrays.

All kernels process their data in blocks that stay in the cache between the passes. They compute in float32; float16 is
rounded once, at the end.
"""

import itertools
import math
from collections.abc import Callable, Iterable

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import normalization
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.normalization import layer_axes
from webnn_py.core.operators.windows import image_axes
from webnn_py.devices.numpy.routines.blocks import Index, Shape, part_of
from webnn_py.devices.numpy.routines.float16 import NARROWING, float32, narrow
from webnn_py.devices.numpy.routines.rows import flat_tiles
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, kernel, scalar

BLOCK = 2**17
"""The most elements of a block."""

PIECE = 2**15
"""The most elements of a group that are summed at a time."""

PARAMETERS = 2**14
"""The most elements of a parameter that are repeated for a block."""

SHORT = 16
"""Innermost loops over fewer elements than this cost more than a transposed copy."""

LONG = 512
"""Innermost loops over more elements than this gain nothing by being longer."""


def _work(node: Node) -> float:
    return 8 * node.outputs[0].element_count


def _epsilon(node: Node) -> Array:
    return scalar(cast_number(node.options["epsilon"], node.outputs[0].data_type), "float32")


def _most_elements(node: Node, item_bytes: int) -> int:
    """Return the most elements of a block, given the scratch bytes of each apart from those for narrowing."""
    narrowing = NARROWING if node.outputs[0].data_type == "float16" else 0
    return min(BLOCK, allowance(node) // (item_bytes + narrowing))


def _named(node: Node, arrays: tuple[Array, ...]) -> dict[str, Array]:
    """Return a kernel's arrays by name: the operands that are given, then ``output``."""
    return dict(zip((*node.operands, "output"), arrays, strict=True))


@kernel(normalization.batch_normalization, work=_work)
def batch_normalization(node: Node) -> Kernel:
    in_float16 = node.outputs[0].data_type == "float16"
    layout = PerFeature.of(node.outputs[0].shape, node.options["axis"], _most_elements(node, 4))
    epsilon = _epsilon(node)
    memory = scratch(layout.block_elements if in_float16 else 0)

    def run(*arrays: Array) -> None:
        given = _named(node, arrays)
        x, output = (array.reshape(layout.shape) for array in (np.ascontiguousarray(given["input"]), given["output"]))
        for features, blocks in layout.blocks:
            factor = np.sqrt(float32(given["variance"][features]) + epsilon)
            np.divide(float32(given["scale"][features]) if "scale" in given else np.float32(1), factor, out=factor)
            factor = layout.broadcast(factor)
            mean = layout.broadcast(float32(given["mean"][features]))
            bias = layout.broadcast(float32(given["bias"][features])) if "bias" in given else None
            for block in blocks:
                source, result = x[block], output[block]
                if in_float16:
                    source = result = memory[: source.size].reshape(source.shape)
                    np.copyto(source, x[block])
                count = source.shape[0]
                np.subtract(source, mean[:count], out=result)
                np.multiply(result, factor[:count], out=result)
                if bias is not None:
                    np.add(result, bias[:count], out=result)
                if in_float16:
                    narrow(result, output[block])

    return run


@attrs.frozen
class PerFeature:
    """The layout in which an array broadcasts with one value for each index of an axis.

    Blocks of the array are either rows with one value each, or flat, with values repeated to match the elements.
    Repeating the values takes time, but makes the loops long.

    rows: whether blocks are rows.
    shape: the shape in which to view the array.
    repeats: the number of repetitions of all values of a flat block.
    inner: the number of repetitions of each single value of a flat block.
    blocks: ranges of the axis, each with its blocks of the array.
    block_elements: the elements of the largest block.
    """

    rows: bool
    shape: tuple[int, ...]
    repeats: int
    inner: int
    blocks: list[tuple[slice, list[Index]]]
    block_elements: int

    @classmethod
    def of(cls, shape: tuple[int, ...], axis: int, most: int) -> "PerFeature":
        """Return the layout, in blocks of at most ``most`` elements."""
        outer, features, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        period = features * inner
        rows = inner > 1 and (outer < 4 or period > BLOCK // 2 or inner > LONG)
        width = min(inner, most)
        step = min(features, PARAMETERS if rows else max(1, PARAMETERS // inner), most // width)
        repeats = 1 if rows or step < features else max(1, min(outer, PARAMETERS // period, most // period))
        blocks: list[tuple[slice, list[Index]]] = []
        for first in range(0, features, step):
            last = min(first + step, features)
            if rows:
                lines = [slice(o * features + first, o * features + last) for o in range(outer)]
                columns = [slice(column, column + width) for column in range(0, inner, width)]
                places: list[Index] = list(itertools.product(lines, columns))
            else:
                size = (last - first) * inner
                starts = range(first * inner, outer * period, repeats * period)
                places = [(slice(start, min(start + repeats * size, outer * period)),) for start in starts]
            blocks.append((slice(first, last), places))
        form = (outer * features, inner) if rows else (outer * period,)
        return cls(rows, form, repeats, inner, blocks, repeats * step * (width if rows else inner))

    def broadcast(self, values: Array) -> Array:
        """Return the values of a range of the axis, broadcast or repeated to match its blocks."""
        if self.rows:
            return values[:, np.newaxis]
        if self.repeats * self.inner == 1:
            return values
        return np.broadcast_to(values[:, np.newaxis], (self.repeats, len(values), self.inner)).reshape(-1)


@kernel(normalization.instance_normalization, work=_work)
def instance_normalization(node: Node) -> Kernel:
    batch, channels, height, width = image_axes(node.options["layout"])
    shape = node.outputs[0].shape
    normalizer = Normalizer(node, (height, width))

    def lay_out(parameter: Array) -> Array:
        """Return a parameter that broadcasts along the channels: the innermost axis, or one for each group."""
        if normalizer.inner > 1:
            return in_float32_if_small(parameter).reshape(1, 1, shape[channels])
        return np.broadcast_to(float32(parameter), (shape[batch], shape[channels])).reshape(-1, 1)

    return _normalizing(node, normalizer, lay_out, "group_scale")


@kernel(normalization.layer_normalization, work=_work)
def layer_normalization(node: Node) -> Kernel:
    axes = layer_axes(node.options["axes"], node.operand("input").rank)
    ascending = sorted(range(len(axes)), key=lambda index: axes[index])
    normalizer = Normalizer(node, axes)
    places = (1, -1, 1) if normalizer.inner > 1 else (1, -1)

    def lay_out(parameter: Array) -> Array:
        """Return a parameter that broadcasts with the normalized axes, which are in ascending order there."""
        return in_float32_if_small(parameter).transpose(ascending).reshape(places)

    return _normalizing(node, normalizer, lay_out, "scale")


def _normalizing(node: Node, normalizer: "Normalizer", lay_out: Callable[[Array], Array], scale: str) -> Kernel:
    """Make a kernel that lays out its parameters; ``scale`` is the name that the normalizer has for the scale."""

    def run(*arrays: Array) -> None:
        given = _named(node, arrays)
        parameters = {
            name: lay_out(given[operand]) for operand, name in (("scale", scale), ("bias", "bias")) if operand in given
        }
        normalizer.run(given["input"], given["output"], **parameters)

    return run


Parameters = tuple[Array | None, Array | None, Array | None]
"""Factors of whole groups, factors of elements, and addends, in shapes that broadcast to the groups'."""


@attrs.frozen
class Part:
    """A part of the array: ranges of groups, of elements, and of columns where groups are interleaved.

    Attributes:
        source: the part of the input.
        target: the part of the output.
        where: the ranges of groups, of elements and perhaps of columns.
    """

    source: Array
    target: Array
    where: Index

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(part.stop - part.start for part in self.where)


class Normalizer:
    """Normalizes an array by its mean and variance over some axes.

    The array is viewed as groups to normalize: of shape [groups, size], or, where enough axes follow the normalized
    ones, [groups, size, inner], with ``inner`` interleaved groups. Where its axes are in another order, blocks of it
    are transposed into this one.

    Attributes:
        inner: the number of interleaved groups; 1 for the shape [groups, size].
    """

    def __init__(self, node: Node, axes: Iterable[int]) -> None:
        descriptor = node.outputs[0]
        shape, reduced = descriptor.shape, sorted(axes)
        self._size = math.prod(shape[axis] for axis in reduced)
        self._epsilon = _epsilon(node)
        first, end = (reduced[0], reduced[-1] + 1) if reduced else (len(shape), len(shape))
        self.inner = math.prod(shape[end:])
        self._permutation: list[int] | None = None
        if end - first != len(reduced) or 1 < self.inner < SHORT:
            self._permutation = [axis for axis in range(len(shape)) if axis not in reduced] + reduced
            self.inner = 1
        self._shape = (math.prod(shape) // (self._size * self.inner), self._size, self.inner)
        self._in_float16 = descriptor.data_type == "float16"
        self._is_copied = self._in_float16 or self._permutation is not None
        groups: Shape = self._shape[:1]
        elements: Shape = self._shape[1:2]
        if self._permutation is not None:
            sizes = tuple(shape[axis] for axis in self._permutation)
            groups, elements = sizes[: -len(reduced)], sizes[-len(reduced) :]
        self._cut(groups, elements, _most_elements(node, 4 * max(1, self._is_copied + (self.inner > 1))))

    def _cut(self, groups: Shape, elements: Shape, most: int) -> None:
        """Cut the array into blocks of groups, and large groups into pieces; allocate the scratch."""
        is_side_by_side = self.inner > 1
        width = min(self.inner, max(LONG, most // (self._size + 2)))
        piece = min(self._size, max(1, most // width) if is_side_by_side else min(most, PIECE))
        block = most if is_side_by_side or self._is_copied else BLOCK
        step = min(self._shape[0], block // (piece * width), most // (4 * width)) if piece == self._size else 1
        step = max(1, step)
        self._blocks = flat_tiles(groups, step)
        self._pieces = flat_tiles(elements, piece)
        self._columns: list[Index] = [(slice(c, min(c + width, self.inner)),) for c in range(0, self.inner, width)]
        if not is_side_by_side:
            self._columns = [()]
        self._ones = np.ones(piece, np.float32)
        self._sums = scratch((3, step, 1, width) if is_side_by_side else (3, step, 1))
        self._memory = scratch(step * piece * width if self._is_copied else 0)
        self._squares = scratch(step * piece * width if is_side_by_side else 0)

    def run(
        self,
        input: Array,
        output: Array,
        *,
        group_scale: Array | None = None,
        scale: Array | None = None,
        bias: Array | None = None,
    ) -> None:
        """Normalize ``input`` into ``output``.

        Args:
            input: the array to normalize.
            output: the array to fill.
            group_scale: factors of whole groups; one for each group or one for all, like ``bias``.
            scale: factors of elements, the same for all groups.
            bias: addends; for each group if its first dimension is their number, else the same for all.
        """
        if self._permutation is None:
            shape = self._shape if self.inner > 1 else self._shape[:2]
            x, y = np.ascontiguousarray(input).reshape(shape), output.reshape(shape)
        else:
            x, y = input.transpose(self._permutation), output.transpose(self._permutation)
        for (block, groups), columns in itertools.product(self._blocks, self._columns):
            parts = [
                Part(x[(*block, *piece, *columns)], y[(*block, *piece, *columns)], (groups, elements, *columns))
                for piece, elements in self._pieces
            ]
            self._normalize(parts, (group_scale, scale, bias))

    def _normalize(self, parts: list[Part], parameters: Parameters) -> None:
        """Normalize some groups, given their parts."""
        groups, _, *columns = parts[0].shape
        mean, factor, sums = self._sums[(slice(None), slice(groups), slice(None), *map(slice, columns))]
        at_once = len(parts) == 1
        mean.fill(0)
        for part in parts:
            np.add(mean, self._sum(self._load(part), sums), out=mean)
        np.divide(mean, self._size, out=mean)
        factor.fill(0)
        for part in parts:
            centered = self._center(part, mean, is_loaded=at_once)
            np.add(factor, self._sum_squares(centered, sums), out=factor)
        np.divide(factor, self._size, out=factor)
        np.add(factor, self._epsilon, out=factor)
        np.sqrt(factor, out=factor)
        group_scale, scale, bias = parameters
        np.divide(1 if group_scale is None else parameter_part(group_scale, parts[0]), factor, out=factor)
        for part in parts:
            if self._is_copied:
                result = self._form(part) if at_once else self._center(part, mean, is_loaded=False)
            else:
                result = part.target
            np.multiply(result, factor, out=result)
            if scale is not None:
                np.multiply(result, parameter_part(scale, part), out=result)
            if bias is not None:
                np.add(result, parameter_part(bias, part), out=result)
            self._store(result, part)

    def _form(self, part: Part) -> Array:
        """Return the scratch for a part."""
        return self._memory[: math.prod(part.shape)].reshape(part.shape)

    def _load(self, part: Part) -> Array:
        """Return a part of the input in float32."""
        if not self._is_copied:
            return part.source
        copied = self._form(part)
        np.copyto(copied.reshape(part.source.shape), part.source)
        return copied

    def _store(self, result: Array, part: Part) -> None:
        """Move a part of the result to the output, if it is not there already."""
        if self._in_float16:
            narrow(result.reshape(part.target.shape), part.target)
        elif self._is_copied:
            np.copyto(part.target, result.reshape(part.target.shape))

    def _center(self, part: Part, mean: Array, *, is_loaded: bool) -> Array:
        """Return a part less the mean of each group: in the scratch, or in the output."""
        source = self._form(part) if is_loaded and self._is_copied else self._load(part)
        return np.subtract(source, mean, out=source if self._is_copied else part.target)

    def _sum(self, x: Array, sums: Array) -> Array:
        """Return the sum of each group, as a product with ones.

        BLAS adds faster than a reduction, and more exactly along columns.
        """
        ones = self._ones[: x.shape[1]]
        if self.inner == 1:
            np.matmul(x, ones, out=sums[:, 0])
        else:
            np.matmul(ones, x, out=sums[:, 0])
        return sums

    def _sum_squares(self, x: Array, sums: Array) -> Array:
        """Return the sum of the squares of each group."""
        if self.inner == 1:
            np.vecdot(x, x, out=sums[:, 0])
            return sums
        return self._sum(np.multiply(x, x, out=self._squares[: x.size].reshape(x.shape)), sums)


def parameter_part(parameter: Array, part: Part) -> Array:
    """Return the elements of a parameter that belong to a part: all of them along axes where it broadcasts."""
    return parameter[part_of(parameter.shape, part.where)]


def in_float32_if_small(parameter: Array) -> Array:
    """Return a parameter as float32, unless it is so large that numpy should convert it in pieces while it computes."""
    return float32(parameter) if parameter.size <= PARAMETERS else parameter
