"""Advice for callers: which inputs of a model to freeze, so that a value is known while building."""

from collections.abc import Iterable
from math import prod
from typing import Final, final

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.graph import Input, Output, Value
from webnn_py.core.operators.operand import MLOperand

MOST_INPUTS: Final = 3
MOST_ELEMENTS: Final = 64
HIGHEST_RANK: Final = 1
"""Of shapes, sizes, positions and conditions. Inputs of higher rank are data, which are not known while building."""

_TOO_MANY: Final[frozenset[Input | None]] = frozenset({None})
"""Stands for what cannot be frozen: too many inputs, or large ones."""


@final
class Freezing:
    """The inputs that operands of a builder depend on; each operand is looked at once.

    Args:
        builder: whose.
    """

    def __init__(self, builder: MLGraphBuilder) -> None:
        self._builder = builder
        self._found: dict[Value, frozenset[Input | None]] = {}

    def advice(self, operands: Iterable[MLOperand], highest_rank: int = HIGHEST_RANK) -> str:
        """Return which inputs to freeze for operands to be static, in words.

        Args:
            operands: those that must be static.
            highest_rank: of the inputs; "" is returned where freezing does not help, or for others.
        """
        inputs = _together(self._inputs_of(self._builder.value_of(operand)) for operand in operands)
        names = [item.name for item in inputs if item is not None and item.descriptor.rank <= highest_rank]
        if not names or len(names) < len(inputs):
            return ""
        several = "s" if len(names) > 1 else ""
        return f"freeze input{several} {', '.join(map(repr, sorted(names)))}, by input_values"

    def _inputs_of(self, value: Value) -> frozenset[Input | None]:
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
                is_small = prod(current.descriptor.shape) <= MOST_ELEMENTS
                self._found[current] = frozenset({current}) if is_small else _TOO_MANY
            else:
                self._found[current] = frozenset()
        return self._found[value]


def _together(groups: Iterable[frozenset[Input | None]]) -> frozenset[Input | None]:
    inputs: frozenset[Input | None] = frozenset().union(*groups)
    return _TOO_MANY if len(inputs) > MOST_INPUTS or inputs >= _TOO_MANY else inputs
