"""Pooling on arrays: windows are combined along their height, then along their width."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from math import prod
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import pooling
from webnn_py.core.operators.windows import Slide, image_shape, slides
from webnn_py.devices.numpy.routines.im2col_tiles import Im2colTile
from webnn_py.devices.numpy.routines.tiling import inside_of_windows, tile_size, tile_starts
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, kernel, scalar

TILE: Final = 2**18
"""The most elements of a tile, its padded images and its intermediates: about what a core's cache holds."""


@attrs.frozen(eq=False)
class Parts:
    """The part of each window that is within the image, along an axis.

    Attributes:
        starts: the first element of each window in the image.
        counts: the number of elements of each window in the image; may be 0.
        step: the distance from one element to the next.
    """

    starts: Array
    counts: Array
    step: int

    @classmethod
    def of(cls, slide: Slide, count: int) -> "Parts":
        """Compute the parts of ``count`` windows."""
        begins, ends = inside_of_windows(slide, count)
        firsts = np.arange(count) * slide.stride - slide.begin
        return cls(firsts + begins * slide.dilation, ends - begins, slide.dilation)

    def runs(self, first: int, count: int) -> Iterator[tuple[slice, slice]]:
        """Yield runs of the ``count`` windows that have the same part, and the part, if it has elements."""
        starts, counts = self.starts[first : first + count], self.counts[first : first + count]
        changes = np.flatnonzero((np.diff(starts) != 0) | (np.diff(counts) != 0)) + 1
        for begin, end in pairwise([0, *changes.tolist(), count]):
            if counts[begin]:
                start = int(starts[begin])
                yield slice(begin, end), slice(start, start + (int(counts[begin]) - 1) * self.step + 1, self.step)


@attrs.frozen
class Pooling:
    """The sizes, layout and operation of a pooling.

    Attributes:
        combine: the operation that combines two elements.
        padding: its neutral element.
        prepare: the operation on each element before; None for none.
        data_type: the data type to compute in.
        most_elements: the elements of scratch that the node may have.
    """

    batch: int
    channels: int
    slides: tuple[Slide, Slide]
    output_sizes: tuple[int, int]
    nchw: bool
    combine: np.ufunc
    padding: float
    prepare: np.ufunc | None
    data_type: str
    most_elements: int

    @classmethod
    def of(cls, node: Node, combine: np.ufunc, padding: float, prepare: np.ufunc | None = None) -> "Pooling":
        """Return the pooling of a node."""
        options: Any = node.options
        layout = options["layout"]
        batch, channels, *sizes = image_shape(node.operand("input").shape, layout)
        _, _, *output_sizes = image_shape(node.outputs[0].shape, layout)
        window = options["window_dimensions"] or sizes
        data_type = node.outputs[0].data_type
        working = np.dtype("float32" if data_type == "float16" else data_type)
        return cls(
            batch,
            channels,
            slides(sizes, window, options["padding"], options["strides"], options["dilations"]),
            (output_sizes[0], output_sizes[1]),
            layout == "nchw",
            combine,
            padding,
            prepare,
            working.name,
            min(TILE, allowance(node) // working.itemsize),
        )

    @property
    def is_global(self) -> bool:
        """Return whether there is one window, the whole image."""
        return all(
            slide.window == slide.size and slide.dilation == 1 and not slide.begin and output == 1
            for slide, output in zip(self.slides, self.output_sizes, strict=True)
        )

    @property
    def is_wide(self) -> bool:
        """Return whether windows span more than the image along an axis, so that most of their elements are padding."""
        return any(slide.reach > slide.size for slide in self.slides)

    def parts(self) -> tuple[Parts, Parts]:
        """Return the rows and the columns of an image that each window has."""
        rows, columns = (Parts.of(*pair) for pair in zip(self.slides, self.output_sizes, strict=True))
        return rows, columns

    def counts(self) -> tuple[Array, Array]:
        """Return the numbers of rows and of columns of the image in each window, at least 1."""
        rows, columns = (np.maximum(parts.counts, 1).astype(np.float32) for parts in self.parts())
        return rows, columns


def pool_work(node: Node) -> float:
    """Return the number of operations of a pooling node."""
    pool = Pooling.of(node, np.add, 0)
    (vertical, horizontal), (height, width) = pool.slides, pool.output_sizes
    by_plane = vertical.size * horizontal.size + height * horizontal.size * vertical.window
    return float(pool.batch * pool.channels) * (by_plane + height * width * (horizontal.window + 1))


@kernel(pooling.max_pool2d, work=pool_work)
def max_pool2d(node: Node) -> Kernel:
    data_type = np.dtype(node.outputs[0].data_type)
    lowest = -np.inf if data_type.kind == "f" else np.iinfo(data_type).min
    pool = Pooling.of(node, np.maximum, lowest)
    return whole(pool, None) if pool.is_global else windowed(pool, None)


@kernel(pooling.average_pool2d, work=pool_work)
def average_pool2d(node: Node) -> Kernel:
    pool = Pooling.of(node, np.add, 0)
    rows, columns = pool.counts()
    if (rows == rows[0]).all() and (columns == columns[0]).all():
        count = scalar(rows[0] * columns[0], "float32")

        def divide(sums: Array, _row: int) -> None:
            np.divide(sums, count, out=sums)

        return whole(pool, divide) if pool.is_global else windowed(pool, divide)
    if not pool.is_wide:  # windows in excess are divided by 1
        excess = (pool.slides[1].reach - 1) // pool.slides[1].stride
        columns = np.pad(columns, (0, excess), constant_values=1)

    def divide_each(sums: Array, row: int) -> None:
        """Divide sums of windows, from one row of them on."""
        axis = sums.ndim - 2 if pool.nchw else 0
        counts = np.multiply.outer(rows[row : row + sums.shape[axis]], columns)
        np.divide(sums, counts if pool.nchw else counts[..., None], out=sums)

    return windowed(pool, divide_each)


@kernel(pooling.l2_pool2d, work=pool_work)
def l2_pool2d(node: Node) -> Kernel:
    pool = Pooling.of(node, np.add, 0, np.square)

    def root(sums: Array, _row: int) -> None:
        np.sqrt(sums, out=sums)

    return clipped(pool, root) if pool.is_global else windowed(pool, root)


Finish = Callable[[Array, int], None]
"""Changes the results in place, given the first row of windows that they belong to."""


def whole(pool: Pooling, finish: Finish | None) -> Kernel:
    """Make the kernel for one window that is the whole image."""
    axes = (2, 3) if pool.nchw else (1, 2)

    def run(images: Array, output: Array) -> None:
        result = pool.combine.reduce(images, axis=axes, dtype=pool.data_type, keepdims=True)
        if finish is not None:
            finish(result, 0)
        np.copyto(output, result, casting="same_kind")

    return run


def clipped(pool: Pooling, finish: Finish | None) -> Kernel:
    """Make the kernel for windows that are as wide as images, or wider, which reads no padding.

    Adjacent windows with the same rows, or columns, of the image are combined once.
    """
    height, width = pool.output_sizes
    row_parts, column_parts = pool.parts()
    image_width = pool.slides[1].size
    rows = tile_size(height, pool.most_elements / (image_width + width))
    channels = tile_size(pool.channels, pool.most_elements / (rows * (image_width + width)))
    combined_rows = scratch((channels, rows, image_width), pool.data_type)
    lead, inner = ((channels,), ()) if pool.nchw else ((), (channels,))
    laid_out = scratch((*lead, rows, width, *inner), pool.data_type)
    result = laid_out if pool.nchw else laid_out.transpose(2, 0, 1)
    reduce = pool.combine.reduce
    combined: Callable[[Array], Array] = partial(reduce, axis=1, dtype=pool.data_type, keepdims=True)
    if pool.prepare is np.square:
        combined = sum_of_squares
    column_runs = list(column_parts.runs(0, width))
    tiles = [
        (*tile, list(row_parts.runs(tile[2], rows)))
        for tile in product(range(pool.batch), tile_starts(pool.channels, channels), tile_starts(height, rows))
    ]

    def run(images: Array, output: Array) -> None:
        planes, targets = (array if pool.nchw else array.transpose(0, 3, 1, 2) for array in (images, output))
        for image, channel, row, row_runs in tiles:
            here = slice(channel, channel + channels)
            plane = planes[image, here]
            combined_rows.fill(pool.padding)
            for windows, part in row_runs:
                combined_rows[:, windows] = combined(plane[:, part])
            result.fill(pool.padding)
            for windows, part in column_runs:
                result[:, :, windows] = reduce(combined_rows[:, :, part], axis=2, keepdims=True)
            if finish is not None:
                finish(laid_out, row)
            np.copyto(targets[image, here, row : row + rows], result, casting="same_kind")

    return run


def sum_of_squares(planes: Array) -> Array:
    """Return the sums of the squares of each column: [channels, 1, width]."""
    sums: Array = np.einsum("chw,chw->cw", planes, planes, dtype=np.float32, casting="same_kind")
    return sums[:, None]


def windowed(pool: Pooling, finish: Finish | None) -> Kernel:
    """Make the kernel that combines windows in tiles that stay in the cache."""
    if pool.is_wide:
        return clipped(pool, finish)
    height, width = pool.output_sizes
    rows, channels = tile_sizes(pool)
    row_starts = tile_starts(height, rows)
    tiles = list(product(range(pool.batch), tile_starts(pool.channels, channels), row_starts))
    clear, combined = tile_pooler(pool, channels, rows, row_starts)

    def run(images: Array, output: Array) -> None:
        clear()
        for image, channel, row in tiles:
            here, there = slice(channel, channel + channels), slice(row, row + rows)
            source, target = images[image], output[image]
            if pool.nchw:
                source, target = source[here], target[here]
            result = combined(source, row)
            if finish is not None:
                finish(result, row)
            if pool.nchw:
                np.copyto(target[:, there], result[..., :width], casting="same_kind")
            else:
                np.copyto(target[there], result[:, :width], casting="same_kind")

    return run


def tile_sizes(pool: Pooling) -> tuple[int, int]:
    """Return the number of rows of windows of a tile, and of its channels.

    Its elements are the padded images, the windows combined by height and by both axes, and the counts of elements.
    """
    vertical, horizontal = pool.slides
    pitch = pool.output_sizes[1] + (horizontal.reach - 1) // horizontal.stride
    column_phases = min(horizontal.stride, horizontal.window)
    padded = column_phases * min(vertical.stride, vertical.window)
    further_rows = pitch * padded * ((vertical.reach - 1) // vertical.stride)
    row = pitch * (padded + column_phases + 1)
    channels = 1 if pool.nchw else pool.channels
    rows = tile_size(pool.output_sizes[0], (pool.most_elements - channels * further_rows) / (channels * row + pitch))
    if pool.nchw:
        channels = tile_size(pool.channels, (pool.most_elements - rows * pitch) / (rows * row + further_rows))
    return rows, channels


def tile_pooler(
    pool: Pooling, channels: int, rows: int, row_starts: Sequence[int]
) -> tuple[Callable[[], None], Callable[[Array, int], Array]]:
    """Return the function that prepares the scratch, and that of images and a first row that combines windows."""
    vertical, horizontal = pool.slides
    lead, inner = ((channels,), ()) if pool.nchw else ((), (channels,))
    tile = Im2colTile(lead, inner, pool.slides, (rows, pool.output_sizes[1]), row_starts, pool.data_type, pool.padding)
    shape = (*lead, rows, tile.pitch, *inner)
    phases = sorted({j * horizontal.dilation % horizontal.stride for j in range(horizontal.window)})
    # Runs of the last row go on beyond it, by less than a row: those are windows in excess.
    memory = scratch((len(phases), prod(shape) + tile.pitch * prod(inner)), pool.data_type)
    stacks = [
        (
            [tile.rows(i, phase) for i in range(vertical.window)],
            memory[index, : prod(shape)].reshape(shape),
        )
        for index, phase in enumerate(phases)
    ]
    result = scratch(shape, pool.data_type)
    shifted = []
    for j in range(horizontal.window):
        column, phase = divmod(j * horizontal.dilation, horizontal.stride)
        begin = column * prod(inner)
        shifted.append(memory[phases.index(phase), begin : begin + prod(shape)].reshape(shape))

    def run(images: Array, row: int) -> Array:
        tile.fill(images, row, pool.prepare)
        for views, target in stacks:
            combine_all(pool.combine, views, target)
        combine_all(pool.combine, shifted, result)
        return result

    return tile.clear, run


def combine_all(combine: np.ufunc, arrays: Sequence[Array], output: Array) -> None:
    """Combine arrays element by element."""
    first, *others = arrays
    if not others:
        np.copyto(output, first)
    for other in others:
        combine(first, other, out=output)
        first = output
