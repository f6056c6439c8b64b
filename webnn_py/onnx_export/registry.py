"""The register of all rules: importing the modules of all categories fills the table."""

from collections.abc import Mapping

from webnn_py.core.operators.registry import import_categories
from webnn_py.onnx_export.table import TABLE, Rule

import_categories("webnn_py.onnx_export.rules")

RULES: Mapping[str, Rule] = TABLE
"""The rules by the operator's Python name."""
