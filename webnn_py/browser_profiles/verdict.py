"""An engine's answer about one graph: which operators it takes, and which it leaves or refuses."""

from __future__ import annotations

from typing import Any, Literal

import attrs


@attrs.frozen
class OperatorVerdict:
    """An operator of a graph that the engine does not take.

    Attributes:
        operator: its JavaScript name.
        label: its label, or "".
        place: the number of the node, in the order of ``Graph.nodes``.
        onnx: the ONNX operators that the browser writes it as and the engine does not take.
        outcome: whether the CPU computes it instead, or no session can be made because of it.
        reason: the cause, as found by asking again about the operator alone.
    """

    __module__ = "webnn_py"  # where it is public

    operator: str
    label: str
    place: int
    onnx: tuple[str, ...]
    outcome: Literal["cpu", "refused"]
    reason: str


@attrs.frozen
class EngineVerdict:
    """The answer of an engine about a graph.

    Attributes:
        browser: the browser profile's name.
        provider: onnxruntime's name of the execution provider that was asked.
        versions: the versions of onnxruntime and of the provider's package; "" if nothing was asked.
        date: the day on which it was asked, as ``2026-01-31``; "" if nothing was asked.
        not_asked: why it could not be asked, and what to install; "" if it was asked.
        error: the engine's words where it makes no session of the graph; "" otherwise.
        operators: those that the provider does not take.
    """

    __module__ = "webnn_py"  # where it is public

    browser: str
    provider: str
    versions: str = ""
    date: str = ""
    not_asked: str = ""
    error: str = ""
    operators: tuple[OperatorVerdict, ...] = ()

    @property
    def builds(self) -> bool | None:
        """Whether ``build()`` succeeds in the browser, if need be with operators on the CPU; None if not asked."""
        return None if self.not_asked else not self.error

    @property
    def runs_whole(self) -> bool | None:
        """Whether the provider runs all of the graph, with CPU fallback disabled; None if it was not asked."""
        return None if self.not_asked else not self.error and not self.operators

    @property
    def found(self) -> str:
        """How the verdict was found, in words."""
        if self.not_asked:
            return f"not asked: {self.not_asked}"
        return f"asked of {self.provider} in {self.versions}, on {self.date}"

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON, with ``builds``, ``runs_whole`` and ``found``."""
        return {
            **attrs.asdict(self),
            "builds": self.builds,
            "runs_whole": self.runs_whole,
            "found": self.found,
        }
