"""Readers of values: who reads a value, computed once for a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from webnn_py.graph import Graph, Node, Value


class Readers:
    """The readers of every value of a graph.

    Args:
        graph: the graph.

    Attributes:
        readers: what reads each value, as often as it does; None for an output of the graph.
    """

    def __init__(self, graph: Graph) -> None:
        readers: dict[Value, list[Node | None]] = defaultdict(list)
        for value in graph.outputs.values():
            readers[value].append(None)
        for node in graph.nodes:
            for value in node.inputs:
                readers[value].append(node)
        self.readers: Mapping[Value, list[Node | None]] = readers

    def nodes(self, value: Value) -> list[Node]:
        """Return the nodes that read a value, as often as they read it."""
        return [node for node in self.readers.get(value, ()) if node is not None]

    def only_reader(self, value: Value) -> Node | None:
        """Return the node that alone reads a value, once; None where there is no such node."""
        readers = self.readers[value]
        return readers[0] if len(readers) == 1 else None
