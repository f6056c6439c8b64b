"""Tiling of attention: the tile of a workgroup and of an invocation, chosen by shape."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features

UNITS: Final = 128
"""The processors of a large GPU: fewer workgroups leave some of them idle."""

LEAST_PRODUCTS: Final = 2**16
"""The fewest products for which one kernel, which compiles more slowly, is worth it over three."""

MOST_VECTORS: Final = 8
"""The most rows for which keys and values are not staged, as one invocation uses each element."""

MOST_SUMS: Final = 24
"""The most vec4s of sums that an invocation accumulates."""

SHARED_SUMS: Final = 512
"""The most vec4s of sums that the slices of a workgroup exchange through its memory at once."""


@attrs.frozen
class AttentionShape:
    """The shape of an attention.

    Attributes:
        batch: the number of score matrices.
        rows: the rows of each, one per query.
        keys: the columns of each, one per key.
        size: the elements of a query or key.
        columns: the elements of a value.
        is_float16: whether these are float16.
    """

    batch: int
    rows: int
    keys: int
    size: int
    columns: int
    is_float16: bool = False

    @property
    def products(self) -> int:
        """The number of multiply-adds."""
        return self.batch * self.rows * self.keys * (self.size + self.columns)


@attrs.frozen
class AttentionTile:
    """The scores that a workgroup computes at a time; an invocation computes some rows by four keys.

    Attributes:
        down: the invocations along the rows.
        across: the invocations along the keys.
        each: the rows of an invocation.
        rate: the speed on a busy GPU, relative to the fastest tile.
    """

    down: int
    across: int
    each: int
    rate: float = 1.0

    @property
    def rows(self) -> int:
        """The rows of a workgroup."""
        return self.down * self.each

    @property
    def keys(self) -> int:
        """The keys of a tile."""
        return self.across * WIDTH

    @property
    def threads(self) -> int:
        """The invocations of a workgroup."""
        return self.down * self.across

    @property
    def is_direct(self) -> bool:
        """True if keys and values are loaded from their buffers without staging, as each is used once."""
        return self.down == 1


@attrs.frozen
class AttentionTiling:
    """The tiling of a shape, by either kind of kernel.

    Attributes:
        shape: the shape.
    """

    shape: AttentionShape

    @property
    def depth(self) -> int:
        """The vec4s of a query or key."""
        return self.shape.size // WIDTH

    @property
    def columns(self) -> int:
        """The vec4s of a value."""
        return self.shape.columns // WIDTH


@attrs.frozen
class TiledAttention(AttentionTiling):
    """The tiling without subgroups.

    Attributes:
        tile: the tile of a workgroup.
        splits: the number of parts of the keys, each computed by other workgroups.
    """

    tile: AttentionTile
    splits: int = 1

    @property
    def groups(self) -> int:
        """The workgroups per part of the keys."""
        return self.shape.batch * -(-self.shape.rows // self.tile.rows)

    @property
    def steps(self) -> int:
        """The number of tiles along the keys."""
        return -(-self.shape.keys // self.tile.keys)

    @property
    def row(self) -> int:
        """The row pitch of queries and keys in workgroup memory, in vec4s; odd, to avoid bank conflicts."""
        return self.depth | 1

    @property
    def column_threads(self) -> int:
        """The invocations along the columns; further ones across compute other slices of the keys."""
        threads = 1
        while threads < self.tile.across and threads < self.columns:
            threads *= 2
        return threads

    @property
    def each_columns(self) -> int:
        """The vec4s of columns of an invocation."""
        return -(-self.columns // self.column_threads)

    @property
    def slices(self) -> int:
        """The number of slices of a tile's keys in the second product, each for other invocations."""
        return self.tile.across // self.column_threads

    @property
    def power_row(self) -> int:
        """The row pitch of powers in workgroup memory, in vec4s; odd, to avoid bank conflicts."""
        return self.tile.across | 1

    @property
    def staged(self) -> int:
        """The vec4s of the memory that a tile's keys, its values, and the sums of slices share."""
        tile = self.tile
        keys = 0 if tile.is_direct else tile.keys * max(self.row, self.columns)
        if self.slices == 1:
            return max(keys, 1)
        sums = tile.each * self.each_columns
        return max(keys, tile.threads * max(1, min(sums, SHARED_SUMS // tile.threads)))

    @property
    def storage(self) -> int:
        """The bytes of workgroup memory."""
        tile = self.tile
        powers = tile.rows * self.power_row
        return 16 * (tile.rows * self.row + self.staged + powers) + 4 * tile.rows * tile.across

    @property
    def cost(self) -> float:
        """The estimated time, without a unit."""
        return -(-self.groups // UNITS) * self.tile.rows / self.tile.rate

    def fits(self, features: Features) -> bool:
        """Return whether an adapter can run it, with sums in registers."""
        is_small = self.storage <= features.max_workgroup_storage and self.tile.threads <= features.max_invocations
        return is_small and self.tile.each * self.each_columns <= MOST_SUMS


TILES: Final = (
    AttentionTile(8, 16, 4, rate=1.0),
    AttentionTile(8, 8, 8, rate=0.7),
    AttentionTile(8, 8, 4, rate=0.7),
    AttentionTile(8, 16, 2, rate=0.5),
    AttentionTile(4, 8, 4, rate=0.4),
    AttentionTile(4, 4, 4, rate=0.2),
    AttentionTile(2, 4, 4, rate=0.1),
)

LEAST_KEYS: Final = 256
"""The fewest keys of a part."""


def choose_plan(shape: AttentionShape, features: Features) -> TiledAttention | None:
    """Return the fastest plan without subgroups; None if none fits."""
    if shape.rows <= MOST_VECTORS:
        return _for_vectors(shape, features)
    plans = [TiledAttention(shape, tile) for tile in TILES]
    fitting = [plan for plan in plans if plan.fits(features)]
    return with_splits(min(fitting, key=lambda plan: plan.cost)) if fitting else None


def _for_vectors(shape: AttentionShape, features: Features) -> TiledAttention | None:
    across = 32
    while across < features.max_invocations and across < 256 and across * WIDTH < shape.keys:
        across *= 2
    while across >= WIDTH:
        plan = TiledAttention(shape, AttentionTile(1, across, shape.rows))
        if plan.fits(features):
            return with_splits(plan)
        across //= 2
    return None


def with_splits(plan: TiledAttention) -> TiledAttention:
    """Return a plan with the keys split into parts if there are few workgroups and many keys."""
    tiles = max(1, -(-LEAST_KEYS // plan.tile.keys))
    return attrs.evolve(plan, splits=max(1, min(UNITS // plan.groups, plan.steps // tiles)))
