"""How matrix products are cut: what a workgroup and an invocation compute of them, chosen by shape."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.named_sizes.values import rough

UNITS: Final = 128
"""The processors that a large GPU has: with fewer workgroups, some of them stand idle."""

LEAST_SPLIT: Final = 256
"""The least length of the inner axis that is worth a workgroup of its own."""

MOST_SPLITS: Final = 32


@attrs.frozen
class GemmTile:
    """What a workgroup computes of a product.

    Attributes:
        rows: rows of the output.
        columns: columns of the output.
        thread_rows: rows that an invocation computes, a multiple of four.
        thread_columns: columns that an invocation computes, a multiple of four.
        inner: how much of the inner axis an invocation computes before the next tile is brought in.
        slices: into how many parts the workgroup cuts the inner axis of a tile; each has its own invocations. They
            divide the vec4s of sums of an invocation.
        rate: the speed on a busy GPU, relative to the fastest tile.
        buffers: 2 to bring a tile in while the one before is computed with, for twice the memory.
        interleaved: whether eight neighbouring invocations compute two rows of vec4s by four, not one by eight.
        in_rows: whether each side has an array of rows of its own in the workgroup's memory, whose numbers are
            constants where it is read; only with one slice and one buffer.
    """

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    inner: int = 16
    slices: int = 1
    rate: float = 1.0
    buffers: int = 1
    interleaved: bool = False
    in_rows: bool = False

    @property
    def depth(self) -> int:
        """How much of the inner axis a tile has."""
        return self.inner * self.slices

    @property
    def across(self) -> int:
        """Invocations side by side along the columns."""
        return self.columns // self.thread_columns

    @property
    def down(self) -> int:
        """Invocations side by side along the rows."""
        return self.rows // self.thread_rows

    @property
    def slice_threads(self) -> int:
        """Invocations of a slice."""
        return self.across * self.down

    @property
    def threads(self) -> int:
        """Invocations of a workgroup."""
        return self.slice_threads * self.slices

    @property
    def is_serpentine(self) -> bool:
        """Whether an invocation adds products up to and fro; measured for these tiles, and slower for others."""
        return self.interleaved and self.thread_rows == self.thread_columns

    @property
    def has_rows(self) -> bool:
        """Whether each side has an array of rows of its own."""
        return self.in_rows and self.slices == self.buffers == 1

    @property
    def sums(self) -> int:
        """Vec4s of sums that an invocation has."""
        return self.thread_rows * self.thread_columns // WIDTH

    @property
    def vec4s(self) -> int:
        """Vec4s of workgroup memory."""
        tiles = self.buffers * self.depth * (self.rows + self.columns) // WIDTH
        return max(tiles, self.slices * self.threads) if self.slices > 1 else tiles

    @property
    def shared_sums(self) -> int:
        """How many sums each invocation can lay in the workgroup's memory at once, a multiple of the slices."""
        return min(self.sums, self.vec4s // self.threads // self.slices * self.slices)

    def fits(self, features: Features) -> bool:
        """Whether an adapter can run it."""
        return self.vec4s * 16 <= features.max_workgroup_storage and self.threads <= features.max_invocations

    def groups(self, rows: int, columns: int) -> int:
        """The workgroups that a product takes."""
        return -(-rows // self.rows) * -(-columns // self.columns)

    def cost(self, rows: int, columns: int, batch: int) -> float:
        """How long a product takes, in no unit."""
        waves = -(-self.groups(rows, columns) * batch // UNITS)
        return waves * self.rows * self.columns / self.rate


TILES: Final = (
    GemmTile(128, 128, 8, 8, rate=1.0),
    GemmTile(64, 64, 8, 8, inner=8, slices=2, rate=0.8),
    GemmTile(32, 128, 8, 8, inner=8, slices=2, rate=0.7),
    GemmTile(128, 32, 8, 8, inner=8, slices=2, rate=0.7),
    GemmTile(64, 32, 8, 4, inner=8, slices=4, rate=0.65),
    GemmTile(32, 64, 8, 4, inner=8, slices=4, rate=0.65),
    GemmTile(32, 32, 8, 4, inner=8, slices=8, rate=0.6),
    GemmTile(16, 64, 8, 4, inner=8, slices=4, rate=0.45),
    GemmTile(64, 16, 8, 4, inner=8, slices=4, rate=0.45),
    GemmTile(16, 16, 4, 4, slices=4, rate=0.3),
    GemmTile(8, 128, 8, 4, inner=8, slices=4, rate=0.4),
    GemmTile(128, 8, 8, 4, inner=8, slices=4, rate=0.4),
    GemmTile(4, 256, 4, 4, rate=0.3),
    GemmTile(256, 4, 4, 4, rate=0.3),
)


def choose_tile(rows: int, columns: int, batch: int, features: Features) -> GemmTile:
    """The tile that computes a product fastest."""
    fitting = [tile for tile in TILES if tile.fits(features)]
    sizes = rough(rows), rough(columns), rough(batch)
    return min(fitting, key=lambda tile: tile.cost(*sizes))


def choose_split_k(tile: GemmTile, groups: int, inner: int) -> int:
    """Into how many parts to cut the inner axis, each computed by other workgroups, where these are few."""
    splits = min(UNITS // groups, inner // max(LEAST_SPLIT, 2 * tile.depth), MOST_SPLITS)
    return splits if splits > 1 and Variant.GEMM_SPLIT_K.is_on else 1
