"""The states, inputs and outputs of a loop's steps, found by comparing all steps of an unrolled loop."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Input, Node, Output, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators.declaration import of_operands
from webnn_py.core.operators.indexing import gather
from webnn_py.core.operators.movement import slice_
from webnn_py.devices.composites.loops import LOOP, loop_outputs
from webnn_py.devices.onnxruntime.passes.step_inputs import whole_of
from webnn_py.devices.rewriting.passes import ReadConstant

Place = tuple[int, int]
"""The place of a value within a step: the index of its node, and of the output."""

LABEL: Final = "in a loop"

MOST_BYTES: Final = 2**12
"""The largest constant, in bytes, that may differ by step."""


class NoLoopError(Exception):
    """The steps cannot be written as a loop."""


@final
class RepeatedSteps:
    """The repeated steps of an unrolled loop.

    Args:
        nodes: the nodes of all steps, in order; each node repeats the one a step before, with other operands.
        length: the number of nodes in a step.
        contents: returns the values of constants.

    Attributes:
        places: the index of each node.
        count: the number of steps.

    Raises:
        NoLoopError: the steps are no loop.
    """

    def __init__(self, nodes: Sequence[Node], length: int, contents: ReadConstant) -> None:
        self.places = {node: place for place, node in enumerate(nodes)}
        self.count = len(nodes) // length
        self._nodes = nodes
        self._length = length
        self._contents = contents
        self._count = 0
        self._builder = RewriteBuilder(LABEL, nodes[0].drawn)
        self._states: dict[Place, tuple[Value, Input]] = {}
        self._scanned: dict[tuple[Value, ...], tuple[Value, bool, Input]] = {}
        self._outer: dict[Value, Input] = {}
        self._made: dict[Place, Value] = {}
        for slot in range(length):
            self._add(slot)
        if not self._states or not self._scanned:
            raise NoLoopError

    def of_step(self, place: Place, step: int) -> Value:
        """Return the value at a place of one of the steps."""
        slot, index = place
        return self._nodes[step * self._length + slot].results[index]

    def place_of(self, value: Value) -> Place | None:
        """Return the place of a value of the first step; None for other values."""
        if not isinstance(value, Output) or self.places.get(value.node, self._length) >= self._length:
            return None
        return self.places[value.node], value.index

    def as_one(self, stacks: Sequence[tuple[Place, bool]]) -> tuple[dict[Place, Value], Sequence[Value]] | None:
        """Return the results of one node for all steps: the last states by place, and the stacked values.

        None if one of its operands depends on the steps themselves.

        Args:
            stacks: the places of values that are stacked over all steps, and whether the last step's is first.
        """
        scanned = [*self._scanned.values()]
        inputs = [
            *(item for _, item in self._states.values()),
            *(item for _, _, item in scanned),
            *self._outer.values(),
        ]
        made = [self._made[place] for place in (*self._states, *(place for place, _ in stacks))]
        reached = Graph.reaching({f"o{number}": value for number, value in enumerate(made)})
        step = Graph({value.name: value for value in inputs}, reached.outputs, reached.nodes)
        states, parts = tuple([value for value, _ in self._states.values()]), tuple([value for value, _, _ in scanned])
        operands = {"states": states, "scanned": parts, "outer": tuple(self._outer)}
        if _waits_for(chain(*operands.values()), self.places):
            return None
        directions = (*(int(way) for _, way, _ in scanned), *(int(way) for _, way in stacks))
        options = {"step": step, "steps": self.count, "directions": directions}
        outputs = loop_outputs(step, self.count, len(states))
        drawn = tuple(sorted({place for node in self._nodes for place in node.drawn}))
        results = Node(LOOP, operands, options, outputs, LABEL, drawn).results
        return dict(zip(self._states, results, strict=False)), results[len(states) :]

    def _add(self, slot: int) -> None:
        """Make a node of the loop's step from the step's own values."""
        node = self._nodes[self._length + slot]
        if node.operator is gather or node.operator is slice_:
            try:
                self._made[slot, 0] = self._part([step.results[0] for step in self._nodes[slot :: self._length]])
            except NoLoopError:
                if any(step.options != node.options for step in self._nodes[slot :: self._length]):
                    raise
            else:
                return
        operands = iter([self._operand(slot, place) for place in range(len(node.inputs))])
        given = of_operands(node.operands, lambda _: next(operands))
        made = Node(node.operator, given, node.options, node.outputs, node.label, node.drawn)
        self._made.update({(slot, index): value for index, value in enumerate(made.results)})

    def _input(self, descriptor: MLOperandDescriptor) -> Input:
        self._count += 1
        return Input(descriptor, f"i{self._count}")

    def _column(self, slot: int, place: int) -> list[Value]:
        """Return the operands that all steps read at a place."""
        return [node.inputs[place] for node in self._nodes[slot :: self._length]]

    def _operand(self, slot: int, place: int) -> Value:
        column = self._column(slot, place)
        first, second = column[:2]
        there = self.places.get(second.node) if isinstance(second, Output) else None
        if there is None or not isinstance(second, Output):
            return self._from_without(column)
        step, source = divmod(there, self._length)
        of_source = [node.results[second.index] for node in self._nodes[source :: self._length]]
        if step == 1 and column == of_source and source < slot:
            return self._made[source, second.index]
        if step or column[1:] != of_source[:-1]:
            raise NoLoopError
        return self._state((source, second.index), first)

    def _state(self, place: Place, initial: Value) -> Value:
        self._check_outside([initial])
        value, state = self._states.setdefault(place, (initial, self._input(initial.descriptor)))
        if value is not initial or initial.descriptor != self.of_step(place, 0).descriptor:
            raise NoLoopError
        return state

    def _from_without(self, column: Sequence[Value]) -> Value:
        first = column[0]
        if all(value is first for value in column):
            return self._outer.setdefault(first, self._input(first.descriptor))
        self._check_outside(column)
        return self._part(column)

    def _part(self, column: Sequence[Value]) -> Value:
        """Return the input that stands for the part that each step reads of a scanned value."""
        there = self._scanned.get(tuple(column))
        if there is None:
            if any(value.descriptor != column[0].descriptor for value in column):
                raise NoLoopError
            there = *self._whole(column), self._input(column[0].descriptor)
            self._scanned[tuple(column)] = there
        return there[2]

    def _check_outside(self, values: Sequence[Value]) -> None:
        if any(isinstance(value, Output) and value.node in self.places for value in values):
            raise NoLoopError

    def _whole(self, column: Sequence[Value]) -> tuple[Value, bool]:
        """Return the value whose parts along the first axis are the column, and whether they are in reverse order."""
        descriptor = column[0].descriptor
        shape = len(column), *descriptor.shape
        constants = [value for value in column if isinstance(value, Constant)]
        if len(constants) == len(column) and descriptor.byte_length <= MOST_BYTES:
            array = np.stack([self._contents(value).reshape(descriptor.shape) for value in constants])
            return Constant(MLOperandDescriptor(descriptor.data_type, shape), array), False
        found = whole_of(column, self._contents)
        if found is None:
            raise NoLoopError
        whole, is_backward = found
        self._check_outside([whole])
        if whole.descriptor.shape != shape:
            whole = self._builder.value(self._builder.reshape(self._builder.operand(whole), [*shape]))
        return whole, is_backward


def _waits_for(values: Iterable[Value], nodes: Container[Node]) -> bool:
    """Return whether values depend on any of the nodes."""
    met: set[Node] = set()
    left = [value.node for value in values if isinstance(value, Output)]
    while left:
        node = left.pop()
        if node in met:
            continue
        if node in nodes:
            return True
        met.add(node)
        left += [value.node for value in node.inputs if isinstance(value, Output)]
    return False


def joined_by(node: Node) -> Iterator[Value]:
    """Yield the operands of a concatenation, without reshapes; none where their elements do not follow each other."""
    if any(size > 1 for size in node.inputs[0].descriptor.shape[: node.options["axis"]]):
        return
    for value in node.inputs:
        is_reshaped = isinstance(value, Output) and value.node.operator.name == "reshape"
        yield value.node.inputs[0] if is_reshaped and isinstance(value, Output) else value
