"""Copies between the host and the device that depend on no session, and small work on tensors of the device."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from webnn_py.buffer_copies import copy_buffer
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.device.backend import HostArray
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.runtime.contexts import OpenContext, created, received
from webnn_py.runtime.tensor import Tensor, usable_tensor

MOST_CAST_GRAPHS: Final = 32
"""The most graphs of one ``cast`` that are kept for the next time."""


def checked_pairs(sources: Iterable[Tensor], destinations: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return sources and destinations that fit each other, whatever their place.

    Raises:
        TypeError: there are not as many of both, something is no tensor, data types or dimensions differ, or a
            tensor is written twice, or read and written.
        InvalidStateError: a tensor was disposed of.
    """
    origins, targets = _listed("sources", sources), _listed("destinations", destinations)
    if len(origins) != len(targets):
        raise TypeError(f"copy_tensors(): {len(origins)} sources given for {len(targets)} destinations")
    written: dict[int, int] = {}
    for index, (source, destination) in enumerate(zip(origins, targets, strict=True)):
        usable_tensor(f"copy_tensors(): sources[{index}]", source)
        usable_tensor(f"copy_tensors(): destinations[{index}]", destination)
        if (source.data_type, source.dims) != (destination.data_type, destination.dims):
            raise TypeError(
                f"copy_tensors(): destinations[{index}] is {destination.data_type} {list(destination.dims)}; it must "
                f"be {source.data_type} {list(source.dims)}, as sources[{index}]"
            )
        if id(destination) in written:
            raise TypeError(
                f"copy_tensors(): destinations[{index}] and destinations[{written[id(destination)]}] are one tensor"
            )
        written[id(destination)] = index
    for index, source in enumerate(origins):
        if id(source) in written:
            raise TypeError(f"copy_tensors(): sources[{index}] and destinations[{written[id(source)]}] are one tensor")
    return list(zip(origins, targets, strict=True))


def _listed(what: str, tensors: Iterable[Tensor]) -> list[Tensor]:
    if isinstance(tensors, Tensor):  # whose elements could be iterated over
        raise TypeError(f"copy_tensors(): {what} is {tensors!r}; it must be a sequence of tensors")
    return list(tensors)


def enqueue_copies(opened: OpenContext, pairs: list[tuple[Tensor, Tensor]]) -> list[MLPromise[None]]:
    """Check the location of everything, then enqueue all copies; those to the host are there when the promises settle.

    Raises:
        TypeError: a tensor is on another environment's device, or an array on the host cannot be written.
        InvalidStateError: a tensor was disposed of, or its device was lost.
    """
    ends = [
        (
            _end(opened, source, f"sources[{index}]"),
            _end(opened, destination, f"destinations[{index}]", writable=True),
        )
        for index, (source, destination) in enumerate(pairs)
    ]
    context = opened.context
    reads: list[MLPromise[None]] = []
    for origin, target in ends:
        if isinstance(origin, MLBuffer):
            if isinstance(target, MLBuffer):
                copy_buffer(context, origin, target)
            else:
                reads.append(context.read_buffer(origin, out=target))
        elif isinstance(target, MLBuffer):
            context.write_buffer(target, origin)
        else:
            np.copyto(target, origin)
    return reads


def _end(opened: OpenContext, tensor: Tensor, what: str, *, writable: bool = False) -> MLBuffer | HostArray:
    if tensor.location == "cpu":
        if writable and not (tensor.data.flags.writeable and tensor.data.flags.c_contiguous):
            raise TypeError(f"copy_tensors(): {what} is an array that is not writable and C-contiguous")
        return tensor.data
    return tensor._buffer_on(opened, "copy_tensors", what)


async def new_tensor(
    opened: OpenContext, data_type: object, dims: object, label: object = "", data: HostArray | None = None
) -> Tensor:
    """Return a tensor on the device, of zeros unless an array is to be copied.

    Raises:
        TypeError: the data type, the dimensions or the label are refused.
        UnknownError: the device cannot allocate it.
        InvalidStateError: the device was lost meanwhile.
    """
    hold = opened.hold()
    try:
        buffer = await created(opened.context, data_type, dims, label)
    except BaseException as error:
        hold.release()
        if isinstance(error, TypeError):
            raise TypeError(f"create_tensor(): {str(error).removeprefix('create_buffer(): ')}") from None
        raise
    if data is not None:
        opened.context.write_buffer(buffer, data)
    return Tensor._on_device(buffer, hold)


async def cast_graph(opened: OpenContext, tensor: Tensor, data_type: MLOperandDataType) -> MLGraph:
    """Return a graph of one ``cast``, kept by its context.

    Raises:
        TypeError: the device has no such cast.
    """
    key = (tensor.data_type, tensor.dims, data_type)
    graphs = opened.cast_graphs
    if key in graphs:
        graphs.move_to_end(key)
        return graphs[key]
    builder = MLGraphBuilder(opened.context)
    try:
        x = builder.input("x", data_type=tensor.data_type, shape=tensor.dims)
        graph = graphs[key] = await received(builder.build({"y": builder.cast(x, data_type)}))
    except TypeError as error:
        raise TypeError(f"cast(): {error}") from None
    finally:
        builder.destroy()
    if len(graphs) > MOST_CAST_GRAPHS:
        graphs.popitem(last=False)[1].destroy()
    return graph
