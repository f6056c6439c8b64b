"""Fused operators: what graphs draw in several operators, as the one node that a device has for it.

No builder of users draws them: rules put them in place of drawings. Each has a name of its own, a shape rule, and a
decomposition into operators of the specification, which says what it computes, for numbers that are not finite too.
:func:`fused_operator` declares one in a single call, anywhere; its result is of the shape of its first operand.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any, Final, Unpack

from webnn_py.core.decompositions.common import number
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.declaration import Facts, Operator, spec_name_of
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import same

ONNX_NAMES: Final[dict[Operator[..., Any], str]] = {}
"""The operators of ONNX that compute the same, with the same operands."""


def fused_operator(
    name: str, drawing: Callable[..., MLOperand], *, onnx: str | None = None, **facts: Unpack[Facts]
) -> Composite[..., Any]:
    """Declare a fused operator whose result has the data type and shape of its first operand.

    Args:
        name: the name, by which the builders of rules draw it.
        drawing: a function of a builder, operands, and options by keyword, which draws what the operator computes.
        onnx: the operator of ONNX, up to opset 21, that computes the same of the same operands, also of special
            numbers. Without one, it is written as it is drawn, unless the device has a rule of its own.
        facts: facts about it.

    Raises:
        ValueError: an operator has this name already.
    """
    _builder, *parameters = signature(drawing).parameters.values()
    first = parameters[0].name

    def infer(**given: Any) -> MLOperandDescriptor:
        return same(given[first])

    label = Parameter("label", Parameter.KEYWORD_ONLY, default="", annotation=str)
    infer.__signature__ = Signature([*parameters, label])  # type: ignore[attr-defined]
    infer.__annotations__ = {
        item.name: item.annotation if item.kind is Parameter.KEYWORD_ONLY else _operand_type(item)
        for item in (*parameters, label)
    } | {"return": MLOperandDescriptor}
    infer.__name__, infer.__doc__ = name, drawing.__doc__
    declared = Composite[..., Any](infer, spec_name_of(name), {}, drawing, **facts)
    if onnx is not None:
        ONNX_NAMES[declared] = onnx
    return declared


def _operand_type(parameter: Parameter) -> object:
    return MLOperand if parameter.default is Parameter.empty else MLOperand | None


def _drawn_rms_normalization(
    builder: Builder, input: MLOperand, scale: MLOperand | None = None, *, epsilon: float
) -> MLOperand:
    """Compute x · scale / √(mean(x²) + epsilon) along the last axis, whose size ``scale`` has."""
    mean = builder.reduce_mean(builder.mul(input, input), axes=[input.rank - 1], keep_dimensions=True)
    root = builder.sqrt(builder.add(mean, number(builder, epsilon, input)))
    normalized = builder.mul(input, builder.div(number(builder, 1, input), root))
    return normalized if scale is None else builder.mul(normalized, scale)


rms_normalization = fused_operator("rms_normalization", _drawn_rms_normalization)
