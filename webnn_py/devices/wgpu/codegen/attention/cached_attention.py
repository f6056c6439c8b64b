"""The distribution of attention to a cache among workgroups."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.core.graph import Node
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features

THREADS: Final = 128

KEYS: Final = 32
"""The keys of a tile, whose scores a workgroup computes at once."""

SLICES: Final = THREADS // KEYS
"""The invocations that share a key."""

MOST_ROWS: Final = 8
"""The most queries of a workgroup, all of which are multiplied with each key and value that it loads."""

MOST_PARTS: Final = 64

GROUPS_PER_PROCESSOR: Final = 2
"""The workgroups per processor up to which keys are split among more."""

ROWS_ADDED: Final = 2
"""The queries whose sums a workgroup adds up at once."""


def has_kernels(node: Node) -> bool:
    """Return whether the kernels are for a node: rows of caches are some whole vec4s."""
    return node.outputs[1].shape[3] % WIDTH == 0 and node.outputs[1].shape[3] <= THREADS * WIDTH


@attrs.frozen
class CachedAttention:
    """The distribution of attention to a cache.

    A matrix is the keys, or values, of a sample and a key head. Its queries are those of all heads that share them: of
    each new position those of all its heads, one behind the other.

    Attributes:
        batch: the number of samples.
        new: the new positions of each.
        heads: the heads of queries.
        key_heads: the heads of keys and values.
        size: the elements of a head.
        capacity: the positions of a cache.
        window: how many keys up to its own a query sees; 0 for all.
        is_causal: whether a query sees no later keys.
        rows: the queries of a workgroup.
        parts: the workgroups that share the keys of these.
    """

    batch: int
    new: int
    heads: int
    key_heads: int
    size: int
    capacity: int
    window: int
    is_causal: bool
    rows: int = 1
    parts: int = 1

    @classmethod
    def for_node(cls, node: Node, features: Features) -> CachedAttention:
        """Return the distribution of a node."""
        batch, key_heads, capacity, size = node.outputs[1].shape
        options = {name: node.options[name] for name in ("window", "is_causal")}
        new = node.outputs[0].shape[1]
        plan = cls(batch, new, node.options["num_heads"], key_heads, size, capacity, **options)
        most = MOST_ROWS
        while attrs.evolve(plan, rows=most).storage > features.max_workgroup_storage and most > 1:
            most //= 2
        plan = attrs.evolve(plan, rows=-(-plan.queries // -(-plan.queries // most)))
        wanted = GROUPS_PER_PROCESSOR * features.processors // (plan.matrices * plan.blocks)
        return attrs.evolve(plan, parts=max(1, min(MOST_PARTS, wanted, -(-capacity // KEYS))))

    @property
    def groups(self) -> int:
        """The heads of queries that share a head of keys."""
        return self.heads // self.key_heads

    @property
    def matrices(self) -> int:
        """The matrices of keys."""
        return self.batch * self.key_heads

    @property
    def queries(self) -> int:
        """The queries of a matrix."""
        return self.new * self.groups

    @property
    def blocks(self) -> int:
        """The workgroups among which the queries of a matrix are distributed."""
        return -(-self.queries // self.rows)

    @property
    def vec4s(self) -> int:
        """The vec4s of a head."""
        return self.size // WIDTH

    @property
    def sharers(self) -> int:
        """The invocations that share a vec4 of values, each for other keys."""
        return THREADS // self.vec4s

    @property
    def storage(self) -> int:
        """The bytes in workgroup memory."""
        vec4s = self.rows * self.vec4s + ROWS_ADDED * THREADS + 1  # and the range
        return 4 * (WIDTH * vec4s + self.rows * (THREADS + KEYS + 16))
