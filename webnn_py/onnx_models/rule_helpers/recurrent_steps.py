"""Recurrent networks that WebNN has not, step by step: RNN, an LSTM with peepholes, those with lengths of their own.

WebNN's LSTM has peepholes, but its output gate sees the old cell state, ONNX's the new one.
"""

from collections.abc import Callable, Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.core.decompositions.common import one_of, stacked
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.dynamic_quantization import next_lstm_states
from webnn_py.onnx_models.conversion.context import ConversionContext

MOST_STEPS: Final = 2000
"""Each is a dozen operators."""

Activation = Callable[[MLOperand], MLOperand]
State = tuple[MLOperand, ...]
"""The state between steps: the hidden state first; each is [batch, hidden size]."""
Step = Callable[[MLOperand, State], State]
"""From the weighted input of one step, [batch, gates · hidden size], and a state: the next state."""


@attrs.frozen(kw_only=True)
class UnrolledNetwork:
    """The parts of a network that all directions share.

    Attributes:
        context: what to build with.
        x: the inputs, [steps, batch, input size].
        hidden_size: of the hidden state.
        direction: ONNX's word.
        lengths: how many steps each of the batch has, known or of the run; None for all.
    """

    context: ConversionContext
    x: MLOperand
    hidden_size: int
    direction: str
    lengths: Sequence[int] | MLOperand | None

    @property
    def count(self) -> int:
        """The number of directions."""
        return 2 if self.direction == "bidirectional" else 1

    def of_direction(self, parameter: MLOperand, index: int) -> MLOperand:
        """Return one direction's part of a parameter, whose first axis is the directions."""
        if parameter.shape[0] != self.count:
            refuse("the directions of a parameter", parameter.shape[0], f"{self.count}, as attribute direction says")
        return one_of(self.context, parameter, 0, index)

    def begin(self, given: MLOperand | None, index: int) -> MLOperand:
        """Return a state before the first step, by default of zeros."""
        if given is not None:
            return self.of_direction(given, index)
        zero = self.context.number(0, self.x)
        return self.context.expand(zero, [self.x.shape[1], self.hidden_size])

    def weighted(self, w: MLOperand, b: MLOperand | None, index: int) -> MLOperand:
        """Return the inputs times W, plus both biases: [steps, batch, gates · hidden size]."""
        context = self.context
        matrix = context.transpose(self.of_direction(w, index), permutation=[1, 0])
        product = context.matmul(self.x, matrix)
        if b is None:
            return product
        return context.add(product, context.add(*context.split(self.of_direction(b, index), 2, axis=0)))

    def drawn(
        self, step_of: Callable[[int], Step], w: MLOperand, b: MLOperand | None, initial: Sequence[MLOperand | None]
    ) -> list[MLOperand]:
        """Draw all steps of all directions.

        Returns:
            The hidden states, [steps, directions, batch, hidden size], and the last states, [directions, batch, hidden
            size].
        """
        runs = []
        for index in range(self.count):
            step, inputs = step_of(index), self.weighted(w, b, index)
            runs.append(self.run(step, inputs, tuple([self.begin(given, index) for given in initial]), index))
        sequences, states = zip(*runs, strict=True)
        last = [stacked(self.context, kind, 0) for kind in zip(*states, strict=True)]
        return [stacked(self.context, sequences, 1), *last]

    def run(self, step: Step, inputs: MLOperand, state: State, index: int) -> tuple[MLOperand, State]:
        """Draw all steps of a direction.

        Returns:
            The hidden states [steps, batch, hidden size], zeros beyond an own length, and the last state.
        """
        context, steps = self.context, inputs.shape[0]
        if steps > MOST_STEPS:
            refuse("the number of steps", steps, f"at most {MOST_STEPS}")
        hidden: list[MLOperand] = []
        backwards = index == 1 or self.direction == "reverse"
        for time in reversed(range(steps)) if backwards else range(steps):
            after = step(one_of(context, inputs, 0, time), state)
            if self.lengths is None:
                state, shown = after, after[0]
            else:
                is_there = self._is_there(time)
                state = tuple(context.where(is_there, new, old) for new, old in zip(after, state, strict=True))
                shown = context.where(is_there, after[0], context.number(0, after[0]))
            hidden.append(shown)
        return stacked(context, hidden[::-1] if backwards else hidden, 0), state

    def _is_there(self, time: int) -> MLOperand:
        """Return which of the batch have a step: [batch, 1]."""
        if isinstance(self.lengths, MLOperand):
            lengths = self.context.reshape(self.lengths, [self.x.shape[1], 1])
            return self.context.lesser(self.context.number(time, lengths), lengths)
        return self.context.constant(np.array([[time < length] for length in self.lengths or ()]))


def lstm_step(
    context: ConversionContext,
    r: MLOperand,
    peepholes: MLOperand | None,
    activations: Sequence[Activation],
    *,
    coupled: bool,
) -> Step:
    """Return a step of an LSTM, as :func:`.next_lstm_states` says, with the weights of the hidden state."""
    matrix = context.transpose(r, permutation=[1, 0])
    weights = [] if peepholes is None else context.split(peepholes, 3, axis=0)

    def step(now: MLOperand, state: State) -> State:
        hidden, cell = state
        gates = context.split(context.add(now, context.matmul(hidden, matrix)), 4, axis=1)
        return next_lstm_states(context, gates, cell, weights, activations, coupled=coupled)

    return step


def gru_step(
    context: ConversionContext,
    r: MLOperand,
    reset_bias: MLOperand | None,
    activations: Sequence[Activation],
    *,
    resets_after: bool,
) -> Step:
    """Return a step of gated recurrent units; gates come as update, reset, new.

    Args:
        context: what to build with.
        r: the weights of the hidden state.
        reset_bias: what is added to the new state's product before that is reset, [hidden size].
        activations: of the gates, and of the new state.
        resets_after: whether the product is reset, and not the hidden state before it.
    """
    gate, squash = activations
    update_matrix, reset_matrix, new_matrix = (
        context.transpose(item, permutation=[1, 0]) for item in context.split(r, 3, axis=0)
    )

    def step(now: MLOperand, state: State) -> State:
        (hidden,) = state
        z, r, n = context.split(now, 3, axis=1)
        update = gate(context.add(z, context.matmul(hidden, update_matrix)))
        reset = gate(context.add(r, context.matmul(hidden, reset_matrix)))
        if resets_after:
            product = context.matmul(hidden, new_matrix)
            seen = context.mul(reset, product if reset_bias is None else context.add(product, reset_bias))
        else:
            seen = context.matmul(context.mul(reset, hidden), new_matrix)
        new = squash(context.add(n, seen))
        return (
            context.add(context.mul(context.sub(context.number(1, update), update), new), context.mul(update, hidden)),
        )

    return step


def rnn_step(context: ConversionContext, r: MLOperand, activation: Activation) -> Step:
    """Return a step of a plain recurrent network."""
    matrix = context.transpose(r, permutation=[1, 0])

    def step(now: MLOperand, state: State) -> State:
        return (activation(context.add(now, context.matmul(state[0], matrix))),)

    return step
