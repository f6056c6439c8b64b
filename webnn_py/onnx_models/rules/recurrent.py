"""Recurrent networks. Their gates come in the same order in ONNX and in WebNN's first layouts."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import integers
from webnn_py.onnx_models.rule_helpers.recurrent_activations import GateFunctions, gate_functions
from webnn_py.onnx_models.rule_helpers.recurrent_steps import UnrolledNetwork, gru_step, lstm_step, rnn_step, together
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.recurrent import MLRecurrentNetworkActivation, MLRecurrentNetworkDirection
from webnn_py.operators.rules import refuse

DIRECTIONS: Final[dict[str, MLRecurrentNetworkDirection]] = {
    "forward": "forward",
    "reverse": "backward",
    "bidirectional": "both",
}


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
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str,
    hidden_size: int,
    input_forget: int,
    layout: int = 0,
) -> list[MLOperand | None]:
    """Long short-term memory; step by step where WebNN's own has not what the node asks for.

    That is: peepholes, lengths of the batch's own, ``clip``, ``input_forget``, and other activations.
    """
    x, initial_h, initial_c = _steps_first(context, layout, x, initial_h, initial_c)
    lengths = _own_lengths(context, x, sequence_lens)
    given = _activations(activations, ("Sigmoid", "Tanh", "Tanh"), direction)
    functions = gate_functions(context, given, activation_alpha, activation_beta, clip, directions=len(given) // 3)
    plain = lengths is None and not input_forget and (p is None or (isinstance(p, np.ndarray) and not p.any()))
    if plain and functions.own is not None:
        return _batch_first(
            context, layout, _lstm(context, x, w, r, b, initial_h, initial_c, functions.own, direction, hidden_size)
        )
    network = UnrolledNetwork(context=context, x=x, hidden_size=hidden_size, direction=direction, lengths=lengths)
    _check_recurrent(network, 4, w, r, b, initial_h, initial_c)
    peepholes = None if p is None else context.operand(p)
    if peepholes is not None and peepholes.shape != (network.count, 3 * hidden_size):
        refuse("the shape of input P", peepholes.shape, f"{[network.count, 3 * hidden_size]}")
    runs = []
    for index in range(network.count):
        own = None if peepholes is None else network.of_direction(peepholes, index)
        step = lstm_step(
            context, network.of_direction(r, index), own, functions.of_direction(index), coupled=bool(input_forget)
        )
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
    activations: list[MLRecurrentNetworkActivation],
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
        direction=DIRECTIONS[direction],
        activations=activations,
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
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str,
    hidden_size: int,
    layout: int = 0,
    linear_before_reset: int,
) -> list[MLOperand | None]:
    """Gated recurrent units; step by step as :func:`lstm`."""
    x, initial_h = _steps_first(context, layout, x, initial_h)
    lengths = _own_lengths(context, x, sequence_lens)
    given = _activations(activations, ("Sigmoid", "Tanh"), direction)
    functions = gate_functions(context, given, activation_alpha, activation_beta, clip, directions=len(given) // 2)
    if lengths is not None or functions.own is None:
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
        direction=DIRECTIONS[direction],
        activations=functions.own,
    )
    return _batch_first(context, layout, [sequence[0] if sequence else None, last_hidden])


def _gru_by_steps(
    network: UnrolledNetwork,
    w: MLOperand,
    r: MLOperand,
    b: MLOperand | None,
    initial_h: MLOperand | None,
    functions: GateFunctions,
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
        own = functions.of_direction(index)
        step = gru_step(context, network.of_direction(r, index), bias, own, resets_after=resets_after)
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
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str],
    clip: float | None = None,
    direction: str,
    hidden_size: int,
    layout: int = 0,
) -> list[MLOperand | None]:
    """A plain recurrent network, which WebNN has not: step by step."""
    x, initial_h = _steps_first(context, layout, x, initial_h)
    named = (
        activations if direction == "bidirectional" else activations[:1]
    )  # by default two are named for any direction
    given = _activations(named, ("Tanh",), direction)
    functions = gate_functions(context, given, activation_alpha, activation_beta, clip, directions=len(given))
    network = UnrolledNetwork(
        context=context,
        x=x,
        hidden_size=hidden_size,
        direction=direction,
        lengths=_own_lengths(context, x, sequence_lens),
    )
    _check_recurrent(network, 1, w, r, b, initial_h, None)
    runs = []
    for index in range(network.count):
        step = rnn_step(context, network.of_direction(r, index), functions.of_direction(index)[0])
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


def _activations(given: Sequence[str] | None, defaults: Sequence[str], direction: str) -> Sequence[str]:
    """The activations of all directions, which there are one or two of."""
    if direction not in DIRECTIONS:
        refuse("attribute direction", direction, ", ".join(DIRECTIONS))
    count = 2 if direction == "bidirectional" else 1
    if given is None:
        return [*defaults] * count
    if len(given) != len(defaults) * count:
        refuse("attribute activations", tuple(given), f"{len(defaults) * count}, {len(defaults)} for each direction")
    return given
