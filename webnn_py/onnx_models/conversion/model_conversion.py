"""Converting a model: node by node, each value static or an operand."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.graph import Output
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import Constants, ConversionContext, StaticValue, Value
from webnn_py.onnx_models.conversion.control_flow import CONTROL_FLOW, ControlFlowNode, InnerGraph
from webnn_py.onnx_models.conversion.freezing_advice import Freezing
from webnn_py.onnx_models.conversion.function_bodies import defining_function
from webnn_py.onnx_models.conversion.integers_of_16_bits import short_results
from webnn_py.onnx_models.conversion.node_conversion import check_operator, is_computed, kind_of, results_of
from webnn_py.onnx_models.conversion.repeated_nodes import RepeatedNode, Repetition
from webnn_py.onnx_models.conversion.scopes import (
    MISSING,
    Converted,
    Scope,
    ShortIntegers,
    Steps,
    Surroundings,
    TensorSequence,
    looked_up,
    tensor_of,
)
from webnn_py.onnx_models.conversion.sequences import SEQUENCE_OPERATORS, sequence_result
from webnn_py.onnx_models.conversion.webnn_operator_calls import draw_call, operator_of
from webnn_py.onnx_models.folding.evaluation import CONSTANT, fold
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.problems import (
    InvalidModelError,
    Problem,
    RefusedWithWayOut,
    UnsupportedModelError,
    node_name,
    shortened,
    worded,
)
from webnn_py.onnx_models.reading.functions import (
    OWN_DOMAINS,
    Functions,
    call_attributes,
    called_name,
    operator_name,
    opsets_of,
    with_attributes,
)
from webnn_py.onnx_models.reading.node_order import Live, live
from webnn_py.onnx_models.reading.tensors import tensor_array
from webnn_py.onnx_models.reading.weights import Weights
from webnn_py.onnx_models.rule_table.arguments import check_form

TENSORS: Final = frozenset({MLOperand, np.ndarray, type(None)})
"""The types of nearly all values, and of absent ones."""

LONGEST_PREFIX: Final = 100
"""Of a label, what stands before a node's own name."""

Replacing = Callable[[Value], Value]
"""Returns what takes the place of a result."""


class ModelConversion:
    """One conversion of a model in progress.

    Args:
        builder: what to build with.
        opsets: the version of each operator set, by domain.
        functions: the model's own functions, by name.
        expenses: what the model has cost so far.
        weights: the initializers of its graph.
        is_flat: whether the model has no functions, and its nodes neither inner graphs nor references to attributes.
        narrowing: which data types others stand for, by their names, where a value is more than known.
        replacing: functions of results of nodes, of the graph and of branches in it, by name: what they return takes
            the result's place.

    Attributes:
        done: how many nodes are converted, those of functions and inner graphs included.
        total: how many there are, as far as is known.
    """

    def __init__(  # noqa: PLR0913 - all that a model is made of
        self,
        builder: MLGraphBuilder,
        opsets: Mapping[str, int],
        functions: Functions,
        expenses: Expenses,
        weights: Weights,
        *,
        is_flat: bool,
        narrowing: Mapping[str, str],
        replacing: Mapping[str, Replacing],
    ) -> None:
        self._builder = builder
        self._is_flat = is_flat
        self._replacing = replacing
        self._expenses = expenses
        self._problems: list[Problem] = []
        self._scope: Scope = ChainMap()
        self._top = Surroundings(self._scope, opsets, functions, is_once=True)
        self._weights = weights
        self._constants = Constants(weights.key, narrowing)
        self._freezing = Freezing(builder)
        # Browsers' rules look at each operator.
        self._repetition = None if any(each.sees_all for each in builder.context.extensions) else Repetition(builder)
        self.done = 0
        self.total = 0

    def bind(self, name: str, value: StaticValue) -> None:
        """Give an input of the model a value."""
        self._scope[name] = value

    def bind_operand(self, name: str, element_type: int, operand: MLOperand) -> None:
        """Give an input of the model an operand of the builder.

        Raises:
            ValueError: it is another builder's, or of another data type than the input.
        """
        try:
            data_type = self._context(name, [True]).data_type("the data type", element_type)
        except Refused as error:
            self._add_problem("input", name, error)
            self._scope[name] = MISSING
            return
        wanted = f"input_operands[{name!r}] is {operand!r}; it must be an operand of the builder, of {data_type}"
        try:
            value = self._builder.value_of(operand)
        except TypeError:
            raise ValueError(wanted) from None
        if operand.data_type != data_type:
            raise ValueError(wanted)
        self._scope[name] = operand
        if element_type == TensorProto.BOOL:
            self._constants.boolean_inputs.add(value)

    def check_types(self, inputs: Mapping[str, int]) -> None:
        """Refuse inputs of element types that WebNN lacks.

        Args:
            inputs: the element types by name; 0 for what is no tensor.

        Raises:
            UnsupportedModelError: with each such input.
        """
        for name, element_type in inputs.items():
            try:
                if element_type == TensorProto.UNDEFINED:
                    raise Refused("it is no tensor; an input of the graph must be one")
                self._context(name, [True]).data_type("the data type", element_type)
            except Refused as error:
                self._add_problem("input", name, error)
        if self._problems:
            raise UnsupportedModelError(self._problems)

    def add_input(self, name: str, element_type: int, shape: tuple[int, ...]) -> None:
        """Add an input of the model to the graph."""
        try:
            data_type = self._context(name, [True]).data_type("the data type", element_type)
            operand = self._builder.input(name, data_type=data_type, shape=shape)
            self._scope[name] = operand
            if element_type == TensorProto.BOOL:
                self._constants.boolean_inputs.add(self._builder.value_of(operand))
        except (Refused, TypeError) as error:
            self._add_problem("input", name, error)
            self._scope[name] = MISSING

    def _add_problem(self, kind: str, name: str, error: Exception) -> None:
        """Note what is wrong with something of the model that is no node."""
        subject = f"{kind} {worded(name)}"
        self._problems.append(Problem(subject, shortened(str(error)), name=name, way_out=_way_out(error)))

    def outputs_of(self, graph: GraphProto, names: Sequence[str], needed: Live) -> Steps[dict[str, MLOperand]]:
        """Convert the model's graph in steps, one a node.

        Args:
            graph: the graph.
            names: of the outputs that are wanted.
            needed: what those need.

        Returns:
            The outputs, as the generator's value.

        Raises:
            UnsupportedModelError: with all that cannot be converted.
        """
        own = self._scope.maps[0]
        for item in graph.initializer[:]:
            name = item.name
            if name in needed.names and name not in own:  # an input that is given goes before it
                own[name] = self._weights.value(item)
        for sparse in graph.sparse_initializer:
            if sparse.values.name in needed.names:
                self._scope[sparse.values.name] = self._sparse(sparse)
        yield from self._convert_nodes(needed, self._top)
        outputs: dict[str, MLOperand] = {}
        for name in names:
            value = looked_up(self._scope, name, "the model's output", name)
            if value is MISSING:
                continue
            context = self._context(name, [True])
            try:
                operand = context.operand(_output(value))
                computed = isinstance(self._builder.value_of(operand), Output)
                outputs[name] = operand if computed else context.identity(operand)
            except Refused as refused:
                self._add_problem("output", name, refused)
        if self._problems:
            raise UnsupportedModelError(self._problems)
        return outputs

    def _context(self, label: str, wanted: Sequence[bool]) -> ConversionContext:
        return ConversionContext(
            self._builder,
            label,
            wanted,
            constants=self._constants,
            expenses=self._expenses,
            freezing=self._freezing,
        )

    def _sparse(self, tensor: SparseTensorProto) -> Converted:
        """Note that a sparse initializer is not supported."""
        error = Refused("it is sparse; only dense ones are supported")
        self._add_problem("initializer", tensor.values.name, error)
        return MISSING

    def _convert_nodes(self, needed: Live, seen: Surroundings) -> Steps[None]:
        self.total += len(needed.nodes)
        self._expenses.add_nodes(len(needed.nodes))
        if self._repetition is not None and seen.is_repeated:
            for repeated in self._repetition.nodes(needed):
                yield from self._convert_repeated(repeated, seen, self._repetition)
            return
        for node in needed.nodes:
            yield
            outputs = node.output[:]
            wanted = [bool(name) and name in needed.names for name in outputs]
            self._keep(node, outputs, (yield from self._results(node, seen, wanted)), seen)

    def _keep(self, node: NodeProto, outputs: Sequence[str], results: Sequence[Converted], seen: Surroundings) -> None:
        """Give the outputs of a node, which is done, their values."""
        own = seen.scope.maps[0]
        self.done += 1
        for name, result in zip(outputs, results, strict=True):
            if name in own:
                raise InvalidModelError(
                    f"the model is broken: node {worded(node_name(node))} computes {worded(name)}, which something "
                    "before it gives already"
                )
            if name:
                own[name] = self._replaced(name, result) if seen.is_once else result

    def _replaced(self, name: str, result: Converted) -> Converted:
        """Return what takes the place of a result."""
        if name not in self._replacing or not isinstance(result, (MLOperand, np.ndarray)):
            return result
        return self._replacing[name](result)

    def _convert_repeated(self, node: RepeatedNode, seen: Surroundings, repetition: Repetition) -> Steps[None]:
        """Convert a node of an inner graph as it was before, without its rule, where it was."""
        yield
        label = f"{seen.prefix}{node.name}"
        values = self._tensors(node.inputs, seen, label)
        again: Sequence[Value | None] | None = None
        if values is not None and repetition.is_varying(node.node):
            again = repetition.computed(node.node, values, seen.opsets, self._expenses)
        if values is not None and again is None:
            again = repetition.drawn_again(repetition.key(node.node, values, node.wanted), values, label)
            if again is None:
                again = repetition.computed(node.node, values, seen.opsets, self._expenses)
        if again is None:
            results = yield from self._results(node.node, seen, node.wanted)
        else:
            results = [MISSING if result is None else result for result in again]
        self._keep(node.node, node.outputs, results, seen)

    def _tensors(self, names: Sequence[str], seen: Surroundings, user: str) -> list[Value | None] | None:
        """Return values that something uses, None for the name "" and absent ones; None if some are no tensors."""
        values = [looked_up(seen.scope, name, "node", user) if name else None for name in names]
        tensors = [value for value in values if value is None or isinstance(value, (MLOperand, np.ndarray))]
        return tensors if len(tensors) == len(values) else None

    def _results(self, node: NodeProto, seen: Surroundings, wanted: Sequence[bool]) -> Steps[Sequence[Converted]]:
        """Return the results of a node; missing values where it cannot be converted, which is then noted."""
        label = f"{seen.prefix}{node_name(node)}"
        try:
            is_plain = self._is_flat and seen is self._top
            filled = node if is_plain else with_attributes(node, seen.attributes, self._expenses)
            return (yield from self._converted(filled, label, seen, wanted))
        except Refused as refused:
            self._problems.append(_problem(node, label, seen, str(refused), _way_out(refused)))
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
        names, own = node.input[:], seen.scope.maps[0]  # where nearly all values are
        values = [
            own[name] if name and name in own else looked_up(seen.scope, name, "node", label) if name else None
            for name in names
        ]
        operator, is_own = node.op_type, node.domain in OWN_DOMAINS
        if seen.functions and (function := seen.functions.get(called_name(node))) is not None:
            context = self._context(label, wanted)
            return (yield from self._call_results(function, node, values, seen, context))
        if operator == CONSTANT and is_own and not names and not seen.is_repeated:  # as half the nodes of some models
            check_form(kind_of(node, seen.opsets).form, node)
            return fold(node, (), seen.opsets, self._expenses)
        if operator in CONTROL_FLOW and is_own:
            return (yield from self._control_flow_results(node, values, label, seen, wanted))
        is_of_sequences = operator in SEQUENCE_OPERATORS and is_own
        kinds = {*map(type, values)}
        if type(MISSING) in kinds:
            if not is_of_sequences:
                check_operator(node, seen.opsets)
            return [MISSING] * len(node.output)
        context = self._context(label, wanted)
        if is_of_sequences:
            check_form(kind_of(node, seen.opsets).form, node)
            result = sequence_result(node, values, context)
        elif operator == "Identity" and values and isinstance(values[0], TensorSequence):
            result = values[0]
        else:
            results = short_results(node, values, seen.opsets, context)
            if results is None:
                tensors: Any = values
                if not kinds <= TENSORS:
                    check_operator(node, seen.opsets)
                    tensors = [None if value is None else tensor_of(value) for value in values]
                results = yield from self._tensor_results(node, tensors, seen, context)
            return [MISSING if result is None else result for result in results]
        return [result, *[MISSING] * (len(node.output) - 1)]

    def _tensor_results(
        self, node: NodeProto, tensors: Sequence[Value | None], seen: Surroundings, context: ConversionContext
    ) -> Steps[Sequence[Converted]]:
        """Compute or draw a node, which the next time may be the same, or convert its operator's body."""
        kind = kind_of(node, seen.opsets)
        if kind.has_body:
            check_form(kind.form, node)
            function = defining_function(node, kind.schema, tensors, context)
            outside = attrs.evolve(seen, functions={})  # in the body the names of operators mean ONNX's
            return (yield from self._body_results(function, node, tensors, outside, context))
        if self._repetition is None or not seen.is_repeated:
            return results_of(node, tensors, seen.opsets, context)
        results = results_of(node, tensors, seen.opsets, context)
        key = self._repetition.key(node, tensors, context.wanted)
        self._repetition.note(key, node, tensors, context, results)
        if is_computed(node, tensors, seen.opsets):
            self._repetition.note_computed(node)
        return results

    def _control_flow_results(
        self, node: NodeProto, values: Sequence[Converted], label: str, seen: Surroundings, wanted: Sequence[bool]
    ) -> Steps[Sequence[Converted]]:
        """Convert the inner graphs of a node in its place."""

        def inner_graph(graph: GraphProto, is_wanted: Sequence[bool]) -> InnerGraph:
            names = [item.name for item, needed in zip(graph.output, is_wanted, strict=True) if needed]
            needed = live(graph.node, names)
            own: dict[str, Converted] = {
                item.name: tensor_array(item) for item in graph.initializer if item.name in needed.names
            }
            for sparse in graph.sparse_initializer:
                if sparse.values.name in needed.names:
                    own[sparse.values.name] = self._sparse(sparse)
            return InnerGraph(graph, is_wanted, needed, own)

        def results(graph: InnerGraph, inputs: Sequence[Converted], iteration: int | None) -> Steps[list[Converted]]:
            names = [item.name for item in graph.graph.input]
            prefix = seen.prefix if iteration is None else f"{shortened(label, LONGEST_PREFIX)}[{iteration}]/"
            own = {**graph.own, **dict(zip(names, inputs, strict=True))}
            inner = seen.of_inner_graph(own, prefix, is_branch=iteration is None)
            yield from self._convert_nodes(graph.needed, inner)
            return [
                looked_up(inner.scope, item.name, "an inner graph of", label) if is_wanted else MISSING
                for item, is_wanted in zip(graph.graph.output, graph.wanted, strict=True)
            ]

        version = kind_of(node, seen.opsets).schema.since_version
        context = self._context(label, wanted)
        return (
            yield from CONTROL_FLOW[node.op_type](
                ControlFlowNode(node, version, values, wanted, context, seen, self._problems, inner_graph, results)
            )
        )

    def _call_results(
        self,
        function: FunctionProto,
        node: NodeProto,
        values: Sequence[Converted],
        seen: Surroundings,
        context: ConversionContext,
    ) -> Steps[Sequence[Converted]]:
        """Convert a node that calls one of the model's own functions."""
        operator = operator_of(function)
        if operator is not None and not any(value is MISSING for value in values):
            return draw_call(operator, function, node, [_present(value) for value in values], context)
        if len(values) > len(function.input) or len(node.output) > len(function.output):
            raise Refused(
                f"the call has {len(values)} inputs and {len(node.output)} outputs; the function has "
                f"{len(function.input)} and {len(function.output)}"
            )
        return (yield from self._body_results(function, node, values, seen, context))

    def _body_results(
        self,
        function: FunctionProto,
        node: NodeProto,
        values: Sequence[Converted],
        seen: Surroundings,
        context: ConversionContext,
    ) -> Steps[Sequence[Converted]]:
        """Convert the body of a function in place of the node that calls it."""
        inputs: dict[str, Converted] = {name: None for name in function.input if name}
        inputs.update(zip(function.input, values, strict=False))
        opsets = {**seen.opsets, **opsets_of(function.opset_import)}
        attributes = call_attributes(function, node)
        prefix = f"{shortened(context.label, LONGEST_PREFIX)}/"
        inner = Surroundings(ChainMap(inputs), opsets, seen.functions, attributes, prefix)
        outputs = list(zip(function.output, context.wanted, strict=False))
        body = live(function.node, [name for name, has_use in outputs if has_use])
        yield from self._convert_nodes(body, inner)
        return [
            looked_up(inner.scope, name, "the function", function.name) if has_use else MISSING
            for name, has_use in outputs
        ]


def _present(value: Converted) -> Value:
    if value is None:
        raise Refused("it is an input of a function that its call leaves out")
    return tensor_of(value)


def _output(value: Converted) -> Value:
    way_out = "leave it out, by outputs"
    if isinstance(value, np.ndarray) and value.size == 0:
        raise RefusedWithWayOut(f"its shape is {list(value.shape)}; WebNN has no tensors without elements", way_out)
    if isinstance(value, ShortIntegers):
        raise RefusedWithWayOut(f"it is {value.data_type}, which WebNN lacks", way_out)
    return _present(value)


def _way_out(error: Exception) -> str:
    return error.way_out if isinstance(error, RefusedWithWayOut) else ""


def _problem(node: NodeProto, label: str, seen: Surroundings, reason: str, way_out: str = "") -> Problem:
    operator = operator_name(node)
    opset = seen.opsets.get("" if node.domain in OWN_DOMAINS else node.domain, "not said")
    subject = f"node {worded(label)} ({shortened(operator)}, opset {opset})"
    return Problem(subject, shortened(reason), operator, label, way_out)
