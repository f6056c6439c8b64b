"""Calls of sub-graphs when a graph is compiled: each as the operator for which its name stands, or as its body.

A name is a claim. The operator takes the place of the call if the device has it and the body is the operator, or its
decomposition: the same operators with the same options and constants, in any order of drawing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np
import trio

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import Capabilities, OnProgress
from webnn_py.core.device.compiling.expansion import limits_in
from webnn_py.core.device.device import Device, GraphHandle
from webnn_py.core.extension import Compile
from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.in_flight import done
from webnn_py.core.message_text import shown
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.declaration import Arguments, Operator, of_operands
from webnn_py.core.operators.rules import Refused
from webnn_py.devices.composites.drawn_out import drawn_out, spelled_out
from webnn_py.devices.composites.subgraph_call import SUBGRAPH_CALL
from webnn_py.devices.content_keys import ContentKey
from webnn_py.devices.long_steps import give_way
from webnn_py.devices.shared_constants import digest
from webnn_py.extensions.named_subgraphs import NamedOperator, named_operator


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

    name: str
    label: str
    operators: int
    operator: str | None
    reason: str


def compile_called(  # noqa: PLR0913, PLR0917 - a step's, and what it needs beyond
    device: Device,
    step: Compile,
    uses: list[SubgraphUse],
    graph: Graph,
    handle: GraphHandle,
    progress: OnProgress | None,
) -> Awaitable[None] | None:
    """Compile a graph that may have calls of sub-graphs, and put it into ``handle``.

    Args:
        device: the device.
        step: compiles the graph without calls.
        uses: a list to which the calls are added; those within bodies follow.
        graph: the graph.
        handle: what takes the compiled graph.
        progress: as for ``Device.compile()``.

    Raises:
        NotComputableError: the graph has a node that no device computes.
    """
    if not _has_calls(graph):
        return step(graph, handle, progress)
    uses.clear()
    return _replace_and_compile(device, step, uses, graph, handle, progress)


def _has_calls(graph: Graph) -> bool:
    return any(node.operator is SUBGRAPH_CALL for node in graph.nodes)


async def _replace_and_compile(  # noqa: PLR0913, PLR0917 - as above
    device: Device,
    step: Compile,
    uses: list[SubgraphUse],
    graph: Graph,
    handle: GraphHandle,
    progress: OnProgress | None,
) -> None:
    await done(step(await without_calls(graph, device, uses), handle, progress))


async def without_calls(graph: Graph, device: Device, uses: list[SubgraphUse]) -> Graph:
    """Return a graph with the device's operators, or bodies, in place of the calls, which are added to ``uses``."""
    while _has_calls(graph):
        found: dict[Node, NamedOperator] = {}
        for node in graph.nodes:
            if node.operator is SUBGRAPH_CALL:
                await give_way(device)
                operator, reason = await trio.to_thread.run_sync(
                    _found, node, device.backend.capabilities, limiter=device.limiter
                )
                name = None if operator is None else operator.operator.spec_name
                uses.append(SubgraphUse(node.options["name"], node.label, _size(node), name, reason))
                if operator is not None:
                    found[node] = operator
        graph = await trio.to_thread.run_sync(rewrite, graph, partial(_replaced, found), limiter=device.limiter)
    return graph


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


def _found(node: Node, capabilities: Capabilities) -> tuple[NamedOperator | None, str]:
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
        replacement = _replacement(body, operator, capabilities)
    except (Refused, TypeError) as error:
        return None, str(error)
    drawn = _structure(spelled_out(body))
    if drawn in (_structure(replacement), _structure(_decomposed(replacement, operator.operator))):
        return operator, ""
    return None, f"its body is not the decomposition of {name} with this config"


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

    def append(self, operator: Operator[..., Any], /, *args: object, **kwargs: object) -> Any:
        self._check(operator, operator.bind(args, kwargs))
        return super().append(operator, *args, **kwargs)

    def _check(self, operator: Operator[..., Any], arguments: Arguments) -> None:
        name = operator.spec_name
        if isinstance(operator, Composite) and not self._capabilities.supports(operator):
            raise Refused(f"the device has no kernel for {name}")
        rows = limits_in(operator, self._capabilities)
        for row, _, operand in arguments.each_operand():
            limits = rows[row]
            if operand.data_type not in limits.data_types or operand.rank not in limits.ranks:
                given = MLOperandDescriptor(operand.data_type, operand.shape)
                raise Refused(f"{name} on this device takes no {given} as {row}")
            if limits.type_of is not None and operand.data_type != arguments.operand(limits.type_of).data_type:
                raise Refused(f"{name} takes {row} and {limits.type_of} of one data type only")
            if limits.rank_of is not None and operand.rank != arguments.operand(limits.rank_of).rank:
                raise Refused(f"{name} takes {row} and {limits.rank_of} of one rank only")


# --- comparing ---------------------------------------------------------------------------------------------------


def _decomposed(graph: Graph, operator: Operator[..., Any]) -> Graph:
    """Return the graph with the decomposition of an operator in its place; unchanged for a primitive."""
    return rewrite(graph, lambda node, current: drawn_out(node, current) if node.operator is operator else None)


def _structure(graph: Graph) -> dict[str, bytes]:
    """Return a digest for each output, equal for graphs of the same operators, options, constants and inputs."""
    digests: dict[Value, bytes] = {value: digest("input", name) for name, value in graph.inputs.items()}
    for constant in graph.constants:
        assert isinstance(constant.data, np.ndarray)  # noqa: S101 - others have been refused
        digests[constant] = digest("constant", constant.descriptor, ContentKey(constant.data).digest)
    for node in graph.nodes:
        operands = [*of_operands(node.operands, digests.__getitem__).items()]
        if node.operator.is_commutative:
            operands = [("", each) for each in sorted(digests[value] for value in node.inputs)]
        options = sorted((name, _option(value)) for name, value in node.options.items())
        of_node = digest(node.operator.name, operands, options)
        digests |= {result: digest("result", result.index, of_node) for result in node.results}
    return {name: digests[value] for name, value in graph.outputs.items()}


def _option(value: Any) -> str:
    """Return a text that is equal for equal options: a number may be drawn as an integer or as a float."""
    if isinstance(value, float) and value.is_integer() and str(value) != "-0.0":
        return repr(int(value))
    return repr(value)
