"""Rules of browsers for a context: enforced for the one that it stands for, or only reported for several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

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


class BrowserRules:
    """The rules that a context asks; every method returns the error to refuse with, or None.

    Args:
        judges: the browser that the context stands for, or a report that notes what browsers refuse; then nothing is
            refused.

    Attributes:
        enforced: the browser that the context stands for; None for none.
    """

    def __init__(self, judges: BrowserProfile | PortabilityReport) -> None:
        from webnn_py.browser_profiles import BrowserProfile  # noqa: PLC0415 - imported when it is used

        self.enforced = judges if isinstance(judges, BrowserProfile) else None
        self._report = None if isinstance(judges, BrowserProfile) else judges
        self._profiles = (judges,) if isinstance(judges, BrowserProfile) else judges.profiles

    def tensor(self, descriptor: MLOperandDescriptor) -> Exception | None:
        """A tensor is created."""
        return self._judged("createTensor", "", lambda profile: profile.refusal_of_tensor("the tensor", descriptor))

    def constant_tensor(self) -> Exception | None:
        """A constant tensor is created."""
        return self._judged("createConstantTensor", "", lambda profile: profile.refusal_of_constant_tensors())

    def value(self, value: Value) -> Exception | None:
        """A builder has made an input, a constant, or the outputs of a node."""
        if isinstance(value, Output):
            return self._node_judged(value.node) if value.index == 0 else None
        kind = "constant" if isinstance(value, Constant) else "input"
        label = value.name if isinstance(value, Input) else ""
        descriptor = value.descriptor
        return self._judged(
            kind, f"{kind}(): ", lambda profile: profile.refusal_of_tensor(f"the {kind}", descriptor), label
        )

    def graph(self, graph: Graph) -> Exception | None:
        """A graph is built."""
        error = self._judged("build", "build(): ", lambda profile: profile.refusal_of_outputs(graph))
        if error is not None or self._report is not None:  # which has noted the nodes when they were drawn
            return error
        errors = (self._node_judged(node, "build(): ") for node in graph.nodes)
        return next((error for error in errors if error is not None), None)

    def _node_judged(self, node: Node, start: str = "") -> Exception | None:
        def refusal_of(profile: BrowserProfile) -> Refusal | None:
            refusal = profile.refusal_of_node(node)
            comes_later = refusal is not None and refusal.when == "build" and not start and self._report is None
            return None if comes_later else refusal

        what = f"{start}{node.operator.name}(){in_brackets(node.label)}: "
        return self._judged(node.operator.spec_name, what, refusal_of, node.label)

    def _judged(
        self, subject: str, start: str, refusal_of: Callable[[BrowserProfile], Refusal | None], label: str = ""
    ) -> Exception | None:
        """Note what browsers refuse, for a report by subject and label; of an enforced one return the error."""
        for profile in self._profiles:
            refusal = refusal_of(profile)
            if self._report is not None:
                self._report.add(profile, subject, refusal, label)
            elif refusal is not None:
                words = f"{start}the browser profile {profile.name} refuses it: {refusal.reason}"
                return _ERRORS[refusal.error](words)
        return None


def browser_profile(value: object) -> BrowserRules:
    """Convert the option ``browser``.

    Raises:
        TypeError: there is no such profile.
    """
    from webnn_py.browser_profiles import NAMES, find  # noqa: PLC0415 - imported when it is used

    if isinstance(value, str) and plain(value) in NAMES:
        return BrowserRules(find(plain(value)))
    known = ", ".join(NAMES)
    raise TypeError(f"is {shown(value)}; it must be one of {known}, or None{nearest(value, NAMES)}")
