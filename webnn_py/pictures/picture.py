"""``picture()``: a picture of a graph, or of operands before a build."""

from __future__ import annotations

from collections.abc import Mapping

from webnn_py.core.api.graph import MLGraph
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.operators.operand import MLOperand
from webnn_py.drawn_graphs import builder_of
from webnn_py.pictures.graph_picture import GraphPicture


def picture(graph: MLGraph | Mapping[str, MLOperand]) -> GraphPicture:
    """Return a picture of a graph, or of the graph that some operands would be built into.

    The picture has the constants, for their statistics in :meth:`webnn_py.GraphPicture.to_html`.

    Args:
        graph: a graph that was built with ``build(..., keep_source=True)``, whose picture has the kernels that the
            device compiled it to, until these are released after ``destroy()``; or operands by name, as for
            :meth:`webnn_py.MLGraphBuilder.build`, whose builder goes on.

    Raises:
        InvalidStateError: the graph has no source: it was built without ``keep_source=True``, or loaded; or the
            operands' builder has built, or its context is lost.
        TypeError: the operands are refused, as by ``build()``.
    """
    if not isinstance(graph, MLGraph):
        return GraphPicture(builder_of("picture", graph).graph_of("picture", graph))
    if graph.source is None:
        raise InvalidStateError(
            f"picture(): {graph!r} has no source; build it with build(..., keep_source=True); graphs that were loaded "
            "have none"
        )
    compiled = graph.handle.compiled
    where = "" if compiled is None else str(graph.context.backend)
    return GraphPicture(graph.source, graph.label, where, compiled)
