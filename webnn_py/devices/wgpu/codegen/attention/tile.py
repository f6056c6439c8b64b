"""Tiling of attention: the rows and keys that a workgroup computes at a time, chosen by shape.

Adjacent lanes share some rows: each holds a part of the queries and sums of these rows in registers. So an element of
keys and values that is loaded from workgroup memory is used for all these rows. Lanes reduce their partial scores by
shuffles within a subgroup, or through workgroup memory where there are none, until each has the scores of its own rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import attrs

from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.variants import KernelVariant

UNITS: Final = 128
"""The processors of a large GPU: fewer workgroups leave some of them idle."""

WARPS: Final = 4 * UNITS
"""The subgroups of 32 lanes that a large GPU executes at a time."""

MOST_WARPS: Final = 8 * UNITS
"""The subgroups that are resident on a large GPU; with float16, more take a fifth longer than estimated."""

LEAST_PRODUCTS: Final = 2**16
"""The fewest products for which one kernel, which compiles more slowly, is worth it over three."""

LEAST_KEYS: Final = 256
"""The fewest keys of a part."""

MOST_VECTORS: Final = 8
"""The most rows for which keys and values are not staged, as one group of lanes uses each element."""

OVERHEAD: Final = 80
"""The work of a lane for a key besides its products, in products, for few rows."""

SCORE_WORK: Final = 17
"""The instructions of a lane per score of its own: mask, power and sums."""

LEAST_WORK: Final = 140
"""The least time of a subgroup per key, in instructions: the latency of dependent steps."""

MERGE_WORK: Final = 32
"""The time in which slices are merged, in keys."""

MOST_AT_ONCE: Final = 8
"""The most keys whose scores are computed at once without exhausting registers."""

MOST_KEPT: Final = 20
"""The most vec4s of queries, and of sums, in the registers of an invocation."""

MOST_HELD: Final = 40
"""The most vec4s of queries, sums, and four keys and values in the registers of an invocation that loads these."""

MUCH_KEPT: Final = 16
"""The vec4s of queries from which occupancy is so low that tiles have to be prefetched."""

MOST_AHEAD: Final = 8
"""The most vec4s of a tile that an invocation prefetches."""

STAGED_KEYS: Final = 32
"""The least keys of a staged tile."""


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
    """The tile of a workgroup.

    Attributes:
        shape: the shape of the attention.
        lanes: the lanes that share rows, a power of two.
        each: the rows of a group of lanes, a power of two.
        slices: the number of slices of the keys within a workgroup, a power of two.
        threads: the invocations of a workgroup.
        splits: the number of parts of the keys, each computed by other workgroups.
        is_ahead: whether a tile is prefetched while the one before is computed.
        at_once: the keys whose scores a lane computes before it exponentiates them, a multiple of four.
        shuffles: whether lanes exchange scores by shuffles; otherwise through workgroup memory.
        staged_keys: the least keys of a staged tile.
    """

    shape: AttentionShape
    lanes: int
    each: int
    slices: int = 1
    threads: int = 128
    splits: int = 1
    is_ahead: bool = False
    at_once: int = WIDTH
    shuffles: bool = True
    staged_keys: int = STAGED_KEYS

    @property
    def depth(self) -> int:
        """The vec4s of a query or key."""
        return self.shape.size // WIDTH

    @property
    def columns(self) -> int:
        """The vec4s of a value."""
        return self.shape.columns // WIDTH

    @property
    def places(self) -> int:
        """The groups of lanes along the rows of a workgroup, per slice."""
        return self.threads // self.lanes // self.slices

    @property
    def rows(self) -> int:
        """The rows of a workgroup."""
        return self.places * self.each

    @property
    def blocks(self) -> int:
        """The workgroups along the rows of a matrix."""
        return -(-self.shape.rows // self.rows)

    @property
    def groups(self) -> int:
        """The workgroups per part of the keys."""
        return self.shape.batch * self.blocks

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
        return least if self.is_direct else max(self.staged_keys, least)

    @property
    def steps(self) -> int:
        """The number of tiles along the keys."""
        return -(-self.shape.keys // self.keys)

    @property
    def each_depth(self) -> int:
        """The vec4s of a query that a lane holds."""
        return -(-self.depth // self.lanes)

    @property
    def each_columns(self) -> int:
        """The vec4s of sums that a lane holds."""
        return -(-self.columns // self.lanes)

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
    def exchanged(self) -> int:
        """The floats that lanes exchange at a time through workgroup memory: partial scores, powers and a scale."""
        if self.shuffles or self.lanes == 1:
            return 0
        return self.threads * (self.at_once * (self.each + self.own) + self.own)

    @property
    def storage(self) -> int:
        """The bytes of workgroup memory."""
        totals = self.slices * self.rows if self.slices > 1 else 0
        return 16 * self.staged + 8 * totals + 4 * self.exchanged

    @property
    def work(self) -> int:
        """The time of a subgroup per key, in instructions: those that it issues, or the throughput of memory.

        The four schedulers of a processor share the unit for shuffles and for vec4 loads, which take four cycles.
        """
        kept, scores = self.each, 0
        for _ in range(self.lanes.bit_length() - 1):
            kept = max(1, kept // 2)
            scores += kept
        exchanges = scores + self.each - self.own
        if self.exchanged:
            exchanges = 2 * self.each + (self.lanes + 1) * self.own
        loads = self.each_depth + self.each_columns
        issued = (WIDTH * self.each + 1) * loads + exchanges + scores + SCORE_WORK * self.own
        return max(issued, 16 * loads + 4 * exchanges)

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
        is_small = self.storage <= features.max_workgroup_storage
        is_shared = not self.shuffles or self.lanes <= features.least_subgroup
        is_needed = self.each < 2 * self.shape.rows or self.each == 1
        held = (WIDTH + self.each) * (self.each_depth + self.each_columns)
        is_read = not self.is_direct or held <= MOST_HELD
        is_kept = self.each * max(self.each_depth, self.each_columns) <= MOST_KEPT
        return self.places > 0 and is_small and is_shared and is_needed and is_read and is_kept


def choose_tile(shape: AttentionShape, features: Features) -> AttentionTile | None:
    """Return the fastest tile, by shuffles if an adapter has them; None if none fits."""
    has_shuffles = features.subgroups and KernelVariant.ATTENTION_LANES.is_on
    return _fastest(shape, features, has_shuffles=has_shuffles)


@lru_cache(maxsize=256)  # layers of a model have the same shape
def _fastest(shape: AttentionShape, features: Features, *, has_shuffles: bool) -> AttentionTile | None:
    is_few = shape.rows <= MOST_VECTORS
    for shuffles in (True, False) if has_shuffles else (False,):
        for in_one in (True, False) if is_few else (False,):
            candidates = _candidates(shape, shuffles=shuffles, in_one=in_one)
            tile = min((tile for tile in candidates if tile.fits(features)), key=_preference, default=None)
            if tile is not None:
                return _completed(tile, in_one=in_one)
    return None


def _candidates(shape: AttentionShape, *, shuffles: bool, in_one: bool) -> list[AttentionTile]:
    """Return tiles with some rows for each group of lanes, or with all rows for each, which has other keys."""
    return [
        AttentionTile(shape, lanes, each, slices, threads, shuffles=shuffles, staged_keys=keys)
        for lanes in (1, 2, 4, 8, 16, 32)[shuffles:]
        for each in (8, 4, 2, 1)
        for threads in (128, 64)
        for slices in ((threads // lanes,) if in_one else (1, 2, 4, 8))
        for keys in (STAGED_KEYS,) + (STAGED_KEYS // 2,) * (not shuffles)
        if not in_one or each >= shape.rows
    ]


def _completed(tile: AttentionTile, *, in_one: bool) -> AttentionTile:
    """Return a tile with the keys split into parts if workgroups are few and keys many, and with keys at once."""
    is_few = tile.shape.rows <= MOST_VECTORS
    wanted = (4 if is_few else 1) * UNITS // tile.groups
    splits = max(1, min(wanted, tile.shape.keys // (LEAST_KEYS // 2 if is_few else LEAST_KEYS)))
    if in_one or tile.exchanged:
        return attrs.evolve(tile, splits=splits)
    at_once = min(MOST_AT_ONCE, tile.keys // tile.slices)
    is_ahead = tile.turns <= MOST_AHEAD and tile.keeps_much
    return attrs.evolve(tile, splits=splits, is_ahead=is_ahead, at_once=at_once)


def _preference(tile: AttentionTile) -> tuple[bool, float, bool, int]:
    """Return the sort key that is least for the fastest tile; lanes that divide rows come first."""
    is_ragged = tile.depth % tile.lanes > 0 or tile.columns % tile.lanes > 0
    is_few = tile.shape.rows <= MOST_VECTORS
    has_few_groups = tile.groups < (UNITS if is_few or tile.keeps_much else 2 * UNITS)  # smaller ones are better
    return is_ragged, tile.cost, has_few_groups, 0 if is_few else tile.warps * tile.work
