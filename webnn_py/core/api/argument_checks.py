"""Checks and conversions that a context's methods share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.descriptors import (
    MLBufferDescriptor,
    MLOperandDataType,
    MLOperandDescriptor,
    check_dimensions,
    converted,
    operand_descriptor,
)
from webnn_py.core.device.backend import Capabilities, Storage
from webnn_py.core.errors import UnknownError
from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import device_text, in_brackets, listed, named_by, shown
from webnn_py.core.operators.idl import boolean, usv_string

if TYPE_CHECKING:
    from webnn_py.core.api.context import MLContext

T = TypeVar("T")


def unknown(method: str, error: Exception) -> UnknownError:
    """Return the ``UnknownError`` that says that ``method`` failed on the device, and why."""
    if isinstance(error, UnknownError):
        return error
    # spec: MLContext.createTensor 6.1.2; MLContext.createConstantTensor 10.1.2, 10.1.4
    # spec: MLContext.readTensor(tensor) 8.1.2; MLContext.readTensor(tensor, outputData) 9.1.2
    unknown = UnknownError(f"{method}() failed on the device: {device_text(error)}")
    unknown.__cause__ = error
    return unknown


def refuse_progress(method: str, progress: object) -> None:
    """Refuse a ``progress`` argument that is not callable.

    Raises:
        TypeError: it is no function.
    """
    if progress is not None and not callable(progress):
        raise TypeError(f"{method}(): progress is {shown(progress)}; it must be a function of two numbers, or None")


def label_of(value: object) -> str:
    """Convert the label of a buffer or a graph, as those of operators are."""
    return converted("label", usv_string, value)


def buffer_descriptor(
    data_type: object,
    shape: object,
    proposed: tuple[MLOperandDataType, ...] = (),
    *,
    readable: object,
    writable: object,
) -> MLBufferDescriptor:
    """Convert the four members of a buffer's descriptor, without checking dimensions."""
    operand = operand_descriptor(data_type, shape, proposed)
    flags = converted("readable", boolean, readable), converted("writable", boolean, writable)
    return MLBufferDescriptor(operand.data_type, operand.shape, *flags)


def check_descriptor(descriptor: MLOperandDescriptor, capabilities: Capabilities) -> None:
    """Refuse a data type that the device lacks, and what "check dimensions" refuses."""
    if descriptor.data_type not in capabilities.data_types + capabilities.packed:
        raise TypeError(f"data type is {descriptor.data_type}; this device has {', '.join(capabilities.data_types)}")
    problem = check_dimensions(descriptor, max_rank=capabilities.max_rank, max_byte_length=capabilities.max_byte_length)
    if problem is not None:
        raise TypeError(problem)


def named(name: str, kind_of_item: type[T], noun: str, given: object) -> dict[str, T]:
    """Web IDL's ``record<USVString, …>``: a snapshot of names and handles."""

    def convert(mapping: object) -> dict[str, T]:
        if type(mapping) is not dict and not isinstance(mapping, Mapping):  # the second test takes long
            raise TypeError(f"is {shown(mapping)}; it must be a mapping of names to {noun}{forgotten_await(mapping)}")
        snapshot = {}
        for key, item in mapping.items():
            if not isinstance(key, str):
                raise TypeError(f"[{shown(key)}] is {shown(item)}, whose name must be a string")
            if type(item) is not kind_of_item:
                wanted = f"{kind_of_item.__name__}{forgotten_await(item)}"
                raise TypeError(f"[{shown(key)}] is {shown(item)}; it must be an {wanted}")
            snapshot[usv_string(key)] = item
        return snapshot

    return converted(name, convert, given)


def check_buffer(context: MLContext, method: str, buffer: MLBuffer) -> None:
    """Refuse a buffer that a method of a context cannot use.

    Raises:
        TypeError: it is no buffer, another context's, withheld, or destroyed (which is an ``InvalidStateError``, too).
    """
    if type(buffer) is not MLBuffer:
        raise TypeError(f"{method}(): {shown(buffer)} given; it must be an MLBuffer{forgotten_await(buffer)}")
    # spec: MLContext.dispatch 5.1; MLContext.readTensor(tensor) 3; MLContext.readTensor(tensor, outputData) 3
    # spec: MLContext.writeTensor 1
    if buffer._context is not context:
        raise TypeError(f"{method}(): {buffer!r} belongs to another context{in_brackets(buffer._context._label)}")
    # spec: MLContext.dispatch 5.2; MLContext.readTensor(tensor) 4; MLContext.readTensor(tensor, outputData) 4
    # spec: MLContext.writeTensor 2
    buffer._check_alive(method, repr(buffer))
    if buffer.withheld:
        raise TypeError(f"{method}(): {buffer!r} is {buffer.withheld}")


def storages(
    what: str, buffers: Mapping[str, MLBuffer], descriptors: Mapping[str, MLOperandDescriptor]
) -> dict[str, Storage]:
    """Return the spec's "validate tensors with descriptors"."""
    # spec: validate tensors with descriptors 1, 2.2
    if buffers.keys() != descriptors.keys():
        raise TypeError(
            f"dispatch(): {what} are {listed(sorted(buffers))}; the graph's are {listed(sorted(descriptors))}"
        )
    storages = {}
    # spec: validate tensors with descriptors 2
    for name, buffer in buffers.items():
        given, wanted = buffer._descriptor, descriptors[name]
        # spec: validate tensors with descriptors 2.1
        if given.constant:
            constant = f"constant buffer{in_brackets(buffer.label)}"
            raise TypeError(f"dispatch(): {what}[{shown(name)}] is a {constant}; it must not be constant")
        # spec: validate tensors with descriptors 2.3; MLOperandDescriptor equal 0
        if given.data_type != wanted.data_type or given.shape != wanted.shape:
            raise TypeError(
                f"dispatch(): {what}[{shown(name)}] is {named_by(buffer.label)}{given.data_type} {list(given.shape)}; "
                f"it must be {wanted}"
            )
        storages[name] = buffer._storage
    # spec: validate tensors with descriptors 3
    return storages
