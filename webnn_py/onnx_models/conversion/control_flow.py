"""``If``, ``Loop`` and ``Scan``: their inner graphs are converted in place of the node, once for each iteration.

What decides how often is known while building: trip counts and a loop's conditions are static. Where the device has
loops, a ``Loop`` is one node, if it can be (``loops``). Of an ``If`` whose condition is not static, both
branches are computed, and the condition chooses between what they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from math import prod
from typing import Final

import attrs
import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto, helper

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.conversion.loops import rolled_loop
from webnn_py.onnx_models.conversion.scopes import MISSING, Converted, Steps, Surroundings, tensor_of
from webnn_py.onnx_models.problems import Problem, RefusedWithWayOut, worded
from webnn_py.onnx_models.reading.element_types import is_of_numpy
from webnn_py.onnx_models.reading.node_order import Live
from webnn_py.onnx_models.rule_helpers.axes import counted, integer, integers
from webnn_py.onnx_models.rule_helpers.concatenation import stacked

BATCHED_SCAN: Final = 8
"""The one version of Scan that takes a batch of sequences, of lengths of their own."""

LARGEST_COUNT: Final = 2**31
"""Of elements, in one of the iterations that never were."""


@attrs.frozen
class InnerGraph:
    """An inner graph, ready to be converted any number of times.

    Attributes:
        graph: the graph.
        wanted: for each of its outputs, whether it is needed.
        needed: what those need.
        own: its initializers.
    """

    graph: GraphProto
    wanted: Sequence[bool]
    needed: Live
    own: Mapping[str, Converted]


@attrs.frozen
class ControlFlowNode:
    """A node with inner graphs, and what converts these.

    Attributes:
        node: the node.
        version: of its operator.
        values: its inputs.
        wanted: for each of its outputs, whether it is used.
        context: builds what the node itself needs.
        seen: the surroundings of the node.
        problems: those found so far in the model.
        inner_graph: prepares an inner graph of which some outputs are needed.
        results: converts one, given its inputs and the number of the iteration; gives its outputs.
    """

    node: NodeProto
    version: int
    values: Sequence[Converted]
    wanted: Sequence[bool]
    context: ConversionContext
    seen: Surroundings
    problems: MutableSequence[Problem]
    inner_graph: Callable[[GraphProto, Sequence[bool]], InnerGraph]
    results: Callable[[InnerGraph, Sequence[Converted], int | None], Steps[Sequence[Converted]]]

    @property
    def missing(self) -> Sequence[Converted]:
        """Outputs that could not be converted."""
        return [MISSING] * len(self.node.output)

    def graph(self, name: str) -> GraphProto:
        """Return the graph that an attribute has."""
        found: list[GraphProto] = [item.g for item in self.node.attribute if item.name == name and item.HasField("g")]
        if len(found) != 1:
            raise Refused(f"it has {len(found)} graphs called {name}; it must have one")
        return found[0]

    def integers(self, name: str, count: int, allowed: Iterable[int] | None = None) -> Sequence[int]:
        """Return an attribute of ``count`` integers; zeros when it is absent."""
        found = [item for item in self.node.attribute if item.name == name]
        if not found:
            return (0,) * count
        given = tuple(found[0].ints)
        if len(found) != 1 or found[0].type != AttributeProto.INTS or len(given) != count:
            refuse(f"attribute {name}", given, f"given once, of {count} integers")
        if allowed is not None and not set(given) <= set(allowed):
            refuse(f"attribute {name}", given, f"of {', '.join(map(str, allowed))} only")
        return given

    def truth(self, subject: str, value: Converted) -> bool:
        """Return a condition, which must be static."""
        if value is None or value is MISSING:
            raise Refused(f"{subject} is missing; it is needed")
        known = self.context.required(subject, tensor_of(value))
        if known.size != 1:
            raise Refused(f"{subject} has the shape {list(known.shape)}; it must be a single boolean")
        return bool(known.item())

    def iteration(self, body: InnerGraph, inputs: Sequence[Converted], number: int) -> Steps[Sequence[Converted]]:
        """Convert a body once; its outputs are empty if something in it could not be converted."""
        self.context.expenses.add_nodes(1)
        known = len(self.problems)
        results = yield from self.results(body, inputs, number)
        is_whole = all(
            result is not MISSING for result, is_wanted in zip(results, body.wanted, strict=True) if is_wanted
        )
        return results if is_whole and len(self.problems) == known else ()


def if_else(call: ControlFlowNode) -> Steps[Sequence[Converted]]:
    """Convert the branch that the condition chooses; both, where that is known only when the graph runs."""
    condition = call.values[0] if call.values else None
    if condition is MISSING:
        return call.missing
    if isinstance(condition, MLOperand) and call.context.known(condition) is None and prod(condition.shape) == 1:
        return (yield from _chosen_of_both(call, condition))
    chosen = "then_branch" if call.truth("its condition", condition) else "else_branch"
    return (yield from _branch_results(call, chosen))


def _branch_results(call: ControlFlowNode, name: str) -> Steps[Sequence[Converted]]:
    branch = call.graph(name)
    if len(branch.output) != len(call.node.output) or branch.input:
        raise Refused(
            f"its {name} has {len(branch.input)} inputs and {len(branch.output)} outputs; it must have none, and "
            f"{len(call.node.output)} as the node has"
        )
    return (yield from call.results(call.inner_graph(branch, call.wanted), (), None))


def _chosen_of_both(call: ControlFlowNode, condition: MLOperand) -> Steps[Sequence[Converted]]:
    """Convert both branches, which have no effects, and choose between their outputs while the graph runs."""
    known = len(call.problems)
    then = yield from _branch_results(call, "then_branch")
    otherwise = yield from _branch_results(call, "else_branch")
    found = [str(problem) for problem in call.problems[known:]]
    del call.problems[known:]  # a known condition may choose the other branch
    way_out = call.context.freezing([condition])
    if found:
        raise RefusedWithWayOut(
            f"its condition is computed when the graph runs, and in one of the branches {found[0]}", way_out
        )
    truth = call.context.reshape(condition, [])
    results: list[Converted] = []
    for name, is_wanted, one, other in zip(call.node.output, call.wanted, then, otherwise, strict=True):
        if not is_wanted or one is MISSING or other is MISSING:
            results.append(MISSING)
            continue
        try:
            results.append(_chosen(call.context, truth, tensor_of(one), tensor_of(other)))
        except Refused as refused:
            raise RefusedWithWayOut(
                f"its condition is computed when the graph runs, and for output {worded(name)} {refused}", way_out
            ) from refused
    return results


def _chosen(context: ConversionContext, truth: MLOperand, one: Value, other: Value) -> Value:
    """Choose one of two values of the same shape; return the value itself where both are static and equal."""
    if tuple(one.shape) != tuple(other.shape):
        raise Refused(f"the branches give the shapes {list(one.shape)} and {list(other.shape)}; they must be the same")
    if isinstance(one, MLOperand) or isinstance(other, MLOperand) or one.dtype != other.dtype:
        return context.where(truth, context.operand(one), context.operand(other))
    if np.array_equal(one, other):
        return one  # it may be a shape
    return context.where(truth, context.operand(one), context.operand(other))


def loop(call: ControlFlowNode) -> Steps[Sequence[Converted]]:
    """Convert the body once per iteration; as in onnxruntime, the body's condition always counts."""
    count = call.values[0] if call.values else None
    condition = call.values[1] if len(call.values) > 1 else None
    carried = list(call.values[2:])
    if count is MISSING or condition is MISSING:
        return call.missing
    body = call.graph("body")
    states = len(carried)
    kept = _stacked_outputs(call, body, inputs=2 + states, before=1 + states, states=states)
    trips = "its trip count"
    most = None if count is None else integer(trips, call.context.required(trips, tensor_of(count)))
    goes_on = condition is None or call.truth("its condition", condition)
    inner = call.inner_graph(body, [True] * (1 + states) + kept)
    if goes_on and most != 0:
        rolled = yield from rolled_loop(call, inner, carried, most)
        if rolled:
            return rolled[: len(call.node.output)]
    stacks: list[list[Converted]] = [[] for _ in kept]
    number = 0
    while goes_on and (most is None or number < most):
        results = yield from call.iteration(inner, [np.array(number), np.array(goes_on), *carried], number)
        if not results:
            return call.missing
        number += 1
        # The condition of the last iteration has no effect.
        goes_on = number == most or call.truth("the condition that its body gives", results[0])
        carried = list(results[1 : 1 + states])
        for stack, piece in zip(stacks, results[1 + states :], strict=True):
            stack.append(piece)
    pieces = zip(stacks, kept, body.output[1 + states :], strict=True)
    outputs = [_stacked(call, stack, item, 0) if is_wanted else MISSING for stack, is_wanted, item in pieces]
    return [*carried, *outputs][: len(call.node.output)]


@attrs.frozen
class Sweep:
    """The iteration of a Scan over its sequences.

    Attributes:
        body: what it does at each of their elements.
        axes: of the sequences, along which it goes.
        backwards: for each sequence, whether it begins at the end.
        stacked_axes: of the stacked outputs, which the iterations make.
        prepended: for each stacked output, whether a later iteration comes before an earlier one.
    """

    body: InnerGraph
    axes: Sequence[int]
    backwards: Sequence[int]
    stacked_axes: Sequence[int]
    prepended: Sequence[int]

    def results(self, call: ControlFlowNode, values: Sequence[Converted]) -> Steps[Sequence[Converted]]:
        """Return the last states and stacked outputs; nothing if something could not be converted."""
        states = len(values) - len(self.axes)
        carried, sequences = list(values[:states]), values[states:]
        if any(value is MISSING for value in sequences):
            yield from call.iteration(self.body, values, 0)  # for the problems inside
            return ()
        length = _common_length(sequences, self.axes)
        stacks: list[list[Converted]] = [[] for _ in self.stacked_axes]
        for number in range(length):
            pieces = [
                _piece(call, value, axis, length - 1 - number if is_backwards else number)
                for value, axis, is_backwards in zip(sequences, self.axes, self.backwards, strict=True)
            ]
            results = yield from call.iteration(self.body, [*carried, *pieces], number)
            if not results:
                return ()
            carried = list(results[:states])
            for stack, piece in zip(stacks, results[states:], strict=True):
                stack.append(piece)
        items, wanted = self.body.graph.output[states:], self.body.wanted[states:]
        outputs = [
            _stacked(call, stack[::-1] if is_prepended else stack, item, axis) if is_wanted else MISSING
            for stack, is_wanted, item, axis, is_prepended in zip(
                stacks, wanted, items, self.stacked_axes, self.prepended, strict=True
            )
        ]
        return [*carried, *outputs]


def scan(call: ControlFlowNode) -> Steps[Sequence[Converted]]:
    """Convert the body once for each element of the sequences, which are axes of the last inputs."""
    if call.version == BATCHED_SCAN:
        return (yield from _scan_of_batch(call))
    sweep = _sweep(call, len(call.values), "scan_input_directions")
    results = yield from sweep.results(call, call.values)
    return results[: len(call.node.output)] or call.missing


def _scan_of_batch(call: ControlFlowNode) -> Steps[Sequence[Converted]]:
    """Convert the body for each sample of a batch, which is the first axis of all inputs and outputs."""
    lengths, values = call.values[0] if call.values else None, call.values[1:]
    sweep = _sweep(call, len(values), "directions")
    if lengths is MISSING or any(value is MISSING for value in values):
        return call.missing
    batch = _common_length(values, [0] * len(values))
    if lengths is not None:
        length = _common_length(values[-len(sweep.axes) :], [1] * len(sweep.axes))
        known = integers("input sequence_lens", call.context.required("input sequence_lens", tensor_of(lengths)))
        if known != (length,) * batch:
            refuse("input sequence_lens", known, f"{length} everywhere, the length of the sequences")
    members: list[Sequence[Converted]] = []
    for place in range(batch):
        results = yield from sweep.results(call, [_piece(call, value, 0, place) for value in values])
        if not results:
            return call.missing
        members.append(results)
    items = sweep.body.graph.output[: len(call.node.output)]
    return [
        _stacked(call, [results[place] for results in members], item, 0) if sweep.body.wanted[place] else MISSING
        for place, item in enumerate(items)
    ]


def _sweep(call: ControlFlowNode, count: int, directions: str) -> Sweep:
    """Return the iteration that a Scan's attributes describe."""
    counts = [item.i for item in call.node.attribute if item.name == "num_scan_inputs"]
    if len(counts) != 1 or not 1 <= counts[0] <= count:
        refuse("attribute num_scan_inputs", tuple(counts), f"given once, from 1 to {count}")
    sequences, states = counts[0], count - counts[0]
    body = call.graph("body")
    kept = _stacked_outputs(call, body, inputs=count, before=states, states=states)
    return Sweep(
        call.inner_graph(body, [True] * states + kept),
        call.integers("scan_input_axes", sequences),
        call.integers(directions, sequences, (0, 1)),
        call.integers("scan_output_axes", len(kept)),
        call.integers("scan_output_directions", len(kept), (0, 1)),
    )


CONTROL_FLOW: Final[Mapping[str, Callable[[ControlFlowNode], Steps[Sequence[Converted]]]]] = {
    "If": if_else,
    "Loop": loop,
    "Scan": scan,
}
"""By operator."""


def _stacked_outputs(call: ControlFlowNode, body: GraphProto, *, inputs: int, before: int, states: int) -> list[bool]:
    """Return for each output of a body that is stacked over the iterations whether it is used.

    Raises:
        Refused: the body does not fit the node.
    """
    count = len(body.output) - before
    if len(body.input) != inputs or count < 0:
        raise Refused(
            f"its body has {len(body.input)} inputs and {len(body.output)} outputs; it must have {inputs}, and "
            f"at least {before}"
        )
    if len(call.node.output) > states + count:
        raise Refused(f"it has {len(call.node.output)} outputs; its body gives {states + count}")
    wanted = [*call.wanted[states:], *[False] * count]
    return wanted[:count]


def _common_length(sequences: Sequence[Converted], axes: Sequence[int]) -> int:
    lengths: set[int] = set()
    for value, axis in zip(sequences, axes, strict=True):
        shape = tensor_of(value).shape
        lengths.add(shape[counted(axis, len(shape), "attribute scan_input_axes")])
    if len(lengths) != 1:
        refuse("the lengths of the sequences", tuple(sorted(lengths)), "the same")
    return lengths.pop()


def _piece(call: ControlFlowNode, value: Converted, axis: int, index: int) -> Value:
    """Return one element of a sequence."""
    whole = tensor_of(value)
    axis = counted(axis, len(whole.shape))
    if isinstance(whole, np.ndarray):
        return np.asarray(whole[(slice(None),) * axis + (index,)])
    shape = list(whole.shape)
    starts = [index if place == axis else 0 for place in range(len(shape))]
    sizes = [1 if place == axis else size for place, size in enumerate(shape)]
    return call.context.reshape(call.context.slice(whole, starts, sizes), shape[:axis] + shape[axis + 1 :])


def _stacked(call: ControlFlowNode, stack: Sequence[Converted], item: ValueInfoProto, axis: int) -> Value:
    """Return the results of the iterations, stacked along a new axis."""
    if not stack:
        return _empty(item, axis)
    return stacked(call.context, [tensor_of(piece) for piece in stack], axis, repr(item.name))


def _empty(item: ValueInfoProto, axis: int) -> StaticValue:
    """Return the result of no iterations, in the shape that the body declares, with 0 for open dimensions."""
    declared = item.type.tensor_type
    if not is_of_numpy(declared.elem_type) or len(declared.shape.dim) > 8:
        raise Refused(f"it has no iterations, and its body does not say the type of {item.name!r}")
    sizes = [max(0, size.dim_value) for size in declared.shape.dim]
    if prod(filter(None, sizes)) > LARGEST_COUNT:
        raise Refused(f"it has no iterations, and its body says that {item.name!r} is of the shape {sizes}")
    axis = counted(axis, len(sizes) + 1, "attribute scan_output_axes")
    return np.zeros([*sizes[:axis], 0, *sizes[axis:]], helper.tensor_dtype_to_np_dtype(declared.elem_type))
