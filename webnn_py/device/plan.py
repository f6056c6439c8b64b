"""From a graph to an order of work: what can be computed at build, and which intermediates share memory.

Shared by the backends; what memory it is that they share, it does not know.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.sized_graphs import is_dynamic_node

ALIGNMENT = 64
"""Intermediates start at multiples of this many bytes: a cache line, and more than any SIMD load asks for."""

Key = TypeVar("Key", bound=Hashable)
"""What a backend takes for an intermediate."""

Places = npt.NDArray[np.int64]
"""Places in memory, in bytes from its start."""


def split_constant(graph: Graph) -> tuple[list[Node], list[Node]]:
    """The nodes that depend on no graph input, and the others; each in an order in which they can run."""
    folded: list[Node] = []
    live: list[Node] = []
    known: set[Node] = set()

    def constant(value: Value) -> bool:
        return isinstance(value, Constant) or (isinstance(value, Output) and value.node in known)

    for node in graph.nodes:
        if all(constant(value) for value in node.inputs) and not is_dynamic_node(node):
            known.add(node)
            folded.append(node)
        else:
            live.append(node)
    return folded, live


@attrs.frozen
class Interval:
    """When an intermediate is needed: from the step that writes it to the last step that reads it."""

    first: int
    last: int
    byte_length: int

    def overlaps(self, other: "Interval") -> bool:
        """Whether there is a step at which both are needed."""
        return self.first <= other.last and other.first <= self.last


@attrs.frozen
class Arena(Generic[Key]):
    """Where intermediates lie in one piece of memory."""

    offsets: Mapping[Key, int]
    byte_length: int


def lifetimes(
    steps: Sequence[Sequence[Node]],
    bases: Mapping[Value, Value],
    outputs: Iterable[Value],
    kept_elsewhere: Callable[[Value], bool],
) -> dict[Value, Interval]:
    """The interval of every intermediate.

    Args:
        steps: the nodes that run together, in the order in which they run.
        bases: for a value that is a view of another, that other; a view keeps its base alive. In the order of the
            nodes.
        outputs: values that are read once more, after the last step.
        kept_elsewhere: values that need no memory here, because a step writes them straight into a buffer.
    """
    roots: dict[Value, Value] = {}
    for value, base in bases.items():  # a base comes before the views of it
        roots[value] = roots.get(base, base)
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for step, nodes in enumerate(steps):
        for node in nodes:
            for result in node.results:
                first[result] = last[result] = step
        for node in nodes:
            for value in node.inputs:
                last[roots.get(value, value)] = step
    for value in outputs:
        last[roots.get(value, value)] = len(steps)
    return {
        value: Interval(start, last[value], value.descriptor.byte_length)
        for value, start in first.items()
        if value not in bases and not kept_elsewhere(value)
    }


def lay_out(intervals: Mapping[Key, Interval], alignment: int = ALIGNMENT) -> Arena[Key]:
    """Place intermediates so that those needed at the same time never overlap: largest first, lowest gap first."""
    offsets: dict[Key, int] = {}
    # What is placed already, by ascending start. Each has to be compared with all of them, so numpy does it.
    first, last, starts, ends = columns = np.empty((4, len(intervals)), np.int64)
    total = 0
    for count, (value, interval) in enumerate(sorted(intervals.items(), key=lambda item: -item[1].byte_length)):
        size = -(-interval.byte_length // alignment) * alignment
        together = (first[:count] <= interval.last) & (last[:count] >= interval.first)
        offset = lowest_gap(starts[:count][together], ends[:count][together], size)
        place = starts[:count].searchsorted(offset)
        columns[:, place + 1 : count + 1] = columns[:, place:count]
        columns[:, place] = interval.first, interval.last, offset, offset + size
        offsets[value] = offset
        total = max(total, offset + size)
    return Arena(offsets, total)


def lowest_gap(starts: Places, ends: Places, size: int) -> int:
    """Where the lowest ``size`` bytes begin that none of some ranges covers; they are in ascending order."""
    if not len(starts) or starts[0] >= size:
        return 0
    covered = np.maximum.accumulate(ends)
    fitting = np.flatnonzero(starts[1:] - covered[:-1] >= size)
    return int(covered[fitting[0] if len(fitting) else -1])
