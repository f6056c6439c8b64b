"""3 × 3 convolutions by Winograd's F(4×4, 3×3): a quarter of the multiplications, in three kernels.

The output is computed in tiles of 4 × 4. The 6 × 6 input elements of a tile and channel are transformed into 36
numbers; a batched matrix product of 36 matrices sums over the channels; and its results are transformed into the tile.
The filter is transformed when the graph is built. Everything is float32.

The error is up to 2⁻²⁰ of the largest sum of absolute products. Tiles mix their inputs: an infinity or NaN turns all 16
results of a tile that reads it into NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self

import attrs

from webnn_py.devices.wgpu.codegen.convolution.shape import ConvolutionShape
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue, EpilogueCode
from webnn_py.devices.wgpu.codegen.expressions import wrapping_literal
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tile_choice import choose_tile
from webnn_py.devices.wgpu.codegen.gemm.tiled import tiled_kernel
from webnn_py.devices.wgpu.codegen.gemm.tiling import GemmTiling
from webnn_py.devices.wgpu.codegen.module import bound_kernel
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant

OUTPUTS: Final = 4
"""The outputs of a tile along each axis."""

INPUTS: Final = 6
"""The input elements that a tile reads along each axis."""

WINDOW: Final = 3

LEAST_CHANNELS: Final = 64
LEAST_PRODUCTS: Final = 2**29
"""The fewest multiplications of the direct form for which three kernels are faster than one."""

MOST_BYTES: Final = 2**27
"""The size of an intermediate buffer, which every adapter can bind; larger batches are computed in parts."""


def is_winograd(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> bool:
    """Return whether a convolution gains from Winograd's algorithm."""
    plain = all(slide.window == WINDOW and slide.stride == slide.dilation == 1 for slide in conv.slides)
    if not (plain and conv.nchw and conv.groups == 1 and lowering.place(conv.filter).buffer.kind == "constant"):
        return False
    channels = conv.group_inputs, conv.output_channels
    if min(channels) < LEAST_CHANNELS or any(count % WIDTH for count in channels):
        return False
    products = conv.batch * conv.pixels * channels[0] * channels[1] * WINDOW**2
    stores = epilogue.stores_single_elements or conv.output_sizes[1] % WIDTH == 0
    fits = INPUTS**2 * channels[0] * channels[1] * 4 <= MOST_BYTES and images_at_once(conv) > 0
    return products >= LEAST_PRODUCTS and stores and fits and KernelVariant.WINOGRAD.is_on


def emit_winograd(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> None:
    """Emit the kernels of a convolution for which :func:`is_winograd` holds."""
    filter_ = _emit_filter(lowering, conv, epilogue.label)
    code = epilogue.write(vec4s=conv.output_sizes[1] % WIDTH == 0)
    at_once = images_at_once(conv)
    for first in range(0, conv.batch, at_once):
        part = ImagePart.from_convolution(conv, first, min(at_once, conv.batch - first))
        images = _emit_images(lowering, conv, part, epilogue.label)
        products = _emit_products(lowering, conv, part.columns, filter_, images, epilogue.label)
        _emit_results(lowering, conv, part, products, code, epilogue.label)


def images_at_once(conv: ConvolutionShape) -> int:
    """Return the number of images whose intermediates fit into one buffer; 0 if those of one do not."""
    down, across = (-(-size // OUTPUTS) for size in conv.output_sizes)
    each = INPUTS**2 * max(conv.group_inputs, conv.output_channels) * 4
    return min(conv.batch, (MOST_BYTES // each - WIDTH) // (down * across))


@attrs.frozen
class ImagePart:
    """Images that are computed together.

    Attributes:
        first: the index of the first image.
        down: the tiles along the height of an image.
        across: the tiles along the width of an image.
        tiles: the tiles of all images.
    """

    first: int
    down: int
    across: int
    tiles: int

    @classmethod
    def from_convolution(cls, conv: ConvolutionShape, first: int, count: int) -> Self:
        """Return ``count`` images of a convolution from the image ``first`` on."""
        down, across = (-(-size // OUTPUTS) for size in conv.output_sizes)
        return cls(first, down, across, count * down * across)

    @property
    def columns(self) -> int:
        """The number of tiles, padded to whole vec4s."""
        return -(-self.tiles // WIDTH) * WIDTH

    def image(self) -> str:
        """Return the statement that names the ``image`` of the tile ``number``."""
        return f"let image = number / {self.down * self.across}u{f' + {self.first}u' if self.first else ''};"


# --- transformations ---------------------------------------------------------------------------------------------


def transform_filter(g: Sequence[str]) -> list[str]:
    """Transform three elements of the filter into six numbers."""
    a, b, c = g
    return [
        f"{a} * 0.25",
        f"({a} + {b} + {c}) * {-1 / 6}",
        f"({a} - {b} + {c}) * {-1 / 6}",
        f"({a} * 0.25 + {b} * 0.5 + {c}) * {1 / 6}",
        f"({a} * 0.25 - {b} * 0.5 + {c}) * {1 / 6}",
        c,
    ]


def transform_images(d: Sequence[str]) -> list[str]:
    """Transform six elements of the images into six numbers."""
    return [
        f"fma({d[0]}, 4.0, fma({d[2]}, -5.0, {d[4]}))",
        f"fma({d[2]}, -4.0, {d[4]}) + fma({d[1]}, -4.0, {d[3]})",
        f"fma({d[2]}, -4.0, {d[4]}) - fma({d[1]}, -4.0, {d[3]})",
        f"fma({d[3]} - {d[1]}, 2.0, {d[4]} - {d[2]})",
        f"fma({d[3]} - {d[1]}, -2.0, {d[4]} - {d[2]})",
        f"fma({d[1]}, 4.0, fma({d[3]}, -5.0, {d[5]}))",
    ]


def transform_products(m: Sequence[str]) -> list[str]:
    """Transform six sums of products into four results."""
    return [
        f"{m[0]} + ({m[1]} + {m[2]}) + ({m[3]} + {m[4]})",
        f"fma({m[3]} - {m[4]}, 2.0, {m[1]} - {m[2]})",
        f"fma({m[3]} + {m[4]}, 4.0, {m[1]} + {m[2]})",
        f"fma({m[3]} - {m[4]}, 8.0, {m[1]} - {m[2]}) + {m[5]}",
    ]


def _transformed_2d(transform: Callable[[Sequence[str]], list[str]], size: int, results: int) -> list[str]:
    """Transform ``x{row}_{column}`` along columns, then along rows, into ``z{row}_{column}``."""
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
    """Emit the transformation of the filter into 36 matrices, [input channels, output channels]."""
    inputs, outputs = conv.group_inputs, conv.output_channels
    place, element, layout = lowering.place(conv.filter), lowering.element(conv.filter), conv.filter_layout
    target = lowering.derived(place.buffer, INPUTS**2 * inputs * outputs * 4)
    lines = [f"let output = four % {outputs}u;", f"let input = four / {outputs}u;"]
    lines.append(f"let first = {layout.offset}u + output * {layout.strides[0]}u + input * {layout.strides[1]}u;")
    for row in range(WINDOW):
        for column in range(WINDOW):
            at = f"first + {row * layout.strides[2] + column * layout.strides[3]}u"
            lines.append(f"let x{row}_{column} = {element.load('b', at)};")
    lines += _transformed_2d(transform_filter, WINDOW, INPUTS)
    lines += _stored(f"input * {outputs}u + output", inputs * outputs)
    _emit(lowering, f"{label} (filter)", lines, inputs * outputs, (place.buffer, "b", element.one), target)
    return target


def _emit_images(lowering: Lowering, conv: ConvolutionShape, part: ImagePart, label: str) -> Buffer:
    """Emit the transformation of images into 36 matrices, [input channels, tiles]."""
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
    lines += _transformed_2d(transform_images, INPUTS, INPUTS)
    lines += _stored(f"channel * {columns}u + place", conv.group_inputs * columns)
    count = conv.group_inputs * columns
    _emit(lowering, f"{label} (images)", lines, count, (place.buffer, "b", element.one), target)
    return target


def _emit_products(
    lowering: Lowering, conv: ConvolutionShape, columns: int, filter_: Buffer, images: Buffer, label: str
) -> Buffer:
    """Emit the batched product that sums over the channels: 36 matrices, [output channels, tiles]."""
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
    end = EpilogueCode([(products, "sums", "vec4<f32>")])
    plan = GemmTiling(problem, tile, 1, "f32")
    lowering.emit(tiled_kernel(plan, INPUTS**2 * outputs * columns, end, f"{label} (products)"))
    return products


def _emit_results(
    lowering: Lowering, conv: ConvolutionShape, part: ImagePart, products: Buffer, code: EpilogueCode, label: str
) -> None:
    """Emit the transformation of the 36 products into results, with the epilogue."""
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
    lines += _transformed_2d(transform_products, INPUTS, OUTPUTS)
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
    main, workgroups = vec4_entry_point(count, lines)
    lowering.emit(code.kernel(label, [(products, "products", "f32")], [], main, workgroups))


def _stored(place: str, matrix: int) -> list[str]:
    """Store each of the 36 numbers ``z`` in its matrix."""
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
    """Emit a kernel that runs ``lines`` for each index ``four`` below ``count``."""
    main, workgroups = vec4_entry_point(count * WIDTH, lines)
    lowering.emit(bound_kernel(label, [read], [(target, "o", "f32")], [], workgroups, main))
