"""Composite operators, expanded into others before anything else is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, place_of
from webnn_py.devices.wgpu.records.table import entry_of

COMPOSITES: Final = "composites"


def expand_composites(graph: Graph, context: PassContext) -> Graph:
    """Return the graph without composite operators; a composite of composites is expanded in turn."""

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        composite = entry_of(node).composite
        label = f"in {place_of(current)}"
        built = None if composite is None else composite(current, RewriteBuilder(label, current.drawn))
        if built is None:
            return None
        context.applied.append(AppliedRule(COMPOSITES, place_of(current)))
        return dict(zip(node.results, built, strict=True))

    while any(entry_of(node).composite for node in graph.nodes):
        expanded = rewrite(graph, replace)
        if expanded is graph:
            break
        graph = expanded
    return graph
