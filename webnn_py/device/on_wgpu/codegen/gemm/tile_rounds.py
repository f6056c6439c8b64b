"""Large products of two matrices: the tile and the parts of the inner axis that keep all processors busy to the end.

The time of a product is that of the processor that has most to do. With tiles of few sizes some have one workgroup more
than others and all wait for these; parts of the inner axis make workgroups smaller, but have to be added up.
"""

from __future__ import annotations

from math import prod
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_choice import PROCESSORS
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import GemmTile
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.named_sizes.values import rough

LEAST_SIDE: Final = 256
LEAST_PRODUCTS: Final = 2**29
"""Rows and columns, and products of numbers, from which on this was measured."""

LEAST_PART: Final = 128
"""The least length of a part of the inner axis."""

MOST_PARTS: Final = 8

MOST_SUMS: Final = 40 * 2**20
"""Bytes that the sums of all parts take at most: what a large GPU's cache has room for."""

STARTING: Final = 1.5
ADDING: Final = 4.5e-7
"""Microseconds that a second kernel takes, and that it takes for a byte of sums."""


@attrs.frozen
class MeasuredTile:
    """A tile, and how fast it was.

    Attributes:
        tile: the tile.
        rate: float32 products that a processor computes in a microsecond, by whole models where these tell otherwise.
        rate_of_halves: likewise of float16.
        least: fewer workgroups take a processor as long as so many.
        step: more than that take as long as the next multiple of this: as many begin when as many have ended.
    """

    tile: GemmTile
    rate: float
    rate_of_halves: float
    least: int = 2
    step: int = 1

    def microseconds(self, sizes: tuple[int, int, int], parts: int, *, is_float16: bool) -> float:
        """How long a product of so many rows, columns and inner elements takes."""
        rows, columns, inner = sizes
        rounds = -(-self.tile.groups(rows, columns) * parts // PROCESSORS)
        rounds = self.least if rounds <= self.least else -(-rounds // self.step) * self.step
        steps = -(-inner // self.tile.depth)
        each = -(-steps // parts) * self.tile.depth
        products = rounds * self.tile.rows * self.tile.columns * each
        added = STARTING + ADDING * 4 * parts * rows * columns if parts > 1 else 0.0
        return products / (self.rate_of_halves if is_float16 else self.rate) + added


MEASURED: Final = (
    MeasuredTile(GemmTile(128, 96, 8, 12, interleaved=True), 175e3, 167e3, step=2),
    MeasuredTile(GemmTile(64, 96, 8, 12), 164e3, 145e3, step=4),
    MeasuredTile(GemmTile(128, 144, 8, 12), 140e3, 156e3, step=2),
    MeasuredTile(GemmTile(128, 144, 8, 12, slices=2), 140e3, 164e3, least=1),
    MeasuredTile(GemmTile(128, 64, 8, 8, interleaved=True), 184e3, 179e3),
    MeasuredTile(GemmTile(128, 64, 8, 8, interleaved=True, in_rows=True), 165e3, 184e3),
    MeasuredTile(GemmTile(64, 64, 8, 8), 152e3, 155e3, least=4, step=2),
    MeasuredTile(GemmTile(128, 128, 8, 8, interleaved=True, in_rows=True), 188e3, 187e3, least=1),
    MeasuredTile(GemmTile(64, 64, 8, 8, inner=8, slices=2), 140e3, 108e3),
)


def sizes_of(product: GemmProblem) -> tuple[int, int, int]:
    """Rows, columns and inner elements."""
    return rough(product.left.outer), rough(product.right.outer), rough(product.left.inner)


def are_matrices(product: GemmProblem) -> bool:
    """Whether a product is that of one matrix and another."""
    are_loaded = isinstance(product.left, MatrixLoader) and isinstance(product.right, MatrixLoader)
    return are_loaded and rough(product.batch) == 1


def is_large(product: GemmProblem) -> bool:
    """Whether a product is of the kind that was measured."""
    sizes = sizes_of(product)
    return are_matrices(product) and min(sizes[:2]) >= LEAST_SIDE and prod(sizes) >= LEAST_PRODUCTS


def fewest_rounds(product: GemmProblem, features: Features) -> tuple[GemmTile, int] | None:
    """The tile and the parts for a large product; None for others."""
    if not is_large(product):
        return None
    sizes = sizes_of(product)
    is_float16 = product.left.element.data_type == "float16"
    most = min(MOST_PARTS, sizes[2] // LEAST_PART, MOST_SUMS // (4 * sizes[0] * sizes[1]))
    ways = [
        (measured.microseconds(sizes, parts, is_float16=is_float16), parts, measured.tile)
        for measured in MEASURED
        if measured.tile.fits(features)
        for parts in range(1, max(1, most) + 1)
    ]
    _, parts, tile = min(ways, key=lambda way: way[:2], default=(0.0, 1, None))
    return None if tile is None else (tile, parts)
