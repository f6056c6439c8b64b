"""``MLContext``: a device, and the methods that enqueue operations on its timeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from sys import _getframe
from typing import TYPE_CHECKING, Any, Self, TypeVar, final, overload

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.argument_checks import (
    buffer_descriptor,
    check_buffer,
    check_descriptor,
    label_of,
    named,
    unknown,
)
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.buffer_source import check_target, host_copy
from webnn_py.core.api.dispatch_arguments import storages_at_first_sight, storages_of
from webnn_py.core.api.graph import GraphSignature, MLGraph
from webnn_py.core.api.limits import op_support_limits
from webnn_py.core.api.observers import Observers
from webnn_py.core.api.records import ContextStatistics, MLContextLostInfo, MLPowerPreference
from webnn_py.core.api.refused_calls import rejected_promise, report_refusal
from webnn_py.core.api.release_queue import ReleaseQueue
from webnn_py.core.api.weak_set import OrderedWeakSet
from webnn_py.core.descriptors import (
    MLBufferDescriptor,
    MLOperandDataTypeLike,
    operand_descriptor,
)
from webnn_py.core.device.backend import Backend, BackendInfo, Capabilities, CountsItself, HostArray, Storage
from webnn_py.core.device.device import Device, GraphHandle, Readback
from webnn_py.core.errors import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.core.extension import Extension, Variant
from webnn_py.core.handle import Handle, forgotten_await
from webnn_py.core.in_flight import like
from webnn_py.core.message_text import CONTEXT_DESTROYED, device_text, in_brackets, named_by, shortened, shown
from webnn_py.core.observer import ObservedContext
from webnn_py.core.timelines.device_timeline import DeviceOperation, DeviceTimeline, Work
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.timelines.script_timeline import ScriptTask
from webnn_py.core.trio_run import TrioRun
from webnn_py.core.unreported_errors import calling_line

if TYPE_CHECKING:
    from webnn_py.core.api.ml import ML

T = TypeVar("T")


@final
class MLContext(Handle):
    """A device and its timeline (section "MLContext interface"); made by :meth:`ML.create_context`.

    Methods that the IDL types ``Promise`` act when they are called: what they ask for is enqueued on the device
    timeline before they return. Awaiting the promise only waits.
    """

    _made_by = "ML.create_context()"

    _ml: ML
    _observers: Observers
    _experimental: frozenset[str]
    _accelerated: bool
    _capabilities: Capabilities
    _device: Device
    _timeline: DeviceTimeline
    _run_by_readers: DeviceTimeline | None
    _trio_run: TrioRun
    _extensions: tuple[Extension, ...]
    _replacing: tuple[Extension, ...]  # those that may run something else in the place of a graph
    _label: str
    _power_preference: MLPowerPreference
    _max_queued_bytes: int | None
    _lost: MLPromise[MLContextLostInfo]
    _lost_message: str | None
    _buffers: OrderedWeakSet[MLBuffer]  # in order: the end of a context is the same each time
    _graphs: OrderedWeakSet[MLGraph]
    _releases: ReleaseQueue
    _observed: ObservedContext

    @classmethod
    def _create(  # noqa: PLR0913 - the options of create_context()
        cls,
        ml: ML,
        backend: Backend,
        *,
        power_preference: MLPowerPreference = "default",
        accelerated: bool = True,
        max_queued_bytes: int | None = None,
        label: str = "",
    ) -> Self:
        self = cls.__new__(cls)
        self._label = label
        self._ml = ml
        self._observers, self._experimental, self._extensions = ml._observers, ml._experimental, ml._extensions
        self._capabilities = backend.capabilities
        for extension in self._extensions:
            self._capabilities = extension.capabilities(self._capabilities)
        self._replacing = tuple(each for each in self._extensions if type(each).dispatch is not Extension.dispatch)
        self._device = Device(backend)
        self._timeline = DeviceTimeline(ml.script_timeline, overlapping=backend.overlapping, rest=backend.flush)
        self._run_by_readers = None if backend.overlapping else self._timeline  # a device that overlaps gains nothing
        # spec: create a context 3.5
        self._accelerated = accelerated
        # spec: create a context 3.3
        self._power_preference = power_preference
        self._max_queued_bytes = max_queued_bytes
        self._trio_run = ml.script_timeline.trio_run
        # spec: create a context 3.2
        self._lost = MLPromise._create("lost", self._trio_run)
        self._lost_message = None
        self._buffers, self._graphs = OrderedWeakSet(), OrderedWeakSet()
        self._releases = ReleaseQueue(self._device, self._timeline)
        backend.lost = self._hear_of_loss
        self._observed = self._observers.opened(self)
        return self

    # --- properties ------------------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """The name that ``create_context()`` was given for it; "" for none. Not in the specification."""
        return self._label

    @property
    def backend(self) -> BackendInfo:
        """The backend, adapter, driver and features that the context runs on."""
        return self._device.backend.info

    @property
    def accelerated(self) -> bool:
        """The option that the context was created with; :attr:`backend` tells what really runs."""
        # spec: MLContext.accelerated 0
        return self._accelerated

    @property
    def lost(self) -> MLPromise[MLContextLostInfo]:
        """A promise, always the same, fulfilled when the context is lost or destroyed; never rejected."""
        # spec: MLContext.lost 0
        return self._lost

    @property
    def device_timeline(self) -> DeviceTimeline:
        """The queue of device operations; tests and teaching pause and step it."""
        return self._timeline

    @property
    def lost_message(self) -> str | None:
        """The reason for the loss of the context; None while it is not lost. Not in the specification."""
        return self._lost_message

    @property
    def experimental(self) -> frozenset[str]:
        """The names of the proposals that ``open_ml()`` was asked for. Not in the specification."""
        return self._experimental

    @property
    def capabilities(self) -> Capabilities:
        """The data types, operators and sizes that the device takes, for importers. Not in the specification."""
        return self._capabilities

    @property
    def resources(self) -> tuple[MLBuffer | MLGraph, ...]:
        """The buffers and graphs that are not destroyed, for tools. Not in the specification."""
        return *self._buffers, *self._graphs

    @property
    def device(self) -> Device:
        """The device, for tools and extensions. Not in the specification."""
        return self._device

    @property
    def observed(self) -> ObservedContext:
        """The context, as observers see it. Not in the specification."""
        return self._observed

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """Those of ``open_ml()``. Not in the specification."""
        return self._extensions

    @property
    def power_preference(self) -> MLPowerPreference:
        """The option that the context was created with. Not in the specification."""
        return self._power_preference

    def op_support_limits(self) -> dict[str, Any]:
        """The data types and ranks that every operator accepts here (section "opSupportLimits()"); they are enforced.

        Returns a fresh plain structure: ``limits["conv2d"]["input"]["data_types"]``, ``…["rank_range"]["max"]``.
        """
        limits = op_support_limits(self._capabilities)
        for extension in self._extensions:
            limits = extension.limits(limits)
        return limits

    def statistics(self) -> ContextStatistics:
        """Return counts of the buffers, bytes and queued operations, as they are now. Not in the specification."""
        device, timeline, backend = self._device, self._timeline, self._device.backend
        return ContextStatistics(
            device.live_buffers,
            device.live_bytes,
            timeline.queued_operations,
            timeline.queued_bytes,
            device.host_copies,
            backend.statistics() if isinstance(backend, CountsItself) else {},
        )

    @enable_ki_protection
    async def drain(self) -> None:
        """Wait until all that is enqueued has finished and its promises are settled. Not in the specification."""
        self._trio_run.check("drain()")
        await self._timeline.drain()
        pending = self._device.backend.finish()
        if pending is not None:
            await pending

    async def wait_for_capacity(self) -> None:
        """Wait until queued operations hold at most ``max_queued_bytes``; at once when none was given.

        Nothing that the API enqueues can wait, so a producer that outruns the device awaits this in between. Not in
        the specification.
        """
        self._trio_run.check("wait_for_capacity()")
        limit = self._max_queued_bytes
        if limit is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._timeline.wait_until(lambda: self._timeline.queued_bytes <= limit)

    # --- buffers ---------------------------------------------------------------------------------------------

    @enable_ki_protection
    def create_buffer(
        self,
        *,
        data_type: MLOperandDataTypeLike,
        shape: Any,
        readable: bool = False,
        writable: bool = False,
        label: str = "",
    ) -> MLPromise[MLBuffer]:
        """Create a buffer with all bytes zero (section "createTensor()").

        Args:
            data_type: one of the eight data types, or numpy's dtype of that name.
            shape: the dimensions, each at least 1; empty for a scalar.
            readable: whether ``read_buffer()`` may read it.
            writable: whether ``write_buffer()`` may write it.
            label: a name for it in messages, traces and statistics. Not in the specification.

        Returns:
            A promise of the buffer, rejected with ``TypeError`` for a bad descriptor or label, ``InvalidStateError``
            when the context is lost, ``UnknownError`` when the device cannot allocate it.
        """
        self._trio_run.check("create_buffer()")
        try:
            buffer = self.make_buffer(
                "create_buffer", data_type=data_type, shape=shape, readable=readable, writable=writable, label=label
            )
        except (TypeError, InvalidStateError, NotSupportedError) as error:
            return rejected_promise(self, "create_buffer", error)
        # spec: MLContext.createTensor 6.1.1
        work = partial(self._device.allocate, buffer._storage)
        # spec: MLContext.createTensor 5-7
        return self._enqueue("create_buffer", work, lambda: buffer, otherwise=buffer.destroy)

    def make_buffer(  # noqa: PLR0913 - a buffer's descriptor
        self,
        method: str,
        *,
        data_type: MLOperandDataTypeLike,
        shape: Any,
        readable: bool = False,
        writable: bool = False,
        label: str = "",
    ) -> MLBuffer:
        """Return a buffer without memory, for tools, which enqueue what gives it some. Not in the specification.

        Args:
            method: the caller, for messages.
            data_type: as for :meth:`create_buffer`, and so are all others.
            shape: the dimensions.
            readable: whether ``read_buffer()`` may read it.
            writable: whether ``write_buffer()`` may write it.
            label: a name for it.

        Raises:
            TypeError: the descriptor or the label is refused.
            InvalidStateError: the context is lost.
        """
        flags = {"readable": readable, "writable": writable}
        descriptor = buffer_descriptor(data_type, shape, self._capabilities.packed, **flags)
        name = label_of(label)
        # spec: MLContext.createTensor 3
        self._check_not_lost(method)
        self._check_descriptor(descriptor)
        # spec: MLContext.createTensor 4
        buffer = MLBuffer._create(self, descriptor, name)
        self._buffers.add(buffer)
        return buffer

    @enable_ki_protection
    def create_constant_buffer(
        self, data: object, *, data_type: MLOperandDataTypeLike, shape: Any, label: str = ""
    ) -> MLPromise[MLBuffer]:
        """Create a constant buffer from bytes, which are copied now (section "createConstantTensor()").

        It can be given to :meth:`MLGraphBuilder.constant` and to nothing else.

        Args:
            data: exactly the bytes of the descriptor; see :meth:`write_buffer` for what is accepted.
            data_type: one of the eight data types, or numpy's dtype of that name.
            shape: the dimensions, each at least 1; empty for a scalar.
            label: a name for it in messages, traces and statistics. Not in the specification.

        Returns:
            A promise of the buffer, rejected as ``create_buffer()``'s is, and with ``TypeError`` for data that do
            not fit.
        """
        self._trio_run.check("create_constant_buffer()")
        try:
            operand = operand_descriptor(data_type, shape)
            name = label_of(label)
            descriptor = MLBufferDescriptor(operand.data_type, operand.shape, constant=True)
            # spec: MLContext.createConstantTensor 3
            self._check_not_lost("create_constant_buffer")
            # spec: MLContext.createConstantTensor 4
            self._check_descriptor(descriptor)
            # spec: MLContext.createConstantTensor 5-7
            copied = host_copy(data, descriptor)
        except (TypeError, InvalidStateError, NotSupportedError, UnknownError) as error:
            return rejected_promise(self, "create_constant_buffer", error)
        # spec: MLContext.createConstantTensor 8
        buffer = MLBuffer._create(self, descriptor, name)
        # spec: MLContext.createConstantTensor 10.1.1-10.1.4
        work = partial(self._device.allocate_constant, buffer._storage, copied)
        self._buffers.add(buffer)
        # spec: MLContext.createConstantTensor 9-11
        return self._enqueue(
            "create_constant_buffer", work, lambda: buffer, otherwise=buffer.destroy, held_bytes=copied.nbytes
        )

    @enable_ki_protection
    def write_buffer(self, buffer: MLBuffer, data: object) -> None:
        """Write a whole buffer; what happens to ``data`` later has no effect (section "writeTensor()").

        Args:
            buffer: a writable buffer of this context.
            data: exactly the buffer's bytes: an array of its data type, numpy's or one that another library exports,
                another typed buffer of it, or plain bytes.

        Raises:
            TypeError: the buffer is another context's, destroyed, or not writable, or the data do not fit.
            UnknownError: there is no memory for a copy of the data.

        A failure on the device is reported by the next ``read_buffer()``.
        """
        self._trio_run.check("write_buffer()")
        try:
            if type(buffer) is not MLBuffer or buffer._context is not self or buffer._destroyed or buffer.withheld:
                check_buffer(self, "write_buffer", buffer)
            # spec: MLContext.writeTensor 3
            if not buffer._descriptor.writable:
                raise TypeError(f"write_buffer(): {buffer!r} is not writable")
            try:
                # spec: MLContext.writeTensor 4-6
                copied = host_copy(data, buffer._descriptor, self._device.host_copy)
            except (TypeError, UnknownError) as error:
                raise type(error)(f"write_buffer(): {named_by(buffer.label)}{error}") from error.__cause__
        except Exception as error:
            report_refusal(self, "write_buffer", error, buffer)
            raise
        caller = _getframe(1)  # as calling_line() does, without a call, as all that is on the way of each run
        work = partial(self._device.write, buffer._storage, copied, (caller.f_code, caller.f_lasti))
        # spec: MLContext.writeTensor 7
        self._timeline.enqueue(DeviceOperation("write_buffer", work, held_bytes=copied.nbytes))

    @overload
    def read_buffer(self, buffer: MLBuffer) -> MLPromise[HostArray]: ...
    @overload
    def read_buffer(self, buffer: MLBuffer, *, out: object) -> MLPromise[None]: ...
    @enable_ki_protection
    def read_buffer(self, buffer: MLBuffer, *, out: object = None) -> MLPromise[HostArray] | MLPromise[None]:
        """Read a whole buffer, as it is when everything enqueued before has run (section "readTensor()").

        Args:
            buffer: a readable buffer of this context.
            out: a writable, C-contiguous buffer of exactly the same bytes to be filled instead; it is written when
                the promise is fulfilled, and not at all when it is rejected.

        Returns:
            A promise of a fresh numpy array of the buffer's data type and shape, owned by the caller, or of None
            with ``out``. Rejected with ``TypeError`` for a buffer of another context, destroyed or not readable, or
            an ``out`` that does not fit; with ``InvalidStateError``, at once, when the buffer is destroyed while the
            read is pending; with ``UnknownError`` when the step that should have written the buffer had failed.
        """
        self._trio_run.check("read_buffer()")
        try:
            if type(buffer) is not MLBuffer or buffer._context is not self or buffer._destroyed or buffer.withheld:
                check_buffer(self, "read_buffer", buffer)
            descriptor = buffer._descriptor
            # spec: MLContext.readTensor(tensor) 5; MLContext.readTensor(tensor, outputData) 5
            if not descriptor.readable:
                raise TypeError(f"{buffer!r} is not readable")
            if out is not None:
                # spec: MLContext.readTensor(tensor, outputData) 6
                check_target(out, descriptor)
        except TypeError as error:
            return rejected_promise(self, "read_buffer", error, buffer)
        caller = _getframe(1)
        line = caller.f_code, caller.f_lasti
        # spec: MLContext.readTensor(tensor) 6; MLContext.readTensor(tensor, outputData) 7
        promise: MLPromise[Any] = MLPromise._create("read_buffer()", self._trio_run, line, self._run_by_readers)
        # spec: MLContext.readTensor(tensor) 7; MLContext.readTensor(tensor, outputData) 8
        buffer._pending_reads[promise] = None
        readback = Readback(self._device)
        # spec: MLContext.readTensor(tensor) 8-9; MLContext.readTensor(tensor, outputData) 9-10
        self._timeline.enqueue(
            DeviceOperation(
                "read_buffer",
                partial(self._device.read, buffer._storage, readback),
                partial(self._settle_read, promise, buffer, readback, out),
                aborted=partial(self._abort_read, promise, readback),
            )
        )
        return promise

    def _settle_read(
        self, promise: MLPromise[Any], buffer: MLBuffer, readback: Readback, out: object, error: Exception | None
    ) -> None:
        data = readback.take()
        if promise._state != "pending":
            return  # destroy() was faster; out must not be written
        # spec: MLContext.readTensor(tensor) 8.1.2.1, 8.1.3.1
        # spec: MLContext.readTensor(tensor, outputData) 9.1.2.1, 9.1.3.1
        del buffer._pending_reads[promise]
        if error is not None:
            # spec: MLContext.readTensor(tensor) 8.1.2.2; MLContext.readTensor(tensor, outputData) 9.1.2.2
            promise._reject(unknown("read_buffer", error), is_reported=self._device.is_lost)  # by the loss
        elif out is None:
            # spec: MLContext.readTensor(tensor) 8.1.3.2-8.1.3.3
            promise._settle("fulfilled", data)
        else:
            try:
                target = check_target(out, buffer._descriptor)
            except TypeError as gone:
                # spec: MLContext.readTensor(tensor, outputData) 9.1.3.2
                refusal = TypeError(f"read_buffer(): out changed while the read was pending: {gone}")
                promise._reject(refusal)
                return
            # spec: MLContext.readTensor(tensor, outputData) 9.1.3.3-9.1.3.4
            target[...] = data
            promise._resolve(None)

    def _abort_read(self, promise: MLPromise[Any], readback: Readback) -> None:
        readback.take()
        self._abort(promise, "read_buffer")

    create_tensor = create_buffer
    create_constant_tensor = create_constant_buffer
    write_tensor = write_buffer
    read_tensor = read_buffer

    # --- dispatch --------------------------------------------------------------------------------------------

    @enable_ki_protection
    def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLBuffer], outputs: Mapping[str, MLBuffer]) -> None:
        """Run a graph when everything enqueued before has run (section "dispatch()").

        Args:
            graph: a graph of this context.
            inputs: a buffer for each of the graph's inputs, by name; never modified.
            outputs: a buffer for each of the graph's outputs, by name; all of it is overwritten.

        Raises:
            InvalidStateError: the graph is destroyed.
            TypeError: an object is another context's, a buffer is destroyed, constant or given twice (but as
                :attr:`MLGraph.in_place` allows), or the names, data types or shapes are not the graph's.

        A failure on the device is reported by the next ``read_buffer()`` of an output.
        """
        self._trio_run.check("dispatch()")
        try:
            if type(graph) is not MLGraph:
                raise TypeError(f"dispatch(): graph is {shown(graph)}; it must be an MLGraph{forgotten_await(graph)}")
            run = self._run_by_extensions(graph, inputs) if self._replacing else graph
            given = storages_at_first_sight(self, graph, run, inputs, outputs) or storages_of(
                self, graph, run, inputs, outputs
            )
        except Exception as error:
            report_refusal(self, "dispatch", error, graph, inputs, outputs)
            raise
        read, written = given
        caller = _getframe(1)
        work = partial(self._device.dispatch, run.handle, read, written, (caller.f_code, caller.f_lasti))
        # spec: MLContext.dispatch 8
        self._timeline.enqueue(DeviceOperation("dispatch", work))

    def _run_by_extensions(self, graph: MLGraph, inputs: Mapping[str, MLBuffer]) -> MLGraph | Variant:
        """Return what a dispatch runs: the graph, or what an extension has in its place."""
        if graph._context is not self or graph._destroyed:
            return graph  # which is refused
        buffers = named("dispatch(): inputs", MLBuffer, "buffers", inputs)
        descriptors = {name: buffer._descriptor for name, buffer in buffers.items()}
        found = (extension.dispatch(graph, descriptors) for extension in self._replacing)
        return next((variant for variant in found if variant is not None), graph)

    # --- operations with a promise ---------------------------------------------------------------------------

    @enable_ki_protection
    def enqueue(  # noqa: PLR0913 - an operation's
        self,
        kind: str,
        work: Callable[[], T | Awaitable[T]],
        *,
        graph: MLGraph | None = None,
        buffer: MLBuffer | None = None,
        failed: Callable[[str, Exception], Exception] = unknown,
        held_bytes: int = 0,
        abortable: bool = True,
    ) -> MLPromise[T]:
        """Enqueue an operation of a tool or an extension on the device timeline. Not in the specification.

        Args:
            kind: the name of the operation, for traces and messages: that of the function that was called.
            work: called by the device timeline when everything enqueued before has run; returns the value of the
                promise, or an awaitable of it.
            graph: the graph that it works on, for traces.
            buffer: the buffer that it works on, for traces.
            failed: returns the error of the promise, given ``kind`` and what ``work`` raised.
            held_bytes: the bytes of user data that it holds until it has run.
            abortable: whether it is dropped when the context is lost; releases are not.

        Returns:
            A promise of what ``work`` returns, rejected with ``UnknownError``, or what ``failed`` returns, when that
            raises, and with ``InvalidStateError`` when the context is lost.
        """
        self._trio_run.check(f"{kind}()")
        if self._lost_message is not None:
            return rejected_promise(self, kind, self._lost_error(kind))
        values: list[T] = []

        async def keep(pending: Awaitable[T]) -> None:
            values.append(await pending)

        def step(_handle: GraphHandle | Storage | None) -> Awaitable[None] | None:
            value = work()
            if isinstance(value, Awaitable):
                return like(value, keep(value))
            values.append(value)
            return None

        handle = graph._handle if graph is not None else None if buffer is None else buffer._storage
        traced = partial(step, handle)
        return self._enqueue(
            kind, traced, values.pop, failed=failed, abortable=abortable, held_bytes=held_bytes, depth=3
        )

    @enable_ki_protection
    def add_graph(
        self,
        kind: str,
        work: Callable[[GraphHandle], Awaitable[GraphSignature]],
        *,
        failed: Callable[[str, Exception], Exception] = unknown,
    ) -> MLPromise[MLGraph]:
        """Enqueue an operation that makes a graph otherwise than a build does. Not in the specification.

        Args:
            kind: the name of the operation, as for :meth:`enqueue`.
            work: called with the handle of the graph, into which it compiles or loads; returns an awaitable of the
                graph's inputs and outputs, by name, and the number of its operators.
            failed: as for :meth:`enqueue`.

        Returns:
            A promise of the graph, without ``MLGraph.source``, rejected as that of :meth:`enqueue`.
        """
        self._trio_run.check(f"{kind}()")
        if self._lost_message is not None:
            return rejected_promise(self, kind, self._lost_error(kind))
        graph = MLGraph._create_empty(self)
        self._graphs.add(graph)

        async def step(handle: GraphHandle) -> None:
            graph._fill(*await work(handle))

        made = partial(step, graph.handle)
        return self._enqueue(kind, made, lambda: graph, failed=failed, otherwise=graph.destroy, depth=3)

    def _enqueue(  # noqa: PLR0913 - an operation's
        self,
        method: str,
        work: Work,
        result: Callable[[], T],
        *,
        failed: Callable[[str, Exception], Exception] = unknown,
        otherwise: Callable[[], None] = lambda: None,
        abortable: bool = True,
        held_bytes: int = 0,
        depth: int = 2,
    ) -> MLPromise[T]:
        """Enqueue work, and settle a promise when it is done.

        Args:
            method: the method that was called.
            work: the device step.
            result: returns the value of the promise.
            failed: returns the error of the promise, given the method and what the step has raised.
            otherwise: called before the promise is rejected.
            abortable: whether it is dropped when the context is lost.
            held_bytes: bytes of user data that it holds.
            depth: the number of frames from here to the user's call.
        """
        promise: MLPromise[T] = MLPromise._create(f"{method}()", self._trio_run, calling_line(depth))

        def settled(error: Exception | None) -> None:
            if error is None:
                # spec: MLContext.createTensor 6.1.3; MLContext.createConstantTensor 10.1.5; build 18.1.4
                promise._resolve(result())
            else:
                otherwise()
                is_reported = self._device.is_lost and abortable  # what outlives the loss fails for other reasons
                promise._reject(failed(method, error), is_reported=is_reported)

        aborted = partial(self._abort, promise, method)
        operation = DeviceOperation(method, work, settled, abortable, aborted, held_bytes)
        self._timeline.enqueue(operation)
        return promise

    # --- the end ---------------------------------------------------------------------------------------------

    @enable_ki_protection
    def destroy(self) -> None:
        """Lose the context: fulfil ``lost``, destroy every graph and buffer, reject what is pending.

        Operations that have not begun are dropped, releases still run. The second call does nothing. Raises nothing but
        ``RuntimeError``, outside the run of ``open_ml()`` (section "destroy()").
        """
        self._trio_run.check("destroy()")
        # spec: MLContext.destroy 2
        self._lose(CONTEXT_DESTROYED)

    def _hear_of_loss(self, message: str) -> None:
        message = device_text(message)
        self._device.is_lost = True
        for buffer in self._buffers:
            if buffer._storage.failure is not None:
                buffer._storage.failure.mark_reported()  # the loss explains why other steps have failed
        # spec: context lost 2
        self._ml.script_timeline.enqueue(ScriptTask("lose", partial(self._lose, message)))

    @enable_ki_protection
    def _lose(self, message: str) -> None:
        # spec: MLContext.destroy 1
        if self._lost_message is not None:
            return
        # spec: MLContext lose 1-2
        self._lost_message = message
        # spec: MLContext lose 3
        self._lost._resolve(MLContextLostInfo(message))
        # spec: MLContext lose 4
        for graph in self._graphs:
            graph._destroy()
        # spec: MLContext lose 5
        for buffer in self._buffers:
            buffer._destroy()
        self._releases.release_collected()
        self._device.recall_lent()
        self._device.backend.stop()
        self._timeline.lose(message)

    @enable_ki_protection
    async def _run(self) -> None:
        """Drain the device timeline until the context is lost and every release has run."""
        await self._timeline.run()
        self._device.backend.lost = _ignore_loss
        self._device.backend.close()

    def _abort(self, promise: MLPromise[Any], method: str) -> None:
        # spec: MLContext.createTensor 6.2; MLContext.createConstantTensor 10.2
        # spec: MLContext.readTensor(tensor) 8.2; MLContext.readTensor(tensor, outputData) 9.2; build 18.2
        promise._reject(self._lost_error(method), is_reported=True)

    # --- checks ----------------------------------------------------------------------------------------------

    def _lost_error(self, method: str) -> InvalidStateError:
        return InvalidStateError(f"{method}(): {self._loss_text}")

    @property
    def _loss_text(self) -> str:
        """The words of messages for a context that is lost, and why."""
        return f"the context{in_brackets(self._label)} is lost: {self._lost_message}"

    def _check_not_lost(self, method: str) -> None:
        if self._lost_message is not None:
            raise self._lost_error(method)

    def _check_descriptor(self, descriptor: MLBufferDescriptor) -> None:
        check_descriptor(descriptor, self._capabilities)
        for extension in self._extensions:
            extension.buffer(descriptor)

    def _described(self) -> str:
        lost = "" if self._lost_message is None else f", lost: {shortened(self._lost_message)}"
        return f"{named_by(self._label)}on {shortened(str(self.backend), 100)}{lost}"


def _ignore_loss(_message: str) -> None:
    """Ignore a loss that a backend reports after the end of its context."""
