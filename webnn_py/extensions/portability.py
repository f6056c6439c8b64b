"""Calls of a program or nodes of a model that would fail in a browser, with the reason."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import MLBufferDescriptor
from webnn_py.core.extension import Extension, LeafT
from webnn_py.core.graph import Graph, Input, Node
from webnn_py.core.message_text import shortened
from webnn_py.extensions.browser_limits import BrowserLimits, BrowserProfile, Refusal, kind_of
from webnn_py.text_tables import table

MOST_LABELS: Final = 3
"""The most labels that are listed for one reason; JSON has all."""

_HEADINGS: Final = ("browser profile", "what", "times", "fails", "why", "labels")


class PortabilityReport(Extension):
    """A report of failures by browser, gathered from a graph, or as an extension while a program runs.

    Args:
        profiles: the browsers to judge for.
    """

    sees_all = True

    def __init__(self, profiles: Iterable[BrowserProfile]) -> None:
        self.profiles = tuple(profiles)
        self._labels: dict[tuple[str, str, Refusal], list[str]] = {}

    def add(self, profile: BrowserProfile, subject: str, refusal: Refusal | None, label: str = "") -> None:
        """Count a refusal, if it is one, of a method or operator, by its JavaScript name."""
        if refusal is not None:
            self._labels.setdefault((profile.name, subject, refusal), []).append(label)

    def buffer(self, descriptor: MLBufferDescriptor) -> None:
        """Judge a tensor that is created."""
        for profile in self.profiles:
            method = "createConstantTensor" if descriptor.constant else "createTensor"
            self.add(profile, method, profile.refusal_of_tensor("the tensor", descriptor))

    def leaf(self, _builder: object, value: LeafT) -> LeafT:
        """Judge an input or a constant."""
        kind, label = kind_of(value), value.name if isinstance(value, Input) else ""
        for profile in self.profiles:
            self.add(profile, kind, profile.refusal_of_tensor(f"the {kind}", value.descriptor), label)
        return value

    def node(self, _builder: object, node: Node) -> Node:
        """Judge an operator."""
        for profile in self.profiles:
            self.add(profile, node.operator.spec_name, profile.refusal_of_node(node), node.label)
        return node

    def graph(self, _builder: object, method: str, graph: Graph) -> Graph:
        """Judge the outputs of a graph that is built; its operators have been."""
        for profile in self.profiles if method == "build" else ():
            self.add(profile, "build", profile.refusal_of_outputs(graph))
        return graph

    def add_graph(self, graph: Graph) -> None:
        """Judge a graph: its inputs, its nodes and its outputs."""
        for value in graph.inputs.values():
            self.leaf(None, value)
        for node in graph.nodes:
            self.node(None, node)
        self.graph(None, "build", graph)

    def lines(self) -> Iterator[str]:
        """Return a table, with a line for each browser in which nothing fails."""
        rows: list[tuple[str, ...]] = []
        for profile in self.profiles:
            nothing = (profile.name, "all of it", "", "no", "", "")
            rows += [(profile.name, *_cells(one)) for one in self._failing(profile)] or [nothing]
        return table([_HEADINGS, *rows])

    def as_json(self) -> dict[str, Any]:
        """By browser profile: its title, whether all of it runs, and what fails."""
        return {
            profile.name: {
                "title": profile.title,
                "runs": not self._failing(profile),
                "failing": self._failing(profile),
            }
            for profile in self.profiles
        }

    def _failing(self, profile: BrowserProfile) -> list[dict[str, Any]]:
        """Return what fails in a browser, the most frequent first, with the labels of nodes, each once."""
        failing = [
            {
                "what": subject,
                "times": len(labels),
                **attrs.asdict(refusal),
                "labels": list(dict.fromkeys(filter(None, labels))),
            }
            for (name, subject, refusal), labels in self._labels.items()
            if name == profile.name
        ]
        return sorted(failing, key=lambda one: -one["times"])


def judges(browser: str | None, report: PortabilityReport | None) -> tuple[Extension, ...]:
    """Return the extension of a program's options: a browser's limits, a report of several browsers, or none."""
    if browser is not None:
        return (BrowserLimits(browser),)
    return () if report is None else (report,)


def _cells(failing: dict[str, Any]) -> tuple[str, ...]:
    labels = [shortened(label, 40) for label in failing["labels"][:MOST_LABELS]]
    if len(failing["labels"]) > MOST_LABELS:
        labels.append("…")
    when = "at once" if failing["when"] == "call" else "at build()"
    return (
        failing["what"],
        str(failing["times"]),
        f"{when}, {failing['error']}",
        failing["reason"],
        ", ".join(labels),
    )
