"""Convolutions on arrays."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import convolution
from webnn_py.core.operators.windows import Slide
from webnn_py.devices.numpy.routines.blas import for_blas, matrix_product
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.depthwise import has_overlapping_rows, overlapping_rows
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.routines.im2col import PRODUCT_TILE, Im2col, one_by_one
from webnn_py.devices.numpy.routines.long_windows import has_long_windows, long_windows
from webnn_py.devices.numpy.routines.tiling import inside, steps_of, tile_size
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, kernel


def multiply_adds(node: Node) -> float:
    """Return the multiply-adds: one for each element of the output and each element that it sums over."""
    return Convolution.from_node(node).multiply_adds


def transposed_multiply_adds(node: Node) -> float:
    """Return the multiply-adds: one for each element of the input and each element that it is added to."""
    conv = Convolution.from_node(node)
    return float(node.operand("input").element_count * conv.group_outputs * conv.tap_count)


@kernel(convolution.conv2d, work=multiply_adds)
def conv2d(node: Node) -> Kernel:
    conv = Convolution.from_node(node)
    if conv.is_one_by_one:
        return one_by_one(conv)
    if has_long_windows(conv):
        return conv.upright(long_windows(conv))
    return conv.upright(overlapping_rows(conv) if has_overlapping_rows(conv) else PreparedKernel(Im2col(conv).prepare))


@kernel(convolution.conv_transpose2d, work=transposed_multiply_adds)
def conv_transpose2d(node: Node) -> Kernel:
    """Multiply rows of the images by the filter, then add the products of the same place."""
    conv = Convolution.from_node(node)
    vertical, horizontal = conv.slides
    most = min(PRODUCT_TILE, conv.most_elements)
    rows = tile_size(vertical.size, most / (conv.output_channels * conv.tap_count * horizontal.size))
    memory = scratch(conv.output_channels * conv.tap_count * rows * horizontal.size)
    in_float16 = conv.data_type == "float16"
    sums = scratch((conv.groups, conv.group_outputs if in_float16 else 0, *conv.output_sizes))
    columns_landing = list(landings(horizontal, (0, horizontal.size), conv.output_sizes[1]))
    tiles = []
    for row in range(0, vertical.size, rows):
        part = slice(row, min(row + rows, vertical.size))
        products = memory[: memory.size * (part.stop - row) // rows]
        shape = (conv.groups, conv.group_outputs, vertical.window, horizontal.window, part.stop - row, horizontal.size)
        tiles.append((part, products.reshape(shape), list(landings(vertical, (row, part.stop), conv.output_sizes[0]))))

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias, output = conv.bias(rest), conv.by_group(rest[-1])
        factors = float32(filter_.transpose([conv.filter_layout.index(axis) for axis in "iohw"]))
        matrices = for_blas(factors.reshape(conv.groups, conv.group_inputs, -1).swapaxes(1, 2))
        for image, target in zip(conv.by_group(images), output, strict=True):
            total = sums if in_float16 else target
            total[...] = 0 if bias is None else bias
            for part, products, rows_landing in tiles:
                columns = float32(image[:, :, part])
                columns = for_blas(columns.reshape(*columns.shape[:2], -1))
                matrix_product(matrices, columns, products.reshape(conv.groups, -1, columns.shape[2]))
                add_landed(products, rows_landing, columns_landing, total)
            if in_float16:
                narrow(total, target)

    return conv.upright(PreparedKernel(lambda *arrays: partial(run, *arrays)))


Landing = tuple[slice, int | slice, int | slice]
"""Places along an axis of the output, and the elements of the window and the positions of the input that reach them.

Either one element or one position reaches them all.
"""


def add_landed(places: Array, row_landings: list[Landing], column_landings: list[Landing], total: Array) -> None:
    """Add products, [groups, outputs, *window, rows, columns], to the places of the output where they land."""
    by_axis = places.transpose(0, 1, 2, 4, 3, 5)
    for (to_rows, i, from_rows), (to_columns, j, from_columns) in product(row_landings, column_landings):
        place = total[:, :, to_rows, to_columns]
        np.add(place, by_axis[:, :, i, from_rows, j, from_columns], out=place)


def landings(slide: Slide, there: tuple[int, int], size: int) -> Iterator[Landing]:
    """Yield how a range of input positions lands in an output of some size, along one axis.

    Iterates over the elements of the window or over the positions, whichever are fewer: each takes a numpy call.
    Positions are counted from the start of the range.
    """
    first, count = there[0] * slide.stride - slide.begin, there[1] - there[0]
    by_element = slide.window <= count
    steps, apart = (slide.window, slide.dilation) if by_element else (count, slide.stride)
    length, stride = (count, slide.stride) if by_element else (slide.window, slide.dilation)
    for number in range(steps):
        begin, end = inside(first + number * apart, stride, length, size)
        if begin < end:
            others = slice(begin, end)
            to = steps_of(first + number * apart, stride, begin, end)
            yield (to, number, others) if by_element else (to, others, number)
