"""``MLGraph``: a compiled graph, seen from the script timeline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, final

from trio.lowlevel import enable_ki_protection

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.device import GraphHandle
from webnn_py.errors import InvalidStateError
from webnn_py.graph import Graph
from webnn_py.handle import Handle
from webnn_py.message_text import named_by, shortened
from webnn_py.script.experiments import check_asked
from webnn_py.script.interfaces import ContextInterface
from webnn_py.script.observers import HasHandle

if TYPE_CHECKING:
    from webnn_py.device.steps.subgraphs import SubgraphUse
    from webnn_py.graph_pictures.description import GraphDescription, Sketch
    from webnn_py.graph_pictures.picture import GraphPicture
    from webnn_py.graph_pictures.plan import CompiledPlan
    from webnn_py.script.compute_policy import MLComputePolicy


@final
class MLGraph(Handle, HasHandle):
    """A graph compiled for a context, ready for :meth:`MLContext.dispatch` (section "MLGraph interface").

    Made by :meth:`MLGraphBuilder.build` and :meth:`MLContext.load_graph`.

    Attributes:
        input_descriptors: data type and shape of every input that a dispatch must give, by name.
        output_descriptors: data type and shape of every output, by name.
    """

    _made_by = "MLGraphBuilder.build()"

    __slots__ = (
        "__weakref__",
        "_context",
        "_destroyed",
        "_drawing",
        "_handle",
        "_operator_count",
        "_saved_plan",
        "_subgraphs",
        "input_descriptors",
        "output_descriptors",
    )
    _context: ContextInterface
    _destroyed: bool
    _drawing: GraphDescription | Sketch
    _handle: GraphHandle
    _operator_count: int
    _saved_plan: CompiledPlan | None
    _subgraphs: list[SubgraphUse]
    input_descriptors: Mapping[str, MLOperandDescriptor]
    output_descriptors: Mapping[str, MLOperandDescriptor]

    @classmethod
    def _create(cls, context: ContextInterface, graph: Graph, label: str = "") -> Self:
        from webnn_py.graph_pictures.description import Sketch  # noqa: PLC0415 - imported when it is used

        self = cls._create_empty(context, label)
        # spec: build 14
        inputs = {name: value.descriptor for name, value in graph.inputs.items()}
        # spec: build 15
        outputs = {name: value.descriptor for name, value in graph.outputs.items()}
        self._fill(inputs, outputs, len(graph.nodes), Sketch.of(graph))
        return self

    @classmethod
    def _create_empty(cls, context: ContextInterface, label: str = "") -> Self:
        """Return a graph that is still being loaded and is not yet visible to the script."""
        self = cls.__new__(cls)
        self._context = context
        self._destroyed = False
        self._subgraphs = []
        self._handle = GraphHandle(label)
        return self

    def _fill(
        self,
        inputs: Mapping[str, MLOperandDescriptor],
        outputs: Mapping[str, MLOperandDescriptor],
        operator_count: int,
        drawing: GraphDescription | Sketch,
        saved_plan: CompiledPlan | None = None,
    ) -> None:
        self._drawing = drawing
        self._saved_plan = saved_plan
        self._operator_count = operator_count
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
    def context(self) -> ContextInterface:
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

    @property
    def _device_handle(self) -> GraphHandle:
        return self._handle

    @property
    def compute_policy(self) -> MLComputePolicy:
        """The policy by which the graph really runs; "fallback" on a processor. Not in the specification: a proposal.

        Raises:
            NotSupportedError: the proposal was not asked for.
        """
        from webnn_py.script.compute_policy import effective  # noqa: PLC0415 - imported when it is used

        context = self._context
        otherwise = "context.backend says what computes its graphs"
        check_asked("compute_policy", context._experimental, "compute-policy", otherwise)
        return effective(context._power_preference, context.backend.device_types)

    @property
    def subgraphs(self) -> tuple[SubgraphUse, ...]:
        """How each call of a sub-graph is computed: by an operator or its body. Not in the specification: a proposal.

        Calls within bodies that are drawn follow. A graph of :meth:`MLContext.load_graph` has none.

        Raises:
            NotSupportedError: the proposal was not asked for.
        """
        check_asked("subgraphs", self._context._experimental, "subgraph", "describe() has the operators")
        return tuple(self._subgraphs)

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
            self._context._releases.release(self._handle)

    # --- pictures; they need no device, and outlive destroy() and the loss of the context ----------------------

    def picture(self, drawn: GraphPicture | None = None) -> GraphPicture:
        """Return a picture of the graph as it was built, and of the kernels that the device compiled it to.

        Not in the specification.

        Args:
            drawn: a picture that :meth:`MLGraphBuilder.picture` made of the outputs before the build. It has the
                weights, which a graph does not keep, so that the page of :meth:`GraphPicture.to_html` has their
                statistics.

        Raises:
            ValueError: ``drawn`` is of another graph.
        """
        from webnn_py.graph_pictures.picture import GraphPicture  # noqa: PLC0415 - imported when it is used

        description = self._description
        weights = None if drawn is None else drawn._weights_for(description)
        return GraphPicture(
            description, self._plan, str(self._context._device.backend.info), weights, self._handle.label
        )

    @property
    def _description(self) -> GraphDescription:
        from webnn_py.graph_pictures.description import GraphDescription, Sketch  # noqa: PLC0415 - imported when it is used

        drawing = self._drawing
        return GraphDescription.made_of(drawing) if isinstance(drawing, Sketch) else drawing

    @property
    def _plan(self) -> CompiledPlan | None:
        """The compiled plan; of a graph that was loaded, the one that was saved with it."""
        return self._handle.plan if self._saved_plan is None else self._saved_plan

    def describe(self, *, passes: bool = False) -> str:
        """Return the graph as text: a line for each input, output, operator and kernel. See :meth:`picture`.

        Not in the specification.

        Args:
            passes: whether to add what each pass of the device did to the graph: its nodes before and after, the time
                that it took, and the rules that it applied, or did not apply and why. Of a graph that was loaded
                instead of compiled there is nothing to add, nor on devices without passes.
        """
        text = self.picture().describe()
        reports = self._handle.passes if passes else ()
        if not reports:
            return text
        from webnn_py.rewriting.report import describe  # noqa: PLC0415 - imported when it is used

        return f"{text}\npasses\n{describe(reports)}"

    def to_mermaid(self) -> str:
        """Return the graph as a flowchart in mermaid's notation. See :meth:`picture`. Not in the specification."""
        return self.picture().to_mermaid()

    def to_dot(self) -> str:
        """Return the graph as a digraph in Graphviz' notation. See :meth:`picture`. Not in the specification."""
        return self.picture().to_dot()

    def to_svg(self) -> str:
        """Return the graph as a picture in SVG, complete in itself. See :meth:`picture`. Not in the specification."""
        return self.picture().to_svg()

    def to_html(self) -> str:
        """Return the graph as a page to look around in, complete in itself. See :meth:`GraphPicture.to_html`.

        Not in the specification.
        """
        return self.picture().to_html()

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()

    def _repr_svg_(self) -> str | None:
        return self.picture()._repr_svg_()

    # --- the end -----------------------------------------------------------------------------------------------

    def __del__(self) -> None:
        if not getattr(self, "_destroyed", True):
            self._context._graphs.discard(self)
            self._context._releases.release_from_any_thread(self._handle)
            # Last, since a warning may be made an error.
            warnings.warn(f"{self!r} was never destroyed", ResourceWarning, source=self, stacklevel=1)

    def _described(self) -> str:
        operators = "1 operator" if self._operator_count == 1 else f"{self._operator_count} operators"
        inputs, outputs = _listed(self.input_descriptors), _listed(self.output_descriptors)
        state = ", destroyed" if self._destroyed else ""
        return f"{named_by(self.label)}{operators}, inputs {inputs}, outputs {outputs}{state}"


def _listed(descriptors: Mapping[str, MLOperandDescriptor], most: int = 4) -> str:
    """Return the first few names and descriptors, and how many more there are."""
    first = [f"{shortened(repr(name), 30)} {descriptor}" for name, descriptor in islice(descriptors.items(), most)]
    if len(descriptors) > most:
        first.append(f"and {len(descriptors) - most} more")
    return ", ".join(first) or "none"
