"""Expansion of composites into operators of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.operators.composites import COMPOSITES
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting.builder import RewriteBuilder
from webnn_py.rewriting.walk import rewrite


def spelled_out(graph: Graph) -> Graph:
    """Return the graph with operators of the specification in place of composites, and of those in their drawings."""
    while any(node.operator.name in COMPOSITES for node in graph.nodes):
        graph = rewrite(
            graph, lambda node, current: drawn_out(node, current) if node.operator.name in COMPOSITES else None
        )
    return graph


def drawn_out(node: Node, current: Node) -> Mapping[Value, Value]:
    """Return the decomposition of a composite, by the values that it replaces; it keeps the label and the places."""
    composite = COMPOSITES[node.operator.name]
    builder = RewriteBuilder(current.label, current.drawn)
    operands = {
        name: _elements(value) if name in composite.tables else _operand(builder, value)
        for name, value in current.operands.items()
    }
    drawn: Any = composite.decomposition(builder, **{**current.options, **operands})
    return dict(zip(node.results, map(builder.value, drawn), strict=True))


def _operand(builder: RewriteBuilder, value: Value | tuple[Value, ...]) -> MLOperand | list[MLOperand]:
    return [*map(builder.operand, value)] if isinstance(value, tuple) else builder.operand(value)


def _elements(value: object) -> object:
    """Return the array of a constant that an importer drew."""
    assert isinstance(value, Constant)  # noqa: S101 - composites say which are
    return value.data
