"""Calls of sub-graphs when a graph is compiled: each as the operator for which its name stands, or as its body.

A name is a claim, so the numpy device computes the body and the operator once, for inputs in the operator's domain. If
the device has the operator, and both compute the same, the operator takes the place of the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final

import attrs
import numpy as np
import trio

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device import registry
from webnn_py.device.backend import Backend, Capabilities, HostArray, OnProgress
from webnn_py.device.compiling.expansion import limits_in
from webnn_py.device.compiling.shared_constants import Identity, digest
from webnn_py.device.device import Device, GraphHandle
from webnn_py.device.steps.measuring import compiled, give_way, storages
from webnn_py.graph import Graph, Node, Value
from webnn_py.in_flight import done
from webnn_py.message_text import shown
from webnn_py.operators.composites import COMPOSITES
from webnn_py.operators.declaration import Arguments, Operator
from webnn_py.operators.named_subgraphs import NamedOperator, named_operator
from webnn_py.operators.rules import Refused
from webnn_py.operators.subgraphs import SUBGRAPH_CALL
from webnn_py.rewriting.builder import RewriteBuilder
from webnn_py.rewriting.composites import drawn_out, spelled_out
from webnn_py.rewriting.walk import rewrite

TOLERANCES: Final = {"float16": 2e-2, "float32": 1e-3}
"""How far an element may differ, as a share of 1 and the largest element; those of other types must be equal."""


@attrs.frozen
class SubgraphUse:
    """How a call of a sub-graph is computed.

    Attributes:
        name: the name of the sub-graph.
        label: the label of the call.
        operators: the number of operators of its body.
        operator: the operator that computes it, by its name in the specification or as composites are called; None if
            the operators of the body do.
        reason: why the operators of the body do; "" if they do not.
    """

    __module__ = "webnn_py"  # where it is public

    name: str
    label: str
    operators: int
    operator: str | None
    reason: str


def compile_called(
    graph: Graph, handle: GraphHandle, device: Device, progress: OnProgress | None, uses: list[SubgraphUse]
) -> Awaitable[None] | None:
    """Compile a graph that may have calls of sub-graphs, and put it into ``handle``.

    Args:
        graph: the graph.
        handle: what takes the compiled graph.
        device: the device.
        progress: as for :meth:`Device.compile`.
        uses: an empty list, to which the calls are added; those within bodies follow.

    Raises:
        NotComputableError: the graph has a node that no device computes.
    """
    if not _has_calls(graph):
        return device.compile(graph, handle, progress)
    return _replace_and_compile(graph, handle, device, progress, uses)


def _has_calls(graph: Graph) -> bool:
    return any(node.operator is SUBGRAPH_CALL for node in graph.nodes)


async def _replace_and_compile(
    graph: Graph, handle: GraphHandle, device: Device, progress: OnProgress | None, uses: list[SubgraphUse]
) -> None:
    checks = _Checks(device.limiter)
    while _has_calls(graph):
        found: dict[Node, NamedOperator] = {}
        for node in graph.nodes:
            if node.operator is SUBGRAPH_CALL:
                await give_way(device)
                operator, reason = await _found(node, device, checks)
                name = None if operator is None else operator.operator.spec_name
                uses.append(SubgraphUse(node.options["name"], node.label, _size(node), name, reason))
                if operator is not None:
                    found[node] = operator
        graph = await trio.to_thread.run_sync(rewrite, graph, partial(_replaced, found), limiter=device.limiter)
    await done(device.compile(graph, handle, progress))


def _size(node: Node) -> int:
    body: Graph = node.options["body"]
    return sum(_size(each) if each.operator is SUBGRAPH_CALL else 1 for each in body.nodes)


def _replaced(found: Mapping[Node, NamedOperator], node: Node, current: Node) -> Mapping[Value, Value] | None:
    if node.operator is not SUBGRAPH_CALL:
        return None
    if node not in found:
        return drawn_out(node, current)
    builder = RewriteBuilder(current.label, current.drawn)
    operands = dict(zip(node.options["body"].inputs, current.inputs, strict=False))
    drawn = _drawn(builder, found[node], operands)
    return dict(zip(node.results, (drawn[name] for name in node.options["body"].outputs), strict=True))


def _drawn(builder: RewriteBuilder, operator: NamedOperator, operands: Mapping[str, Value]) -> dict[str, Value]:
    """Return the results of an operator by the names of the outputs of a definition."""
    drawn = operator.draw(builder, {name: builder.operand(value) for name, value in operands.items()})
    return {name: builder.value(operand) for name, operand in drawn.items()}


async def _found(node: Node, device: Device, checks: _Checks) -> tuple[NamedOperator | None, str]:
    """Return the operator that computes a call; None and the reason if its body must be drawn."""
    body: Graph = node.options["body"]
    name = shown(node.options["name"])
    try:
        operator = named_operator(
            node.options["name"],
            node.options["config"],
            {each: value.descriptor for each, value in body.inputs.items()},
            [*body.outputs],
        )
        if operator is None:
            return None, f"no operator is called {name}"
        if any(not isinstance(constant.data, np.ndarray) for constant in body.constants):
            raise Refused("its body has a constant buffer, whose bytes are not compared; bind an operand to an input")
        replacement = _replacement(body, operator, device.backend.capabilities)
    except (Refused, TypeError) as error:
        return None, str(error)
    difference = await checks.difference(node, replacement, operator)
    return (None, f"its body computes something else than {name}: {difference}") if difference else (operator, "")


def _replacement(body: Graph, operator: NamedOperator, capabilities: Capabilities) -> Graph:
    """Return the graph of the operator that replaces a body.

    Raises:
        Refused: its outputs are not those of the body, or the device does not compute it.
        TypeError: it refuses an argument.
    """
    outputs = _drawn(_DeviceBuilder(capabilities), operator, body.inputs)
    for name, value in body.outputs.items():
        if outputs[name].descriptor != value.descriptor:
            raise Refused(f"the output {shown(name)} is {value.descriptor}; it must be {outputs[name].descriptor}")
    reached = Graph.reaching(outputs)
    return Graph(body.inputs, reached.outputs, reached.nodes)


class _DeviceBuilder(RewriteBuilder):
    """Draws operators that a device computes; refuses others before their shape rules, which rely on the limits."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__()
        self._capabilities = capabilities

    def _append(self, operator: Operator[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        self._check(operator, operator.bind(args, kwargs))
        return super()._append(operator, args, kwargs)

    def _check(self, operator: Operator[..., Any], arguments: Arguments) -> None:
        name = operator.spec_name
        if operator.name not in COMPOSITES:
            rows = dict(limits_in(operator, self._capabilities))
        elif operator in self._capabilities.composites:
            rows = {operand: (row.data_types, row.ranks) for operand, row in operator.limits.items()}
        else:
            raise Refused(f"the device has no kernel for {name}")
        for row, _, operand in arguments.each_operand():
            data_types, ranks = rows[row]
            limits = operator.limits[row]
            if operand.data_type not in data_types or operand.rank not in ranks:
                given = MLOperandDescriptor(operand.data_type, operand.shape)
                raise Refused(f"{name} on this device takes no {given} as {row}")
            if limits.type_of is not None and operand.data_type != arguments.operand(limits.type_of).data_type:
                raise Refused(f"{name} takes {row} and {limits.type_of} of one data type only")
            if limits.rank_of is not None and operand.rank != arguments.operand(limits.rank_of).rank:
                raise Refused(f"{name} takes {row} and {limits.rank_of} of one rank only")


# --- comparing ---------------------------------------------------------------------------------------------------


class _Checks:
    """The comparisons of bodies with operators during a build, each made once for equal definitions."""

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._differences: dict[Identity, str] = {}

    async def difference(self, node: Node, replacement: Graph, operator: NamedOperator) -> str:
        """Return the first difference of what a body and an operator compute; "" if there is none."""
        body: Graph = node.options["body"]
        choices = sorted(node.options["config"].items())
        identity = await trio.to_thread.run_sync(
            lambda: digest(operator.operator.name, choices, body.contents()), limiter=self._limiter
        )
        if identity not in self._differences:
            self._differences[identity] = await _difference(body, replacement, operator, self._limiter)
        return self._differences[identity]


async def _difference(body: Graph, replacement: Graph, operator: NamedOperator, limiter: trio.CapacityLimiter) -> str:
    record = registry.find("numpy")
    backend: Backend = await done(record.open(registry.OpenRequest(options=record.converted({}))))
    try:
        device = Device(backend)
        plain = spelled_out(body)
        for feeds in await trio.to_thread.run_sync(operator.feeds, limiter=limiter):
            expected, given = [await _computed(device, graph, feeds) for graph in (plain, replacement)]
            words = await trio.to_thread.run_sync(_compared, expected, given, limiter=limiter)
            if words:
                return words
    finally:
        backend.close()
    return ""


async def _computed(device: Device, graph: Graph, feeds: Mapping[str, HostArray]) -> dict[str, HostArray]:
    made = {name: value.descriptor for name, value in graph.outputs.items()}
    given = {name: feeds[name] for name in graph.inputs}
    async with compiled(device, graph) as handle, storages(device, given, made) as (inputs, outputs):
        await done(device.backend.dispatch(handle.compiled, inputs, outputs))
        return {name: await done(device.backend.read(storage)) for name, storage in outputs.items()}


def _compared(expected: Mapping[str, HostArray], given: Mapping[str, HostArray]) -> str:
    """Return which output differs, and how, in words; "" if none does."""
    words = {name: _difference_of(array, given[name]) for name, array in expected.items()}
    return next((f"the output {shown(name)} {how}" for name, how in words.items() if how), "")


def _difference_of(expected: HostArray, given: HostArray) -> str:
    """Return how an array differs from the expected one, in words; "" if it does not."""
    tolerance = TOLERANCES.get(expected.dtype.name)
    if tolerance is None:
        return "" if np.array_equal(expected, given) else f"has {np.sum(expected != given)} other elements"
    one, other = expected.astype(np.float64), given.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(other[finite]).all():
        return "has NaN or infinities elsewhere"
    largest = float(np.abs(one[finite]).max(initial=0))
    difference = float(np.abs(one[finite] - other[finite]).max(initial=0))
    return "" if difference <= tolerance * (1 + largest) else f"differs by up to {difference:.2g}"
