"""The register of all rules: importing the modules of ``rules`` fills the table."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from webnn_py.device.on_onnxruntime.as_chromium import drawing

for _module in (
    *("elementwise", "indexing", "movement", "normalization"),
    *("quantization", "recurrent", "reduction", "windows"),
):
    import_module(f"webnn_py.device.on_onnxruntime.as_chromium.rules.{_module}")

RULES: Final[Mapping[str, drawing.Rule]] = drawing.RULES
"""The rules by the operator's Python name; Chromium has no operator without one."""
