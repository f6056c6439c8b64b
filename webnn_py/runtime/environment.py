"""``Environment``: one device, shared by sessions, tensors and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, final, overload

import numpy as np
import trio

from webnn_py.buffer_copies import clear_buffer
from webnn_py.core.api.argument_checks import label_of, refuse_progress
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.ml import ML
from webnn_py.core.descriptors import MLOperandDataTypeLike, converted, operand_data_type, unsigned_long
from webnn_py.core.errors import InvalidStateError, NotSupportedError
from webnn_py.core.handle import NotCopied
from webnn_py.core.message_text import named_by
from webnn_py.core.operators.idl import boolean
from webnn_py.runtime.contexts import DEFAULT_ID, ContextOwner, ContextReference, OpenContext
from webnn_py.runtime.models import Model, Progress, load_model
from webnn_py.runtime.records import EnvironmentDevice, EnvironmentStatistics, TensorLocation
from webnn_py.runtime.session import InferenceSession, SessionOptions, check_locations, outputs_on_device
from webnn_py.runtime.tensor import Tensor, host_array, usable_tensor
from webnn_py.runtime.transfer import cast_graph, checked_pairs, enqueue_copies, new_tensor
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.saved_graphs.arguments import absolute_path, byte_count
from webnn_py.saved_graphs.record import MOST_BYTES
from webnn_py.tracing.checks import Check, check
from webnn_py.tracing.traces import MOST_EVENTS, Trace, trace

if TYPE_CHECKING:
    import os

    from webnn_py.onnx_models import OnnxModel


OWN_OPTIONS: Final = ("preserve_device", "context", "graph_cache", "graph_cache_bytes")
"""The options of ``Environment()`` that are not those of ``create_context()``."""


@final
class Environment(NotCopied):
    """One device and what runs on it: sessions share it, and can pass tensors on it to each other.

    The device is opened by its first user, be it a session, a tensor or a copy. The last one to go ends it; the next
    use opens a fresh one, as it does when the device was lost. ``async with Environment(ml) as env:`` closes it.

    Args:
        ml: the API, from :func:`webnn_py.open_ml`.
        backend: the name of a device, as :meth:`~webnn_py.ML.create_context` takes it.
        preserve_device: whether the device, with all that it has compiled, outlives its last user.
        context: a context of the user's to run on instead. It stays the user's: it is never destroyed here, and none
            is opened in its place.
        graph_cache: a folder where sessions of ONNX models keep their graphs, and find them in a later process; see
            :meth:`create_session` and :class:`webnn_py.saved_graphs.SavedGraphs`.
        graph_cache_bytes: how many bytes the folder may have: graphs that were used the longest ago go first.
        **options: further options of :meth:`~webnn_py.ML.create_context`, which are checked now; ``label`` names each
            context that is opened.

    Raises:
        TypeError: an argument is unknown or has the wrong type, or no device has the name.
        NotSupportedError: another package's device cannot be loaded. Whether such a device is
            here is found out when it is first used.
    """

    def __init__(  # noqa: PLR0913 - and the device's
        self,
        ml: ML,
        backend: str | None = None,
        *,
        preserve_device: bool = False,
        context: MLContext | None = None,
        graph_cache: str | os.PathLike[str] | None = None,
        graph_cache_bytes: int = MOST_BYTES,
        **options: Any,
    ) -> None:
        if not isinstance(ml, ML):
            raise TypeError(f"Environment(): ml is {type(ml).__name__}; it must be what open_ml() gives")
        saved = _saved_graphs(graph_cache, graph_cache_bytes)
        if context is not None:
            if not isinstance(context, MLContext):
                raise TypeError(f"Environment(): context is {type(context).__name__}; it must be an MLContext")
            if backend is not None or options:
                raise TypeError("Environment(): a context has its own device; give no backend and no options with it")
        try:
            ml.check_options({"backend": backend, **options}, OWN_OPTIONS)
        except (TypeError, NotSupportedError) as error:
            raise type(error)(f"Environment(): {error}") from error.__cause__
        try:
            token = trio.lowlevel.current_trio_token()
        except RuntimeError:
            raise RuntimeError("Environment(): it must be made in the trio task that called open_ml()") from None

        def run_soon(call: Callable[[], None]) -> None:
            with suppress(trio.RunFinishedError):  # the run is over, and took everything with it
                token.run_sync_soon(call)

        self._owner = ContextOwner(
            lambda: ml.create_context(backend=backend, **options),
            given=context,
            saved_graphs=saved,
            preserve=converted("Environment(): preserve_device", boolean, preserve_device),
            run_soon=run_soon,
        )
        self._hold: ContextReference | None = None  # of all that is no session's
        self._casting = trio.Lock()
        self._ml = ml
        self._sessions: dict[InferenceSession, None] = {}
        self._closed = False
        self._label = label_of(options.get("label", "")) if context is None else context.label

    # --- what there is ---------------------------------------------------------------------------------------

    @property
    def device(self) -> EnvironmentDevice | None:
        """The device that is open, or None: never one that is lost."""
        current = self._owner.current
        return None if current is None else current.record

    async def open_device(self) -> EnvironmentDevice:
        """Return the device, opened if necessary, for work outside of sessions, such as building a graph.

        It then stays until the environment is closed, unless it is lost.

        Raises:
            NotSupportedError: there is no such device.
            InvalidStateError: the environment is closed.
        """
        return (await self._opened("open_device")).record

    async def _opened(self, method: str) -> OpenContext:
        """Return the context, to which this refers from now on; uses that race get the same."""
        self._owner.check_open(method)
        hold = self._hold
        if hold is not None and not hold.opened.is_lost:
            return hold.opened
        taken = await self._owner.acquire(method)
        if self._hold is not None and self._hold.opened is taken.opened:  # another use was faster
            taken.release()
            return self._hold.opened
        self._let_go()
        self._hold = taken
        return taken.opened

    def _let_go(self) -> None:
        """Give up the reference to the context, if there is one."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()

    def has_context(self, id: int = DEFAULT_ID) -> bool:
        """Return whether the context of this number is open; an environment has number 0 alone.

        Raises:
            TypeError: it is no integer from 0.
        """
        number = converted("has_context(): id", unsigned_long, id)
        return number == DEFAULT_ID and self._owner.current is not None

    @property
    def sessions(self) -> tuple[InferenceSession, ...]:
        """The sessions that are not released, in the order of their creation."""
        return tuple(self._sessions)

    @property
    def label(self) -> str:
        """The label of its contexts; "" for none."""
        return self._label

    @property
    def closed(self) -> bool:
        """Return whether :meth:`close` was called."""
        return self._closed

    def statistics(self) -> EnvironmentStatistics:
        """Return a frozen look at what lives, and at how often bytes crossed between host and device."""
        return EnvironmentStatistics(len(self._sessions), *self._owner.books())

    def trace(self, *, kernels: bool = False, most_events: int = MOST_EVENTS) -> Trace:
        """Record what happens on the timelines, be it of this environment or not: see :func:`webnn_py.tracing.trace`.

        Raises:
            TypeError: an argument has the wrong type.
        """
        return trace(self._ml, kernels=kernels, most_events=most_events)

    def check(self) -> Check:
        """Find redundant work, and what is never destroyed, in any environment: see :func:`webnn_py.tracing.check`."""
        return check(self._ml)

    # --- sessions --------------------------------------------------------------------------------------------

    async def create_session(  # noqa: PLR0913 - ONNX Runtime's options
        self,
        model: str | os.PathLike[str] | bytes | OnnxModel | MLGraph,
        *,
        preferred_output_location: TensorLocation | Mapping[str, TensorLocation] = "cpu",
        free_dimensions: Mapping[str, int] | None = None,
        input_values: Mapping[str, Any] | None = None,
        output_names: Iterable[str] | None = None,
        enable_graph_capture: bool = False,
        progress: Progress | None = None,
    ) -> InferenceSession:
        """Load a model, convert it and compile it, while other tasks run.

        A model that leaves dimensions open is converted by the first run with feeds of a shape, and by the first of
        each further shape. With the environment's graph cache, a graph that was made before of the same model, for
        the same shapes and options, is loaded instead; others are saved there. What cannot be read or written is
        reported by a ``RuntimeWarning``.

        Args:
            model: the path or the bytes of an ONNX model, an ``OnnxModel``, or a graph of the environment's context,
                which stays the user's.
            preferred_output_location: where outputs are handed out, all, or each by its name: ``"cpu"``, on the host,
                or ``"ml-tensor"``, on the device. ``"gpu-buffer"`` means the device, too, also one that is no GPU.
            free_dimensions: sizes of symbolic dimensions, by name.
            input_values: arrays for inputs that are to be constants; the session then lacks these inputs.
            output_names: the outputs that the session has; all of the model's by default.
            enable_graph_capture: freeze the first run, which must be on the device wholly; see
                :meth:`~webnn_py.runtime.InferenceSession.run`. Further runs must have the same tensors.
            progress: is called now and then with the number of nodes that are converted, and of all.

        Raises:
            TypeError: an argument does not fit the model.
            ValueError: that is no ONNX model, or shapes do not fit it.
            OSError: the file cannot be read.
            UnsupportedModelError: WebNN, or the importer, cannot do something that the model asks for.
            OperationError: the device cannot compile it.
            NotSupportedError: there is no such device.
            InvalidStateError: the environment is closed, or its device was lost while it was being used.
        """
        self._owner.check_open("create_session")
        check_locations(preferred_output_location)
        is_captured = converted("create_session(): enable_graph_capture", boolean, enable_graph_capture)
        refuse_progress("create_session", progress)
        source = await load_model(model, free_dimensions, input_values, output_names)
        on_device = outputs_on_device(source, preferred_output_location)
        return await self._open_session("create_session", source, SessionOptions(on_device, is_captured, progress))

    async def _open_session(self, method: str, source: Model, options: SessionOptions) -> InferenceSession:
        """Make a session of a model that is loaded, once more if the device is lost meanwhile."""
        for may_try_again in (True, False):
            hold = await self._owner.acquire(method)
            session = InferenceSession._create(self._sessions, hold, source, options)
            self._sessions[session] = None
            try:
                await session._prepare()
            except BaseException as error:
                session._release()
                is_lost_alone = hold.opened.is_lost and not self._closed  # not by the end of the environment
                if may_try_again and isinstance(error, InvalidStateError) and is_lost_alone:
                    continue  # on a fresh device
                raise
            break
        return session

    # --- tensors ---------------------------------------------------------------------------------------------

    @overload
    async def create_tensor(self, data: np.ndarray[Any, Any], *, label: str = "") -> Tensor: ...
    @overload
    async def create_tensor(
        self, *, data_type: MLOperandDataTypeLike, dims: Iterable[int], label: str = ""
    ) -> Tensor: ...
    async def create_tensor(
        self,
        data: np.ndarray[Any, Any] | None = None,
        *,
        data_type: MLOperandDataTypeLike | None = None,
        dims: Iterable[int] | None = None,
        label: str = "",
    ) -> Tensor:
        """Make a tensor on the device; the caller disposes of it.

        Args:
            data: an array to copy.
            data_type: without an array, the data type of a tensor of zeros.
            dims: the dimensions of a tensor of zeros.
            label: a name for it in messages, traces and statistics.

        Raises:
            TypeError: an argument is refused.
            UnknownError: the device cannot allocate it.
            NotSupportedError: there is no such device.
            InvalidStateError: the environment is closed, or the device was lost meanwhile.
        """
        if data is None:
            if data_type is None or dims is None:
                raise TypeError("create_tensor(): give an array, or data_type and dims")
            return await new_tensor(await self._opened("create_tensor"), data_type, dims, label)
        if data_type is not None or dims is not None:
            raise TypeError("create_tensor(): the array has its own data type and dimensions; give neither")
        data = host_array("create_tensor()", data)
        opened = await self._opened("create_tensor")
        return await new_tensor(opened, data.dtype.name, data.shape, label, data)

    async def copy_tensors(self, sources: Iterable[Tensor], destinations: Iterable[Tensor]) -> None:
        """Copy each source into the destination at its place, in either direction, or on the device.

        All are checked before anything is enqueued. What goes to the device has been copied on return, from the
        device has come; on the device it is enqueued.

        Raises:
            TypeError: there are not as many of both, data types or dimensions differ, a tensor is on another
                environment's device, or one is written twice, or read and written.
            InvalidStateError: the environment is closed, a tensor was disposed of, or the device was lost.
            UnknownError: what should have written a source failed.
        """
        pairs = checked_pairs(sources, destinations)
        if all(tensor.location == "cpu" for pair in pairs for tensor in pair):
            self._owner.check_open("copy_tensors")
            for source, destination in pairs:
                np.copyto(destination.data, source.data)
        else:
            for promise in enqueue_copies(await self._opened("copy_tensors"), pairs):
                await promise
        await trio.lowlevel.checkpoint()

    async def zero(self, tensor: Tensor) -> None:
        """Set all bytes of a tensor to zero, in place.

        Raises:
            TypeError: it is no tensor, or is on another environment's device.
            InvalidStateError: the environment is closed, the tensor was disposed of, or its device was lost.
        """
        usable_tensor("zero(): tensor", tensor)
        if tensor.location == "cpu":
            self._owner.check_open("zero")
            tensor.data.fill(0)
        else:
            opened = await self._opened("zero")
            clear_buffer(opened.context, tensor._buffer_on(opened, "zero", repr(tensor)))
        await trio.lowlevel.checkpoint()

    async def cast(self, tensor: Tensor, data_type: MLOperandDataTypeLike, *, out: Tensor | None = None) -> Tensor:
        """Convert a tensor on the device to another data type, on the device.

        Args:
            tensor: on the device.
            data_type: one of the eight data types, or numpy's dtype of that name.
            out: a tensor on the device for the result, of this data type and the same dimensions.

        Returns:
            ``out``, or a new tensor, whose user disposes of it.

        Raises:
            TypeError: the device has no such cast, or a tensor is refused.
            InvalidStateError: the environment is closed, a tensor was disposed of, or its device was lost.
        """
        usable_tensor("cast(): tensor", tensor)
        wanted = converted("cast(): data_type", operand_data_type, data_type)
        if out is not None:
            usable_tensor("cast(): out", out)
            if out.data_type != wanted or out.dims != tensor.dims:
                raise TypeError(
                    f"cast(): out is {out.data_type} {list(out.dims)}; it must be {wanted} {list(tensor.dims)}"
                )
            if out is tensor:
                raise TypeError("cast(): out is the tensor itself; it must be another one")
        opened = await self._opened("cast")
        tensor._buffer_on(opened, "cast", repr(tensor))
        async with self._casting:
            graph = await cast_graph(opened, tensor, wanted)
            result = await new_tensor(opened, wanted, tensor.dims) if out is None else out
        try:
            source = tensor._buffer_on(opened, "cast", repr(tensor))
            target = result._buffer_on(opened, "cast", repr(result))
            opened.context.dispatch(graph, {"x": source}, {"y": target})
        except BaseException:
            if out is None:
                result.dispose()
            raise
        return result

    async def drain(self) -> None:
        """Wait until the device has done all that was asked of it, and those before it have given everything back."""
        await self._owner.drain()

    # --- the end ---------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the copies, then release the sessions, then end the device; wait until everything is given back.

        Tensors on the device are gone with it. The second call only waits. Raises nothing; in a process forked from
        the one that opened it, it does nothing.
        """
        if self._ml.script_timeline.trio_run.is_inherited:
            return
        self._closed = True
        self._let_go()
        for session in list(self._sessions):
            session._release()
        self._owner.close()
        await self._owner.wait_ended()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        current = self._owner.current
        where = "no device" if current is None else str(current.record.info)
        state = ", closed" if self._closed else ""
        return f"<Environment {named_by(self._label)}{len(self._sessions)} sessions, {where}{state}>"


def _saved_graphs(graph_cache: object, graph_cache_bytes: object) -> SavedGraphs | None:
    most_bytes = converted("Environment(): graph_cache_bytes", byte_count, graph_cache_bytes)
    if graph_cache is None:
        return None
    return SavedGraphs(converted("Environment(): graph_cache", absolute_path, graph_cache), most_bytes=most_bytes)
