"""Long short-term memory whose products are of integers, as the one operator that onnxruntime has for it."""

from __future__ import annotations

from typing import Any, Final

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.dynamic_quantization import decomposition as quantized
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand


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
    is_backward: bool,
) -> list[MLOperandDescriptor]:
    """One direction of a network whose weights are integers, and whose input and states are quantized by their ranges.

    Shapes, of one direction first but for the input: x [steps, batch, size], w [1, size, 4 · units] and
    r [1, units, 4 · units] of uint8 with zero points of one element, scales of one or of 4 · units, hidden and cell
    [1, batch, units], bias [1, 8 · units]; the gates are in ONNX's order.

    Returns:
        The hidden states of all steps, [steps, 1, batch, units]; the last one, and the last cell.
    """
    steps, batch, _ = x.shape
    last = (1, batch, r.shape[1])
    return [MLOperandDescriptor("float32", shape) for shape in ((steps, *last), last, last)]


QUANTIZED_LSTM: Final = Operator(quantized_lstm, "lstm", {})


def decomposition(builder: Any, *, is_backward: bool, bias: Any = None, **operands: Any) -> list[Any]:
    """Draw it step by step."""
    x, hidden, cell = (operands[name] for name in ("x", "hidden", "cell"))
    steps, batch, size = x.shape
    last = hidden.shape
    w, r = (_matrix(builder, operands[name], operands[f"{name}_zero_point"]) for name in "wr")
    of_input = _product(builder, builder.reshape(x, [steps * batch, size]), w, operands["w_scale"])
    of_steps = builder.split(of_input, steps, axis=0) if steps > 1 else [of_input]
    biases = () if bias is None else builder.split(bias, 2, axis=1)
    hidden, cell = (builder.reshape(state, last[1:]) for state in (hidden, cell))
    outputs = []
    for gates in reversed(of_steps) if is_backward else of_steps:
        summed = builder.add(gates, _product(builder, hidden, r, operands["r_scale"]))
        for part in biases:
            summed = builder.add(summed, part)
        input_, output, forget, candidate = builder.split(summed, 4, axis=1)
        kept = builder.mul(builder.sigmoid(forget), cell)
        cell = builder.add(kept, builder.mul(builder.sigmoid(input_), builder.tanh(candidate)))
        hidden = builder.mul(builder.sigmoid(output), builder.tanh(cell))
        outputs.append(builder.reshape(hidden, [1, *last]))
    sequence = builder.concat(outputs[::-1] if is_backward else outputs, 0)
    return [sequence, builder.reshape(hidden, last), builder.reshape(cell, last)]


def _matrix(builder: Any, integers: Any, zero_point: Any) -> Any:
    floats, zero = (builder.cast(item, "float32") for item in (integers, zero_point))
    return builder.reshape(builder.sub(floats, zero), integers.shape[1:])


def _product(builder: Any, x: Any, matrix: Any, scale: Any) -> Any:
    integers, own_scale, zero_point = quantized(builder, x)
    floats, zero = (builder.cast(item, "float32") for item in (integers, zero_point))
    return builder.mul(builder.matmul(builder.sub(floats, zero), matrix), builder.mul(own_scale, scale))
