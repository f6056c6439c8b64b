"""Converting a model: node by node, each value static or an operand."""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, Literal

import attrs
import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, defs, helper, numpy_helper

from webnn_py.graph import Output
from webnn_py.onnx_models.calling import call
from webnn_py.onnx_models.conversion_context import Constants, ConversionContext, StaticValue, Value
from webnn_py.onnx_models.element_types import webnn_data_type
from webnn_py.onnx_models.folding import NOT_CONSTANT, fold
from webnn_py.onnx_models.problems import Problem, UnsupportedModelError
from webnn_py.onnx_models.registry import RULES
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused
from webnn_py.script.builder import MLGraphBuilder

OWN_DOMAINS: Final = ("", "ai.onnx")
"""The names of ONNX's own domain of operators."""


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""A value that could not be converted: its node is among the problems, or needs another missing value."""

Converted = Value | Literal[_Missing.MISSING]
Scope = ChainMap[str, Converted]


class ModelConversion:
    """One conversion of a model in progress.

    Args:
        builder: what to build with.
        opsets: the version of each operator set, by domain.
    """

    def __init__(self, builder: MLGraphBuilder, opsets: Mapping[str, int]) -> None:
        self._builder = builder
        self._opsets = {"" if domain in OWN_DOMAINS else domain: version for domain, version in opsets.items()}
        self._problems: list[Problem] = []
        self._scope: Scope = ChainMap()
        self._constants: Constants = {}

    def bind(self, name: str, value: StaticValue) -> None:
        """Give an input of the model a value."""
        self._scope[name] = value

    def add_input(self, name: str, element_type: int, shape: tuple[int, ...]) -> None:
        """Add an input of the model to the graph."""
        try:
            data_type = webnn_data_type("the data type", element_type)
        except Refused as refused:
            self._problems.append(Problem(f"input {name!r}", str(refused)))
            self._scope[name] = MISSING
        else:
            self._scope[name] = self._builder.input(name, data_type=data_type, shape=shape)

    def outputs_of(self, graph: GraphProto, needed: Live) -> Generator[int, None, dict[str, MLOperand]]:
        """Convert the model's graph in steps: a generator of the number of nodes that are left.

        Returns:
            The outputs, as the generator's value.

        Raises:
            UnsupportedModelError: with all that cannot be converted.
        """
        yield from self._convert_graph(graph, needed, self._scope)
        outputs: dict[str, MLOperand] = {}
        for item in graph.output:
            value = _looked_up(self._scope, item.name, "the model")
            if value is MISSING:
                continue
            context = ConversionContext(self._builder, item.name, [True], self._constants)
            try:
                operand = context.operand(value)
            except Refused as refused:
                self._problems.append(Problem(f"output {item.name!r}", str(refused)))
                continue
            computed = isinstance(self._builder._values[operand], Output)
            outputs[item.name] = operand if computed else context.identity(operand)
        if self._problems:
            raise UnsupportedModelError(self._problems)
        return outputs

    def _convert_graph(self, graph: GraphProto, needed: Live, scope: Scope) -> Iterator[int]:
        """Convert a graph, the model's own or a branch; yields how many of its nodes are left."""
        nodes, used = needed.nodes, needed.names
        for item in graph.initializer:
            if item.name in used:
                scope[item.name] = numpy_helper.to_array(item)
        for name in used.intersection(item.values.name for item in graph.sparse_initializer):
            self._problems.append(Problem(f"initializer {name!r}", "it is sparse; only dense ones are supported"))
            scope[name] = MISSING
        for left in range(len(nodes), 0, -1):
            node = nodes[-left]
            yield left
            wanted = [bool(name) and name in used for name in node.output]
            for name, result in zip(node.output, self._results(node, scope, wanted), strict=True):
                if name:
                    scope[name] = result

    def _results(self, node: NodeProto, scope: Scope, wanted: Sequence[bool]) -> Sequence[Converted]:
        """What a node gives; missing values when it cannot be converted, which is then noted."""
        label = node.name or f"{node.op_type} of {next(filter(None, node.output), '')}"
        values = [_looked_up(scope, name, f"node {label!r}") if name else None for name in node.input]
        present: list[Value | None] = [value for value in values if value is not MISSING]
        try:
            if len(present) < len(values):
                self._check_operator(node)
                return [MISSING] * len(node.output)
            if node.op_type == "If" and node.domain in OWN_DOMAINS:
                return self._branch_results(node, scope, present[0])
            return self._node_results(node, present, ConversionContext(self._builder, label, wanted, self._constants))
        except Refused as refused:
            own = node.domain in OWN_DOMAINS
            operator = node.op_type if own else f"{node.domain}.{node.op_type}"
            opset = self._opsets.get("" if own else node.domain, "not said")
            subject = f"node {label!r} ({operator}, opset {opset})"
            self._problems.append(Problem(subject, str(refused), operator))
            return [MISSING] * len(node.output)

    def _check_operator(self, node: NodeProto) -> None:
        """Refuse a node for its operator alone, its inputs being missing.

        Raises:
            Refused: there is no rule.
        """
        if node.op_type != "If":
            schema = self._schema(node)
            if schema.since_version not in RULES.get(node.op_type, {}):
                raise Refused(_no_rule(schema))

    def _node_results(
        self, node: NodeProto, values: Sequence[Value | None], context: ConversionContext
    ) -> Sequence[Converted]:
        """Compute the node now if all its inputs are static, else convert it by its rule."""
        schema = self._schema(node)
        rule = RULES.get(node.op_type, {}).get(schema.since_version)
        static = [value for value in values if value is None or isinstance(value, np.ndarray)]
        foldable = len(static) == len(values) and node.op_type not in NOT_CONSTANT
        results: Sequence[Value | None]
        if foldable and (rule is None or rule.may_compute_shapes):
            results = fold(node, static, self._opsets)
        elif rule is None:
            raise Refused(_no_rule(schema))
        else:
            results = call(rule, schema, node, values, context)
        return [MISSING if result is None else result for result in results]

    def _branch_results(self, node: NodeProto, scope: Scope, condition: Value | None) -> Sequence[Converted]:
        """Convert the branch that a static condition chooses, in place of the node."""
        if not isinstance(condition, np.ndarray):
            raise Refused("its condition is computed when the graph runs; it must be known while building")
        chosen = "then_branch" if condition.item() else "else_branch"
        branch = next(attribute.g for attribute in node.attribute if attribute.name == chosen)
        inner = scope.new_child()
        deque(self._convert_graph(branch, live(branch), inner), maxlen=0)
        return [_looked_up(inner, item.name, f"the {chosen} of {node.name!r}") for item in branch.output]

    def _schema(self, node: NodeProto) -> defs.OpSchema:
        """What ONNX says of the node's operator in the model's opset.

        Raises:
            Refused: it says nothing, or what it says may be out of date.
        """
        if node.domain not in OWN_DOMAINS:
            raise Refused(f"operators of the domain {node.domain!r} are not supported")
        opset, newest = self._opsets.get("", 0), defs.onnx_opset_version()
        if opset > newest:
            raise Refused(f"the installed onnx package knows opsets up to {newest}")
        try:
            return defs.get_schema(node.op_type, opset, "")
        except defs.SchemaError as error:
            raise Refused(f"ONNX has no such operator in opset {opset}") from error


def _no_rule(schema: defs.OpSchema) -> str:
    versions = sorted(RULES.get(schema.name, {}))
    if not versions:
        return "the operator is not supported, unless all its inputs are known while building"
    return (
        f"version {schema.since_version} of the operator is not supported; "
        f"only those of opset {', '.join(map(str, versions))} are"
    )


def _looked_up(scope: Scope, name: str, user: str) -> Converted:
    try:
        return scope[name]
    except KeyError:
        raise ValueError(f"the model is broken: {user} uses {name!r}, which nothing before it computes") from None


@attrs.frozen
class Live:
    """What a graph's outputs need: nodes, in their order, and the names that these and the outputs use."""

    nodes: Sequence[NodeProto]
    names: set[str]


def live(graph: GraphProto) -> Live:
    """What the graph's outputs need."""
    used = {item.name for item in graph.output}
    nodes: list[NodeProto] = []
    for node in reversed(graph.node):
        if not used.isdisjoint(node.output):
            used.update(filter(None, _used_by(node)))
            nodes.append(node)
    return Live(nodes[::-1], used)


def _used_by(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, also those that its inner graphs may take from outside."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            inner: GraphProto = helper.get_attribute_value(attribute)
            yield from (item.name for item in inner.output)
            for inner_node in inner.node:
                yield from _used_by(inner_node)
