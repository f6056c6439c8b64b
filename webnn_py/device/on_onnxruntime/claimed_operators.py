"""The operators that the device claims: all except those that onnxruntime computes with other results."""

from collections.abc import Mapping
from typing import Any, Final

from webnn_py.descriptors import DATA_TYPES, MLOperandDataType
from webnn_py.device.backend import Capabilities
from webnn_py.operators.composites import COMPOSITES
from webnn_py.operators.declaration import Operator

NOT_CLAIMED: Final[Mapping[str, str]] = {
    "elu": "It computes exp(x) - 1, which cancels near zero.",
    "instance_normalization": "It adds the bias less the scaled mean to the product, which cancels.",
    "softsign": "Of an infinity it computes Infinity / Infinity.",
}
"""The operators that are expanded, by Python name, each with the fault of onnxruntime's own."""


def _supports(operator: Operator[..., Any]) -> tuple[MLOperandDataType, ...]:
    return () if operator.name in NOT_CLAIMED else DATA_TYPES


CAPABILITIES: Final = Capabilities(_supports, composites=tuple(item.operator for item in COMPOSITES.values()))
