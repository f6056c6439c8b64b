"""Fuse functions that graphs draw in several operators into the one or two nodes that onnxruntime is fast with."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product, starmap
from typing import Any, Final

from webnn_py.device.on_onnxruntime.providers import CPU
from webnn_py.graph import Constant, Value
from webnn_py.rewriting.passes import RulePass
from webnn_py.rewriting.rule import RewriteRule

LEAST_EPSILON: Final = 1e-30
"""With an epsilon of at least this size, the reciprocal of the root is far below infinity."""


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


def _rms_drawing(square: Callable[..., Any], divided: Callable[..., Any]) -> Callable[..., Any]:
    def drawing(b: Any, x: Any, scale: Constant, epsilon: float) -> Any:
        mean = b.reduce_mean(square(b, x), axes=b.any_option("axes"), keep_dimensions=True)
        return b.mul(divided(b, x, b.sqrt(b.add(mean, epsilon))), scale)

    return drawing


_SQUARES: Final[tuple[Callable[..., Any], ...]] = (lambda b, x: b.pow(x, 2), lambda b, x: b.mul(x, x))
_DIVIDED: Final[tuple[Callable[..., Any], ...]] = (
    lambda b, x, root: b.div(x, root),
    lambda b, x, root: b.mul(x, b.reciprocal(root)),
    lambda b, x, root: b.mul(x, b.div(1, root)),
)


def _rms_refusal(x: Value, scale: Value, axes: tuple[int, ...] | None, epsilon: float) -> str | None:
    shape = x.descriptor.shape
    if epsilon < LEAST_EPSILON:
        return f"epsilon is {epsilon}; it must be at least {LEAST_EPSILON}"
    if axes != (len(shape) - 1,):
        return f"the mean is along the axes {axes}; it must be along the last one"
    if scale.descriptor.shape != shape[-1:]:
        return f"the scale has the shape {scale.descriptor.shape}; it must be {shape[-1:]}"
    return None


RMS_NORMALIZATION: Final = RewriteRule(
    name="rms-normalization",
    drawings=tuple(starmap(_rms_drawing, product(_SQUARES, _DIVIDED))),
    replacement=lambda b, x, scale, epsilon: b.rms_normalization(x, scale, epsilon=epsilon),
    unless=_rms_refusal,
    data_types=("float32",),
    tolerance=1e-5,
)
"""onnxruntime's own fusion requires that nothing else reads the mean, but guards of finite means do."""

FUSIONS: Final = (
    RulePass(name="rms-normalization", rules=(RMS_NORMALIZATION,), targets=(CPU.name,)),
    RulePass(name="hard-swish", rules=(HARD_SWISH,)),
)
"""The passes of these rules, in their order. Other providers may lack SimplifiedLayerNormalization."""
