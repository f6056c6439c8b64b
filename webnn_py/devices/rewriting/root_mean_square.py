"""The rule that finds normalizations by the root mean square, which graphs draw in six operators or more."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product, starmap
from typing import Any, Final

from webnn_py.core.graph import Value
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


def _refusal(x: Value, axes: tuple[int, ...] | None, epsilon: float) -> str | None:
    if epsilon < LEAST_EPSILON:
        return f"epsilon is {epsilon}; it must be at least {LEAST_EPSILON}"
    if axes != (len(x.descriptor.shape) - 1,):
        return f"the mean is along the axes {axes}; it must be along the last one"
    return None


RMS_NORMALIZATION: Final = RewriteRule(
    name="rms-normalization",
    drawings=tuple(starmap(_normalized, product(SQUARES, DIVIDED))),
    replacement=lambda b, x, epsilon: b.rms_normalization(x, epsilon=epsilon),
    unless=_refusal,
    data_types=("float32",),
    tolerance=1e-5,
)
