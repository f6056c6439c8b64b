"""The operators that the device claims: all except those that onnxruntime computes with other results."""

from collections.abc import Container, Mapping
from typing import Final

from webnn_py.descriptors import DATA_TYPES
from webnn_py.device.backend import Capabilities
from webnn_py.operators.composites import DYNAMIC_QUANTIZE, DYNAMIC_QUANTIZE_LSTM
from webnn_py.operators.tree_ensembles import TREE_ENSEMBLE

NOT_CLAIMED: Final[Mapping[str, str]] = {
    "elu": "It computes exp(x) - 1, which cancels near zero.",
    "instance_normalization": "It adds the bias less the scaled mean to the product, which cancels.",
    "softsign": "Of an infinity it computes Infinity / Infinity.",
}
"""The operators that are expanded, by Python name, each with the fault of onnxruntime's own."""


def capabilities_without(names: Container[str]) -> Capabilities:
    """Return the abilities of a provider that computes all operators but those of these Python names."""
    return Capabilities(
        lambda operator: () if operator.name in names else DATA_TYPES,
        composites=(DYNAMIC_QUANTIZE, DYNAMIC_QUANTIZE_LSTM, TREE_ENSEMBLE),
    )


CAPABILITIES: Final = capabilities_without(NOT_CLAIMED)
