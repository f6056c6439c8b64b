"""Calls of sub-graphs, of the proposal "subgraph": operators that a script has drawn once and named, as one node.

A call is replaced before a graph is compiled: by an operator for which its name stands (``named_subgraphs``), or by the
operators of its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.message_text import shown
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import ANY, LimitsRow, limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.inner_graphs import drawn_on

LIMITS: Final[LimitsRow] = {"operands": limit(ANY), "captured": limit(ANY), "outputs": limit(ANY)}


def subgraph_call(
    operands: Sequence[MLOperand],
    captured: Sequence[MLOperand],
    *,
    body: Any,
    name: str,
    config: Any,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Call a sub-graph.

    Args:
        operands: the operands that the inputs of the body are bound to, in their order.
        captured: the constants of the body, in their order.
        body: the graph of the definition.
        name: the name of the definition, a claim about what it computes.
        config: the definition's record of choices, by name.
        label: the label of the node.

    Returns:
        The outputs of the body, in their order.

    Raises:
        Refused: an operand is not of the shape of its input.
    """
    for given, (each, value) in zip(operands, body.inputs.items(), strict=True):
        if given.shape != value.descriptor.shape:
            refuse(f"the shape of {shown(each)}", list(given.shape), str(list(value.descriptor.shape)))
    return [value.descriptor for value in body.outputs.values()]


def inlined(
    builder: Any,
    operands: Sequence[MLOperand],
    captured: Sequence[MLOperand],
    *,
    body: Any,
    name: str,
    config: Mapping[str, Any],
) -> list[MLOperand]:
    """Draw the body of :func:`subgraph_call`; calls in it stay calls."""
    return drawn_on(builder, body, zip((*body.inputs.values(), *body.constants), (*operands, *captured), strict=True))


SUBGRAPH_CALL: Final = Composite(subgraph_call, "subgraph", LIMITS, inlined)
