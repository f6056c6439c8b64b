"""Products whose usual tiles leave a large GPU half idle: smaller workgroups, and the inner axis in more parts.

A processor hides what it waits for only behind other workgroups. Where the usual tile gives it one, or gives some
processors two and others one, many small workgroups that share the inner axis are faster, the second kernel included.
"""

from __future__ import annotations

from typing import Final

from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import LEAST_SPLIT, UNITS, GemmTile
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.named_sizes.values import rough

SMALL: Final = GemmTile(64, 64, 8, 8, rate=0.8)
FEW_ROWS: Final = GemmTile(16, 128, 8, 4, inner=8, slices=4, rate=0.45)
"""For at most 16 rows."""

PROCESSORS: Final = 132
"""Of the GPU on which this was measured."""

MOST_RESIDENT: Final = 6
"""Workgroups of so few invocations and so many registers that a processor runs at once, a little more than that."""

LEAST_RESIDENT: Final = 2
"""So many workgroups keep a processor busy; fewer small ones are no gain."""

LEAST_SMALL: Final = 3
"""Likewise of the tile for many rows, below which nothing was measured."""

MOST_PARTS: Final = 8

BUSY: Final = 0.8
"""The share of the processors' time that the usual tile has to make use of."""


def rebalanced(
    usual: tuple[GemmTile, int], shape: tuple[int, int, int, int], features: Features
) -> tuple[GemmTile, int]:
    """The tile and the parts of the inner axis for a product, given the usual ones.

    Args:
        usual: the usual tile and parts.
        shape: batch, rows, columns and inner axis.
        features: of the adapter.
    """
    batch, rows, columns, inner = map(rough, shape)
    tile, parts = usual
    if use_of_processors(tile.groups(rows, columns) * batch * rough(parts)) >= BUSY:
        return usual
    if columns <= SMALL.columns // 2 or FEW_ROWS.rows < rows <= SMALL.rows // 2:
        return usual
    other = FEW_ROWS if rows <= FEW_ROWS.rows else SMALL
    groups = other.groups(rows, columns) * batch
    most = int(UNITS * (MOST_RESIDENT + 0.5)) // groups
    more = max(1, min(most, inner // LEAST_SPLIT, MOST_PARTS))
    least = LEAST_SMALL if other == SMALL else LEAST_RESIDENT
    if not other.fits(features) or groups * more < UNITS * least:
        return usual
    return other, more


def use_of_processors(groups: int) -> float:
    """The share of their time that processors compute in, given the workgroups: one alone waits half of it."""
    rounds = -(-groups // PROCESSORS)
    return groups / (rounds * PROCESSORS) * min(1, rounds / LEAST_RESIDENT)
