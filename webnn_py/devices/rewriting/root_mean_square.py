"""The rules that find normalizations by the root mean square, which graphs draw in six operators or more."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product, starmap
from typing import Any, Final

from webnn_py.core.graph import Constant, Value
from webnn_py.devices.rewriting.rule import RewriteRule

LEAST_EPSILON: Final = 1e-12
"""With an epsilon of at least this size the reciprocal of the root is finite, and sums may be scaled down."""

SQUARES: Final[tuple[Callable[..., Any], ...]] = (lambda b, x: b.pow(x, 2), lambda b, x: b.mul(x, x))
"""The ways to draw a square."""
DIVIDED: Final[tuple[Callable[..., Any], ...]] = (
    lambda b, x, root: b.div(x, root),
    lambda b, x, root: b.mul(x, b.reciprocal(root)),
    lambda b, x, root: b.mul(x, b.div(1, root)),
)
"""The ways to draw a division by a root."""


def _normalized(square: Callable[..., Any], divided: Callable[..., Any]) -> Callable[..., Any]:
    def drawing(b: Any, x: Any, epsilon: float) -> Any:
        mean = b.reduce_mean(square(b, x), axes=b.any_option("axes"), keep_dimensions=True)
        return divided(b, x, b.sqrt(b.add(mean, epsilon)))

    return drawing


def _scaled(normalized: Callable[..., Any]) -> Callable[..., Any]:
    def drawing(b: Any, x: Any, scale: Constant, epsilon: float) -> Any:
        return b.mul(normalized(b, x, epsilon), scale)

    return drawing


def _refusal(x: Value, axes: tuple[int, ...] | None, epsilon: float) -> str | None:
    if epsilon < LEAST_EPSILON:
        return f"epsilon is {epsilon}; it must be at least {LEAST_EPSILON}"
    if axes != (len(x.descriptor.shape) - 1,):
        return f"the mean is along the axes {axes}; it must be along the last one"
    return None


def _refusal_of_scaled(x: Value, scale: Value, axes: tuple[int, ...] | None, epsilon: float) -> str | None:
    shape = x.descriptor.shape
    refused = _refusal(x, axes, epsilon)
    if refused is None and scale.descriptor.shape != shape[-1:]:
        return f"the scale has the shape {scale.descriptor.shape}; it must be {shape[-1:]}"
    return refused


_DRAWINGS: Final = tuple(starmap(_normalized, product(SQUARES, DIVIDED)))

RMS_NORMALIZATION: Final = RewriteRule(
    name="rms-normalization",
    drawings=_DRAWINGS,
    replacement=lambda b, x, epsilon: b.rms_normalization(x, epsilon=epsilon),
    unless=_refusal,
    data_types=("float32",),
    tolerance=1e-5,
)

SCALED_RMS_NORMALIZATION: Final = RewriteRule(
    name="rms-normalization",
    drawings=tuple(map(_scaled, _DRAWINGS)),
    replacement=lambda b, x, scale, epsilon: b.rms_normalization(x, scale, epsilon=epsilon),
    unless=_refusal_of_scaled,
    data_types=("float32",),
    tolerance=1e-5,
)
"""onnxruntime's own fusion requires that nothing else reads the mean, but guards of finite means do."""
