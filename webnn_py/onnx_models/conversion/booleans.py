"""Booleans and numbers of ``uint8``, which are one data type in a graph: their sources tell them apart."""

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np

from webnn_py.graph import Constant, Output, Value

GIVE_BOOLEANS: Final = frozenset(
    {
        "equal",
        "greater",
        "greater_or_equal",
        "is_infinite",
        "is_nan",
        "lesser",
        "lesser_or_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "not_equal",
    }
)
"""Operators whose results are 0 or 1."""

PASS_ON: Final = frozenset(
    {
        "concat",
        "expand",
        "gather",
        "gather_elements",
        "gather_nd",
        "identity",
        "max",
        "min",
        "pad",
        "reshape",
        "reverse",
        "scatter_elements",
        "scatter_nd",
        "slice",
        "split",
        "tile",
        "transpose",
        "triangular",
        "where",
    }
)
"""Operators whose results consist of elements of their operands."""

NOT_PASSED_ON: Final = frozenset({"condition", "indices"})
"""Operands of those that say which elements."""


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
        elif current.node.operator.name in PASS_ON:
            pending.extend(_passed_on(current))
        elif current.node.operator.name not in GIVE_BOOLEANS:
            return False
    return True


def _passed_on(value: Output) -> Iterator[Value]:
    """Yield the operands whose elements a value consists of."""
    for name, operand in value.node.operands.items():
        if name not in NOT_PASSED_ON:
            yield from operand if isinstance(operand, tuple) else (operand,)
