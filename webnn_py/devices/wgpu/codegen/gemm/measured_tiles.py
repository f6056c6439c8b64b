"""Tiles of matrix products for each kind of GPU, with their measured speeds.

:mod:`.tile_choice` searches a table. The rates of ``USUAL_TILES`` and all of ``HOPPER`` come from an H200
(``spec_tests/labs/benchmarks/gpu_tiles.py`` at e2867f45). A GPU that was not measured uses only ``USUAL_TILES``, as
far as its limits allow; its number of processors is estimated by the type of its adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.variants import KernelVariant

Sides = Literal["matrices", "windows", "pixels", "others"]
"""The operands of a product: two matrices; a filter, and windows or pixels of images; or others."""

LARGE_SIDE: Final = 256
LARGE_PRODUCT: Final = 2**29
"""The least rows and columns, and multiplications, of products that have tiles and kernels of their own."""


@attrs.frozen
class RatedTile:
    """A tile and its speed on a GPU.

    Attributes:
        tile: the tile.
        rate: the float32 multiplications of a processor per microsecond.
        rate_of_halves: the same for float16.
        least: the number of workgroups of a processor below which fewer take no less time.
        step: the number of workgroups that a processor starts together: times grow in multiples of it.
    """

    tile: GemmTile
    rate: float
    rate_of_halves: float
    least: int = 2
    step: int = 1


@attrs.frozen(kw_only=True)
class SearchedTiles:
    """Tiles, of which the fastest for a product is chosen.

    Attributes:
        tiles: the tiles.
        most_bytes: the largest size of all partial sums; None for no limit.
        starting: the microseconds of the kernel that adds up partial sums, whatever their size.
        adding: the microseconds that it takes per byte.
        most_parts: the most split-K parts.
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
    """A tile with as many split-K parts as fill the processors.

    Attributes:
        tile: the tile.
        least_groups: the fewest workgroups per :attr:`TileTable.units` for which the tile is chosen.
        most_parts: the most split-K parts.
        least_part: the least length of a part, if that is not below two tiles.
    """

    tile: GemmTile
    least_groups: float = 0
    most_parts: int = 32
    least_part: int = 256


@attrs.frozen(kw_only=True)
class TileRule:
    """The tiles for some products, in place of the usual one.

    Attributes:
        variant: the optional variant that includes the rule.
        tiles: the tiles.
        sides: the operands; None for any.
        rows: the least and the largest number of rows.
        columns: the least number of columns.
        inner: the least length of the inner axis.
        products: the least number of multiplications.
        batched: whether the rule includes batches of several products.
        float32_sums: whether sums must be float32.
        idle: whether the rule requires that the usual tile leaves processors idle.
        short: the length of the inner axis up to which processors count as idle anyway, as the start and end of
            workgroups dominate.
        usual: the usual tile that it replaces; None for any.
    """

    variant: KernelVariant
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
    """The properties of a kind of GPU by which tiles are chosen.

    Attributes:
        processors: the number of processors.
        units: the workgroups that keep the processors busy, for usual tiles, split-K and GEMV: the greatest power of
            two up to the number of processors, as most sizes are powers of two.
        rules: the measured tiles for some products, in the order in which they are tried.
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
"""The tiles for all products, with their speed on a busy GPU relative to the fastest."""

HOPPER: Final = TileTable(
    processors=132,
    units=128,
    rules=(
        TileRule(
            variant=KernelVariant.GEMM_LARGE_TILES,
            sides=frozenset({"matrices"}),
            rows=(LARGE_SIDE, float("inf")),
            columns=LARGE_SIDE,
            products=LARGE_PRODUCT,
            float32_sums=True,
            tiles=SearchedTiles(
                tiles=(
                    RatedTile(GemmTile(128, 96, 8, 12), 175e3, 167e3, step=2),
                    RatedTile(GemmTile(64, 96, 8, 12), 164e3, 145e3, step=4),
                    RatedTile(GemmTile(128, 144, 8, 12), 140e3, 156e3, step=2),
                    RatedTile(GemmTile(128, 144, 8, 12, slices=2), 140e3, 164e3, least=1),
                    RatedTile(GemmTile(128, 64, 8, 8), 184e3, 184e3),
                    RatedTile(GemmTile(64, 64, 8, 8), 152e3, 155e3, least=4, step=2),
                    RatedTile(GemmTile(128, 128, 8, 8), 188e3, 187e3, least=1),
                    RatedTile(GemmTile(64, 64, 8, 8, inner=8, slices=2), 140e3, 108e3),
                ),
                most_bytes=40 * 2**20,  # which fit into the GPU's cache
            ),
        ),
        TileRule(
            variant=KernelVariant.GEMM_IMAGE_TILES,
            usual=GemmTile(16, 16, 4, 4, slices=4),
            inner=1024,  # parts of it are faster than whole ones by the smallest tile
            batched=True,
            tiles=FilledTile(tile=GemmTile(32, 32, 8, 4, inner=8, slices=8)),
        ),
        TileRule(
            variant=KernelVariant.GEMM_IMAGE_TILES,
            sides=frozenset({"windows"}),
            rows=(33, 64),  # gathered elements are used for all of these channels
            products=LARGE_PRODUCT,
            tiles=FilledTile(tile=GemmTile(64, 128, 8, 8, inner=8), least_groups=264 / 128, most_parts=1),
        ),
        TileRule(
            variant=KernelVariant.GEMM_IMAGE_TILES,
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
            variant=KernelVariant.GEMM_MIDDLE_TILE,
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
"""The tables of measured GPUs, by :attr:`.Features.gpu`."""


def table_of(features: Features) -> TileTable:
    """Return the table for a GPU."""
    processors = features.processors
    return MEASURED.get(features.gpu) or TileTable(processors, 1 << processors.bit_length() - 1)
