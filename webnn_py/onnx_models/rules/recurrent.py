"""Recurrent networks. Their gates come in the same order in ONNX and in WebNN's first layouts."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import attrs
import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.recurrent import MLRecurrentNetworkDirection
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank, integers
from webnn_py.onnx_models.rule_helpers.recurrent_activations import GateFunctions, gate_functions
from webnn_py.onnx_models.rule_helpers.recurrent_steps import (
    Step,
    UnrolledNetwork,
    gru_step,
    lstm_step,
    rnn_step,
)
from webnn_py.onnx_models.rule_table.declaration import rule

DIRECTIONS: Final[dict[str, MLRecurrentNetworkDirection]] = {
    "forward": "forward",
    "reverse": "backward",
    "bidirectional": "both",
}


@attrs.frozen(kw_only=True)
class RecurrentAttributes:
    """Attributes of recurrent networks, as ONNX has them."""

    activation_alpha: Sequence[float] | None = None
    activation_beta: Sequence[float] | None = None
    activations: Sequence[str] | None = None
    clip: float | None = None
    direction: Literal["forward", "reverse", "bidirectional"]
    hidden_size: int
    layout: Literal[0, 1] = 0

    def functions(self, context: ConversionContext, *defaults: str) -> GateFunctions:
        """Return the activations of all directions, of which there are one or two.

        Raises:
            Refused: there are too few or too many, or unknown ones.
        """
        count = 2 if self.direction == "bidirectional" else 1
        given = [*defaults] * count if self.activations is None else self.activations
        if len(given) != len(defaults) * count:
            allowed = f"{len(defaults) * count}, {len(defaults)} for each direction"
            refuse("attribute activations", tuple(given), allowed)
        return gate_functions(context, given, self.activation_alpha, self.activation_beta, self.clip, directions=count)

    def steps_first(self, context: ConversionContext, x: MLOperand, *states: MLOperand | None) -> list[Any]:
        """Return the inputs and the first states with the batch as their second axis; with ``layout`` 1 it is first.

        Raises:
            Refused: one has another rank.
        """
        check_rank("input X", x, 3)
        if any(state is not None and state.rank != 3 for state in states):
            refuse("the rank of a first state", [state.rank for state in states if state is not None], "3")
        if not self.layout:
            return [x, *states]
        return [item if item is None else context.transpose(item, permutation=[1, 0, 2]) for item in (x, *states)]

    def batch_first(self, context: ConversionContext, outputs: Sequence[MLOperand | None]) -> list[MLOperand | None]:
        """Return the outputs in the layout."""
        if not self.layout:
            return list(outputs)
        sequence, *states = outputs
        shown = None if sequence is None else context.transpose(sequence, permutation=[2, 0, 1, 3])
        return [shown, *(context.transpose(state, permutation=[1, 0, 2]) for state in states if state is not None)]


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
    attributes: RecurrentAttributes,
    input_forget: bool,
) -> list[MLOperand | None]:
    """Convert a network of long short-term memory; step by step what WebNN's own operator lacks.

    That is: peepholes, lengths of the batch's own, ``clip``, ``input_forget``, and other activations.
    """
    x, *initial = attributes.steps_first(context, x, initial_h, initial_c)
    lengths = _own_lengths(context, x, sequence_lens)
    functions = attributes.functions(context, "Sigmoid", "Tanh", "Tanh")
    plain = lengths is None and not input_forget and (p is None or (isinstance(p, np.ndarray) and not p.any()))
    if plain and functions.own is not None:
        states = dict(zip(("initial_hidden_state", "initial_cell_state"), initial, strict=True))
        outputs = _drawn(context, context.lstm, (x, w, r), b, attributes, activations=functions.own, **states)
        return attributes.batch_first(context, outputs)
    network = _network(context, x, attributes, lengths, 4, (w, r, b, *initial))
    peepholes = None if p is None else context.operand(p)
    if peepholes is not None and peepholes.shape != (network.count, 3 * attributes.hidden_size):
        refuse("the shape of input P", peepholes.shape, f"{[network.count, 3 * attributes.hidden_size]}")

    def step(index: int) -> Step:
        own = None if peepholes is None else network.of_direction(peepholes, index)
        weights, activations = network.of_direction(r, index), functions.of_direction(index)
        return lstm_step(context, weights, own, activations, coupled=input_forget)

    return attributes.batch_first(context, network.drawn(step, w, b, initial))


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
    attributes: RecurrentAttributes,
    linear_before_reset: bool,
) -> list[MLOperand | None]:
    """Convert a network of gated recurrent units; step by step as :func:`lstm`."""
    x, initial_h = attributes.steps_first(context, x, initial_h)
    lengths = _own_lengths(context, x, sequence_lens)
    functions = attributes.functions(context, "Sigmoid", "Tanh")
    if lengths is None and functions.own is not None:
        options = {"initial_hidden_state": initial_h, "reset_after": linear_before_reset, "activations": functions.own}
        return attributes.batch_first(context, _drawn(context, context.gru, (x, w, r), b, attributes, **options))
    network = _network(context, x, attributes, lengths, 3, (w, r, b, initial_h))
    hidden, count = attributes.hidden_size, network.count
    reset_biases, input_bias = None, b
    if b is not None and linear_before_reset:  # the last of the six parts is added to what is reset
        reset_biases = context.slice(b, [0, 5 * hidden], [count, hidden])
        zeros = context.expand(context.number(0, b), [count, hidden])
        input_bias = context.concat([context.slice(b, [0, 0], [count, 5 * hidden]), zeros], 1)

    def step(index: int) -> Step:
        bias = None if reset_biases is None else network.of_direction(reset_biases, index)
        weights, activations = network.of_direction(r, index), functions.of_direction(index)
        return gru_step(context, weights, bias, activations, resets_after=linear_before_reset)

    return attributes.batch_first(context, network.drawn(step, w, input_bias, [initial_h]))


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
    attributes: RecurrentAttributes,
) -> list[MLOperand | None]:
    """Convert a plain recurrent network, which WebNN has not: step by step."""
    x, initial_h = attributes.steps_first(context, x, initial_h)
    if attributes.activations is not None and attributes.direction != "bidirectional":
        attributes = attrs.evolve(attributes, activations=attributes.activations[:1])  # by default there are two
    functions = attributes.functions(context, "Tanh")
    lengths = _own_lengths(context, x, sequence_lens)
    network = _network(context, x, attributes, lengths, 1, (w, r, b, initial_h))

    def step(index: int) -> Step:
        return rnn_step(context, network.of_direction(r, index), functions.of_direction(index)[0])

    return attributes.batch_first(context, network.drawn(step, w, b, [initial_h]))


def _drawn(
    context: ConversionContext,
    draw: Callable[..., list[MLOperand]],
    operands: Sequence[MLOperand],
    b: MLOperand | None,
    attributes: RecurrentAttributes,
    **options: Any,
) -> list[MLOperand | None]:
    """Draw a network as WebNN's operator."""
    bias, recurrent_bias = (None, None) if b is None else _halves(context, b)
    drawn = draw(
        *operands,
        operands[0].shape[0],
        attributes.hidden_size,
        bias=bias,
        recurrent_bias=recurrent_bias,
        return_sequence=context.wanted[0],
        direction=DIRECTIONS[attributes.direction],
        **options,
    )
    return [drawn[-1], *drawn[:-1]] if context.wanted[0] else [None, *drawn]


def _halves(context: ConversionContext, b: MLOperand) -> Sequence[MLOperand]:
    """Return the two halves of the biases: constants of constant ones, since CUDA computes networks with no others."""
    known = context.known(b)
    if known is None or not known.shape[1:] or known.shape[1] % 2:
        return context.split(b, 2, axis=1)  # which refuses the last two
    return [context.constant(np.ascontiguousarray(half)) for half in np.split(known, 2, axis=1)]


def _network(
    context: ConversionContext,
    x: MLOperand,
    attributes: RecurrentAttributes,
    lengths: Sequence[int] | MLOperand | None,
    gates: int,
    parameters: Sequence[MLOperand | None],
) -> UnrolledNetwork:
    """Return a network that is drawn step by step, whose parameters have the shapes that they must have."""
    hidden, direction, (_, batch, features) = attributes.hidden_size, attributes.direction, x.shape
    network = UnrolledNetwork(context=context, x=x, hidden_size=hidden, direction=direction, lengths=lengths)
    if hidden < 1:
        refuse("attribute hidden_size", hidden, "at least 1")
    wanted = {
        "W": [gates * hidden, features],
        "R": [gates * hidden, hidden],
        "B": [2 * gates * hidden],
        "initial_h": [batch, hidden],
        "initial_c": [batch, hidden],
    }
    for (name, shape), given in zip(wanted.items(), parameters, strict=False):
        if given is not None and given.shape != (network.count, *shape):
            refuse(f"the shape of input {name}", given.shape, f"{[network.count, *shape]}")
    return network


def _own_lengths(
    context: ConversionContext, x: MLOperand, sequence_lens: Value | None
) -> tuple[int, ...] | MLOperand | None:
    """Return the number of steps of each sample, or None where each has all of them."""
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
