"""Recurrent networks and their cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, Drawn, Given, rule, shape_of
from webnn_py.graph import Node
from webnn_py.operators.recurrent import GRU_ACTIVATIONS, LSTM_ACTIVATIONS, direction_count

_ORDERS: Final = {"GRU": "zrn", "LSTM": "iofg"}
"""ONNX's order of the gates, in the letters of WebNN's layouts."""

_DIRECTIONS: Final = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}
_ACTIVATIONS: Final = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


@rule("gru", "gru_cell", "lstm", "lstm_cell")
def _network(drawing: ChromiumDrawing, node: Node, **operands: str) -> Drawn:
    operator = "GRU" if node.operator.name.startswith("gru") else "LSTM"
    is_cell = node.operator.name.endswith("_cell")
    given = {
        name: drawing.reshape(tensor, [1, *shape_of(node, name)]) if is_cell else tensor
        for name, tensor in operands.items()
    }
    states = ["hidden_state", "cell_state"] if is_cell else ["initial_hidden_state", "initial_cell_state"]
    inputs: list[Given] = [given["input"], *(_ordered(drawing, node, operator, given[name]) for name in _WEIGHTS)]
    inputs += [_biases(drawing, node, operator, given), None, given.get(states[0])]
    if operator == "LSTM":
        inputs += [given.get(states[1]), given.get("peephole_weight")]
    returns = bool(node.options.get("return_sequence"))
    wanted = [returns, True] if operator == "GRU" else [returns, True, True]
    sequence, *last = drawing.nodes(operator, inputs, wanted, **_attributes(node, operator))
    if is_cell:
        return [drawing.reshape(name, output.shape) for name, output in zip(last, node.outputs, strict=True)]
    return [*last, sequence] if returns else last


_WEIGHTS: Final = ("weight", "recurrent_weight")


def _attributes(node: Node, operator: str) -> dict[str, Any]:
    options = node.options
    direction = options.get("direction", "forward")
    names = options["activations"] or (GRU_ACTIVATIONS if operator == "GRU" else LSTM_ACTIVATIONS)
    how: dict[str, Any] = {
        "direction": _DIRECTIONS[direction],
        "activations": [_ACTIVATIONS[name] for name in names] * direction_count(direction),
        "hidden_size": options["hidden_size"],
    }
    if operator == "GRU":
        how["linear_before_reset"] = int(options["reset_after"])
    return how


def _ordered(drawing: ChromiumDrawing, node: Node, operator: str, tensor: str) -> str:
    """Return weights or biases with the gates in ONNX's order."""
    layout, order = node.options["layout"], _ORDERS[operator]
    if layout == order:
        return tensor
    count = len(order)
    gates = drawing.nodes("Split", [tensor], [True] * count, axis=1, num_outputs=count)
    return drawing.node("Concat", *(gates[layout.index(gate)] for gate in order), axis=1)


def _biases(drawing: ChromiumDrawing, node: Node, operator: str, given: dict[str, str]) -> str | None:
    """Return both biases side by side, zeros for one that is absent; None if both are."""
    names: Sequence[str] = ("bias", "recurrent_bias")
    if not any(name in given for name in names):
        return None
    directions = direction_count(node.options.get("direction", "forward"))
    size = len(_ORDERS[operator]) * node.options["hidden_size"]
    zeros = np.zeros((directions, size), node.operand("input").data_type)
    both = [_ordered(drawing, node, operator, given[name]) if name in given else zeros for name in names]
    return drawing.node("Concat", *both, axis=1)
