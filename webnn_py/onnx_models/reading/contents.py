"""What a model contains: operators, parameters, and what its file says of itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from webnn_py.onnx_models.reading.functions import OWN_DOMAINS, inner_graphs
from webnn_py.onnx_models.reading.tensors import data_length

CLASSICAL: Final = "ai.onnx.ml"
"""The domain of ONNX's operators of classical machine learning."""

FLOAT_BYTES: Final = 4
"""The length of a float of an attribute."""


@attrs.frozen
class ModelContents:
    """What a model contains.

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
        """How many nodes there are."""
        return sum(self.operators.values())


def contents_of(model: ModelProto) -> ModelContents:
    """What a model that has been read contains."""
    nodes = [*nodes_of(model)]
    tensors = [*_initializers(model.graph), *(tensor for node in nodes for tensor in _inner_initializers(node))]
    classical = [item for node in nodes if node.domain == CLASSICAL for item in node.attribute]
    tensors += [item.t for item in classical if item.HasField("t")]
    learnt = sum(len(item.floats) for item in classical)
    numeric = [tensor for tensor in tensors if tensor.data_type != TensorProto.STRING]
    return ModelContents(
        opsets={"" if item.domain in OWN_DOMAINS else item.domain: item.version for item in model.opset_import},
        ir_version=model.ir_version,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        metadata={item.key: item.value for item in model.metadata_props},
        operators=dict(Counter(map(_operator, nodes)).most_common()),
        parameters=sum(math.prod(tensor.dims) for tensor in numeric) + learnt,
        parameter_bytes=sum(map(data_length, numeric)) + FLOAT_BYTES * learnt,
    )


def nodes_of(model: ModelProto) -> Iterator[NodeProto]:
    """Yield the nodes of a model's graph and functions, and those of the graphs in them."""
    yield from _all_nodes(model.graph.node)
    for function in model.functions:
        yield from _all_nodes(function.node)


def initializers_of(model: ModelProto) -> Iterator[TensorProto]:
    """The initializers of a model's graph, and of those in it; sparse ones are left out."""
    yield from model.graph.initializer
    for node in _all_nodes(model.graph.node):
        for attribute in node.attribute:
            for graph in inner_graphs(attribute):
                yield from graph.initializer


def _operator(node: NodeProto) -> str:
    return node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}.{node.op_type}"


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in inner_graphs(attribute):
                yield from _all_nodes(graph.node)


def _initializers(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from (sparse.values for sparse in graph.sparse_initializer)


def _inner_initializers(node: NodeProto) -> Iterator[TensorProto]:
    """Those of the graphs that stand in a node itself, and the tensor of a Constant."""
    for attribute in node.attribute:
        for graph in inner_graphs(attribute):
            yield from _initializers(graph)
    if node.op_type == "Constant":
        yield from (item.t for item in node.attribute if item.HasField("t"))
