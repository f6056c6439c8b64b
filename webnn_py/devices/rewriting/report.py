"""Reports of what each pass did to a graph, for people to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from webnn_py.core.frozen import frozen
from webnn_py.core.graph import Node
from webnn_py.core.message_text import in_brackets


def place_of(node: Node) -> str:
    """Return the name of a node in reports: its operator and its label."""
    return f"{node.operator.spec_name}{in_brackets(node.label)}"


def fused_into(nodes: Iterable[Node], other: Node) -> str:
    """Return the names of nodes that are computed with another, for reports: each operator once, with their number."""
    counts = Counter(node.operator.spec_name for node in nodes)
    return f"{', '.join(f'{name}{_times(count)}' for name, count in counts.items())} into {place_of(other)}"


@frozen
class AppliedRule:
    """A rule that was applied.

    Attributes:
        rule: its name.
        where: the node whose result it replaced.
    """

    rule: str
    where: str


@frozen
class RefusedRule:
    """A rule whose drawing was found and that was not applied.

    Attributes:
        rule: its name.
        where: the node that gives the result.
        reason: why it was not applied.
    """

    rule: str
    where: str
    reason: str


@attrs.frozen
class PassReport:
    """The effect of a pass on a graph, or of several that share one walk.

    Attributes:
        names: the names of the passes.
        nodes_before: how many nodes the graph had, or how many groups.
        nodes_after: how many it has.
        seconds: how long it took.
        is_changed: whether the graph is another one.
        applied: where rules were applied.
        refused: where rules were not applied whose drawing was found.
        unit: what is counted: nodes, or groups of nodes that are computed together.
    """

    names: tuple[str, ...]
    nodes_before: int
    nodes_after: int
    seconds: float
    is_changed: bool
    applied: Sequence[AppliedRule] = ()
    refused: Sequence[RefusedRule] = ()
    unit: str = "nodes"


def describe(reports: Sequence[PassReport]) -> str:
    """Return a line for each pass, and below it one for each rule that was applied or refused."""
    return "\n".join(line for report in reports for line in _lines(report))


def _lines(report: PassReport) -> Iterator[str]:
    nodes = f"{report.nodes_before} → {report.nodes_after} {report.unit}"
    yield f"  {', '.join(report.names)}: {nodes}, {1e3 * report.seconds:.2f} ms"
    for (rule, where), count in Counter((one.rule, one.where) for one in report.applied).items():
        yield f"    {rule}: {where}{_times(count)}"
    refusals = Counter((one.rule, one.where, one.reason) for one in report.refused)
    for (rule, where, reason), count in refusals.items():
        yield f"    not {rule}: {where}{_times(count)}: {reason}"


def _times(count: int) -> str:
    return f" ({count} ×)" if count > 1 else ""
