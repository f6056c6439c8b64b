"""Products of a hundred rows or some more: too few usual tiles for a large GPU, and an inner axis too short for parts.

Invocations of a workgroup share the inner axis of each tile, so that few workgroups hide what they wait for.
"""

from __future__ import annotations

from math import prod
from typing import Final

from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_choice import BUSY, PROCESSORS, use_of_processors
from webnn_py.device.on_wgpu.codegen.gemm.tile_rounds import (
    ADDING,
    LEAST_PART,
    MOST_PARTS,
    are_matrices,
    sizes_of,
)
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import GemmTile
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.named_sizes.values import rough

MIDDLE: Final = GemmTile(32, 96, 8, 4, inner=8, slices=4)

LEAST_ROWS: Final = 64
LEAST_MIDDLE: Final = 2**27
"""Rows, and products of numbers, from which on this was measured."""

RATE: Final = 100e3
"""Products that a processor computes in a microsecond."""

STARTING: Final = 5.0
"""Microseconds that a second kernel takes."""


def shared_within(product: GemmProblem, usual: tuple[GemmTile, int], features: Features) -> tuple[GemmTile, int] | None:
    """The tile and the parts of the inner axis for such a product, given the usual ones; None for others."""
    rows, columns, inner = sizes = sizes_of(product)
    tile, parts = usual
    is_measured = prod(sizes) >= LEAST_MIDDLE and min(rows, columns) >= LEAST_ROWS
    is_busy = use_of_processors(tile.groups(rows, columns) * rough(parts)) >= BUSY
    if not are_matrices(product) or not is_measured or is_busy or not MIDDLE.fits(features):
        return None
    most = max(1, min(MOST_PARTS, inner // LEAST_PART))
    return MIDDLE, min(range(1, most + 1), key=lambda parts: _microseconds(sizes, parts))


def _microseconds(sizes: tuple[int, int, int], parts: int) -> float:
    rows, columns, inner = sizes
    rounds = -(-MIDDLE.groups(rows, columns) * parts // PROCESSORS)
    steps = -(-inner // MIDDLE.depth)
    products = rounds * MIDDLE.rows * MIDDLE.columns * -(-steps // parts) * MIDDLE.depth
    added = STARTING + ADDING * 4 * parts * rows * columns if parts > 1 else 0.0
    return products / RATE + added
