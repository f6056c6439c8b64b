"""Hard swishes, which graphs say in four operators, as the product of x and a hard sigmoid.

onnxruntime computes those two within the convolution before, and images stay in the blocks of channels that it has them
in. Unlike the operator of WebNN that has the name it is NaN of -Infinity, as what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
from webnn_py.operators import activation, arithmetic
from webnn_py.rewriting import rewrite

OFFSET: Final = 3
RANGE: Final = 6
HARD_SIGMOID: Final = {"alpha": 1 / RANGE, "beta": OFFSET / RANGE}


def with_hard_swishes(graph: Graph) -> Graph:
    """The graph with two operators for each x · min(6, max(0, x + 3)) / 6 in float32 that nothing else reads parts of.

    Args:
        graph: what to rewrite.
    """
    clamps = [node for node in graph.nodes if node.operator is activation.clamp and _is_bounded(node)]
    if not clamps:
        return graph
    alone = alone_in(graph)
    found = [one for node in clamps if (one := _around(node, alone)) is not None]
    functions = DrawnFunctions(found)

    def made(one: DrawnFunction, x: Value) -> Value:
        last = one.nodes[-1]
        gate = Node(activation.hard_sigmoid, {"input": x}, HARD_SIGMOID, last.outputs, last.label, one.drawn)
        operands = {"a": x, "b": gate.results[0]}
        return Node(arithmetic.mul, operands, {}, last.outputs, last.label, one.drawn).results[0]

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        return functions.replace(node, current, made)

    return rewrite(graph, replace) if found else graph


def _is_bounded(clamp: Node) -> bool:
    bounds = clamp.options["min_value"], clamp.options["max_value"]
    return clamp.outputs[0].data_type == "float32" and bounds == (0, RANGE)


def _around(clamp: Node, alone: Alone) -> DrawnFunction | None:
    """The hard swish of which a clamp is a part; None if it is that of none."""
    sum_ = maker(clamp.inputs[0], "add")
    if sum_ is None or alone(sum_) is not clamp:
        return None
    offset = next((value for value in sum_.inputs if is_number(value, OFFSET)), None)
    x = None if offset is None else beside(sum_, offset)
    reader = alone(clamp)
    if x is None or reader is None or x.descriptor != clamp.outputs[0]:
        return None
    if _is_sixth(reader, clamp):  # divided, then multiplied
        product = following(alone(reader), "mul", reader)
        is_it = product is not None and other(product, reader) is x
        return DrawnFunction(x, (sum_, clamp, reader, product)) if product is not None and is_it else None
    product = following(reader, "mul", clamp)
    last = None if product is None or other(product, clamp) is not x else alone(product)
    if product is None or last is None or not _is_sixth(last, product):
        return None
    return DrawnFunction(x, (sum_, clamp, product, last))


def _is_sixth(node: Node, divided: Node) -> bool:
    """Whether a node, which reads another one's result, gives a sixth of it."""
    if node.operator is arithmetic.div:
        return is_number(node.inputs[1], RANGE)
    return node.operator is arithmetic.mul and is_number(other(node, divided), 1 / RANGE)
