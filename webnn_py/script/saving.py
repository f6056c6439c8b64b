"""Saved graphs: the context's ``save_graph``, ``load_graph``, ``list_graphs`` and ``delete_graph``.

A mixin of :class:`MLContext`, which says what the methods lean on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.descriptors import converted
from webnn_py.device.device import Device
from webnn_py.errors import (
    InvalidStateError,
    NotFoundError,
    NotSupportedError,
    OperationError,
    QuotaExceededError,
)
from webnn_py.handle import forgotten_await
from webnn_py.message_text import in_brackets, plain, shown
from webnn_py.saved_graphs.record import SavedCode, SavedGraph, UnusableFileError
from webnn_py.script.checks import refuse_proposals, unknown
from webnn_py.script.graph import MLGraph
from webnn_py.script.living import Living
from webnn_py.script.refusals import rejected
from webnn_py.timelines.device_timeline import DeviceOperation, DeviceTimeline, Work
from webnn_py.timelines.promise import MLPromise
from webnn_py.trio_run import TrioRun
from webnn_py.unreported_errors import calling_line

if TYPE_CHECKING:
    from webnn_py.saved_graphs.folder import GraphFolder
    from webnn_py.script.context import MLContext

T = TypeVar("T")

LONGEST_KEY: Final = 4096


class SavesGraphs:
    """What a context does with the folder of saved graphs, as WebNN's cache explainer says. Not in the specification.

    Each method acts in its turn on the device timeline, so a context sees what it saved and deleted before.
    """

    _device: Device
    _timeline: DeviceTimeline
    _trio_run: TrioRun
    _graphs: Living[MLGraph]
    _graph_folder: GraphFolder | None
    _files: trio.CapacityLimiter
    _lost_message: str | None

    def _keep_graphs_in(self, folder: GraphFolder) -> None:
        """Have graphs saved in another folder than the one of ``open_ml()``; before the first graph is built."""
        self._graph_folder = folder
        self._device.keep_nodes()

    @enable_ki_protection
    def save_graph(self, key: str, graph: MLGraph) -> MLPromise[None]:
        """Save a compiled graph, in the place of what was saved under the key before.

        Args:
            key: any text of at most 4096 characters.
            graph: a graph of this context.

        Returns:
            A promise of None, rejected with ``TypeError`` for an argument of the wrong type or another context's
            graph, ``NotSupportedError`` when :func:`open_ml` was given no folder, ``InvalidStateError`` when the graph
            is destroyed or the context is lost, ``QuotaExceededError`` when the graph alone is larger than the folder
            may be, ``UnknownError`` when the file cannot be written or the graph cannot be read from the device.
        """
        from webnn_py.device import saving  # noqa: PLC0415 - imported when it is used
        from webnn_py.graph_pictures.as_json import to_json  # noqa: PLC0415 - imported when it is used

        method = "save_graph"
        self._trio_run.check("save_graph()")
        try:
            name, folder = _checked_key(key), self._checked_folder()
            self._check_graph(graph)
            refuse_proposals(method, [*graph.input_descriptors.values(), *graph.output_descriptors.values()])
            self._check_not_lost(method)
        except (TypeError, NotSupportedError, InvalidStateError) as error:
            return rejected(cast("MLContext", self), method, error, graph)
        device, files = saving.code_identity(self._device.backend), self._files

        async def put(code: SavedCode) -> None:
            descriptors = graph.input_descriptors, graph.output_descriptors
            drawing = to_json(graph._description, graph._plan)
            saved = SavedGraph(*descriptors, graph._operator_count, code, drawing)
            await trio.to_thread.run_sync(folder.save, device, name, saved, limiter=files)

        work = partial(saving.save_graph, self._device, graph._handle, put)
        return self._enqueue_saving(method, work, lambda: None)

    @enable_ki_protection
    def load_graph(self, key: str) -> MLPromise[MLGraph]:
        """Load a graph that was saved under a key, by this program or another, on the same device.

        Args:
            key: what it was saved under.

        Returns:
            A promise of the graph, rejected with ``TypeError`` for a key that is none, ``NotSupportedError`` when
            :func:`open_ml` was given no folder, ``InvalidStateError`` when the context is lost, ``NotFoundError``
            when there is no graph that can be loaded: none was saved, it had to go, it is damaged, or it was written
            by another version or for another device; ``OperationError`` when the device refuses it, ``UnknownError``
            when the file cannot be read.
        """
        from webnn_py.device import saving  # noqa: PLC0415 - imported when it is used
        from webnn_py.graph_pictures.as_json import from_json  # noqa: PLC0415 - imported when it is used

        method = "load_graph"
        self._trio_run.check("load_graph()")
        try:
            name, folder = _checked_key(key), self._checked_folder()
            self._check_not_lost(method)
        except (TypeError, NotSupportedError, InvalidStateError) as error:
            return rejected(cast("MLContext", self), method, error)
        device, files = saving.code_identity(self._device.backend), self._files
        ml_graph = MLGraph._create_empty(cast("MLContext", self))
        self._graphs.add(ml_graph)

        async def take() -> SavedCode:
            saved = await trio.to_thread.run_sync(folder.load, device, name, limiter=files)
            ml_graph._fill(saved.inputs, saved.outputs, saved.operator_count, *from_json(saved.drawing))
            return saved.code

        work = partial(saving.load_graph, self._device, ml_graph._handle, take)
        return self._enqueue_saving(method, work, lambda: ml_graph, otherwise=ml_graph.destroy)

    @enable_ki_protection
    def list_graphs(self) -> MLPromise[list[str]]:
        """The keys of the graphs that :meth:`load_graph` finds, in order; of each only the beginning is read.

        Returns:
            A promise of the keys, rejected with ``NotSupportedError`` when :func:`open_ml` was given no folder,
            ``InvalidStateError`` when the context is lost, ``UnknownError`` when the folder cannot be read.
        """
        from webnn_py.device import saving  # noqa: PLC0415 - imported when it is used

        method = "list_graphs"
        self._trio_run.check("list_graphs()")
        try:
            folder = self._checked_folder()
            self._check_not_lost(method)
        except (NotSupportedError, InvalidStateError) as error:
            return rejected(cast("MLContext", self), method, error)
        device, files = saving.code_identity(self._device.backend), self._files
        found: list[str] = []

        async def look() -> None:
            found.extend(await trio.to_thread.run_sync(folder.keys, device, limiter=files))

        return self._enqueue_saving(method, look, lambda: found)

    @enable_ki_protection
    def delete_graph(self, key: str) -> MLPromise[None]:
        """Forget the graph that was saved under a key, if there is one. Graphs that were loaded stay as they are.

        It is done also when the context is lost meanwhile, as everything is that lets go of something.

        Args:
            key: what it was saved under.

        Returns:
            A promise of None, rejected with ``TypeError`` for a key that is none, ``NotSupportedError`` when
            :func:`open_ml` was given no folder, ``InvalidStateError`` when the context is lost, ``UnknownError`` when
            the file cannot be removed.
        """
        from webnn_py.device import saving  # noqa: PLC0415 - imported when it is used

        method = "delete_graph"
        self._trio_run.check("delete_graph()")
        try:
            name, folder = _checked_key(key), self._checked_folder()
            self._check_not_lost(method)
        except (TypeError, NotSupportedError, InvalidStateError) as error:
            return rejected(cast("MLContext", self), method, error)
        device = saving.code_identity(self._device.backend)
        work = partial(trio.to_thread.run_sync, folder.delete, device, name, limiter=self._files)
        return self._enqueue_saving(method, work, lambda: None, abortable=False)

    def _enqueue_saving(
        self,
        method: str,
        work: Work,
        result: Callable[[], T],
        *,
        otherwise: Callable[[], None] = lambda: None,
        abortable: bool = True,
    ) -> MLPromise[T]:
        """Enqueue work, and settle a promise with ``result`` when it is done, or after ``otherwise``."""
        promise: MLPromise[T] = MLPromise._create(f"{method}()", self._trio_run, calling_line(2))

        def settled(error: Exception | None) -> None:
            if error is None:
                promise._resolve(result())
            else:
                otherwise()
                promise._reject(_refusal(method, error))

        aborted = partial(self._abort, promise, method)
        self._timeline.enqueue(DeviceOperation(method, work, settled, abortable=abortable, aborted=aborted))
        return promise

    # --- checks ----------------------------------------------------------------------------------------------

    def _checked_folder(self) -> GraphFolder:
        if self._graph_folder is None:
            raise NotSupportedError("there is no folder for graphs; open_ml(graph_cache=FOLDER) gives one")
        return self._graph_folder

    def _check_graph(self, graph: object) -> None:
        if type(graph) is not MLGraph:
            raise TypeError(f"graph is {shown(graph)}; it must be an MLGraph{forgotten_await(graph)}")
        if graph._context is not self:
            raise TypeError(f"{graph!r} belongs to another context{in_brackets(graph._context._label)}")
        if graph._destroyed and self._lost_message is None:
            raise InvalidStateError("the graph is destroyed: destroy() was called on it")

    def _check_not_lost(self, method: str) -> None:
        raise NotImplementedError

    def _abort(self, promise: MLPromise[Any], method: str) -> None:
        raise NotImplementedError


def _refusal(method: str, error: Exception) -> Exception:
    """What a promise is rejected with when a step has failed."""
    from webnn_py.saved_graphs.folder import TooLargeError  # noqa: PLC0415 - imported when it is used

    if isinstance(error, TooLargeError):
        refusal: Exception = QuotaExceededError(f"{method}(): the graph cannot be kept: {error}")
    elif method == "load_graph" and isinstance(error, UnusableFileError):
        refusal = NotFoundError(f"{method}(): no graph can be loaded under this key: {error}")
    elif method == "load_graph" and not isinstance(error, OSError):
        refusal = OperationError(f"{method}(): the device refuses the graph: {str(error) or type(error).__name__}")
    else:
        return unknown(method, error)
    refusal.__cause__ = error
    return refusal


def checked_folder(call: str, graph_cache: object, graph_cache_bytes: object) -> GraphFolder | None:
    """Convert the options ``graph_cache`` and ``graph_cache_bytes`` of a call, for messages, to a folder of graphs.

    Raises:
        TypeError: one is not what it must be.
    """
    most_bytes = converted(f"{call}: graph_cache_bytes", _byte_count, graph_cache_bytes)
    if graph_cache is None:
        return None
    from webnn_py.saved_graphs.folder import GraphFolder  # noqa: PLC0415 - imported when it is used

    return GraphFolder(converted(f"{call}: graph_cache", _absolute_path, graph_cache), most_bytes)


def _absolute_path(value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"is {shown(value)}; it must be the path of a folder, or None")
    return Path(value).absolute()


def _byte_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"is {shown(value)}; it must be a number of bytes, an integer from 0")
    return value


def _checked_key(key: object) -> str:
    text = converted("key", _text, key)
    if len(text) > LONGEST_KEY:
        raise TypeError(f"key has {len(text)} characters; it must have at most {LONGEST_KEY}")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"is {shown(value)}; it must be a string")
    return plain(value)
