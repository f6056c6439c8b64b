"""Convolutions as matrix products: the filter times a matrix with a column for each window, tile by tile."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final, Self

import attrs
import numpy as np
from numpy.lib.stride_tricks import as_strided

from webnn_py.devices.numpy.routines.blas import for_blas, is_for_blas, matrix_product, prepared_product
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.float16 import narrow
from webnn_py.devices.numpy.routines.tiling import inside, steps_of, tile_size, tile_starts
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, PreparedKernel, Run, in_order

PRODUCT_TILE: Final = 2**19
"""The most elements of the windows of a tile for matrix products: BLAS is faster with fewer tiles."""

VECTOR_TILE: Final = 3 * 2**16
"""The most elements where a group has few outputs: BLAS is bound by memory, so a tile must fit in cache."""

CHANNELS_IN_LINE: Final = 16
"""The float32 channels of one pixel of nhwc images in a cache line."""


@attrs.frozen
class Tiles:
    """The tiles of one size into which a convolution is cut.

    Attributes:
        images: the images of a tile.
        groups: the groups of a tile.
        rows: the rows of windows of a tile.
        starts: each tile's first image, group and row.
    """

    images: int
    groups: int
    rows: int
    starts: list[tuple[int, int, int]]

    @classmethod
    def from_convolution(cls, conv: Convolution) -> Self:
        """Return tiles that fit into the scratch, of whole images if possible."""
        height = conv.output_sizes[0]
        most = min(VECTOR_TILE if conv.has_few_outputs else PRODUCT_TILE, conv.most_elements)
        least_groups = 1 if conv.layout == "nchw" else min(conv.groups, -(-CHANNELS_IN_LINE // conv.group_inputs))
        row = conv.tile_elements(2) - conv.tile_elements(1)
        rows = tile_size(height, (most / least_groups - conv.tile_elements(1)) / row + 1)
        fitting = most / conv.tile_elements(rows)
        groups = tile_size(conv.groups, max(fitting, least_groups))
        images = tile_size(conv.batch, fitting / groups) if rows == height and groups == conv.groups else 1
        starts = product(tile_starts(conv.batch, images), tile_starts(conv.groups, groups), tile_starts(height, rows))
        return cls(images, groups, rows, list(starts))


def one_by_one(conv: Convolution) -> PreparedKernel:
    """Make the kernel for float32 and windows of one element: the images themselves are the matrices."""

    def prepare(images: Array, filter_: Array, *rest: Array) -> Run:
        columns, output = conv.by_group(images), conv.by_group(rest[-1])
        result = output.reshape(*output.shape[:3], -1, copy=False)
        filters, matrices = conv.filter_view(filter_), as_matrices(columns)
        if filters is None or matrices is None:
            runs: list[Run] = [partial(multiply_copies, columns, filter_, result)]
        else:
            runs = [prepared_product(filters, matrices, result)]
        if conv.has_bias:
            runs.append(partial(np.add, output, conv.bias(rest), output))
        return in_order(runs)

    def multiply_copies(columns: Array, filter_: Array, result: Array) -> None:
        matrices = for_blas(columns.reshape(*columns.shape[:3], -1))
        matrix_product(conv.filter_matrices(filter_), matrices, result)

    return PreparedKernel(prepare)


def as_matrices(columns: Array) -> Array | None:
    """Return images as matrices that BLAS takes, without a copy; None where that is impossible."""
    try:
        matrices = columns.reshape(*columns.shape[:3], -1, copy=False)
    except ValueError:  # a view whose rows do not merge
        return None
    return matrices if is_for_blas(matrices) else None


class Im2col:
    """Copies the windows of a tile into matrices, and multiplies the filter by them.

    nhwc images are viewed as nchw images with another memory layout.
    """

    def __init__(self, conv: Convolution) -> None:
        self._conv = conv
        self._tiles = tiles = Tiles.from_convolution(conv)
        rows, width = tiles.rows, conv.output_sizes[1]
        stack = (tiles.images, tiles.groups)
        self._patches = scratch((*stack, conv.group_inputs * conv.tap_count, rows * width))
        self._windows = windows_in(conv, self._patches.reshape(*stack, -1, rows, width))
        self._in_float16 = conv.data_type == "float16"
        self._results = scratch((*stack, conv.group_outputs if self._in_float16 else 0, rows, width))
        self._channels = tiles.groups * conv.group_inputs
        self._padded = scratch(
            (tiles.images, self._channels, *conv.spans(rows)) if conv.needs_padded_copy else (0,) * 4
        )
        self._padded_windows = windows_of(conv, self._padded, rows)

    def prepare(self, images: Array, filter_: Array, *rest: Array) -> Run:
        """Return the convolution with its arrays bound; a filter that must be copied is so at each call."""
        filters = self._conv.filter_view(filter_)
        if filters is None:
            return partial(self._run_with_copy, images, filter_, rest)
        return in_order([*self._steps(images, filters, rest)])

    def _run_with_copy(self, images: Array, filter_: Array, rest: tuple[Array, ...]) -> None:
        for step in self._steps(images, self._conv.filter_matrices(filter_), rest):
            step()

    def _steps(self, images: Array, filters: Array, rest: tuple[Array, ...]) -> Iterator[Run]:
        conv, tiles = self._conv, self._tiles
        planes, bias, output = conv.planes(images), conv.bias(rest), conv.by_group(rest[-1])
        if conv.needs_padded_copy:
            begin, end = columns_inside(conv, self._padded)
            yield from blanked(self._padded[..., :begin], self._padded[..., end:])
        for image, group, row in tiles.starts:
            here, groups = slice(image, image + tiles.images), slice(group, group + tiles.groups)
            first = group * conv.group_inputs
            yield from self._copy(planes[here, first : first + self._channels], row)
            region = output[here, groups, :, row : row + tiles.rows]
            target = self._results if self._in_float16 else region
            result = target.reshape(*target.shape[:3], -1, copy=False)
            yield prepared_product(filters[groups], self._patches, result)
            if bias is not None:
                yield partial(np.add, target, bias[groups], target)
            if self._in_float16:
                yield partial(narrow, target, region)

    def _copy(self, planes: Array, row: int) -> Iterator[Run]:
        """Yield what copies the windows of the tile from a row on, given its images and channels."""
        conv, rows = self._conv, self._tiles.rows
        if conv.is_spread:
            yield from copy_by_element(conv, planes, row, self._windows)
        elif conv.needs_padded_copy:
            yield from copy_padded(conv, planes, row, self._padded)
            yield partial(np.copyto, self._windows, self._padded_windows)
        else:
            top = row * conv.slides[0].stride
            source = planes[:, :, top : top + conv.spans(rows)[0]]
            yield partial(np.copyto, self._windows, windows_of(conv, source, rows))


def windows_in(conv: Convolution, patches: Array) -> Array:
    """Return a view of matrices, [images, groups, -1, rows, columns], that has the axes of :func:`windows_of`."""
    height, width = (slide.window for slide in conv.slides)
    lead, places = patches.shape[:2], patches.shape[3:]
    if conv.is_window_first:
        return patches.reshape(*lead, height, width, -1, *places).transpose(0, 1, 4, 2, 3, 5, 6)
    return patches.reshape(*lead, -1, height, width, *places)


def windows_of(conv: Convolution, planes: Array, rows: int) -> Array:
    """Return the windows as a view: [images, groups, channels of a group, *window, rows, columns]."""
    vertical, horizontal = conv.slides
    to_image, to_channel, to_row, to_column = planes.strides
    groups = planes.shape[1] // conv.group_inputs
    shape = (len(planes), groups, conv.group_inputs, vertical.window, horizontal.window, rows, conv.output_sizes[1])
    of_window = vertical.dilation * to_row, horizontal.dilation * to_column
    of_windows = vertical.stride * to_row, horizontal.stride * to_column
    strides = (to_image, conv.group_inputs * to_channel, to_channel, *of_window, *of_windows)
    return as_strided(planes, shape, strides)


def blanked(*parts: Array) -> Iterator[Run]:
    """Yield what fills those of the parts that have elements with zeros."""
    for part in parts:
        if part.size:
            yield partial(part.fill, 0)


def columns_inside(conv: Convolution, padded: Array) -> tuple[int, int]:
    """Return the range of the columns of a padded copy that are not padding."""
    horizontal, width = conv.slides[1], padded.shape[3]
    return min(horizontal.begin, width), min(horizontal.begin + horizontal.size, width)


def copy_padded(conv: Convolution, planes: Array, row: int, padded: Array) -> Iterator[Run]:
    """Yield what copies the rows that a tile from a row of windows on spans, and the padding above and below."""
    vertical, span = conv.slides[0], padded.shape[2]
    top = row * vertical.stride - vertical.begin
    first, last = inside(top, 1, span, vertical.size)
    begin, end = columns_inside(conv, padded)
    yield from blanked(padded[:, :, :first], padded[:, :, last:])
    if first < last and begin < end:
        rows = planes[:, :, top + first : top + last, : end - begin]
        yield partial(np.copyto, padded[:, :, first:last, begin:end], rows)


def copy_by_element(conv: Convolution, planes: Array, row: int, windows: Array) -> Iterator[Run]:
    """Yield what copies each element of the windows of a tile: what they span may be far larger than they are."""
    (vertical, horizontal), (rows, columns) = conv.slides, windows.shape[5:]
    planes = planes.reshape(len(planes), -1, conv.group_inputs, *planes.shape[2:])
    for i, j in product(range(vertical.window), range(horizontal.window)):
        top = (row * vertical.stride) + i * vertical.dilation - vertical.begin
        left = j * horizontal.dilation - horizontal.begin
        first, last = inside(top, vertical.stride, rows, vertical.size)
        begin, end = inside(left, horizontal.stride, columns, horizontal.size)
        target = windows[:, :, :, i, j]
        if (last - first) * (end - begin) < rows * columns:
            yield partial(target.fill, 0)
        if first < last and begin < end:
            here = steps_of(top, vertical.stride, first, last), steps_of(left, horizontal.stride, begin, end)
            yield partial(np.copyto, target[..., first:last, begin:end], planes[..., *here])
