"""Nodes that are converted time and again, as those of a loop's body: the next time, what they draw is drawn alike.

What a rule draws follows from the node, the descriptors of its operands and its static inputs, unless the rule asks for
more (``ConversionContext.is_repeatable``). So the operators are drawn again on other operands, with nothing to convert
or to check.
"""

from collections.abc import Container, Hashable, Sequence
from typing import Final, Self, final

import attrs
import numpy as np
from onnx import NodeProto

from webnn_py.graph import Constant, Node
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import node_name
from webnn_py.onnx_models.reading.node_order import Live
from webnn_py.operators.operand import MLOperand
from webnn_py.script.builder import MLGraphBuilder

MOST_COMPARED: Final = 64
"""Static inputs of so many bytes are told by what they hold, others by being the same array."""


@attrs.frozen(eq=False)
class RepeatedNode:
    """A node of an inner graph, read once for all iterations: each field of a message makes its objects anew.

    Attributes:
        node: the node.
        name: what it is called in labels.
        inputs: the names of its inputs, "" for absent ones.
        outputs: the names of its outputs, "" for those that it leaves out.
        wanted: for each output, whether somebody uses it.
    """

    node: NodeProto
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    wanted: tuple[bool, ...]

    @classmethod
    def of(cls, node: NodeProto, needed: Container[str]) -> Self:
        """Read a node, of which outputs of these names are needed."""
        outputs = tuple(node.output)
        wanted = tuple([bool(name) and name in needed for name in outputs])
        return cls(node, node_name(node), tuple(node.input), outputs, wanted)


@attrs.frozen(eq=False)
class Drawn:
    """The result of converting a node.

    Attributes:
        node: the node, which is kept as its identity is part of the key.
        values: its inputs.
        operators: what was drawn for it.
        results: what it gave.
    """

    node: NodeProto
    values: Sequence[Value | None]
    operators: Sequence[Node]
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
        self._read: dict[int, tuple[Live, Sequence[RepeatedNode]]] = {}

    def nodes(self, live: Live) -> Sequence[RepeatedNode]:
        """Return the nodes of an inner graph, which are read the first time."""
        known = self._read.get(id(live))
        if known is None:
            known = self._read[id(live)] = live, [RepeatedNode.of(node, live.names) for node in live.nodes]
        return known[1]

    def key(self, node: NodeProto, values: Sequence[Value | None], wanted: Sequence[bool]) -> Hashable:
        """Return what a conversion of a node depends on."""
        parts: list[Hashable] = [id(node), *wanted]
        first: dict[int, int] = {}
        for index, value in enumerate(values):
            if isinstance(value, MLOperand):
                kind = type(self._builder._values[value])
                parts.append((value._descriptor, kind, first.setdefault(id(value), index)))
            elif isinstance(value, np.ndarray) and value.nbytes <= MOST_COMPARED:
                parts.append((value.dtype, value.shape, value.tobytes()))
            else:
                parts.append(id(value))
        return tuple(parts)

    def results(self, key: Hashable, values: Sequence[Value | None], label: str) -> Sequence[Value | None] | None:
        """Draw for these inputs what was drawn before; None where nothing was.

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
        results = [result for result in drawn.results if isinstance(result, MLOperand)]
        operands.update(self._builder._drawn_alike(drawn.operators, operands, results, label))
        return [operands[result] if isinstance(result, MLOperand) else result for result in drawn.results]

    def note(
        self,
        key: Hashable,
        node: NodeProto,
        values: Sequence[Value | None],
        context: ConversionContext,
        results: Sequence[Value | None],
    ) -> None:
        """Keep what a node came to, if it always comes to that."""
        own = self._builder._values
        known = {own[value] for value in values if isinstance(value, MLOperand)}
        known.update(result for operator in context.drawn for result in operator.results)
        read = {value for operator in context.drawn for value in operator.inputs if not isinstance(value, Constant)}
        read.update(own[result] for result in results if isinstance(result, MLOperand))
        if context.is_repeatable and read <= known:
            self._drawn[key] = Drawn(node, list(values), context.drawn, results)
