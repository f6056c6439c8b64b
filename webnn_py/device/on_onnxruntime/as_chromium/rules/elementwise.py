"""Element-wise operators, products and activations."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from webnn_py.device.on_onnxruntime.as_chromium.drawing import RULES, ChromiumDrawing, Drawn, int64s, rule, shape_of
from webnn_py.graph import Node
from webnn_py.operators.activation import clamp_bounds
from webnn_py.operators.casting import cast_number

_AS_THEMSELVES: Final[Mapping[str, str]] = {
    "abs": "Abs",
    "add": "Add",
    "ceil": "Ceil",
    "cos": "Cos",
    "div": "Div",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "gelu": "Gelu",
    "hard_swish": "HardSwish",
    "identity": "Identity",
    "log": "Log",
    "matmul": "MatMul",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "neg": "Neg",
    "pow": "Pow",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "round_even": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "sub": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
}

_OF_NUMBERS: Final[Mapping[str, str]] = {
    "equal": "Equal",
    "greater": "Greater",
    "greater_or_equal": "GreaterOrEqual",
    "is_infinite": "IsInf",
    "is_nan": "IsNaN",
    "lesser": "Less",
    "lesser_or_equal": "LessOrEqual",
}
"""Operators whose results alone are truth values in ONNX."""

_OF_TRUTHS: Final[Mapping[str, str]] = {
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
}

_WITH_ATTRIBUTES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "elu": ("Elu", ("alpha",)),
    "hard_sigmoid": ("HardSigmoid", ("alpha", "beta")),
    "leaky_relu": ("LeakyRelu", ("alpha",)),
    "softmax": ("Softmax", ("axis",)),
}


def _as_itself(operator: str, drawing: ChromiumDrawing, node: Node, **operands: str) -> Drawn:
    return drawing.node(operator, *operands.values())


def _of_numbers(operator: str, drawing: ChromiumDrawing, node: Node, **operands: str) -> Drawn:
    return drawing.cast(drawing.node(operator, *operands.values()), "uint8")


def _of_truths(operator: str, drawing: ChromiumDrawing, node: Node, **operands: str) -> Drawn:
    truths = [drawing.cast(operand, "bool") for operand in operands.values()]
    return drawing.cast(drawing.node(operator, *truths), "uint8")


def _with_attributes(operator: str, names: tuple[str, ...], drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    return drawing.node(operator, input, **{name: node.options[name] for name in names})


for _draw, _table in ((_as_itself, _AS_THEMSELVES), (_of_numbers, _OF_NUMBERS), (_of_truths, _OF_TRUTHS)):
    for _name, _operator in _table.items():
        rule(_name)(partial(_draw, _operator))
for _name, (_operator, _attributes) in _WITH_ATTRIBUTES.items():
    RULES[_name] = partial(_with_attributes, _operator, _attributes)


@rule("not_equal")
def _not_equal(drawing: ChromiumDrawing, node: Node, a: str, b: str) -> Drawn:
    return drawing.cast(drawing.node("Not", drawing.node("Equal", a, b)), "uint8")


@rule("where")
def _where(drawing: ChromiumDrawing, node: Node, condition: str, true_value: str, false_value: str) -> Drawn:
    return drawing.node("Where", drawing.cast(condition, "bool"), true_value, false_value)


@rule("cast")
def _cast(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    return drawing.cast(input, node.outputs[0].data_type)


def _scalar(node: Node, value: float) -> Any:
    """Return a number in the data type of the result, as a tensor without axes."""
    data_type = node.outputs[0].data_type
    return np.array(cast_number(value, data_type), data_type)


@rule("clamp")
def _clamp(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    bounds = clamp_bounds(node.outputs[0].data_type, node.options["min_value"], node.options["max_value"])
    return drawing.node("Clip", input, *(_scalar(node, bound) for bound in bounds))


@rule("linear")
def _linear(drawing: ChromiumDrawing, node: Node, input: str) -> Drawn:
    scaled = drawing.node("Mul", input, _scalar(node, node.options["alpha"]))
    return drawing.node("Add", scaled, _scalar(node, node.options["beta"]))


@rule("prelu")
def _prelu(drawing: ChromiumDrawing, node: Node, input: str, slope: str) -> Drawn:
    widened = shape_of(node, "input") != tuple(node.outputs[0].shape)
    wide = drawing.node("Expand", input, int64s(shape_of(node, "slope"))) if widened else input
    return drawing.node("PRelu", wide, slope)


@rule("gemm")
def _gemm(drawing: ChromiumDrawing, node: Node, a: str, b: str, c: str | None = None) -> Drawn:
    options = node.options
    return drawing.node(
        "Gemm",
        *([a, b] if c is None else [a, b, c]),
        alpha=float(options["alpha"]),
        beta=float(options["beta"]),
        transA=int(options["a_transpose"]),
        transB=int(options["b_transpose"]),
    )
