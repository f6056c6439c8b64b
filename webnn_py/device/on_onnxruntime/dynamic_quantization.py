"""Dynamic quantization, which graphs say in fourteen operators, as the one that ONNX has for it.

Nodes are what a build takes its time for. What onnxruntime computes is the same to the last bit, of numbers that are
finite and not all of them tiny.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Input, Node, Output, Value
from webnn_py.operators import conversion, movement
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting import Replace, RewriteBuilder


def dynamic_quantize(input: MLOperand) -> list[MLOperandDescriptor]:
    """The elements in uint8; their scale, a 255th of their range with 0 in it; and the zero point."""
    scale, zero_point = (MLOperandDescriptor(data_type, ()) for data_type in ("float32", "uint8"))
    return [MLOperandDescriptor("uint8", input.shape), scale, zero_point]


DYNAMIC_QUANTIZE: Final = Operator(dynamic_quantize, "quantizeLinear", {})


def steps(builder: Any, x: Any) -> tuple[Any, Any]:
    """Draw scale and zero point, as graphs say them."""
    zero, one, most = (builder.constant(value, data_type="float32") for value in (0, 1, 255))
    lowest = builder.min(builder.reduce_min(x), zero)
    span = builder.sub(builder.max(builder.reduce_max(x), zero), lowest)
    scale = builder.where(builder.equal(span, zero), one, builder.div(span, most))
    point = builder.round_even(builder.div(builder.neg(lowest), scale))
    return scale, builder.cast(builder.clamp(point, min_value=0, max_value=255), "uint8")


def decomposition(builder: Any, x: Any) -> list[Any]:
    """Draw the three results as graphs say them, of an operand ``x``."""
    scale, zero_point = steps(builder, x)
    whole = (builder.reshape(item, [1] * x.rank) for item in (scale, zero_point))
    return [builder.quantize_linear(x, *whole), scale, zero_point]


@attrs.frozen
class Pattern:
    """What scale and zero point are drawn as, of an input of some descriptor."""

    input: Input
    scale: Value
    zero_point: Value

    @classmethod
    def of(cls, descriptor: MLOperandDescriptor) -> Pattern:
        """That of inputs of a descriptor."""
        builder, x = RewriteBuilder(), Input(descriptor, "x")
        scale, zero_point = steps(builder, builder.operand(x))
        return cls(x, builder.value(scale), builder.value(zero_point))


@attrs.frozen
class Found:
    """A dynamic quantization in a graph.

    Attributes:
        quantization: its last node.
        scale: its scale.
        zero_point: its zero point.
        drawn: the places of all its operators.
    """

    quantization: Node
    scale: Value
    zero_point: Value
    drawn: tuple[int, ...]


def recognizing(graph: Graph) -> Replace | None:
    """What puts one node in the place of each dynamic quantization of a graph; None where it has none."""
    patterns: dict[MLOperandDescriptor, Pattern] = {}
    found: dict[Node, Found] = {}
    for node in graph.nodes:
        if node.operator is conversion.quantize_linear:
            found.update(_found(node, patterns))
    if not found:
        return None

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        there = found.get(node)
        if there is None:
            return None
        outputs = tuple(dynamic_quantize(MLOperand._create(node.operand("input"))))
        made = Node(DYNAMIC_QUANTIZE, current.operands, {}, outputs, there.quantization.label, there.drawn)
        results = (there.quantization.results[0], there.scale, there.zero_point)
        return dict(zip(results, made.results, strict=True))

    return replace


def _found(node: Node, patterns: dict[MLOperandDescriptor, Pattern]) -> dict[Node, Found]:
    """The dynamic quantization that a quantization ends, by the first node that reads its input; none if it is none."""
    x = node.operands["input"]
    assert isinstance(x, Value)  # noqa: S101 - for type checkers
    scale, zero_point = (_number(node.operands[name]) for name in ("scale", "zero_point"))
    is_one = isinstance(scale, Output) and isinstance(zero_point, Output) and not scale.descriptor.shape
    if not is_one or x.descriptor.data_type != "float32" or not x.descriptor.rank:
        return {}
    if x.descriptor not in patterns:
        patterns[x.descriptor] = Pattern.of(x.descriptor)
    pattern = patterns[x.descriptor]
    same: dict[Value, Value] = {pattern.input: x}
    if not (_is_drawn_as(zero_point, pattern.zero_point, same) and _is_drawn_as(scale, pattern.scale, same)):
        return {}
    nodes = dict.fromkeys(value.node for value in same.values() if isinstance(value, Output) and value is not x)
    first = next(item for item in nodes if item.operator.name == "reduce_min")
    drawn = tuple(sorted({place for item in (*nodes, node) for place in item.drawn}))
    return {first: Found(node, scale, zero_point, drawn)}


def _number(value: object) -> Value:
    """A value, or what it is a reshape of."""
    assert isinstance(value, Value)  # noqa: S101 - for type checkers
    if isinstance(value, Output) and value.node.operator is movement.reshape:
        return next(iter(value.node.inputs))
    return value


def _is_drawn_as(value: Value, pattern: Value, same: dict[Value, Value]) -> bool:
    """Whether a value is computed as a pattern says.

    Args:
        value: the value.
        pattern: the pattern.
        same: the values that are known to be as a pattern says, by that; what is found out is added.
    """
    if pattern in same:
        return same[pattern] is value
    if isinstance(pattern, Constant):
        return _is_constant(value, pattern)
    if not isinstance(value, Output) or not isinstance(pattern, Output) or value.index != pattern.index:
        return False
    node, other = value.node, pattern.node
    if node.operator is not other.operator or node.options != other.options:
        return False
    same[pattern] = value
    return all(_is_drawn_as(*pair, same) for pair in zip(node.inputs, other.inputs, strict=True))


def _is_constant(value: Value, other: Constant) -> bool:
    if not isinstance(value, Constant) or value.descriptor != other.descriptor:
        return False
    return isinstance(value.data, np.ndarray) and value.data.tobytes() == np.asarray(other.data).tobytes()
