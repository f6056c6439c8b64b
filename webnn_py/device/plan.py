"""From a drawing to an order of work: what can be computed at build, and which intermediates share memory.

Shared by the backends; knows neither arrays nor GPU buffers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from webnn_py.graph import Constant, Graph, Node, Output, Value

ALIGNMENT = 64
"""Intermediates start at multiples of this many bytes: a cache line, and more than any SIMD load asks for."""


def split_constant(graph: Graph) -> tuple[list[Node], list[Node]]:
    """The nodes that depend on no graph input, and the others; each in an order in which they can run."""
    folded: list[Node] = []
    live: list[Node] = []
    known: set[Node] = set()

    def constant(value: Value) -> bool:
        return isinstance(value, Constant) or (isinstance(value, Output) and value.node in known)

    for node in graph.nodes:
        if all(constant(value) for value in node.inputs):
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
class Arena:
    """Where intermediates lie in one piece of memory."""

    offsets: Mapping[Value, int]
    byte_length: int


def lifetimes(
    nodes: Sequence[Node],
    bases: Mapping[Value, Value],
    outputs: Iterable[Value],
    kept_elsewhere: Callable[[Value], bool],
) -> dict[Value, Interval]:
    """The interval of every intermediate of ``nodes``, which run in this order.

    Args:
        nodes: the steps.
        bases: for a value that is a view of another, that other; a view keeps its base alive.
        outputs: values that are read once more, after the last step.
        kept_elsewhere: values that need no memory here, because a step writes them straight into a buffer.
    """

    def base_of(value: Value) -> Value:
        while value in bases:
            value = bases[value]
        return value

    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for step, node in enumerate(nodes):
        for result in node.results:
            first[result] = last[result] = step
        for value in node.inputs:
            last[base_of(value)] = step
    for value in outputs:
        last[base_of(value)] = len(nodes)
    return {
        value: Interval(start, last[value], value.descriptor.byte_length)
        for value, start in first.items()
        if value not in bases and not kept_elsewhere(value)
    }


def lay_out(intervals: Mapping[Value, Interval]) -> Arena:
    """Place intermediates so that those needed at the same time never overlap: largest first, lowest gap first."""
    offsets: dict[Value, int] = {}
    placed: list[tuple[int, int, Interval]] = []
    total = 0
    for value, interval in sorted(intervals.items(), key=lambda item: -item[1].byte_length):
        size = -(-interval.byte_length // ALIGNMENT) * ALIGNMENT
        offset = 0
        for start, end, other in sorted(placed, key=lambda item: item[0]):
            if interval.overlaps(other):
                if start - offset >= size:
                    break
                offset = max(offset, end)
        offsets[value] = offset
        placed.append((offset, offset + size, interval))
        total = max(total, offset + size)
    return Arena(offsets, total)
