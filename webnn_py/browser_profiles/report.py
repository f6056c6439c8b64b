"""Calls of a program or nodes of a model that would fail in a browser, with the reason."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from webnn_py.browser_profiles.profile import BrowserProfile, Refusal
from webnn_py.browser_profiles.verdict import EngineVerdict
from webnn_py.graph import Graph, Node
from webnn_py.message_text import shortened, table

MOST_LABELS: Final = 3
"""The most labels that are listed for one reason; JSON has all."""

LISTED_ENGINE: Final = "onnxruntime"
"""The subject of what an engine says of nodes that no call has drawn."""

NO_GRAPH: Final = "no graph was built"
"""The reason for which no engine was asked about a program that built nothing."""

_HEADINGS: Final = ("browser profile", "what", "times", "fails", "why", "labels")


@attrs.frozen
class CpuFallback:
    """The reason for which a browser computes an operator on the CPU instead of where the context is.

    Attributes:
        error: None, as nothing is thrown.
        when: when it is decided.
        reason: why.
    """

    error: None = attrs.field(init=False, default=None)
    when: str = attrs.field(init=False, default="build")
    reason: str = ""


@attrs.define(eq=False)
class Finding:
    """One reason for which calls or nodes fail in a browser or run on the CPU there, and how many do.

    Attributes:
        profile: the browser profile's name.
        subject: the method or operator, by its JavaScript name.
        refusal: the error, when it comes, and why.
        count: how many fail for it.
        labels: those of the nodes that have one, each once.
    """

    profile: str
    subject: str
    refusal: Refusal | CpuFallback
    count: int = 0
    labels: dict[str, None] = attrs.field(factory=dict)


class PortabilityReport:
    """A report of failures by browser, gathered while a program runs or from a graph.

    Args:
        profiles: the browsers to judge for.
    """

    def __init__(self, profiles: Iterable[BrowserProfile]) -> None:
        self.profiles = tuple(profiles)
        self._findings: dict[tuple[str, str, Refusal | CpuFallback], Finding] = {}
        self._verdicts: dict[str, list[EngineVerdict]] = {}

    def add(
        self, profile: BrowserProfile, subject: str, refusal: Refusal | CpuFallback | None, label: str = ""
    ) -> None:
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

    def add_verdict(self, profile: BrowserProfile, verdict: EngineVerdict) -> None:
        """Count what the engine of a browser said of a graph."""
        self._verdicts.setdefault(profile.name, []).append(verdict)
        refused = False
        for one in verdict.operators:
            is_error = one.outcome == "refused"
            refused = refused or is_error
            refusal = Refusal("UnknownError", "build", one.reason) if is_error else CpuFallback(one.reason)
            self.add(profile, one.operator or LISTED_ENGINE, refusal, one.label)
        if verdict.error and not refused:
            self.add(profile, "build", Refusal("UnknownError", "build", verdict.error))

    def found(self, profile: BrowserProfile) -> str:
        """Say how the answers for a browser were found: by table alone, or asked of its engine."""
        if profile.engine is None:
            return "by table"
        answers = dict.fromkeys(verdict.found for verdict in self._verdicts.get(profile.name, ()))
        return f"limits by table; operators {'; '.join(answers) or f'not asked: {NO_GRAPH}'}"

    def _not_asked(self, profile: BrowserProfile) -> str:
        """Return why the engine of a browser was not asked; "" if it was, or if there is none to ask."""
        if profile.engine is None:
            return ""
        reasons = [verdict.not_asked for verdict in self._verdicts.get(profile.name, ())] or [NO_GRAPH]
        return next(filter(None, reasons), "")

    def _runs(self, profile: BrowserProfile) -> bool | None:
        """Return whether nothing fails in a browser; None if nothing is known to, but its engine was not asked."""
        if any(finding.refusal.error is not None for finding in self.findings(profile)):
            return False
        return None if self._not_asked(profile) else True

    def findings(self, profile: BrowserProfile) -> list[Finding]:
        """Return the failures in a browser, the most frequent first."""
        own = [finding for finding in self._findings.values() if finding.profile == profile.name]
        return sorted(own, key=lambda finding: -finding.count)

    def lines(self) -> Iterator[str]:
        """Return a table, with a line for each browser in which nothing fails; then how engines were asked, if any."""
        rows: list[tuple[str, ...]] = []
        for profile in self.profiles:
            found = self.findings(profile)
            unasked = self._not_asked(profile)
            nothing = (profile.name, "all of it", "", "not known" if unasked else "no", unasked, "")
            rows += [_row(finding) for finding in found] or [nothing]
        yield from table([_HEADINGS, *rows])
        if any(profile.engine is not None for profile in self.profiles):
            yield ""
            yield from table([(profile.name, self.found(profile)) for profile in self.profiles])

    def as_json(self) -> dict[str, Any]:
        """By browser profile: its title, whether all of it runs, how that was found, and what fails.

        A profile with an engine also has what that said of each graph, see ``EngineVerdict.as_json()``. Operators that
        run on the CPU are listed with ``null`` for the error; ``runs`` is ``null`` where the engine was not asked.
        """
        return {
            profile.name: {
                "title": profile.title,
                "runs": self._runs(profile),
                "found": self.found(profile),
                "failing": [
                    {
                        "what": finding.subject,
                        "times": finding.count,
                        **attrs.asdict(finding.refusal),
                        "labels": list(finding.labels),
                    }
                    for finding in self.findings(profile)
                ],
                **self._engine_as_json(profile),
            }
            for profile in self.profiles
        }

    def _engine_as_json(self, profile: BrowserProfile) -> dict[str, Any]:
        if profile.engine is None:
            return {}
        return {"graphs": [verdict.as_json() for verdict in self._verdicts.get(profile.name, ())]}


def _row(finding: Finding) -> tuple[str, ...]:
    refusal = finding.refusal
    labels = [shortened(label, 40) for label in list(finding.labels)[:MOST_LABELS]]
    if len(finding.labels) > MOST_LABELS:
        labels.append("…")
    when = "at once" if refusal.when == "call" else "at build()"
    fails = "no, on the CPU" if refusal.error is None else f"{when}, {refusal.error}"
    return finding.profile, finding.subject, str(finding.count), fails, refusal.reason, ", ".join(labels)
