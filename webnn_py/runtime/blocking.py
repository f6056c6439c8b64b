"""The environment, sessions and tensors of ``webnn_py.runtime`` without ``await``, for code that is not asynchronous.

They have the names, arguments and errors of those, and block the thread that calls them. Any thread may call, also one
in which an event loop runs, which then stands still. What is asked for runs on one trio loop in a thread of its own,
which begins with the first environment and ends with the last, or with the program. An interrupt (Ctrl-C) ends a call
as a cancellation does: the session stays usable. Callbacks such as ``progress`` are called in the loop's thread.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Never,
    NoReturn,
    ParamSpec,
    Self,
    TypeVar,
    final,
    overload,
)

import numpy as np

from webnn_py import runtime
from webnn_py.core.descriptors import MLOperandDataType, MLOperandDataTypeLike
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import InvalidStateError
from webnn_py.runtime.array_protocols import ArrayProtocols
from webnn_py.runtime.loop_thread import LoopThread
from webnn_py.runtime.records import EnvironmentDevice, EnvironmentStatistics, TensorDescriptor, TensorLocation
from webnn_py.saved_graphs.record import MOST_BYTES
from webnn_py.tracing.checks import Check, check
from webnn_py.tracing.traces import MOST_EVENTS, Trace, trace

__all__ = ["Environment", "InferenceSession", "Tensor"]

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
ObserverT = TypeVar("ObserverT", Trace, Check)


class _OnLoop(Generic[S]):
    """A facade of an object that lives on the loop."""

    _loop: LoopThread
    _async: S

    def __repr__(self) -> str:
        return repr(self._async)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self._async).__name__} can be neither copied nor pickled; make an Environment and its sessions in "
            "each process"
        )


class _Same(property, Generic[T]):
    """A property of the asynchronous form, with its docstring."""

    def __init__(self, its: Any) -> None:
        @wraps(its.fget)
        def get(facade: _OnLoop[Any]) -> Any:
            return its.fget(facade._async)

        super().__init__(get)

    if TYPE_CHECKING:

        def __get__(self, facade: object, owner: type | None = None) -> T: ...  # type: ignore[override]  # no Any

        def __set__(self, facade: object, value: Never) -> None: ...


def _blocking(
    method: Callable[Concatenate[S, P], Awaitable[T]], made_of: Callable[[Any, T], R]
) -> Callable[Concatenate[_OnLoop[S], P], R]:
    """The method without ``await``; ``made_of``, called in the loop, makes of its answer what the caller gets."""

    @wraps(method)
    def call(self: _OnLoop[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        given, named = _given(args), _given(kwargs)

        async def answer() -> R:
            return made_of(self, await method(self._async, *given, **named))

        return self._loop.run(answer)

    return call


def _as_it_is(_facade: object, answer: T) -> T:
    return answer


def _given(value: Any) -> Any:
    """Replace tensors of this module by the asynchronous ones that they stand for."""
    if isinstance(value, BlockingTensor):
        return value._async
    if isinstance(value, Mapping):
        return {name: _given(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_given(item) for item in value]
    return value


GOT: Final = "array = tensor.get_data()"
"""The call that copies elements from the device to the host, for messages."""


def _given_all(tensors: Iterable[Any]) -> Any:
    return _given(tensors if isinstance(tensors, BlockingTensor) else list(tensors))


@final
class BlockingTensor(ArrayProtocols):
    """An array on the host, or a buffer on the device: :class:`webnn_py.runtime.Tensor`.

    ``Tensor(array)`` is on the host and shares the array. numpy takes it for that array; one on the device is refused
    there with ``TypeError``: call :meth:`get_data`.
    """

    __slots__ = ("__weakref__", "_async", "_loop")
    _async: runtime.Tensor
    _loop: LoopThread | None

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._async = runtime.Tensor(array)
        self._loop = None

    @classmethod
    def _of(cls, loop: LoopThread | None, tensor: runtime.Tensor) -> Self:
        self = cls.__new__(cls)
        self._async = tensor
        self._loop = loop
        return self

    @classmethod
    def from_gpu_buffer(
        cls, gpu_buffer: Any, *, data_type: MLOperandDataTypeLike = "float32", dims: Iterable[int]
    ) -> Self:
        """Return a tensor of a user's own ``wgpu.GPUBuffer``; see :meth:`webnn_py.runtime.Tensor.from_gpu_buffer`."""
        return cls._of(None, runtime.Tensor.from_gpu_buffer(gpu_buffer, data_type=data_type, dims=dims))

    location = _Same[TensorLocation](runtime.Tensor.location)
    data_type = _Same[MLOperandDataType](runtime.Tensor.data_type)
    dtype = _Same[np.dtype[Any]](runtime.Tensor.dtype)
    dims = _Same[tuple[int, ...]](runtime.Tensor.dims)
    shape = _Same[tuple[int, ...]](runtime.Tensor.shape)
    label = _Same[str](runtime.Tensor.label)
    disposed = _Same[bool](runtime.Tensor.disposed)

    @property
    def data(self) -> HostArray:
        """The array of a tensor on the host.

        Raises:
            InvalidStateError: it is on the device, or was disposed of.
        """
        return self._async._elements("data", GOT, InvalidStateError)

    def _elements(self, method: str) -> HostArray:
        return self._async._elements(method, GOT)

    @property
    def gpu_buffer(self) -> Any:
        """The ``wgpu.GPUBuffer`` of a tensor on WebGPU; see :attr:`webnn_py.runtime.Tensor.gpu_buffer`."""
        return self._its_loop().run_sync(lambda: self._async.gpu_buffer)

    def get_data(self, release: bool = False) -> HostArray:  # noqa: FBT001, FBT002 - as in ONNX Runtime
        """Return the data as an array; see :meth:`webnn_py.runtime.Tensor.get_data`."""
        return self._its_loop().run(self._async.get_data, release)

    def copy_from(
        self, source: BlockingTensor, *, source_offset: int = 0, destination_offset: int = 0, count: int | None = None
    ) -> None:
        """Copy elements of another tensor here; see :meth:`webnn_py.runtime.Tensor.copy_from`."""
        self._its_loop().run(
            self._async.copy_from,
            _given(source),
            source_offset=source_offset,
            destination_offset=destination_offset,
            count=count,
        )

    def dispose(self) -> None:
        """Let go of the data; the second call does nothing. Raises nothing."""
        if self.location == "cpu":
            self._async.dispose()
            return
        with suppress(InvalidStateError):  # the loop has ended, and with it all that was on the device
            self._its_loop().run_sync(self._async.dispose)

    def __reduce__(self) -> tuple[type[BlockingTensor], tuple[HostArray]]:
        return BlockingTensor, self._async.__reduce__()[1]

    def _its_loop(self) -> LoopThread:
        return LoopThread.shared() if self._loop is None else self._loop

    def __repr__(self) -> str:
        return repr(self._async)


@final
class BlockingSession(_OnLoop[runtime.InferenceSession]):
    """A model, ready to be run: :class:`webnn_py.runtime.InferenceSession`; made by ``Environment.create_session()``.

    ``with session:`` releases it at the end. One that is no longer referenced is released, too.
    """

    _environment: BlockingEnvironment

    def __init__(self) -> None:
        raise TypeError("InferenceSession has no public constructor; use Environment.create_session()")

    @classmethod
    def _of(cls, environment: BlockingEnvironment, session: runtime.InferenceSession) -> Self:
        self = cls.__new__(cls)
        self._environment = environment  # which is open while a session of it is held
        self._loop = environment._loop
        self._async = session
        return self

    input_names = _Same[tuple[str, ...]](runtime.InferenceSession.input_names)
    output_names = _Same[tuple[str, ...]](runtime.InferenceSession.output_names)
    in_place = _Same[Mapping[str, str]](runtime.InferenceSession.in_place)
    released = _Same[bool](runtime.InferenceSession.released)

    @property
    def input_descriptors(self) -> Mapping[str, TensorDescriptor]:
        """Data type and shape of every input, by name."""
        return self._async.input_descriptors

    @property
    def output_descriptors(self) -> Mapping[str, TensorDescriptor]:
        """Data type and shape of every output, by name, as far as the model says."""
        return self._async.output_descriptors

    def run(
        self, feeds: Mapping[str, Any], fetches: Iterable[str] | Mapping[str, Any] | None = None
    ) -> dict[str, BlockingTensor]:
        """Run the model; see :meth:`webnn_py.runtime.InferenceSession.run`."""
        targets = fetches.values() if isinstance(fetches, Mapping) else ()
        known = {target._async: target for target in targets if isinstance(target, BlockingTensor)}
        outputs = self._loop.run(self._async.run, _given(feeds), _given(fetches))
        return {
            name: known[tensor] if tensor in known else BlockingTensor._of(self._loop, tensor)
            for name, tensor in outputs.items()
        }

    profile = _blocking(runtime.InferenceSession.profile, _as_it_is)
    check_finite = _blocking(runtime.InferenceSession.check_finite, _as_it_is)

    def release(self) -> None:
        """Release the graphs and buffers, and wait for the device; the second call only waits. Raises nothing."""
        with suppress(InvalidStateError):  # the loop has ended
            self._loop.run(self._async.release)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __del__(self) -> None:
        loop, session = getattr(self, "_loop", None), getattr(self, "_async", None)
        if loop is not None and session is not None and loop.is_usable() and not session.released:
            loop.run_soon(session.release)


@final
class BlockingEnvironment(_OnLoop[runtime.Environment]):
    """One device and what runs on it: :class:`webnn_py.runtime.Environment`, which needs no ``open_ml()`` here.

    ``with Environment() as env:`` closes it; otherwise the end of the program does.

    Args:
        backend: the name of a device, as :meth:`~webnn_py.ML.create_context` takes it.
        preserve_device: whether the device, with all that it has compiled, outlives its last user.
        graph_cache: a folder where sessions of ONNX models keep their graphs, and find them in a later process.
        graph_cache_bytes: how many bytes the folder may have: graphs that were used the longest ago go first.
        **options: further options of :meth:`~webnn_py.ML.create_context`, which are checked now.

    Raises:
        TypeError: an argument is unknown or has the wrong type, or no device has the name.
        NotSupportedError: another package's device cannot be loaded.
    """

    def __init__(
        self,
        backend: str | None = None,
        *,
        preserve_device: bool = False,
        graph_cache: str | os.PathLike[str] | None = None,
        graph_cache_bytes: int = MOST_BYTES,
        **options: Any,
    ) -> None:
        options |= {
            "preserve_device": preserve_device,
            "graph_cache": graph_cache,
            "graph_cache_bytes": graph_cache_bytes,
        }
        self._sessions: weakref.WeakValueDictionary[runtime.InferenceSession, BlockingSession]
        self._sessions = weakref.WeakValueDictionary()
        while True:
            loop = LoopThread.shared()
            try:
                loop.run_sync(self._open, loop, backend, **options)
            except InvalidStateError:
                if loop.is_usable():
                    raise
                continue  # it has ended just now, with what was open on it before
            return

    def _open(self, loop: LoopThread, backend: str | None, **options: Any) -> None:
        environment = runtime.Environment(loop.ml, backend, **options)
        loop.keep(environment)
        self._loop, self._async = loop, environment

    # --- what there is ---------------------------------------------------------------------------------------

    device = _Same[EnvironmentDevice | None](runtime.Environment.device)
    label = _Same[str](runtime.Environment.label)
    closed = _Same[bool](runtime.Environment.closed)
    open_device = _blocking(runtime.Environment.open_device, _as_it_is)

    def has_context(self, id: int = 0) -> bool:
        """Return whether the context of this number is open; an environment has number 0 alone."""
        return self._async.has_context(id)

    @property
    def sessions(self) -> tuple[BlockingSession, ...]:
        """The sessions that are not released, in the order of their creation."""
        sessions = [self._sessions.get(session) for session in self._async.sessions]
        return tuple(session for session in sessions if session is not None)

    def statistics(self) -> EnvironmentStatistics:
        """Return a frozen look at what lives, and at how often bytes crossed between host and device."""
        if self._loop.is_usable():
            with suppress(InvalidStateError):  # it has just ended
                return self._loop.run_sync(self._async.statistics)
        return self._async.statistics()

    def trace(self, *, kernels: bool = False, most_events: int = MOST_EVENTS) -> AbstractContextManager[Trace]:
        """Record what happens on the timelines of all blocking environments; see :func:`webnn_py.tracing.trace`."""
        return self._entered(lambda: trace(self._loop.ml, kernels=kernels, most_events=most_events))

    def check(self) -> AbstractContextManager[Check]:
        """Find redundant work, and what is never destroyed, in all blocking environments."""
        return self._entered(lambda: check(self._loop.ml))

    @contextmanager
    def _entered(self, made: Callable[[], ObserverT]) -> Iterator[ObserverT]:
        """Enter and leave a block of the loop's."""
        entered = self._loop.run_sync(lambda: made().__enter__())
        try:
            yield entered
        finally:
            try:
                self._loop.run_sync(entered.__exit__, None, None, None)
            except InvalidStateError:  # the loop has ended with the last environment: nothing happens there any more
                entered.__exit__(None, None, None)

    # --- sessions and tensors --------------------------------------------------------------------------------

    def _session_of(self, session: runtime.InferenceSession) -> BlockingSession:
        made = self._sessions[session] = BlockingSession._of(self, session)
        return made

    create_session = _blocking(runtime.Environment.create_session, _session_of)

    @overload
    def create_tensor(self, data: np.ndarray[Any, Any], *, label: str = "") -> BlockingTensor: ...
    @overload
    def create_tensor(
        self, *, data_type: MLOperandDataTypeLike, dims: Iterable[int], label: str = ""
    ) -> BlockingTensor: ...
    def create_tensor(self, *args: Any, **options: Any) -> BlockingTensor:
        """Make a tensor on the device; see :meth:`webnn_py.runtime.Environment.create_tensor`."""
        return BlockingTensor._of(self._loop, self._loop.run(self._async.create_tensor, *args, **options))

    def copy_tensors(self, sources: Iterable[BlockingTensor], destinations: Iterable[BlockingTensor]) -> None:
        """Copy each source into its destination; see :meth:`webnn_py.runtime.Environment.copy_tensors`."""
        self._loop.run(self._async.copy_tensors, _given_all(sources), _given_all(destinations))

    def zero(self, tensor: BlockingTensor) -> None:
        """Set all bytes of a tensor to zero; see :meth:`webnn_py.runtime.Environment.zero`."""
        self._loop.run(self._async.zero, _given(tensor))

    def cast(
        self, tensor: BlockingTensor, data_type: MLOperandDataTypeLike, *, out: BlockingTensor | None = None
    ) -> BlockingTensor:
        """Convert a tensor on the device, on the device; see :meth:`webnn_py.runtime.Environment.cast`."""
        result = self._loop.run(self._async.cast, _given(tensor), data_type, out=_given(out))
        return BlockingTensor._of(self._loop, result) if out is None else out

    drain = _blocking(runtime.Environment.drain, _as_it_is)

    # --- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the copies, the sessions and the device, and wait until everything is given back.

        Tensors on the device are gone with it. The second call only waits. Raises nothing; in a process forked from
        the one that opened it, it does nothing.
        """
        if self._loop.is_usable():
            with suppress(InvalidStateError):  # the loop has just ended
                self._loop.run(self._loop.close, self._async)
        if not self._loop.is_usable():
            self._loop.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        loop, environment = getattr(self, "_loop", None), getattr(self, "_async", None)
        if loop is not None and environment is not None and loop.is_usable() and not environment.closed:
            loop.run_soon(partial(loop.close, environment))
            # Last, since a warning may be made an error.
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self, stacklevel=1)


# Under the names of webnn_py.runtime, so that code changes by its imports alone.
Environment = BlockingEnvironment
InferenceSession = BlockingSession
Tensor = BlockingTensor
