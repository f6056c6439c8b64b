"""Advice for callers: which inputs of a model to freeze, so that a value is known while building."""

from collections.abc import Iterable
from math import prod
from typing import Final, final

from webnn_py.graph import Input, Output, Value
from webnn_py.operators.operand import MLOperand
from webnn_py.script.builder import MLGraphBuilder

MOST_INPUTS: Final = 3
MOST_ELEMENTS: Final = 64
HIGHEST_RANK: Final = 1
"""Inputs of higher rank are data, which are not known while building."""

_TOO_MANY: Final = frozenset({""})
"""Stands for what cannot be frozen: too many inputs, or large ones."""


@final
class Freezing:
    """The inputs that operands of a builder depend on; each operand is looked at once.

    Args:
        builder: whose.
    """

    def __init__(self, builder: MLGraphBuilder) -> None:
        self._builder = builder
        self._found: dict[Value, frozenset[str]] = {}

    def advice(self, operands: Iterable[MLOperand]) -> str:
        """Return which inputs to freeze for operands to be static, in words; "" where freezing does not help."""
        names = _together(self._inputs_of(self._builder._values[operand]) for operand in operands)
        if not names or names == _TOO_MANY:
            return ""
        several = "s" if len(names) > 1 else ""
        return f"freeze input{several} {', '.join(map(repr, sorted(names)))}, by input_values"

    def _inputs_of(self, value: Value) -> frozenset[str]:
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._found:
                pending.pop()
            elif isinstance(current, Output):
                inputs = list(current.node.inputs)
                unseen = [item for item in inputs if item not in self._found]
                if unseen:
                    pending.extend(unseen)
                else:
                    self._found[current] = _together(self._found[item] for item in inputs)
            elif isinstance(current, Input):
                shape = current.descriptor.shape
                is_small = len(shape) <= HIGHEST_RANK and prod(shape) <= MOST_ELEMENTS
                self._found[current] = frozenset({current.name}) if is_small else _TOO_MANY
            else:
                self._found[current] = frozenset()
        return self._found[value]


def _together(groups: Iterable[frozenset[str]]) -> frozenset[str]:
    names: frozenset[str] = frozenset().union(*groups)
    return _TOO_MANY if len(names) > MOST_INPUTS or names >= _TOO_MANY else names
