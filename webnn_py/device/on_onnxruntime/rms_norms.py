"""Normalizations by the root mean square, which graphs draw in six operators or seven, as onnxruntime's one.

It finds them by itself only where nothing else reads the mean, as what tells of means that are not finite does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_onnxruntime.patterns import (
    Alone,
    DrawnFunction,
    DrawnFunctions,
    alone_in,
    following,
    is_number,
    maker,
    other,
)
from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.operators import unary
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting import rewrite

LEAST_EPSILON: Final = 1e-30
"""With one of so much the reciprocal of a root is far from infinite."""


def rms_normalization(input: MLOperand, scale: MLOperand, *, epsilon: float) -> MLOperandDescriptor:
    """The product of x, of [size]'s scale, and of the reciprocal of √(mean(x²) + epsilon) along the last axis."""
    return MLOperandDescriptor(input.data_type, input.shape)


RMS_NORMALIZATION: Final = Operator(rms_normalization, "layerNormalization", {})


def with_rms_norms(graph: Graph) -> Graph:
    """The graph with one node for each such normalization in float32 that nothing else reads parts of.

    Args:
        graph: what to rewrite.
    """
    alone = alone_in(graph)
    roots = [node for node in graph.nodes if node.operator is unary.sqrt]
    found = [one for root in roots if (one := _around(root, alone)) is not None]
    if not found:
        return graph
    functions = DrawnFunctions(found)

    def made(one: DrawnFunction, x: Value) -> Value:
        *_, normalized, last = one.nodes
        sum_ = next(node for node in one.nodes if node.operator.name == "add")
        mean = next(node for node in one.nodes if node.operator.name == "reduce_mean")
        operands = {"input": x, "scale": other(last, normalized)}
        options = {"epsilon": _number(other(sum_, mean))}
        return Node(RMS_NORMALIZATION, operands, options, last.outputs, last.label, one.drawn).results[0]

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        return functions.replace(node, current, made)

    return rewrite(graph, replace)


def _around(root: Node, alone: Alone) -> DrawnFunction | None:
    """The normalization of which a root is a part; None if it is that of none."""
    before = _mean_of_squares(root, alone)
    if before is None:
        return None
    square, *_ = before
    x = square.inputs[0]
    behind = _divided(x, root, alone)
    last = None if behind is None else following(alone(behind[-1]), "mul", behind[-1])
    if behind is None or last is None or x.descriptor != last.outputs[0] or x.descriptor.data_type != "float32":
        return None
    scale = other(last, behind[-1])
    if not isinstance(scale, Constant) or scale.descriptor.shape != x.descriptor.shape[-1:]:
        return None
    return DrawnFunction(x, (*before, root, *behind, last))


def _mean_of_squares(root: Node, alone: Alone) -> tuple[Node, Node, Node] | None:
    """The square, the mean and the sum with a small number of which a root is taken."""
    sum_ = maker(root.inputs[0], "add")
    mean = (
        None if sum_ is None else next((node for value in sum_.inputs if (node := maker(value, "reduce_mean"))), None)
    )
    if sum_ is None or mean is None or alone(sum_) is not root or alone(mean) is not sum_:
        return None
    if (_number(other(sum_, mean)) or 0) < LEAST_EPSILON:
        return None
    last_axis = len(mean.inputs[0].descriptor.shape) - 1
    if not mean.options["keep_dimensions"] or mean.options["axes"] is None or [*mean.options["axes"]] != [last_axis]:
        return None
    square = maker(mean.inputs[0], "pow") or maker(mean.inputs[0], "mul")
    if square is None or alone(square) is not mean:
        return None
    base, exponent = square.inputs
    is_square = exponent is base if square.operator.name == "mul" else is_number(exponent, 2)
    return (square, mean, sum_) if is_square else None


def _divided(x: Value, root: Node, alone: Alone) -> tuple[Node, ...] | None:
    """What divides x by a root: one operator, or a reciprocal and a product."""
    divided = alone(root)
    if divided is None:
        return None
    if divided.operator.name == "div" and divided.inputs[0] is x:
        return (divided,)
    is_one_by_root = divided.operator.name == "div" and is_number(divided.inputs[0], 1)
    if divided.operator.name != "reciprocal" and not is_one_by_root:
        return None
    product = following(alone(divided), "mul", divided)
    return None if product is None or other(product, divided) is not x else (divided, product)


def _number(value: Value) -> float | None:
    """A constant of one element."""
    if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray) or value.data.size != 1:
        return None
    return float(value.data.reshape(-1)[0])
