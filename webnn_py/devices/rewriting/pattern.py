"""Patterns: drawings to find in graphs.

A drawing is a function of a builder and of operands. A parameter stands for any value of a graph; for a constant where
it is annotated as :class:`~webnn_py.core.graph.Constant`; for a constant of one element where it is annotated as
``float``.
Numbers in a drawing are constants of one element with that value. Options that a drawing leaves out have their
defaults; ``builder.any_option(name)`` takes any value of an option. Operands of commutative operators are matched in
both orders.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs
import numpy as np

from webnn_py.core.graph import Constant, Node, Output, Value
from webnn_py.core.operators.composite import COMPOSITES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.registry import OPERATORS

NUMBER_TOLERANCE: Final = 1e-6
"""The relative tolerance of the numbers in a graph: exporters write √2 with six digits or more."""


@attrs.frozen(eq=False)
class PatternParameter:
    """Any value, of a kind: "value", "constant" or "number"."""

    name: str
    kind: str = "value"


@attrs.frozen(eq=False)
class AnyOption:
    """Any value of an option."""

    name: str


@attrs.frozen(eq=False)
class PatternNode:
    """The result of an operator."""

    operator: Operator[..., Any]
    operands: Mapping[str, Element]
    options: Mapping[str, object]


Element: TypeAlias = PatternParameter | PatternNode | float
"""A part of a pattern that a value has to match."""


class PatternBuilder:
    """Draws patterns with the methods of a builder."""

    @staticmethod
    def any_option(name: str) -> AnyOption:
        """Return a placeholder for any value of an option, which conditions and replacements get as ``name``."""
        return AnyOption(name)

    def __getattr__(self, name: str) -> Callable[..., PatternNode]:
        operator = OPERATORS.get(name) or COMPOSITES.get(name)
        if operator is None:
            raise AttributeError(f"patterns have no operator {name!r}")

        def draw(*args: object, **kwargs: object) -> PatternNode:
            if operator.returns_sequence:
                raise TypeError(f"{name}: patterns have operators of one output only")
            given = inspect.signature(operator.function).bind(*args, **kwargs).arguments
            operands: dict[str, Element] = {}
            options: dict[str, object] = {}
            for parameter in operator.parameters.values():
                value = given.get(parameter.name, parameter.default)
                if parameter.name == "label" or (parameter.is_operand and value is None):
                    continue
                if not parameter.is_operand:
                    options[parameter.name] = tuple(value) if isinstance(value, list) else value
                elif isinstance(value, PatternParameter | PatternNode):
                    operands[parameter.name] = value
                elif isinstance(value, int | float):
                    operands[parameter.name] = float(value)
                else:
                    raise TypeError(f"{name}: {parameter.name} is {value!r}; it must be an operand or a number")
            return PatternNode(operator, operands, options)

        return draw


@attrs.frozen
class Match:
    """A place in a graph that a pattern matches.

    Attributes:
        values: the values that the drawing's parameters stand for.
        numbers: the numbers, of parameters annotated as ``float``.
        options: the values of ``any_option()``.
        nodes: the node of each operator of the drawing.
    """

    values: Mapping[str, Value] = attrs.field(factory=dict)
    numbers: Mapping[str, float] = attrs.field(factory=dict)
    options: Mapping[str, object] = attrs.field(factory=dict)
    nodes: Mapping[PatternNode, Node] = attrs.field(factory=dict)

    @property
    def drawn(self) -> tuple[int, ...]:
        """The places of the operators that all its nodes compute."""
        return tuple(sorted({place for node in self.nodes.values() for place in node.drawn}))


@attrs.frozen(eq=False)
class Pattern:
    """A drawing to find in graphs.

    Attributes:
        root: the operator that gives the result.
        operators: all operators.
    """

    root: PatternNode
    operators: frozenset[Operator[..., Any]]

    @classmethod
    def from_drawing(cls, drawing: Callable[..., Any]) -> Pattern:
        """Return the pattern that a function draws."""
        hints = inspect.get_annotations(drawing)
        _builder, *names = inspect.signature(drawing).parameters
        kinds = {"float": "number", float: "number", "Constant": "constant", Constant: "constant"}
        parameters = [PatternParameter(name, kinds.get(hints.get(name), "value")) for name in names]
        root = drawing(PatternBuilder(), *parameters)
        if not isinstance(root, PatternNode):
            raise TypeError(f"the drawing returns {root!r}; it must return the result of an operator")
        operators: set[Operator[..., Any]] = set()
        ahead: list[Element] = [root]
        while ahead:
            element = ahead.pop()
            if isinstance(element, PatternNode):
                operators.add(element.operator)
                ahead += element.operands.values()
        return cls(root, frozenset(operators))

    def matches(self, node: Node) -> Iterator[Match]:
        """Yield the ways in which a node may be the root of the drawing."""
        return _of_drawn(self.root, node, Match())


def _of_element(element: Element, value: Value, found: Match) -> Iterator[Match]:
    if isinstance(element, PatternParameter):
        yield from _of_parameter(element, value, found)
    elif isinstance(element, PatternNode):
        if isinstance(value, Output):
            yield from _of_drawn(element, value.node, found)
    elif is_number(value, element):
        yield found


def _of_parameter(parameter: PatternParameter, value: Value, found: Match) -> Iterator[Match]:
    known = found.values.get(parameter.name)
    if known is not None:
        if known is value:
            yield found
        return
    if parameter.kind == "constant" and not isinstance(value, Constant):
        return
    numbers = found.numbers
    if parameter.kind == "number":
        number = number_of(value)
        if number is None:
            return
        numbers = {**numbers, parameter.name: number}
    yield attrs.evolve(found, values={**found.values, parameter.name: value}, numbers=numbers)


def _of_drawn(drawn: PatternNode, node: Node, found: Match) -> Iterator[Match]:
    if node.operator is not drawn.operator:
        return
    known = found.nodes.get(drawn)
    if known is not None:
        if known is node:
            yield found
        return
    options = _options(drawn, node)
    if options is None or node.operands.keys() != drawn.operands.keys():
        return
    found = attrs.evolve(found, options={**found.options, **options}, nodes={**found.nodes, drawn: node})
    elements = [*drawn.operands.values()]
    yield from _of_operands(elements, node.inputs, found)
    if drawn.operator.is_commutative and elements[0] is not elements[1]:
        yield from _of_operands(elements[::-1], node.inputs, found)


def _of_operands(elements: list[Element], values: tuple[Value, ...], found: Match) -> Iterator[Match]:
    if not elements:
        yield found
        return
    for match in _of_element(elements[0], values[0], found):
        yield from _of_operands(elements[1:], values[1:], match)


def _options(drawn: PatternNode, node: Node) -> dict[str, object] | None:
    """Return the options that the pattern leaves open; None where another one differs."""
    taken: dict[str, object] = {}
    for name, expected in drawn.options.items():
        value = node.options[name]
        if isinstance(expected, AnyOption):
            taken[expected.name] = value
        elif value != expected:
            return None
    return taken


def number_of(value: Value) -> float | None:
    """Return the number in a constant of one element on the host; None for any other value."""
    if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray) or value.data.size != 1:
        return None
    return float(value.data.reshape(-1)[0])


def is_number(value: Value, expected: float) -> bool:
    """Return whether a value is a number, to :data:`NUMBER_TOLERANCE`."""
    number = number_of(value)
    return number is not None and math.isclose(number, expected, rel_tol=NUMBER_TOLERANCE)
