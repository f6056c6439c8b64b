"""Recurrent networks. Their gates come in the same order in ONNX and in WebNN's first layouts."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from webnn_py.onnx_models.axes import integers
from webnn_py.onnx_models.conversion_context import ConversionContext, Value
from webnn_py.onnx_models.table import rule
from webnn_py.onnx_models.unrolled import Activation, UnrolledNetwork, gru_step, lstm_step, rnn_step, together
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
DEFAULTS: Final = ("sigmoid", "tanh", "tanh")
"""Of an LSTM."""


@rule("LSTM", 7, 14, 22)
def lstm(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None = None,
    sequence_lens: Value | None = None,
    initial_h: MLOperand | None = None,
    initial_c: MLOperand | None = None,
    p: Value | None = None,
    *,
    activations: Sequence[str] | None = None,
    direction: str,
    hidden_size: int,
    layout: int = 0,
) -> list[MLOperand | None]:
    """Long short-term memory; with peepholes, and where the batch has lengths of its own, step by step."""
    x, initial_h, initial_c = _steps_first(context, layout, x, initial_h, initial_c)
    lengths = _own_lengths(context, x, sequence_lens)
    if lengths is None and (p is None or (isinstance(p, np.ndarray) and not p.any())):
        return _batch_first(
            context, layout, _lstm(context, x, w, r, b, initial_h, initial_c, activations, direction, hidden_size)
        )
    functions = [getattr(context, name) for name in _activations(activations, 3, direction) or DEFAULTS]
    _direction(direction)
    network = UnrolledNetwork(context=context, x=x, hidden_size=hidden_size, direction=direction, lengths=lengths)
    _check_recurrent(network, 4, w, r, b, initial_h, initial_c)
    peepholes = None if p is None else context.operand(p)
    if peepholes is not None and peepholes.shape != (network.count, 3 * hidden_size):
        refuse("the shape of input P", peepholes.shape, f"{[network.count, 3 * hidden_size]}")
    runs = []
    for index in range(network.count):
        own = None if peepholes is None else network.of_direction(peepholes, index)
        step = lstm_step(context, network.of_direction(r, index), own, functions)
        state = network.begin(initial_h, index), network.begin(initial_c, index)
        runs.append(network.run(step, network.weighted(w, b, index), state, index))
    return _batch_first(context, layout, together(network, runs))


def _lstm(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None,
    initial_h: MLOperand | None,
    initial_c: MLOperand | None,
    activations: Sequence[str] | None,
    direction: str,
    hidden_size: int,
) -> list[MLOperand | None]:
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
    sequence_lens: Value | None = None,
    initial_h: MLOperand | None = None,
    *,
    activations: Sequence[str] | None = None,
    direction: str,
    hidden_size: int,
    layout: int = 0,
    linear_before_reset: int,
) -> list[MLOperand | None]:
    """Gated recurrent units."""
    x, initial_h = _steps_first(context, layout, x, initial_h)
    lengths = _own_lengths(context, x, sequence_lens)
    if lengths is not None:
        functions = [getattr(context, name) for name in _activations(activations, 2, direction) or DEFAULTS[:2]]
        _direction(direction)
        network = UnrolledNetwork(context=context, x=x, hidden_size=hidden_size, direction=direction, lengths=lengths)
        _check_recurrent(network, 3, w, r, b, initial_h, None)
        outputs = _gru_by_steps(network, w, r, b, initial_h, functions, resets_after=bool(linear_before_reset))
        return _batch_first(context, layout, outputs)
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
    return _batch_first(context, layout, [sequence[0] if sequence else None, last_hidden])


def _gru_by_steps(
    network: UnrolledNetwork,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None,
    initial_h: MLOperand | None,
    functions: Sequence[Activation],
    *,
    resets_after: bool,
) -> list[MLOperand]:
    context, hidden, count = network.context, network.hidden_size, network.count
    reset_biases, input_bias = None, b
    if b is not None and resets_after:  # the last of the six parts is added to what is reset
        reset_biases = context.slice(b, [0, 5 * hidden], [count, hidden])
        zeros = context.expand(context.number(0, b), [count, hidden])
        input_bias = context.concat([context.slice(b, [0, 0], [count, 5 * hidden]), zeros], 1)
    runs = []
    for index in range(count):
        bias = None if reset_biases is None else network.of_direction(reset_biases, index)
        step = gru_step(context, network.of_direction(r, index), bias, functions, resets_after=resets_after)
        inputs = network.weighted(w, input_bias, index)
        runs.append(network.run(step, inputs, (network.begin(initial_h, index),), index))
    return together(network, runs)


@rule("RNN", 7, 14, 22)
def rnn(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None = None,
    sequence_lens: Value | None = None,
    initial_h: MLOperand | None = None,
    *,
    activations: Sequence[str],
    direction: str,
    hidden_size: int,
    layout: int = 0,
) -> list[MLOperand | None]:
    """A plain recurrent network, which WebNN has not: step by step."""
    x, initial_h = _steps_first(context, layout, x, initial_h)
    lowered = [name.lower() for name in activations]
    _direction(direction)
    network = UnrolledNetwork(
        context=context,
        x=x,
        hidden_size=hidden_size,
        direction=direction,
        lengths=_own_lengths(context, x, sequence_lens),
    )
    if len(lowered) < network.count or not set(lowered) <= ACTIVATIONS.keys():
        refuse("attribute activations", tuple(activations), "of Relu, Sigmoid and Tanh, one for each direction")
    _check_recurrent(network, 1, w, r, b, initial_h, None)
    runs = []
    for index in range(network.count):
        step = rnn_step(context, network.of_direction(r, index), getattr(context, lowered[index]))
        inputs = network.weighted(w, b, index)
        runs.append(network.run(step, inputs, (network.begin(initial_h, index),), index))
    return _batch_first(context, layout, together(network, runs))


def _check_recurrent(
    network: UnrolledNetwork,
    gates: int,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None,
    initial_h: MLOperand | None,
    initial_c: MLOperand | None,
) -> None:
    hidden, (_, batch, features) = network.hidden_size, network.x.shape
    if hidden < 1:
        refuse("attribute hidden_size", hidden, "at least 1")
    wanted = {
        "W": (w, [gates * hidden, features]),
        "R": (r, [gates * hidden, hidden]),
        "B": (b, [2 * gates * hidden]),
        "initial_h": (initial_h, [batch, hidden]),
        "initial_c": (initial_c, [batch, hidden]),
    }
    for name, (given, shape) in wanted.items():
        if given is not None and given.shape != (network.count, *shape):
            refuse(f"the shape of input {name}", given.shape, f"{[network.count, *shape]}")


def _steps_first(context: ConversionContext, layout: int, x: MLOperand, *states: MLOperand | None) -> list[Any]:
    """The inputs and the first states, the axis of the batch being the second; with ``layout`` 1 it comes first."""
    if x.rank != 3:
        refuse("the rank of input X", x.rank, "3")
    if layout not in (0, 1):
        refuse("attribute layout", layout, "0 or 1")
    if any(state is not None and state.rank != 3 for state in states):
        refuse("the rank of a first state", [state.rank for state in states if state is not None], "3")
    if not layout:
        return [x, *states]
    return [item if item is None else context.transpose(item, permutation=[1, 0, 2]) for item in (x, *states)]


def _batch_first(
    context: ConversionContext, layout: int, outputs: Sequence[MLOperand | None]
) -> list[MLOperand | None]:
    """The outputs back in the layout."""
    if not layout:
        return list(outputs)
    sequence, *states = outputs
    shown = None if sequence is None else context.transpose(sequence, permutation=[2, 0, 1, 3])
    return [shown, *(context.transpose(state, permutation=[1, 0, 2]) for state in states if state is not None)]


def _own_lengths(
    context: ConversionContext, x: MLOperand, sequence_lens: Value | None
) -> tuple[int, ...] | MLOperand | None:
    """How many steps each of the batch has, or None where that is all of them."""
    steps, batch, _ = x.shape
    known = context.known(sequence_lens)
    if isinstance(sequence_lens, MLOperand) and known is None:
        if sequence_lens.shape != (batch,):
            refuse("the shape of input sequence_lens", sequence_lens.shape, f"{[batch]}")
        return sequence_lens
    if known is None:
        return None
    lengths = integers("input sequence_lens", known)
    if len(lengths) != batch or not all(0 <= length <= steps for length in lengths):
        refuse("input sequence_lens", lengths, f"{batch} numbers from 0 to {steps}, the number of steps")
    return None if all(length == steps for length in lengths) else lengths


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
