"""Networks of quantized weights as int8, which onnxruntime multiplies in half the time of uint8, where that is exact.

Rows of weights are put into an order in which no sum of 16 bits saturates (``paired_rows``): those of the input's
together with its last axis, those of the state's together with the hidden units, whose order is undone behind the
network. Sums of integers and ranges are the same in any order, and so are all results.
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

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_onnxruntime.own_operators.quantized_lstm import QUANTIZED_LSTM
from webnn_py.device.on_onnxruntime.passes.int8_row_order import Order, Weights, paired
from webnn_py.device.on_onnxruntime.passes.integer_products import EXACT_UP_TO, LARGEST, MIDDLE, ShiftedBytes, Unsigned
from webnn_py.device.processor import has_vnni
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.operators.operand import MLOperand
from webnn_py.rewriting.builder import RewriteBuilder
from webnn_py.rewriting.walk import rewrite

MOST_PIECES: Final = 24
"""Of how many pieces it takes less time to join others in their order than to look up the rows of the transpose."""

MOST_EXACT: Final = EXACT_UP_TO // (LARGEST * MIDDLE)
"""Of how many products of uint8 by int8 float32 holds the sum."""

BY_UNIT: Final = ("w_scale", "r_scale", "bias", "hidden", "cell")
"""What has an element for each unit, or for each of each gate, besides the weights; scales may have one alone."""


def use_signed_weights(graph: Graph, contents: ReadConstant) -> Graph:
    """The graph with the weights of each such network as int8 where they can be, and as uint8 elsewhere.

    With VNNI, whose sums of uint8 by int8 do not saturate, they stay as they are.

    Args:
        graph: what to rewrite.
        contents: gives the values of constants.
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
    """Weights less their zero points, and the orders in which they are paired.

    Attributes:
        w: of the input.
        r: of the hidden state.
        elements: the order of the elements of the input.
        units: that of the hidden units.
    """

    w: Weights
    r: Weights
    elements: Order
    units: Order


def _paired(networks: Sequence[Node], contents: ReadConstant) -> Mapping[Node, _Paired]:
    """The weights of the networks that can be paired."""
    of_inputs: dict[Value, dict[Node, tuple[Weights, Weights, Order]]] = defaultdict(dict)
    for node in networks:
        w, r = (_signed(node, name, contents) for name in "wr")
        units = None if r is None else paired([r])
        if w is not None and r is not None and units is not None:
            of_inputs[_origin(node.operands["x"])][node] = w, r, units
    found = {}
    for nodes in of_inputs.values():
        # What several read is put into one order for all, if there is one.
        together = paired([w for w, _, _ in nodes.values()]) if len(nodes) > 1 else None
        for node, (w, r, units) in nodes.items():
            elements = paired([w]) if together is None else together
            if elements is not None:
                found[node] = _Paired(w, r, elements, units)
    return found


def _origin(value: Any) -> Value:
    """What a value is, but for its shape."""
    while isinstance(value, Output) and value.node.operator.name == "reshape":
        (value,) = value.node.inputs
    return value  # type: ignore[no-any-return]


def _signed(node: Node, name: str, contents: ReadConstant) -> Weights | None:
    """The weights of a network less their zero point, [rows, columns]; None if that is not int8."""
    integers, zero_point = node.operands[name], node.operands[f"{name}_zero_point"]
    assert isinstance(integers, Constant)  # noqa: S101 - weights of such networks are
    assert isinstance(zero_point, Constant)  # noqa: S101 - likewise
    array = contents(integers).reshape(integers.descriptor.shape[1:])
    zero = contents(zero_point).item()
    if array.dtype == np.int8 and zero == 0:
        return array
    if array.dtype == np.uint8 and zero == MIDDLE:
        return (array ^ np.uint8(MIDDLE)).view(np.int8)
    wide = array.astype(np.int16) - np.int16(zero)
    return wide.astype(np.int8) if wide.min() >= -MIDDLE and wide.max() < MIDDLE else None


def _unsigned(node: Node, unsigned: Unsigned) -> Sequence[Value]:
    """The results of a network with weights of uint8."""
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
    """The results of a network with weights of int8 in their orders, of which the results have that of the units.

    Each input, and the order it was put into, is entered among ``inputs``, for the next one that reads it so.
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
    """Where rows in any order are cut, so that float32 holds sums of products: nowhere, if they were not."""
    return ends if len(ends) == 1 else [*range(MOST_EXACT, ends[-1], MOST_EXACT), ends[-1]]


def _of_blocks(order: Order, size: int) -> Order:
    """An order within each of the blocks of so many elements."""
    return np.add.outer(np.arange(0, size, len(order)), order).ravel()


def _is_as_was(order: Order) -> bool:
    return bool((order == np.arange(len(order))).all())


def _weights(value: Constant, zero_point: NDArray[Any], array: Weights, rows: Order, columns: Order) -> Constant:
    """The constant of weights, less their zero point, whose rows and columns are in an order."""
    orders = [(axis, order) for axis, order in enumerate((rows, columns)) if not _is_as_was(order)]
    if not orders and value.descriptor.data_type == "int8" and not zero_point.any():
        return value
    ordered = array.copy()
    moves = []
    for axis, order in orders:
        places = np.flatnonzero(order != np.arange(len(order)))  # a few: the rest is copied at once
        moves.append((axis, places.tolist(), order[places].tolist()))
        ordered.swapaxes(0, axis)[places] = ordered.take(order[places], axis).swapaxes(0, axis)
    key = None if value.key is None else ("paired", value.key, value.descriptor, zero_point.item(), str(moves))
    return Constant(MLOperandDescriptor("int8", value.descriptor.shape), ordered.reshape(value.descriptor.shape), key)


def _by_unit(builder: RewriteBuilder, value: Value, order: Order, contents: ReadConstant) -> Value:
    """What has its last axis in an order."""
    if not isinstance(value, Constant):
        return builder.value(_ordered(builder, builder.operand(value), order))
    if _is_as_was(order):
        return value
    return Constant(value.descriptor, contents(value).reshape(value.descriptor.shape)[..., order])


def _ordered(builder: RewriteBuilder, x: MLOperand, order: Order) -> MLOperand:
    """An operand whose last axis is in another order."""
    if _is_as_was(order):
        return x
    starts = np.flatnonzero(np.r_[True, order[1:] != order[:-1] + 1])
    if len(starts) <= MOST_PIECES:
        by_place = np.argsort(order[starts])
        sizes = np.diff(np.r_[starts, len(order)])[by_place]
        pieces = builder.split(x, sizes.tolist(), axis=x.rank - 1)
        joined: MLOperand = builder.concat([pieces[place] for place in np.argsort(by_place)], x.rank - 1)
        return joined
    # A row of the transpose is copied at once, an element of a row would be by itself.
    indices = builder.constant(order.astype(np.int32).tobytes(), data_type="int32", shape=order.shape)
    columns = builder.transpose(builder.reshape(x, [math.prod(x.shape[:-1]), len(order)]))
    looked_up: MLOperand = builder.reshape(builder.transpose(builder.gather(columns, indices)), [*x.shape])
    return looked_up
