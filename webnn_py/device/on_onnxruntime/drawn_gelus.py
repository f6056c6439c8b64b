"""Gelu, which graphs say in five operators, as the one that onnxruntime makes of them: it has less to look at.

Unlike the operator of WebNN that has the name it is NaN of -Infinity, as what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_onnxruntime.patterns import (
    Alone,
    DrawnFunction,
    DrawnFunctions,
    alone_in,
    beside,
    following,
    is_number,
    maker,
    other,
)
from webnn_py.graph import Graph, Node, Value
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting import Replace


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
    alone = alone_in(graph)
    gelus = DrawnFunctions([gelu for node in functions if (gelu := _gelu_around(node, alone)) is not None])

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        def made(gelu: DrawnFunction, x: Value) -> Value:
            one = Node(DRAWN_GELU, {"input": x}, {}, node.outputs, gelu.nodes[-1].label, gelu.drawn)
            built = None if rest is None else rest(node, one)
            return one.results[0] if built is None else built[node.results[0]]

        found = gelus.replace(node, current, made)
        return found if found is not None or rest is None else rest(node, current)

    return replace


def _gelu_around(erf: Node, alone: Alone) -> DrawnFunction | None:
    """The gelu of which an error function is a part; None if it is that of none."""
    quotient = maker(erf.inputs[0], "div")
    if quotient is None or erf.outputs[0].data_type != "float32" or not is_number(quotient.inputs[1], math.sqrt(2)):
        return None
    sum_ = following(alone(erf), "add", erf)
    if alone(quotient) is not erf or sum_ is None or not is_number(other(sum_, erf), 1):
        return None
    product = following(alone(sum_), "mul", sum_)
    if product is None:
        return None
    x, factor = quotient.inputs[0], other(product, sum_)
    half: Node | None
    if factor is x:
        half = last = following(alone(product), "mul", product)
        is_half = half is not None and is_number(other(half, product), 0.5)
    else:
        half, last = maker(factor, "mul"), product
        is_half = half is not None and x in half.inputs and is_number(beside(half, x), 0.5) and alone(half) is product
    if half is None or last is None or not is_half or x.descriptor.shape != last.outputs[0].shape:
        return None
    rest = (node for node in (half, product) if node is not last)
    return DrawnFunction(x, (quotient, erf, sum_, *rest, last))
