"""How attention is shared out: what a workgroup and an invocation compute of it, chosen by shape."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features

UNITS: Final = 128
"""The processors that a large GPU has: with fewer workgroups, some of them stand idle."""

LEAST_PRODUCTS: Final = 2**16
"""With fewer products, three kernels cost little more than one, whose text takes a driver longer to compile."""

MOST_VECTORS: Final = 8
"""With at most so many rows, each element of keys and values is used by one invocation, and not brought in first."""

MOST_SUMS: Final = 24
"""Vec4s of sums of values that an invocation has at most."""


SHARED_SUMS: Final = 512
"""Vec4s of sums that a workgroup's slices lay in its memory at once."""


@attrs.frozen
class AttentionShape:
    """What is computed.

    Attributes:
        batch: matrices of scores.
        rows: of each: the queries.
        keys: of each: the keys.
        size: elements of a query, or key.
        columns: elements of a value.
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
        """Products of elements that are summed up."""
        return self.batch * self.rows * self.keys * (self.size + self.columns)


@attrs.frozen
class AttentionTile:
    """What a workgroup computes at a time: so many rows by four keys for each invocation across.

    Attributes:
        down: invocations along the rows.
        across: invocations along the keys.
        each: rows of an invocation.
        rate: the speed on a busy GPU, relative to the fastest tile.
    """

    down: int
    across: int
    each: int
    rate: float = 1.0

    @property
    def rows(self) -> int:
        """Rows of a workgroup."""
        return self.down * self.each

    @property
    def keys(self) -> int:
        """Keys of a tile."""
        return self.across * WIDTH

    @property
    def threads(self) -> int:
        """Invocations of a workgroup."""
        return self.down * self.across

    @property
    def is_direct(self) -> bool:
        """Whether keys and values are read from where they lie, since each is used once."""
        return self.down == 1


@attrs.frozen
class AttentionPlan:
    """A tile, and how it is laid out for a shape.

    Attributes:
        shape: what is computed.
        tile: what a workgroup computes of it at a time.
        splits: into how many parts the keys are cut, each for other workgroups.
    """

    shape: AttentionShape
    tile: AttentionTile
    splits: int = 1

    @property
    def groups(self) -> int:
        """Workgroups, but for the parts."""
        return self.shape.batch * -(-self.shape.rows // self.tile.rows)

    @property
    def steps(self) -> int:
        """The tiles along the keys."""
        return -(-self.shape.keys // self.tile.keys)

    @property
    def depth(self) -> int:
        """Vec4s of a query, or key."""
        return self.shape.size // WIDTH

    @property
    def row(self) -> int:
        """Vec4s from one query, or key, to the next in the workgroup's memory: odd, so that banks differ."""
        return self.depth | 1

    @property
    def columns(self) -> int:
        """Vec4s of a value."""
        return self.shape.columns // WIDTH

    @property
    def column_threads(self) -> int:
        """Invocations along the columns; what is more across takes other keys."""
        threads = 1
        while threads < self.tile.across and threads < self.columns:
            threads *= 2
        return threads

    @property
    def each_columns(self) -> int:
        """Vec4s of columns of an invocation."""
        return -(-self.columns // self.column_threads)

    @property
    def slices(self) -> int:
        """Into how many parts a workgroup cuts a tile's keys for the second product."""
        return self.tile.across // self.column_threads

    @property
    def power_row(self) -> int:
        """Vec4s from one row of powers to the next in the workgroup's memory."""
        return self.tile.across | 1

    @property
    def brought(self) -> int:
        """Vec4s of the memory for a tile's keys, then its values, and then sums of slices."""
        tile = self.tile
        keys = 0 if tile.is_direct else tile.keys * max(self.row, self.columns)
        if self.slices == 1:
            return max(keys, 1)
        sums = tile.each * self.each_columns
        return max(keys, tile.threads * max(1, min(sums, SHARED_SUMS // tile.threads)))

    @property
    def storage(self) -> int:
        """Bytes of workgroup memory."""
        tile = self.tile
        powers = tile.rows * self.power_row
        return 16 * (tile.rows * self.row + self.brought + powers) + 4 * tile.rows * tile.across

    @property
    def cost(self) -> int:
        """How long it takes, in no unit; whole, since sizes that are known at dispatch only may be compared."""
        return -(-self.groups // UNITS) * self.tile.rows * round(WHOLE / self.tile.rate)

    def fits(self, features: Features) -> bool:
        """Whether an adapter can run it, with sums in registers."""
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

WHOLE: Final = 280
"""What every tile's rate divides."""

LEAST_KEYS: Final = 256
"""A workgroup of few rows takes at least so many keys, where there are others for the rest."""


def choose_plan(shape: AttentionShape, features: Features) -> AttentionPlan | None:
    """The plan that computes it fastest without subgroups; None where none fits."""
    if shape.rows <= MOST_VECTORS:
        return _for_vectors(shape, features)
    plans = [AttentionPlan(shape, tile) for tile in TILES]
    fitting = [plan for plan in plans if plan.fits(features)]
    return with_splits(min(fitting, key=lambda plan: plan.cost), LEAST_KEYS) if fitting else None


def _for_vectors(shape: AttentionShape, features: Features) -> AttentionPlan | None:
    across = 32
    while across < features.max_invocations and across < 256 and across * WIDTH < shape.keys:
        across *= 2
    while across >= WIDTH:
        plan = AttentionPlan(shape, AttentionTile(1, across, shape.rows))
        if plan.fits(features):
            return with_splits(plan, LEAST_KEYS)
        across //= 2
    return None


def with_splits(plan: AttentionPlan, least: int) -> AttentionPlan:
    """The same, its keys cut into parts where there are few workgroups and many keys."""
    tiles = max(1, -(-least // plan.tile.keys))
    return attrs.evolve(plan, splits=max(1, min(UNITS // plan.groups, plan.steps // tiles)))
