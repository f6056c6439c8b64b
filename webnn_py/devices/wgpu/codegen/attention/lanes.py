"""Tiling of attention for adapters with subgroups.

Adjacent lanes share some rows: each holds a part of the queries and sums of these rows in registers. So an element of
keys and values that is loaded from workgroup memory is used for all these rows. Scores never pass through workgroup
memory: lanes reduce their partial scores by shuffles, until each has the scores of its own rows.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.attention.tile import (
    LEAST_KEYS,
    MOST_VECTORS,
    UNITS,
    AttentionShape,
    AttentionTiling,
)
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.variants import KernelVariant

WARPS: Final = 4 * UNITS
"""The subgroups of 32 lanes that a large GPU executes at a time."""

OVERHEAD: Final = 80
"""The work of a lane for a key besides its products, in products, for few rows."""

SCORE_WORK: Final = 17
"""The instructions of a lane per score of its own: mask, power and sums."""

LEAST_WORK: Final = 140
"""The least time of a subgroup per key, in instructions: the latency of dependent steps."""

MOST_AT_ONCE: Final = 8
"""The most keys whose scores are computed at once without exhausting registers."""

MERGE_WORK: Final = 32
"""The time in which slices are merged, in keys."""

MOST_KEPT: Final = 20
"""The most vec4s of queries, and of sums, in the registers of an invocation."""

MOST_READ: Final = 8
"""The most vec4s of a key and a value that an invocation loads if it loads four keys at once."""

MUCH_KEPT: Final = 16
"""The vec4s of queries from which occupancy is so low that tiles have to be prefetched."""

MOST_WARPS: Final = 8 * UNITS
"""The subgroups that are resident on a large GPU; with float16, more take a fifth longer than estimated."""

MOST_AHEAD: Final = 8
"""The most vec4s of a tile that an invocation prefetches."""

KEYS: Final = 32
"""The least keys of a staged tile."""


@attrs.frozen
class LaneAttention(AttentionTiling):
    """The tiling by lanes.

    Attributes:
        lanes: the lanes that share rows, a power of two.
        each: the rows of a lane, a power of two.
        slices: the number of slices of the keys within a workgroup, a power of two.
        threads: the invocations of a workgroup.
        splits: the number of parts of the keys, each computed by other workgroups.
        is_ahead: whether a tile is prefetched while the one before is computed.
        at_once: the keys whose scores a lane computes before it exponentiates them, a multiple of four.
    """

    lanes: int
    each: int
    slices: int = 1
    threads: int = 128
    splits: int = 1
    is_ahead: bool = False
    at_once: int = WIDTH

    @property
    def places(self) -> int:
        """The groups of lanes along the rows of a workgroup, per slice."""
        return self.threads // self.lanes // self.slices

    @property
    def rows(self) -> int:
        """The rows of a workgroup."""
        return self.places * self.each

    @property
    def groups(self) -> int:
        """The workgroups per part of the keys."""
        return self.shape.batch * -(-self.shape.rows // self.rows)

    @property
    def warps(self) -> int:
        """The subgroups of 32 lanes per part of the keys."""
        return self.groups * self.threads // 32

    @property
    def is_direct(self) -> bool:
        """True if keys and values are loaded from their buffers without staging, as each is used once."""
        return self.places == 1

    @property
    def keys(self) -> int:
        """The keys of a tile."""
        least = self.at_once * self.slices
        return least if self.is_direct else max(KEYS, least)

    @property
    def steps(self) -> int:
        """The number of tiles along the keys."""
        return -(-self.shape.keys // self.keys)

    @property
    def each_depth(self) -> int:
        """The vec4s of a query that a lane holds."""
        return self.depth // self.lanes

    @property
    def each_columns(self) -> int:
        """The vec4s of sums that a lane holds."""
        return self.columns // self.lanes

    @property
    def own(self) -> int:
        """The rows whose scores a lane owns."""
        return max(1, self.each // self.lanes)

    @property
    def staged(self) -> int:
        """The vec4s of the memory that a tile of keys and values and the sums of slices share."""
        tile = 0 if self.is_direct else self.keys * (self.depth + self.columns)
        return max(1, tile, self.slices * self.rows * self.columns if self.slices > 1 else 0)

    @property
    def turns(self) -> int:
        """The vec4s of a tile that an invocation stages."""
        return -(-self.keys * (self.depth + self.columns) // self.threads)

    @property
    def work(self) -> int:
        """The time of a subgroup per key, in instructions: those that it issues, or the throughput of memory.

        The four schedulers of a processor share the unit for shuffles and for vec4 loads, which take four cycles.
        """
        kept, scores = self.each, 0
        for _ in range(self.lanes.bit_length() - 1):
            kept = max(1, kept // 2)
            scores += kept
        loads, exchanges = self.each_depth + self.each_columns, scores + self.each - self.own
        issued = (WIDTH * self.each + 1) * loads + exchanges + scores + SCORE_WORK * self.own
        return max(issued, 16 * loads + 4 * exchanges)

    @property
    def storage(self) -> int:
        """The bytes of workgroup memory."""
        return 16 * self.staged + 8 * self.slices * self.rows

    @property
    def cost(self) -> float:
        """The estimated time, without a unit: rounds of all subgroups times the work of one."""
        keys = self.shape.keys / self.slices + (MERGE_WORK if self.slices > 1 else 0)
        if self.shape.rows <= MOST_VECTORS:
            products = self.each * (self.each_depth + self.each_columns) * WIDTH
            return max(WARPS, self.warps) * keys * (products + OVERHEAD)
        if self.slices > 1:  # a lane has fewer keys per tile that it waits for
            return max(3 * WARPS, self.warps) * keys * self.work * 5
        is_crowded = self.shape.is_float16 and self.keeps_much and self.warps > MOST_WARPS and self.depth <= MUCH_KEPT
        rounds = max(max(WARPS, self.warps) * self.work, WARPS * LEAST_WORK)
        return rounds * keys * (5 if is_crowded else 4)

    @property
    def keeps_much(self) -> bool:
        """True if register use limits occupancy to few subgroups."""
        return self.each * self.each_depth >= MUCH_KEPT

    def fits(self, features: Features) -> bool:
        """Return whether an adapter can run it, with queries and sums in registers."""
        is_whole = self.depth % self.lanes == 0 and self.columns % self.lanes == 0 and self.places > 0
        is_small = self.storage <= features.max_workgroup_storage and self.lanes <= features.least_subgroup
        is_needed = self.each < 2 * self.shape.rows or self.each == 1
        is_read = not self.is_direct or self.each_depth + self.each_columns <= MOST_READ
        is_kept = self.each * max(self.each_depth, self.each_columns) <= MOST_KEPT
        return is_whole and is_small and is_needed and is_read and is_kept


def choose_lanes(shape: AttentionShape, features: Features) -> LaneAttention | None:
    """Return the fastest plan; None without subgroups, or if no plan fits the shape."""
    if not (features.subgroups and KernelVariant.ATTENTION_LANES.is_on):
        return None
    is_few = shape.rows <= MOST_VECTORS
    plans = [
        LaneAttention(shape, lanes, each, threads // lanes if is_few else slices, threads)
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
    if is_few:
        return attrs.evolve(plan, splits=splits)
    at_once = min(MOST_AT_ONCE, plan.keys // plan.slices)
    is_ahead = plan.turns <= MOST_AHEAD and plan.keeps_much
    return attrs.evolve(plan, splits=splits, is_ahead=is_ahead, at_once=at_once)


def _preference(plan: LaneAttention) -> tuple[float, bool, int]:
    """Return the sort key that is least for the fastest plan."""
    is_few = plan.shape.rows <= MOST_VECTORS
    has_few_groups = plan.groups < (UNITS if is_few or plan.keeps_much else 2 * UNITS)  # smaller ones are better
    return plan.cost, has_few_groups, 0 if is_few else plan.warps * plan.work
