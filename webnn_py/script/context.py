"""``MLContext``: a device, and the script's side of everything that happens on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from sys import _getframe
from typing import TYPE_CHECKING, Any, Self, final, overload

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.descriptors import (
    MLBufferDescriptor,
    MLOperandDataTypeLike,
    operand_descriptor,
)
from webnn_py.device.backend import Backend, BackendInfo, HostArray
from webnn_py.device.device import Device, Readback
from webnn_py.errors import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.handle import Handle, forgotten_await
from webnn_py.message_text import CONTEXT_DESTROYED, in_brackets, named_by, shortened, shown
from webnn_py.script.browser_rules import BrowserRules
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.checks import buffer_descriptor, check_descriptor, label_of, reject_failed, unknown
from webnn_py.script.copying import CopiesBuffers
from webnn_py.script.device_selection import TellsItsDevice
from webnn_py.script.dispatching import plain_storages, storages_of
from webnn_py.script.graph import MLGraph
from webnn_py.script.interop import SharesBuffers
from webnn_py.script.limits import op_support_limits, with_four_bits
from webnn_py.script.living import Living
from webnn_py.script.records import ContextStatistics, MLContextLostInfo, MLPowerPreference
from webnn_py.script.refusals import refused, rejected
from webnn_py.script.releases import Releases
from webnn_py.script.saving import SavesGraphs
from webnn_py.script.sources import check_target, host_copy
from webnn_py.timelines.device_timeline import DeviceOperation, DeviceTimeline
from webnn_py.timelines.promise import MLPromise
from webnn_py.timelines.script_timeline import ScriptTask
from webnn_py.tracing.operation import TracedContext
from webnn_py.trio_run import TrioRun
from webnn_py.unreported_errors import calling_line

if TYPE_CHECKING:
    from webnn_py.script.ml import ML


@final
class MLContext(Handle, CopiesBuffers, SavesGraphs, SharesBuffers, TellsItsDevice):
    """A device and its timeline (section "MLContext interface"); made by :meth:`ML.create_context`.

    Methods that the IDL types ``Promise`` act when they are called: what they ask for is enqueued on the device
    timeline before they return. Awaiting the promise only waits.
    """

    _made_by = "ML.create_context()"

    _ml: ML
    _device: Device
    _timeline: DeviceTimeline
    _run_by_readers: DeviceTimeline | None
    _trio_run: TrioRun
    _browser: BrowserRules | None
    _label: str
    _power_preference: MLPowerPreference
    _max_queued_bytes: int | None
    _lost: MLPromise[MLContextLostInfo]
    _lost_message: str | None
    _buffers: Living[MLBuffer]  # in order: the end of a context is the same each time
    _graphs: Living[MLGraph]
    _releases: Releases
    _traced: TracedContext

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
        self._capabilities = (
            with_four_bits(backend.capabilities) if "int4" in ml._experimental else backend.capabilities
        )
        self._device = Device(backend)
        self._graph_folder = None
        if ml._graph_folder is not None:
            self._keep_graphs_in(ml._graph_folder)
        self._files = trio.CapacityLimiter(1)
        self._timeline = DeviceTimeline(ml.script_timeline, overlapping=backend.overlapping, rest=backend.flush)
        self._run_by_readers = None if backend.overlapping else self._timeline  # a device that overlaps gains nothing
        self._accelerated, self._browser = accelerated, None
        self._power_preference = power_preference
        self._max_queued_bytes = max_queued_bytes
        self._trio_run = ml.script_timeline.trio_run
        self._lost = MLPromise._create("lost", self._trio_run)
        self._lost_message = None
        self._buffers, self._graphs = Living(), Living()
        self._releases = Releases(self._device, self._timeline)
        backend.lost = self._hear_of_loss
        return self

    # --- what it is ------------------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """The name that ``create_context()`` was given for it; "" for none. Not in the specification."""
        return self._label

    @property
    def backend(self) -> BackendInfo:
        """Where the context really runs: backend, adapter, driver, features."""
        return self._device.backend.info

    @property
    def lost(self) -> MLPromise[MLContextLostInfo]:
        """A promise, always the same, fulfilled when the context is lost or destroyed; never rejected."""
        return self._lost

    @property
    def device_timeline(self) -> DeviceTimeline:
        """The queue of device operations; tests and teaching pause and step it."""
        return self._timeline

    def op_support_limits(self) -> dict[str, Any]:
        """The data types and ranks that every operator accepts here (section "opSupportLimits()"); they are enforced.

        Returns a fresh plain structure: ``limits["conv2d"]["input"]["data_types"]``, ``…["rank_range"]["max"]``.
        """
        return op_support_limits(self._capabilities, self._browser)

    def statistics(self) -> ContextStatistics:
        """A frozen look at what lives on the device and what waits for it. Not in the specification."""
        device, timeline = self._device.statistics(), self._timeline.statistics()
        return ContextStatistics(
            device.live_buffers,
            device.live_bytes,
            timeline.queued_operations,
            timeline.queued_bytes,
            device.host_copies,
            device.compiled,
            device.by_label,
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
            descriptor = buffer_descriptor(
                data_type, shape, self._capabilities.packed, readable=readable, writable=writable
            )
            name = label_of(label)
            self._check_not_lost("create_buffer")
            self._check_descriptor(descriptor)
        except (TypeError, InvalidStateError) as error:
            return rejected(self, "create_buffer", error)
        buffer = MLBuffer._create(self, descriptor, name)
        work = partial(self._device.allocate, buffer._storage)
        return self._enqueue_creation("create_buffer", buffer, work)

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
            self._check_not_lost("create_constant_buffer")
            self._check_descriptor(descriptor, constant=True)
            copied = host_copy(data, descriptor)
        except (TypeError, InvalidStateError, NotSupportedError, UnknownError) as error:
            return rejected(self, "create_constant_buffer", error)
        buffer = MLBuffer._create(self, descriptor, name)
        work = partial(self._device.allocate_constant, buffer._storage, copied)
        return self._enqueue_creation("create_constant_buffer", buffer, work, copied.nbytes)

    def _enqueue_creation(
        self, method: str, buffer: MLBuffer, work: Callable[[], Any], byte_length: int = 0
    ) -> MLPromise[MLBuffer]:
        promise: MLPromise[MLBuffer] = MLPromise._create(f"{method}()", self._trio_run, calling_line(2))
        self._buffers.add(buffer)

        def settled(error: Exception | None) -> None:
            if error is None:
                promise._resolve(buffer)
            else:
                buffer.destroy()
                reject_failed(promise, unknown(method, error), self._device)

        self._timeline.enqueue(
            DeviceOperation(
                method, work, settled, aborted=partial(self._abort, promise, method), held_bytes=byte_length
            )
        )
        return promise

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

        A failure on the device is told by the next ``read_buffer()``.
        """
        self._trio_run.check("write_buffer()")
        try:
            if type(buffer) is not MLBuffer or buffer._context is not self or buffer._destroyed:
                self._check_buffer("write_buffer", buffer)
            if not buffer._descriptor.writable:
                raise TypeError(f"write_buffer(): {buffer!r} is not writable")
            try:
                copied = host_copy(data, buffer._descriptor, self._device.host_copy)
            except (TypeError, UnknownError) as error:
                raise type(error)(f"write_buffer(): {named_by(buffer.label)}{error}") from error.__cause__
        except Exception as error:
            refused(self, "write_buffer", error, buffer)
            raise
        caller = _getframe(1)  # as calling_line() does, without a call, as all that is on the way of each run
        work = partial(self._device.write, buffer._storage, copied, (caller.f_code, caller.f_lasti))
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
            if type(buffer) is not MLBuffer or buffer._context is not self or buffer._destroyed:
                self._check_buffer("read_buffer", buffer)
            descriptor = buffer._descriptor
            if not descriptor.readable:
                raise TypeError(f"{buffer!r} is not readable")
            if out is not None:
                check_target(out, descriptor)
        except TypeError as error:
            return rejected(self, "read_buffer", error, buffer)
        caller = _getframe(1)
        line = caller.f_code, caller.f_lasti
        promise: MLPromise[Any] = MLPromise._create("read_buffer()", self._trio_run, line, self._run_by_readers)
        buffer._pending_reads[promise] = None
        readback = Readback(self._device)
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
        del buffer._pending_reads[promise]
        if error is not None:
            reject_failed(promise, unknown("read_buffer", error), self._device)
        elif out is None:
            promise._settle("fulfilled", data)
        else:
            try:
                target = check_target(out, buffer._descriptor)
            except TypeError as gone:
                refusal = TypeError(f"read_buffer(): out changed while the read was pending: {gone}")
                promise._reject(refusal)
                return
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
            outputs: a buffer for each of the graph's outputs, by name; wholly overwritten.

        Raises:
            InvalidStateError: the graph is destroyed.
            TypeError: an object is another context's, a buffer is destroyed, constant or given twice, or the names,
                data types or shapes are not the graph's.

        A failure on the device is told by the next ``read_buffer()`` of an output.
        """
        self._trio_run.check("dispatch()")
        try:
            if type(graph) is not MLGraph:
                raise TypeError(f"dispatch(): graph is {shown(graph)}; it must be an MLGraph{forgotten_await(graph)}")
            given = plain_storages(self, graph, inputs, outputs) or storages_of(self, graph, inputs, outputs)
        except Exception as error:
            refused(self, "dispatch", error, graph, inputs, outputs)
            raise
        read, written = given
        caller = _getframe(1)
        work = partial(self._device.dispatch, graph._handle, read, written, (caller.f_code, caller.f_lasti))
        self._timeline.enqueue(DeviceOperation("dispatch", work))

    # --- the end ---------------------------------------------------------------------------------------------

    @enable_ki_protection
    def destroy(self) -> None:
        """Lose the context: fulfil ``lost``, destroy every graph and buffer, reject what is pending.

        Operations that have not begun are dropped, releases still run. The second call does nothing. Raises nothing but
        ``RuntimeError``, outside the run of ``open_ml()`` (section "destroy()").
        """
        self._trio_run.check("destroy()")
        self._lose(CONTEXT_DESTROYED)

    def _hear_of_loss(self, message: str) -> None:
        self._device.is_lost = True
        for buffer in self._buffers:
            if buffer._storage.failure is not None:
                buffer._storage.failure.tell()  # the loss tells why other steps have failed
        self._ml.script_timeline.enqueue(ScriptTask("lose", partial(self._lose, message)))

    @enable_ki_protection
    def _lose(self, message: str) -> None:
        if self._lost_message is not None:
            return
        self._lost_message = message
        self._lost._resolve(MLContextLostInfo(message))
        for graph in self._graphs:
            graph._destroy()
        for buffer in self._buffers:
            buffer._destroy()
        self._releases.release_collected()
        self._device.call_in()
        self._device.backend.stop()
        self._timeline.lose(message)

    @enable_ki_protection
    async def _run(self) -> None:
        """Drain the device timeline until the context is lost and every release has run."""
        await self._timeline.run()
        self._device.backend.lost = _nobody_listens
        self._device.backend.close()

    def _abort(self, promise: MLPromise[Any], method: str) -> None:
        promise._reject(self._lost_error(method), is_told=True)

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

    def _check_descriptor(self, descriptor: MLBufferDescriptor, *, constant: bool = False) -> None:
        check_descriptor(descriptor, self._capabilities, self._browser, constant=constant)

    def _check_buffer(self, method: str, buffer: MLBuffer) -> None:
        if type(buffer) is not MLBuffer:
            raise TypeError(f"{method}(): {shown(buffer)} given; it must be an MLBuffer{forgotten_await(buffer)}")
        if buffer._context is not self:
            raise TypeError(f"{method}(): {buffer!r} belongs to another context{in_brackets(buffer._context._label)}")
        if buffer._destroyed:
            buffer._check_alive(method, repr(buffer))

    def _described(self) -> str:
        lost = "" if self._lost_message is None else f", lost: {shortened(self._lost_message)}"
        return f"{named_by(self._label)}on {shortened(str(self.backend), 100)}{lost}"


def _nobody_listens(_message: str) -> None:
    """What a backend may still call once its context has ended."""
