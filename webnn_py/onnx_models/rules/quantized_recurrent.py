"""Recurrent networks of quantized weights: step by step, since each step quantizes the state by its own range."""

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.onnx_models.axes import check_rank, integers
from webnn_py.onnx_models.conversion_context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.integer_sums import Shifted, product, shifted
from webnn_py.onnx_models.rules.quantization import dynamic_quantize
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

MOST_STEPS: Final = 512
"""Each takes some thirty operators."""
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@attrs.frozen
class _Direction:
    """The weights of one direction.

    Attributes:
        w: of the input, [size, 4 · hidden], and its scale.
        r: of the state, [hidden, 4 · hidden], and its scale. Drawn once: the device keeps them as floats.
        bias: of both, [4 · hidden].
        peepholes: of input, output and forget gate, [hidden]; or none.
    """

    w: tuple[Shifted, MLOperand]
    r: tuple[Shifted, MLOperand]
    bias: MLOperand | None
    peepholes: tuple[MLOperand, ...] = ()


@rule("com.microsoft.DynamicQuantizeLSTM", 1)
def dynamic_quantize_lstm(
    context: ConversionContext,
    x: MLOperand,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: StaticValue | None,
    initial_h: Value | None,
    initial_c: Value | None,
    p: MLOperand | None,
    w_scale: Value,
    w_zero_point: Value,
    r_scale: Value,
    r_zero_point: Value,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int,
    input_forget: int = 0,
) -> list[MLOperand]:
    """Long short-term memory whose products are of integers, of the input and of each state as they are quantized."""
    if clip or input_forget or activation_alpha or activation_beta:
        refuse("attributes clip, input_forget, activation_alpha and activation_beta", "given", "absent")
    plain = ("sigmoid", "tanh", "tanh")
    if activations and any(name.lower() != plain[index % 3] for index, name in enumerate(activations)):
        refuse("attribute activations", tuple(activations), "Sigmoid, Tanh and Tanh")
    if direction not in DIRECTIONS:
        refuse("attribute direction", direction, ", ".join(DIRECTIONS))
    check_rank("input X", x, 3)
    steps, batch, _ = x.shape
    if steps > MOST_STEPS:
        refuse(
            "the number of steps", steps, f"at most {MOST_STEPS}: give the sequence in parts, with the states between"
        )
    lengths = () if sequence_lens is None else integers("input sequence_lens", sequence_lens)
    if any(length != steps for length in lengths):
        refuse("input sequence_lens", lengths, f"{steps} everywhere, the number of steps")
    count = len(DIRECTIONS[direction])
    _check_shapes(context, (w, w_zero_point, w_scale), (r, r_zero_point, r_scale), (count, x.shape[2], hidden_size))
    zeros = context.constant(np.zeros([batch, hidden_size], np.float32))
    states = [_by_direction(context, item, count, zeros) for item in (initial_h, initial_c)]
    biases, peepholes = _split(context, b, count), _split(context, p, count)
    results = []
    for index, is_backward in enumerate(DIRECTIONS[direction]):
        weights = _Direction(
            (_weights_at(context, w, w_zero_point, index), _operand_at(context, w_scale, index)),
            (_weights_at(context, r, r_zero_point, index), _operand_at(context, r_scale, index)),
            None if biases is None else _sum_of_halves(context, biases[index]),
            () if peepholes is None else tuple(context.split(context.operand(peepholes[index]), 3, axis=0)),
        )
        results.append(_run(context, x, weights, (states[0][index], states[1][index]), is_backward=is_backward))
    sequences, hidden, cells = zip(*results, strict=True)
    return [context.concat(list(sequences), 1), context.concat(list(hidden), 0), context.concat(list(cells), 0)]


def _check_shapes(
    context: ConversionContext,
    w: tuple[Value, Value, Value],
    r: tuple[Value, Value, Value],
    sizes: tuple[int, int, int],
) -> None:
    count, size, hidden = sizes
    for name, (weights, zero_point, scale), rows in (("W", w, size), ("R", r, hidden)):
        if tuple(weights.shape) != (count, rows, 4 * hidden):
            refuse(f"the shape of input {name}", tuple(weights.shape), str([count, rows, 4 * hidden]))
        for kind, item in (("scale", scale), ("zero_point", zero_point)):
            if tuple(item.shape) not in {(count,), (count, 4 * hidden)}:
                refuse(f"the shape of input {name}_{kind}", tuple(item.shape), f"[{count}] or [{count}, {4 * hidden}]")


def _run(
    context: ConversionContext,
    x: MLOperand,
    weights: _Direction,
    state: tuple[MLOperand, MLOperand],
    *,
    is_backward: bool,
) -> tuple[MLOperand, MLOperand, MLOperand]:
    """The sequence of one direction, [steps, 1, batch, hidden], and its last states, [1, batch, hidden]."""
    steps, batch, size = x.shape
    hidden, cell = state
    rows = context.reshape(x, [steps * batch, size])
    of_input = _product(context, rows, weights.w)
    inputs = context.split(of_input, steps, axis=0) if steps > 1 else [of_input]
    outputs = []
    for gates in reversed(inputs) if is_backward else inputs:
        summed = context.add(gates, _product(context, hidden, weights.r))
        if weights.bias is not None:  # last, as onnxruntime adds it: each step quantizes what the step before rounded
            summed = context.add(summed, weights.bias)
        hidden, cell = _step(context, context.split(summed, 4, axis=1), cell, weights.peepholes)
        outputs.append(hidden)
    shape = [1, batch, hidden.shape[1]]
    ordered = outputs[::-1] if is_backward else outputs
    sequence = context.concat([context.reshape(item, [1, *shape]) for item in ordered], 0)
    return sequence, context.reshape(hidden, shape), context.reshape(cell, shape)


def _product(context: ConversionContext, x: MLOperand, weights: tuple[Shifted, MLOperand]) -> MLOperand:
    quantized, scale, zero_point = dynamic_quantize(context, x)
    matrix, matrix_scale = weights
    sums = product(context, shifted(context, quantized, zero_point), matrix)
    return context.mul(context.cast(sums, "float32"), context.mul(scale, matrix_scale))


def _step(
    context: ConversionContext, gates: Sequence[MLOperand], cell: MLOperand, peepholes: Sequence[MLOperand]
) -> tuple[MLOperand, MLOperand]:
    """The next state of hidden units and cells; the output gate sees the new cells."""
    input_, output, forget, candidate = gates
    if peepholes:
        input_ = context.add(input_, context.mul(peepholes[0], cell))
        forget = context.add(forget, context.mul(peepholes[2], cell))
    kept = context.mul(context.sigmoid(forget), cell)
    following = context.add(kept, context.mul(context.sigmoid(input_), context.tanh(candidate)))
    if peepholes:
        output = context.add(output, context.mul(peepholes[1], following))
    return context.mul(context.sigmoid(output), context.tanh(following)), following


def _at(context: ConversionContext, value: Value, index: int) -> Value:
    """The part of one direction."""
    if isinstance(value, np.ndarray):
        part: StaticValue = np.asarray(value[index])
        return part
    sizes = [1, *value.shape[1:]]
    return context.reshape(context.slice(value, [index] + [0] * (value.rank - 1), sizes), sizes[1:])


def _weights_at(context: ConversionContext, weights: Value, zero_point: Value, index: int) -> Shifted:
    return shifted(context, _at(context, weights, index), _at(context, zero_point, index))


def _operand_at(context: ConversionContext, value: Value, index: int) -> MLOperand:
    return context.operand(_at(context, value, index))


def _split(context: ConversionContext, values: Value | None, count: int) -> list[Value] | None:
    """The parts of all directions; each has a multiple of the hidden units."""
    if values is None:
        return None
    if len(values.shape) != 2 or values.shape[0] < count:  # as which it is refused
        values = context.operand(values)
        check_rank("inputs B and P", values, 2)
    return [_at(context, values, index) for index in range(count)]


def _sum_of_halves(context: ConversionContext, bias: Value) -> MLOperand:
    """What the input's and the state's bias add, which of constants is computed here."""
    if isinstance(bias, MLOperand) or len(bias) % 2:
        return context.add(*context.split(context.operand(bias), 2, axis=0))
    half = len(bias) // 2
    with np.errstate(all="ignore"):
        return context.operand(bias[:half] + bias[half:])


def _by_direction(context: ConversionContext, state: Value | None, count: int, zeros: MLOperand) -> Sequence[MLOperand]:
    if state is None:
        return [zeros] * count
    if tuple(state.shape) != (count, *zeros.shape):
        refuse("the shape of an initial state", tuple(state.shape), str([count, *zeros.shape]))
    return [_operand_at(context, state, index) for index in range(count)]
