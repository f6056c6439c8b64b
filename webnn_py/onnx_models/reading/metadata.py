"""Metadata of a model: its producer, versions and properties."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import attrs
from onnx import ModelProto

from webnn_py.onnx_models.reading.functions import opsets_of


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
    def of(cls, proto: ModelProto) -> Self:
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
