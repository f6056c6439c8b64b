"""Facts about values and nodes of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np

from webnn_py.core.graph import Constant, Node, Output, Value


def constant_scalar(value: Value) -> float | int | None:
    """Return the number of a constant of one element in the host's memory; None for any other value."""
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.size == 1:
        number: float | int = value.data.reshape(-1)[0].item()
        return number
    return None


def is_finite(value: Value) -> bool | None:
    """Return whether all elements of a constant in the host's memory are finite; None for any other value."""
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        return bool(np.isfinite(value.data).all())
    return None


def sign_of_zero(value: Value) -> Literal["", "-"] | None:
    """Return the sign of the constant 0, since compilers drop products with it; None for any other value."""
    number = constant_scalar(value)
    if number != 0 or number is None:
        return None
    return "-" if math.copysign(1, number) < 0 else ""


def nodes_within(starts: Iterable[Node], is_inlined: Callable[[Value], bool]) -> list[Node]:
    """Return nodes and those inlined in their kernels, each once, behind those that it reads."""
    nodes: dict[Node, None] = {}
    for start in starts:
        stack = [(start, False)]
        while stack:
            node, has_operands = stack.pop()
            if has_operands:
                nodes[node] = None
            elif node not in nodes:
                stack.append((node, True))
                inner = [value for value in node.inputs if isinstance(value, Output) and is_inlined(value)]
                stack += [(value.node, False) for value in reversed(inner)]
    return list(nodes)
