"""What is decided about a graph's memory: the nodes to fold at build, and the arena that intermediates share.

Backends share it; it works for any kind of memory.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.core.descriptors import FOUR_BITS
from webnn_py.core.graph import Constant, Graph, Node, Output, Value

ALIGNMENT = 64
"""Intermediates start at multiples of this many bytes: a cache line, and at least the alignment of SIMD loads."""

FEW = 50
COMPARED_AT_ONCE = 100
"""To compare an interval with n others takes numpy as long as Python takes for ``FEW`` + n / this many of them."""

Key = TypeVar("Key", bound=Hashable)
"""A backend's key for an intermediate."""

Places = npt.NDArray[np.int64]
"""Offsets in memory, in bytes from its start."""


def split_constant(graph: Graph) -> tuple[list[Node], list[Node]]:
    """Return the nodes that depend on no graph input, and the others; each in an order in which they can run.

    Nodes that read 4-bit elements, and nodes that depend on these, are among the others: folded values would be larger.
    """
    folded: list[Node] = []
    live: list[Node] = []
    known: set[Node] = set()

    def constant(value: Value) -> bool:
        return isinstance(value, Constant) or (isinstance(value, Output) and value.node in known)

    for node in graph.nodes:
        has_four_bits = any(value.descriptor.data_type in FOUR_BITS for value in node.inputs)
        if all(map(constant, node.inputs)) and not has_four_bits:
            known.add(node)
            folded.append(node)
        else:
            live.append(node)
    return folded, live


@attrs.frozen
class Interval:
    """The lifetime of an intermediate: from the step that writes it to the last step that reads it."""

    first: int
    last: int
    byte_length: int

    def overlaps(self, other: "Interval") -> bool:
        """Return whether two lifetimes have a step in common."""
        return self.first <= other.last and other.first <= self.last


@attrs.frozen
class Arena(Generic[Key]):
    """The offsets of intermediates in one piece of memory, and its size."""

    offsets: Mapping[Key, int]
    byte_length: int


def lifetimes(
    nodes: Sequence[Node], bases: Mapping[Value, Value], outputs: Iterable[Value], kept_elsewhere: Collection[Value]
) -> dict[Value, Interval]:
    """Return the interval of every intermediate.

    Args:
        nodes: the nodes, in the order in which they run: each is a step.
        bases: for each value that is a view, the value that it views; a view keeps its base alive. In the order of the
            nodes.
        outputs: values that are read once more, after the last step.
        kept_elsewhere: values that need no memory here, because a step writes them straight into a buffer.
    """
    roots: dict[Value, Value] = {}
    for value, base in bases.items():  # a base comes before its views
        roots[value] = roots.get(base, base)
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for step, node in enumerate(nodes):
        for result in node.results:
            first[result] = last[result] = step
        for value in node.inputs:
            last[roots.get(value, value)] = step
    for value in outputs:
        last[roots.get(value, value)] = len(nodes)
    return {
        value: Interval(start, last[value], value.descriptor.byte_length)
        for value, start in first.items()
        if value not in bases and value not in kept_elsewhere
    }


def lay_out(intervals: Mapping[Key, Interval], alignment: int = ALIGNMENT) -> Arena[Key]:
    """Place intermediates so that those needed at the same time never overlap: largest first, lowest gap first."""
    offsets: dict[Key, int] = {}
    taken = TakenByTime() if are_few_together(intervals.values()) else TakenByPlace(len(intervals))
    total = 0
    for value, interval in sorted(intervals.items(), key=lambda item: -item[1].byte_length):
        size = -(-interval.byte_length // alignment) * alignment
        offset = offsets[value] = taken.take(interval, size)
        total = max(total, offset + size)
    return Arena(offsets, total)


def are_few_together(intervals: Collection[Interval]) -> bool:
    """Return whether few intervals overlap, so that :class:`TakenByTime` is faster; the offsets are the same."""
    first = np.sort([interval.first for interval in intervals])
    last = np.sort([interval.last for interval in intervals])
    pairs = int(first.searchsorted(last, "right").sum()) - int(last.searchsorted(first, "left").sum())
    return pairs < len(intervals) * (FEW + len(intervals) // COMPARED_AT_ONCE)


class TakenByTime:
    """Taken ranges of memory with their intervals: for intermediates with few alive at once.

    Time is cut into stretches whose length is at least that of the interval; each interval is entered for the stretch
    in which it begins. So an interval that is alive at a time began in the stretch of that time, or in the one before.
    """

    def __init__(self) -> None:
        self._stretches: dict[int, dict[int, list[tuple[int, int, Interval]]]] = {}

    def take(self, interval: Interval, size: int) -> int:
        """Take the lowest bytes that are free during an interval; return their offset."""
        offset = 0
        for start, end in sorted(self._during(interval)):
            if start - offset >= size:
                break
            offset = max(offset, end)
        scale = (interval.last - interval.first).bit_length()
        stretches = self._stretches.setdefault(scale, {})
        stretches.setdefault(interval.first >> scale, []).append((offset, offset + size, interval))
        return offset

    def _during(self, interval: Interval) -> Iterator[tuple[int, int]]:
        first, last = interval.first, interval.last
        for scale, stretches in self._stretches.items():
            wanted: Collection[int] = range((first >> scale) - 1, (last >> scale) + 1)
            for stretch in wanted if len(wanted) < len(stretches) else stretches:
                for start, end, taken in stretches.get(stretch, ()):
                    if taken.first <= last and first <= taken.last:
                        yield start, end


class TakenByPlace:
    """Taken ranges of memory with their intervals, by ascending offset: for intermediates with many alive at once.

    Each is compared with all others, by numpy.
    """

    def __init__(self, most: int) -> None:
        self._columns = np.empty((4, most), np.int64)
        self._count = 0

    def take(self, interval: Interval, size: int) -> int:
        """Take the lowest bytes that are free during an interval; return their offset."""
        count, columns = self._count, self._columns
        first, last, starts, ends = columns[:, :count]
        together = (first <= interval.last) & (last >= interval.first)
        offset = lowest_gap(starts[together], ends[together], size)
        place = starts.searchsorted(offset)
        columns[:, place + 1 : count + 1] = columns[:, place:count]
        columns[:, place] = interval.first, interval.last, offset, offset + size
        self._count += 1
        return offset


def lowest_gap(starts: Places, ends: Places, size: int) -> int:
    """Return the lowest offset of ``size`` bytes outside of all ranges, which are in ascending order."""
    if not len(starts) or starts[0] >= size:
        return 0
    covered = np.maximum.accumulate(ends)
    fitting = np.flatnonzero(starts[1:] - covered[:-1] >= size)
    return int(covered[fitting[0] if len(fitting) else -1])
