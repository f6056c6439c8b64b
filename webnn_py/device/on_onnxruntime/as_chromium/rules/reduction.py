"""Reductions."""

from functools import partial
from typing import Final

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import RULES, ChromiumDrawing, Drawn, int64s, rule, shape_of
from webnn_py.graph import Node

_REDUCTIONS: Final = {
    "reduce_l1": "ReduceL1",
    "reduce_l2": "ReduceL2",
    "reduce_log_sum": "ReduceLogSum",
    "reduce_log_sum_exp": "ReduceLogSumExp",
    "reduce_max": "ReduceMax",
    "reduce_mean": "ReduceMean",
    "reduce_min": "ReduceMin",
    "reduce_product": "ReduceProd",
    "reduce_sum": "ReduceSum",
    "reduce_sum_square": "ReduceSumSquare",
}
_OF_NO_AXES: Final = {"reduce_l1": "Abs", "reduce_l2": "Abs", "reduce_log_sum": "Log"}


def _reduction(operator: str, drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    axes, name = node.options["axes"], node.operator.name
    axes = range(len(shape_of(node, "input"))) if axes is None else axes
    if not axes and name == "reduce_sum_square":
        return drawing.node("Pow", input, np.array(2, np.int64))
    if not axes and name in _OF_NO_AXES:
        return drawing.node(_OF_NO_AXES[name], input)
    keep = int(node.options["keep_dimensions"])
    return drawing.node(operator, input, int64s(axes), keepdims=keep, noop_with_empty_axes=1)


for _name, _operator in _REDUCTIONS.items():
    RULES[_name] = partial(_reduction, _operator)


@rule("arg_max", "arg_min")
def _extreme(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    operator = "ArgMax" if node.operator.name == "arg_max" else "ArgMin"
    options = node.options
    found = drawing.node(operator, input, axis=options["axis"], keepdims=int(options["keep_dimensions"]))
    data_type = node.outputs[0].data_type
    return found if data_type == "int64" else drawing.cast(found, data_type)


@rule("cumulative_sum")
def _cumulative_sum(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    options = node.options
    how = {"exclusive": int(options["exclusive"]), "reverse": int(options["reversed"])}
    return drawing.node("CumSum", input, np.array(options["axis"], np.int64), **how)
