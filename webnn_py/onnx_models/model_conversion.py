"""Converting a model: node by node, each value static or an operand."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, Literal, TypeVar

import attrs
import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, defs

from webnn_py.graph import Output
from webnn_py.onnx_models.calling import call, check_form
from webnn_py.onnx_models.conversion_context import Constants, ConversionContext, StaticValue, Value
from webnn_py.onnx_models.element_types import webnn_data_type
from webnn_py.onnx_models.folding import fold, is_folded
from webnn_py.onnx_models.functions import (
    OWN_DOMAINS,
    Functions,
    call_attributes,
    called_name,
    inner_graphs,
    with_attributes,
)
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.operator_calls import draw_call, operator_of
from webnn_py.onnx_models.problems import (
    InvalidModelError,
    Problem,
    UnsupportedModelError,
    node_name,
    shortened,
    worded,
)
from webnn_py.onnx_models.registry import RULES
from webnn_py.onnx_models.tensors import tensor_array
from webnn_py.onnx_models.weights import Weights
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused
from webnn_py.script.builder import MLGraphBuilder


class _Missing(Enum):
    MISSING = "missing"


LONGEST_PREFIX: Final = 100
"""Of a label, what stands before a node's own name."""

MISSING: Final = _Missing.MISSING
"""A value that could not be converted: its node is among the problems, or needs another missing value."""

Converted = Value | Literal[_Missing.MISSING] | None
"""A value, or none where a function's input is absent at its call."""

Scope = ChainMap[str, Converted]

ResultT = TypeVar("ResultT")
Steps = Generator[None, None, ResultT]
"""Something that is done in steps, between which other things may be done."""


@attrs.frozen
class Live:
    """What outputs need: nodes, in their order, and the names that these and the outputs use."""

    nodes: Sequence[NodeProto]
    names: set[str]


@attrs.frozen
class Surroundings:
    """What nodes see: those of the model's graph, of a branch, or of a function's body at one call.

    Attributes:
        scope: values by name.
        opsets: the version of each operator set, by domain.
        attributes: what attributes of the nodes may refer to: the call's, in a function's body.
        prefix: what stands before the nodes' names in messages and labels: the call's name, in a function's body.
    """

    scope: Scope
    opsets: Mapping[str, int]
    attributes: Mapping[str, AttributeProto] = attrs.field(factory=dict)
    prefix: str = ""

    def of_branch(self) -> Surroundings:
        """What the nodes of an inner graph see: the same, besides their own."""
        return attrs.evolve(self, scope=self.scope.new_child())


class ModelConversion:
    """One conversion of a model in progress.

    Args:
        builder: what to build with.
        opsets: the version of each operator set, by domain.
        functions: the model's own functions, by name.
        expenses: what the model has cost so far.
        weights: the initializers of its graph.

    Attributes:
        done: how many nodes are converted, those of functions and branches included.
        total: how many there are, as far as is known.
    """

    def __init__(
        self,
        builder: MLGraphBuilder,
        opsets: Mapping[str, int],
        functions: Functions,
        expenses: Expenses,
        weights: Weights,
    ) -> None:
        self._builder = builder
        self._functions = functions
        self._expenses = expenses
        self._problems: list[Problem] = []
        self._scope: Scope = ChainMap()
        self._top = Surroundings(self._scope, _by_domain(opsets))
        self._weights = weights
        self._constants = Constants(weights.key)
        self.done = 0
        self.total = 0

    def bind(self, name: str, value: StaticValue) -> None:
        """Give an input of the model a value."""
        self._scope[name] = value

    def add_input(self, name: str, element_type: int, shape: tuple[int, ...]) -> None:
        """Add an input of the model to the graph."""
        try:
            data_type = webnn_data_type("the data type", element_type)
        except Refused as refused:
            self._problems.append(Problem(f"input {worded(name)}", str(refused)))
            self._scope[name] = MISSING
            return
        try:
            self._scope[name] = self._builder.input(name, data_type=data_type, shape=shape)
        except TypeError as error:
            self._problems.append(Problem(f"input {worded(name)}", shortened(str(error))))
            self._scope[name] = MISSING

    def outputs_of(self, graph: GraphProto, needed: Live) -> Steps[dict[str, MLOperand]]:
        """Convert the model's graph in steps, one a node.

        Returns:
            The outputs, as the generator's value.

        Raises:
            UnsupportedModelError: with all that cannot be converted.
        """
        yield from self._convert_graph(graph, needed, self._top)
        outputs: dict[str, MLOperand] = {}
        for item in graph.output:
            value = _looked_up(self._scope, item.name, "the model's output", item.name)
            if value is MISSING:
                continue
            context = self._context(item.name, [True])
            try:
                operand = context.operand(_present(value))
                computed = isinstance(self._builder._values[operand], Output)
                outputs[item.name] = operand if computed else context.identity(operand)
            except Refused as refused:
                self._problems.append(Problem(f"output {worded(item.name)}", shortened(str(refused))))
        if self._problems:
            raise UnsupportedModelError(self._problems)
        return outputs

    def _context(self, label: str, wanted: Sequence[bool]) -> ConversionContext:
        return ConversionContext(self._builder, label, wanted, self._constants, self._expenses)

    def _convert_graph(self, graph: GraphProto, needed: Live, seen: Surroundings) -> Steps[None]:
        self._add_initializers(graph.initializer, graph.sparse_initializer, needed.names, seen.scope)
        yield from self._convert_nodes(needed, seen)

    def _add_initializers(
        self,
        dense: Iterable[TensorProto],
        sparse: Iterable[SparseTensorProto],
        used: set[str],
        scope: Scope,
    ) -> None:
        value_of = self._weights.value if scope is self._scope else tensor_array
        for item in dense:
            if item.name in used:
                scope[item.name] = value_of(item)
        for name in used.intersection(item.values.name for item in sparse):
            reason = "it is sparse; only dense ones are supported"
            self._problems.append(Problem(f"initializer {worded(name)}", reason))
            scope[name] = MISSING

    def _convert_nodes(self, needed: Live, seen: Surroundings) -> Steps[None]:
        own = seen.scope.maps[0]
        self.total += len(needed.nodes)
        for node in needed.nodes:
            yield
            wanted = [bool(name) and name in needed.names for name in node.output]
            results = yield from self._results(node, seen, wanted)
            self.done += 1
            for name, result in zip(node.output, results, strict=True):
                if name in own:
                    raise InvalidModelError(
                        f"the model is broken: node {worded(node_name(node))} computes {worded(name)}, which something "
                        "before it gives already"
                    )
                if name:
                    own[name] = result

    def _results(self, node: NodeProto, seen: Surroundings, wanted: Sequence[bool]) -> Steps[Sequence[Converted]]:
        """What a node gives; missing values when it cannot be converted, which is then noted."""
        label = f"{seen.prefix}{node_name(node)}"
        try:
            filled = with_attributes(node, seen.attributes, self._expenses)
            return (yield from self._converted(filled, label, seen, wanted))
        except Refused as refused:
            self._problems.append(_problem(node, label, seen, str(refused)))
            return [MISSING] * len(node.output)
        except (InvalidModelError, UnsupportedModelError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Rules check what they are given, and tests look for what they forget; this is for the rest.
            problem = _problem(node, label, seen, f"{type(error).__name__}: {error}")
            what = f"{problem.subject} cannot be understood: {problem.reason}"
            raise InvalidModelError(f"the model is broken: {what}") from error

    def _converted(
        self, node: NodeProto, label: str, seen: Surroundings, wanted: Sequence[bool]
    ) -> Steps[Sequence[Converted]]:
        values = [_looked_up(seen.scope, name, "node", label) if name else None for name in node.input]
        if called_name(node) in self._functions:
            return (yield from self._function_results(node, values, label, seen, wanted))
        present: list[Value | None] = [value for value in values if value is not MISSING]
        if len(present) < len(values):
            self._check_operator(node, seen)
            return [MISSING] * len(node.output)
        if node.op_type == "If" and node.domain in OWN_DOMAINS:
            return (yield from self._branch_results(node, seen, present[0] if present else None))
        return self._node_results(node, present, seen, self._context(label, wanted))

    def _check_operator(self, node: NodeProto, seen: Surroundings) -> None:
        """Refuse a node for its operator alone, its inputs being missing.

        Raises:
            Refused: there is no rule.
        """
        if node.op_type != "If":
            schema = _schema(node, seen)
            if schema.since_version not in RULES.get(node.op_type, {}):
                raise Refused(_no_rule(schema))

    def _node_results(
        self, node: NodeProto, values: Sequence[Value | None], seen: Surroundings, context: ConversionContext
    ) -> Sequence[Converted]:
        """Compute the node now if all its inputs are static, else convert it by its rule."""
        schema = _schema(node, seen)
        check_form(schema, node)
        rule = RULES.get(node.op_type, {}).get(schema.since_version)
        static = [value for value in values if value is None or isinstance(value, np.ndarray)]
        foldable = len(static) == len(values) and is_folded(node.op_type, schema.since_version)
        results: Sequence[Value | None]
        if foldable and (rule is None or rule.may_compute_shapes):
            results = fold(node, static, seen.opsets, self._expenses)
        elif rule is None:
            raise Refused(_no_rule(schema))
        else:
            results = call(rule, schema, node, values, context)
        return [MISSING if result is None else result for result in results]

    def _branch_results(
        self, node: NodeProto, seen: Surroundings, condition: Value | None
    ) -> Steps[Sequence[Converted]]:
        """Convert the branch that a static condition chooses, in place of the node."""
        if not isinstance(condition, np.ndarray):
            raise Refused("its condition is computed when the graph runs; it must be known while building")
        if condition.size != 1:
            raise Refused(f"its condition has the shape {list(condition.shape)}; it must be a single boolean")
        chosen = "then_branch" if condition.item() else "else_branch"
        branches = [attribute.g for attribute in node.attribute if attribute.name == chosen and attribute.HasField("g")]
        if len(branches) != 1 or len(branches[0].output) != len(node.output):
            raise Refused(f"it must have one {chosen}, of {len(node.output)} outputs as it has itself")
        inner, label = seen.of_branch(), node_name(node)
        yield from self._convert_graph(branches[0], live_of(branches[0]), inner)
        return [_looked_up(inner.scope, item.name, f"the {chosen} of", label) for item in branches[0].output]

    def _function_results(
        self,
        node: NodeProto,
        values: Sequence[Converted],
        label: str,
        seen: Surroundings,
        wanted: Sequence[bool],
    ) -> Steps[Sequence[Converted]]:
        """Convert the body of the model's own function that a node calls, in place of the node."""
        function = self._functions[called_name(node)]
        operator = operator_of(function)
        if operator is not None and not any(value is MISSING for value in values):
            present = [_present(value) for value in values]
            return draw_call(operator, function, node, present, self._context(label, wanted))
        if len(values) > len(function.input) or len(node.output) > len(function.output):
            raise Refused(
                f"the call has {len(values)} inputs and {len(node.output)} outputs; the function has "
                f"{len(function.input)} and {len(function.output)}"
            )
        inputs: dict[str, Converted] = {name: None for name in function.input if name}
        inputs.update(zip(function.input, values, strict=False))
        opsets = {**seen.opsets, **_by_domain({item.domain: item.version for item in function.opset_import})}
        attributes = call_attributes(function, node)
        inner = Surroundings(ChainMap(inputs), opsets, attributes, f"{shortened(label, LONGEST_PREFIX)}/")
        outputs = function.output[: len(node.output)]
        body = live(function.node, [name for name, has_use in zip(outputs, wanted, strict=True) if has_use])
        yield from self._convert_nodes(body, inner)
        return [
            _looked_up(inner.scope, name, "the function", function.name) if has_use else MISSING
            for name, has_use in zip(outputs, wanted, strict=True)
        ]


def _schema(node: NodeProto, seen: Surroundings) -> defs.OpSchema:
    """What ONNX says of the node's operator in the opset.

    Raises:
        Refused: it says nothing, or what it says may be out of date.
    """
    if node.domain not in OWN_DOMAINS:
        raise Refused(f"operators of the domain {worded(node.domain)} are not supported")
    opset, newest = seen.opsets.get("", 0), defs.onnx_opset_version()
    if opset > newest:
        raise Refused(f"the installed onnx package knows opsets up to {newest}")
    try:
        return defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError as error:
        raise Refused(f"ONNX has no such operator in opset {opset}") from error


def _no_rule(schema: defs.OpSchema) -> str:
    versions = sorted(RULES.get(schema.name, {}))
    if not versions:
        unless = (
            ", unless all its inputs are known while building" if is_folded(schema.name, schema.since_version) else ""
        )
        return f"the operator is not supported{unless}"
    return (
        f"version {schema.since_version} of the operator is not supported; "
        f"only those of opset {', '.join(map(str, versions))} are"
    )


def _by_domain(versions: Mapping[str, int]) -> dict[str, int]:
    """Versions of operator sets by domain; ONNX's own has two names."""
    return {"" if domain in OWN_DOMAINS else domain: version for domain, version in versions.items()}


def _present(value: Converted) -> Value:
    if value is None or value is MISSING:
        raise Refused("it is an input of a function that its call leaves out")
    return value


def _problem(node: NodeProto, label: str, seen: Surroundings, reason: str) -> Problem:
    own = node.domain in OWN_DOMAINS
    operator = node.op_type if own else f"{node.domain}.{node.op_type}"
    opset = seen.opsets.get("" if own else node.domain, "not said")
    subject = f"node {worded(label)} ({shortened(operator)}, opset {opset})"
    return Problem(subject, shortened(reason), operator)


def _looked_up(scope: Scope, name: str, kind: str, user: str) -> Converted:
    """The value of a name that something of a kind uses."""
    try:
        return scope[name]
    except KeyError:
        raise InvalidModelError(
            f"the model is broken: {kind} {worded(user)} uses {worded(name)}, which nothing before it computes"
        ) from None


def live_of(graph: GraphProto) -> Live:
    """What a graph's outputs need."""
    return live(graph.node, [item.name for item in graph.output])


def live(nodes: Sequence[NodeProto], outputs: Iterable[str]) -> Live:
    """What outputs need of these nodes."""
    used = set(outputs)
    needed: list[NodeProto] = []
    for node in reversed(nodes):
        if not used.isdisjoint(node.output):
            used.update(filter(None, _used_by(node)))
            needed.append(node)
    return Live(needed[::-1], used)


def _used_by(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, also those that its inner graphs may take from outside."""
    yield from node.input
    for attribute in node.attribute:
        for graph in inner_graphs(attribute):
            yield from (item.name for item in graph.output)
            for inner_node in graph.node:
                yield from _used_by(inner_node)
