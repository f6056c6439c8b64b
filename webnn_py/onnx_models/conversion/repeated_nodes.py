"""Repeated nodes, as in a loop's body: once converted, their operators are drawn again for other operands.

What a rule draws follows from the node, the descriptors of its operands and its static inputs, unless the rule asks for
more (``ConversionContext.is_repeatable``). So the operators are drawn again on other operands, with nothing to convert
or to check.
"""

from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Final, Self, final

import attrs
import numpy as np
from onnx import NodeProto

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.graph import Constant, Node, Output
from webnn_py.core.graph import Value as GraphValue
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.folding.evaluation import fold
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.problems import node_name
from webnn_py.onnx_models.reading.node_order import Live

MOST_COMPARED: Final = 64
"""The most bytes of a static input that is compared by its elements; others are compared by identity."""


@attrs.frozen(eq=False)
class RepeatedNode:
    """A node of an inner graph, read once for all iterations: each access to a field of a message makes new objects.

    Attributes:
        node: the node.
        name: its name in labels.
        inputs: the names of its inputs, "" for absent ones.
        outputs: the names of its outputs, "" for those that it leaves out.
        wanted: for each output, whether it is used.
    """

    node: NodeProto
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    wanted: tuple[bool, ...]

    @classmethod
    def from_node(cls, node: NodeProto, needed: Container[str]) -> Self:
        """Read a node, of which outputs of these names are needed."""
        outputs = tuple(node.output[:])
        wanted = tuple([bool(name) and name in needed for name in outputs])
        return cls(node, node_name(node), tuple(node.input[:]), outputs, wanted)


@attrs.frozen(eq=False)
class Drawn:
    """The result of converting a node.

    Attributes:
        node: the node, which is kept as its identity is part of the key.
        values: its inputs.
        operators: the operators that were drawn for it, with their results.
        results: its results.
    """

    node: NodeProto
    values: Sequence[Value | None]
    operators: Sequence[tuple[Node, Sequence[Output]]]
    results: Sequence[Value | None]


@final
class Repetition:
    """The results of converting nodes, by node and inputs.

    Args:
        builder: what they are drawn with.
    """

    def __init__(self, builder: MLGraphBuilder) -> None:
        self._builder = builder
        self._drawn: dict[Hashable, Drawn] = {}
        self._computed: dict[int, NodeProto] = {}
        self._varying: set[int] = set()
        self._bodies: dict[int, tuple[Live, Sequence[RepeatedNode]]] = {}

    def nodes(self, needed: Live) -> Sequence[RepeatedNode]:
        """Return the nodes of an inner graph, which are read the first time."""
        known = self._bodies.get(id(needed))
        if known is None:
            known = self._bodies[id(needed)] = (
                needed,
                [RepeatedNode.from_node(node, needed.names) for node in needed.nodes],
            )
        return known[1]

    def key(self, node: NodeProto, values: Sequence[Value | None], wanted: Sequence[bool]) -> Hashable:
        """Return what a conversion of a node depends on."""
        parts: list[Hashable] = [id(node), *wanted]
        first: dict[int, int] = {}
        for index, value in enumerate(values):
            if isinstance(value, MLOperand):
                kind = type(self._builder.value_of(value))
                parts.append((value.data_type, value.shape, kind, first.setdefault(id(value), index)))
            elif isinstance(value, np.ndarray) and value.nbytes <= MOST_COMPARED:
                parts.append((value.dtype, value.shape, value.tobytes()))
            else:
                parts.append(id(value))
        return tuple(parts)

    def drawn_again(self, key: Hashable, values: Sequence[Value | None], label: str) -> Sequence[Value | None] | None:
        """Draw for these inputs what was drawn before, and return the results; None where nothing was.

        Args:
            key: what the conversion depends on.
            values: the inputs.
            label: the label of the operators.

        Raises:
            InvalidStateError: the builder cannot draw any more.
        """
        drawn = self._drawn.get(key)
        if drawn is None:
            return None
        operands = {
            before: now
            for before, now in zip(drawn.values, values, strict=True)
            if isinstance(before, MLOperand) and isinstance(now, MLOperand)
        }
        own, again = self._builder.value_of, self._drawn_alike(drawn.operators, operands, label)
        return [again.get(own(result), result) if isinstance(result, MLOperand) else result for result in drawn.results]

    def _drawn_alike(
        self, drawn: Sequence[tuple[Node, Sequence[Output]]], operands: Mapping[MLOperand, MLOperand], label: str
    ) -> dict[GraphValue, MLOperand]:
        """Draw operators again that were checked already, on other operands of the same descriptors.

        Args:
            drawn: the operators and their results, each after those whose results it takes.
            operands: by those that were given before, those that are given now; all others stay the same.
            label: of the new operators.

        Returns:
            The operands in the place of those that were given and those that came out before.

        Raises:
            InvalidStateError: the builder cannot draw any more.
        """
        builder = self._builder
        builder.check_can_build("draw")
        own = builder.value_of
        again = {own(before): now for before, now in operands.items()}
        values = {before: own(now) for before, now in again.items()}
        new = values.get
        for node, before in drawn:
            given = {
                name: new(operand, operand)
                if isinstance(operand, GraphValue)
                else tuple([new(item, item) for item in operand])
                for name, operand in node.operands.items()
            }
            node_again = Node(node.operator, given, node.options, node.outputs, label, (builder.place,))
            for result, operand in zip(before, builder.append_node(node_again), strict=True):
                again[result], values[result] = operand, own(operand)
        return again

    def is_varying(self, node: NodeProto) -> bool:
        """Return whether a node was computed for several values already, so that no key of its is looked up."""
        return id(node) in self._varying

    def computed(
        self, node: NodeProto, values: Sequence[Value | None], opsets: Mapping[str, int], expenses: Expenses
    ) -> Sequence[StaticValue | None] | None:
        """Compute a node that was computed before, now for other values; None where all rules have to be asked."""
        if id(node) not in self._computed:
            return None
        known = [value for value in values if not isinstance(value, MLOperand)]
        if len(known) < len(values) or any(value is not None and value.size == 0 for value in known):
            return None
        self._varying.add(id(node))
        try:
            return fold(node, known, opsets, expenses)
        except Refused:
            return None

    def note_computed(self, node: NodeProto) -> None:
        """Remember that a node is computed while building, for any static inputs."""
        self._computed[id(node)] = node

    def note(
        self,
        key: Hashable,
        node: NodeProto,
        values: Sequence[Value | None],
        context: ConversionContext,
        results: Sequence[Value | None],
    ) -> None:
        """Keep what a node came to, if it always comes to that."""
        own = self._builder.value_of
        known = {own(value) for value in values if isinstance(value, MLOperand)}
        known.update(result for operator in context.drawn for result in operator.results)
        read = {value for operator in context.drawn for value in operator.inputs if not isinstance(value, Constant)}
        read.update(own(result) for result in results if isinstance(result, MLOperand))
        if context.is_repeatable and read <= known:
            operators = [(operator, operator.results) for operator in context.drawn]
            self._drawn[key] = Drawn(node, list(values), operators, results)
