"""Expansion of operators that a device does not claim into operators that it does.

A device runs the operators that it claims itself. Any other operator is replaced by its decomposition, and so are the
operators of that, until all are claimed; an operator for which that is impossible is refused when it is drawn. The data
types and ranks that can be expanded are found by expanding examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, product
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import FOUR_BITS, MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.graph import Graph, Input, Node, Output, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, decomposed, rewrite
from webnn_py.core.message_text import in_brackets
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.examples import Example, examples_of
from webnn_py.core.operators.limits import LimitsRow, RankRange
from webnn_py.core.operators.registry import OPERATORS

USUAL_RANK: Final = 3
"""Operands of this rank cover all branches of the decompositions."""

DataTypes = tuple[MLOperandDataType, ...]


class CannotExpandError(Exception):
    """A node is not claimed by the device and cannot be expanded into operators that are."""


@attrs.frozen
class Support:
    """The supported data types and ranks of an operator on a device.

    Attributes:
        data_types: for each row of the operator's limits, the supported data types, in any combination.
        max_rank: the highest rank of any operand.
    """

    data_types: Mapping[str, DataTypes]
    max_rank: int


@cache
def claims(operator: Operator[..., Any], capabilities: Capabilities) -> Mapping[str, DataTypes]:
    """Return the data types in which a device runs an operator itself, for each row of its limits."""
    claim = capabilities.supports(operator)
    of_rows = claim if isinstance(claim, Mapping) else dict.fromkeys(operator.limits, claim)
    return {
        name: tuple(item for item in data_types if item in of_rows[name])
        for name, data_types in _allowed(operator, capabilities).items()
    }


@cache
def _is_always_claimed(operator: Operator[..., Any], capabilities: Capabilities) -> bool:
    """Return whether a device runs an operator itself in all of the device's data types."""
    return claims(operator, capabilities) == _allowed(operator, capabilities)


def _allowed(operator: Operator[..., Any], capabilities: Capabilities) -> dict[str, DataTypes]:
    return {
        name: tuple(item for item in row.data_types if item in capabilities.data_types)
        for name, row in operator.limits.items()
    }


def is_claimed(node: Node, capabilities: Capabilities) -> bool:
    """Return whether the device runs a node itself."""
    claimed = claims(node.operator, capabilities)
    for name, operand in node.operands.items():
        for value in operand if isinstance(operand, tuple) else (operand,):
            if not _fits(value.descriptor, claimed[name], capabilities):
                return False
    names = node.operator.output_limits
    return all(
        _fits(descriptor, claimed[names[index] if len(names) > 1 else names[0]], capabilities)
        for index, descriptor in enumerate(node.outputs)
    )


def _fits(descriptor: MLOperandDescriptor, data_types: DataTypes, capabilities: Capabilities) -> bool:
    # Of 4-bit elements, an extension has left those that the device reads packed.
    is_there = descriptor.data_type in data_types or descriptor.data_type in FOUR_BITS
    return is_there and descriptor.rank <= capabilities.max_rank


class ExpandingBuilder(RewriteBuilder):
    """Draws claimed operators as they are, and the decompositions of all others.

    Args:
        capabilities: the device's capabilities.
        label: the label of every node: that of the operator that is expanded.
        drawn: the place of that operator.
    """

    def __init__(self, capabilities: Capabilities, label: str = "", drawn: tuple[int, ...] = ()) -> None:
        super().__init__(label, drawn)
        self._capabilities = capabilities
        self._within: list[tuple[Operator[..., Any], DataTypes]] = []

    def draw(self, node: Node) -> Sequence[Value]:
        """Return the values of a node's outputs, or of its decomposition's where the device does not claim it.

        Raises:
            CannotExpandError: no decomposition leads to claimed operators only.
        """
        if is_claimed(node, self._capabilities):
            return node.results
        place = (node.operator, tuple(value.descriptor.data_type for value in node.inputs))
        if place in self._within:
            return self._unclaimed(node)
        self._within.append(place)
        drawn = decomposed(node, self)
        self._within.pop()
        return self._unclaimed(node) if drawn is None else drawn

    def _unclaimed(self, node: Node) -> Sequence[Value]:
        """Return the results of a node that is neither claimed nor has a decomposition.

        Raises:
            CannotExpandError: there are none.
        """
        raise CannotExpandError(f"{node} is neither claimed by the device nor expanded into what is")


class _Collecting(ExpandingBuilder):
    """Draws all operators, and collects the names of those that are neither claimed nor have a decomposition."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self.missing: set[str] = set()

    def _unclaimed(self, node: Node) -> Sequence[Value]:
        self.missing.add(node.operator.name)
        return node.results


def needs_expansion(graph: Graph, capabilities: Capabilities) -> bool:
    """Return whether a graph of supported nodes has a node that is not claimed."""
    operators = {node.operator for node in graph.nodes}
    sometimes = {operator for operator in operators if not _is_always_claimed(operator, capabilities)}
    nodes = [node for node in graph.nodes if node.operator in sometimes] if sometimes else []
    return any(not is_claimed(node, capabilities) for node in nodes)


def expand(graph: Graph, capabilities: Capabilities) -> Graph:
    """Return the graph with operators that the device claims.

    Names of inputs and outputs stay; nodes that replace another one get its label.

    Raises:
        CannotExpandError: a node cannot be expanded; validation lets no such node through.
    """
    operators = {node.operator for node in graph.nodes}
    always_claimed = {operator for operator in operators if _is_always_claimed(operator, capabilities)}

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if node.operator in always_claimed or is_claimed(current, capabilities):
            return None
        label = in_brackets(current.label)
        builder = ExpandingBuilder(capabilities, f"in {current.operator.spec_name}{label}", current.drawn)
        # Inputs and constants cannot be outputs of a graph.
        values = (
            value if isinstance(value, Output) else builder.value(builder.identity(builder.operand(value)))
            for value in builder.draw(current)
        )
        return dict(zip(node.results, values, strict=True))

    return rewrite(graph, replace)


# --- what can be expanded ------------------------------------------------------------------------------------------


@cache
def support_of(operator: Operator[..., Any], capabilities: Capabilities) -> Support:
    """Return the data types and ranks of an operator that a device can run, directly or expanded.

    Where only some combinations of its operands' data types can be run, data types are removed, as few as possible,
    until all remaining ones can be combined.
    """
    claimed = claims(operator, capabilities)
    here = _allowed(operator, capabilities)
    if operator is not OPERATORS.get(operator.name):  # without examples: an extension replaces it, or the build refuses
        return Support(claimed if any(claimed.values()) else here, capabilities.max_rank)
    if claimed == here or operator.decomposition is None:
        return Support(claimed, capabilities.max_rank)
    usual = min(USUAL_RANK, capabilities.max_rank)
    choices = {name: here[name] for name in _independent(operator)}
    can = {
        combination
        for combination in product(*choices.values())
        if _can_expand(operator, dict(zip(choices, combination, strict=True)), usual, capabilities)
    }
    choices = dict(zip(choices, _combinable(list(choices.values()), can), strict=True))
    first = {name: data_types[0] for name, data_types in choices.items() if data_types}
    if len(first) < len(choices):
        return Support(dict.fromkeys(operator.limits, ()), capabilities.max_rank)
    return Support(_by_row(operator, choices, here), _highest_rank(operator, first, capabilities))


def _independent(operator: Operator[..., Any]) -> list[str]:
    """Return the rows of the limits with free data types: neither another row nor a rule determines them."""
    chosen = "data_type" in operator.parameters or "output_data_type" in operator.parameters
    return [
        name for name, row in operator.limits.items() if row.type_of is None and (name in operator.parameters or chosen)
    ]


def _by_row(
    operator: Operator[..., Any], choices: Mapping[str, DataTypes], here: Mapping[str, DataTypes]
) -> dict[str, DataTypes]:
    """Return the data types of every row, from those of the free rows."""
    rows: dict[str, DataTypes] = {}
    for name, row in operator.limits.items():
        origin = name
        while (other := operator.limits[origin].type_of) is not None:
            origin = other
        allowed = choices.get(origin, here[name])
        rows[name] = tuple(item for item in row.data_types if item in allowed)
    return rows


def _combinable(choices: list[DataTypes], can: set[tuple[MLOperandDataType, ...]]) -> list[DataTypes]:
    """Return as many choices as can all be combined."""
    while failing := [combination for combination in product(*choices) if combination not in can]:
        failures = Counter(chain.from_iterable(map(enumerate, failing)))
        # Of all combinations of an item, the largest share.
        index, worst = max(failures, key=lambda place: failures[place] * len(choices[place[0]]))
        choices[index] = tuple(item for item in choices[index] if item != worst)
    return choices


def _highest_rank(
    operator: Operator[..., Any], data_types: Mapping[str, MLOperandDataType], capabilities: Capabilities
) -> int:
    """Return the highest rank up to which every example can be expanded; one below the lowest rank where none can."""
    if all(row.ranks.min == row.ranks.max for name, row in operator.limits.items() if name in operator.parameters):
        return capabilities.max_rank  # every rank has the examples of the usual rank
    lowest = min(row.ranks.min for row in operator.limits.values())
    highest = lowest - 1
    for rank in range(lowest, capabilities.max_rank + 1):
        if not _can_expand(operator, data_types, rank, capabilities):
            return highest
        highest = rank
    return highest


def _can_expand(
    operator: Operator[..., Any],
    data_types: Mapping[str, MLOperandDataType],
    rank: int,
    capabilities: Capabilities,
) -> bool:
    """Return whether every example of an operator, with these data types, is claimed or can be expanded."""
    try:
        for example in examples_of(operator, data_types, rank):
            _draw(operator, example, ExpandingBuilder(capabilities))
    except CannotExpandError:
        return False
    return True


def _draw(operator: Operator[..., Any], example: Example, builder: ExpandingBuilder) -> None:
    draw: Callable[..., object] = getattr(builder, operator.name)

    def operand(descriptor: MLOperandDescriptor) -> object:
        return builder.operand(Input(descriptor, "example"))

    arguments: dict[str, object] = {}
    for name, value in example.items():
        if isinstance(value, MLOperandDescriptor):
            arguments[name] = operand(value)
        elif isinstance(value, list) and value and isinstance(value[0], MLOperandDescriptor):
            arguments[name] = [operand(item) for item in value]
        else:
            arguments[name] = value
    draw(**arguments)


@cache
def missing_primitives(operator: Operator[..., Any], capabilities: Capabilities) -> tuple[str, ...]:
    """Return the names of the operators that a device would have to claim to run an operator that it cannot run.

    Where that depends on the data types, those that need the fewest. Empty where the device has none of the operator's
    data types.
    """
    if operator.decomposition is None:
        return (operator.name,)
    here = _allowed(operator, capabilities)
    choices = {name: here[name] for name in _independent(operator)}
    rank = min(USUAL_RANK, capabilities.max_rank)
    found: list[tuple[str, ...]] = []
    for combination in product(*choices.values()):
        builder = _Collecting(capabilities)
        for example in examples_of(operator, dict(zip(choices, combination, strict=True)), rank):
            _draw(operator, example, builder)
        found.append(tuple(sorted(builder.missing)))
    return min(found, key=len, default=())


def limits_in(operator: Operator[..., Any], capabilities: Capabilities) -> LimitsRow:
    """Return an operator's limits with the data types and ranks of a device alone."""
    support = support_of(operator, capabilities)
    return {
        name: attrs.evolve(
            row,
            data_types=support.data_types[name],
            ranks=RankRange(row.ranks.min, min(row.ranks.max, support.max_rank)),
        )
        for name, row in operator.limits.items()
    }
