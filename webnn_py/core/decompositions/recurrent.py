"""The recurrent operators expressed by others: the emulations of the specification.

A network becomes its cell, step after step; all its steps share one matrix product of the input and the weight.
"""

from collections.abc import Callable, Sequence

from webnn_py.core.decompositions.common import filled, one_of, stacked, widened
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.recurrent import (
    GRU_ACTIVATIONS,
    LSTM_ACTIVATIONS,
    PEEPHOLE_GATES,
    MLGruWeightLayout,
    MLLstmWeightLayout,
    MLRecurrentNetworkActivation,
    MLRecurrentNetworkDirection,
    direction_count,
)

Step = Callable[[MLOperand, Sequence[MLOperand]], list[MLOperand]]
"""Takes the gates' share of the input, and the states; returns the states after one step, the hidden state first."""


def gru(
    builder: Builder,
    input: MLOperand,
    weight: MLOperand,
    recurrent_weight: MLOperand,
    steps: int,
    hidden_size: int,
    *,
    bias: MLOperand | None = None,
    recurrent_bias: MLOperand | None = None,
    initial_hidden_state: MLOperand | None = None,
    reset_after: bool = True,
    return_sequence: bool = False,
    direction: MLRecurrentNetworkDirection = "forward",
    layout: MLGruWeightLayout = "zrn",
    activations: Sequence[MLRecurrentNetworkActivation] | None = None,
) -> list[MLOperand]:
    def step_of(index: int) -> Step:
        own_weight = one_of(builder, recurrent_weight, 0, index)
        own_bias = _part_if_given(builder, recurrent_bias, index)
        return _gru_step(builder, own_weight, own_bias, layout, activations, reset_after=reset_after)

    initial = [_state(builder, initial_hidden_state, input, hidden_size, direction)]
    last, sequence = _unrolled(builder, input, weight, bias, initial, step_of, direction)
    return [*last, sequence] if return_sequence else last


def gru_cell(
    builder: Builder,
    input: MLOperand,
    weight: MLOperand,
    recurrent_weight: MLOperand,
    hidden_state: MLOperand,
    hidden_size: int,
    *,
    bias: MLOperand | None = None,
    recurrent_bias: MLOperand | None = None,
    reset_after: bool = True,
    layout: MLGruWeightLayout = "zrn",
    activations: Sequence[MLRecurrentNetworkActivation] | None = None,
) -> MLOperand:
    step = _gru_step(builder, recurrent_weight, recurrent_bias, layout, activations, reset_after=reset_after)
    return step(builder.gemm(input, weight, c=bias, b_transpose=True), [hidden_state])[0]


def lstm(
    builder: Builder,
    input: MLOperand,
    weight: MLOperand,
    recurrent_weight: MLOperand,
    steps: int,
    hidden_size: int,
    *,
    bias: MLOperand | None = None,
    recurrent_bias: MLOperand | None = None,
    peephole_weight: MLOperand | None = None,
    initial_hidden_state: MLOperand | None = None,
    initial_cell_state: MLOperand | None = None,
    return_sequence: bool = False,
    direction: MLRecurrentNetworkDirection = "forward",
    layout: MLLstmWeightLayout = "iofg",
    activations: Sequence[MLRecurrentNetworkActivation] | None = None,
) -> list[MLOperand]:
    def step_of(index: int) -> Step:
        own_weight = one_of(builder, recurrent_weight, 0, index)
        peepholes = _part_if_given(builder, peephole_weight, index)
        return _lstm_step(builder, own_weight, peepholes, layout, activations)

    states = (initial_hidden_state, initial_cell_state)
    initial = [_state(builder, state, input, hidden_size, direction) for state in states]
    biases = _sum(builder, bias, recurrent_bias)
    last, sequence = _unrolled(builder, input, weight, biases, initial, step_of, direction)
    return [*last, sequence] if return_sequence else last


def lstm_cell(
    builder: Builder,
    input: MLOperand,
    weight: MLOperand,
    recurrent_weight: MLOperand,
    hidden_state: MLOperand,
    cell_state: MLOperand,
    hidden_size: int,
    *,
    bias: MLOperand | None = None,
    recurrent_bias: MLOperand | None = None,
    peephole_weight: MLOperand | None = None,
    layout: MLLstmWeightLayout = "iofg",
    activations: Sequence[MLRecurrentNetworkActivation] | None = None,
) -> list[MLOperand]:
    step = _lstm_step(builder, recurrent_weight, peephole_weight, layout, activations)
    share = builder.gemm(input, weight, c=_sum(builder, bias, recurrent_bias), b_transpose=True)
    return step(share, [hidden_state, cell_state])


def _gru_step(
    builder: Builder,
    weight: MLOperand,
    bias: MLOperand | None,
    layout: MLGruWeightLayout,
    activations: Sequence[MLRecurrentNetworkActivation] | None,
    *,
    reset_after: bool,
) -> Step:
    """One step with the recurrent weight and bias of one direction."""
    activate_both, activate_new = (getattr(builder, name) for name in activations or GRU_ACTIVATIONS)
    size = weight.shape[1]
    parts = [2 * size, size]  # the new gate comes last in either layout
    if not reset_after:
        weight_both, weight_new = builder.split(weight, parts)
        bias_both, bias_new = (None, None) if bias is None else builder.split(bias, parts)
    one = builder.constant(1, data_type=weight.data_type)

    def gates_of(share: MLOperand, both: MLOperand) -> dict[str, MLOperand]:
        gates = builder.split(activate_both(builder.add(share, both)), 2, axis=1)
        return dict(zip(layout, gates, strict=False))

    def step(share: MLOperand, states: Sequence[MLOperand]) -> list[MLOperand]:
        (hidden,) = states
        share_both, share_new = builder.split(share, parts, axis=1)
        if reset_after:
            product = builder.gemm(hidden, weight, c=bias, b_transpose=True)
            both, new = builder.split(product, parts, axis=1)
            gates = gates_of(share_both, both)
            new = builder.mul(gates["r"], new)
        else:
            both = builder.gemm(hidden, weight_both, c=bias_both, b_transpose=True)
            gates = gates_of(share_both, both)
            new = builder.gemm(builder.mul(gates["r"], hidden), weight_new, c=bias_new, b_transpose=True)
        new = activate_new(builder.add(share_new, new))
        kept, renewed = builder.mul(gates["z"], hidden), builder.mul(new, builder.sub(one, gates["z"]))
        return [builder.add(kept, renewed)]

    return step


def _lstm_step(
    builder: Builder,
    weight: MLOperand,
    peephole_weight: MLOperand | None,
    layout: MLLstmWeightLayout,
    activations: Sequence[MLRecurrentNetworkActivation] | None,
) -> Step:
    """One step with the recurrent and the peephole weight of one direction."""
    activate, activate_cell, activate_state = (getattr(builder, name) for name in activations or LSTM_ACTIVATIONS)
    peepholes: dict[str, MLOperand] = {}
    if peephole_weight is not None:
        peepholes = dict(zip(PEEPHOLE_GATES, builder.split(peephole_weight, 3), strict=True))

    def step(share: MLOperand, states: Sequence[MLOperand]) -> list[MLOperand]:
        hidden, cell = states
        product = builder.gemm(hidden, weight, c=share, b_transpose=True)
        gates = dict(zip(layout, builder.split(product, 4, axis=1), strict=True))
        for name, peephole in peepholes.items():
            gates[name] = builder.add(gates[name], builder.mul(cell, peephole))
        kept = builder.mul(activate(gates["f"]), cell)
        cell = builder.add(kept, builder.mul(activate(gates["i"]), activate_cell(gates["g"])))
        return [builder.mul(activate(gates["o"]), activate_state(cell)), cell]

    return step


def _unrolled(
    builder: Builder,
    input: MLOperand,
    weight: MLOperand,
    bias: MLOperand | None,
    initial: Sequence[MLOperand],
    step_of: Callable[[int], Step],
    direction: MLRecurrentNetworkDirection,
) -> tuple[list[MLOperand], MLOperand]:
    """Return the last states, and the hidden state of every step."""
    steps, batch, features = input.shape
    inputs = builder.reshape(input, [steps * batch, features])
    last: list[list[MLOperand]] = []
    sequences: list[MLOperand] = []
    for index in range(direction_count(direction)):
        own_weight, own_bias = one_of(builder, weight, 0, index), _part_if_given(builder, bias, index)
        shares = builder.split(builder.gemm(inputs, own_weight, c=own_bias, b_transpose=True), steps)
        step, states = step_of(index), [one_of(builder, state, 0, index) for state in initial]
        hidden: dict[int, MLOperand] = {}
        for time in range(steps)[:: -1 if direction == "backward" or index == 1 else 1]:
            states = step(shares[time], states)
            hidden[time] = states[0]
        last.append(states)
        sequences.append(stacked(builder, [hidden[time] for time in range(steps)], 0))
    by_state = [stacked(builder, states, 0) for states in zip(*last, strict=True)]
    return by_state, stacked(builder, sequences, 1)


def _part_if_given(builder: Builder, operand: MLOperand | None, index: int) -> MLOperand | None:
    return None if operand is None else one_of(builder, operand, 0, index)


def _state(
    builder: Builder,
    given: MLOperand | None,
    input: MLOperand,
    hidden_size: int,
    direction: MLRecurrentNetworkDirection,
) -> MLOperand:
    """Return an initial state, which is zeros when not given."""
    if given is not None:
        return given
    return filled(builder, 0, input.data_type, [direction_count(direction), input.shape[1], hidden_size])


def _sum(builder: Builder, bias: MLOperand | None, recurrent_bias: MLOperand | None) -> MLOperand | None:
    if bias is None or recurrent_bias is None:
        return recurrent_bias if bias is None else bias
    return builder.add(bias, recurrent_bias)


for _function in (gru, gru_cell, lstm, lstm_cell):
    widened(_function)  # devices that compute float16 themselves call the functions as they are
