"""Graphs that composites contain, drawn again with a builder."""

from collections.abc import Iterable
from typing import Any

from webnn_py.core.operators.declaration import of_operands
from webnn_py.core.operators.operand import MLOperand


def drawn_on(builder: Any, graph: Any, operands: Iterable[tuple[Any, MLOperand]]) -> list[MLOperand]:
    """Draw the operators of a graph again, and return its outputs.

    Args:
        builder: the builder to draw with.
        graph: the graph.
        operands: its inputs and constants, each with the operand that replaces it.
    """
    made = dict(operands)
    for node in graph.nodes:
        given = of_operands(node.operands, made.__getitem__)
        drawn = builder.append(node.operator, **{**given, **node.options, "label": node.label})
        made.update(zip(node.results, drawn if isinstance(drawn, list) else [drawn], strict=True))
    return [made[value] for value in graph.outputs.values()]
