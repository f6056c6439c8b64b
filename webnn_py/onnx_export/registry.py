"""The register of all rules: importing the modules of all categories fills the table."""

from collections.abc import Mapping

from webnn_py.onnx_export.table import TABLE, Rule
from webnn_py.operators.registry import import_categories

import_categories("webnn_py.onnx_export.rules")

RULES: Mapping[str, Rule] = TABLE
"""The rules by the operator's Python name."""
