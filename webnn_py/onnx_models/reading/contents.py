"""The contents of a model: operators, parameters, metadata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Self

import attrs
from onnx import ModelProto, NodeProto, TensorProto

from webnn_py.onnx_export.nodes import CLASSICAL
from webnn_py.onnx_models.reading.functions import all_nodes, inner_graphs, operator_name, opsets_of
from webnn_py.onnx_models.reading.tensors import data_length

FLOAT_BYTES: Final = 4
"""The length of a float of an attribute."""


@attrs.frozen(kw_only=True)
class ModelMetadata:
    """Metadata that a model's producer wrote; nothing of it is checked but that it is text.

    Attributes:
        producer_name: the tool that wrote the model.
        producer_version: the version of that tool.
        domain: whose model it is, as a reversed DNS name.
        model_version: of the model, a number.
        ir_version: of the file format.
        opsets: the version of each operator set, by domain; ONNX's own has the name "".
        graph_name: of the graph.
        doc_string: of the model, or where it has none, of its graph.
        properties: further texts by name (``metadata_props``).
    """

    producer_name: str
    producer_version: str
    domain: str
    model_version: int
    ir_version: int
    opsets: Mapping[str, int]
    graph_name: str
    doc_string: str
    properties: Mapping[str, str]

    @classmethod
    def from_proto(cls, proto: ModelProto) -> Self:
        """Read it."""
        return cls(
            producer_name=proto.producer_name,
            producer_version=proto.producer_version,
            domain=proto.domain,
            model_version=proto.model_version,
            ir_version=proto.ir_version,
            opsets=MappingProxyType(opsets_of(proto.opset_import)),
            graph_name=proto.graph.name,
            doc_string=proto.doc_string or proto.graph.doc_string,
            properties=MappingProxyType({item.key: item.value for item in proto.metadata_props}),
        )


@attrs.frozen
class ModelContents:
    """The contents of a model.

    Attributes:
        opsets: the version of each operator set, by domain; "" is ONNX's own.
        ir_version: of the file format.
        producer: the program that wrote the file, with its version; "" if it does not say.
        metadata: what else the file says of itself, by key.
        operators: how many nodes there are of each operator, those of inner graphs and functions counted once. An
            operator that is not ONNX's own has its domain before its name.
        parameters: how many numbers the initializers have together, and the operators of ``ai.onnx.ml``, which have
            thresholds, weights and coefficients as attributes.
        parameter_bytes: their length in the file.
    """

    opsets: Mapping[str, int]
    ir_version: int
    producer: str
    metadata: Mapping[str, str]
    operators: Mapping[str, int]
    parameters: int
    parameter_bytes: int

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(self.operators.values())


def contents_of(model: ModelProto) -> ModelContents:
    """Return the contents of a model that has been read."""
    nodes = [*nodes_of(model)]
    graphs = [model.graph, *(graph for node in nodes for graph in inner_graphs(node))]
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    tensors += [sparse.values for graph in graphs for sparse in graph.sparse_initializer]
    tensors += [
        item.t
        for node in nodes
        if node.op_type == "Constant" or node.domain == CLASSICAL
        for item in node.attribute
        if item.HasField("t")
    ]
    learnt = sum(len(item.floats) for node in nodes if node.domain == CLASSICAL for item in node.attribute)
    numeric = [tensor for tensor in tensors if tensor.data_type != TensorProto.STRING]
    return ModelContents(
        opsets=opsets_of(model.opset_import),
        ir_version=model.ir_version,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        metadata={item.key: item.value for item in model.metadata_props},
        operators=dict(Counter(map(operator_name, nodes)).most_common()),
        parameters=sum(math.prod(tensor.dims) for tensor in numeric) + learnt,
        parameter_bytes=sum(map(data_length, numeric)) + FLOAT_BYTES * learnt,
    )


def nodes_of(model: ModelProto) -> Iterator[NodeProto]:
    """Yield the nodes of a model's graph and functions, and those of the graphs in them."""
    for holder in (model.graph, *model.functions):
        yield from (node for node, _ in all_nodes(holder.node))


def initializers_of(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the initializers of a model's graph, and of those in it; sparse ones are left out."""
    yield from model.graph.initializer
    for node, _ in all_nodes(model.graph.node):
        for graph in inner_graphs(node):
            yield from graph.initializer
