"""The proposal "subgraph": operators that a builder's user has drawn once and named, to be called many times.

See docs/proposals/subgraph.md. ``open_ml(experimental={"subgraph"})`` switches it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Final, Self, final
from weakref import WeakKeyDictionary

import numpy as np

from webnn_py.core.api.argument_checks import named
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.refused_calls import report_refusal
from webnn_py.core.descriptors import MLOperandDescriptor, converted
from webnn_py.core.extension import Compile, Extension
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.handle import Handle
from webnn_py.core.message_text import in_brackets, listed, plain, shown
from webnn_py.core.operators.idl import usv_string
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.subgraph_call import SUBGRAPH_CALL
from webnn_py.extensions.subgraph_calls import SubgraphUse, compile_called
from webnn_py.text_tables import counted

MOST_OPERATORS: Final = 2**18
"""The most operators that the calls of one builder, and the calls in their bodies, may add up to."""

MOST_NESTED: Final = 16
"""The most lists and records within each other in ``config``."""

_PLAIN: Final[tuple[tuple[type, Callable[[Any], object]], ...]] = (
    (str, plain),
    (bool, bool),
    (np.bool_, bool),
    (Integral, int),
    (Real, float),
)
"""The types of values in ``config``, and their conversions."""


@final
class MLSubgraph(Handle):
    """Operators with formal inputs, which :func:`subgraph` calls; a proposal, not in the specification.

    Attributes:
        name: its name, a claim about what it computes.
        config: the choices by which it was drawn, by name.
        inputs: data type and shape of each formal input, by name.
        outputs: data type and shape of each output, by name.
    """

    _made_by = "webnn_py.extensions.subgraph.build_subgraph()"
    __slots__ = ("__weakref__", "_body", "_operator_count", "config", "inputs", "name", "outputs")
    _body: Graph
    _operator_count: int
    config: Mapping[str, Any]
    inputs: Mapping[str, MLOperandDescriptor]
    name: str
    outputs: Mapping[str, MLOperandDescriptor]

    @classmethod
    def _create(cls, name: str, config: Mapping[str, Any], body: Graph, operator_count: int) -> Self:
        self = cls.__new__(cls)
        self.name = name
        self.config = MappingProxyType(config)
        self.inputs = MappingProxyType({each: value.descriptor for each, value in body.inputs.items()})
        self.outputs = MappingProxyType({each: value.descriptor for each, value in body.outputs.items()})
        self._body = body
        self._operator_count = operator_count
        return self

    def _described(self) -> str:
        inputs, outputs = (listed([*names]) for names in (self.inputs, self.outputs))
        return f"{shown(self.name)}: {counted(self._operator_count, 'operator')}, inputs {inputs}, outputs {outputs}"


class _Definitions:
    """The definitions of one builder.

    Attributes:
        of_builder: those that may be called.
        formal: the name of the definition to which a formal input belongs.
    """

    def __init__(self) -> None:
        self.of_builder: set[MLSubgraph] = set()
        self.formal: dict[Input, str] = {}
        self._called = 0
        self._sizes: dict[Graph, int] = {}

    def define(self, name: str, config: Mapping[str, Any], inputs: Mapping[str, Value], reached: Graph) -> MLSubgraph:
        """Return a new definition with the operators of a graph; the formal inputs belong to it from now on.

        Raises:
            TypeError: an input or an output is refused.
        """
        formal: dict[str, Input] = {}
        for each, value in inputs.items():
            what = f"build_subgraph(): inputs[{shown(each)}]"
            if not each:
                raise TypeError("build_subgraph(): an input's name is empty; it must not be")
            if not isinstance(value, Input):
                kind = "a constant" if isinstance(value, Constant) else "an operator's output"
                raise TypeError(f"{what} is {kind}; it must be what input() returns")
            if value in formal.values():
                raise TypeError(f"{what} is an input that has another name already; make one for each")
            if value in self.formal:
                raise TypeError(f"{what} belongs to the sub-graph {shown(self.formal[value])}; make another input")
            formal[each] = value
        for value in _inputs_of(reached):
            if value not in formal.values():
                raise TypeError(
                    f"build_subgraph(): outputs depend on the input {shown(_text(value))}, which is not among inputs "
                    f"{listed([*formal])}; a body sees its own inputs and constants only"
                )
        body = Graph(formal, reached.outputs, reached.nodes)
        size = sum(self._sizes[node.options["body"]] if node.operator is SUBGRAPH_CALL else 1 for node in body.nodes)
        definition = MLSubgraph._create(name, config, body, size)
        self._sizes[body] = size
        self.of_builder.add(definition)
        self.formal |= dict.fromkeys(formal.values(), name)
        return definition

    def call(self, definition: MLSubgraph, operands: Mapping[str, Value], label: str, place: int) -> Node:
        """Return the node of a call.

        Raises:
            TypeError: the operands are not those that the definition takes, or there are too many operators.
        """
        where = f"subgraph(){in_brackets(label)}"
        if operands.keys() != definition.inputs.keys():
            raise TypeError(
                f"{where}: operands are {listed(sorted(operands))}; those of {shown(definition.name)} are "
                f"{listed(sorted(definition.inputs))}"
            )
        for name, descriptor in definition.inputs.items():
            if operands[name].descriptor != descriptor:
                raise TypeError(
                    f"{where}: operands[{shown(name)}] is {operands[name].descriptor}; it must be {descriptor}"
                )
        called = self._called + definition._operator_count
        if called > MOST_OPERATORS:
            raise TypeError(
                f"{where}: the calls of this builder stand for {called} operators; they must be at most "
                f"{MOST_OPERATORS}"
            )
        self._called = called
        body = definition._body
        given = {"operands": tuple(operands[name] for name in body.inputs), "captured": body.constants}
        options = {"body": body, "name": definition.name, "config": dict(definition.config)}
        descriptors = tuple(definition.outputs.values())
        return Node(SUBGRAPH_CALL, given, options, descriptors, label, (place,))

    def check(self, method: str, graph: Graph) -> None:
        """Refuse a graph that reaches formal inputs, or two inputs of one name.

        Raises:
            TypeError: it does.
        """
        for value in _inputs_of(graph):
            if value in self.formal:
                raise TypeError(
                    f"{method}(): outputs depend on the input {shown(_text(value))} of the sub-graph "
                    f"{shown(self.formal[value])}; subgraph() returns the outputs of a call"
                )
            if graph.inputs[value.name] is not value:
                raise TypeError(
                    f"{method}(): two inputs are called {shown(_text(value))}; each needs a name of its own"
                )


def _inputs_of(graph: Graph) -> Iterable[Input]:
    read = (value for node in graph.nodes for value in node.inputs if isinstance(value, Input))
    return dict.fromkeys(read)


def _text(value: Input) -> str:
    return value.name.partition("\0")[0]


def configuration(value: object) -> dict[str, Any]:
    """Convert ``config``: a mapping of names to booleans, numbers, strings, None, and lists and mappings of these.

    Raises:
        TypeError: it is something else, or nested too deeply.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"is {shown(value)}; it must be a mapping of names to plain data")
    return {name: item for name, item in _plain(value, "", 0).items() if item is not None}


def _plain(value: object, where: str, depth: int) -> Any:
    if depth > MOST_NESTED:
        raise TypeError(f"{where} is nested too deeply; it must have at most {MOST_NESTED} levels")
    if isinstance(value, Mapping):
        found = {}
        for name, item in value.items():
            if not isinstance(name, str):
                raise TypeError(f"{where}[{shown(name)}] is {shown(item)}, whose name must be a string")
            found[plain(name)] = _plain(item, f"{where}[{shown(name)}]", depth + 1)
        return found
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    if value is None:
        return None
    for kind, convert in _PLAIN:
        if isinstance(value, kind):
            return convert(value)
    raise TypeError(f"{where} is {shown(value)}; it must be a boolean, a number, a string, None, or a list or mapping")


# --- the extension, and its functions ----------------------------------------------------------------------------


class Subgraphs(Extension):
    """The extension: definitions of builders, and how the calls of graphs are computed."""

    name = "subgraph"
    allows_equal_names = True

    def __init__(self) -> None:
        self._definitions: WeakKeyDictionary[MLGraphBuilder, _Definitions] = WeakKeyDictionary()
        self._uses: WeakKeyDictionary[MLGraph, list[SubgraphUse]] = WeakKeyDictionary()

    def definitions(self, builder: MLGraphBuilder) -> _Definitions:
        """Return the definitions of a builder."""
        return self._definitions.setdefault(builder, _Definitions())

    def uses(self, graph: MLGraph) -> tuple[SubgraphUse, ...]:
        """Return how each call of a graph is computed."""
        return tuple(self._uses.get(graph, ()))

    def graph(self, builder: MLGraphBuilder, method: str, graph: Graph) -> Graph:
        """Refuse formal inputs, and two inputs of one name."""
        self.definitions(builder).check(method, graph)
        return graph

    def compile(self, graph: MLGraph, _source: Graph, step: Compile) -> Compile:
        """Replace calls before a graph is compiled."""
        uses = self._uses.setdefault(graph, [])
        return partial(compile_called, graph.context.device, step, uses)


def build_subgraph(
    builder: MLGraphBuilder,
    outputs: Mapping[str, MLOperand],
    *,
    name: str,
    inputs: Mapping[str, MLOperand],
    config: Mapping[str, Any] | None = None,
) -> MLSubgraph:
    """Define a sub-graph: ``buildSubgraph()``.

    The inputs are formal from now on: outputs of the graph must not depend on them, and other inputs may have their
    names. The builder goes on.

    Args:
        builder: the builder of all operands.
        outputs: what the body computes of the inputs and of constants, by name.
        name: what it computes; a device that has an operator for the name may use that, if it computes the same.
        inputs: inputs of the builder, by the names that calls bind operands to.
        config: the choices by which the body was drawn, by name: booleans, numbers, strings, None, and lists and
            mappings of these.

    Returns:
        The definition, for :func:`subgraph`.

    Raises:
        TypeError: an argument is refused.
        NotSupportedError: the extension was not asked for.
        InvalidStateError: the builder has built, or the context is lost.
    """
    try:
        extension = Subgraphs.on_context(builder.context, "build_subgraph()", _OTHERWISE)
        text = converted("build_subgraph(): name", usv_string, name)
        if not text:
            raise TypeError("build_subgraph(): name is empty; it must not be")
        formal = named("build_subgraph(): inputs", MLOperand, "operands", inputs)
        choices = converted("build_subgraph(): config", configuration, config)
        reached = builder.reached("build_subgraph", outputs)
        values = _bound(builder, "build_subgraph(): inputs", formal)
        return extension.definitions(builder).define(text, choices, values, reached)
    except Exception as error:
        report_refusal(builder.context, "build_subgraph", error, label=name if type(name) is str else "")
        raise


def subgraph(
    builder: MLGraphBuilder, definition: MLSubgraph, operands: Mapping[str, MLOperand], *, label: str = ""
) -> dict[str, MLOperand]:
    """Call a sub-graph.

    Args:
        builder: the builder of the definition and of the operands.
        definition: what :func:`build_subgraph` returned.
        operands: what each formal input is bound to, by name: an operand of its data type and shape.
        label: a name for the call, in messages and pictures.

    Returns:
        The outputs, by name.

    Raises:
        TypeError: an argument is refused.
        NotSupportedError: the extension was not asked for.
        InvalidStateError: the builder has built, or the context is lost.
    """
    try:
        return _called(builder, definition, operands, label)
    except Exception as error:
        report_refusal(builder.context, "subgraph", error, label=label if type(label) is str else "")
        raise


def _called(builder: MLGraphBuilder, definition: object, operands: object, label: object) -> dict[str, MLOperand]:
    definitions = Subgraphs.on_context(builder.context, "subgraph()", _OTHERWISE).definitions(builder)
    text = converted("subgraph(): label", usv_string, label)
    where = f"subgraph(){in_brackets(text)}"
    if type(definition) is not MLSubgraph:
        raise TypeError(f"{where}: definition is {shown(definition)}; it must be an MLSubgraph")
    given = named(f"{where}: operands", MLOperand, "operands", operands)
    builder.check_can_build("subgraph")
    if definition not in definitions.of_builder:
        raise TypeError(f"{where}: {definition!r} belongs to another builder")
    node = definitions.call(definition, _bound(builder, f"{where}: operands", given), text, builder.place)
    return dict(zip(definition.outputs, builder.append_node(node), strict=True))


def uses_of(graph: MLGraph) -> tuple[SubgraphUse, ...]:
    """Return how each call of a sub-graph is computed: by an operator or its body.

    Calls within bodies that are drawn follow. A graph that was loaded has none.

    Raises:
        NotSupportedError: the extension was not asked for.
    """
    return Subgraphs.on_context(graph.context, "uses_of()", "graph.describe() has the operators").uses(graph)


_OTHERWISE: Final = "draw the operators wherever they are needed"


def _bound(builder: MLGraphBuilder, what: str, operands: Mapping[str, MLOperand]) -> dict[str, Value]:
    values = {}
    for name, operand in operands.items():
        try:
            values[name] = builder.value_of(operand)
        except TypeError:
            raise TypeError(f"{what}[{shown(name)}] belongs to another builder") from None
    return values
