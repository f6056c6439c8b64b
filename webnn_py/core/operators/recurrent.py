"""Recurrent networks and their cells (sections "gru", "gruCell", "lstm" and "lstmCell").

In the shapes below D is the number of directions (2 when both are processed, else 1), T the number of time steps, B
the batch size, I the input size and H the hidden size. A layout spells the order of the gates: update (z), reset (r)
and new (n); input (i), output (o), forget (f) and cell (g).
"""

from collections.abc import Sequence
from typing import Final, Literal

from webnn_py.core.descriptors import MAX_DIMENSION, MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import FLOATS, of_ranks
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_length, check_shape, output, refuse

MLGruWeightLayout = Literal["zrn", "rzn"]
MLLstmWeightLayout = Literal["iofg", "ifgo"]
MLRecurrentNetworkActivation = Literal["relu", "sigmoid", "tanh"]
MLRecurrentNetworkDirection = Literal["forward", "backward", "both"]

GRU_ACTIVATIONS: Final[tuple[MLRecurrentNetworkActivation, ...]] = ("sigmoid", "tanh")
"""The defaults: of the update and the reset gate, and of the new gate."""

LSTM_ACTIVATIONS: Final[tuple[MLRecurrentNetworkActivation, ...]] = ("sigmoid", "tanh", "tanh")
"""The defaults: of the input, the output and the forget gate, of the cell gate, and of the new cell state."""

PEEPHOLE_GATES: Final = "iof"
"""The gates that have peepholes, in the order of the peephole weight whatever the layout."""


GRU = of_ranks(
    FLOATS,
    input=3,
    weight=3,
    recurrent_weight=3,
    bias=2,
    recurrent_bias=2,
    initial_hidden_state=3,
    output0=3,
    output1=4,
)
GRU_CELL = of_ranks(FLOATS, input=2, weight=2, recurrent_weight=2, hidden_state=2, bias=1, recurrent_bias=1, output=2)
LSTM = of_ranks(
    FLOATS,
    input=3,
    weight=3,
    recurrent_weight=3,
    bias=2,
    recurrent_bias=2,
    peephole_weight=2,
    initial_hidden_state=3,
    initial_cell_state=3,
    output0=3,
    output1=3,
    output2=4,
)
LSTM_CELL = of_ranks(
    FLOATS,
    input=2,
    weight=2,
    recurrent_weight=2,
    hidden_state=2,
    cell_state=2,
    bias=1,
    recurrent_bias=1,
    peephole_weight=1,
    output0=2,
    output1=2,
)


def direction_count(direction: MLRecurrentNetworkDirection) -> int:
    """Return the number of directions that a network processes."""
    # spec: gru 8; lstm 3
    return 2 if direction == "both" else 1


@operator("gru", GRU)
def gru(
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
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Run a network of gated recurrent units over a sequence; :func:`gru_cell` says what each step computes.

    A backward direction takes the steps from the last to the first; its hidden states stand in the sequence where
    their inputs stand.

    Args:
        input: the sequence, [T, B, I].
        weight: the weights of the input, [D, 3·H, I], gates in the order of ``layout``.
        recurrent_weight: the weights of the hidden state, [D, 3·H, H].
        steps: T, the number of time steps.
        hidden_size: H, the number of features in the hidden state.
        bias: the bias of the input, [D, 3·H]; 0 when absent.
        recurrent_bias: the bias of the hidden state, [D, 3·H]; 0 when absent.
        initial_hidden_state: the hidden state before the first step, [D, B, H]; 0 when absent.
        reset_after: whether the reset gate applies after the multiplication with the recurrent weight.
        return_sequence: whether to return the hidden state of every step, too.
        direction: "both" has two directions, the first forward, the second backward.
        layout: the order of the gates in weights and biases.
        activations: of the update and the reset gate, and of the new gate; sigmoid and tanh when absent.

    Returns:
        A list of the last hidden state, [D, B, H], and with ``return_sequence`` also the hidden state of every step,
        [T, D, B, H].
    """
    directions = direction_count(direction)
    batch, features = _check_sequence(input, steps)
    gates = 3 * hidden_size
    # spec: gru 9
    check_shape("weight", weight, [directions, gates, features])
    # spec: gru 10
    check_shape("recurrent_weight", recurrent_weight, [directions, gates, hidden_size])
    _check_both_biases(gates)
    state = [directions, batch, hidden_size]
    # spec: gru 12.2
    check_shape("bias", bias, [directions, gates])
    # spec: gru 13.2
    check_shape("recurrent_bias", recurrent_bias, [directions, gates])
    # spec: gru 14.2
    check_shape("initial_hidden_state", initial_hidden_state, state)
    # spec: gru 15.1
    check_length("activations", activations, 2)
    outputs = [output(input.data_type, state)]
    return [*outputs, output(input.data_type, [steps, *state])] if return_sequence else outputs


@operator("gruCell", GRU_CELL)
def gru_cell(
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
    label: str = "",
) -> MLOperandDescriptor:
    """Take one step of a gated recurrent unit.

    With x the input, h the hidden state, W and b the weight and bias of the input, R and c those of the hidden
    state, f and g the activations:
    z = f(W_z x + b_z + R_z h + c_z); r = f(W_r x + b_r + R_r h + c_r);
    n = g(W_n x + b_n + r · (R_n h + c_n)), or without ``reset_after`` g(W_n x + b_n + R_n (r · h) + c_n);
    the new hidden state is z · h + (1 - z) · n.

    Args:
        input: the input of the step, [B, I].
        weight: the weights of the input, [3·H, I], gates in the order of ``layout``.
        recurrent_weight: the weights of the hidden state, [3·H, H].
        hidden_state: the hidden state before the step, [B, H].
        hidden_size: H, the number of features in the hidden state.
        bias: the bias of the input, [3·H]; 0 when absent.
        recurrent_bias: the bias of the hidden state, [3·H]; 0 when absent.
        reset_after: whether the reset gate applies after the multiplication with the recurrent weight.
        layout: the order of the gates in weights and biases.
        activations: of the update and the reset gate, and of the new gate; sigmoid and tanh when absent.

    Returns:
        The new hidden state, [B, H].
    """
    batch, features = input.shape
    gates = 3 * hidden_size
    # spec: gruCell 7
    check_shape("weight", weight, [gates, features])
    # spec: gruCell 8
    check_shape("recurrent_weight", recurrent_weight, [gates, hidden_size])
    # spec: gruCell 9
    check_shape("hidden_state", hidden_state, [batch, hidden_size])
    _check_both_biases(gates)
    # spec: gruCell 11.2
    check_shape("bias", bias, [gates])
    # spec: gruCell 12.2
    check_shape("recurrent_bias", recurrent_bias, [gates])
    # spec: gruCell 13.1
    check_length("activations", activations, 2)
    return output(input.data_type, [batch, hidden_size])


@operator("lstm", LSTM)
def lstm(
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
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Run a network of long short-term memory over a sequence; :func:`lstm_cell` says what each step computes.

    A backward direction takes the steps from the last to the first; its hidden states stand in the sequence where
    their inputs stand.

    Args:
        input: the sequence, [T, B, I].
        weight: the weights of the input, [D, 4·H, I], gates in the order of ``layout``.
        recurrent_weight: the weights of the hidden state, [D, 4·H, H].
        steps: T, the number of time steps.
        hidden_size: H, the number of features in the hidden state.
        bias: the bias of the input, [D, 4·H]; 0 when absent.
        recurrent_bias: the bias of the hidden state, [D, 4·H]; 0 when absent.
        peephole_weight: the weights of the cell state in the input, output and forget gates, in that order whatever
            the layout, [D, 3·H]; 0 when absent.
        initial_hidden_state: the hidden state before the first step, [D, B, H]; 0 when absent.
        initial_cell_state: the cell state before the first step, [D, B, H]; 0 when absent.
        return_sequence: whether to return the hidden state of every step, too.
        direction: "both" has two directions, the first forward, the second backward.
        layout: the order of the gates in weights and biases.
        activations: of the input, output and forget gates, of the cell gate, and of the new cell state; sigmoid,
            tanh and tanh when absent.

    Returns:
        A list of the last hidden state and the last cell state, [D, B, H] each, and with ``return_sequence`` also the
        hidden state of every step, [T, D, B, H].
    """
    directions = direction_count(direction)
    batch, features = _check_sequence(input, steps)
    gates = 4 * hidden_size
    # spec: lstm 10
    check_shape("weight", weight, [directions, gates, features])
    # spec: lstm 11
    check_shape("recurrent_weight", recurrent_weight, [directions, gates, hidden_size])
    _check_both_biases(gates)
    state = [directions, batch, hidden_size]
    # spec: lstm 13.2
    check_shape("bias", bias, [directions, gates])
    # spec: lstm 14.2
    check_shape("recurrent_bias", recurrent_bias, [directions, gates])
    # spec: lstm 15.2
    check_shape("peephole_weight", peephole_weight, [directions, 3 * hidden_size])
    # spec: lstm 16.2
    check_shape("initial_hidden_state", initial_hidden_state, state)
    # spec: lstm 17.2
    check_shape("initial_cell_state", initial_cell_state, state)
    # spec: lstm 18.1
    check_length("activations", activations, 3)
    outputs = [output(input.data_type, state), output(input.data_type, state)]
    return [*outputs, output(input.data_type, [steps, *state])] if return_sequence else outputs


@operator("lstmCell", LSTM_CELL)
def lstm_cell(
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
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Run one step of a long short-term memory.

    With x the input, h the hidden state, c the cell state, W and b the weight and bias of the input, R and d those
    of the hidden state, p the peephole weight and f, g, k the activations:
    i = f(W_i x + b_i + R_i h + d_i + p_i · c), and so are the output gate o and the forget gate v, all three with
    the cell state before the step; m = g(W_g x + b_g + R_g h + d_g);
    the new cell state is v · c + i · m, and the new hidden state o · k(new cell state).

    Args:
        input: the input of the step, [B, I].
        weight: the weights of the input, [4·H, I], gates in the order of ``layout``.
        recurrent_weight: the weights of the hidden state, [4·H, H].
        hidden_state: the hidden state before the step, [B, H].
        cell_state: the cell state before the step, [B, H].
        hidden_size: H, the number of features in the hidden state.
        bias: the bias of the input, [4·H]; 0 when absent.
        recurrent_bias: the bias of the hidden state, [4·H]; 0 when absent.
        peephole_weight: the weights of the cell state in the input, output and forget gates, in that order whatever
            the layout, [3·H]; 0 when absent.
        layout: the order of the gates in weights and biases.
        activations: of the input, output and forget gates, of the cell gate, and of the new cell state; sigmoid,
            tanh and tanh when absent.

    Returns:
        A list of the new hidden state and the new cell state, [B, H] each.
    """
    batch, features = input.shape
    gates = 4 * hidden_size
    # spec: lstmCell 7
    check_shape("weight", weight, [gates, features])
    # spec: lstmCell 8
    check_shape("recurrent_weight", recurrent_weight, [gates, hidden_size])
    # spec: lstmCell 9
    check_shape("hidden_state", hidden_state, [batch, hidden_size])
    # spec: lstmCell 10
    check_shape("cell_state", cell_state, [batch, hidden_size])
    _check_both_biases(gates)
    # spec: lstmCell 12.2
    check_shape("bias", bias, [gates])
    # spec: lstmCell 13.2
    check_shape("recurrent_bias", recurrent_bias, [gates])
    # spec: lstmCell 14.2
    check_shape("peephole_weight", peephole_weight, [3 * hidden_size])
    # spec: lstmCell 15.1
    check_length("activations", activations, 3)
    return [output(input.data_type, [batch, hidden_size]) for _ in range(2)]


def _check_sequence(input: MLOperand, steps: int) -> tuple[int, int]:
    """Check the number of time steps; the batch size and the input size."""
    # spec: lstm 6
    if steps == 0:
        refuse("steps", steps, "at least 1")
    length, batch, features = input.shape
    # spec: gru 5; lstm 7
    if length != steps:
        refuse("steps", steps, f"the first dimension of the input, {length}")
    return batch, features


def _check_both_biases(gates: int) -> None:
    """Platforms may lay bias and recurrent bias one behind the other: that, too, must be a valid dimension."""
    # spec: gru 11; gruCell 10; lstm 12; lstmCell 11
    if not 1 <= 2 * gates <= MAX_DIMENSION:
        refuse("the size of both biases together", 2 * gates, f"from 1 to {MAX_DIMENSION}")
