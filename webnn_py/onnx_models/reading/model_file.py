"""Reading a model: nothing that the rest of the importer sees is longer, deeper or elsewhere than it may be."""

import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

import attrs
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto

from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.problems import InvalidModelError, Problem, UnsupportedModelError, node_name, worded
from webnn_py.onnx_models.reading.external_data import is_external, read_external_data
from webnn_py.onnx_models.reading.file_kinds import kind_of, missing_bytes
from webnn_py.onnx_models.reading.functions import check_calls
from webnn_py.onnx_models.reading.tensors import check_tensor

HIGHEST_VERSION: Final = 2**31 - 1


@attrs.frozen
class ReadModel:
    """A model that has been read.

    Attributes:
        proto: the model; all its data are inside.
        size: that of its file, and of those that had its data, in bytes.
    """

    proto: ModelProto
    size: int


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
        if path.exists() and not (path.is_file() or path.is_dir()):  # reading a pipe might never end
            raise InvalidModelError(f"{path} is no regular file")
        data, shown = path.read_bytes(), str(path)
    try:
        proto = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise InvalidModelError(_no_model(shown, data, f"cannot be read as an ONNX model: {error}")) from error
    # Almost any bytes can be parsed, none at all too; what no model can do without tells models apart.
    if not proto.opset_import or not proto.graph.output:
        raise InvalidModelError(
            _no_model(shown, data, "is no ONNX model: it has no operator set or no outputs, and may be cut")
        )
    tensors = _checked(proto, limits)
    external = [tensor for tensor in tensors if is_external(tensor)]
    if external and path is None:
        raise InvalidModelError(
            f"{shown} refer to data in other files, as tensor {worded(external[0].name)} does; "
            "load the model by its path"
        )
    size = len(data)
    if external and path is not None:
        size = read_external_data(external, path.parent, size, limits)
    for tensor in tensors:
        check_tensor(tensor)
    check_calls(proto, limits)
    return ReadModel(proto, size)


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


def _checked(proto: ModelProto, limits: ModelLimits) -> list[TensorProto]:
    """All tensors of the model, wherever they are: initializers, attributes, inner graphs, functions."""
    for kind, names in (("inputs", proto.graph.input), ("outputs", proto.graph.output)):
        _check_names(kind, [item.name for item in names])
    tensors: list[TensorProto] = []
    nodes = 0
    for message in _messages(proto):
        if isinstance(message, TensorProto):
            tensors.append(message)
        elif isinstance(message, OperatorSetIdProto):
            if not 0 <= message.version <= HIGHEST_VERSION:
                raise InvalidModelError(
                    f"the version of the operator set {worded(message.domain)} is {message.version}; "
                    f"it must be from 0 to {HIGHEST_VERSION}"
                )
        elif isinstance(message, NodeProto):
            nodes += 1
            if nodes > limits.nodes:
                reason = f"the model has more nodes than limits.nodes allows, {limits.nodes:,}"
                raise UnsupportedModelError([Problem(f"node {worded(node_name(message))}", reason)])
    return tensors


def _check_names(kind: str, names: list[str]) -> None:
    if "" in names:
        raise InvalidModelError(f"one of the model's {kind} has no name")
    (name, count), *_ = Counter(names).most_common(1) or [("", 0)]
    if count > 1:
        raise InvalidModelError(f"{count} of the model's {kind} have the name {worded(name)}")


def _messages(message: Message) -> Iterator[Message]:
    """A message and all inside it; none has a text that is not UTF-8."""
    pending = [message]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(_inner(current))


def _inner(message: Message) -> list[Message]:
    """The messages that stand in a message's fields."""
    if isinstance(message, TensorProto):  # its data are not to be copied for a look
        _check_text(message, "name", message.name)
        return list(message.external_data)
    if isinstance(message, ValueInfoProto) and message.type.WhichOneof("value") == "tensor_type":
        # There is one for each value in many models, of ten messages, of which no other text is read.
        _check_text(message, "name", message.name)
        _check_text(message, "doc_string", message.doc_string)
        for dimension in message.type.tensor_type.shape.dim:
            _check_text(dimension, "dim_param", dimension.dim_param)
        return []
    inner: list[Message] = []
    for field, value in message.ListFields():
        held = _held(field)
        if held == "messages":
            inner += [value] if isinstance(value, Message) else value
        elif held == "texts":
            for text in [value] if isinstance(value, (str, bytes)) else value:
                if type(text) is not str:  # asked here as well: a call for each text takes a third of the walk
                    _check_text(message, field.name, text)
    return inner


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
