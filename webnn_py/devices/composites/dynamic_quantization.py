"""Quantization to uint8 by the range of what is quantized, and LSTMs whose input and states are quantized so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Final

import attrs

from webnn_py.core.decompositions.common import cut, number
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import MAX_RANK, LimitsRow, limit
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_shape, output

GATES: Final = 4

_BYTES: Final = limit(("int8", "uint8"), rank=2)
_ZERO: Final = limit(("int8", "uint8"), rank=(0, 1))
_SCALE: Final = limit(("float32",), rank=(0, 1))
_LIST: Final = limit(("float32",), rank=1)
_STATE: Final = limit(("float32",), rank=2)

LSTM: Final[LimitsRow] = {
    "x": limit(("float32",), rank=3),
    "w": _BYTES,
    "r": _BYTES,
    "w_scale": _SCALE,
    "r_scale": _SCALE,
    "hidden_state": _STATE,
    "cell_state": _STATE,
    "w_zero_point": attrs.evolve(_ZERO, type_of="w"),
    "r_zero_point": attrs.evolve(_ZERO, type_of="r"),
    "bias": _LIST,
    "peephole_weight": _LIST,
    "output0": limit(("float32",), rank=4),
    "output1": limit(("float32",), rank=3),
    "output2": limit(("float32",), rank=3),
}


def dynamic_quantize_lstm(
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    w_scale: MLOperand,
    r_scale: MLOperand,
    hidden_state: MLOperand,
    cell_state: MLOperand,
    *,
    w_zero_point: MLOperand | None = None,
    r_zero_point: MLOperand | None = None,
    bias: MLOperand | None = None,
    peephole_weight: MLOperand | None = None,
    w_ends: Sequence[int],
    r_ends: Sequence[int],
    is_backward: bool,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """One direction of an LSTM with integer weights, whose input and states are quantized by their ranges.

    Args:
        x: [steps, batch, size].
        w: the weights of the input, [size, 4 · units]; the gates are in ONNX's order: input, output, forget, cell.
        r: those of the hidden state, [units, 4 · units].
        w_scale: of one element or one for each column.
        r_scale: that of ``r``.
        hidden_state: the first one, [batch, units].
        cell_state: the first one, of the same shape.
        w_zero_point: of the shape of ``w_scale``; 0 when absent.
        r_zero_point: that of ``r``, of the shape of ``r_scale``.
        bias: what is added to the gates, [4 · units].
        peephole_weight: of input, output and forget gate, [3 · units]; the output gate sees the new cell.
        w_ends: where rows of ``w`` are cut, so that float32 holds sums of products up to there; the last one is their
            number.
        r_ends: where rows of ``r`` are cut.
        is_backward: whether the last step of the input comes first.
        label: what the node is called.

    Returns:
        The hidden states of all steps, [steps, 1, batch, units]; the last one and the last cell, [1, batch, units].
    """
    steps, batch, size = x.shape
    columns = w.shape[1]
    units = columns // GATES
    check_shape("w", w, [size, GATES * units])
    check_shape("r", r, [units, GATES * units])
    check_shape("hidden_state", hidden_state, [batch, units])
    check_shape("cell_state", cell_state, [batch, units])
    by_column = {"w_scale": w_scale, "r_scale": r_scale, "w_zero_point": w_zero_point, "r_zero_point": r_zero_point}
    for name, item in by_column.items():
        if item is not None and item.rank:
            check_shape(name, item, [columns])
    check_shape("bias", bias, [GATES * units])
    check_shape("peephole_weight", peephole_weight, [(GATES - 1) * units])
    last = (1, batch, units)
    return [output("float32", shape) for shape in ((steps, *last), last, last)]


def step_by_step(
    builder: Builder,
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    w_scale: MLOperand,
    r_scale: MLOperand,
    hidden_state: MLOperand,
    cell_state: MLOperand,
    *,
    w_zero_point: MLOperand | None = None,
    r_zero_point: MLOperand | None = None,
    bias: MLOperand | None = None,
    peephole_weight: MLOperand | None = None,
    w_ends: Sequence[int],
    r_ends: Sequence[int],
    is_backward: bool,
) -> list[MLOperand]:
    """Draw :func:`dynamic_quantize_lstm`."""
    steps, batch, size = x.shape
    of_x = _Factor.from_quantized(builder, w, w_zero_point, w_scale, w_ends)
    of_state = _Factor.from_quantized(builder, r, r_zero_point, r_scale, r_ends)
    peepholes = () if peephole_weight is None else builder.split(peephole_weight, 3)
    of_input = of_x.times(builder, builder.reshape(x, [steps * batch, size]))
    inputs = builder.split(of_input, steps) if steps > 1 else [of_input]
    activations = builder.sigmoid, builder.tanh, builder.tanh
    hidden, cell = hidden_state, cell_state
    outputs = []
    for gates in reversed(inputs) if is_backward else inputs:
        summed = builder.add(gates, of_state.times(builder, hidden))
        if bias is not None:  # last, as onnxruntime adds it: each step quantizes what the step before rounded
            summed = builder.add(summed, bias)
        hidden, cell = next_lstm_states(builder, builder.split(summed, GATES, axis=1), cell, peepholes, activations)
        outputs.append(hidden)
    shape = [1, batch, hidden.shape[1]]
    ordered = outputs[::-1] if is_backward else outputs
    sequence = builder.concat([builder.reshape(item, [1, *shape]) for item in ordered], 0)
    return [sequence, builder.reshape(hidden, shape), builder.reshape(cell, shape)]


def next_lstm_states(
    builder: Builder,
    gates: Sequence[MLOperand],
    cell: MLOperand,
    peepholes: Sequence[MLOperand],
    activations: Sequence[Callable[[MLOperand], MLOperand]],
    *,
    coupled: bool = False,
) -> tuple[MLOperand, MLOperand]:
    """Return the next state of hidden units and cells of an LSTM as ONNX has it: its output gate sees the new cells.

    Args:
        builder: what to draw with.
        gates: the input, output and forget gates and the candidates, before their activations.
        cell: the cells before.
        peepholes: the weights of the cells in the first three gates, or none.
        activations: of the gates, of the candidates, and of the cells that are shown.
        coupled: whether the forget gate is 1 - the input gate.
    """
    input_gate, output_gate, forget, candidate = gates
    gate, squash, show = activations

    def seen(value: MLOperand, place: int, cells: MLOperand) -> MLOperand:
        return builder.add(value, builder.mul(peepholes[place], cells)) if peepholes else value

    let_in = gate(seen(input_gate, 0, cell))
    kept = builder.sub(number(builder, 1, let_in), let_in) if coupled else gate(seen(forget, 2, cell))
    following = builder.add(builder.mul(kept, cell), builder.mul(let_in, squash(candidate)))
    return builder.mul(gate(seen(output_gate, 1, following)), show(following)), following


@attrs.frozen
class _Factor:
    """Weights, drawn once for all steps.

    Attributes:
        parts: the rows up to each end, less their zero point, as floats; and where they begin.
        scale: theirs.
    """

    parts: Sequence[tuple[int, MLOperand]]
    scale: MLOperand

    @classmethod
    def from_quantized(
        cls, builder: Builder, x: MLOperand, zero_point: MLOperand | None, scale: MLOperand, ends: Sequence[int]
    ) -> _Factor:
        floats = builder.cast(x, "float32")
        if zero_point is not None:
            floats = builder.sub(floats, builder.cast(zero_point, "float32"))
        parts = [(begin, cut(builder, floats, 0, begin, end)) for begin, end in pairwise([0, *ends])]
        return cls(parts, scale)

    def times(self, builder: Builder, x: MLOperand) -> MLOperand:
        """Return the product of what is quantized by its range and these."""
        integers, scale, zero_point = builder.append(DYNAMIC_QUANTIZE, x)
        floats = builder.sub(builder.cast(integers, "float32"), builder.cast(zero_point, "float32"))
        products = [
            builder.cast(builder.matmul(cut(builder, floats, 1, begin, begin + rows.shape[0]), rows), "int32")
            for begin, rows in self.parts
        ]
        sums = builder.cast(reduce(builder.add, products), "float32")
        return builder.mul(sums, builder.mul(scale, self.scale))


QUANTIZE: Final[LimitsRow] = {
    "input": limit(("float32",), rank=(1, MAX_RANK)),
    "output0": limit(("uint8",), rank=(1, MAX_RANK)),
    "output1": limit(("float32",), rank=0),
    "output2": limit(("uint8",), rank=0),
}


def dynamic_quantize(input: MLOperand, *, label: str = "") -> list[MLOperandDescriptor]:
    """Quantize to uint8 by the range of the elements, into which 0 is taken.

    Returns:
        The integers; their scale, a 255th of the range; and the zero point.
    """
    return [output("uint8", input.shape), output("float32", ()), output("uint8", ())]


def dynamically_quantized(builder: Builder, input: MLOperand) -> list[MLOperand]:
    """Draw :func:`dynamic_quantize`."""
    scale, zero_point = scale_and_zero_point(builder, input)
    whole = [builder.reshape(item, [1] * input.rank) for item in (scale, zero_point)]
    return [builder.quantize_linear(input, *whole), scale, zero_point]


def scale_and_zero_point(builder: Builder, x: MLOperand) -> tuple[MLOperand, MLOperand]:
    """Draw the scale and the zero point of an operand that is quantized to uint8 by its range."""
    zero = number(builder, 0, x)
    lowest = builder.min(builder.reduce_min(x), zero)
    span = builder.sub(builder.max(builder.reduce_max(x), zero), lowest)
    nothing = builder.equal(span, zero)
    scale = builder.where(nothing, number(builder, 1, x), builder.div(span, number(builder, 255, x)))
    point = builder.round_even(builder.div(builder.neg(lowest), scale))
    return scale, builder.cast(builder.clamp(point, min_value=0, max_value=255), "uint8")


DYNAMIC_QUANTIZE: Final = Composite(dynamic_quantize, "dynamicQuantize", QUANTIZE, dynamically_quantized)
DYNAMIC_QUANTIZE_LSTM: Final = Composite(dynamic_quantize_lstm, "dynamicQuantizeLstm", LSTM, step_by_step)
