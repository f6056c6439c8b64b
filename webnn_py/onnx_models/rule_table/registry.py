"""The register of all rules: importing the modules of all categories fills the table."""

from importlib import import_module
from typing import Final

from webnn_py.onnx_models.rule_table.declaration import TABLE, Rules
from webnn_py.operators.registry import import_categories

FURTHER: Final = (
    "attention",
    "bitwise",
    "block_quantized",
    "ml_arithmetic",
    "ml_classifiers",
    "einsum",
    "early_opsets",
    "constant_of_shape",
    "fused_operators",
    "linear_attention",
    "losses",
    "microsoft_attention",
    "quantized_products",
    "quantized_elementwise",
    "quantized_recurrent",
    "top_k",
    "grid_sampling",
    "spectra",
    "ml_trees",
)
"""Beside WebNN's categories: ONNX's operators that are like none of WebNN's, or stand for several."""

import_categories("webnn_py.onnx_models.rules")
for _name in FURTHER:
    import_module(f"webnn_py.onnx_models.rules.{_name}")

RULES: Rules = TABLE
"""The rules by operator and version of the operator."""
