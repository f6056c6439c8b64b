"""The product of x and its sigmoid as one operator of -x, which a convolution gives whose filter and bias are negated.

It is -x / (-1 - exp(-x)): three nodes for five, since nothing has to be cut off before exp overflows. Then the quotient
is 0, where the product is 3e-37 at most; NaN of -Infinity it is as the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import activation, convolution, unary
from webnn_py.operators.composites import DYNAMIC_QUANTIZE
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting import readers_of, rewrite

Contents = Callable[[Constant], NDArray[Any]]
"""Gives the array of a constant."""


def silu_of_negated(input: MLOperand) -> MLOperandDescriptor:
    """The product of x and its sigmoid, of -x."""
    return MLOperandDescriptor(input.data_type, input.shape)


SILU_OF_NEGATED: Final = Operator(silu_of_negated, "mul", {}, elementwise=True)


def with_silus(graph: Graph, contents: Contents) -> Graph:
    """The graph with one operator for each product in float32 of a value and its sigmoid, which nothing else reads.

    Not in graphs that quantize dynamically, whose sigmoids may be gates.

    Args:
        graph: what to rewrite.
        contents: gives the values of constants.
    """
    sigmoids = [node for node in graph.nodes if node.operator is activation.sigmoid]
    if not sigmoids or any(node.operator is DYNAMIC_QUANTIZE for node in graph.nodes):
        return graph
    readers = readers_of(graph)
    products = {product: node for node in sigmoids if (product := _product_of(node, readers)) is not None}
    negated = {
        x.node
        for node in products.values()
        if len(readers[x := node.inputs[0]]) == 2 and isinstance(x, Output) and _is_of_constants(x.node)
    }

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node in negated:
            return {node.results[0]: _negated(current, contents)}  # which the product alone reads, and its sigmoid
        sigmoid = products.get(node)
        if sigmoid is None:
            return None
        x, given = sigmoid.inputs[0], current.inputs[node.inputs.index(sigmoid.inputs[0])]
        if not (isinstance(x, Output) and x.node in negated):
            given = Node(unary.neg, {"input": given}, {}, node.outputs, node.label, node.drawn).results[0]
        drawn = tuple(sorted({*sigmoid.drawn, *node.drawn}))
        return {
            node.results[0]: Node(SILU_OF_NEGATED, {"input": given}, {}, node.outputs, node.label, drawn).results[0]
        }

    return rewrite(graph, replace) if products else graph


def _product_of(sigmoid: Node, readers: Mapping[Value, list[Node | None]]) -> Node | None:
    """What multiplies a sigmoid by its operand, if nothing else reads it."""
    readers_of_it = readers[sigmoid.results[0]]
    product = readers_of_it[0] if len(readers_of_it) == 1 else None
    is_it = product is not None and product.operator.name == "mul" and sigmoid.inputs[0] in product.inputs
    return product if is_it and sigmoid.outputs[0].data_type == "float32" else None


def _is_of_constants(node: Node) -> bool:
    """Whether a node is a convolution by a constant filter, with a constant bias or none."""
    others = [node.operands.get(name) for name in ("filter", "bias")]
    return node.operator is convolution.conv2d and all(item is None or isinstance(item, Constant) for item in others)


def _negated(node: Node, contents: Contents) -> Value:
    """What a convolution gives, negated: every sum is, and is rounded as it was."""
    constants = {name: node.operands[name] for name in ("filter", "bias") if name in node.operands}
    made = {name: _negative(value, contents) for name, value in constants.items() if isinstance(value, Constant)}
    return attrs.evolve(node, operands={**node.operands, **made}).results[0]


def _negative(constant: Constant, contents: Contents) -> Constant:
    key = None if constant.key is None else ("negated", constant.key)
    return Constant(constant.descriptor, np.negative(contents(constant)), key)
