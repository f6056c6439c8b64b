"""Convolutions in WGSL: products of the filter and of the images' windows, which are gathered while they are read."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.core.operators import convolution
from webnn_py.devices.wgpu.codegen.convolution.direct import emit_direct, emit_gather, has_long_windows, is_direct
from webnn_py.devices.wgpu.codegen.convolution.filter_packing import pack_filter
from webnn_py.devices.wgpu.codegen.convolution.shape import ConvolutionShape, forward_axis, transposed_axis
from webnn_py.devices.wgpu.codegen.convolution.winograd import emit_winograd, is_winograd
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue
from webnn_py.devices.wgpu.codegen.gemm.gemv_tiling import MOST_VECTORS
from webnn_py.devices.wgpu.codegen.gemm.im2col_loader import Im2colLoader, WindowAxis
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.operand_loader import OperandLoader
from webnn_py.devices.wgpu.codegen.gemm.pixel_loader import PixelLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.selection import emit_gemm
from webnn_py.devices.wgpu.codegen.gemm.tiled import emit_tiled_gemm
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.graph_queries import is_finite
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import kernels
from webnn_py.devices.wgpu.records.variants import KernelVariant

MOST_PHASES: Final = 2**12
"""The most phases of which each gets a filter of its own: strides of 64. Larger ones leave most of the output empty."""

WHOLE_TILE: Final = 128
"""Pixels of an image of which the largest tiles have nothing to spare."""


@kernels(convolution.conv2d)
def conv2d(node: Node, lowering: Lowering) -> None:
    conv = ConvolutionShape.from_node(node, lowering)
    epilogue = conv_epilogue(node, lowering, conv)
    if has_long_windows(conv):
        emit_gather(lowering, conv, epilogue)
        return
    if is_direct(conv):
        emit_direct(lowering, conv, epilogue)
        return
    if is_winograd(lowering, conv, epilogue):
        emit_winograd(lowering, conv, epilogue)
        return
    if conv.pixels == 1:  # then both layouts are the same, and a product may have the images for its rows
        conv = attrs.evolve(conv, nchw=False)
    filter_ = filter_matrix(lowering, conv)
    images: OperandLoader | None = pixels_of_images(lowering, conv)
    if images is None:
        axes = [forward_axis(slide, size) for slide, size in zip(conv.slides, conv.output_sizes, strict=True)]
        images = windows(lowering, conv, (axes[0], axes[1]))
    emit_sides(lowering, conv, epilogue, filter_, images)


def conv_epilogue(node: Node, lowering: Lowering, conv: ConvolutionShape) -> Epilogue:
    """Return the last step: the bias, and what follows."""
    bias = node.operands.get("bias")
    if not isinstance(bias, Value):
        return Epilogue(lowering, node)
    layout = lowering.place(bias).layout
    if conv.nchw:
        layout = Layout((*layout.shape, 1, 1), (*layout.strides, 0, 0), layout.offset)
    return Epilogue(lowering, node, [(bias, layout)], lambda total, addend: f"{total} + {addend}")


def filter_matrix(lowering: Lowering, conv: ConvolutionShape) -> MatrixLoader:
    """Return the filter: output channels, and along the inner axis height, width and input channel.

    Where it does not lie in vec4s, it is copied; only once, if it is a constant.
    """
    as_it_lies = _filter_of(lowering, conv, conv.filter_layout)
    place = lowering.place(conv.filter)
    is_dense = len(as_it_lies.inner_axis.merged().shape) <= 1
    if (as_it_lies.pattern != "scalar" and is_dense) or (
        place.buffer.kind != "constant" and as_it_lies.pattern != "scalar"
    ):
        return as_it_lies
    order = (2, 3, 1, 0) if conv.group_outputs % WIDTH == 0 else (0, 2, 3, 1)
    permuted = conv.filter_layout.permute(order)
    buffer = lowering.repacked(conv.filter, permuted)
    dense = Layout.dense(permuted.shape).permute([order.index(axis) for axis in range(4)])
    return attrs.evolve(_filter_of(lowering, conv, dense), buffer=buffer)


def _filter_of(lowering: Lowering, conv: ConvolutionShape, layout: Layout) -> MatrixLoader:
    outputs, inputs, height, width = layout.strides
    inner = Layout((*layout.shape[2:], layout.shape[1]), (height, width, inputs))
    groups = Layout((conv.groups,), (conv.group_outputs * outputs,), layout.offset)
    buffer, element = lowering.place(conv.filter).buffer, lowering.element(conv.filter)
    return MatrixLoader(buffer, element, groups, inner, conv.group_outputs, outputs)


def pixels_of_images(lowering: Lowering, conv: ConvolutionShape) -> PixelLoader | None:
    """Return the images of a pointwise convolution side by side, where tiles of each by itself would be half empty."""
    is_uneven = conv.batch > 1 and conv.pixels > MOST_VECTORS and conv.pixels % WHOLE_TILE
    if not (conv.nchw and conv.is_pointwise and is_uneven and conv.group_outputs > MOST_VECTORS):
        return None
    layout = conv.image_layout
    batch_stride, channel_stride, *strides = layout.strides
    pixels = Layout(layout.shape[2:], tuple(strides)).reshape((conv.pixels,))
    if pixels is None or not KernelVariant.GEMM_PIXELS.is_on:
        return None
    return PixelLoader(
        lowering.place(conv.images).buffer,
        lowering.element(conv.images),
        Layout((conv.groups,), (conv.group_inputs * channel_stride,), layout.offset),
        conv.batch,
        batch_stride,
        conv.pixels,
        pixels.strides[0],
        conv.group_inputs,
        channel_stride,
    )


def windows(lowering: Lowering, conv: ConvolutionShape, axes: tuple[WindowAxis, WindowAxis]) -> Im2colLoader:
    """Return the windows of the images."""
    layout = conv.image_layout
    image_stride, channel_stride, height, width = layout.strides
    return Im2colLoader(
        lowering.place(conv.images).buffer,
        lowering.element(conv.images),
        Layout((conv.groups,), (conv.group_inputs * channel_stride,), layout.offset),
        conv.batch,
        image_stride,
        conv.group_inputs,
        channel_stride,
        axes,
        (height, width),
    )


def emit_sides(
    lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue, filter_: MatrixLoader, images: OperandLoader
) -> None:
    """Write the product of a filter and of the places of images, in every group."""
    batch = conv.groups

    def channel_first(batch: str, row: str, column: str) -> str:
        image, pixel = f"{column} / {conv.pixels}u", f"{column} % {conv.pixels}u"
        channel = f"{batch} * {conv.group_outputs}u + {row}"
        return f"({image} * {conv.output_channels}u + {channel}) * {conv.pixels}u + {pixel}"

    def channel_last(batch: str, row: str, column: str) -> str:
        return f"{row} * {conv.output_channels}u + {batch} * {conv.group_outputs}u + {column}"

    if conv.nchw:
        product = GemmProblem(batch, filter_, images, channel_first, vec4s=conv.pixels % WIDTH == 0)
    else:
        vec4s = conv.group_outputs % WIDTH == 0
        row_vec4s = conv.output_channels == 1 and images.outer % WIDTH == 0
        product = GemmProblem(batch, images, filter_, channel_last, vec4s, row_vec4s)
    emit_gemm(lowering, product, epilogue)


@kernels(convolution.conv_transpose2d)
def conv_transpose2d(node: Node, lowering: Lowering) -> None:
    conv = ConvolutionShape.from_node(node, lowering)
    epilogue = conv_epilogue(node, lowering, conv)
    if (
        is_direct(conv) or has_long_windows(conv) or conv.phases > MOST_PHASES or is_finite(conv.filter) is False
    ):  # a product would make NaN of zeros between and around images
        emit_gather(lowering, conv, epilogue, transposed=True)
        return
    (vertical, rows, row_step), (horizontal, columns, column_step) = (
        transposed_axis(slide, size) for slide, size in zip(conv.slides, conv.output_sizes, strict=True)
    )
    axes = (vertical, horizontal)
    filter_ = pack_filter(lowering, conv, axes, (rows, columns), (row_step, column_step))
    images = windows(lowering, conv, axes)
    phases = (vertical.phases, horizontal.phases)
    outputs = (vertical.outputs, horizontal.outputs)

    def places(batch: str, window: str) -> tuple[str, str, str]:
        """Return the image, row and column of the output."""
        pixel = f"({window}) % {outputs[0] * outputs[1]}u"
        row = f"({pixel} / {outputs[1]}u * {phases[0]}u + {batch} / {phases[1]}u % {phases[0]}u)"
        column = f"({pixel} % {outputs[1]}u * {phases[1]}u + {batch} % {phases[1]}u)"
        return f"({window}) / {outputs[0] * outputs[1]}u", row, column

    def address(batch: str, row: str, column: str) -> str:
        window, channel = (column, row) if conv.nchw else (row, column)
        group = f"{batch} / {phases[0] * phases[1]}u"
        image, place_row, place_column = places(batch, window)
        return conv.address(image, f"({group} * {conv.group_outputs}u + {channel})", place_row, place_column)

    def is_there(batch: str, row: str, column: str) -> str:
        _, place_row, place_column = places(batch, column if conv.nchw else row)
        return f"{place_row} < {conv.output_sizes[0]}u && {place_column} < {conv.output_sizes[1]}u"

    batch = conv.groups * phases[0] * phases[1]
    whole = all(size % count == 0 for size, count in zip(conv.output_sizes, phases, strict=True))
    if conv.nchw:
        vec4s = phases[1] == 1 and (conv.output_sizes[1] % WIDTH == 0 or (phases[0] == 1 and conv.pixels % WIDTH == 0))
        product = GemmProblem(batch, filter_, images, address, vec4s, is_there=None if whole else is_there)
    else:
        vec4s = conv.group_outputs % WIDTH == 0
        product = GemmProblem(batch, images, filter_, address, vec4s, is_there=None if whole else is_there)
    emit_tiled_gemm(lowering, product, epilogue)
