"""Convolutions of 3 × 3 by Winograd's F(4×4, 3×3): a quarter of the multiplications, in three kernels.

Images are cut into tiles of 4 × 4 results. What a tile reads, 6 × 6 elements of a channel, is transformed into 36
numbers; for each of them a product of matrices sums up over the channels; and its results are transformed into the
tile. The filter is transformed when the graph is built. All of that is float32.

A result is off by up to 2⁻²⁰ of the largest sum of its products' absolute values. Tiles mix their inputs: an infinity
or NaN makes NaN of all 16 results of a tile that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self

import attrs

from webnn_py.device.on_wgpu.codegen.convolution.shape import ConvolutionShape
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue, EpilogueCode
from webnn_py.device.on_wgpu.codegen.expressions import wrapping_literal
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_plan import TilePlan
from webnn_py.device.on_wgpu.codegen.gemm.tile_search import choose_tile
from webnn_py.device.on_wgpu.codegen.gemm.tiled import TiledGemmWriter
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import Variant

OUTPUTS: Final = 4
"""Results of a tile along each axis."""

INPUTS: Final = 6
"""Elements that these read along each axis."""

WINDOW: Final = 3

LEAST_CHANNELS: Final = 64
LEAST_PRODUCTS: Final = 2**29
"""Multiplications and additions of the plain way: with fewer, three kernels take longer than one."""

MOST_BYTES: Final = 2**27
"""Of the numbers between two kernels, which every adapter binds; of several images, some at a time."""


def is_winograd(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> bool:
    """Whether a convolution is one that gains by it."""
    plain = all(slide.window == WINDOW and slide.stride == slide.dilation == 1 for slide in conv.slides)
    if not (plain and conv.nchw and conv.groups == 1 and lowering.place(conv.filter).buffer.kind == "constant"):
        return False
    channels = conv.group_inputs, conv.output_channels
    if min(channels) < LEAST_CHANNELS or any(count % WIDTH for count in channels):
        return False
    products = conv.batch * conv.pixels * channels[0] * channels[1] * WINDOW**2
    stores = epilogue.stores_single_elements or conv.output_sizes[1] % WIDTH == 0
    fits = INPUTS**2 * channels[0] * channels[1] * 4 <= MOST_BYTES and images_at_once(conv) > 0
    return products >= LEAST_PRODUCTS and stores and fits and Variant.WINOGRAD.is_on


def emit_winograd(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> None:
    """The kernels of a convolution of which :func:`is_winograd` is true."""
    filter_ = _emit_filter(lowering, conv, epilogue.label)
    code = epilogue.write(vec4s=conv.output_sizes[1] % WIDTH == 0)
    at_once = images_at_once(conv)
    for first in range(0, conv.batch, at_once):
        part = ImagePart.of(conv, first, min(at_once, conv.batch - first))
        images = _emit_images(lowering, conv, part, epilogue.label)
        products = _emit_products(lowering, conv, part.columns, filter_, images, epilogue.label)
        _emit_results(lowering, conv, part, products, code, epilogue.label)


def images_at_once(conv: ConvolutionShape) -> int:
    """So many images have their numbers between the kernels in one buffer; 0 if one image has too many."""
    down, across = (-(-size // OUTPUTS) for size in conv.output_sizes)
    each = INPUTS**2 * max(conv.group_inputs, conv.output_channels) * 4
    return min(conv.batch, (MOST_BYTES // each - WIDTH) // (down * across))


@attrs.frozen
class ImagePart:
    """Images that are computed together.

    Attributes:
        first: the number of the first one.
        down: tiles of an image, along its height.
        across: tiles of an image, along its width.
        tiles: tiles of all.
    """

    first: int
    down: int
    across: int
    tiles: int

    @classmethod
    def of(cls, conv: ConvolutionShape, first: int, count: int) -> Self:
        """So many images of a convolution from one on."""
        down, across = (-(-size // OUTPUTS) for size in conv.output_sizes)
        return cls(first, down, across, count * down * across)

    @property
    def columns(self) -> int:
        """Tiles in whole vec4s."""
        return -(-self.tiles // WIDTH) * WIDTH

    def image(self) -> str:
        """The statement that names the ``image`` of the tile ``number``."""
        return f"let image = number / {self.down * self.across}u{f' + {self.first}u' if self.first else ''};"


# --- transformations ---------------------------------------------------------------------------------------------


def of_filter(g: Sequence[str]) -> list[str]:
    """Six numbers for three of the filter."""
    a, b, c = g
    return [
        f"{a} * 0.25",
        f"({a} + {b} + {c}) * {-1 / 6}",
        f"({a} - {b} + {c}) * {-1 / 6}",
        f"({a} * 0.25 + {b} * 0.5 + {c}) * {1 / 6}",
        f"({a} * 0.25 - {b} * 0.5 + {c}) * {1 / 6}",
        c,
    ]


def of_images(d: Sequence[str]) -> list[str]:
    """Six numbers for six elements of the images."""
    return [
        f"fma({d[0]}, 4.0, fma({d[2]}, -5.0, {d[4]}))",
        f"fma({d[2]}, -4.0, {d[4]}) + fma({d[1]}, -4.0, {d[3]})",
        f"fma({d[2]}, -4.0, {d[4]}) - fma({d[1]}, -4.0, {d[3]})",
        f"fma({d[3]} - {d[1]}, 2.0, {d[4]} - {d[2]})",
        f"fma({d[3]} - {d[1]}, -2.0, {d[4]} - {d[2]})",
        f"fma({d[1]}, 4.0, fma({d[3]}, -5.0, {d[5]}))",
    ]


def of_products(m: Sequence[str]) -> list[str]:
    """Four results for six sums of products."""
    return [
        f"{m[0]} + ({m[1]} + {m[2]}) + ({m[3]} + {m[4]})",
        f"fma({m[3]} - {m[4]}, 2.0, {m[1]} - {m[2]})",
        f"fma({m[3]} + {m[4]}, 4.0, {m[1]} + {m[2]})",
        f"fma({m[3]} - {m[4]}, 8.0, {m[1]} - {m[2]}) + {m[5]}",
    ]


def _both_ways(transform: Callable[[Sequence[str]], list[str]], size: int, results: int) -> list[str]:
    """Statements that transform ``x{row}_{column}`` along columns, then along rows, into ``z{row}_{column}``."""
    lines = []
    for column in range(size):
        along = transform([f"x{row}_{column}" for row in range(size)])
        lines += [f"let y{row}_{column} = {value};" for row, value in enumerate(along)]
    for row in range(results):
        along = transform([f"y{row}_{column}" for column in range(size)])
        lines += [f"let z{row}_{column} = {value};" for column, value in enumerate(along)]
    return lines


# --- kernels -----------------------------------------------------------------------------------------------------


def _emit_filter(lowering: Lowering, conv: ConvolutionShape, label: str) -> Buffer:
    """The filter transformed: 36 matrices of input and output channels."""
    inputs, outputs = conv.group_inputs, conv.output_channels
    place, element, layout = lowering.place(conv.filter), lowering.element(conv.filter), conv.filter_layout
    target = lowering.derived(place.buffer, INPUTS**2 * inputs * outputs * 4)
    lines = [f"let output = four % {outputs}u;", f"let input = four / {outputs}u;"]
    lines.append(f"let first = {layout.offset}u + output * {layout.strides[0]}u + input * {layout.strides[1]}u;")
    for row in range(WINDOW):
        for column in range(WINDOW):
            at = f"first + {row * layout.strides[2] + column * layout.strides[3]}u"
            lines.append(f"let x{row}_{column} = {element.load('b', at)};")
    lines += _both_ways(of_filter, WINDOW, INPUTS)
    lines += _stored(f"input * {outputs}u + output", inputs * outputs)
    _emit(lowering, f"{label} (filter)", lines, inputs * outputs, (place.buffer, "b", element.one), target)
    return target


def _emit_images(lowering: Lowering, conv: ConvolutionShape, part: ImagePart, label: str) -> Buffer:
    """The images transformed: 36 matrices of input channels and tiles."""
    place, element, layout = lowering.place(conv.images), lowering.element(conv.images), conv.image_layout
    columns = part.columns
    target = Buffer("block", INPUTS**2 * conv.group_inputs * columns * 4)
    vertical, horizontal = conv.slides
    image_stride, channel_stride, row_stride, column_stride = layout.strides
    first_row, first_column = wrapping_literal(-vertical.begin), wrapping_literal(-horizontal.begin)
    lines = [
        f"let place = four % {columns}u;",
        f"let channel = four / {columns}u;",
        f"let number = min(place, {part.tiles - 1}u);",
        part.image(),
        f"let top = number / {part.across}u % {part.down}u * {OUTPUTS}u + {first_row};",
        f"let begin = number % {part.across}u * {OUTPUTS}u + {first_column};",
        f"let first = {layout.offset}u + image * {image_stride}u + channel * {channel_stride}u;",
    ]
    for row in range(INPUTS):
        lines.append(f"let h{row} = top + {row}u;")
        for column in range(INPUTS):
            tag = f"{row}_{column}"
            lines.append(f"let i{tag} = h{row} < {vertical.size}u && begin + {column}u < {horizontal.size}u;")
            at = f"first + h{row} * {row_stride}u + (begin + {column}u) * {column_stride}u"
            lines.append(f"let x{tag} = select(0.0, {element.load('b', f'select(0u, {at}, i{tag})')}, i{tag});")
    lines += _both_ways(of_images, INPUTS, INPUTS)
    lines += _stored(f"channel * {columns}u + place", conv.group_inputs * columns)
    count = conv.group_inputs * columns
    _emit(lowering, f"{label} (images)", lines, count, (place.buffer, "b", element.one), target)
    return target


def _emit_products(
    lowering: Lowering, conv: ConvolutionShape, columns: int, filter_: Buffer, images: Buffer, label: str
) -> Buffer:
    """Sums over the channels: 36 matrices of output channels and tiles."""
    inputs, outputs = conv.group_inputs, conv.output_channels
    element = lowering.features.element("float32")
    products = Buffer("block", INPUTS**2 * outputs * columns * 4)
    batches = [Layout((INPUTS**2,), (inputs * outer,)) for outer in (outputs, columns)]
    problem = GemmProblem(
        INPUTS**2,
        MatrixLoader(filter_, element, batches[0], Layout((inputs,), (outputs,)), outputs, 1),
        MatrixLoader(images, element, batches[1], Layout((inputs,), (columns,)), columns, 1),
        lambda batch, row, column: f"({batch} * {outputs}u + {row}) * {columns}u + {column}",
        vec4s=True,
    )
    tile = choose_tile(outputs, columns, problem.batch, lowering.features)
    writer = TiledGemmWriter(TilePlan(problem, tile, 1, "f32"), INPUTS**2 * outputs * columns, products)
    lowering.emit(writer.kernel(f"{label} (products)"))
    return products


def _emit_results(
    lowering: Lowering, conv: ConvolutionShape, part: ImagePart, products: Buffer, code: EpilogueCode, label: str
) -> None:
    """The results, of products that lie as 36 matrices of output channels and tiles."""
    height, width = conv.output_sizes
    lines = [
        f"let number = four % {part.tiles}u;",
        f"let channel = four / {part.tiles}u;",
        part.image(),
        f"let row = number / {part.across}u % {part.down}u * {OUTPUTS}u;",
        f"let column = number % {part.across}u * {OUTPUTS}u;",
        f"let at = channel * {part.columns}u + number;",
    ]
    for index in range(INPUTS**2):
        row, column = divmod(index, INPUTS)
        lines.append(f"let x{row}_{column} = products[at + {index * conv.output_channels * part.columns}u];")
    lines += _both_ways(of_products, INPUTS, OUTPUTS)
    for row in range(OUTPUTS):
        number = conv.address("image", "channel", f"(row + {row}u)", "column")
        results = [f"z{row}_{column}" for column in range(OUTPUTS)]
        if width % WIDTH == 0:
            stored = [f"finish(({number}) / {WIDTH}u, vec4<f32>({', '.join(results)}));"]
        else:
            stored = [
                f"if (column + {column}u < {width}u) {{ finish_one({number} + {column}u, {value}); }}"
                for column, value in enumerate(results)
            ]
        lines += stored if height % OUTPUTS == 0 else [f"if (row + {row}u < {height}u) {{", *stored, "}"]
    count = part.tiles * conv.output_channels * WIDTH
    main, workgroups = vec4_entry_point(count, "\n".join(f"  {line}" for line in lines))
    lowering.emit(code.kernel(label, [(products, "products", "f32")], [], main, workgroups))


def _stored(place: str, matrix: int) -> list[str]:
    """Statements that store ``z``, a number to a matrix."""
    lines = [f"let at = {place};"]
    for row in range(INPUTS):
        lines += [f"o[at + {(row * INPUTS + column) * matrix}u] = z{row}_{column};" for column in range(INPUTS)]
    return lines


def _emit(
    lowering: Lowering,
    label: str,
    lines: Sequence[str],
    count: int,
    read: tuple[Buffer, str, str],
    target: Buffer,
) -> None:
    """A kernel that runs ``lines`` for each number ``four`` below ``count``."""
    main, workgroups = vec4_entry_point(count * WIDTH, "\n".join(f"  {line}" for line in lines))
    source = module(declare([read], [(target, "o", "f32")]), main=main)
    lowering.emit(Kernel(label, source, (read[0],), (target,), workgroups))
