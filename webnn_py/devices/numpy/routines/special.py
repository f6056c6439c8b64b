"""The error function and the Gaussian distribution for ``gelu``, which numpy lacks; and the sigmoid.

Both approximations are minimax fits in the form that W. J. Cody (erf, "Rational Chebyshev approximations for the
error function", 1969) and M. Shepherd and J. Laframboise (the tail, "Chebyshev approximation of (1 + 2x) exp(x²)
erfc x in 0 ≤ x < ∞", 1981) use. They are computed block by block, see ``blocks``.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from webnn_py.devices.numpy.table import Array, Run, scalar


def _coefficients(values: Sequence[float], data_type: str) -> list[Array]:
    return [scalar(value, data_type) for value in values]


ERF_LIMITS = scalar(-4.0, "float32"), scalar(4.0, "float32")
"""At and beyond these, erf is -1 or 1 in float32."""

ERF_NUMERATOR = _coefficients(
    (
        26.071439842868402,
        1578.8282714863408,
        16224.743088519495,
        214010.1623377511,
        740419.2731232173,
        4331572.8721995003,
    ),
    "float64",
)
ERF_DENOMINATOR = _coefficients(
    (
        278.56281501891688,
        5455.7676670670063,
        62553.729820795453,
        451038.55661115941,
        1935765.3814564976,
        3838756.499096315,
    ),
    "float64",
)
"""erf(x) / x as a quotient of polynomials in x², to 2⁻²⁸; the denominator begins with (x²)⁶."""

TAIL_LIMIT = scalar(14.5, "float32")
"""From here on, the tail of the Gaussian distribution is 0 in float32."""

TAIL_POLE = scalar(2.9, "float32")
TAIL = _coefficients(
    (
        -0.08141066746,
        0.2335817304,
        -0.136329741,
        -0.06636693779,
        -0.2055801682,
        0.2732136655,
        0.8368921659,
        -1.905101554,
        1.450000015,
    ),
    "float32",
)
"""(t + 2.9) · exp(t²/2) · Φ(-t) as a polynomial in t / (t + 2.9), to 2⁻²⁵."""

MINUS_HALF = scalar(-0.5, "float32")
ZERO = scalar(0.0, "float32")
ONE = scalar(1.0, "float32")
INFINITY = scalar(np.inf, "float32")


def horner(x: Array, coefficients: Sequence[Array], sum: Array) -> None:
    """Add the lower terms of a polynomial, highest first, to ``sum``, which holds its first coefficients' part."""
    for coefficient in coefficients:
        np.multiply(sum, x, out=sum)
        np.add(sum, coefficient, out=sum)


def erf(x: Array, y: Array, square: Array, quotient: Array, denominator: Array) -> None:
    """Compute the error function, to within 0.52 units of float32's last place; the scratch is float64."""
    x.clip(*ERF_LIMITS, out=y)
    np.copyto(square, y)
    np.multiply(square, square, out=square)
    np.multiply(square, ERF_NUMERATOR[0], out=quotient)
    np.add(quotient, ERF_NUMERATOR[1], out=quotient)
    horner(square, ERF_NUMERATOR[2:], quotient)
    np.add(square, ERF_DENOMINATOR[0], out=denominator)
    horner(square, ERF_DENOMINATOR[1:], denominator)
    np.divide(quotient, denominator, out=quotient)
    np.copyto(denominator, y)
    np.multiply(quotient, denominator, out=quotient)
    np.copyto(y, quotient, casting="same_kind")


def gelu(x: Array, y: Array, distance: Array, ratio: Array) -> None:
    """Compute max(0, x) - |x| · Φ(-|x|), the Gaussian error linear unit without cancellation; the scratch is float32.

    Φ(-|x|) = exp(-x²/2) · tail, so that the product keeps its relative precision where x is far below 0.
    """
    np.abs(x, out=distance)
    distance.clip(ZERO, TAIL_LIMIT, out=distance)
    np.add(distance, TAIL_POLE, out=ratio)
    np.divide(distance, ratio, out=ratio)
    np.multiply(ratio, TAIL[0], out=y)
    np.add(y, TAIL[1], out=y)
    horner(ratio, TAIL[2:], y)
    np.multiply(y, ratio, out=y)
    np.multiply(distance, distance, out=distance)
    np.multiply(distance, MINUS_HALF, out=distance)
    np.exp(distance, out=distance)
    np.multiply(y, distance, out=y)
    x.clip(ZERO, INFINITY, out=distance)
    np.subtract(distance, y, out=y)


LOWEST_POWER: Final = -88.0
"""Below it, exp(-x) soon overflows, and the sigmoid of x is exp(x)."""


def prepare_sigmoid(x: Array, y: Array) -> Run:
    """Return the computation of 1 / (1 + exp(-x)), with its arrays bound."""
    passes = [
        partial(np.negative, x, y),
        partial(np.exp, y, y),
        partial(np.add, y, ONE, y),
        partial(np.reciprocal, y, y),
    ]
    least = partial(np.minimum.reduce, x, axis=None)

    def run() -> None:
        for one in passes:
            one()
        if not least() >= LOWEST_POWER:
            np.exp(x, out=y, where=x < LOWEST_POWER)

    return run
