"""The register of all rules: importing the modules of all categories fills the table."""

from importlib import import_module
from typing import Final

from webnn_py.onnx_models.table import TABLE, Rules
from webnn_py.operators.registry import import_categories

FURTHER: Final = (
    "attention",
    "bitwise",
    "block_quantized",
    "classical",
    "classifiers",
    "contraction",
    "early",
    "filling",
    "fused",
    "linear_attention",
    "losses",
    "microsoft_attention",
    "quantization",
    "quantized",
    "quantized_recurrent",
    "ranking",
    "sampling",
    "spectra",
    "trees",
)
"""Beside WebNN's categories: ONNX's operators that are like none of WebNN's, or stand for several."""

import_categories("webnn_py.onnx_models.rules")
for _name in FURTHER:
    import_module(f"webnn_py.onnx_models.rules.{_name}")

RULES: Rules = TABLE
"""The rules by operator and version of the operator."""
