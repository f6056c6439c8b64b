"""The model's own functions: what is called, how often, how deep; and a body's node with the call's attributes."""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

from webnn_py.onnx_models.limits import Expenses, ModelLimits
from webnn_py.onnx_models.problems import (
    InvalidModelError,
    Problem,
    UnsupportedModelError,
    node_name,
    worded,
)

OWN_DOMAINS: Final = ("", "ai.onnx")
"""The names of ONNX's own domain of operators."""

DEEPEST: Final = 64
"""The greatest depth to which functions and inner graphs may be nested."""

FunctionName = tuple[str, str, str]
"""Domain, name and overload."""

Functions = Mapping[FunctionName, FunctionProto]


def operator_name(node: NodeProto) -> str:
    """Return the name of a node's operator: with its domain, where that is not ONNX's own."""
    return node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}.{node.op_type}"


def opsets_of(opsets: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Return the versions of operator sets by domain; ONNX's own is ""."""
    return {"" if item.domain in OWN_DOMAINS else item.domain: item.version for item in opsets}


def called_name(node: NodeProto) -> FunctionName:
    """Return the name of the function that a node calls if the model has it, before ONNX's operator."""
    return ("" if node.domain in OWN_DOMAINS else node.domain, node.op_type, node.overload)


def functions_of(model: ModelProto) -> dict[FunctionName, FunctionProto]:
    """Return the model's functions by name.

    Raises:
        InvalidModelError: two have the same.
    """
    functions: dict[FunctionName, FunctionProto] = {}
    for function in model.functions:
        name = ("" if function.domain in OWN_DOMAINS else function.domain, function.name, function.overload)
        if name in functions:
            raise InvalidModelError(f"two of the model's functions have the name {worded(function.name)}")
        functions[name] = function
    return functions


class _Extent(NamedTuple):
    """The number and nesting depth of nodes, with the functions that they call."""

    nodes: int
    depth: int


NO_NODES: Final = _Extent(0, 0)


def check_calls(model: ModelProto, limits: ModelLimits) -> None:
    """Refuse functions that call themselves, or make the model too large or too deep.

    Raises:
        InvalidModelError: a function calls itself.
        UnsupportedModelError: nodes are more than the limit, or stand too deep.
    """
    calls = _Calls(functions_of(model))
    total = 0
    for node in model.graph.node:
        extent = calls.extent([node])
        total += extent.nodes
        if total > limits.nodes:
            reason = f"with the functions that are called up to here the model has {total:,} nodes; limits.nodes "
            raise UnsupportedModelError([_problem(node, f"{reason}allows {limits.nodes:,}")])
        if extent.depth > DEEPEST:
            raise UnsupportedModelError([_problem(node, _too_deep(extent.depth))])


class _Calls:
    """The sizes of functions, each computed once.

    Args:
        functions: the model's, by name.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._extents: dict[FunctionName, _Extent] = {}
        self._open: list[FunctionName] = []

    def extent(self, nodes: Iterable[NodeProto]) -> _Extent:
        """Return the number and depth of nodes with all that they call."""
        count, depth = 0, 0
        for node, level in all_nodes(nodes, 1):
            called = self._of_function(node)
            count += 1 + called.nodes
            depth = max(depth, level + called.depth)
        return _Extent(count, depth)

    def _of_function(self, node: NodeProto) -> _Extent:
        function = self._functions.get(name := called_name(node)) if self._functions else None
        if function is None:
            return NO_NODES
        if name in self._open:
            raise InvalidModelError(f"the function {worded(name[1])} calls itself, in node {worded(node_name(node))}")
        if len(self._open) >= DEEPEST:
            raise UnsupportedModelError([_problem(node, _too_deep(len(self._open) + 1))])
        if name not in self._extents:
            self._open.append(name)
            self._extents[name] = self.extent(function.node)
            self._open.pop()
        return self._extents[name]


def all_nodes(nodes: Iterable[NodeProto], level: int = 1) -> Iterator[tuple[NodeProto, int]]:
    """Yield nodes and those of their inner graphs, with their depth."""
    for node in nodes:
        yield node, level
        for graph in inner_graphs(node):
            yield from all_nodes(graph.node, level + 1)


def inner_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs that a node has as attributes."""
    for attribute in node.attribute[:]:
        if attribute.HasField("g"):
            yield attribute.g
        if attribute.graphs:
            yield from attribute.graphs


def _problem(node: NodeProto, reason: str) -> Problem:
    return Problem(f"node {worded(node_name(node))} ({worded(node.op_type)})", reason, node.op_type)


def _too_deep(depth: int) -> str:
    return f"functions and inner graphs stand {depth} deep in each other; at most {DEEPEST} are supported"


def call_attributes(function: FunctionProto, node: NodeProto) -> dict[str, AttributeProto]:
    """Return the attributes of a function at a call: those given, else the function's defaults."""
    declared = {*function.attribute, *(item.name for item in function.attribute_proto)}
    return {item.name: item for item in (*function.attribute_proto, *node.attribute) if item.name in declared}


_REFERENCE: Final = attrgetter("ref_attr_name")


def with_attributes(node: NodeProto, attributes: Mapping[str, AttributeProto], expenses: Expenses) -> NodeProto:
    """Return a node of a function's body, with what its attributes refer to; those that the call has not are absent.

    Raises:
        Refused: the copies take more bytes than are left.
    """
    if not any(map(_REFERENCE, node.attribute[:])):
        return node
    bound = NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for item in node.attribute:
        if not item.ref_attr_name:
            bound.attribute.append(item)
        elif item.ref_attr_name in attributes:
            value = attributes[item.ref_attr_name]
            expenses.add_bytes(value.ByteSize())
            bound.attribute.append(value)
            bound.attribute[-1].name = item.name
    return bound
