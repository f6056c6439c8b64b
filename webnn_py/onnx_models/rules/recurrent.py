"""Recurrent networks. Their gates come in the same order in ONNX and in WebNN's first layouts."""

from collections.abc import Sequence
from typing import Final

from webnn_py.onnx_models.axes import integers
from webnn_py.onnx_models.conversion_context import ConversionContext, StaticValue
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.recurrent import MLRecurrentNetworkActivation, MLRecurrentNetworkDirection
from webnn_py.operators.rules import refuse

DIRECTIONS: Final[dict[str, MLRecurrentNetworkDirection]] = {
    "forward": "forward",
    "reverse": "backward",
    "bidirectional": "both",
}
ACTIVATIONS: Final[dict[str, MLRecurrentNetworkActivation]] = {
    "relu": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}


@rule("LSTM", 7, 14, 22)
def lstm(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None = None,
    sequence_lens: StaticValue | None = None,
    initial_h: MLOperand | None = None,
    initial_c: MLOperand | None = None,
    p: StaticValue | None = None,
    *,
    activations: Sequence[str] | None = None,
    direction: str,
    hidden_size: int,
) -> list[MLOperand | None]:
    """Long short-term memory."""
    if p is not None and p.any():
        refuse("input P", "not 0", "0 or absent: ONNX's output gate sees the new cell state, WebNN's the old one")
    _check_lengths(x, sequence_lens)
    bias, recurrent_bias = (None, None) if b is None else context.split(b, 2, axis=1)
    last_hidden, last_cell, *sequence = context.lstm(
        x,
        w,
        r,
        x.shape[0],
        hidden_size,
        bias=bias,
        recurrent_bias=recurrent_bias,
        initial_hidden_state=initial_h,
        initial_cell_state=initial_c,
        return_sequence=context.wanted[0],
        direction=_direction(direction),
        activations=_activations(activations, 3, direction),
    )
    return [sequence[0] if sequence else None, last_hidden, last_cell]


@rule("GRU", 7, 14, 22)
def gru(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None = None,
    sequence_lens: StaticValue | None = None,
    initial_h: MLOperand | None = None,
    *,
    activations: Sequence[str] | None = None,
    direction: str,
    hidden_size: int,
    linear_before_reset: int,
) -> list[MLOperand | None]:
    """Gated recurrent units."""
    _check_lengths(x, sequence_lens)
    bias, recurrent_bias = (None, None) if b is None else context.split(b, 2, axis=1)
    last_hidden, *sequence = context.gru(
        x,
        w,
        r,
        x.shape[0],
        hidden_size,
        bias=bias,
        recurrent_bias=recurrent_bias,
        initial_hidden_state=initial_h,
        reset_after=bool(linear_before_reset),
        return_sequence=context.wanted[0],
        direction=_direction(direction),
        activations=_activations(activations, 2, direction),
    )
    return [sequence[0] if sequence else None, last_hidden]


def _check_lengths(x: MLOperand, sequence_lens: StaticValue | None) -> None:
    if x.rank != 3:
        refuse("the rank of input X", x.rank, "3")
    lengths = () if sequence_lens is None else integers("input sequence_lens", sequence_lens)
    if any(length != x.shape[0] for length in lengths):
        refuse("input sequence_lens", lengths, f"{x.shape[0]} everywhere, the number of steps")


def _direction(direction: str) -> MLRecurrentNetworkDirection:
    if direction not in DIRECTIONS:
        refuse("attribute direction", direction, ", ".join(DIRECTIONS))
    return DIRECTIONS[direction]


def _activations(given: Sequence[str] | None, count: int, direction: str) -> list[MLRecurrentNetworkActivation] | None:
    """The activations of one direction, which WebNN has for both."""
    if given is None:
        return None
    lowered = [name.lower() for name in given]
    directions = 2 if direction == "bidirectional" else 1
    same = all(lowered[index] == lowered[index % count] for index in range(len(lowered)))
    if len(given) != count * directions or not same or not set(lowered) <= ACTIVATIONS.keys():
        refuse("attribute activations", tuple(given), f"{count} of Relu, Sigmoid and Tanh, the same in each direction")
    return [ACTIVATIONS[name] for name in lowered[:count]]
