"""``MLGraph``: a compiled graph, seen from the script timeline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, final

from trio.lowlevel import enable_ki_protection

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.graph import Graph
from webnn_py.core.handle import Handle
from webnn_py.core.message_text import named_by, shortened

if TYPE_CHECKING:
    from webnn_py.core.api.context import MLContext
    from webnn_py.core.extension import Attachment


Descriptors = Mapping[str, MLOperandDescriptor]
GraphSignature = tuple[Descriptors, Descriptors, int]
"""The inputs and outputs of a graph, by name, and the number of its operators."""


@final
class MLGraph(Handle):
    """A graph compiled for a context, ready for :meth:`MLContext.dispatch` (section "MLGraph interface").

    Made by :meth:`MLGraphBuilder.build`, and loaded by :class:`webnn_py.saved_graphs.SavedGraphs`.

    Attributes:
        input_descriptors: data type and shape of every input that a dispatch must give, by name.
        output_descriptors: data type and shape of every output, by name.
        operator_count: the number of operators that it was built of. Not in the specification.
        source: the graph as it was built, with its constants, if ``build()`` was asked to keep it; else None. Not in
            the specification.
        attached: what extensions keep for the graph until it is destroyed. Not in the specification.
    """

    _made_by = "MLGraphBuilder.build()"

    __slots__ = (
        "__weakref__",
        "_context",
        "_destroyed",
        "_handle",
        "attached",
        "input_descriptors",
        "operator_count",
        "output_descriptors",
        "source",
    )
    _context: MLContext
    _destroyed: bool
    _handle: GraphHandle
    attached: list[Attachment]
    input_descriptors: Descriptors
    output_descriptors: Descriptors
    operator_count: int
    source: Graph | None

    @classmethod
    def _create(cls, context: MLContext, graph: Graph, label: str = "", *, keep_source: bool = False) -> Self:
        self = cls._create_empty(context, label)
        # spec: build 14
        inputs = {name: value.descriptor for name, value in graph.inputs.items()}
        # spec: build 15
        outputs = {name: value.descriptor for name, value in graph.outputs.items()}
        self._fill(inputs, outputs, len(graph.nodes))
        if keep_source:
            self.source = graph
        return self

    @classmethod
    def _create_empty(cls, context: MLContext, label: str = "") -> Self:
        """Return a graph that is still being loaded and is not yet visible to the script."""
        self = cls.__new__(cls)
        self._context = context
        self._destroyed = False
        self.attached = []
        self._handle = GraphHandle(label)
        self.source = None
        return self

    def _fill(self, inputs: Descriptors, outputs: Descriptors, operator_count: int) -> None:
        self.operator_count = operator_count
        self.input_descriptors = MappingProxyType(dict(inputs))
        self.output_descriptors = MappingProxyType(dict(outputs))

    @property
    def label(self) -> str:
        """The name that ``build()`` was given for it; "" for none. Not in the specification."""
        return self._handle.label

    @property
    def in_place(self) -> Mapping[str, str]:
        """The outputs that a dispatch may write into the buffer of an input, by name: that input.

        Not in the specification. They are caches to which rows are added, as imported models have them: with one buffer
        for both, only the new rows are written. There are none on devices that cannot do that.
        """
        return MappingProxyType(self._handle.in_place)

    @property
    def context(self) -> MLContext:
        """The context that the graph was built for. Not in the specification."""
        return self._context

    @property
    def handle(self) -> GraphHandle:
        """The graph on the device, for tools and extensions. Not in the specification."""
        return self._handle

    def check_usable(self, method: str) -> None:
        """Refuse a graph that is destroyed or whose context is lost. Not in the specification.

        Raises:
            InvalidStateError: it is.
        """
        self._context._trio_run.check(f"{method}()")
        self._context._check_not_lost(method)
        if self._destroyed:
            raise InvalidStateError(f"{method}(): the graph is destroyed: destroy() was called on it")

    @enable_ki_protection
    def destroy(self) -> None:
        """Enqueue the release of the graph's memory (section "destroy()"); dispatches in flight finish first.

        The second call does nothing. Raises nothing but ``RuntimeError``,
        outside the run of ``open_ml()``.
        """
        self._context._trio_run.check("destroy()")
        self._destroy()

    def _destroy(self) -> None:
        # spec: MLGraph.destroy 1
        if not self._destroyed:
            # spec: MLGraph.destroy 2
            self._destroyed = True
            self._context._graphs.discard(self)
            # spec: MLGraph.destroy 3
            for handle in self._handles():
                self._context._releases.release(handle)
            self.attached = []

    def _handles(self) -> list[GraphHandle]:
        return [self._handle, *(handle for each in self.attached for handle in each.handles())]

    # --- the end -----------------------------------------------------------------------------------------------

    def __del__(self) -> None:
        if not getattr(self, "_destroyed", True):
            self._context._graphs.discard(self)
            for handle in self._handles():
                self._context._releases.release_from_any_thread(handle)
            # Last, since a warning may be made an error.
            warnings.warn(f"{self!r} was never destroyed", ResourceWarning, source=self, stacklevel=1)

    def _described(self) -> str:
        operators = "1 operator" if self.operator_count == 1 else f"{self.operator_count} operators"
        inputs, outputs = _listed(self.input_descriptors), _listed(self.output_descriptors)
        state = ", destroyed" if self._destroyed else ""
        return f"{named_by(self.label)}{operators}, inputs {inputs}, outputs {outputs}{state}"


def _listed(descriptors: Mapping[str, MLOperandDescriptor], most: int = 4) -> str:
    """Return the first few names and descriptors, and how many more there are."""
    first = [f"{shortened(repr(name), 30)} {descriptor}" for name, descriptor in islice(descriptors.items(), most)]
    if len(descriptors) > most:
        first.append(f"and {len(descriptors) - most} more")
    return ", ".join(first) or "none"
