"""Recurrent networks of quantized weights; each step quantizes the state by its range."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from webnn_py.core.decompositions.common import one_of
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE_LSTM
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank
from webnn_py.onnx_models.rule_helpers.integer_products import bytes_of
from webnn_py.onnx_models.rule_table.declaration import Integers, rule

MOST_STEPS: Final = 512
"""The most steps: where a device does not take the whole network, each is some thirty operators."""
LARGEST: Final = 255
"""The greatest magnitude of what is quantized to 8 bits, less its zero point."""
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@rule("com.microsoft.DynamicQuantizeLSTM", 1)
def dynamic_quantize_lstm(
    context: ConversionContext,
    x: MLOperand,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: Integers | None,
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
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
    hidden_size: int,
    input_forget: bool = False,
) -> list[MLOperand]:
    """Long short-term memory whose products are of integers, of the input and of each state as they are quantized."""
    if clip or input_forget or activation_alpha or activation_beta:
        refuse("attributes clip, input_forget, activation_alpha and activation_beta", "given", "absent")
    plain = ("sigmoid", "tanh", "tanh")
    if activations and any(name.lower() != plain[index % 3] for index, name in enumerate(activations)):
        refuse("attribute activations", tuple(activations), "Sigmoid, Tanh and Tanh")
    check_rank("input X", x, 3)
    steps, batch, _ = x.shape
    if steps > MOST_STEPS:
        refuse(
            "the number of steps", steps, f"at most {MOST_STEPS}: give the sequence in parts, with the states between"
        )
    if any(length != steps for length in sequence_lens or ()):
        refuse("input sequence_lens", sequence_lens, f"{steps} everywhere, the number of steps")
    count = len(DIRECTIONS[direction])
    factors = {"w": (w, w_zero_point, w_scale), "r": (r, r_zero_point, r_scale)}
    for (name, given), rows in zip(factors.items(), (x.shape[2], hidden_size), strict=True):
        _check_shapes(name.upper(), given, (count, rows, 4 * hidden_size))
    zeros = context.constant(np.zeros([batch, hidden_size], np.float32))
    states = [_by_direction(context, item, count, zeros) for item in (initial_h, initial_c)]
    biases, peepholes = _split(context, b, count), _split(context, p, count)
    results = []
    for index, is_backward in enumerate(DIRECTIONS[direction]):
        operands = {"x": x, "hidden_state": states[0][index], "cell_state": states[1][index]}
        ends = {}
        for name, weights in factors.items():
            factor, ends[f"{name}_ends"] = _factor(context, name, [_at(context, item, index) for item in weights])
            operands |= factor
        if biases is not None:
            operands["bias"] = _sum_of_halves(context, biases[index])
        if peepholes is not None:
            operands["peephole_weight"] = context.operand(peepholes[index])
        results.append(context.composite(DYNAMIC_QUANTIZE_LSTM, operands, **ends, is_backward=is_backward))
    sequences, hidden, cells = zip(*results, strict=True)
    return [context.concat(list(sequences), 1), context.concat(list(hidden), 0), context.concat(list(cells), 0)]


def _check_shapes(name: str, given: Sequence[Value], shape: tuple[int, int, int]) -> None:
    weights, zero_point, scale = given
    if weights.shape != shape:
        refuse(f"the shape of input {name}", weights.shape, str(list(shape)))
    count, _, width = shape
    for kind, item in (("scale", scale), ("zero_point", zero_point)):
        if item.shape not in {(count,), (count, width)}:
            refuse(f"the shape of input {name}_{kind}", item.shape, f"[{count}] or [{count}, {width}]")


def _factor(
    context: ConversionContext, name: str, weights: Sequence[Value]
) -> tuple[Mapping[str, MLOperand], Sequence[int]]:
    """Return weights, zero point and scale of one direction as operands, and where their rows are cut."""
    matrix, zero_point, scale = weights
    factor = bytes_of(context, matrix, zero_point)
    operands = {name: factor.integers, f"{name}_scale": context.operand(scale)}
    if factor.zero_point is not None:
        operands[f"{name}_zero_point"] = factor.zero_point
    return operands, factor.ends(matrix.shape[0], LARGEST)


def _at(context: ConversionContext, value: Value, index: int) -> Value:
    """Return the part of one direction."""
    if isinstance(value, np.ndarray):
        part: StaticValue = np.asarray(value[index])
        return part
    return one_of(context, value, 0, index)


def _split(context: ConversionContext, values: Value | None, count: int) -> list[Value] | None:
    """Return the parts of all directions; each has a multiple of the hidden units."""
    if values is None:
        return None
    if len(values.shape) != 2 or values.shape[0] < count:  # as which it is refused
        values = context.operand(values)
        check_rank("inputs B and P", values, 2)
    return [_at(context, values, index) for index in range(count)]


def _sum_of_halves(context: ConversionContext, bias: Value) -> MLOperand:
    """Return the sum of the input's and the state's bias, which is computed here for constants."""
    if isinstance(bias, MLOperand) or len(bias) % 2:
        return context.add(*context.split(context.operand(bias), 2, axis=0))
    half = len(bias) // 2
    with np.errstate(all="ignore"):
        return context.operand(bias[:half] + bias[half:])


def _by_direction(context: ConversionContext, state: Value | None, count: int, zeros: MLOperand) -> Sequence[MLOperand]:
    if state is None:
        return [zeros] * count
    if state.shape != (count, *zeros.shape):
        refuse("the shape of an initial state", state.shape, str([count, *zeros.shape]))
    return [context.operand(_at(context, state, index)) for index in range(count)]
