"""Values that are computed as another one is: what has been read once of one step is known of all that are like it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final, final

import numpy as np

from webnn_py.graph import Constant, Node, Output, Value
from webnn_py.operators.declaration import Operator

MOST_COMPARED: Final = 16
"""Of how many elements constants are compared."""


@final
class Likeness:
    """How a value is computed by some nodes.

    Args:
        value: the value, which one of the nodes gives.
        nodes: the nodes; what else they read is read from without.
        changing: what is read from without and may be another value elsewhere. All else is the same there.

    Attributes:
        place: where ``values`` has each of its values first.
        nodes_at: the places of values that stand for a node each.
    """

    def __init__(self, value: Value, nodes: Container[Node], changing: Container[Value]) -> None:
        self.place: dict[Value, int] = {value: 0}
        self.nodes_at: list[int] = []
        self._made: list[tuple[int, Operator[..., Any], Mapping[str, Any], int, int]] = []
        self._same: list[tuple[int, int]] = []
        self._parts: list[tuple[int, int, int]] = []
        self._constant: list[tuple[int, Value]] = []
        met: dict[Node, int] = {}
        values = [value]
        for place, item in enumerate(values):  # which grows meanwhile
            first = self.place.setdefault(item, place)
            if first != place:
                self._same.append((place, first))
            elif not isinstance(item, Output) or item.node not in nodes:
                if item not in changing:
                    self._constant.append((place, item))
            elif (of_node := met.setdefault(item.node, place)) != place:
                self._parts.append((place, of_node, item.index))
            else:
                node = item.node
                self._made.append((place, node.operator, node.options, item.index, len(node.inputs)))
                self.nodes_at.append(place)
                values += node.inputs

    def values(self, value: Value) -> list[Value] | None:
        """What stands for this one's values in another one; None for one that is not computed like this one."""
        values = [value]
        for place, operator, options, index, count in self._made:
            item = values[place]
            if not isinstance(item, Output) or item.index != index:
                return None
            node = item.node
            inputs = node.inputs
            if node.operator is not operator or len(inputs) != count:
                return None
            if node.options is not options and node.options != options:
                return None
            values += inputs
        is_like = (
            all(values[place] is values[first] for place, first in self._same)
            and all(_is_part(values[place], values[first], index) for place, first, index in self._parts)
            and all(values[place] is other or _are_equal(values[place], other) for place, other in self._constant)
        )
        return values if is_like else None


def _is_part(value: Value, other: Value, index: int) -> bool:
    """Whether a value is the ``index``-th output of the node that gives the other."""
    return isinstance(value, Output) and isinstance(other, Output) and value.node is other.node and value.index == index


def _are_equal(value: Value, other: Value) -> bool:
    """Whether both are constants of few elements, which are equal to the bit."""
    if not isinstance(value, Constant) or not isinstance(other, Constant) or value.descriptor != other.descriptor:
        return False
    a, b = value.data, other.data
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.size > MOST_COMPARED:
        return False
    return a.tobytes() == b.tobytes()
