"""Loops as one node with a single step in it, for devices that run them so.

The body is converted once, on operands that stand for the states and for the parts of values that a step reads. Static
values, such as the number of the iteration, are computed for all iterations: they may end the loop, and choose the row
that an iteration reads. A loop that needs them otherwise is unrolled.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Self

import attrs
import numpy as np
from onnx import AttributeProto, NodeProto

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Graph, Input, Value
from webnn_py.core.graph_rewriting import with_operands
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.devices.composites.loops import LOOP, RunsLoops
from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.conversion.node_conversion import is_computed, kind_of
from webnn_py.onnx_models.conversion.scopes import MISSING, Converted, Steps, tensor_of
from webnn_py.onnx_models.folding.evaluation import MOST_KEPT, fold
from webnn_py.onnx_models.reading.functions import called_name, operator_name, with_attributes
from webnn_py.onnx_models.reading.node_order import used_by
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.arguments import check_form

if TYPE_CHECKING:
    from webnn_py.onnx_models.conversion.control_flow import ControlFlowNode, InnerGraph


def rolled_loop(
    call: ControlFlowNode, body: InnerGraph, carried: Sequence[Converted], most: int | None
) -> Steps[Sequence[Converted]]:
    """Draw a Loop as one node.

    Args:
        call: the Loop, of one iteration at least.
        body: its body.
        carried: the first states.
        most: the trip count, if there is one.

    Returns:
        The last states, then the stacked outputs; nothing where the loop has to be unrolled.
    """
    problems = len(call.problems)
    names = [item.name for item in body.graph.input]
    if call.context.draws_whole(LOOP) and len({*names}) == len(names):
        states = dict(zip(names[2:], carried, strict=True))
        try:
            with call.context.expenses.refunded():
                return (yield from _SortedBody.from_call(call, body, states).drawn(most))
        except Refused:
            del call.problems[problems:]
    return ()


@attrs.frozen(eq=False)
class _SortedBody:
    """A Loop's body, with its nodes by how they depend on what varies by iteration: its number, and static states.

    Attributes:
        call: the Loop.
        body: its body.
        states: the first states, by name.
        stays: the names of the states that stay.
        changing: the static states that change, and the names of their next values.
        outside: the values that are the same at each iteration, by name; None for others.
        known: the small static ones, what is computed of them, and the first values of the states that change.
        same: the nodes that do not depend on what varies.
        varying: the nodes of static values that do.
        rows: the nodes of operands that do.
    """

    call: ControlFlowNode
    body: InnerGraph
    states: Mapping[str, Converted]
    stays: frozenset[str]
    changing: Mapping[str, str]
    outside: Mapping[str, Converted]
    known: dict[str, StaticValue]
    same: list[NodeProto] = attrs.field(factory=list)
    varying: list[NodeProto] = attrs.field(factory=list)
    rows: list[NodeProto] = attrs.field(factory=list)

    @classmethod
    def from_call(cls, call: ControlFlowNode, body: InnerGraph, states: Mapping[str, Converted]) -> Self:
        """Sort the nodes of a body.

        Raises:
            Refused: a node cannot be computed.
        """
        number, condition = [item.name for item in body.graph.input[:2]]
        after = dict(zip(states, [item.name for item in body.graph.output[1:]], strict=False))
        stays = frozenset([name for name in states if after[name] == name])
        inner = [number, *states, *[name for node in body.needed.nodes for name in node.output]]
        outside = {**dict.fromkeys(inner), **body.own, condition: np.array(True)}
        outside |= {name: states[name] for name in stays}
        outside |= {name: call.seen.scope.get(name) for name in body.needed.names - outside.keys()}
        small = {
            name: value
            for name, value in outside.items()
            if isinstance(value, np.ndarray) and value.nbytes <= MOST_KEPT
        }
        first = {name: value for name, value in states.items() if name not in stays and isinstance(value, np.ndarray)}
        changing = {name: after[name] for name in first}
        while True:
            known = small | {name: first[name] for name in changing}
            found = cls(call, body, states, stays, changing, outside, known)
            static = known.keys() | found._sort({number, *changing})
            # What begins with a static value may be computed when the graph runs.
            changing = {name: out for name, out in changing.items() if out in static}
            if len(changing) == len(found.changing):
                return found

    def _sort(self, varying: set[str]) -> set[str]:
        """Sort the nodes, given the names of what varies; return those of all static values that do."""
        for node in self.body.needed.nodes:
            used = {*filter(None, used_by(node))}
            is_same = used.isdisjoint(varying)
            is_static = used <= self.known.keys() | varying and self._is_computed(node)
            if is_same:
                self.same.append(node)
                self.known.update(self._computed(node, self.known) if is_static else {})
            else:
                (self.varying if is_static else self.rows).append(node)
                varying.update(node.output if is_static else ())
        return varying

    def _is_computed(self, node: NodeProto) -> bool:
        opsets = self.call.seen.opsets
        if called_name(node) in self.call.seen.functions or not is_computed(node, (), opsets):
            return False
        check_form(kind_of(node, opsets).form, node)
        return True

    def _computed(self, node: NodeProto, known: Mapping[str, StaticValue]) -> dict[str, StaticValue]:
        """Compute a node of known inputs; return its outputs by name.

        Raises:
            Refused: it cannot be computed.
        """
        seen, expenses = self.call.seen, self.call.context.expenses
        inputs = [known[name] if name else None for name in node.input]
        if any(value is not None and value.size == 0 for value in inputs):
            raise Refused("an input has no elements")
        results = fold(with_attributes(node, seen.attributes, expenses), inputs, seen.opsets, expenses)
        return {name: value for name, value in zip(node.output, results, strict=True) if name and value is not None}

    def _followed(self, most: int | None) -> tuple[dict[str, StaticValue], Sequence[Sequence[StaticValue]]]:
        """Return the static values behind the last iteration, and for each row the indices at all iterations.

        Raises:
            Refused: the end is not known, there are too many iterations, or what varies is no row.
        """
        number, goes_on = self.body.graph.input[0].name, self.body.graph.output[0].name
        values = {**self.known}
        indices: list[list[StaticValue]] = [[] for _ in self.rows]
        count, condition = 0, None
        while count == 0 or (count != most and self.call.truth("the condition", condition)):
            self.call.context.expenses.add_nodes(1 + len(self.body.needed.nodes))
            values[number] = np.array(count)
            for node in self.varying:
                values.update(self._computed(node, values))
            for node, found in zip(self.rows, indices, strict=True):
                found.append(self._index(node, values))
            condition = values.get(goes_on)
            values.update({name: values[after] for name, after in self.changing.items()})
            count += 1
        return values, indices

    def _index(self, node: NodeProto, values: Mapping[str, StaticValue]) -> StaticValue:
        """Return the index of the row that a node reads.

        Raises:
            Refused: it does something else.
        """
        is_gather = operator_name(node) == "Gather" and called_name(node) not in self.call.seen.functions
        index = values.get(node.input[1]) if is_gather and (len(node.input), len(node.output)) == (2, 1) else None
        if index is None or index.size != 1 or index.dtype.kind not in "iu":
            raise Refused("a node depends on the iteration")
        return index

    def _scanned(self, node: NodeProto, indices: Sequence[StaticValue]) -> tuple[MLOperand, int]:
        """Return a value with the rows that a node reads along the first axis, and 1 if the last one comes first.

        Raises:
            Refused: they are not all rows in their order.
        """
        context = self.call.context
        whole = context.operand(tensor_of(self.outside.get(node.input[0])))
        attributes = with_attributes(node, self.call.seen.attributes, context.expenses).attribute
        if [(item.name, item.type) for item in attributes] not in ([], [("axis", AttributeProto.INT)]):
            raise Refused("it has other attributes")
        axis = counted(attributes[0].i if attributes else 0, whole.rank)
        before, size, behind = whole.shape[:axis], whole.shape[axis], whole.shape[axis + 1 :]
        places = [place + size if place < 0 else place for place in [index.item() for index in indices]]
        is_backward = places[0] > places[-1]
        if places[:: -1 if is_backward else 1] != [*range(size)] or prod(before) > 1:
            raise Refused("the rows do not follow each other")
        shape = (size, *before, *indices[0].shape, *behind)
        return whole if whole.shape == shape else context.reshape(whole, shape), int(is_backward)

    def drawn(self, most: int | None) -> Steps[Sequence[Converted]]:
        """Draw the loop; return its last states and stacked outputs.

        Raises:
            Refused: it has to be unrolled.
        """
        values, indices = self._followed(most)
        context = self.call.context
        parts = {node.output[0]: self._scanned(node, found) for node, found in zip(self.rows, indices, strict=True)}
        static = self.stays | self.changing.keys()
        given = {name: tensor_of(value) for name, value in self.states.items() if name not in static}
        states = {name: context.operand(value) for name, value in given.items()}
        scanned, ways = [whole for whole, _ in parts.values()], [way for _, way in parts.values()]
        descriptors = [context.value_of(state).descriptor for state in states.values()]
        rows = [MLOperandDescriptor(whole.data_type, whole.shape[1:]) for whole in scanned]
        inputs = [Input(item, f"i{number}") for number, item in enumerate([*descriptors, *rows])]
        if not states or not scanned or any(item.descriptor.data_type == "uint8" for item in inputs):
            raise Refused("it has no rows, or perhaps booleans, which rules tell by what they come from")
        stand_ins = {name: context.operand_of(item) for name, item in zip([*states, *parts], inputs, strict=True)}
        stacks = self.body.wanted[1 + len(self.states) :]
        wanted = [False, *[name in states for name in self.states], *stacks]
        made = yield from self._step({**self.body.own, **stand_ins}, values, wanted)
        if [value.descriptor for value in made[: len(states)]] != descriptors:
            raise Refused("a state changes its shape")
        step, outer = _step_of(inputs, made)
        count = len(indices[0])
        backend = context.backend
        if not (isinstance(backend, RunsLoops) and backend.runs_loop(step, count)):
            raise Refused("the device runs the steps faster")
        operands = [*states.values()], scanned, [context.operand_of(value) for value in outer]
        directions = [*ways, *[0] * (len(made) - len(states))]
        results = iter(context.append(LOOP, *operands, step=step, steps=count, directions=directions))
        last = {**self.states, **values}
        return [
            *[last[name] if name in static else next(results) for name in self.states],
            *[next(results) if is_wanted else MISSING for is_wanted in stacks],
        ]

    def _step(
        self, own: Mapping[str, Converted], static: Container[str], wanted: Sequence[bool]
    ) -> Steps[Sequence[Value]]:
        """Convert the body, given the values that stand for those of a step; return the wanted outputs.

        Raises:
            Refused: one of them cannot be converted, or is the same in all steps.
        """
        names = [item.name for item, is_wanted in zip(self.body.graph.output, wanted, strict=True) if is_wanted]
        if any(name in static for name in names):
            raise Refused("an output is static")
        needed = attrs.evolve(self.body.needed, nodes=self.same)
        body = attrs.evolve(self.body, wanted=wanted, needed=needed, own=own)
        given = [np.array(0), np.array(True), *[own.get(name, value) for name, value in self.states.items()]]
        results = yield from self.call.results(body, given, 0)
        value_of = self.call.context.value_of
        made = [value_of(result) for result in results if isinstance(result, MLOperand)]
        if len(made) < len(names):
            raise Refused("an output is not computed by the steps")
        return made


def _step_of(inputs: Sequence[Input], outputs: Sequence[Value]) -> tuple[Graph, Sequence[Value]]:
    """Return the graph of one step, and the values that it takes as further inputs, as they do not depend on these.

    Args:
        inputs: the states and parts.
        outputs: what the step makes of them.
    """
    graph = Graph.reaching({f"o{number}": value for number, value in enumerate(outputs)})
    own: set[Value] = {*inputs}
    in_step = []
    for node in graph.nodes:
        if not own.isdisjoint(node.inputs):
            own.update(node.results)
            in_step.append(node)
    taken = dict.fromkeys([*chain.from_iterable([node.inputs for node in in_step]), *outputs])
    outer = [value for value in taken if value not in own]
    more = [Input(value.descriptor, f"i{number}") for number, value in enumerate(outer, len(inputs))]
    new: dict[Value, Value] = dict(zip([*inputs, *outer], [*inputs, *more], strict=True))
    nodes = []
    for node in in_step:
        nodes.append(with_operands(node, new))
        new.update(zip(node.results, nodes[-1].results, strict=True))
    made = {name: new[value] for name, value in graph.outputs.items()}
    return Graph({item.name: item for item in (*inputs, *more)}, made, tuple(nodes)), outer
