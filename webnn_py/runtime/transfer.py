"""Copies between the host and the device that depend on no session, and small work on tensors of the device."""

from collections.abc import Iterable
from typing import Final, final

import numpy as np
import trio

from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import MLOperandDataTypeLike, converted, operand_data_type
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.runtime.contexts import ContextOwner, ContextReference, OpenContext, created, received
from webnn_py.runtime.tensor import Tensor, host_array

MOST_CAST_GRAPHS: Final = 32
"""The most graphs of one ``cast`` that are kept for the next time."""


@final
class DataTransfer:
    """The copies of an environment, which use the context from the first copy to the end.

    Args:
        owner: has the context, and opens it when there is none.
    """

    def __init__(self, owner: ContextOwner) -> None:
        self._owner = owner
        self._hold: ContextReference | None = None
        self._casting = trio.Lock()

    async def opened(self, method: str) -> OpenContext:
        """Return the context, to which this refers from now on; uses that race get the same.

        Raises:
            InvalidStateError: the environment is closed.
        """
        self._owner.check_open(method)
        hold = self._hold
        if hold is not None and not hold.opened.is_lost:
            return hold.opened
        taken = await self._owner.acquire(method)
        if self._hold is not None and self._hold.opened is taken.opened:  # another use was faster
            taken.release()
            return self._hold.opened
        self.close()
        self._hold = taken
        return taken.opened

    def close(self) -> None:
        """Give up the reference to the context, if there is one."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()

    # --- copies ----------------------------------------------------------------------------------------------

    async def copy_tensors(self, sources: Iterable[Tensor], destinations: Iterable[Tensor]) -> None:
        """Copy each source into the destination at its place; see :meth:`Environment.copy_tensors`."""
        pairs = _pairs(_listed("sources", sources), _listed("destinations", destinations))
        if all(tensor.location == "cpu" for pair in pairs for tensor in pair):
            self._owner.check_open("copy_tensors")
            for source, destination in pairs:
                np.copyto(destination.data, source.data)
            await trio.lowlevel.checkpoint()
            return
        opened = await self.opened("copy_tensors")
        for promise in self._enqueue(opened, pairs):
            await promise
        await trio.lowlevel.checkpoint()

    def _enqueue(self, opened: OpenContext, pairs: list[tuple[Tensor, Tensor]]) -> list[MLPromise[None]]:
        """Check the location of everything, then enqueue all copies."""
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

    # --- on the device ---------------------------------------------------------------------------------------

    async def create_tensor(
        self, data: HostArray | None, data_type: object, dims: object, label: object = ""
    ) -> Tensor:
        """Return a tensor on the device; see :meth:`Environment.create_tensor`."""
        if data is not None:
            if data_type is not None or dims is not None:
                raise TypeError("create_tensor(): the array has its own data type and dimensions; give neither")
            data = host_array("create_tensor()", data)
            data_type, dims = data.dtype.name, data.shape
        elif data_type is None or dims is None:
            raise TypeError("create_tensor(): give an array, or data_type and dims")
        opened = await self.opened("create_tensor")
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

    async def zero(self, tensor: Tensor) -> None:
        """Clear a tensor; see :meth:`Environment.zero`."""
        _check_tensor("zero", "tensor", tensor)
        if tensor.location == "cpu":
            self._owner.check_open("zero")
            tensor.data.fill(0)
        else:
            opened = await self.opened("zero")
            clear_buffer(opened.context, tensor._buffer_on(opened, "zero", repr(tensor)))
        await trio.lowlevel.checkpoint()

    async def cast(self, tensor: Tensor, data_type: MLOperandDataTypeLike, out: Tensor | None) -> Tensor:
        """Convert a tensor; see :meth:`Environment.cast`."""
        _check_tensor("cast", "tensor", tensor)
        wanted = converted("cast(): data_type", operand_data_type, data_type)
        if out is not None:
            _check_tensor("cast", "out", out)
            if out.data_type != wanted or out.dims != tensor.dims:
                raise TypeError(
                    f"cast(): out is {out.data_type} {list(out.dims)}; it must be {wanted} {list(tensor.dims)}"
                )
        opened = await self.opened("cast")
        tensor._buffer_on(opened, "cast", repr(tensor))
        if out is not None and out is tensor:
            raise TypeError("cast(): out is the tensor itself; it must be another one")
        async with self._casting:
            graph = await _cast_graph(opened, tensor, wanted)
            result = await self.create_tensor(None, wanted, tensor.dims) if out is None else out
        try:
            source = tensor._buffer_on(opened, "cast", repr(tensor))
            target = result._buffer_on(opened, "cast", repr(result))
            opened.context.dispatch(graph, {"x": source}, {"y": target})
        except BaseException:
            if out is None:
                result.dispose()
            raise
        return result


async def _cast_graph(opened: OpenContext, tensor: Tensor, data_type: str) -> MLGraph:
    """Return a graph of one ``cast``, kept by its context."""
    key = (tensor.data_type, tensor.dims, data_type)
    graphs = opened.cast_graphs
    if key in graphs:
        graphs.move_to_end(key)
        return graphs[key]
    builder = MLGraphBuilder(opened.context)
    try:
        x = builder.input("x", data_type=tensor.data_type, shape=tensor.dims)
        y = builder.cast(x, operand_data_type(data_type))
        graph = graphs[key] = await received(builder.build({"y": y}))
    except TypeError as error:
        raise TypeError(f"cast(): {error}") from None
    finally:
        builder.destroy()
    if len(graphs) > MOST_CAST_GRAPHS:
        graphs.popitem(last=False)[1].destroy()
    return graph


def _check_tensor(method: str, what: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{method}(): {what} is {type(value).__name__}; it must be a Tensor")
    if value.disposed:
        raise InvalidStateError(f"{method}(): {what}, {value!r}, was disposed of")


def _listed(what: str, tensors: Iterable[Tensor]) -> list[Tensor]:
    if isinstance(tensors, Tensor):  # whose elements could be iterated over
        raise TypeError(f"copy_tensors(): {what} is {tensors!r}; it must be a sequence of tensors")
    return list(tensors)


def _pairs(sources: list[Tensor], destinations: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Sources and destinations that fit each other, whatever their place.

    Raises:
        TypeError: there are not as many of both, something is no tensor, data types or dimensions differ, or a
            tensor is written twice, or read and written.
        InvalidStateError: a tensor was disposed of.
    """
    if len(sources) != len(destinations):
        raise TypeError(f"copy_tensors(): {len(sources)} sources given for {len(destinations)} destinations")
    written: dict[int, int] = {}
    for index, (source, destination) in enumerate(zip(sources, destinations, strict=True)):
        _check_tensor("copy_tensors", f"sources[{index}]", source)
        _check_tensor("copy_tensors", f"destinations[{index}]", destination)
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
    for index, source in enumerate(sources):
        if id(source) in written:
            raise TypeError(f"copy_tensors(): sources[{index}] and destinations[{written[id(source)]}] are one tensor")
    return list(zip(sources, destinations, strict=True))


def _end(opened: OpenContext, tensor: Tensor, what: str, *, writable: bool = False) -> MLBuffer | HostArray:
    if tensor.location == "cpu":
        if writable and not (tensor.data.flags.writeable and tensor.data.flags.c_contiguous):
            raise TypeError(f"copy_tensors(): {what} is an array that is not writable and C-contiguous")
        return tensor.data
    return tensor._buffer_on(opened, "copy_tensors", what)
