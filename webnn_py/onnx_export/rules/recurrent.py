"""Recurrent networks; float16 is computed in float32. Cells are decomposed."""

from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import recurrent
from webnn_py.core.operators.recurrent import GRU_ACTIVATIONS, LSTM_ACTIVATIONS, direction_count
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.table import Written, rules

DIRECTIONS: Final = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}
ACTIVATIONS: Final = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


ORDERS: Final = {"GRU": "zrn", "LSTM": "iofg"}
"""ONNX's order of the gates, in the letters of WebNN's layouts."""


def _cell(body: Body, node: Node, operator: str, *operands: OnnxTensor) -> Written:
    return body.decomposed(node, dict(zip(node.operands, operands, strict=True)))


def _network(body: Body, node: Node, operator: str, *given: OnnxTensor) -> Written:
    """Write a network: the last states and, if they are wanted, the hidden states of all steps.

    Attributes with ONNX's default are left out: onnxruntime is faster then. An LSTM with peepholes is decomposed, as
    ONNX's output gate sees the new cell state, WebNN's the old one.
    """
    if "peephole_weight" in node.operands:
        return _cell(body, node, operator, *given)
    options: Any = node.options
    order, defaults = ORDERS[operator], GRU_ACTIVATIONS if operator == "GRU" else LSTM_ACTIVATIONS
    directions, size = direction_count(options["direction"]), options["hidden_size"]
    wide = {name: body.cast(item, "float32") for name, item in zip(node.operands, given, strict=True)}

    def gates(name: str) -> OnnxTensor:
        return _in_order(body, wide[name], size, options["layout"], order)

    biases: OnnxTensor | Array | None = None
    if "bias" in wide or "recurrent_bias" in wide:
        zeros = np.zeros((directions, len(order) * size), np.float32)
        both = [gates(name) if name in wide else zeros for name in ("bias", "recurrent_bias")]
        biases = body.end_to_end(both, axis=1)
    inputs = [wide["input"], gates("weight"), gates("recurrent_weight"), biases, None, wide.get("initial_hidden_state")]
    how: dict[str, Any] = {"direction": DIRECTIONS[options["direction"]], "hidden_size": size}
    if operator == "GRU":
        how["linear_before_reset"] = int(options["reset_after"])
    else:
        inputs.append(wide.get("initial_cell_state"))
    names = tuple(options["activations"] or defaults)
    if names != defaults:
        how["activations"] = [ACTIVATIONS[name] for name in names] * directions
    types = ["float32" if options["return_sequence"] else "", *["float32"] * (1 if operator == "GRU" else 2)]
    sequence, *last = body.nodes_outputs(operator, inputs, types, **how)
    outputs = [*last, sequence] if options["return_sequence"] else last
    return [body.cast(output, node.outputs[0].data_type) for output in outputs]


rules(_cell, {recurrent.gru_cell: "", recurrent.lstm_cell: ""})
rules(_network, {recurrent.gru: "GRU", recurrent.lstm: "LSTM"})


def _in_order(body: Body, x: OnnxTensor, size: int, layout: str, order: str) -> OnnxTensor:
    """Return weights or biases with the gates in ONNX's order."""
    if layout == order:
        return x
    places = np.concatenate([np.arange(size) + layout.index(gate) * size for gate in order])
    return body.node("Gather", x, shape(*places), axis=1)
