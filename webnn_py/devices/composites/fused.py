"""Fused operators: what graphs draw in several operators, as the one node that a device has for it.

No builder of users draws them: rules put them in place of drawings. Their decomposition says what they compute, for
numbers that are not finite too.
"""

from __future__ import annotations

from typing import Any, Final

from webnn_py.core.decompositions.common import number
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import same

ONNX_NAMES: Final[dict[Operator[..., Any], str]] = {}
"""The operators of ONNX, up to opset 21, that compute the same of the same operands, also of special numbers.

Without one, an operator is written as it is drawn, unless the device has a rule of its own.
"""


def rms_normalization(input: MLOperand, *, epsilon: float, label: str = "") -> MLOperandDescriptor:
    """Compute x / √(mean(x²) + epsilon) along the last axis."""
    return same(input)


def _drawn_rms_normalization(builder: Builder, input: MLOperand, *, epsilon: float) -> MLOperand:
    mean = builder.reduce_mean(builder.mul(input, input), axes=[input.rank - 1], keep_dimensions=True)
    root = builder.sqrt(builder.add(mean, number(builder, epsilon, input)))
    return builder.mul(input, builder.div(number(builder, 1, input), root))


RMS_NORMALIZATION: Final = Composite(rms_normalization, "rmsNormalization", {}, _drawn_rms_normalization)
