"""LSTM with products of integers, as the one operator that onnxruntime has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.dynamic_quantization import step_by_step


def quantized_lstm(
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    w_zero_point: MLOperand,
    r_zero_point: MLOperand,
    w_scale: MLOperand,
    r_scale: MLOperand,
    hidden: MLOperand,
    cell: MLOperand,
    bias: MLOperand | None = None,
    *,
    w_ends: Sequence[int],
    r_ends: Sequence[int],
    is_backward: bool,
) -> list[MLOperandDescriptor]:
    """Compute one direction of an LSTM with integer weights, whose input and states are quantized by their own ranges.

    Shapes, with an axis of one direction first except for the input: x [steps, batch, size], w [1, size, 4 · units] and
    r [1, units, 4 · units] of int8 or uint8, with zero points of one element, scales of one or of 4 · units, hidden and
    cell [1, batch, units], bias [1, 8 · units]; the gates are in ONNX's order. ``w_ends`` and ``r_ends`` slice the rows
    as in the composite.

    Returns:
        The hidden states of all steps, [steps, 1, batch, units]; the last hidden state, and the last cell state.
    """
    steps, batch, _ = x.shape
    last = (1, batch, r.shape[1])
    return [MLOperandDescriptor("float32", shape) for shape in ((steps, *last), last, last)]


QUANTIZED_LSTM: Final = Operator(quantized_lstm, "lstm", {})


def decomposition(builder: Any, x: Any, *, hidden: Any, cell: Any, bias: Any = None, **rest: Any) -> list[Any]:
    """Draw the operator step by step, as the composite is drawn."""
    given = {"hidden_state": hidden, "cell_state": cell} | {name: rest.pop(name) for name in "wr"}
    of_one = {name: builder.reshape(operand, operand.shape[1:]) for name, operand in given.items()}
    for name in ("w_scale", "r_scale", "w_zero_point", "r_zero_point"):
        count = rest[name].shape[-1]
        of_one[name] = builder.reshape(rest.pop(name), [count] if count > 1 else [])
    if bias is not None:
        of_input, _ = builder.split(bias, 2, axis=1)  # the state has no bias
        of_one["bias"] = builder.reshape(of_input, of_input.shape[1:])
    return step_by_step(builder, x, **of_one, **rest)
