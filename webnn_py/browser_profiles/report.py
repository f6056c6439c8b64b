"""Calls of a program or nodes of a model that would fail in a browser, with the reason."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from webnn_py.browser_profiles.profile import BrowserProfile, Refusal
from webnn_py.graph import Graph
from webnn_py.message_text import shortened, table

MOST_LABELS: Final = 3
"""The most labels that are listed for one reason; JSON has all."""

_HEADINGS: Final = ("browser profile", "what", "times", "fails", "why", "labels")


class PortabilityReport:
    """A report of failures by browser, gathered while a program runs or from a graph.

    Args:
        profiles: the browsers to judge for.
    """

    def __init__(self, profiles: Iterable[BrowserProfile]) -> None:
        self.profiles = tuple(profiles)
        self._labels: dict[tuple[str, str, Refusal], list[str]] = {}

    def add(self, profile: BrowserProfile, subject: str, refusal: Refusal | None, label: str = "") -> None:
        """Count a refusal, if it is one, of a method or operator, by its JavaScript name."""
        if refusal is not None:
            self._labels.setdefault((profile.name, subject, refusal), []).append(label)

    def add_graph(self, graph: Graph) -> None:
        """Judge a graph: its inputs, its nodes and its outputs."""
        for profile in self.profiles:
            for name, value in graph.inputs.items():
                self.add(profile, "input", profile.refusal_of_tensor("the input", value.descriptor), name)
            for node in graph.nodes:
                self.add(profile, node.operator.spec_name, profile.refusal_of_node(node), node.label)
            self.add(profile, "build", profile.refusal_of_outputs(graph))

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
