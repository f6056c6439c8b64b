"""Tell booleans from numbers of ``uint8``, the same data type in a graph, by what computes them."""

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np

from webnn_py.core.graph import Constant, Output, Value
from webnn_py.core.operators import movement

FILLED: Final = (movement.pad, movement.triangular)
"""Operators that add 0, or a number that the importer chose, to elements of their input."""


def is_boolean(value: Value, boolean_inputs: Collection[Value]) -> bool:
    """Return whether the elements of a value are booleans, rather than numbers.

    Args:
        value: of ``uint8``.
        boolean_inputs: the inputs of the graph that are booleans.
    """
    pending, seen = [value], set[Value]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, Constant):
            if not isinstance(current.data, np.ndarray) or current.data.max(initial=0) > 1:
                return False
        elif not isinstance(current, Output):
            if current not in boolean_inputs:
                return False
        elif current.node.operator.selected_operands or current.node.operator in FILLED:
            pending.extend(_selected(current))
        elif not current.node.operator.is_boolean:
            return False
    return True


def _selected(value: Output) -> Iterator[Value]:
    """Yield the operands of which a value has elements."""
    for name in value.node.operator.selected_operands or ("input",):
        operand = value.node.operands[name]
        yield from operand if isinstance(operand, tuple) else (operand,)
