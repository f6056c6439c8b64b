"""How attention is shared out among the lanes of subgroups, where adapters have these.

Some neighbouring lanes share some rows: each has a part of these rows' queries and sums in registers. So an element of
keys and values that is read from the workgroup's memory is used for all these rows, and scores never lie there: lanes
add up their parts of them in exchange, until each has those of a row of its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.attention.tile import UNITS, AttentionShape
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features

WARPS: Final = 4 * UNITS
"""So many subgroups of 32 compute at a time on a large GPU."""

TILE_KEYS: Final = 32

THREADS: Final = 64

MOST_KEPT: Final = 20
"""Vec4s of queries, and of sums, that an invocation has at most."""


@attrs.frozen
class LanePlan:
    """How the work is shared out.

    Attributes:
        shape: what is computed.
        lanes: those that share rows, a power of two.
        each: rows of a lane, a power of two.
        splits: into how many parts the keys are cut, each for other workgroups.
        threads: invocations of a workgroup.
        keys: of a tile.
    """

    shape: AttentionShape
    lanes: int
    each: int
    splits: int = 1
    threads: int = THREADS
    keys: int = TILE_KEYS

    @property
    def rows(self) -> int:
        """Rows of a workgroup."""
        return self.threads // self.lanes * self.each

    @property
    def groups(self) -> int:
        """Workgroups, but for the parts."""
        return self.shape.batch * -(-self.shape.rows // self.rows)

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
    def storage(self) -> int:
        """Bytes of workgroup memory."""
        return 16 * self.keys * (self.depth + self.columns)

    @property
    def cost(self) -> float:
        """How long it takes, in no unit: rounds of all subgroups, times what one has to do for a key."""
        warps = self.groups * self.threads / 32
        return max(1, warps / WARPS) * (self.each * (self.each_depth + self.each_columns) * WIDTH + 40)

    def fits(self, features: Features) -> bool:
        """Whether an adapter can run it, with queries and sums in registers."""
        is_whole = self.depth % self.lanes == 0 and self.columns % self.lanes == 0
        is_small = self.storage <= features.max_workgroup_storage and self.lanes <= features.least_subgroup
        return is_whole and is_small and self.each * max(self.each_depth, self.each_columns) <= MOST_KEPT


def choose_lanes(shape: AttentionShape, features: Features) -> LanePlan | None:
    """The plan that computes it fastest; None where there are no subgroups, or rows cannot be shared so."""
    if not features.subgroups:
        return None
    plans = [LanePlan(shape, lanes, each) for lanes in (2, 4, 8, 16, 32) for each in (8, 4, 2, 1)]
    fitting = [plan for plan in plans if plan.fits(features)]
    return min(fitting, key=lambda plan: plan.cost, default=None)
