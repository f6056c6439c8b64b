"""Facts about single values of a graph."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from webnn_py.graph import Constant, Value


def constant_scalar(value: Value) -> float | int | None:
    """The number of a constant that has one element and lies on the host."""
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.size == 1:
        number: float | int = value.data.reshape(-1)[0].item()
        return number
    return None


def is_finite(value: Value) -> bool | None:
    """Whether all elements of a constant that lies on the host are finite; None of any other value."""
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        return bool(np.isfinite(value.data).all())
    return None


def sign_of_zero(operand: object) -> Literal["", "-"] | None:
    """The sign of the constant 0, with which compilers do not multiply; None for any other operand."""
    number = constant_scalar(operand) if isinstance(operand, Value) else None
    if number != 0 or number is None:
        return None
    return "-" if math.copysign(1, number) < 0 else ""
