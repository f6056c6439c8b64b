"""Rules of browsers for a context: enforced for the one that it stands for, or only reported for several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.errors import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.graph import Constant, Graph, Input, Node, Output, Value
from webnn_py.message_text import in_brackets, nearest, plain, shown

if TYPE_CHECKING:
    from webnn_py.browser_profiles import BrowserProfile, PortabilityReport, Refusal

_ERRORS: Final = {
    "TypeError": TypeError,
    "NotSupportedError": NotSupportedError,
    "InvalidStateError": InvalidStateError,
    "UnknownError": UnknownError,
}


class BrowserRules(Protocol):
    """The rules that a context asks; every method returns the error to refuse with, or None."""

    @property
    def enforced(self) -> BrowserProfile | None:
        """The browser that the context stands for."""

    def tensor(self, descriptor: MLOperandDescriptor) -> Exception | None:
        """A tensor is created."""

    def constant_tensor(self) -> Exception | None:
        """A constant tensor is created."""

    def value(self, value: Value) -> Exception | None:
        """A builder has made an input, a constant, or the outputs of a node."""

    def bigint(self, method: str, data_type: str) -> Exception | None:
        """JavaScript gives a BigInt for a number of a data type."""

    def graph(self, graph: Graph) -> Exception | None:
        """A graph is built."""


class EnforcedProfile:
    """Refuses what one browser refuses."""

    def __init__(self, profile: BrowserProfile) -> None:
        self.enforced: BrowserProfile | None = profile
        self._profile = profile

    def tensor(self, descriptor: MLOperandDescriptor) -> Exception | None:
        """See the protocol."""
        return self._error("", self._profile.refusal_of_tensor("the tensor", descriptor))

    def constant_tensor(self) -> Exception | None:
        """See the protocol."""
        return self._error("", self._profile.refusal_of_constant_tensors())

    def value(self, value: Value) -> Exception | None:
        """See the protocol."""
        if isinstance(value, Output):
            refusal = self._profile.refusal_of_node(value.node) if value.index == 0 else None
            return None if refusal is None or refusal.when == "build" else self._error(_start(value.node), refusal)
        kind = _kind(value)
        return self._error(f"{kind}(): ", self._profile.refusal_of_tensor(f"the {kind}", value.descriptor))

    def bigint(self, method: str, data_type: str) -> Exception | None:
        """See the protocol."""
        return self._error(f"{method}(): ", self._profile.refusal_of_bigint(data_type))

    def graph(self, graph: Graph) -> Exception | None:
        """See the protocol."""
        refusal = self._profile.refusal_of_outputs(graph)
        if refusal is not None:
            return self._error("build(): ", refusal)
        for node in graph.nodes:
            refusal = self._profile.refusal_of_node(node)
            if refusal is not None:
                return self._error(f"build(): {_start(node)}", refusal)
        return None

    def _error(self, start: str, refusal: Refusal | None) -> Exception | None:
        if refusal is None:
            return None
        return _ERRORS[refusal.error](f"{start}the browser profile {self._profile.name} refuses it: {refusal.reason}")


class WatchedProfiles:
    """Refuses nothing, and notes what browsers would."""

    enforced: BrowserProfile | None = None

    def __init__(self, report: PortabilityReport) -> None:
        self._report = report

    def tensor(self, descriptor: MLOperandDescriptor) -> None:
        """See the protocol."""
        for profile in self._report.profiles:
            self._report.add(profile, "createTensor", profile.refusal_of_tensor("the tensor", descriptor))

    def constant_tensor(self) -> None:
        """See the protocol."""
        for profile in self._report.profiles:
            self._report.add(profile, "createConstantTensor", profile.refusal_of_constant_tensors())

    def value(self, value: Value) -> None:
        """See the protocol."""
        if isinstance(value, Output):
            if value.index == 0:
                self._report.add_node(value.node)
            return
        kind = _kind(value)
        label = value.name if isinstance(value, Input) else ""
        for profile in self._report.profiles:
            refusal = profile.refusal_of_tensor(f"the {kind}", value.descriptor)
            self._report.add(profile, kind, refusal, label)

    def bigint(self, method: str, data_type: str) -> None:
        """See the protocol."""
        for profile in self._report.profiles:
            self._report.add(profile, method, profile.refusal_of_bigint(data_type))

    def graph(self, graph: Graph) -> None:
        """See the protocol."""
        for profile in self._report.profiles:
            self._report.add(profile, "build", profile.refusal_of_outputs(graph))


def browser_profile(value: object) -> EnforcedProfile:
    """Convert the option ``browser``.

    Raises:
        TypeError: there is no such profile.
    """
    from webnn_py.browser_profiles import NAMES, find  # noqa: PLC0415 - imported when it is used

    if isinstance(value, str) and plain(value) in NAMES:
        return EnforcedProfile(find(plain(value)))
    raise TypeError(f"is {shown(value)}; it must be one of {', '.join(NAMES)}, or None{nearest(value, NAMES)}")


def _kind(value: Value) -> str:
    return "constant" if isinstance(value, Constant) else "input"


def _start(node: Node) -> str:
    return f"{node.operator.name}(){in_brackets(node.label)}: "
