"""How attention is shared out among the lanes of subgroups, where adapters have these.

Some neighbouring lanes share some rows: each has a part of these rows' queries and sums in registers. So an element of
keys and values that is read from the workgroup's memory is used for all these rows, and scores never lie there: lanes
add up their parts of them in exchange, until each has those of a row of its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.attention.tile import LEAST_KEYS, MOST_VECTORS, UNITS, AttentionShape
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features

WARPS: Final = 4 * UNITS
"""So many subgroups of 32 compute at a time on a large GPU."""

BESIDES: Final = 80
"""What a lane does for a key besides its products, as so many of these."""

MOST_SLICES: Final = 64

TO_MERGE: Final = 32
"""How many keys could be computed with while slices are put together."""

MOST_KEPT: Final = 20
"""Vec4s of queries, and of sums, that an invocation has at most."""

MOST_READ: Final = 8
"""Vec4s of a key and a value that an invocation reads at most, where it reads four at once."""

MOST_WARPS: Final = 8 * UNITS
"""So many subgroups of 32 a large GPU holds at a time, where each lane keeps 16 vec4s of queries and 16 of sums."""

MOST_AHEAD: Final = 8
"""Vec4s of a tile that an invocation reads ahead at most."""

KEYS: Final = 32
"""Keys of a tile in the workgroup's memory."""


@attrs.frozen
class LanePlan:
    """How the work is shared out.

    Attributes:
        shape: what is computed.
        lanes: those that share rows, a power of two.
        each: rows of a lane, a power of two.
        slices: into how many parts a workgroup cuts the keys, a power of two.
        threads: invocations of a workgroup.
        splits: into how many parts the keys are cut before, each for other workgroups.
        is_ahead: whether a tile is read while the one before is computed with.
    """

    shape: AttentionShape
    lanes: int
    each: int
    slices: int = 1
    threads: int = 128
    splits: int = 1
    is_ahead: bool = False

    @property
    def places(self) -> int:
        """Places along the rows of a workgroup, each for some lanes of every slice."""
        return self.threads // self.lanes // self.slices

    @property
    def rows(self) -> int:
        """Rows of a workgroup."""
        return self.places * self.each

    @property
    def groups(self) -> int:
        """Workgroups, but for the parts."""
        return self.shape.batch * -(-self.shape.rows // self.rows)

    @property
    def warps(self) -> int:
        """Subgroups of 32, but for the parts."""
        return self.groups * self.threads // 32

    @property
    def is_direct(self) -> bool:
        """Whether keys and values are read from where they lie, since each is used once."""
        return self.places == 1

    @property
    def keys(self) -> int:
        """Keys of a tile."""
        return WIDTH * self.slices if self.is_direct else max(KEYS, WIDTH * self.slices)

    @property
    def steps(self) -> int:
        """The tiles along the keys."""
        return -(-self.shape.keys // self.keys)

    @property
    def depth(self) -> int:
        """Vec4s of a query, or key."""
        return self.shape.size // WIDTH

    @property
    def columns(self) -> int:
        """Vec4s of a value."""
        return self.shape.columns // WIDTH

    @property
    def each_depth(self) -> int:
        """Vec4s of a query that a lane has."""
        return self.depth // self.lanes

    @property
    def each_columns(self) -> int:
        """Vec4s of sums that a lane has."""
        return self.columns // self.lanes

    @property
    def own(self) -> int:
        """Rows whose scores a lane has."""
        return max(1, self.each // self.lanes)

    @property
    def brought(self) -> int:
        """Vec4s of workgroup memory: for a tile of keys and values, and then for the sums of slices."""
        tile = 0 if self.is_direct else self.keys * (self.depth + self.columns)
        return max(1, tile, self.slices * self.rows * self.columns if self.slices > 1 else 0)

    @property
    def turns(self) -> int:
        """Vec4s of a tile that an invocation brings."""
        return -(-self.keys * (self.depth + self.columns) // self.threads)

    @property
    def exchanged(self) -> int:
        """What a lane reads from the workgroup's memory and gets from other lanes, for a key."""
        kept, scores = self.each, 0
        for _ in range(self.lanes.bit_length() - 1):
            kept = max(1, kept // 2)
            scores += kept
        return self.each_depth + self.each_columns + scores + self.each - self.own

    @property
    def storage(self) -> int:
        """Bytes of workgroup memory."""
        return 16 * self.brought + 8 * self.slices * self.rows

    @property
    def cost(self) -> int:
        """How long it takes, in no unit: rounds of all subgroups, times what one has to do.

        All of it is whole, since a size that is known at dispatch only may be compared, and not rounded.
        """
        keys = MOST_SLICES // self.slices * self.shape.keys + (MOST_SLICES * TO_MERGE if self.slices > 1 else 0)
        return max(WARPS, self.warps) * keys * (self.each * (self.each_depth + self.each_columns) * WIDTH + BESIDES)

    def fits(self, features: Features) -> bool:
        """Whether an adapter can run it, with queries and sums in registers."""
        is_whole = self.depth % self.lanes == 0 and self.columns % self.lanes == 0 and self.places > 0
        is_small = self.storage <= features.max_workgroup_storage and self.lanes <= features.least_subgroup
        is_needed = self.each < 2 * self.shape.rows or self.each == 1
        is_read = not self.is_direct or self.each_depth + self.each_columns <= MOST_READ
        is_kept = self.each * max(self.each_depth, self.each_columns) <= MOST_KEPT
        return is_whole and is_small and is_needed and is_read and is_kept


def choose_lanes(shape: AttentionShape, features: Features) -> LanePlan | None:
    """The plan that computes it fastest; None where there are no subgroups, or rows cannot be shared so."""
    if not features.subgroups:
        return None
    is_few = shape.rows <= MOST_VECTORS
    plans = [
        LanePlan(shape, lanes, each, threads // lanes if is_few else slices, threads)
        for lanes in (2, 4, 8, 16, 32)
        for each in (8, 4, 2, 1)
        for threads in (128, 64)
        for slices in ((1,) if is_few else (1, 2, 4, 8))
    ]
    fitting = [plan for plan in plans if plan.fits(features) and (not is_few or plan.each >= shape.rows)]
    plan = min(fitting, key=_preference, default=None)
    if plan is None:
        return None
    wanted = (4 if is_few else 1) * UNITS // plan.groups
    splits = max(1, min(wanted, shape.keys // (LEAST_KEYS // 2 if is_few else LEAST_KEYS)))
    return attrs.evolve(plan, splits=splits, is_ahead=is_many(plan) and plan.turns <= MOST_AHEAD)


def _preference(plan: LanePlan) -> tuple[int, bool, int]:
    """What is least for the fastest plan."""
    return plan.cost, plan.groups < UNITS, plan.exchanged if is_many(plan) else 0


def is_many(plan: LanePlan) -> bool:
    """Whether there are more subgroups than a large GPU holds at a time, where lanes keep much."""
    return plan.warps > MOST_WARPS and not plan.is_direct
