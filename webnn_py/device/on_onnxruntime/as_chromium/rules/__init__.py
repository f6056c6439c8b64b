"""How Chromium writes each operator; importing this package fills ``drawing.RULES``."""

from webnn_py.device.on_onnxruntime.as_chromium.rules import (
    elementwise,
    indexing,
    movement,
    normalization,
    quantization,
    recurrent,
    reduction,
    windows,
)

__all__ = [
    "elementwise",
    "indexing",
    "movement",
    "normalization",
    "quantization",
    "recurrent",
    "reduction",
    "windows",
]
