"""The register of all rules: importing the modules of all categories fills the table."""

from webnn_py.onnx_models.table import TABLE, Rules
from webnn_py.operators.registry import import_categories

import_categories("webnn_py.onnx_models.rules")

RULES: Rules = TABLE
"""The rules by operator and version of the operator."""
