"""Calls of a program or nodes of a model that would fail in a browser, with the reason."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from webnn_py.browser_profiles.profile import BrowserProfile, Refusal
from webnn_py.graph import Graph, Node
from webnn_py.message_text import shortened, table

MOST_LABELS: Final = 3
"""The most labels that are listed for one reason; JSON has all."""

_HEADINGS: Final = ("browser profile", "what", "times", "fails", "why", "labels")


@attrs.define(eq=False)
class Finding:
    """One reason for which calls or nodes fail in a browser, and how many do.

    Attributes:
        profile: the browser profile's name.
        subject: the method or operator, by its JavaScript name.
        refusal: the error, when it comes, and why.
        count: how many fail for it.
        labels: those of the nodes that have one, each once.
    """

    profile: str
    subject: str
    refusal: Refusal
    count: int = 0
    labels: dict[str, None] = attrs.field(factory=dict)


class PortabilityReport:
    """A report of failures by browser, gathered while a program runs or from a graph.

    Args:
        profiles: the browsers to judge for.
    """

    def __init__(self, profiles: Iterable[BrowserProfile]) -> None:
        self.profiles = tuple(profiles)
        self._findings: dict[tuple[str, str, Refusal], Finding] = {}

    def add(self, profile: BrowserProfile, subject: str, refusal: Refusal | None, label: str = "") -> None:
        """Count a refusal, if it is one."""
        if refusal is None:
            return
        key = (profile.name, subject, refusal)
        finding = self._findings.setdefault(key, Finding(*key))
        finding.count += 1
        if label:
            finding.labels[label] = None

    def add_node(self, node: Node) -> None:
        """Judge a node."""
        for profile in self.profiles:
            self.add(profile, node.operator.spec_name, profile.refusal_of_node(node), node.label)

    def add_graph(self, graph: Graph) -> None:
        """Judge a graph: its inputs, its nodes and its outputs."""
        for profile in self.profiles:
            for name, value in graph.inputs.items():
                self.add(profile, "input", profile.refusal_of_tensor("the input", value.descriptor), name)
            self.add(profile, "build", profile.refusal_of_outputs(graph))
        for node in graph.nodes:
            self.add_node(node)

    def findings(self, profile: BrowserProfile) -> list[Finding]:
        """Return the failures in a browser, the most frequent first."""
        own = [finding for finding in self._findings.values() if finding.profile == profile.name]
        return sorted(own, key=lambda finding: -finding.count)

    def lines(self) -> Iterator[str]:
        """Return a table, with a line for each browser in which nothing fails."""
        rows: list[tuple[str, ...]] = []
        for profile in self.profiles:
            found = self.findings(profile)
            rows += [_row(finding) for finding in found] or [(profile.name, "all of it", "", "no", "", "")]
        return table([_HEADINGS, *rows])

    def as_json(self) -> dict[str, Any]:
        """By browser profile: its title, whether all of it runs, and what fails."""
        return {
            profile.name: {
                "title": profile.title,
                "runs": not self.findings(profile),
                "failing": [
                    {
                        "what": finding.subject,
                        "times": finding.count,
                        **attrs.asdict(finding.refusal),
                        "labels": list(finding.labels),
                    }
                    for finding in self.findings(profile)
                ],
            }
            for profile in self.profiles
        }


def _row(finding: Finding) -> tuple[str, ...]:
    refusal = finding.refusal
    labels = [shortened(label, 40) for label in list(finding.labels)[:MOST_LABELS]]
    if len(finding.labels) > MOST_LABELS:
        labels.append("…")
    when = "at once" if refusal.when == "call" else "at build()"
    fails = f"{when}, {refusal.error}"
    return finding.profile, finding.subject, str(finding.count), fails, refusal.reason, ", ".join(labels)
