"""Normalizations, also where a model draws one of float16 in parts: squares overflow there, so all is in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product, starmap
from typing import Any, Final

from webnn_py.core.graph import Node, Output, Value
from webnn_py.core.operators import arithmetic, reduction
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.rewriting.pattern import Match, Pattern
from webnn_py.devices.rewriting.root_mean_square import DIVIDED, SQUARES
from webnn_py.onnx_models.conversion.context import ConversionContext


def root_mean_square(
    context: ConversionContext, x: MLOperand, axes: Sequence[int], epsilon: float
) -> tuple[MLOperand, MLOperand]:
    """Return x divided by the root of its mean square over axes, and the inverse of that root in float32."""
    wide = context.cast(x, "float32")
    square = context.reduce_mean(context.mul(wide, wide), axes=axes, keep_dimensions=True)
    inverse = context.reciprocal(context.sqrt(context.add(square, context.number(epsilon, square))))
    return context.cast(context.mul(wide, inverse), x.data_type), inverse


def _drawing(square: Callable[..., Any], divided: Callable[..., Any]) -> Callable[..., Any]:
    def drawing(b: Any, x: Any, squared: Any, epsilon: float) -> Any:
        mean = b.reduce_mean(square(b, squared), axes=b.any_option("axes"), keep_dimensions=True)
        return divided(b, x, b.sqrt(b.add(mean, epsilon)))

    return drawing


_PATTERNS: Final = tuple(map(Pattern.from_drawing, starmap(_drawing, product(SQUARES, DIVIDED))))
"""A division by the root of a mean square; what is squared may be drawn twice, as x less its mean."""


def normalized(context: ConversionContext, result: MLOperand) -> MLOperand:
    """Return a result of float16, drawn as the normalization that it ends; any other result as it is.

    Scale and bias, which models multiply and add behind it, stay.
    """
    value = context.value_of(result)
    if result.data_type != "float16" or not isinstance(value, Output):
        return result
    for pattern in _PATTERNS:
        for match in pattern.matches(value.node):
            drawn = _drawn(context, match)
            if drawn is not None and drawn.shape == result.shape:
                return drawn
    return result


def _drawn(context: ConversionContext, match: Match) -> MLOperand | None:
    """Return the normalization of a match; None where it divides something else than it squares."""
    x, squared = match.values["x"], match.values["squared"]
    axes: Any = match.options["axes"]
    epsilon = match.numbers["epsilon"]
    origin = _before_centring(x, axes)
    if origin is not None and origin is _before_centring(squared, axes):
        return context.layer_normalization(context.operand_of(origin), axes=axes, epsilon=epsilon)
    if x is squared:
        return root_mean_square(context, context.operand_of(x), axes, epsilon)[0]
    return None


def _before_centring(value: Value, axes: object) -> Value | None:
    """Return the value from which its mean over axes has been subtracted; None for any other value."""
    centred = _node_of(value)
    if centred is None or centred.operator is not arithmetic.sub:
        return None
    origin, mean = centred.inputs
    reduced = _node_of(mean)
    if reduced is None or reduced.operator is not reduction.reduce_mean or reduced.inputs[0] is not origin:
        return None
    options = reduced.options
    return origin if options["axes"] == axes and options["keep_dimensions"] else None


def _node_of(value: Value) -> Node | None:
    return value.node if isinstance(value, Output) else None
