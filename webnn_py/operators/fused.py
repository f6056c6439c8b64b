"""Fused operators: what graphs draw in several operators, as the one node that a device has for it.

No builder of users draws them: rules put them in place of drawings. Each has a name of its own, a shape rule, and a
decomposition into operators of the specification, which says what it computes, for numbers that are not finite too.
:func:`fused_operator` declares one in a single call, anywhere; its operands are tensors, and its result is of the shape
of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Any, Final, Unpack

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.declaration import Facts, Operator
from webnn_py.operators.decomposing.common import number
from webnn_py.operators.methods import Builder
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.registry import OPERATORS

_DECLARED: Final[dict[str, Operator[..., Any]]] = {}
DECOMPOSITIONS: Final[dict[Operator[..., Any], Callable[..., MLOperand]]] = {}
"""The operators of the specification that compute the same: a function of a builder and the operands."""

ONNX_NAMES: Final[dict[Operator[..., Any], str]] = {}
"""The operators of ONNX that compute the same, with the same operands."""

FUSED: Final[Mapping[str, Operator[..., Any]]] = MappingProxyType(_DECLARED)
"""Every fused operator by its Python name."""


def _fused(
    spec_name: str, decomposition: Callable[..., MLOperand], **facts: Unpack[Facts]
) -> Callable[[Callable[..., MLOperandDescriptor]], Operator[..., Any]]:
    def declare(function: Callable[..., MLOperandDescriptor]) -> Operator[..., Any]:
        declared: Operator[..., Any] = Operator(function, spec_name, {}, **facts)
        if declared.name in _DECLARED or declared.name in OPERATORS:
            raise ValueError(f"an operator called {declared.name!r} is declared already; choose another name")
        _DECLARED[declared.name] = declared
        DECOMPOSITIONS[declared] = decomposition
        return declared

    return declare


def fused_operator(
    name: str, drawing: Callable[..., MLOperand], *, onnx: str | None = None, **facts: Unpack[Facts]
) -> Operator[..., Any]:
    """Declare a fused operator whose result has the data type and shape of its first operand.

    Args:
        name: the name, by which the builders of rules draw it.
        drawing: a function of a builder and of operands, which draws what the operator computes.
        onnx: the operator of ONNX, up to opset 21, that computes the same of the same operands, also of special
            numbers. Without one, it is written as it is drawn, unless the device has a rule of its own.
        facts: facts about it.

    Raises:
        ValueError: an operator has this name already.
    """
    _builder, *operands = signature(drawing).parameters

    def infer(**given: MLOperand) -> MLOperandDescriptor:
        first = given[operands[0]]
        return MLOperandDescriptor(first.data_type, first.shape)

    parameters = [Parameter(operand, Parameter.POSITIONAL_OR_KEYWORD) for operand in operands]
    infer.__signature__ = Signature([*parameters, Parameter("label", Parameter.KEYWORD_ONLY, default="")])  # type: ignore[attr-defined]
    infer.__annotations__ = dict.fromkeys(operands, MLOperand) | {"label": str, "return": MLOperandDescriptor}
    infer.__name__, infer.__doc__ = name, drawing.__doc__
    declared = _fused(name, drawing, **facts)(infer)
    if onnx is not None:
        ONNX_NAMES[declared] = onnx
    return declared


def _drawn_rms_normalization(builder: Builder, input: MLOperand, scale: MLOperand, *, epsilon: float) -> MLOperand:
    mean = builder.reduce_mean(builder.mul(input, input), axes=[input.rank - 1], keep_dimensions=True)
    root = builder.sqrt(builder.add(mean, number(builder, epsilon, input)))
    return builder.mul(builder.mul(input, builder.div(number(builder, 1, input), root)), scale)


@_fused("rmsNormalization", _drawn_rms_normalization)
def rms_normalization(input: MLOperand, scale: MLOperand, *, epsilon: float, label: str = "") -> MLOperandDescriptor:
    """Compute x · scale / √(mean(x²) + epsilon) along the last axis, whose size ``scale`` has."""
    return MLOperandDescriptor(input.data_type, input.shape)
