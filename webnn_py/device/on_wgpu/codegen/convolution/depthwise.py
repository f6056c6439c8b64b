"""Depthwise convolutions of images whose channels come first, down columns.

An invocation computes a few neighbours of a column; neighbouring invocations read neighbouring elements, each once for
all the windows that have it.
"""

from __future__ import annotations

from typing import Final

from webnn_py.device.on_wgpu.codegen.convolution.direct import makes_nan_of_padding
from webnn_py.device.on_wgpu.codegen.convolution.shape import ConvolutionShape
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.codegen.expressions import wrapping_literal
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import Variant

ROWS: Final = 4
MORE_ROWS: Final = 8
"""Results of an invocation: more where windows are large and images, too."""

MOST_TAPS: Final = 49
"""Elements of a window, which are written out for every result."""


def reads_columns(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> bool:
    """Whether a direct convolution can be read so."""
    taps = conv.slides[0].window * conv.slides[1].window
    is_small = conv.group_inputs == 1 and 1 < taps <= MOST_TAPS
    is_single = lowering.element(conv.images).per_one == 1 and epilogue.stores_single_elements
    return conv.nchw and is_small and is_single and not makes_nan_of_padding(conv) and Variant.DEPTHWISE_COLUMNS.is_on


def emit_columns(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> None:
    """The kernel of a convolution of which :func:`reads_columns` is true."""
    element = lowering.element(conv.images)
    height, width = conv.output_sizes
    vertical, horizontal = conv.slides
    rows = rows_of(conv)
    strips = -(-height // rows)
    batch_stride, channel_stride, down, across = conv.image_layout.strides
    of_filter = conv.filter_layout
    lines = [
        f"let column = four % {width}u;",
        f"let row = four / {width}u % {strips}u * {rows}u;",
        f"let channel = four / {width * strips}u % {conv.output_channels}u;",
        f"let image = four / {width * strips * conv.output_channels}u;",
        f"let top = row * {vertical.stride}u + {wrapping_literal(-vertical.begin)};",
        f"let left = column * {horizontal.stride}u + {wrapping_literal(-horizontal.begin)};",
        f"let first = {conv.image_layout.offset}u + image * {batch_stride}u;",
        f"let plane = first + channel / {conv.group_outputs}u * {channel_stride}u;",
        f"let weights_at = {of_filter.offset}u + channel * {of_filter.strides[0]}u;",
    ]
    for v in range(vertical.window):
        for u in range(horizontal.window):
            at = f"weights_at + {v * of_filter.strides[2] + u * of_filter.strides[3]}u"
            lines.append(f"let k{v}_{u} = {element.load('weights', at)};")
    for u in range(horizontal.window):
        lines.append(f"let w{u} = left + {u * horizontal.dilation}u;")
        lines.append(f"let is_column{u} = w{u} < {horizontal.size}u;")
    lines += [f"var total{place} = 0.0;" for place in range(rows)]
    reading = rows_read(conv, rows)
    for offset, readers in reading.items():
        lines.append(f"let h{offset} = top + {offset}u;")
        lines.append(f"let is_row{offset} = h{offset} < {vertical.size}u;")
        for u in range(horizontal.window):
            inside = f"is_row{offset} && is_column{u}"
            at = f"select(0u, plane + h{offset} * {down}u + w{u} * {across}u, {inside})"
            lines.append(f"let x{offset}_{u} = select(0.0, {element.load('images', at)}, {inside});")
            lines += [f"total{place} = fma(x{offset}_{u}, k{v}_{u}, total{place});" for place, v in readers]
    for place in range(rows):
        number = conv.address("image", "channel", f"(row + {place}u)", "column")
        stored = f"finish_one({number}, total{place});"
        lines.append(stored if height % rows == 0 else f"if (row + {place}u < {height}u) {{ {stored} }}")
    count = conv.batch * conv.output_channels * strips * width
    main, workgroups = vec4_entry_point(count * WIDTH, "\n".join(f"  {line}" for line in lines))
    reads = [
        (lowering.place(conv.images).buffer, "images", element.one),
        (lowering.place(conv.filter).buffer, "weights", element.one),
    ]
    lowering.emit(epilogue.write(vec4s=False).kernel(epilogue.label, reads, [main], "", workgroups))


def rows_of(conv: ConvolutionShape) -> int:
    """Results of an invocation."""
    height = conv.output_sizes[0]
    large = conv.slides[0].window > WIDTH and height % MORE_ROWS == 0
    return MORE_ROWS if large else min(ROWS, height)


def rows_read(conv: ConvolutionShape, rows: int) -> dict[int, list[tuple[int, int]]]:
    """For each row that an invocation reads: the results that it is for, and the row of their windows that it is."""
    vertical = conv.slides[0]
    reading: dict[int, list[tuple[int, int]]] = {}
    for place in range(rows):
        for v in range(vertical.window):
            reading.setdefault(place * vertical.stride + v * vertical.dilation, []).append((place, v))
    return dict(sorted(reading.items()))
