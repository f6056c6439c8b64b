"""A simpler ONNX model of the same results: inputs frozen, shapes fixed, what is known computed, the rest as it was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, final

import attrs
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

from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.folding.evaluation import CONSTANT, fold, is_folded
from webnn_py.onnx_models.limits import Expenses, ModelLimits
from webnn_py.onnx_models.reading.element_types import is_of_numpy
from webnn_py.onnx_models.reading.functions import OWN_DOMAINS, called_name, functions_of
from webnn_py.onnx_models.reading.model_file import ReadModel
from webnn_py.onnx_models.reading.node_order import live, used_by
from webnn_py.onnx_models.reading.tensors import tensor_array
from webnn_py.onnx_models.simplification.inlining import inlined, renamed
from webnn_py.operators.rules import Refused

SMALL: Final = 1024
"""Elements of a value that may say a shape, which shape inference is told."""

LARGEST_GROWTH: Final = 1 << 16
"""Bytes that a computed value may have beyond what it is computed from and replaces; a larger one stays a node."""

KEPT: Final = frozenset({"DequantizeLinear", "QuantizeLinear"})
"""Computed before, these would make a quantized model four times as large, or hide that it is one."""

LOWEST_IR_VERSION: Final = 4
"""Since this version of the file format initializers need not be inputs."""


@attrs.frozen
class SimplifiedModel:
    """What :func:`simplify` gives.

    Attributes:
        proto: the model.
        intermediate_bytes: what the values that its nodes compute take when most of them are needed at once; None
            where a shape is not known.
        unsized: the first value whose shape is not known; "" where all are.
    """

    proto: ModelProto
    intermediate_bytes: int | None
    unsized: str


def simplify(
    model: ReadModel,
    shapes: Mapping[str, Sequence[int | str]],
    values: Mapping[str, StaticValue],
    limits: ModelLimits | None = None,
) -> SimplifiedModel:
    """Make a simpler model; the one given is not changed.

    Args:
        model: a model whose weights have not been read by a conversion.
        shapes: of inputs, by name; they fit what the model says. A string is a dimension that stays open, "?" one
            without a name.
        values: for inputs that become constants; of the inputs' types and shapes.
        limits: what computing values may cost.
    """
    expenses = Expenses(ModelLimits() if limits is None else limits, model.size)
    simplified = _walked(model.proto, shapes, values, expenses)
    while True:
        # Weights that only the branches which are gone had in common can be computed with now.
        again = _walked(simplified.proto, {}, {}, expenses)
        if len(again.proto.graph.node) >= len(simplified.proto.graph.node):
            return simplified
        simplified = again


def _walked(
    model: ModelProto,
    shapes: Mapping[str, Sequence[int | str]],
    values: Mapping[str, StaticValue],
    expenses: Expenses,
) -> SimplifiedModel:
    walk = _Walk(model, shapes, values, expenses)
    outputs = [item.name for item in model.graph.output]
    walk.add_all(live(model.graph.node, outputs).nodes)
    needed = live([*walk.nodes, *walk.constants_of(outputs)], outputs)
    proto = _without_graph(model)
    proto.ir_version = max(proto.ir_version, LOWEST_IR_VERSION)
    proto.graph.CopyFrom(walk.graph_of(needed.nodes, needed.names))
    return SimplifiedModel(proto, walk.intermediate_bytes(needed.nodes, outputs), walk.unsized(needed.nodes))


def _without_graph(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            continue
        if field.message_type is not None:
            getattr(copy, field.name).extend(value)
        else:
            setattr(copy, field.name, value)
    return copy


@final
class _Walk:
    """A model's nodes in their order: each is computed, replaced or kept.

    Attributes:
        nodes: those that are kept so far.
    """

    def __init__(
        self,
        model: ModelProto,
        shapes: Mapping[str, Sequence[int | str]],
        values: Mapping[str, StaticValue],
        expenses: Expenses,
    ) -> None:
        self._graph = model.graph
        self._opsets = {"" if item.domain in OWN_DOMAINS else item.domain: item.version for item in model.opset_import}
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
        self.nodes: list[NodeProto] = []
        for item in model.graph.input:
            if item.name not in self._tensors and item.name not in values:
                self._types[item.name] = _of_shape(item.type, shapes.get(item.name))
        declared = {item.name: item.type for item in (*model.graph.value_info, *model.graph.output)}
        self._declared: Mapping[str, TypeProto] = declared
        self._taken = {*self._tensors, *self._types, *self._computed, *declared}
        self._taken.update(name for node in model.graph.node for name in node.output)

    def add_all(self, nodes: Iterable[NodeProto]) -> None:
        """Compute, replace or keep these nodes."""
        pending = list(nodes)[::-1]
        while pending:
            node = pending.pop()
            if not self._aliases.keys().isdisjoint(used_by(node)):
                node = renamed(node, self._aliases)
            if self._is_alias(node):
                self._aliases[node.output[0]] = node.input[0]
                continue
            branch = self._chosen_branch(node)
            if branch is not None:
                made = inlined(node, branch, self._taken)
                self._tensors.update({item.name: item for item in made.initializers})
                pending += made.nodes[::-1]
                continue
            results = self._results(node)
            if results is None:
                self.nodes.append(node)
                self._types.update(self._inferred(node))
            else:
                self._computed.update({name: value for name, value in results.items() if name})

    def _is_alias(self, node: NodeProto) -> bool:
        """Whether a node gives another name to a value that is computed, which it need not have."""
        own = node.op_type == "Identity" and node.domain in OWN_DOMAINS and called_name(node) not in self._functions
        fits = own and len(node.input) == len(node.output) == 1
        return fits and node.output[0] not in self._outputs and node.input[0] in self._types

    def _chosen_branch(self, node: NodeProto) -> GraphProto | None:
        if node.op_type != "If" or node.domain not in OWN_DOMAINS or called_name(node) in self._functions:
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
        """The value of a name, if it is known."""
        if name in self._computed:
            return self._computed[name]
        tensor = self._tensors.get(name)
        if tensor is None or tensor.data_type == TensorProto.STRING:
            return None
        if name not in self._read:
            self._read[name] = tensor_array(tensor)
        return self._read[name]

    def _results(self, node: NodeProto) -> dict[str, StaticValue] | None:
        """What a node computes, by name; None if it has to stay a node."""
        schema = self._schema(node)
        if schema is None or node.op_type in KEPT:
            return None
        shape = self._known_shape(node)
        if shape is not None:
            return {node.output[0]: shape}
        values = [self._static(name) if name else None for name in node.input]
        if any(value is None and name for value, name in zip(values, node.input, strict=True)):
            return None
        if not is_folded(node.op_type):
            return None
        try:
            results = fold(node, values, self._opsets, self._expenses)
        except Refused:
            return None  # it stays, and is computed when the model runs
        computed = {name: value for name, value in zip(node.output, results, strict=True) if value is not None}
        # A weight that others use too stays beside what is computed from it.
        own = [
            value for name, value in zip(node.input, values, strict=True) if value is not None and self._uses[name] < 2
        ]
        growth = sum(value.nbytes for value in computed.values()) - sum(value.nbytes for value in own)
        return computed if node.op_type == CONSTANT or growth <= LARGEST_GROWTH else None

    def _known_shape(self, node: NodeProto) -> StaticValue | None:
        """What Shape or Size gives for a value whose shape is known, be the value known or not."""
        if node.op_type not in {"Shape", "Size"} or not len(node.input) == len(node.output) == 1:
            return None
        shape = _fixed_shape(self._type_of(node.input[0]))
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
        if node.domain not in OWN_DOMAINS or called_name(node) in self._functions:
            return None
        try:
            return defs.get_schema(node.op_type, self._opsets.get("", 0), "")
        except defs.SchemaError:
            return None

    def _inferred(self, node: NodeProto) -> dict[str, TypeProto]:
        """The types of what a node gives: by ONNX's inference, else what the model itself says."""
        said = {name: self._declared[name] for name in node.output if name in self._declared}
        schema = self._schema(node)
        types = {name: self._type_of(name) for name in node.input if name}
        known = {name: _of_sizes(item) for name, item in types.items() if item is not None}
        if schema is None or len(known) < len(types) or _splits_more(node):
            return said
        data = {
            name: numpy_helper.from_array(value, name)
            for name in known
            if _element_count(known[name]) <= SMALL and (value := self._static(name)) is not None
        }
        try:
            inferred = shape_inference.infer_node_outputs(
                schema, node, known, data, opset_imports=self._opset_protos, ir_version=onnx.IR_VERSION
            )
        except Exception:  # noqa: BLE001 - it has errors of its own for nodes that are malformed
            return said  # as it is for inner graphs that use names from outside
        found = {name: item for name, item in inferred.items() if item.WhichOneof("value") is not None}
        return {**found, **said, **{name: item for name, item in found.items() if _has_shape(item)}}

    # --- what comes of it -------------------------------------------------------------------------------------

    def constants_of(self, outputs: Sequence[str]) -> Iterator[NodeProto]:
        """Nodes for outputs of the model that are known: not every program takes an initializer as an output."""
        for name in outputs:
            value = None if name in self._types else self._static(name)
            if value is not None:
                yield helper.make_node(CONSTANT, [], [name], value=numpy_helper.from_array(np.asarray(value)))

    def graph_of(self, nodes: Sequence[NodeProto], used: set[str]) -> GraphProto:
        """The graph that has these nodes, which use these names."""
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
            if known is not None and _has_shape(known) and name not in self._outputs:
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
        return next((name for name in made if _byte_length(self._type_of(name)) is None), "")

    def intermediate_bytes(self, nodes: Sequence[NodeProto], outputs: Iterable[str]) -> int | None:
        """The most that values which nodes compute take at once; None where a shape is not known."""
        last_use = {name: index for index, node in enumerate(nodes) for name in live([node], node.output).names}
        last_use.update(dict.fromkeys(outputs, len(nodes)))
        living, most = 0, 0
        ending: dict[int, int] = {}
        for index, node in enumerate(nodes):
            for name in filter(None, node.output):
                size = _byte_length(self._type_of(name))
                if size is None:
                    return None
                living += size
                end = last_use.get(name, index)
                ending[end] = ending.get(end, 0) + size
            most = max(most, living)
            living -= ending.pop(index, 0)
        return most


def _splits_more(node: NodeProto) -> bool:
    """Whether a Split is for more outputs than it has: the inference would make so many types, be they billions."""
    return node.op_type == "Split" and any(
        item.name == "num_outputs" and item.i > len(node.output) for item in node.attribute
    )


def _of_sizes(declared: TypeProto) -> TypeProto:
    """A type whose negative sizes are unknown: ONNX's inference takes them for sizes, and ends the process at some."""
    if all(item.dim_value >= 0 for item in declared.tensor_type.shape.dim):
        return declared
    sized = TypeProto()
    sized.CopyFrom(declared)
    for item in sized.tensor_type.shape.dim:
        if item.dim_value < 0:
            item.ClearField("dim_value")
    return sized


def _of_shape(declared: TypeProto, shape: Sequence[int | str] | None) -> TypeProto:
    """A type with another shape."""
    if shape is None:
        return declared
    sizes = [None if size == "?" else size for size in shape]
    fixed: TypeProto = helper.make_tensor_type_proto(declared.tensor_type.elem_type, sizes)
    return fixed


def _has_shape(declared: TypeProto) -> bool:
    return bool(declared.HasField("tensor_type") and declared.tensor_type.HasField("shape"))


def _fixed_shape(declared: TypeProto | None) -> tuple[int, ...] | None:
    """The shape of a tensor type, if it is known wholly."""
    if declared is None or not _has_shape(declared):
        return None
    dimensions = declared.tensor_type.shape.dim
    if not all(item.HasField("dim_value") and item.dim_value >= 0 for item in dimensions):
        return None
    return tuple(item.dim_value for item in dimensions)


def _element_count(declared: TypeProto) -> float:
    shape = _fixed_shape(declared)
    return math.inf if shape is None else math.prod(shape)


def _byte_length(declared: TypeProto | None) -> int | None:
    shape = _fixed_shape(declared)
    if declared is None or shape is None or not is_of_numpy(declared.tensor_type.elem_type):
        return None
    return math.prod(shape) * helper.tensor_dtype_to_np_dtype(declared.tensor_type.elem_type).itemsize
