"""Passes: named changes of a graph, in an order; each optional one can be left out, and reports what it did."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import Replace, rewrite
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.rewriting.node_rules import NodeRule, first_of
from webnn_py.devices.rewriting.report import AppliedRule, PassReport, RefusedRule, describe, place_of


class HasNodes(Protocol):
    """The input of a pass: a graph, or the nodes of a model in another form."""

    @property
    def nodes(self) -> Sequence[Any]:
        """The nodes, in an order in which they can run."""


HasNodesT = TypeVar("HasNodesT", bound=HasNodes)

ReadConstant = Callable[[Constant], NDArray[Any]]
"""Returns the array of a constant."""

PRINTED: Final = "WEBNN_PY_PASSES"
"""The environment variable that, set to 1, prints every pass of every build to the standard error stream."""


def _host_array(constant: Constant) -> NDArray[Any]:
    assert isinstance(constant.data, np.ndarray)  # noqa: S101 - backends with other constants pass their own reader
    return constant.data


_left_out: set[str] = set()
"""The names of passes that are left out, for the whole process: builds run in their own tasks and threads."""


@attrs.frozen
class PassContext:
    """Facts that a pass may use.

    Attributes:
        contents: returns the arrays of constants; those on the host by default.
        target: the target that the graph is rewritten for, such as an execution provider of onnxruntime.
        keeps_subnormals: whether subnormal numbers in constants stay.
        applied: where passes of whole graphs record what they did.
        refused: where they record what they nearly did, and why they did not.
    """

    contents: ReadConstant = _host_array
    target: str = ""
    keeps_subnormals: bool = False
    applied: list[AppliedRule] = attrs.field(factory=list)
    refused: list[RefusedRule] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Pass:
    """A named change of graphs.

    Attributes:
        name: the name.
        after: the names of the passes that must come before it.
        targets: the targets that it is for; None for all.
        needs: operators of which a graph must have one for the pass to have work; none for any graph.
        is_required: whether the device cannot run the graph without it. Only other passes may be left out.
    """

    name: str
    after: tuple[str, ...] = ()
    targets: Collection[str] | None = None
    needs: frozenset[Operator[..., Any]] = frozenset()
    is_required: bool = False

    @property
    def walk(self) -> object:
        """The same object for passes that share a walk where they are adjacent."""
        return type(self)

    @classmethod
    def run_together(cls, group: Sequence[Any], graph: Any, context: PassContext) -> Any:
        """Run adjacent passes of one walk; record in the context what they did, and return the graph."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class GraphPass(Pass):
    """A pass that is a function of a whole graph, or of another form of model that its manager rewrites."""

    run: Callable[[Any, PassContext], Any]

    @property
    def walk(self) -> object:
        """The pass itself, which has a walk of its own."""
        return self

    @classmethod
    def run_together(cls, group: Sequence[GraphPass], graph: Any, context: PassContext) -> Any:
        """Run the first pass, which stands for all."""
        return group[0].run(graph, context)


@attrs.frozen(kw_only=True)
class GroupingPass(GraphPass):
    """A pass that changes no node: it decides which nodes are computed together, by one kernel.

    It takes a grouping and returns another, whose ``nodes`` stand for the groups. Passes whose decisions one walk takes
    are adjacent and have the same function, which runs once and asks :func:`is_left_out` for each of them.

    Attributes:
        counts: what reports call the groups.
    """

    run: Callable[[Any, Any], Any]
    counts: str = "groups"

    @property
    def walk(self) -> object:
        """The function, which passes share."""
        return self.run


@attrs.frozen(kw_only=True)
class NodePass(Pass):
    """A pass that replaces nodes one by one; adjacent node passes share one walk, in which the first match replaces.

    Attributes:
        make: makes the rule for a graph; None where the pass has no work in it.
    """

    make: Callable[[Graph, PassContext], NodeRule | None]

    @classmethod
    def run_together(cls, group: Sequence[NodePass], graph: Graph, context: PassContext) -> Graph:
        """Walk over the nodes once; the first rule that matches a node replaces it."""
        operators = {node.operator for node in graph.nodes}
        made = [(one.name, one.make(graph, context)) for one in group]
        rules = [
            NodeRule(_noted(name, rule.replace, context.applied), rule.is_for)
            for name, rule in made
            if rule is not None and any(map(rule.is_for, operators))
        ]
        return rewrite(graph, first_of(rules)) if rules else graph


@contextmanager
def passes_left_out(*names: str) -> Iterator[None]:
    """Leave passes out of everything that the process builds within the context, for benchmarks and tests.

    A build fails with ValueError where one of them is required.
    """
    added = {*names} - _left_out
    _left_out.update(added)
    try:
        yield
    finally:
        _left_out.difference_update(added)


def is_left_out(name: str) -> bool:
    """Return whether the pass or step of this name is left out of builds now."""
    return name in _left_out


class PassManager:
    """Runs passes over graphs, in the order given.

    Args:
        passes: the passes.

    Raises:
        ValueError: two passes have one name, or one comes before one that it must follow.
    """

    def __init__(self, *passes: Pass) -> None:
        before: set[str] = set()
        for one in passes:
            if one.name in before:
                raise ValueError(f"two passes have the name {one.name!r}")
            missing = [name for name in one.after if name not in before]
            if missing:
                raise ValueError(f"pass {one.name!r} must come after {', '.join(map(repr, missing))}")
            before.add(one.name)
        self.passes = passes
        self._asks_for_operators = any(one.needs for one in passes)

    @property
    def optional(self) -> tuple[str, ...]:
        """The names of the passes that may be left out."""
        return tuple(one.name for one in self.passes if not one.is_required)

    def run(self, graph: HasNodesT, context: PassContext) -> tuple[HasNodesT, tuple[PassReport, ...]]:
        """Run the passes; return the rewritten graph and a report for each walk."""
        reports: list[PassReport] = []
        operators: set[Any] = {node.operator for node in graph.nodes} if self._asks_for_operators else set()
        for _, group in groupby(self._chosen(context.target), lambda one: one.walk):
            there = [one for one in group if not one.needs or not one.needs.isdisjoint(operators)]
            if not there:
                continue
            before = graph
            graph = _run(there, graph, context, reports)
            if graph is not before and self._asks_for_operators:
                operators = {node.operator for node in graph.nodes}
        if os.environ.get(PRINTED) == "1":
            print(describe(reports), file=sys.stderr)  # noqa: T201 - the variable requests it
        return graph, tuple(reports)

    def _chosen(self, target: str) -> list[Pass]:
        """Return the passes for a target, without those that are left out."""
        required = [one.name for one in self.passes if one.is_required and one.name in _left_out]
        if required:
            raise ValueError(f"passes {', '.join(map(repr, required))} are required and cannot be left out")
        return [
            one for one in self.passes if one.name not in _left_out and (one.targets is None or target in one.targets)
        ]


def _run(group: Sequence[Pass], graph: Any, context: PassContext, reports: list[PassReport]) -> Any:
    started, before = perf_counter(), graph
    applied: list[AppliedRule] = []
    refused: list[RefusedRule] = []
    first = group[0]
    graph = first.run_together(group, graph, attrs.evolve(context, applied=applied, refused=refused))
    names, counts = tuple([one.name for one in group]), (len(before.nodes), len(graph.nodes))
    unit = first.counts if isinstance(first, GroupingPass) else "nodes"
    seconds, is_changed = perf_counter() - started, graph is not before
    reports.append(PassReport(names, *counts, seconds, is_changed, applied, refused, unit))
    return graph


def _noted(name: str, replace: Replace, applied: list[AppliedRule]) -> Replace:
    def noted(node: Node, current: Node) -> Mapping[Value, Value] | None:
        built = replace(node, current)
        if built:
            applied.append(AppliedRule(name, place_of(node)))
        return built

    return noted
