"""Tiles of matrix products for each kind of GPU, with the speeds that were measured on it.

:mod:`.tile_search` searches a table. The rates of ``USUAL_TILES`` and all of ``HOPPER`` come from an H200
(``python -m spec_tests.labs.benchmarks.gpu_tiles``). Of a GPU that was not measured, the number of processors is an
estimate by the type of its adapter, its limits say which tiles it can run, and ``USUAL_TILES`` are all that it gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.tile import GemmTile
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.variants import Variant

Sides = Literal["matrices", "windows", "pixels", "others"]
"""The operands of a product: two matrices; a filter, and windows or pixels of images; or others."""

LARGE_SIDE: Final = 256
LARGE_PRODUCT: Final = 2**29
"""Rows and columns, and multiplications, of a product that is large enough to be split among kernels in other ways."""


@attrs.frozen
class RatedTile:
    """A tile and its speed on a GPU.

    Attributes:
        tile: the tile.
        rate: float32 multiplications of a processor in a microsecond.
        rate_of_halves: the same of float16.
        least: fewer workgroups take a processor as long as so many.
        step: more than that take as long as the next multiple of this: as many begin when as many have ended.
    """

    tile: GemmTile
    rate: float
    rate_of_halves: float
    least: int = 2
    step: int = 1


@attrs.frozen(kw_only=True)
class SearchedTiles:
    """Tiles, of which the one is taken that computes a product in the fewest microseconds.

    Attributes:
        tiles: the tiles.
        most_bytes: the size of all partial sums at most; None for no limit.
        starting: microseconds that the kernel takes that adds up partial sums.
        adding: microseconds that it takes for a byte of them.
        most_parts: the number of parts of the inner axis at most.
        least_part: the least length of a part.
    """

    tiles: tuple[RatedTile, ...]
    most_bytes: int | None = None
    starting: float = 1.5
    adding: float = 4.5e-7
    most_parts: int = 8
    least_part: int = 128


@attrs.frozen(kw_only=True)
class FilledTile:
    """A tile with as many parts of the inner axis as there is room for workgroups.

    Attributes:
        tile: the tile.
        resident: workgroups that run at once, for each of :attr:`TileTable.units`.
        least_resident: so many, for each of these, without which the tile is not taken.
        most_parts: the number of parts of the inner axis at most.
        least_part: the least length of a part, as long as two tiles at least.
    """

    tile: GemmTile
    resident: float = 1
    least_resident: float = 0
    most_parts: int = 32
    least_part: int = 256


@attrs.frozen(kw_only=True)
class TileRule:
    """The tiles for products of some kind, in place of the usual one.

    Attributes:
        variant: the optional variant that the rule is a part of.
        tiles: the tiles.
        sides: of the products; None for any.
        rows: the least and the largest number of rows.
        columns: the least number of columns.
        inner: the least length of the inner axis.
        products: the least number of multiplications.
        batched: whether it holds for several products at once, too.
        float32_sums: whether sums have to be float32.
        idle: whether it holds only where the usual tile leaves processors idle.
        short: up to this length of the inner axis, processors count as idle anyway: workgroups begin and end more
            than they multiply.
        usual: the usual tile that it replaces; None for any.
    """

    variant: Variant
    tiles: SearchedTiles | FilledTile
    sides: frozenset[Sides] | None = None
    rows: tuple[int, float] = (0, float("inf"))
    columns: int = 0
    inner: int = 0
    products: int = 0
    batched: bool = False
    float32_sums: bool = False
    idle: bool = False
    short: int = 0
    usual: GemmTile | None = None


@attrs.frozen
class TileTable:
    """All that the choice of tiles knows of a kind of GPU.

    Attributes:
        processors: the number of its processors.
        units: workgroups that keep the processors busy, for the usual tiles, parts of the inner axis and products of
            vectors. Sizes are powers of two mostly, so it is the power of two below the number of processors.
        rules: the tiles that were measured for some products, in the order in which they are tried.
    """

    processors: int
    units: int
    rules: tuple[TileRule, ...] = ()


USUAL_TILES: Final[Mapping[GemmTile, float]] = {
    GemmTile(128, 128, 8, 8): 1.0,
    GemmTile(64, 64, 8, 8, inner=8, slices=2): 0.8,
    GemmTile(32, 128, 8, 8, inner=8, slices=2): 0.7,
    GemmTile(128, 32, 8, 8, inner=8, slices=2): 0.7,
    GemmTile(64, 32, 8, 4, inner=8, slices=4): 0.65,
    GemmTile(32, 64, 8, 4, inner=8, slices=4): 0.65,
    GemmTile(32, 32, 8, 4, inner=8, slices=8): 0.6,
    GemmTile(16, 64, 8, 4, inner=8, slices=4): 0.45,
    GemmTile(64, 16, 8, 4, inner=8, slices=4): 0.45,
    GemmTile(16, 16, 4, 4, slices=4): 0.3,
    GemmTile(8, 128, 8, 4, inner=8, slices=4): 0.4,
    GemmTile(128, 8, 8, 4, inner=8, slices=4): 0.4,
    GemmTile(4, 256, 4, 4): 0.3,
    GemmTile(256, 4, 4, 4): 0.3,
}
"""Tiles for products of any kind, and their speed on a busy GPU, relative to the fastest."""

HOPPER: Final = TileTable(
    processors=132,
    units=128,
    rules=(
        TileRule(
            variant=Variant.GEMM_LARGE_TILES,
            sides=frozenset({"matrices"}),
            rows=(LARGE_SIDE, float("inf")),
            columns=LARGE_SIDE,
            products=LARGE_PRODUCT,
            float32_sums=True,
            tiles=SearchedTiles(
                tiles=(
                    RatedTile(GemmTile(128, 96, 8, 12, interleaved=True), 175e3, 167e3, step=2),
                    RatedTile(GemmTile(64, 96, 8, 12), 164e3, 145e3, step=4),
                    RatedTile(GemmTile(128, 144, 8, 12), 140e3, 156e3, step=2),
                    RatedTile(GemmTile(128, 144, 8, 12, slices=2), 140e3, 164e3, least=1),
                    RatedTile(GemmTile(128, 64, 8, 8, interleaved=True), 184e3, 179e3),
                    RatedTile(GemmTile(128, 64, 8, 8, interleaved=True, in_rows=True), 165e3, 184e3),
                    RatedTile(GemmTile(64, 64, 8, 8), 152e3, 155e3, least=4, step=2),
                    RatedTile(GemmTile(128, 128, 8, 8, interleaved=True, in_rows=True), 188e3, 187e3, least=1),
                    RatedTile(GemmTile(64, 64, 8, 8, inner=8, slices=2), 140e3, 108e3),
                ),
                most_bytes=40 * 2**20,  # for which the GPU's cache has room
            ),
        ),
        TileRule(
            variant=Variant.GEMM_IMAGE_TILES,
            usual=GemmTile(16, 16, 4, 4, slices=4),
            inner=1024,  # parts of it are faster than whole ones by the smallest tile
            batched=True,
            tiles=FilledTile(tile=GemmTile(32, 32, 8, 4, inner=8, slices=8)),
        ),
        TileRule(
            variant=Variant.GEMM_IMAGE_TILES,
            sides=frozenset({"windows"}),
            rows=(33, 64),  # what is gathered is used for all of these channels
            products=LARGE_PRODUCT,
            tiles=FilledTile(tile=GemmTile(64, 128, 8, 8, inner=8), least_resident=264 / 128, most_parts=1),
        ),
        TileRule(
            variant=Variant.GEMM_IMAGE_TILES,
            sides=frozenset({"windows", "pixels"}),
            rows=(128, float("inf")),
            products=LARGE_PRODUCT,
            idle=True,
            short=128,
            tiles=SearchedTiles(
                tiles=(
                    RatedTile(GemmTile(64, 64, 8, 8), 152e3, 155e3, least=4, step=2),
                    RatedTile(GemmTile(128, 64, 8, 8), 155e3, 159e3),
                )
            ),
        ),
        TileRule(
            variant=Variant.GEMM_SMALL_TILES,
            rows=(0, 16),
            columns=33,
            idle=True,
            batched=True,
            tiles=FilledTile(
                tile=GemmTile(16, 128, 8, 4, inner=8, slices=4), resident=6.5, least_resident=2, most_parts=8
            ),
        ),
        TileRule(
            variant=Variant.GEMM_SMALL_TILES,
            rows=(33, float("inf")),
            columns=33,
            idle=True,
            batched=True,
            tiles=FilledTile(tile=GemmTile(64, 64, 8, 8), resident=6.5, least_resident=3, most_parts=8),
        ),
        TileRule(
            variant=Variant.GEMM_MIDDLE_TILE,
            sides=frozenset({"matrices"}),
            rows=(64, float("inf")),
            columns=64,
            products=2**27,
            float32_sums=True,
            idle=True,
            tiles=SearchedTiles(
                tiles=(RatedTile(GemmTile(32, 96, 8, 4, inner=8, slices=4), 100e3, 100e3, least=1),), starting=5.0
            ),
        ),
    ),
)
"""H100 and H200."""

MEASURED: Final[Mapping[str, TileTable]] = {"hopper": HOPPER}
"""The tables of GPUs that were measured, by the name of :attr:`.Features.gpu`."""


def table_of(features: Features) -> TileTable:
    """Return the table for a GPU."""
    processors = features.processors
    return MEASURED.get(features.gpu) or TileTable(processors, 1 << processors.bit_length() - 1)
