"""The graph: what the builder makes and a device reads. Frozen, without arrays' values or handles."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import Any, Final
from weakref import ref

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.frozen import frozen
from webnn_py.core.message_text import in_brackets
from webnn_py.core.operators.declaration import Operator

_MAKING: Final = RLock()
"""Held while a node's results are made: two threads that read a graph must get the same."""

_MOST_INPUTS: Final = 16
"""The most inputs that a node's text lists."""


@frozen(eq=False)
class Value:
    """An edge of the graph: the data of one operand."""

    descriptor: MLOperandDescriptor


@frozen(eq=False)
class Input(Value):
    """A graph input: its data come with each dispatch."""

    name: str


@frozen(eq=False)
class Constant(Value):
    """A constant.

    Attributes:
        data: the host's copy of its bytes, or the device's storage of a constant buffer.
        key: stands for the bytes; constants of equal keys, data types and shapes are on a device once.
    """

    data: object
    key: Hashable | None = None


@frozen(eq=False)
class Output(Value):
    """The ``index``-th output of a node."""

    node: Node
    index: int


@frozen(eq=False)
class Node:
    """One use of an operator.

    Attributes:
        operator: the declaration.
        operands: the operands that are there, by parameter; a tuple for a sequence of operands.
        options: every other argument, by parameter; absent ones as None.
        outputs: the descriptors of the outputs.
        label: the label that the script gave, or "".
        drawn: the places, in the order of drawing, of the operators that it computes; more than one where a device has
            put several together, and the same for all that it puts in an operator's place.
        inputs: the operands in declaration order, sequences flattened.
    """

    operator: Operator[..., Any]
    operands: Mapping[str, Value | tuple[Value, ...]]
    options: Mapping[str, Any]
    outputs: tuple[MLOperandDescriptor, ...]
    label: str = ""
    drawn: tuple[int, ...] = ()
    inputs: tuple[Value, ...] = attrs.field(init=False, repr=False)
    _results: tuple[ref[Output], ...] = attrs.field(init=False, repr=False, default=())

    @inputs.default
    def _inputs(self) -> tuple[Value, ...]:
        flat: list[Value] = []
        for operand in self.operands.values():
            if isinstance(operand, tuple):
                flat += operand
            else:
                flat.append(operand)
        return tuple(flat)

    @property
    def results(self) -> tuple[Output, ...]:
        """The values that come out, one for each output; the same objects as long as anybody has them.

        An output refers to its node, so its node refers to it weakly: in a cycle, graphs and their constants would stay
        in memory until the garbage collector runs, which may be never.
        """
        known = self._results
        if len(known) == 1:  # as nearly all nodes have it
            result = known[0]()
            if result is not None:
                return (result,)
        with _MAKING:
            if len(self.outputs) == 1:
                result = self._results[0]() if self._results else None
                if result is None:
                    result = Output(self.outputs[0], self, 0)
                    object.__setattr__(self, "_results", (ref(result),))
                return (result,)
            held = [result() for result in self._results] or [None] * len(self.outputs)
            results = tuple(
                [
                    Output(descriptor, self, index) if result is None else result
                    for index, (descriptor, result) in enumerate(zip(self.outputs, held, strict=True))
                ]
            )
            if None in held:
                object.__setattr__(self, "_results", tuple(map(ref, results)))
            return results

    def value(self, name: str) -> Value:
        """Return the operand called ``name``, which is there and no sequence."""
        value = self.operands[name]
        assert isinstance(value, Value)  # noqa: S101 - for type checkers
        return value

    def operand(self, name: str) -> MLOperandDescriptor:
        """Return the descriptor of the operand called ``name``, which is there and no sequence."""
        return self.value(name).descriptor

    def __str__(self) -> str:
        types = ", ".join(str(value.descriptor) for value in self.inputs[:_MOST_INPUTS])
        if len(self.inputs) > _MOST_INPUTS:
            types = f"{types}, ..."
        label = in_brackets(self.label)
        return f"{self.operator.spec_name}{label}({types})"

    def __repr__(self) -> str:
        """Leave out the nodes before it: where both operands come from one node, their text doubles at each."""
        return f"<Node {self}>"


@frozen(eq=False)
class Graph:
    """A whole graph: nodes in an order in which they can run, and only those that the outputs need."""

    inputs: Mapping[str, Input]
    outputs: Mapping[str, Value]
    nodes: tuple[Node, ...]

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Return the constants that nodes read, or that are outputs, each once."""
        read = chain.from_iterable([*[node.inputs for node in self.nodes], self.outputs.values()])
        return tuple(dict.fromkeys([value for value in read if isinstance(value, Constant)]))

    @cached_property
    def readers(self) -> Mapping[Value, Sequence[Node | None]]:
        """The nodes that read each value, as often as they do, in their order; None for an output of the graph."""
        readers: dict[Value, list[Node | None]] = {}
        for node in self.nodes:
            for value in node.inputs:
                readers.setdefault(value, []).append(node)
        for value in self.outputs.values():
            readers.setdefault(value, []).append(None)
        return readers

    def nodes_reading(self, value: Value) -> list[Node]:
        """Return the nodes that read a value, as often as they read it."""
        return [node for node in self.readers.get(value, ()) if node is not None]

    def has_one_reader(self, value: object) -> bool:
        """Return whether one node, or one output of the graph, reads a value, and does so once."""
        return isinstance(value, Value) and len(self.readers.get(value, ())) == 1

    @property
    def descriptors(self) -> Iterator[MLOperandDescriptor]:
        """Those of all that nodes read and give."""
        for node in self.nodes:
            yield from (value.descriptor for value in node.inputs)
            yield from node.outputs

    @classmethod
    def reaching(cls, outputs: Mapping[str, Value]) -> Graph:
        """Walk back from ``outputs`` and keep what they need."""
        inputs: dict[str, Input] = {}
        constants: dict[Constant, None] = {}
        nodes: list[Node] = []
        met: set[Node] = set()
        behind: list[tuple[Node | None, Iterator[Value]]] = []  # whose operands are not all looked at, and the others
        node: Node | None = None
        walk: Iterator[Value] = iter(outputs.values())
        while True:
            for value in walk:
                if isinstance(value, Output):
                    if value.node not in met:
                        behind.append((node, walk))
                        node = value.node
                        met.add(node)
                        walk = iter(node.inputs)
                        break
                elif isinstance(value, Constant):
                    constants[value] = None
                elif isinstance(value, Input):
                    inputs[value.name] = value
            else:
                if node is None:
                    break
                nodes.append(node)
                node, walk = behind.pop()
        graph = cls(inputs, dict(outputs), tuple(nodes))
        # Met on the way: to look at all values once more takes as long as the walk.
        object.__setattr__(graph, "constants", tuple(constants))
        return graph
