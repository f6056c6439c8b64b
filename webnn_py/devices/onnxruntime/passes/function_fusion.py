"""Fuse functions that graphs draw in several operators into the one or two nodes that onnxruntime is fast with."""

from __future__ import annotations

from typing import Any, Final

from webnn_py.core.operators import activation
from webnn_py.devices.rewriting.rule import RewriteRule, RulePass


def _hard_swish_gate(b: Any, x: Any) -> Any:
    return b.clamp(b.add(x, 3), min_value=0, max_value=6)


HARD_SWISH: Final = RewriteRule(
    name="hard-swish",
    drawings=(
        lambda b, x: b.mul(x, b.div(_hard_swish_gate(b, x), 6)),
        lambda b, x: b.mul(x, b.mul(_hard_swish_gate(b, x), 1 / 6)),
        lambda b, x: b.div(b.mul(x, _hard_swish_gate(b, x)), 6),
        lambda b, x: b.mul(b.mul(x, _hard_swish_gate(b, x)), 1 / 6),
    ),
    replacement=lambda b, x: b.mul(x, b.hard_sigmoid(x, alpha=1 / 6, beta=0.5)),
    data_types=("float32",),
    tolerance=2e-6,
)
"""onnxruntime fuses both operators into the convolution before, and images keep their blocked channel layout.

NaN at -Infinity, like the drawing and unlike hardSwish."""


FUSIONS: Final = (RulePass(name="hard-swish", rules=(HARD_SWISH,), needs=frozenset({activation.clamp})),)
"""The passes of these rules, in their order."""
