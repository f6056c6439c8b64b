"""Fused operators: what graphs draw in several operators, as the one node that a device has for it.

No builder of users draws them: rules put them in place of drawings. Each has a name of its own, a shape rule, and a
decomposition into operators of the specification, which says what it computes, for numbers that are not finite too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Unpack

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.builder_protocol import Builder
from webnn_py.operators.declaration import Facts, Operator
from webnn_py.operators.decomposing.common import number
from webnn_py.operators.operand import MLOperand

_DECLARED: Final[dict[str, Operator[..., Any]]] = {}
DECOMPOSITIONS: Final[dict[Operator[..., Any], Callable[..., MLOperand]]] = {}
"""The operators of the specification that compute the same: a function of a builder and the operands."""

FUSED: Final[Mapping[str, Operator[..., Any]]] = MappingProxyType(_DECLARED)
"""Every fused operator by its Python name."""


def _fused(
    spec_name: str, decomposition: Callable[..., MLOperand], **facts: Unpack[Facts]
) -> Callable[[Callable[..., MLOperandDescriptor]], Operator[..., Any]]:
    def declare(function: Callable[..., MLOperandDescriptor]) -> Operator[..., Any]:
        declared: Operator[..., Any] = Operator(function, spec_name, {}, **facts)
        _DECLARED[declared.name] = declared
        DECOMPOSITIONS[declared] = decomposition
        return declared

    return declare


def _drawn_rms_normalization(builder: Builder, input: MLOperand, scale: MLOperand, *, epsilon: float) -> MLOperand:
    mean = builder.reduce_mean(builder.mul(input, input), axes=[input.rank - 1], keep_dimensions=True)
    root = builder.sqrt(builder.add(mean, number(builder, epsilon, input)))
    return builder.mul(builder.mul(input, builder.div(number(builder, 1, input), root)), scale)


@_fused("rmsNormalization", _drawn_rms_normalization)
def rms_normalization(input: MLOperand, scale: MLOperand, *, epsilon: float, label: str = "") -> MLOperandDescriptor:
    """Compute x · scale / √(mean(x²) + epsilon) along the last axis, whose size ``scale`` has."""
    return MLOperandDescriptor(input.data_type, input.shape)
