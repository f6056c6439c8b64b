"""The search for the fastest tile and split-K factor of a matrix product."""

from __future__ import annotations

from math import prod
from typing import Final, Self

import attrs

from webnn_py.devices.wgpu.codegen.gemm.im2col_loader import Im2colLoader
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.measured_tiles import (
    LARGE_PRODUCT,
    LARGE_SIDE,
    USUAL_TILES,
    FilledTile,
    RatedTile,
    SearchedTiles,
    Sides,
    TileRule,
    TileTable,
    table_of,
)
from webnn_py.devices.wgpu.codegen.gemm.pixel_loader import PixelLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.records.features import Features

Work = tuple[GemmTile, int]
"""A tile, and the number of split-K parts."""

BUSY: Final = 0.8
"""The utilization below which processors count as idle."""

RESIDENT: Final = 2
"""The workgroups per processor that hide each other's latency."""


@attrs.frozen
class Extent:
    """The properties of a product that the choice of a tile depends on.

    Attributes:
        sides: the kind of the operands.
        batch: the number of products.
        rows: the output rows.
        columns: the output columns.
        inner: the length of the inner axis.
        is_float16: whether the operands are float16.
    """

    sides: Sides
    batch: int
    rows: int
    columns: int
    inner: int
    is_float16: bool

    @classmethod
    def from_product(cls, product: GemmProblem) -> Self:
        """Return the extent of a product."""
        shape = product.batch, product.left.outer, product.right.outer, product.left.inner
        return cls(_sides_of(product), *shape, is_float16=product.left.element.data_type == "float16")

    @property
    def products(self) -> int:
        """The multiplications of one product."""
        return prod((self.rows, self.columns, self.inner))

    @property
    def is_large(self) -> bool:
        """True if it is a large product of two matrices."""
        is_one = self.sides == "matrices" and self.batch == 1
        return is_one and min(self.rows, self.columns) >= LARGE_SIDE and self.products >= LARGE_PRODUCT


def _sides_of(product: GemmProblem) -> Sides:
    if isinstance(product.right, Im2colLoader):
        return "windows"
    if isinstance(product.right, PixelLoader):
        return "pixels"
    are_matrices = isinstance(product.left, MatrixLoader) and isinstance(product.right, MatrixLoader)
    return "matrices" if are_matrices else "others"


def choose_work(product: GemmProblem, features: Features, accumulate: str) -> Work:
    """Return the tile and split-K parts of a product whose sums have the type ``accumulate``."""
    table, extent = table_of(features), Extent.from_product(product)
    rows, columns = product.left.outer, product.right.outer
    tile = choose_tile(rows, columns, product.batch, features)
    groups = tile.groups(rows, columns) * product.batch
    usual = tile, _filled_parts(FilledTile(tile=tile), groups, product.left.inner, table)
    for rule in table.rules:
        if _holds(rule, extent, usual, table) and (accumulate == "f32" or not rule.float32_sums):
            work = _work(rule.tiles, extent, table, features)
            if work is not None and rule.variant.is_on:
                return work
    return usual


def choose_tile(rows: int, columns: int, batch: int, features: Features) -> GemmTile:
    """Return the usual tile that computes a product fastest."""
    units = table_of(features).units

    def cost(tile: GemmTile) -> float:
        return -(-tile.groups(rows, columns) * batch // units) * tile.rows * tile.columns / USUAL_TILES[tile]

    return min((tile for tile in USUAL_TILES if tile.fits(features)), key=cost)


def _holds(rule: TileRule, extent: Extent, usual: Work, table: TileTable) -> bool:
    tile, parts = usual
    if not (rule.batched or extent.batch == 1) or not (rule.sides is None or extent.sides in rule.sides):
        return False
    least, most = rule.rows
    is_large = extent.columns >= rule.columns and extent.inner >= rule.inner and extent.products >= rule.products
    if not (least <= extent.rows <= most and is_large and rule.usual in (None, tile)):
        return False
    groups = tile.groups(extent.rows, extent.columns) * extent.batch * parts
    return not rule.idle or extent.inner <= rule.short or busy_share(groups, table.processors) < BUSY


def busy_share(groups: int, processors: int) -> float:
    """Return the utilization of processors by some workgroups: one per processor is idle for half of the time."""
    rounds = -(-groups // processors)
    return groups / (rounds * processors) * min(1, rounds / RESIDENT)


def _work(tiles: SearchedTiles | FilledTile, extent: Extent, table: TileTable, features: Features) -> Work | None:
    """Return the fastest of the tiles that an adapter can run; None if it can run none."""
    if isinstance(tiles, FilledTile):
        groups = tiles.tile.groups(extent.rows, extent.columns) * extent.batch
        parts = _filled_parts(tiles, groups, extent.inner, table)
        is_filled = groups * parts >= table.units * tiles.least_groups
        return (tiles.tile, parts) if is_filled and tiles.tile.fits(features) else None
    most = min(tiles.most_parts, extent.inner // tiles.least_part)
    if tiles.most_bytes is not None:
        most = min(most, tiles.most_bytes // (4 * extent.rows * extent.columns))
    ways = [
        (microseconds(tiles, rated, parts, extent, table), parts, rated.tile)
        for rated in tiles.tiles
        if rated.tile.fits(features)
        for parts in range(1, max(1, most) + 1)
    ]
    if not ways:
        return None
    _, parts, tile = min(ways, key=lambda way: way[:2])
    return tile, parts


def _filled_parts(tiles: FilledTile, groups: int, inner: int, table: TileTable) -> int:
    """Return the number of split-K parts that fill the processors."""
    parts = min(table.units // groups, inner // max(tiles.least_part, 2 * tiles.tile.depth), tiles.most_parts)
    return max(1, parts)


def microseconds(tiles: SearchedTiles, rated: RatedTile, parts: int, extent: Extent, table: TileTable) -> float:
    """Estimate the time of a product with a tile in some parts: that of the processor with the most work."""
    tile = rated.tile
    rounds = -(-tile.groups(extent.rows, extent.columns) * parts // table.processors)
    rounds = rated.least if rounds <= rated.least else -(-rounds // rated.step) * rated.step
    steps = -(-extent.inner // tile.depth)
    products = rounds * tile.rows * tile.columns * -(-steps // parts) * tile.depth
    added = tiles.starting + tiles.adding * 4 * parts * extent.rows * extent.columns if parts > 1 else 0.0
    return products / (rated.rate_of_halves if extent.is_float16 else rated.rate) + added
