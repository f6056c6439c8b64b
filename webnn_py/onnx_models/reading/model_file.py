"""Reading a model: nothing that the rest of the importer sees is longer, deeper or elsewhere than it may be."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import attrs
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    StringStringEntryProto,
    TensorProto,
    ValueInfoProto,
)

from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.problems import InvalidModelError, Problem, UnsupportedModelError, node_name, worded
from webnn_py.onnx_models.reading.external_data import is_external, read_external_data
from webnn_py.onnx_models.reading.file_kinds import kind_of, missing_bytes
from webnn_py.onnx_models.reading.functions import check_calls
from webnn_py.onnx_models.reading.tensors import check_tensor
from webnn_py.regular_files import read_regular

HIGHEST_VERSION: Final = 2**31 - 1

SMALLEST_KEPT: Final = 4096
"""Raw data of at most this many bytes are not kept, but copied again when they are needed."""


@attrs.frozen
class ReadModel:
    """A model that has been read.

    Attributes:
        proto: the model; all its data are inside.
        size: that of its file, and of those that had its data, in bytes.
        is_flat: whether it has no functions, and its nodes neither inner graphs nor references to attributes of a
            function.
        raw_data: the raw data of its graph's larger initializers that were read on the way, by name.
    """

    proto: ModelProto
    size: int
    is_flat: bool
    raw_data: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)


def read_model(source: str | os.PathLike[str] | bytes, limits: ModelLimits) -> ReadModel:
    """Read a model from a file, or from bytes: then no file is read.

    Raises:
        InvalidModelError: that is no model, or a malformed one.
        UnsupportedModelError: it costs more than the limits allow.
        OSError: a file cannot be read.
    """
    if isinstance(source, bytes):
        path, data, shown = None, source, f"the {len(source)} bytes given"
    else:
        path = Path(os.fspath(source))
        data, shown = read_regular(path), str(path)
    try:
        proto = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise InvalidModelError(_no_model(shown, data, f"cannot be read as an ONNX model: {error}")) from error
    # Almost any bytes can be parsed, even none; a model is recognized by what every model has.
    if not proto.opset_import or not proto.graph.output:
        raise InvalidModelError(
            _no_model(shown, data, "is no ONNX model: it has no operator set or no outputs, and may be cut")
        )
    tensors, is_flat = _checked(proto, limits)
    external = [tensor for tensor in tensors if is_external(tensor)]
    if external and path is None:
        raise InvalidModelError(
            f"{shown} refer to data in other files, as tensor {worded(external[0].name)} does; "
            "load the model by its path"
        )
    size = len(data)
    if external and path is not None:
        size = read_external_data(external, path, size, limits)
    del data  # first: the raw data that are kept take as much memory
    raw_data = _checked_data(proto, tensors)
    if not is_flat:
        check_calls(proto, limits)
    return ReadModel(proto, size, is_flat, raw_data)


def _no_model(shown: str, data: bytes, otherwise: str) -> str:
    """Return why bytes are no model, and what to do about it."""
    kind = kind_of(data)
    if kind is not None:
        return f"{shown} is no ONNX model: it is {kind}"
    missing = missing_bytes(data)
    if missing is not None:
        needed, there = missing
        return f"{shown} is cut: it has {there:,} of at least {needed:,} bytes; download or copy it again"
    return f"{shown} {otherwise}"


def _checked(proto: ModelProto, limits: ModelLimits) -> tuple[list[TensorProto], bool]:
    """Check names, texts, versions and the number of nodes, wherever they are: inner graphs, functions.

    Returns:
        All tensors, also those of attributes, inner graphs and functions; whether the model is flat (``ReadModel``).
    """
    for kind, names in (("inputs", proto.graph.input), ("outputs", proto.graph.output)):
        _check_names(kind, [item.name for item in names])
    tensors: list[TensorProto] = []
    nodes = graphs = references = 0
    for message in _messages(proto):
        kind_of_message = type(message)
        if kind_of_message is NodeProto:
            nodes += 1
            if nodes > limits.nodes:
                reason = f"the model has more nodes than limits.nodes allows, {limits.nodes:,}"
                raise UnsupportedModelError([Problem(f"node {worded(node_name(message))}", reason)])
        elif kind_of_message is AttributeProto:
            references += bool(message.ref_attr_name)
        elif kind_of_message is TensorProto:
            tensors.append(message)
        elif kind_of_message is GraphProto:
            graphs += 1
        elif kind_of_message is OperatorSetIdProto and not 0 <= message.version <= HIGHEST_VERSION:
            raise InvalidModelError(
                f"the version of the operator set {worded(message.domain)} is {message.version}; "
                f"it must be from 0 to {HIGHEST_VERSION}"
            )
    return tensors, graphs == 1 and not references and not proto.functions


def _checked_data(proto: ModelProto, tensors: Iterable[TensorProto]) -> dict[str, bytes]:
    """Check the data of tensors; return the graph's larger initializers' data."""
    weights = {id(tensor) for tensor in proto.graph.initializer}
    kept: dict[str, bytes] = {}
    for tensor in tensors:
        raw = check_tensor(tensor)
        if raw is not None and len(raw) > SMALLEST_KEPT and id(tensor) in weights:
            kept.setdefault(tensor.name, raw)
    return kept


def _check_names(kind: str, names: list[str]) -> None:
    if "" in names:
        raise InvalidModelError(f"one of the model's {kind} has no name")
    if len({*names}) < len(names):
        ((name, count),) = Counter(names).most_common(1)
        raise InvalidModelError(f"{count} of the model's {kind} have the name {worded(name)}")


def _messages(message: Message) -> Iterator[Any]:
    """Yield a message and all inside it; none has a text that is not UTF-8."""
    pending = [message]
    while pending:
        current = pending.pop()
        yield current
        inner = _INNER.get(type(current), _inner)(current)
        inner.reverse()
        pending += inner


def _inner(message: Message) -> list[Message]:
    """Return the messages in a message's fields, and check the texts."""
    inner: list[Message] = []
    for field, value in message.ListFields():
        if type(value) in _SINGLE:
            continue
        held = _held(field)
        if held == "messages":
            inner += [value] if isinstance(value, Message) else value
        elif held == "texts":
            for text in [value] if isinstance(value, (str, bytes)) else value:
                if type(text) is not str:  # asked here as well: a call for each text takes a third of the walk
                    _check_text(message, field.name, text)
    return inner


# The messages that most of a model consists of, field by field: to list the fields of one takes twice as long. A slice
# copies a repeated field in a third of the time that iterating takes, which ends by an exception.


def _inner_of_node(node: NodeProto) -> list[Message]:
    if not _are_texts(
        [node.name, node.op_type, node.domain, node.overload, node.doc_string, *node.input[:], *node.output[:]]
    ):
        return _inner(node)
    inner: list[Message] = node.attribute[:] + node.metadata_props[:] + node.device_configurations[:]
    return inner


def _inner_of_value_info(info: ValueInfoProto) -> list[Message]:
    if info.type.WhichOneof("value") != "tensor_type":
        return _inner(info)
    # Of a tensor's type no other text is read.
    _check_text(info, "name", info.name)
    _check_text(info, "doc_string", info.doc_string)
    for dimension in info.type.tensor_type.shape.dim:
        _check_text(dimension, "dim_param", dimension.dim_param)
    return []


def _inner_of_tensor(tensor: TensorProto) -> list[Message]:
    if type(tensor.name) is not str:
        _check_text(tensor, "name", tensor.name)
    entries: list[Message] = tensor.external_data[:]
    return entries  # its data are not to be copied for a look


def _inner_of_entry(entry: StringStringEntryProto) -> list[Message]:
    return [] if _are_texts([entry.key, entry.value]) else _inner(entry)


_INNER: Final[Mapping[type[Any], Callable[[Any], list[Message]]]] = {
    NodeProto: _inner_of_node,
    StringStringEntryProto: _inner_of_entry,
    TensorProto: _inner_of_tensor,
    ValueInfoProto: _inner_of_value_info,
}


_TEXTS: Final = frozenset({str})
_SINGLE: Final = frozenset({str, int, float})
"""The types of fields' values that are neither messages nor texts that are not UTF-8."""


def _are_texts(values: list[Any]) -> bool:
    """Return whether all are strings, without a step of Python for each."""
    return _TEXTS.issuperset(map(type, values))


@cache
def _held(field: FieldDescriptor) -> Literal["messages", "texts", "numbers"]:
    """Return what a field of ONNX's messages holds; its descriptor makes an object for each attribute asked for."""
    if field.message_type is not None:
        return "messages"
    return "texts" if field.type == field.TYPE_STRING else "numbers"


def _check_text(message: Message, field: str, text: object) -> None:
    """Texts are proto2's, which come as bytes where they are not UTF-8."""
    if not isinstance(text, str):
        raise InvalidModelError(f"the {field} of a {type(message).__name__} is {worded(text)}, which is not UTF-8")
