"""Lower LSTMs with integer weights to the one operator that onnxruntime has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.drawn_out import drawn_out
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE_LSTM
from webnn_py.devices.onnxruntime.own_operators.quantized_lstm import QUANTIZED_LSTM
from webnn_py.devices.onnxruntime.passes.integer_products import LARGEST, MOST_SUM, ShiftedBytes
from webnn_py.devices.rewriting.passes import ReadConstant

WEIGHTS: Final = ("w", "r")


def use_quantized_lstms(graph: Graph, contents: ReadConstant) -> Graph:
    """Return the graph with onnxruntime's operator, or the decomposition into steps, in place of each quantized LSTM.

    Args:
        graph: the graph to rewrite.
        contents: returns the values of constants.
    """
    if not any(node.operator is DYNAMIC_QUANTIZE_LSTM for node in graph.nodes):
        return graph

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator is not DYNAMIC_QUANTIZE_LSTM:
            return None
        if not _can_be_one(current):
            return drawn_out(node, current)
        return dict(zip(node.results, _as_one(current, contents).results, strict=True))

    return rewrite(graph, replace)


def _can_be_one(node: Node) -> bool:
    """Return whether onnxruntime's operator supports all operands of a network, and its int32 sums cannot overflow."""
    if "peephole_weight" in node.operands or node.operand("x").shape[0] == 1:
        return False
    for name in WEIGHTS:
        zero_point = node.operands.get(f"{name}_zero_point")
        if not isinstance(node.operands[name], Constant) or not isinstance(zero_point, Constant | None):
            return False
        if zero_point is not None and zero_point.descriptor.element_count > 1:
            return False
        if node.operand(name).shape[0] * LARGEST**2 > MOST_SUM:
            return False
    return True


def _as_one(node: Node, contents: ReadConstant) -> Node:
    """Return onnxruntime's operator in place of a network."""
    builder = RewriteBuilder(node.label, node.drawn)

    def shaped(name: str, shape: Sequence[int]) -> MLOperand:
        there = node.operands[name]
        assert isinstance(there, Value)  # noqa: S101 - for type checkers
        if there.descriptor.shape == tuple(shape):
            return builder.operand(there)
        if isinstance(there, Constant) and isinstance(there.data, np.ndarray):
            descriptor = MLOperandDescriptor(there.descriptor.data_type, tuple(shape))
            return builder.operand(Constant(descriptor, there.data.reshape(shape), there.key))
        return builder.reshape(builder.operand(there), [*shape])

    state = [1, *node.operand("hidden_state").shape]
    operands = {
        "x": shaped("x", node.operand("x").shape),
        "hidden": shaped("hidden_state", state),
        "cell": shaped("cell_state", state),
    }
    for name in WEIGHTS:
        integers, zero_point = in_bytes(weights_of(node, name), contents)
        operands |= {name: builder.operand(integers), f"{name}_zero_point": builder.operand(zero_point)}
        scale = node.operand(f"{name}_scale")
        operands[f"{name}_scale"] = shaped(f"{name}_scale", [1, *scale.shape] if scale.element_count > 1 else [1])
    if "bias" in node.operands:
        operands["bias"] = _whole_bias(builder, shaped("bias", [1, *node.operand("bias").shape]))
    options = {name: node.options[name] for name in ("w_ends", "r_ends", "is_backward")}
    values = {name: builder.value(operand) for name, operand in operands.items()}
    return Node(QUANTIZED_LSTM, values, options, node.outputs, node.label, node.drawn)


def _whole_bias(builder: RewriteBuilder, bias: MLOperand) -> MLOperand:
    """Return the bias of the input, followed by zeros for the bias of the state."""
    value = builder.value(bias)
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        array = np.concatenate([value.data, np.zeros_like(value.data)], 1)
        return builder.operand(Constant(MLOperandDescriptor("float32", array.shape), array))
    none = builder.constant(bytes(bias.shape[1] * 4), data_type="float32", shape=bias.shape)
    return builder.concat([bias, none], 1)


def weights_of(node: Node, name: str) -> ShiftedBytes:
    """Return the integers of a factor of a network, ``w`` or ``r``, and their zero point."""
    integers, zero_point = node.operands[name], node.operands.get(f"{name}_zero_point")
    assert isinstance(integers, Value)  # noqa: S101 - for type checkers
    assert isinstance(zero_point, Value | None)  # noqa: S101 - for type checkers
    return ShiftedBytes(integers, zero_point)


def in_bytes(weights: ShiftedBytes, contents: ReadConstant) -> tuple[Constant, Constant]:
    """Return integer weights with an axis for the one direction, and their zero point, 0 where there is none."""
    integers, zero_point = weights.integers, weights.zero_point
    assert isinstance(integers, Constant)  # noqa: S101 - weights are
    rows = _shaped(integers, (1, *integers.descriptor.shape), contents)
    if zero_point is None:
        data_type = integers.descriptor.data_type
        return rows, Constant(MLOperandDescriptor(data_type, (1,)), np.zeros(1, data_type))
    assert isinstance(zero_point, Constant)  # noqa: S101 - zero points of weights are
    return rows, _shaped(zero_point, (1,), contents)


def _shaped(value: Constant, shape: tuple[int, ...], contents: ReadConstant) -> Constant:
    """Return a constant in another shape."""
    return Constant(MLOperandDescriptor(value.descriptor.data_type, shape), contents(value).reshape(shape), value.key)
