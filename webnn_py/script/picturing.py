"""Pictures of compiled graphs: a mixin of :class:`MLGraph`. Not in the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webnn_py.device.device import GraphHandle
    from webnn_py.graph_pictures.description import GraphDescription, Sketch
    from webnn_py.graph_pictures.picture import GraphPicture
    from webnn_py.graph_pictures.plan import CompiledPlan
    from webnn_py.script.context import MLContext


class Pictured:
    """What a compiled graph shows of itself, also when it is destroyed or its context is lost: no device is asked."""

    __slots__ = ()
    _context: MLContext
    _drawing: GraphDescription | Sketch
    _handle: GraphHandle
    _saved_plan: CompiledPlan | None

    def picture(self, drawn: GraphPicture | None = None) -> GraphPicture:
        """The graph as it was drawn, and what the device has made of it.

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
        """What was made of the graph: when it was saved, if it was loaded."""
        return self._handle.plan if self._saved_plan is None else self._saved_plan

    def describe(self, *, passes: bool = False) -> str:
        """Return the graph as text: a line for each input, output, operator and kernel. See :meth:`picture`.

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
        """The graph as a flowchart in mermaid's notation. See :meth:`picture`."""
        return self.picture().to_mermaid()

    def to_dot(self) -> str:
        """The graph as a digraph in Graphviz' notation. See :meth:`picture`."""
        return self.picture().to_dot()

    def to_svg(self) -> str:
        """The graph as a picture in SVG, complete in itself. See :meth:`picture`."""
        return self.picture().to_svg()

    def to_html(self) -> str:
        """The graph as a page to look around in, complete in itself. See :meth:`GraphPicture.to_html`."""
        return self.picture().to_html()

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()

    def _repr_svg_(self) -> str | None:
        return self.picture()._repr_svg_()
