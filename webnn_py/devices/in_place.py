"""Outputs of a graph that may be written in place of an input: caches to which a few rows are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webnn_py.core.graph import Graph, Input

UPDATED: Final[Mapping[str, Mapping[int, str]]] = {
    "group_query_attention": {1: "past_key", 2: "past_value"},
    "scatter_nd": {0: "input"},
}
"""The outputs of operators that are an operand with new rows, by the operator's name and by index: the operand."""


def updates_of(graph: Graph) -> dict[str, str]:
    """Return the outputs that are an input with new rows, by name: the input, which nothing else reads."""
    outputs: dict[object, list[str]] = {}
    for name, value in graph.outputs.items():
        outputs.setdefault(value, []).append(name)
    found: dict[str, str] = {}
    for node in graph.nodes:
        for index, operand in UPDATED.get(node.operator.name, {}).items():
            past, names = node.operands.get(operand), outputs.get(node.results[index], ())
            if not isinstance(past, Input) or len(names) != 1 or graph.readers[past] != [node]:
                continue
            if past.descriptor == node.outputs[index]:
                found[names[0]] = past.name
    return found
