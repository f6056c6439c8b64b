"""Run networks of quantized weights as int8 where that is exact: onnxruntime multiplies it in half the time of uint8.

Rows of weights are put into an order in which no 16-bit sum saturates (``int8_row_order.paired``): the rows of the
input's weights together with the input's last axis, those of the state's weights together with the hidden units, whose
order is undone behind the network. Integer sums and value ranges do not depend on the order, and so no result does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.host_processor import has_vnni
from webnn_py.devices.onnxruntime.own_operators.quantized_lstm import QUANTIZED_LSTM
from webnn_py.devices.onnxruntime.passes.int8_row_order import Order, Weights, paired
from webnn_py.devices.onnxruntime.passes.integer_products import EXACT_UP_TO, LARGEST, MIDDLE, ShiftedBytes, Unsigned
from webnn_py.devices.rewriting.passes import ReadConstant
from webnn_py.devices.rewriting.reshapes import origin_of

MOST_PIECES: Final = 24
"""The most pieces that are faster to concatenate in their order than to gather as rows of the transpose."""

MOST_EXACT: Final = EXACT_UP_TO // (LARGEST * MIDDLE)
"""The most products of uint8 by int8 whose sum float32 holds exactly."""

BY_UNIT: Final = ("w_scale", "r_scale", "bias", "hidden", "cell")
"""Operands besides the weights with an element for each unit, or for each gate's units; scales may have just one."""


def use_signed_weights(graph: Graph, contents: ReadConstant) -> Graph:
    """Return the graph with the weights of each quantized LSTM as int8 where they can be paired, else as uint8.

    With VNNI, whose sums of uint8 by int8 do not saturate, the weights stay as they are.

    Args:
        graph: the graph to rewrite.
        contents: returns the values of constants.
    """
    networks = [node for node in graph.nodes if node.operator is QUANTIZED_LSTM]
    if not networks or has_vnni():
        return graph
    found = _paired(networks, contents)
    unsigned = Unsigned(contents)
    inputs: dict[tuple[Value, bytes], Value] = {}
    read = frozenset(chain(graph.outputs.values(), *[node.inputs for node in graph.nodes]))

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator is not QUANTIZED_LSTM:
            return None
        weights = found.get(node)
        if weights is None:
            return dict(zip(node.results, _unsigned(current, unsigned), strict=True))
        builder = RewriteBuilder(node.label, node.drawn)
        made = _in_order(builder, current, weights, contents, inputs)
        undone = np.argsort(weights.units)
        return {
            value: builder.value(_ordered(builder, builder.operand(result), undone))
            for value, result in zip(node.results, made, strict=True)
            if value in read
        }

    return rewrite(graph, replace)


@attrs.frozen(eq=False)
class _Paired:
    """Weights less their zero points, and the row orders in which no pair saturates.

    Attributes:
        w: the input's weights.
        r: the hidden state's weights.
        elements: the order of the input's elements.
        units: the order of the hidden units.
    """

    w: Weights
    r: Weights
    elements: Order
    units: Order


def _paired(networks: Sequence[Node], contents: ReadConstant) -> Mapping[Node, _Paired]:
    """Return the weights of the networks that can be paired."""
    of_inputs: dict[Value, dict[Node, tuple[Weights, Weights, Order]]] = defaultdict(dict)
    for node in networks:
        w, r = (_signed(node, name, contents) for name in "wr")
        units = None if r is None else paired([r])
        if w is not None and r is not None and units is not None:
            of_inputs[origin_of(node.value("x"))][node] = w, r, units
    found = {}
    for nodes in of_inputs.values():
        # An input that several networks read gets one order for all of them, if there is one.
        together = paired([w for w, _, _ in nodes.values()]) if len(nodes) > 1 else None
        for node, (w, r, units) in nodes.items():
            elements = paired([w]) if together is None else together
            if elements is not None:
                found[node] = _Paired(w, r, elements, units)
    return found


def _signed(node: Node, name: str, contents: ReadConstant) -> Weights | None:
    """Return the weights of a network less their zero point, [rows, columns]; None where they do not fit int8."""
    integers, zero_point = node.operands[name], node.operands[f"{name}_zero_point"]
    assert isinstance(integers, Constant)  # noqa: S101 - weights are constant
    assert isinstance(zero_point, Constant)  # noqa: S101 - weights are constant
    array = contents(integers).reshape(integers.descriptor.shape[1:])
    zero = contents(zero_point).item()
    if array.dtype == np.int8 and zero == 0:
        return array
    if array.dtype == np.uint8 and zero == MIDDLE:
        return (array ^ np.uint8(MIDDLE)).view(np.int8)
    wide = array.astype(np.int16) - np.int16(zero)
    return wide.astype(np.int8) if wide.min() >= -MIDDLE and wide.max() < MIDDLE else None


def _unsigned(node: Node, unsigned: Unsigned) -> Sequence[Value]:
    """Return the results of a network with its weights as uint8."""
    operands = dict(node.operands)
    for name in "wr":
        shifted = unsigned.of(ShiftedBytes(operands[name], operands[f"{name}_zero_point"]))  # type: ignore[arg-type]
        operands |= {name: shifted.integers, f"{name}_zero_point": shifted.zero_point}  # type: ignore[dict-item]
    return attrs.evolve(node, operands=operands).results


def _in_order(
    builder: RewriteBuilder,
    node: Node,
    weights: _Paired,
    contents: ReadConstant,
    inputs: dict[tuple[Value, bytes], Value],
) -> Sequence[Value]:
    """Return the results of a network whose int8 weights are reordered; the results are in the order of the units.

    Each reordered input is recorded in ``inputs``, by value and order, for the next network that needs it.
    """
    operands: dict[str, Any] = dict(node.operands)
    columns = _of_blocks(weights.units, weights.w.shape[1])
    for name, array, rows in (("w", weights.w, weights.elements), ("r", weights.r, weights.units)):
        zero_point = operands[f"{name}_zero_point"]
        operands[name] = _weights(operands[name], contents(zero_point), array, rows, columns)
        operands[f"{name}_zero_point"] = Constant(
            MLOperandDescriptor("int8", zero_point.descriptor.shape), np.zeros(zero_point.descriptor.shape, np.int8)
        )
    key = operands["x"], weights.elements.tobytes()
    if key not in inputs:
        inputs[key] = builder.value(_ordered(builder, builder.operand(operands["x"]), weights.elements))
    operands["x"] = inputs[key]
    for name in BY_UNIT:
        value = operands.get(name)
        if value is not None and (size := value.descriptor.shape[-1]) % len(weights.units) == 0:
            operands[name] = _by_unit(builder, value, _of_blocks(weights.units, size), contents)
    ends = {name: _ends(node.options[name]) for name in ("w_ends", "r_ends")}
    return attrs.evolve(node, operands=operands, options={**node.options, **ends}).results


def _ends(ends: Sequence[int]) -> Sequence[int]:
    """Return the ends of the slices of rows so that float32 holds the sum of each slice; a single slice stays whole."""
    return ends if len(ends) == 1 else [*range(MOST_EXACT, ends[-1], MOST_EXACT), ends[-1]]


def _of_blocks(order: Order, size: int) -> Order:
    """Repeat an order within each block of ``size`` elements."""
    return np.add.outer(np.arange(0, size, len(order)), order).ravel()


def _is_as_was(order: Order) -> bool:
    return bool((order == np.arange(len(order))).all())


def _weights(value: Constant, zero_point: NDArray[Any], array: Weights, rows: Order, columns: Order) -> Constant:
    """Return the constant of weights, less their zero point, with its rows and columns reordered."""
    orders = [(axis, order) for axis, order in enumerate((rows, columns)) if not _is_as_was(order)]
    if not orders and value.descriptor.data_type == "int8" and not zero_point.any():
        return value
    ordered = array.copy()
    moves = []
    for axis, order in orders:
        places = np.flatnonzero(order != np.arange(len(order)))  # usually a few; all others were copied at once
        moves.append((axis, places.tolist(), order[places].tolist()))
        ordered.swapaxes(0, axis)[places] = ordered.take(order[places], axis).swapaxes(0, axis)
    key = None if value.key is None else ("paired", value.key, value.descriptor, zero_point.item(), str(moves))
    return Constant(MLOperandDescriptor("int8", value.descriptor.shape), ordered.reshape(value.descriptor.shape), key)


def _by_unit(builder: RewriteBuilder, value: Value, order: Order, contents: ReadConstant) -> Value:
    """Return a value with its last axis reordered."""
    if not isinstance(value, Constant):
        return builder.value(_ordered(builder, builder.operand(value), order))
    if _is_as_was(order):
        return value
    return Constant(value.descriptor, contents(value).reshape(value.descriptor.shape)[..., order])


def _ordered(builder: RewriteBuilder, x: MLOperand, order: Order) -> MLOperand:
    """Return an operand with its last axis reordered."""
    if _is_as_was(order):
        return x
    starts = np.flatnonzero(np.r_[True, order[1:] != order[:-1] + 1])
    if len(starts) <= MOST_PIECES:
        by_place = np.argsort(order[starts])
        sizes = np.diff(np.r_[starts, len(order)])[by_place]
        pieces = builder.split(x, sizes.tolist(), axis=x.rank - 1)
        return builder.concat([pieces[place] for place in np.argsort(by_place)], x.rank - 1)
    # Gathers copy whole rows of the transpose, but single elements of a row.
    indices = builder.constant(order.astype(np.int32).tobytes(), data_type="int32", shape=order.shape)
    columns = builder.transpose(builder.reshape(x, [math.prod(x.shape[:-1]), len(order)]))
    return builder.reshape(builder.transpose(builder.gather(columns, indices)), [*x.shape])
