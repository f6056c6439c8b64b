"""Recurrent networks; float16 is computed in float32. Cells are decomposed."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from webnn_py.graph import Node
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.table import Written, rule
from webnn_py.operators import recurrent
from webnn_py.operators.recurrent import GRU_ACTIVATIONS, LSTM_ACTIVATIONS, direction_count

DIRECTIONS: Final = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}
ACTIVATIONS: Final = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


@rule(recurrent.gru_cell)
@rule(recurrent.lstm_cell)
def cell(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """The decomposition."""
    return body.decomposed(node, operands)


@rule(recurrent.gru)
def gru(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """GRU."""
    return _network(body, node, "GRU", "zrn", GRU_ACTIVATIONS, operands)


@rule(recurrent.lstm)
def lstm(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """LSTM; with peepholes it is decomposed: ONNX's output gate sees the new cell state, WebNN's the old one."""
    if "peephole_weight" in operands:
        return body.decomposed(node, operands)
    return _network(body, node, "LSTM", "iofg", LSTM_ACTIVATIONS, operands)


def _network(
    body: Body,
    node: Node,
    operator: str,
    order: str,
    activations: tuple[str, ...],
    operands: Mapping[str, OnnxTensor],
) -> list[OnnxTensor]:
    """The network of ONNX: the last states and, if somebody wants them, the hidden states of all steps.

    What ONNX takes for granted is not said: onnxruntime is faster so.
    """
    options: Any = node.options
    directions, size = direction_count(options["direction"]), options["hidden_size"]
    wide = {name: body.cast(item, "float32") for name, item in operands.items()}

    def gates(name: str) -> OnnxTensor:
        return _in_order(body, wide[name], size, options["layout"], order)

    biases: OnnxTensor | Array | None = None
    if "bias" in wide or "recurrent_bias" in wide:
        zeros = np.zeros((directions, len(order) * size), np.float32)
        both = [gates(name) if name in wide else zeros for name in ("bias", "recurrent_bias")]
        biases = body.end_to_end(both, axis=1)
    inputs = [wide["input"], gates("weight"), gates("recurrent_weight"), biases, None, wide.get("initial_hidden_state")]
    how: dict[str, object] = {"direction": DIRECTIONS[options["direction"]], "hidden_size": size}
    if operator == "GRU":
        how["linear_before_reset"] = int(options["reset_after"])
    else:
        inputs.append(wide.get("initial_cell_state"))
    names = tuple(options["activations"] or activations)
    if names != activations:
        how["activations"] = [ACTIVATIONS[name] for name in names] * directions
    types = ["float32" if options["return_sequence"] else "", *["float32"] * (1 if operator == "GRU" else 2)]
    sequence, *last = body.nodes_outputs(operator, inputs, types, **how)
    outputs = [*last, sequence] if options["return_sequence"] else last
    return [body.cast(output, node.outputs[0].data_type) for output in outputs]


def _in_order(body: Body, x: OnnxTensor, size: int, layout: str, order: str) -> OnnxTensor:
    """Weights or biases with the gates in ONNX's order."""
    if layout == order:
        return x
    places = np.concatenate([np.arange(size) + layout.index(gate) * size for gate in order])
    return body.node("Gather", x, shape(*places), axis=1)
