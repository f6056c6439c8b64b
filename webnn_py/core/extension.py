"""``Extension``: attaches to the API what is not in the specification, or what narrows it.

An extension is given to ``open_ml(extensions=[…])`` and has a say in all contexts of the block. See docs/extensions.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TypeVar

import attrs

from webnn_py.core.errors import NotSupportedError

if TYPE_CHECKING:
    from webnn_py.core.api.builder import MLGraphBuilder
    from webnn_py.core.api.context import MLContext
    from webnn_py.core.api.graph import MLGraph
    from webnn_py.core.descriptors import MLBufferDescriptor, MLOperandDescriptor
    from webnn_py.core.device.backend import Capabilities, OnProgress
    from webnn_py.core.device.device import GraphHandle
    from webnn_py.core.graph import Constant, Graph, Input, Node
    from webnn_py.core.operators.declaration import Operator

LeafT = TypeVar("LeafT", bound="Input | Constant")

Compile = Callable[["Graph", "GraphHandle", "OnProgress | None"], Awaitable[None] | None]
"""A device step that compiles a graph and puts it into a handle, as ``Device.compile()`` does."""


@attrs.frozen
class Variant:
    """The compiled graph that a dispatch runs in the place of an ``MLGraph``, on which it depends.

    Attributes:
        handle: the graph on the device.
        input_descriptors: data type and shape of every input, by name.
        output_descriptors: data type and shape of every output, by name.
    """

    handle: GraphHandle
    input_descriptors: Mapping[str, MLOperandDescriptor]
    output_descriptors: Mapping[str, MLOperandDescriptor]


class Attachment(Protocol):
    """Something that an extension keeps for a graph until the graph is destroyed: ``graph.attached.append(…)``."""

    def handles(self) -> Iterable[GraphHandle]:
        """Return the handles that are released with the graph."""


class Extension:
    """The hooks of an extension; those that a subclass does not override change nothing.

    Extensions are asked in the order in which ``open_ml()`` was given them. What a hook raises refuses the call.

    Attributes:
        name: what ``open_ml(experimental=…)`` calls it; "" for nothing.
        sees_all: whether it must see each call, in operators of the specification: importers and sessions then take no
            shortcuts, as composites, repeated parts and saved graphs are.
        allows_equal_names: whether inputs of one builder may have one name, until :meth:`graph` refuses them.
    """

    name: ClassVar[str] = ""
    sees_all = False
    allows_equal_names = False

    @classmethod
    def on_context(cls, context: MLContext, member: str, otherwise: str) -> Self:
        """Return the extension of this class that a context has; for the functions of its module.

        Args:
            context: the context.
            member: what was called, as messages have it.
            otherwise: what can be used instead.

        Raises:
            NotSupportedError: there is none.
        """
        for extension in context.extensions:
            if isinstance(extension, cls):
                return extension
        given = f'experimental={{"{cls.name}"}}' if cls.name else f"extensions=[{cls.__name__}()]"
        raise NotSupportedError(f"{member}: this is of an extension that open_ml({given}) switches on; {otherwise}")

    # --- contexts --------------------------------------------------------------------------------------------

    def options(self, given: dict[str, Any]) -> None:
        """Take the options of this extension out of those of ``create_context()``, and change others."""

    def capabilities(self, capabilities: Capabilities) -> Capabilities:
        """Return what builders take for the device's abilities; the same object for the same ones."""
        return capabilities

    def limits(self, limits: dict[str, Any]) -> dict[str, Any]:
        """Return what ``op_support_limits()`` reports, given a fresh structure without this extension."""
        return limits

    def buffer(self, descriptor: MLBufferDescriptor) -> None:
        """Refuse a buffer that is to be created."""

    # --- builders --------------------------------------------------------------------------------------------

    def arguments(
        self, _builder: MLGraphBuilder, _called: Operator[..., Any] | str, given: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of a call, by name, before they are converted.

        Args:
            builder: the builder.
            called: the operator, or ``"input"`` or ``"constant"``.
            given: the arguments as the call has them.
        """
        return given

    def leaf(self, _builder: MLGraphBuilder, value: LeafT) -> LeafT:
        """Check or replace what ``input()`` or ``constant()`` has made."""
        return value

    def node(self, _builder: MLGraphBuilder, node: Node) -> Node:
        """Check or replace an operator that is added, with the inferred descriptors of its outputs."""
        return node

    def graph(self, _builder: MLGraphBuilder, _method: str, graph: Graph) -> Graph:
        """Check or replace a graph that is to be built, or that a tool is to have.

        Args:
            builder: the builder.
            method: the method that asks, ``"build"`` or a tool's, for messages.
            graph: the graph; it may be given again to later calls.
        """
        return graph

    # --- graphs ----------------------------------------------------------------------------------------------

    def compile(self, _graph: MLGraph, _source: Graph, step: Compile) -> Compile:
        """Wrap the device step that compiles a graph, which ``source`` is before its compilation."""
        return step

    def dispatch(self, _graph: MLGraph, _inputs: Mapping[str, MLOperandDescriptor]) -> Variant | None:
        """Return what a dispatch runs in the place of a graph of the context that is not destroyed; None for itself.

        Args:
            graph: the graph.
            inputs: the descriptors of the buffers that it is given, by name.
        """
        return None


SHORT_FORMS: Final[dict[str, Callable[[], Extension]]] = {}
"""The extensions that ``open_ml(experimental={"name"})`` stands for, by name; their package enters them.

Of several that wrap the compilation of a graph, the first compiles last.
"""


def compile_step(graph: MLGraph, source: Graph) -> Compile:
    """Return the device step that compiles for a graph, wrapped by the extensions of its context."""
    step: Compile = graph.context.device.compile
    for extension in graph.context.extensions:
        step = extension.compile(graph, source, step)
    if not graph.context.extensions:
        return step

    def wrapped(source: Graph, handle: GraphHandle, progress: OnProgress | None) -> Awaitable[None] | None:
        return step(source, handle, progress)

    return wrapped  # no partial, which would melt into the caller's, where observers look for the handle
