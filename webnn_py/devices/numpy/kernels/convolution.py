"""Convolutions on arrays."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import gcd, prod
from typing import Final

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import convolution
from webnn_py.core.operators.windows import Slide
from webnn_py.devices.numpy.routines.blas import for_blas, matrix_product
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.depthwise import has_overlapping_rows, overlapping_rows
from webnn_py.devices.numpy.routines.few_windows import few_windows, has_few_windows
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.routines.im2col import PRODUCT_TILE, im2col_planes
from webnn_py.devices.numpy.routines.tiling import inside, inside_of_windows, steps_of, tile_size, tile_starts
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, Kernel, kernel

LONG_WINDOW: Final = 2**8
LONGER: Final = 4
"""The ratio of elements of a window to places of an image from which on most elements meet padding."""


def multiply_adds(node: Node) -> float:
    """Return the multiply-adds: one for each element of the output and each element that it sums over."""
    return Convolution.of(node).multiply_adds


def transposed_multiply_adds(node: Node) -> float:
    """Return the multiply-adds: one for each element of the input and each element that it is added to."""
    conv = Convolution.of(node)
    return float(node.operand("input").element_count * conv.group_outputs * conv.tap_count)


@kernel(convolution.conv2d, work=multiply_adds)
def conv2d(node: Node) -> Kernel:
    conv = Convolution.of(node)
    if has_long_windows(conv):
        return conv.upright(scattered(conv))
    return conv.upright(as_products(conv))


def has_long_windows(conv: Convolution) -> bool:
    """Return whether windows have far more elements than images have places, so that most would meet padding."""
    return conv.tap_count >= max(LONG_WINDOW, LONGER * prod(slide.size for slide in conv.slides))


def scattered(conv: Convolution) -> Kernel:
    """Return the kernel that multiplies the filter by the places of images, and adds the products to the results.

    It computes nothing for padding, where infinities and NaN in the filter give NaN; these are added afterwards.
    """
    convolve = spread_out(attrs.evolve(conv, filter_layout="iohw"), is_transposed=False)
    order = [conv.filter_layout.index(axis) for axis in "oihw"]

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        filters = filter_.transpose(order)
        by_group = filters.reshape(conv.groups, conv.group_outputs, *filters.shape[1:]).swapaxes(1, 2)
        convolve(images, by_group.reshape(conv.input_channels, conv.group_outputs, *filters.shape[2:]), *rest)
        is_strange: Array = np.logical_not(np.isfinite(filters).all(1))
        if is_strange.any():
            output = rest[-1] if conv.layout == "nchw" else rest[-1].transpose(0, 3, 1, 2)
            np.copyto(output, np.nan, where=meets_padding(conv, is_strange))

    return run


def meets_padding(conv: Convolution, is_strange: Array) -> Array:
    """Return which windows have marked elements in the padding: [output channels, rows, columns].

    Args:
        conv: the convolution.
        is_strange: the marked elements: [output channels, height and width of a window].
    """
    sums = np.zeros([size + 1 if axis else size for axis, size in enumerate(is_strange.shape)], np.int64)
    np.cumsum(is_strange.cumsum(1), 2, out=sums[:, 1:, 1:])
    (top, bottom), (left, right) = (
        inside_of_windows(slide, count) for slide, count in zip(conv.slides, conv.output_sizes, strict=True)
    )
    rows = sums[:, bottom] - sums[:, top]
    is_met: Array = rows[:, :, right] - rows[:, :, left] < sums[:, -1:, -1:]
    return is_met


def as_products(conv: Convolution) -> Kernel:
    """Make the kernel that multiplies matrices, for images that are not turned."""
    if has_overlapping_rows(conv):
        return overlapping_rows(conv)
    return few_windows(conv) if has_few_windows(conv) else im2col_planes(conv)


@kernel(convolution.conv_transpose2d, work=transposed_multiply_adds)
def conv_transpose2d(node: Node) -> Kernel:
    """Multiply all elements by the filter, then add the products of the same place."""
    conv = Convolution.of(node)
    return conv.upright(spread_out(conv, is_transposed=True))


def spread_out(conv: Convolution, *, is_transposed: bool) -> Kernel:
    """Return the kernel, which computes some output channels of each group at a time, in tiles of rows."""
    spread = Spread(conv, landings if is_transposed else forward_landings)
    height, width = conv.output_sizes
    in_float32, nchw = conv.data_type == "float32", conv.layout == "nchw"
    rows = height if in_float32 else tile_size(height, conv.copied_elements / (width * conv.groups * spread.outputs))
    shape = (conv.groups, spread.outputs, 0 if in_float32 else rows, width)
    sums = scratch(shape) if nchw else scratch((*shape[2:], *shape[:2])).transpose(2, 3, 0, 1)
    tiles = [(slice(row, row + rows), list(spread.steps(row, rows))) for row in tile_starts(height, rows)]
    blocks = [slice(start, start + spread.outputs) for start in tile_starts(conv.group_outputs, spread.outputs)]

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias = float32(rest[0]) if conv.has_bias else np.zeros(conv.output_channels, np.float32)
        biases = bias.reshape(conv.groups, -1, 1, 1)
        output = rest[-1] if nchw else rest[-1].transpose(0, 3, 1, 2)
        by_group = output.reshape(conv.batch, conv.groups, conv.group_outputs, height, width, copy=False)
        for block in blocks:
            matrices = spread.matrices(filter_, block)
            for image, result in product(range(conv.batch), tiles):
                where, steps = result
                target = by_group[image, :, block, where]
                total = target if in_float32 else sums
                np.copyto(total, biases[:, block])
                for step in steps:
                    step(images[image], matrices, total)
                if not in_float32:
                    narrow(total, target)

    return run


Landing = tuple[slice, int | slice, int | slice]
"""Places along an axis of the output, and the elements of the window and the positions of the input that reach them.

Either one element or one position reaches them all.
"""

Land = Callable[[Slide, tuple[int, int], tuple[int, int]], Iterator[Landing]]
"""Yields how a range of input positions lands in a range of the output, counted from the starts of the ranges."""


class Spread:
    """The products of rows of an image and the filter, before they are added.

    Args:
        conv: the convolution.
        land: yields the places of the products.

    Attributes:
        outputs: the output channels of each group that are computed at a time.
    """

    def __init__(self, conv: Convolution, land: Land) -> None:
        self._conv = conv
        self._land = land
        nchw = conv.layout == "nchw"
        self._is_copied = conv.data_type != "float32" or not (nchw or conv.filter_layout == "hwoi")
        self._channels_first = nchw and (self._is_copied or conv.filter_layout != "hwoi")
        self.outputs = conv.group_outputs
        if self._is_copied:
            self.outputs = tile_size(conv.group_outputs, conv.copied_elements / (conv.input_channels * conv.tap_count))
        window = tuple(slide.window for slide in conv.slides)
        self._shape = (self.outputs, *window) if self._channels_first else (*window, self.outputs)
        self._filter = scratch((conv.groups if self._is_copied else 0, *self._shape, conv.group_inputs))
        in_float32 = conv.data_type == "float32"
        most = conv.most_elements - self._filter.size - (0 if in_float32 else conv.copied_elements)
        spread = conv.groups * prod(self._shape)
        columns = conv.slides[1].size * (spread + (0 if in_float32 else conv.input_channels))
        self._rows = tile_size(conv.slides[0].size, min(PRODUCT_TILE, most) / columns)
        self._products = scratch(spread * self._rows * conv.slides[1].size)
        horizontal = conv.slides[1]
        self._column_landings = list(land(horizontal, (0, horizontal.size), (0, conv.output_sizes[1])))

    def matrices(self, filter_: Array, block: slice) -> Array:
        """Return the factors of one element of the input: [groups, …, input channels]."""
        conv = self._conv
        if not self._is_copied and conv.filter_layout == "iohw":
            return for_blas(filter_.reshape(conv.groups, conv.group_inputs, -1).swapaxes(1, 2))
        if not self._is_copied:
            return for_blas(filter_.reshape(-1, conv.groups, conv.group_inputs).swapaxes(0, 1))
        axes = "ohwi" if self._channels_first else "hwoi"
        part = filter_.transpose([conv.filter_layout.index(axis) for axis in axes])
        part = part[block] if self._channels_first else part[:, :, block]
        np.copyto(self._filter, part.reshape(*self._shape, conv.groups, -1, copy=False).transpose(3, 0, 1, 2, 4))
        return self._filter.reshape(conv.groups, -1, conv.group_inputs)

    def steps(self, row: int, count: int) -> Iterator[Callable[[Array, Array, Array], None]]:
        """Yield the steps for ``count`` rows of the output from ``row``: functions of image, matrices and output."""
        vertical = self._conv.slides[0]
        for start in range(0, vertical.size, self._rows):
            stop = min(start + self._rows, vertical.size)
            row_landings = list(self._land(vertical, (start, stop), (row, row + count)))
            if row_landings:
                yield partial(self._step, slice(start, stop), row_landings)

    def _step(self, where: slice, row_landings: list[Landing], image: Array, matrices: Array, output: Array) -> None:
        """Multiply some rows of the image by the matrices, and add the products to the output, by group and channel."""
        conv = self._conv
        pixels = (where.stop - where.start, conv.slides[1].size)
        products = self._products[: conv.groups * prod(self._shape) * prod(pixels)]
        if conv.layout == "nchw":
            columns = float32(image[:, where]).reshape(conv.groups, conv.group_inputs, -1)
            matrix_product(matrices, for_blas(columns), products.reshape(conv.groups, -1, prod(pixels)))
            places = products.reshape(conv.groups, *self._shape, *pixels)
        else:
            rows = float32(image[where]).reshape(-1, conv.groups, conv.group_inputs).swapaxes(0, 1)
            matrix_product(for_blas(rows), matrices.swapaxes(1, 2), products.reshape(conv.groups, prod(pixels), -1))
            places = products.reshape(conv.groups, *pixels, *self._shape).transpose(0, 3, 4, 5, 1, 2)
        if self._channels_first:
            places = places.transpose(0, 2, 3, 1, 4, 5)
        places = places.transpose(0, 3, 1, 4, 2, 5)
        for (to_rows, i, from_rows), (to_columns, j, from_columns) in product(row_landings, self._column_landings):
            place = output[:, :, to_rows, to_columns]
            np.add(place, places[:, :, i, from_rows, j, from_columns], out=place)


def landings(slide: Slide, there: tuple[int, int], here: tuple[int, int]) -> Iterator[Landing]:
    """Yield how a range of input positions lands in a range of the output, along one axis.

    Iterates over the elements of the window or over the positions, whichever are fewer: each takes a numpy call. Places
    and positions are counted from the starts of the ranges.
    """
    first, count = there[0] * slide.stride - slide.begin - here[0], there[1] - there[0]
    by_element = slide.window <= count
    steps, apart = (slide.window, slide.dilation) if by_element else (count, slide.stride)
    length, stride = (count, slide.stride) if by_element else (slide.window, slide.dilation)
    for number in range(steps):
        begin, end = inside(first + number * apart, stride, length, here[1] - here[0])
        if begin < end:
            others = slice(begin, end)
            to = steps_of(first + number * apart, stride, begin, end)
            yield (to, number, others) if by_element else (to, others, number)


def forward_landings(slide: Slide, there: tuple[int, int], here: tuple[int, int]) -> Iterator[Landing]:
    """Yield the windows that read each position of the input, and with which of their elements, along one axis."""
    common = gcd(slide.stride, slide.dilation)
    apart, back = slide.dilation // common, slide.stride // common  # from one such window to the next
    for number in range(there[1] - there[0]):
        place, rest = divmod(there[0] + number + slide.begin - here[0] * slide.stride, common)
        if rest:
            continue
        first = place * pow(back, -1, apart) % apart  # the first window, had windows elements without end
        element = (place - first * back) // apart
        begin = max(0, -((slide.window - 1 - element) // back))
        end = min(-((first - here[1] + here[0]) // apart), element // back + 1)
        if begin < end:
            stop = element - (end - 1) * back - 1
            elements = slice(element - begin * back, stop if stop >= 0 else None, -back)
            yield steps_of(first, apart, begin, end), elements, number
