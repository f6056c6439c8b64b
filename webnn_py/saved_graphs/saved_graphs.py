"""``SavedGraphs``: a folder of compiled graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, final

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.argument_checks import unknown
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import converted
from webnn_py.core.errors import InvalidStateError, OperationError
from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import device_text, shown
from webnn_py.devices.saved_code import SavesCode, UnusableFileError
from webnn_py.drawn_graphs import refuse_proposals
from webnn_py.errors import NotFoundError, QuotaExceededError
from webnn_py.saved_graphs.arguments import absolute_path, byte_count, checked_key
from webnn_py.saved_graphs.code import code_identity, code_of, load_code
from webnn_py.saved_graphs.folder import GraphFolder, TooLargeError
from webnn_py.saved_graphs.record import MOST_BYTES, SavedGraph

if TYPE_CHECKING:
    from webnn_py.core.descriptors import MLOperandDescriptor
    from webnn_py.core.device.device import GraphHandle
    from webnn_py.core.timelines.promise import MLPromise

SAVE, LOAD, KEYS, DELETE = "SavedGraphs.save", "SavedGraphs.load", "SavedGraphs.keys", "SavedGraphs.delete"


@final
class SavedGraphs:
    """Compiled graphs in a folder, by keys, for later processes.

    Its methods act on the device timeline of a context, in the order of the calls; files are read and written in worker
    threads. Each device has keys of its own. Any number of contexts and processes may use a folder.

    Args:
        folder: the folder, which the first save makes.
        most_bytes: how many bytes the folder may have: graphs that were used the longest ago go first.

    Raises:
        TypeError: an argument has the wrong type.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = GraphFolder(
            converted("SavedGraphs(): folder", absolute_path, folder),
            converted("SavedGraphs(): most_bytes", byte_count, most_bytes),
        )

    @staticmethod
    def needs_source(context: MLContext) -> bool:
        """Return whether graphs of a context must be built with ``keep_source=True`` in order to be saved.

        They must on devices that save operators and constants instead of code: all but WebGPU.
        """
        return not isinstance(context.device.backend, SavesCode)

    @enable_ki_protection
    def save(self, key: str, graph: MLGraph) -> MLPromise[None]:
        """Save a compiled graph, in the place of what was saved under the key before.

        Args:
            key: any text of at most 4096 characters.
            graph: a graph; see :meth:`needs_source`.

        Returns:
            A promise of None, rejected with ``QuotaExceededError`` when the graph alone is larger than the folder may
            be, ``InvalidStateError`` when the context is lost, ``UnknownError`` when the file cannot be written or the
            graph cannot be read from the device.

        Raises:
            TypeError: an argument has the wrong type.
            InvalidStateError: the graph has no source and needs one, it is destroyed, or its context is lost.
            NotSupportedError: an input or output has a data type of a proposal.
        """
        name = checked_key(SAVE, key)
        if not isinstance(graph, MLGraph):
            raise TypeError(f"{SAVE}(): graph is {shown(graph)}; it must be an MLGraph{forgotten_await(graph)}")
        graph.check_usable(SAVE)
        context, source = graph.context, graph.source
        device = context.device
        if source is None and not isinstance(device.backend, SavesCode):
            raise InvalidStateError(
                f"{SAVE}(): {graph!r} has no source, which {context.backend.name} needs; build it with build(..., "
                "keep_source=True); graphs that were loaded have none"
            )
        refuse_proposals(SAVE, [*graph.input_descriptors.values(), *graph.output_descriptors.values()])

        async def work() -> None:
            code = await code_of(device, graph.handle, source)
            saved = SavedGraph(graph.input_descriptors, graph.output_descriptors, graph.operator_count, code)
            identity = code_identity(device.backend)
            await trio.to_thread.run_sync(self._folder.save, identity, name, saved, limiter=device.limiter)

        return context.enqueue(SAVE, work, graph=graph, failed=_saving_error)

    @enable_ki_protection
    def load(self, context: MLContext, key: str) -> MLPromise[MLGraph]:
        """Load a graph that was saved under a key, by this program or another, on the same device.

        Args:
            context: where it will run.
            key: the key that it was saved under.

        Returns:
            A promise of the graph, rejected with ``NotFoundError`` when there is no graph that can be loaded: none was
            saved, it had to go, it is damaged, or it was written by another version or for another device;
            ``OperationError`` when the device refuses it, ``InvalidStateError`` when the context is lost,
            ``UnknownError`` when the file cannot be read. The graph has no ``MLGraph.source``.

        Raises:
            TypeError: an argument has the wrong type.
        """
        _check_context(LOAD, context)
        name, device = checked_key(LOAD, key), context.device

        async def work(
            handle: GraphHandle,
        ) -> tuple[Mapping[str, MLOperandDescriptor], Mapping[str, MLOperandDescriptor], int]:
            load = partial(self._folder.load, code_identity(device.backend), name)
            saved = await trio.to_thread.run_sync(load, limiter=device.limiter)
            await load_code(device, handle, saved.code)
            return saved.inputs, saved.outputs, saved.operator_count

        return context.add_graph(LOAD, work, failed=_loading_error)

    @enable_ki_protection
    def keys(self, context: MLContext) -> MLPromise[list[str]]:
        """Return the keys of the graphs that :meth:`load` finds, in order; of each file only the beginning is read.

        Args:
            context: a context of the device.

        Returns:
            A promise of the keys, rejected with ``InvalidStateError`` when the context is lost, ``UnknownError`` when
            the folder cannot be read.

        Raises:
            TypeError: ``context`` is no context.
        """
        _check_context(KEYS, context)
        device = context.device
        look = partial(self._folder.keys, code_identity(device.backend))
        return context.enqueue(KEYS, partial(trio.to_thread.run_sync, look, limiter=device.limiter))

    @enable_ki_protection
    def delete(self, context: MLContext, key: str) -> MLPromise[None]:
        """Delete the graph that was saved under a key, if there is one. Graphs that were loaded stay as they are.

        It is done even if the context is lost in between, as releases are.

        Args:
            context: a context of the device.
            key: the key that it was saved under.

        Returns:
            A promise of None, rejected with ``InvalidStateError`` when the context was lost before,
            ``UnknownError`` when the file cannot be removed.

        Raises:
            TypeError: an argument has the wrong type.
        """
        _check_context(DELETE, context)
        device = context.device
        delete = partial(self._folder.delete, code_identity(device.backend), checked_key(DELETE, key))
        return context.enqueue(
            DELETE, partial(trio.to_thread.run_sync, delete, limiter=device.limiter), abortable=False
        )


def _check_context(method: str, context: object) -> None:
    if not isinstance(context, MLContext):
        raise TypeError(f"{method}(): context is {shown(context)}; it must be an MLContext{forgotten_await(context)}")


def _saving_error(method: str, error: Exception) -> Exception:
    if not isinstance(error, TooLargeError):
        return unknown(method, error)
    refusal = QuotaExceededError(f"{method}(): the graph cannot be kept: {error}")
    refusal.__cause__ = error
    return refusal


def _loading_error(method: str, error: Exception) -> Exception:
    if isinstance(error, UnusableFileError):
        refusal: Exception = NotFoundError(f"{method}(): no graph can be loaded under this key: {error}")
    elif isinstance(error, OSError):
        return unknown(method, error)
    else:
        refusal = OperationError(f"{method}(): the device refuses the graph: {device_text(error)}")
    refusal.__cause__ = error
    return refusal
