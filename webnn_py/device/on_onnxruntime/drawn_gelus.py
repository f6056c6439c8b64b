"""Gelu, which graphs say in five operators, as the one that onnxruntime makes of them: it has less to look at.

Unlike the operator of WebNN that has the name it is NaN of -Infinity, as what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting import Replace, readers_of


def drawn_gelu(input: MLOperand) -> MLOperandDescriptor:
    """The product of x, 1 + erf(x / √2) and 0.5."""
    return MLOperandDescriptor(input.data_type, input.shape)


DRAWN_GELU: Final = Operator(drawn_gelu, "gelu", {}, elementwise=True)


def drawn_gelus(graph: Graph, rest: Replace | None) -> Replace | None:
    """What puts one node in the place of each gelu that is drawn in float32 of operators that nothing else reads.

    Args:
        graph: what to rewrite.
        rest: what is done to that node, and to all others.
    """
    functions = [node for node in graph.nodes if node.operator.name == "erf"]
    if not functions:
        return rest
    readers = readers_of(graph)

    def alone(node: Node) -> Node | None:
        """What alone reads the result of a node."""
        found = readers[node.results[0]]
        return found[0] if len(found) == 1 else None

    gelus = [gelu for node in functions if (gelu := _gelu_around(node, alone)) is not None]
    first = {gelu.nodes[0]: gelu for gelu in gelus}
    others = {node for gelu in gelus for node in gelu.nodes[1:]}

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node in others:
            return {}  # nothing reads it
        gelu = first.get(node)
        if gelu is None:
            return None if rest is None else rest(node, current)
        x, last = current.operands["a"], gelu.nodes[-1]
        made = Node(DRAWN_GELU, {"input": x}, {}, node.outputs, last.label, gelu.drawn)
        (result,) = made.results
        built = None if rest is None else rest(node, made)
        return {last.results[0]: result if built is None else built[node.results[0]]}

    return replace


@attrs.frozen
class _Gelu:
    """The nodes that a gelu is drawn of, from the division of its operand to the last product."""

    nodes: tuple[Node, ...]

    @property
    def drawn(self) -> tuple[int, ...]:
        """The places of all its operators."""
        return tuple(sorted({place for node in self.nodes for place in node.drawn}))


def _gelu_around(erf: Node, alone: Callable[[Node], Node | None]) -> _Gelu | None:
    """The gelu of which an error function is a part; None if it is that of none."""
    quotient = _maker(erf.inputs[0], "div")
    if quotient is None or erf.outputs[0].data_type != "float32" or not _is_number(quotient.inputs[1], math.sqrt(2)):
        return None
    sum_ = _next(alone(erf), "add", erf)
    if alone(quotient) is not erf or sum_ is None or not _is_number(_other(sum_, erf), 1):
        return None
    product = _next(alone(sum_), "mul", sum_)
    if product is None:
        return None
    x, factor = quotient.inputs[0], _other(product, sum_)
    half: Node | None
    if factor is x:
        half = last = _next(alone(product), "mul", product)
        is_half = half is not None and _is_number(_other(half, product), 0.5)
    else:
        half, last = _maker(factor, "mul"), product
        is_half = half is not None and x in half.inputs and _is_number(_beside(half, x), 0.5) and alone(half) is product
    if half is None or last is None or not is_half or x.descriptor.shape != last.outputs[0].shape:
        return None
    others = (node for node in (half, product) if node is not last)
    return _Gelu((quotient, erf, sum_, *others, last))


def _maker(value: Value, operator: str) -> Node | None:
    """The node that makes a value, if it is of an operator."""
    return value.node if isinstance(value, Output) and value.node.operator.name == operator else None


def _next(reader: Node | None, operator: str, node: Node) -> Node | None:
    """What reads a node's result, if it is of an operator, and reads something else beside."""
    is_it = reader is not None and reader.operator.name == operator and _other(reader, node) is not node.results[0]
    return reader if is_it else None


def _other(reader: Node, node: Node) -> Value:
    """What an operator of two operands reads beside a node's result."""
    return _beside(reader, node.results[0])


def _beside(reader: Node, value: Value) -> Value:
    a, b = reader.inputs
    return b if a is value else a


def _is_number(value: Value, expected: float) -> bool:
    """Whether a value is a number, as far as onnxruntime asks for."""
    if (
        not isinstance(value, Constant)
        or not isinstance(value.data, np.ndarray)
        or value.descriptor.shape not in ((), (1,))
    ):
        return False
    return math.isclose(float(value.data.reshape(-1)[0]), expected, rel_tol=1e-6)
