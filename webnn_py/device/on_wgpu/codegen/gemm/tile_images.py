"""Products with images, which are gathered while they are read: tiles and parts that were fastest for them."""

from __future__ import annotations

from math import prod
from typing import Final

from webnn_py.device.on_wgpu.codegen.gemm.im2col_loader import Im2colLoader
from webnn_py.device.on_wgpu.codegen.gemm.pixel_loader import PixelLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_choice import BUSY, PROCESSORS, use_of_processors
from webnn_py.device.on_wgpu.codegen.gemm.tile_rounds import (
    LEAST_PART,
    LEAST_PRODUCTS,
    MOST_PARTS,
    MeasuredTile,
    sizes_of,
)
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import TILES, GemmTile, choose_split_k
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.named_sizes.values import rough

FEW_CHANNELS: Final = GemmTile(64, 128, 8, 8, inner=8)
"""For windows of many pixels and 33 to 64 output channels: what is gathered is used for all of these."""

MEASURED: Final = (
    MeasuredTile(GemmTile(64, 64, 8, 8), 152e3, 155e3, least=4, step=2),
    MeasuredTile(GemmTile(128, 64, 8, 8), 155e3, 159e3),
)

SMALLEST: Final = min(TILES, key=lambda tile: tile.rows * tile.columns)
SMALL: Final = GemmTile(32, 32, 8, 4, inner=8, slices=8)
SHORT: Final = 128
"""Up to this length of the inner axis, workgroups begin and end more than they multiply: more of them hide that."""

LONG: Final = 1024
"""From this length of the inner axis on, parts of it by the small tile are faster than whole ones by the smallest."""


def measured_for_images(
    product: GemmProblem, usual: tuple[GemmTile, int], features: Features
) -> tuple[GemmTile, int] | None:
    """The tile and the parts of the inner axis, where those were measured that keep a large GPU busier than usual.

    Args:
        product: of the filter and images, in this order.
        usual: the usual tile and parts.
        features: of the adapter.
    """
    rows, columns, inner = sizes = sizes_of(product)
    tile, parts = usual
    if tile == SMALLEST and inner >= LONG and SMALL.fits(features):
        return SMALL, choose_split_k(SMALL, SMALL.groups(rows, columns) * rough(product.batch), inner)
    are_images = isinstance(product.right, Im2colLoader | PixelLoader)
    if not are_images or rough(product.batch) > 1 or prod(sizes) < LEAST_PRODUCTS:
        return None
    if isinstance(product.right, Im2colLoader) and FEW_CHANNELS.rows // 2 < rows <= FEW_CHANNELS.rows:
        is_filled = FEW_CHANNELS.groups(rows, columns) >= 2 * PROCESSORS and FEW_CHANNELS.fits(features)
        return (FEW_CHANNELS, 1) if is_filled else None
    fitting = [measured for measured in MEASURED if measured.tile.fits(features)]
    is_busy = use_of_processors(tile.groups(rows, columns) * rough(parts)) >= BUSY and inner > SHORT
    if rows < 2 * FEW_CHANNELS.rows or is_busy:
        return None
    is_float16 = product.left.element.data_type == "float16"
    ways = [
        (measured.microseconds(sizes, count, is_float16=is_float16), count, measured.tile)
        for measured in fitting
        for count in range(1, max(1, min(MOST_PARTS, inner // LEAST_PART)) + 1)
    ]
    _, parts, best = min(ways, key=lambda way: way[:2], default=(0.0, 1, None))
    return None if best is None else (best, parts)
