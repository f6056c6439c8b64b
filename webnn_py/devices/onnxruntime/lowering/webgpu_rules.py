"""Lowering rules for the WebGPU provider: where its kernels differ from the specification, and from the CPU's.

WGSL lets a driver assume that there is no NaN and no infinity. Comparisons with NaN, sums, products, and the provider's
Max and Min keep it; what is written with WGSL's ``exp``, ``clamp`` or ``max`` may lose it.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators.limits import FLOATS
from webnn_py.devices.onnxruntime.claimed_operators import NOT_CLAIMED
from webnn_py.devices.onnxruntime.lowering.cuda_rules import resample2d, scatter_elements, scatter_nd
from webnn_py.devices.onnxruntime.lowering.rules import RULES as ON_CPU
from webnn_py.devices.onnxruntime.lowering.rules import max_pool2d_with
from webnn_py.onnx_export.body import BOOL, Body, Float16Kernels, OnnxTensor
from webnn_py.onnx_export.missing_data_types import shape
from webnn_py.onnx_export.registry import RULES as SAVED
from webnn_py.onnx_export.table import Rule, Written

DECOMPOSED: Final[Mapping[str, str]] = {
    **NOT_CLAIMED,
    "gru": "There is none, and that of the CPU loses NaN between such operators.",
    "lstm": "There is none, and that of the CPU loses NaN between such operators.",
    "reduce_log_sum": "Its logarithm of 0 is -88.",
    "reduce_log_sum_exp": "Its logarithm of 0 is -88.",
    "softmax": "It makes zeros of a row with NaN or Infinity.",
}
"""The operators that are expanded, by Python name, each with the fault of the WebGPU provider's own."""

OF_FLOAT64: Final = {"cos": "Cos", "log": "Log", "pow": "Pow", "sin": "Sin"}
"""ONNX's operators, by Python name, that are written in float64, which the provider leaves to the CPU.

WGSL allows errors of 2⁻¹¹ of sin and cos. Drivers make numbers of the logarithms and fractional powers of negative
ones, which are NaN, and of the logarithm of 0.
"""


def keeping_nan(name: str) -> Rule:
    """Return the rule of an operator of floats, by Python name, with NaN in place of what the provider makes of it."""

    def rule(body: Body, node: Node, input: OnnxTensor) -> Written:
        written = ON_CPU[name](body, node, input=input)
        if input.data_type not in FLOATS:
            return written
        assert isinstance(written, OnnxTensor)  # noqa: S101 - there is one output
        return body.node("Where", _is_number(body, input), written, input, data_type=input.data_type)

    return rule


def _is_number(body: Body, x: OnnxTensor) -> OnnxTensor:
    """Return for each element of floats whether it is not NaN; the provider has no IsNaN."""
    single = body.cast(x, "float32")
    return body.node("Equal", single, single, data_type=BOOL)


def in_float64(name: str) -> Rule:
    """Return the rule of an operator, by Python name, in float64 where it is of floats."""

    def rule(body: Body, node: Node, **operands: OnnxTensor) -> Written:
        data_type = node.outputs[0].data_type
        if data_type not in FLOATS:
            return ON_CPU[name](body, node, **operands)
        wide = [body.cast(operand, "float64") for operand in operands.values()]
        return body.cast(body.node(OF_FLOAT64[name], *wide), data_type)

    return rule


def expand(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write Expand, which fails for a scalar that stays one."""
    if input.shape == node.outputs[0].shape:
        return body.node("Identity", input)
    return ON_CPU["expand"](body, node, input=input)


def gemm(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor, c: OnnxTensor | None = None) -> Written:
    """Write Gemm with a summand that has an axis; of a scalar, some sizes end the process."""
    if c is not None and not c.rank:
        c = body.node("Reshape", c, shape(1))
    return ON_CPU["gemm"](body, node, a=a, b=b, c=c)


def max_pool2d(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write MaxPool with NaN propagated; Clip, by which the CPU does so, loses it."""

    def zero_or_nan(images: OnnxTensor) -> OnnxTensor:
        return body.node("Where", _is_number(body, images), np.zeros((), images.data_type), images)

    return max_pool2d_with(zero_or_nan, body, node, input)


def reduce_extreme(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write ReduceMax or ReduceMin, which lose NaN."""
    written = SAVED[node.operator.name](body, node, input=input)
    assert isinstance(written, OnnxTensor)  # noqa: S101 - there is one output
    if input.data_type not in FLOATS or node.options["axes"] == () or not input.rank:
        return written
    marks = body.cast(_is_number(body, input), "float32")
    axes, keepdims = node.options["axes"] or range(input.rank), int(node.options["keep_dimensions"])
    are_numbers = body.cast(body.node("ReduceMin", marks, shape(*axes), keepdims=keepdims), BOOL)
    nan = np.array(np.nan, written.data_type)
    return body.node("Where", are_numbers, written, nan, data_type=written.data_type)


def tan(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Write the quotient of Sin and Cos in float64, as these; the CPU has no Tan of it."""
    wide = body.cast(input, "float64")
    return body.cast(body.node("Div", body.node("Sin", wide), body.node("Cos", wide)), input.data_type)


RULES: Final[Mapping[str, Rule]] = {
    **ON_CPU,
    **{name: keeping_nan(name) for name in ("clamp", "exp", "hard_sigmoid", "relu", "softplus")},
    **{name: in_float64(name) for name in OF_FLOAT64},
    "expand": expand,
    "gemm": gemm,
    "max_pool2d": max_pool2d,
    "reduce_max": reduce_extreme,
    "reduce_min": reduce_extreme,
    "resample2d": resample2d,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "tan": tan,
}
"""Rules by the operator's Python name."""

FLOAT16: Final = Float16Kernels()
"""Its kernels of float16 accumulate in float16, so that what rounds is computed in float32."""
