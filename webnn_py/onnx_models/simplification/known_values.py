"""The values and types of a model that are known before it runs, and the nodes that remain to be computed then."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, final

import numpy as np
import onnx
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)

from webnn_py.core.message_text import in_brackets
from webnn_py.core.operators.rules import Refused
from webnn_py.devices.rewriting.report import AppliedRule
from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.folding.evaluation import CONSTANT, FOLDED, fold
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.reading.functions import OWN_DOMAINS, called_name, functions_of, opsets_of
from webnn_py.onnx_models.reading.node_order import live, used_by
from webnn_py.onnx_models.reading.tensors import tensor_array
from webnn_py.onnx_models.simplification.inlining import inlined, renamed
from webnn_py.onnx_models.simplification.value_types import (
    byte_length,
    fixed_shape,
    has_shape,
    of_known_sizes,
    of_shape,
)

SMALL: Final = 1024
"""The most elements of a value that shape inference is given, as it may be a shape."""

LARGEST_GROWTH: Final = 1 << 16
"""The most bytes by which a computed value may be larger than the inputs that it replaces; otherwise the node stays."""

KEPT: Final = frozenset({"DequantizeLinear", "QuantizeLinear"})
"""Operators that are not computed: a quantized model would be four times as large, or no longer a quantized one."""


@final
class KnownValues:
    """The values of a model that can be computed before it runs, and the types of all others.

    Args:
        model: the model.
        shapes: the shapes of inputs, by name.
        values: of inputs, by name.
        expenses: what computing values has cost so far.
    """

    def __init__(
        self,
        model: ModelProto,
        shapes: Mapping[str, Sequence[int | str]],
        values: Mapping[str, StaticValue],
        expenses: Expenses,
    ) -> None:
        self._graph = model.graph
        self._opsets = opsets_of(model.opset_import)
        self._opset_protos: list[OperatorSetIdProto] = list(model.opset_import)
        self._functions = functions_of(model)
        self._expenses = expenses
        self._tensors = {item.name: item for item in model.graph.initializer}
        self._computed: dict[str, StaticValue] = dict(values)
        self._read: dict[str, StaticValue] = {}
        self._types: dict[str, TypeProto] = {}
        self._aliases: dict[str, str] = {}
        self._uses = Counter(name for node in model.graph.node for name in used_by(node))
        self._outputs = {item.name for item in model.graph.output}
        for item in model.graph.input:
            if item.name not in self._tensors and item.name not in values:
                self._types[item.name] = of_shape(item.type, shapes.get(item.name))
        declared = {item.name: item.type for item in (*model.graph.value_info, *model.graph.output)}
        self._declared: Mapping[str, TypeProto] = declared
        self._taken = {*self._tensors, *self._types, *self._computed, *declared}
        self._taken.update(name for node in model.graph.node for name in node.output)

    def remaining(self, nodes: Sequence[NodeProto], applied: list[AppliedRule]) -> list[NodeProto]:
        """Return the nodes that are neither computed nor replaced, in order, and note the others."""
        remaining: list[NodeProto] = []
        pending = list(nodes)[::-1]
        while pending:
            node = pending.pop()
            if not self._aliases.keys().isdisjoint(used_by(node)):
                node = renamed(node, self._aliases)
            if self._is_alias(node):
                self._aliases[node.output[0]] = node.input[0]
                applied.append(_applied("identity", node))
                continue
            branch = self._chosen_branch(node)
            if branch is not None:
                initializers, nodes_of_branch = inlined(node, branch, self._taken)
                self._tensors.update({item.name: item for item in initializers})
                pending += nodes_of_branch[::-1]
                applied.append(_applied("known condition", node))
                continue
            results = self._results(node)
            if results is None:
                remaining.append(node)
                self._types.update(self._inferred(node))
            else:
                self._computed.update({name: value for name, value in results.items() if name})
                applied.append(_applied("known inputs", node))
        return remaining

    def _is_onnx(self, node: NodeProto) -> bool:
        """Return whether a node's operator is ONNX's, rather than another domain's or a function of the model."""
        return node.domain in OWN_DOMAINS and called_name(node) not in self._functions

    def _is_alias(self, node: NodeProto) -> bool:
        """Return whether a node only gives another name to a value that is computed when the model runs."""
        fits = node.op_type == "Identity" and self._is_onnx(node) and len(node.input) == len(node.output) == 1
        return fits and node.output[0] not in self._outputs and node.input[0] in self._types

    def _chosen_branch(self, node: NodeProto) -> GraphProto | None:
        if node.op_type != "If" or not self._is_onnx(node):
            return None
        condition = self._static(node.input[0]) if node.input else None
        if condition is None or condition.size != 1:
            return None
        chosen = "then_branch" if condition.item() else "else_branch"
        graphs = [item.g for item in node.attribute if item.name == chosen and item.HasField("g")]
        fits = len(graphs) == 1 and len(graphs[0].output) == len(node.output) and not graphs[0].sparse_initializer
        return graphs[0] if fits else None

    # --- values -----------------------------------------------------------------------------------------------

    def _static(self, name: str) -> StaticValue | None:
        """Return the value of a name; None where it is not known."""
        if name in self._computed:
            return self._computed[name]
        tensor = self._tensors.get(name)
        if tensor is None or tensor.data_type == TensorProto.STRING:
            return None
        if name not in self._read:
            self._read[name] = tensor_array(tensor)
        return self._read[name]

    def _results(self, node: NodeProto) -> dict[str, StaticValue] | None:
        """Return the results of a node by name; None where it has to stay a node."""
        schema = self._schema(node)
        if schema is None or node.op_type in KEPT:
            return None
        shape = self._known_shape(node)
        if shape is not None:
            return {node.output[0]: shape}
        values = [self._static(name) if name else None for name in node.input]
        if any(value is None and name for value, name in zip(values, node.input, strict=True)):
            return None
        if node.op_type not in FOLDED:
            return None
        try:
            results = fold(node, values, self._opsets, self._expenses)
        except Refused:
            return None  # it stays, and is computed when the model runs
        computed = {name: value for name, value in zip(node.output, results, strict=True) if value is not None}
        # A weight that other nodes use as well stays in the model.
        own = [
            value for name, value in zip(node.input, values, strict=True) if value is not None and self._uses[name] < 2
        ]
        growth = sum(value.nbytes for value in computed.values()) - sum(value.nbytes for value in own)
        return computed if node.op_type == CONSTANT or growth <= LARGEST_GROWTH else None

    def _known_shape(self, node: NodeProto) -> StaticValue | None:
        """Return the result of a Shape or Size of a value whose shape is known, whether the value is or not."""
        if node.op_type not in {"Shape", "Size"} or not len(node.input) == len(node.output) == 1:
            return None
        shape = fixed_shape(self._type_of(node.input[0]))
        if shape is None:
            return None
        if node.op_type == "Size":
            return np.array(math.prod(shape), np.int64)
        attributes = {item.name: item.i for item in node.attribute}
        return np.array(shape[attributes.get("start", 0) : attributes.get("end", len(shape))], np.int64)

    # --- types ------------------------------------------------------------------------------------------------

    def _type_of(self, name: str) -> TypeProto | None:
        if name in self._types:
            return self._types[name]
        if name in self._computed:
            value = self._computed[name]
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        if name in self._tensors:
            tensor = self._tensors[name]
            return helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        return None

    def _schema(self, node: NodeProto) -> defs.OpSchema | None:
        if not self._is_onnx(node):
            return None
        try:
            return defs.get_schema(node.op_type, self._opsets.get("", 0), "")
        except defs.SchemaError:
            return None

    def _inferred(self, node: NodeProto) -> dict[str, TypeProto]:
        """Return the types of a node's outputs: by ONNX's inference, or else as the model declares them."""
        declared = {name: self._declared[name] for name in node.output if name in self._declared}
        schema = self._schema(node)
        types = {name: self._type_of(name) for name in node.input if name}
        known = {name: of_known_sizes(item) for name, item in types.items() if item is not None}
        if schema is None or len(known) < len(types) or not _may_be_inferred(schema, node):
            return declared
        small = [
            name
            for name, item in known.items()
            if (shape := fixed_shape(item)) is not None and math.prod(shape) <= SMALL
        ]
        data = {
            name: numpy_helper.from_array(value, name) for name in small if (value := self._static(name)) is not None
        }
        try:
            inferred = shape_inference.infer_node_outputs(
                schema, node, known, data, opset_imports=self._opset_protos, ir_version=onnx.IR_VERSION
            )
        except Exception:  # noqa: BLE001 - it has errors of its own for nodes that are malformed
            return declared  # as it is for inner graphs that use names from outside
        found = {name: item for name, item in inferred.items() if item.WhichOneof("value") is not None}
        return {**found, **declared, **{name: item for name, item in found.items() if has_shape(item)}}

    # --- the simplified model ---------------------------------------------------------------------------------

    def constants_of(self, outputs: Sequence[str]) -> Iterator[NodeProto]:
        """Yield a Constant for each known output: not every program takes an initializer as an output of the model."""
        for name in outputs:
            value = None if name in self._types else self._static(name)
            if value is not None:
                yield helper.make_node(CONSTANT, [], [name], value=numpy_helper.from_array(np.asarray(value)))

    def graph_of(self, nodes: Sequence[NodeProto]) -> GraphProto:
        """Return a graph of these nodes, with the initializers, inputs and types that they need."""
        used = self._outputs.union(*map(used_by, nodes))
        given = {name for node in nodes for name in node.output}
        graph = GraphProto(name=self._graph.name, doc_string=self._graph.doc_string)
        graph.node.extend(nodes)
        for name in dict.fromkeys((*self._tensors, *self._computed)):
            if name in used and name not in given:
                value = self._computed.get(name)
                made = self._tensors[name] if value is None else numpy_helper.from_array(np.asarray(value), name)
                graph.initializer.append(made)
        graph.sparse_initializer.extend(item for item in self._graph.sparse_initializer if item.values.name in used)
        for item in self._graph.input:
            if item.name in self._types:
                graph.input.add(name=item.name, type=self._types[item.name], doc_string=item.doc_string)
        for item in self._graph.output:
            graph.output.add(name=item.name, type=self._type_of(item.name) or item.type, doc_string=item.doc_string)
        for name in (name for node in nodes for name in node.output):
            known = self._types.get(name)
            if known is not None and has_shape(known) and name not in self._outputs:
                graph.value_info.add(name=name, type=known)
        graph.metadata_props.extend(self._graph.metadata_props)
        kept = {*given, *used}
        graph.quantization_annotation.extend(
            item for item in self._graph.quantization_annotation if item.tensor_name in kept
        )
        return graph

    def unsized(self, nodes: Sequence[NodeProto]) -> str:
        """Return the first value that nodes compute whose shape is not known; "" if all are."""
        made = (name for node in nodes for name in node.output if name)
        return next((name for name in made if byte_length(self._type_of(name)) is None), "")

    def intermediate_bytes(self, nodes: Sequence[NodeProto], outputs: Iterable[str]) -> int | None:
        """Return the most bytes that computed values need at once; None where a shape is not known."""
        last_use = {name: index for index, node in enumerate(nodes) for name in live([node], node.output).names}
        last_use.update(dict.fromkeys(outputs, len(nodes)))
        living, most = 0, 0
        ending: dict[int, int] = {}
        for index, node in enumerate(nodes):
            for name in filter(None, node.output):
                size = byte_length(self._type_of(name))
                if size is None:
                    return None
                living += size
                end = last_use.get(name, index)
                ending[end] = ending.get(end, 0) + size
            most = max(most, living)
            living -= ending.pop(index, 0)
        return most


def _applied(rule: str, node: NodeProto) -> AppliedRule:
    return AppliedRule(rule, f"{node.op_type}{in_brackets(node.name)}")


def _may_be_inferred(schema: defs.OpSchema, node: NodeProto) -> bool:
    """Return whether ONNX's inference takes a node: it ends the process where some counts do not fit."""
    fits = schema.min_input <= len(node.input) <= schema.max_input
    fits = fits and schema.min_output <= len(node.output) <= schema.max_output
    # Of a Split it makes as many types as the attribute says, even billions, and writes past the end of fewer.
    counts = [item.i for item in node.attribute if item.name == "num_outputs"]
    return fits and (node.op_type != "Split" or all(count == len(node.output) for count in counts))
