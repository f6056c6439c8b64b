"""The register of all rules: importing the modules of :mod:`webnn_py.onnx_models.rules` fills the table."""

from importlib import import_module
from pkgutil import iter_modules

from webnn_py.onnx_models import rules
from webnn_py.onnx_models.rule_table.declaration import TABLE, Rules

for _module in iter_modules(rules.__path__):
    import_module(f"{rules.__name__}.{_module.name}")

RULES: Rules = TABLE
"""The rules by operator and version of the operator."""
