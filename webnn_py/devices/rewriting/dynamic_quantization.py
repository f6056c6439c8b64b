"""Recognition of dynamic quantization, which graphs spell out in fourteen operators.

Devices replace each occurrence by one node of their own.
"""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Input, Node, Output, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators import conversion, movement
from webnn_py.devices.composites.dynamic_quantization import scale_and_zero_point


@attrs.frozen
class DynamicQuantization:
    """A dynamic quantization in a graph.

    Attributes:
        input: the quantized value, of float32 and at least one dimension.
        quantization: its last node, which gives uint8.
        scale: its scale, a scalar.
        zero_point: its zero point, a scalar.
        nodes: all its nodes.
    """

    input: Value
    quantization: Node
    scale: Value
    zero_point: Value
    nodes: tuple[Node, ...]

    @property
    def drawn(self) -> tuple[int, ...]:
        """The places of all its operators."""
        return tuple(sorted({place for node in self.nodes for place in node.drawn}))


@cache
def _pattern() -> tuple[Input, Value, Value]:
    """Return an input of float32, and the values that compute scale and zero point of any such input."""
    builder, x = RewriteBuilder(), Input(MLOperandDescriptor("float32", (1,)), "x")
    scale, zero_point = scale_and_zero_point(builder, builder.operand(x))
    return x, builder.value(scale), builder.value(zero_point)


def recognized(node: Node) -> DynamicQuantization | None:
    """Return the dynamic quantization whose last node this is; None where it is no such node."""
    if node.operator is not conversion.quantize_linear:
        return None
    x = node.value("input")
    around = [node]
    scale, zero_point = (_number(node.value(name), around) for name in ("scale", "zero_point"))
    is_one = isinstance(scale, Output) and isinstance(zero_point, Output) and not scale.descriptor.shape
    if not is_one or x.descriptor.data_type != "float32" or not x.descriptor.rank:
        return None
    input_drawn, scale_drawn, zero_point_drawn = _pattern()
    same: dict[Value, Value] = {input_drawn: x}
    if not (_is_drawn_as(zero_point, zero_point_drawn, same) and _is_drawn_as(scale, scale_drawn, same)):
        return None
    steps_of = (value.node for value in same.values() if isinstance(value, Output) and value is not x)
    return DynamicQuantization(x, node, scale, zero_point, tuple(dict.fromkeys([*steps_of, *around])))


def _number(value: Value, around: list[Node]) -> Value:
    """Return a value without its reshapes, which are added to ``around``."""
    while isinstance(value, Output) and value.node.operator is movement.reshape:
        around.append(value.node)
        value = next(iter(value.node.inputs))
    return value


def _is_drawn_as(value: Value, pattern: Value, same: dict[Value, Value]) -> bool:
    """Return whether a value is computed as in the pattern.

    Args:
        value: the value.
        pattern: the pattern.
        same: the values already matched, by value of the pattern; further matches are added.
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
