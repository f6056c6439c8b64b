"""Composites replaced by their decompositions."""

from collections.abc import Mapping

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, decomposed, rewrite
from webnn_py.core.operators.composite import Composite


def drawn_out(node: Node, current: Node) -> Mapping[Value, Value] | None:
    """Return the decomposition of a composite by the values that it replaces; it keeps the label and the places."""
    values = decomposed(current, RewriteBuilder(current.label, current.drawn))
    return None if values is None else dict(zip(node.results, values, strict=True))


def spelled_out(graph: Graph) -> Graph:
    """Return the graph with operators of the specification in place of composites, and of those in their drawings."""
    while any(isinstance(node.operator, Composite) for node in graph.nodes):
        graph = rewrite(
            graph, lambda node, current: drawn_out(node, current) if isinstance(node.operator, Composite) else None
        )
    return graph
