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
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.named_sizes.values import rough

WARPS: Final = 4 * UNITS
"""So many subgroups of 32 compute at a time on a large GPU."""

BESIDES: Final = 80
"""What a lane does for a key besides its products, as so many of these, where there are few rows."""

OF_A_SCORE: Final = 17
"""What a lane does for a score that it has: mask, power and sums."""

LEAST_WORK: Final = 140
"""How long a key takes a subgroup at least, in instructions, as each step waits for the one before."""

MOST_AT_ONCE: Final = 8
"""Keys whose scores are computed at once: with more of them, registers are short."""

MOST_SLICES: Final = 64

TO_MERGE: Final = 32
"""How many keys could be computed with while slices are put together."""

MOST_KEPT: Final = 20
"""Vec4s of queries, and of sums, that an invocation has at most."""

MOST_READ: Final = 8
"""Vec4s of a key and a value that an invocation reads at most, where it reads four at once."""

MUCH_KEPT: Final = 16
"""With so many vec4s of queries, there are so few subgroups that they wait for tiles, if they do not read ahead."""

MOST_WARPS: Final = 8 * UNITS
"""So many of these a large GPU holds at a time; of float16, more of them take a fifth longer than the work tells."""

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
        at_once: keys whose scores a lane computes before it takes their powers, a multiple of four.
    """

    shape: AttentionShape
    lanes: int
    each: int
    slices: int = 1
    threads: int = 128
    splits: int = 1
    is_ahead: bool = False
    at_once: int = WIDTH

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
    def has_few_groups(self) -> bool:
        """Whether smaller workgroups are better."""
        return self.groups < (UNITS if self.shape.rows <= MOST_VECTORS or self.keeps_much else 2 * UNITS)

    @property
    def is_direct(self) -> bool:
        """Whether keys and values are read from where they lie, since each is used once."""
        return self.places == 1

    @property
    def keys(self) -> int:
        """Keys of a tile."""
        least = self.at_once * self.slices
        return least if self.is_direct else max(KEYS, least)

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
    def work(self) -> int:
        """How long a key takes a subgroup, in instructions: what it issues, or what its lanes wait for from memory.

        All four schedulers of a processor share what delivers vec4s, of all lanes in four cycles, and exchanges.
        """
        kept, scores = self.each, 0
        for _ in range(self.lanes.bit_length() - 1):
            kept = max(1, kept // 2)
            scores += kept
        loads, exchanges = self.each_depth + self.each_columns, scores + self.each - self.own
        issued = (WIDTH * self.each + 1) * loads + exchanges + scores + OF_A_SCORE * self.own
        return max(issued, 16 * loads + 4 * exchanges)

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
        if self.shape.rows <= MOST_VECTORS:
            products = self.each * (self.each_depth + self.each_columns) * WIDTH
            return max(WARPS, self.warps) * keys * (products + BESIDES)
        if self.slices > 1:  # of each tile that is waited for, a lane has fewer keys
            return max(3 * WARPS, self.warps) * keys * self.work * 5
        is_crowded = self.shape.is_float16 and self.keeps_much and self.warps > MOST_WARPS and self.depth <= MUCH_KEPT
        rounds = max(max(WARPS, self.warps) * self.work, WARPS * LEAST_WORK)
        return rounds * keys * (5 if is_crowded else 4)

    @property
    def keeps_much(self) -> bool:
        """Whether registers are so many that few subgroups are there at a time."""
        return self.each * self.each_depth >= MUCH_KEPT

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
    if not (features.subgroups and Variant.ATTENTION_LANES.is_on):
        return None
    is_few = shape.rows <= MOST_VECTORS
    about = shape
    if not is_few:
        about = attrs.evolve(shape, batch=rough(shape.batch), rows=rough(shape.rows), keys=rough(shape.keys))
    plans = [
        LanePlan(about, lanes, each, threads // lanes if is_few else slices, threads)
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
    splits = max(1, min(wanted, about.keys // (LEAST_KEYS // 2 if is_few else LEAST_KEYS)))
    if is_few:
        return attrs.evolve(plan, shape=shape, splits=splits)
    at_once = min(MOST_AT_ONCE, plan.keys // plan.slices)
    is_ahead = plan.turns <= MOST_AHEAD and plan.keeps_much
    return attrs.evolve(plan, shape=shape, splits=splits, is_ahead=is_ahead, at_once=at_once)


def _preference(plan: LanePlan) -> tuple[int, bool, int]:
    """What is least for the fastest plan."""
    is_few = plan.shape.rows <= MOST_VECTORS
    return plan.cost, plan.has_few_groups, 0 if is_few else plan.warps * plan.work
