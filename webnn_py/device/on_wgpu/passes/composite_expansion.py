"""Composite operators, expanded into others before anything else is done."""

from __future__ import annotations

from collections.abc import Mapping

from webnn_py.device.on_wgpu.records.table import entry_of
from webnn_py.graph import Graph, Node, Value
from webnn_py.message_text import in_brackets
from webnn_py.rewriting.builder import RewriteBuilder
from webnn_py.rewriting.walk import rewrite


def expand_composites(graph: Graph) -> Graph:
    """Return the graph without composite operators; a composite of composites is expanded in turn."""

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        composite = entry_of(node).composite
        label = f"in {current.operator.spec_name}{in_brackets(current.label)}"
        built = None if composite is None else composite(current, RewriteBuilder(label, current.drawn))
        return None if built is None else dict(zip(node.results, built, strict=True))

    while any(entry_of(node).composite for node in graph.nodes):
        expanded = rewrite(graph, replace)
        if expanded is graph:
            break
        graph = expanded
    return graph
