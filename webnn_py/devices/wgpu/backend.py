"""The wgpu backend: buffers are GPU buffers, a graph is a list of compute pipelines."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any, Final, Self, TypeVar

import attrs
import numpy as np
import trio
import wgpu

from webnn_py.core.descriptors import BYTES_PER_ELEMENT, MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, KernelTiming, Memory, OnProgress, Storage
from webnn_py.core.device.records.failure import Failure
from webnn_py.core.graph import Graph
from webnn_py.core.in_flight import InFlight
from webnn_py.core.message_text import device_text
from webnn_py.devices.copying import CopyRegion
from webnn_py.devices.saved_code import Bytes, SavedCode
from webnn_py.devices.shared_constants import SharedConstants
from webnn_py.devices.wgpu.adapters import describe, features_of, request_device
from webnn_py.devices.wgpu.capabilities import capabilities_of, longest_operand
from webnn_py.devices.wgpu.engines import engine_of
from webnn_py.devices.wgpu.engines.engine import Ticket
from webnn_py.devices.wgpu.passes.arena import DeviceMemory
from webnn_py.devices.wgpu.records.buffer import padded
from webnn_py.devices.wgpu.records.recently_used import Room
from webnn_py.devices.wgpu.runtime.buffer_copies import BufferCopies, Span
from webnn_py.devices.wgpu.runtime.buffer_sharing import check_foreign, check_usable, lent
from webnn_py.devices.wgpu.runtime.context_queue import BufferClear, ContextQueue
from webnn_py.devices.wgpu.runtime.device_loss import DeviceLossWatch, is_lost, to_nobody
from webnn_py.devices.wgpu.runtime.executable import GraphResources, WgpuGraph
from webnn_py.devices.wgpu.runtime.memory import STORAGE, ReadbackPool
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines
from webnn_py.devices.wgpu.runtime.saved_kernels import from_saved
from webnn_py.devices.wgpu.runtime.shared_devices import SharedDevices
from webnn_py.devices.wgpu.runtime.software_queue import SoftwareQueue
from webnn_py.devices.wgpu.runtime.timestamps import FEATURE, TimedLaunches
from webnn_py.devices.wgpu.runtime.transfers import (
    COPYING_THREADS,
    LONG_READ,
    MOST_TOGETHER,
    SLICE_READ,
    SLICES_READ,
    PendingRead,
    ReadCopies,
    StagedReads,
    as_bytes,
    copy_mapped,
)
from webnn_py.devices.wgpu.runtime.uploads import ConstantUploads, StagedBytes, UploadRing, upload
from webnn_py.devices.wgpu.runtime.waiting import Waiting, WaitPolicy

T = TypeVar("T")

SHARED_DEVICES: Final = SharedDevices(request_device)
"""The devices of contexts that bring none, in this process."""

PROGRESS_SECONDS: Final = 0.01
"""No more often than this, since the build waits for each call."""


class WgpuBackend:
    """Runs graphs on a WebGPU device, which it shares with other contexts or borrows from the user.

    What is submitted runs in order on the GPU; reads and releases wait for their own part of it only.

    Args:
        device: the device.
        give_back: called at the end, when nothing here uses a shared device any more; None for the user's.
        float16_accumulation: whether products may be summed in float16.
        cached: how much is kept of compiled pipelines.
        waiting: how much processor time a wait may take.
    """

    overlapping = True
    lost: Callable[[str], None]

    def __init__(
        self,
        device: wgpu.GPUDevice,
        *,
        give_back: Callable[[], None] | None,
        float16_accumulation: bool,
        cached: Room,
        waiting: WaitPolicy,
    ) -> None:
        self.info = describe(device)
        self.device = device
        self.lost = to_nobody
        self._give_back = give_back
        self._features = attrs.evolve(features_of(device), float16_accumulation=float16_accumulation)
        self.capabilities = capabilities_of(longest_operand(device), shader_int64=self._features.shader_int64)
        is_software = device.adapter.info["adapter_type"] == "CPU"
        self._queue = SoftwareQueue(device) if is_software and give_back is not None else ContextQueue(device)
        self._cached = cached
        self._pipelines = Pipelines.on_device(device, cached)
        self._copiers = ThreadPoolExecutor(COPYING_THREADS, "webnn-downloads")
        self._constants = ConstantUploads(device, self._queue, None if give_back is None else self._copiers)
        self._resources = GraphResources(
            device, self._queue, self._pipelines, self._features, SharedConstants(), self._constants
        )
        self._staging = ReadbackPool(device)
        self._copies = BufferCopies(device)
        self._compiling = trio.CapacityLimiter(1)
        self._waiting = Waiting(self._queue, waiting, self._pipelines)
        self._uploads = UploadRing(device, self._queue, self._copiers)
        self._unsubmitted: list[tuple[str, Iterable[Storage]]] = []
        self._reads: list[PendingRead] = []  # behind all that is collected
        self._watch = DeviceLossWatch(device, self._say_lost)
        if give_back is None:  # it may have been lost before; reported soon, when somebody listens
            self._watch.look_soon("the device had been lost before the context was created")

    @classmethod
    def on_shared_device(cls, device: wgpu.GPUDevice, **options: Any) -> Self:
        """A backend on one of ``SHARED_DEVICES``, which it gives back at its end, or now when it cannot be made."""
        give_back = partial(SHARED_DEVICES.give_back, device)
        try:
            return cls(device, give_back=give_back, **options)
        except BaseException:
            give_back()
            raise

    def _say_lost(self, reason: str) -> None:
        self.lost(f"the GPU device was lost: {reason}")

    # --- buffers ---------------------------------------------------------------------------------------------

    def allocate(self, descriptor: MLOperandDescriptor) -> wgpu.GPUBuffer:
        """Allocate; WebGPU clears buffers before their first use."""
        label = f"MLBuffer {descriptor}"
        try:
            return self.device.create_buffer(label=label, size=padded(descriptor.byte_length), usage=STORAGE)
        except wgpu.GPUError:
            self._watch.look()
            raise

    def stage(self, array: HostArray) -> HostArray | StagedBytes:
        """Return a copy of an array that is to be written; a large one lies in mapped memory."""
        return self._uploads.stage(array) or array.copy()

    def write(self, storage: Storage, data: HostArray | StagedBytes) -> None:
        """Copy ``data`` behind everything submitted; what is staged is launched like a dispatch."""
        if isinstance(data, StagedBytes):
            launch = lambda: self._queue.launch(self._uploads.commands(data, storage.data))  # noqa: E731
            self._launch("write_buffer()", [storage], [storage], launch)
            return
        self.flush()
        try:
            self._check_usable(storage)
            upload(self._queue.write, storage.data, data)
        except wgpu.GPUError:
            self._watch.look()
            raise

    def read(self, storage: Storage) -> InFlight[HostArray] | Coroutine[Any, Any, HostArray]:
        """Collect a copy into a staging buffer, which reads share until anything else follows; the answer waits for it.

        A long one is copied in slices, and later operations wait until the last is submitted.
        """
        byte_length = storage.descriptor.byte_length
        if byte_length > LONG_READ:
            return self._read_in_slices(storage)
        if self._reads and sum(read.whole for read in self._reads) + byte_length > MOST_TOGETHER:
            self.flush()
            if storage.failure is not None:
                raise RuntimeError(str(storage.failure))
        read = self._collect_read(storage, 0, byte_length)
        if storage.is_borrowed:  # at once, before the user can destroy it
            self.flush()
        return InFlight(self._finish_read(storage.descriptor, read))

    async def _finish_read(self, descriptor: MLOperandDescriptor, read: PendingRead) -> HostArray:
        data: HostArray = np.empty(descriptor.shape, descriptor.data_type)
        await self._fetch(as_bytes(data), read)
        return data

    async def _read_in_slices(self, storage: Storage) -> HostArray:
        """Let the GPU copy some slices while the host copies one."""
        data: HostArray = np.empty(storage.descriptor.shape, storage.descriptor.data_type)
        waiting: deque[tuple[HostArray, PendingRead]] = deque()
        for start in range(0, data.nbytes, SLICE_READ):
            if len(waiting) == SLICES_READ:
                await self._fetch(*waiting.popleft())
            part = as_bytes(data)[start : start + SLICE_READ]
            waiting.append((part, self._collect_read(storage, start, part.nbytes)))
            self.flush()
        while waiting:
            await self._fetch(*waiting.popleft())
        return data

    def _collect_read(self, storage: Storage, start: int, byte_length: int) -> PendingRead:
        try:
            self._check_usable(storage)
        except wgpu.GPUError:
            self._watch.look()
            raise
        read = PendingRead(storage, storage.data, start, byte_length)
        self._reads.append(read)
        return read

    def _submit_reads(self, reads: Sequence[PendingRead]) -> None:
        """Submit the collected launches, then copies into one staging buffer, and ask for its memory."""
        byte_length = 0
        for read in reads:
            read.offset = byte_length
            byte_length += read.whole
        is_alone = len(reads) == 1 and not self._unsubmitted
        try:
            staging = self._staging.take(byte_length)
            self._submit(partial(self._queue.submit_copies, ReadCopies(reads, staging)))
            self._uploads.map_again()
            ticket = self._queue.map(staging, byte_length)
        except wgpu.GPUError as error:
            self._watch.look()
            for read in reads:  # what fails for one of them, or for what came before, leaves the others alone
                if is_alone or read.storage.failure is not None:
                    read.fail(error)
                else:
                    self._submit_reads([read])
            return
        self._waiting.expect(ticket)
        staged = StagedReads(staging, byte_length, ticket, len(reads))
        for read in reads:
            read.staged = staged

    async def _fetch(self, target: HostArray, read: PendingRead) -> None:
        """Copy the bytes of a read to the host when the GPU has them in the staging buffer."""
        if read in self._reads:
            self.flush()
        if read.error is not None:
            raise read.error
        staged = read.staged
        assert staged is not None  # noqa: S101 - flush() has submitted it or given it an error
        if not staged.is_answered:
            await self._wait(staged.ticket)
            staged.is_answered = True
        self._check_mapped(staged)
        source = np.frombuffer(
            self._queue.engine.mapped_bytes(staged.buffer, staged.byte_length, writes=False),
            np.uint8,
            target.nbytes,
            read.offset,
        )
        # What is another's device may be destroyed by another task.
        look = None if self._give_back is not None else partial(self._check_mapped, staged)
        await copy_mapped(target, source, self._copiers, look)
        staged.left -= 1
        if not staged.left:
            self._queue.engine.unmap(staged.buffer)
            self._staging.give_back(staged.buffer)

    def _check_mapped(self, staged: StagedReads) -> None:
        # The device is asked, which takes 7 µs: the library says that memory is mapped which has gone with the device,
        # and ends the process when it is asked for it.
        if staged.ticket.done or is_lost(self.device):
            staged.buffer.destroy()
            self._watch.look()
            raise RuntimeError(staged.ticket.done or "the device is lost")

    def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> Coroutine[Any, Any, None] | None:
        """Launch a copy like a dispatch; the first that needs a kernel compiles it in a worker thread."""
        size = BYTES_PER_ELEMENT[source.descriptor.data_type]
        count = region.count * size
        taken = Span(source.data, region.source_offset * size, count, source.descriptor.byte_length)
        target = Span(destination.data, region.destination_offset * size, count, destination.descriptor.byte_length)
        if taken.overlaps(target):  # two imports of one GPU buffer
            raise ValueError("source and destination overlap: they are imported from one GPU buffer")
        launch = partial(self._launch_copy, (source, destination), taken, target)
        if self._copies.needs_kernel(taken, target) and not self._copies.is_prepared:
            return self._launch_when_prepared(launch)
        launch()
        return None

    async def _launch_when_prepared(self, launch: Callable[[], None]) -> None:
        await self._in_thread(self._copies.prepare)
        launch()

    def _launch_copy(self, storages: tuple[Storage, Storage], source: Span, target: Span) -> None:
        launch = lambda: self._queue.launch(list(self._copies.commands(source, target)))  # noqa: E731
        self._launch("copy_buffer()", storages, storages[1:], launch)

    def clear(self, storage: Storage) -> None:
        """Clear like a dispatch."""
        command = BufferClear(storage.data, -(-storage.descriptor.byte_length // 4) * 4)
        self._launch("clear_buffer()", [storage], [storage], partial(self._queue.launch, [command]))

    def free(self, data: wgpu.GPUBuffer) -> InFlight[None]:
        """Destroy a buffer once the GPU has finished with everything submitted so far."""
        return InFlight(self._free(data, self._work_done()))

    async def _free(self, data: wgpu.GPUBuffer, ticket: Ticket) -> None:
        await self._wait(ticket)
        await self._queue.destroy(data.destroy)

    def check_foreign(self, value: object, descriptor: MLOperandDescriptor) -> wgpu.GPUBuffer:
        """Return a user's GPU buffer as memory for ``descriptor``; ``TypeError`` when it cannot be."""
        buffer = check_foreign(value, descriptor, self.device)
        self._queue.close()  # the user may destroy it at any time
        return buffer

    def _check_usable(self, *storages: Storage) -> None:
        for storage in storages:
            if storage.is_borrowed:
                check_usable(storage.data, self.device, self._pipelines.layout((False,))[0])

    def lend(self, storage: Storage, come_back: Callable[[], None], is_out: Callable[[], bool]) -> wgpu.GPUBuffer:
        """Return the memory of ``storage`` for a user, who gives it back by ``come_back`` while it ``is_out``."""
        self.flush()  # the user's submissions come behind what is collected
        self._queue.catch_up()
        return lent(storage.data, come_back, is_out)

    # --- graphs ----------------------------------------------------------------------------------------------

    async def compile(self, graph: Graph, on_progress: Callable[[int, int], None] | None = None) -> WgpuGraph:
        """Write and compile the kernels in a worker thread; call ``on_progress`` with how many are done, and of all."""
        return await self._in_thread(self._compile, graph, on_progress)

    async def _in_thread(self, function: Callable[..., T], *given: Any) -> T:
        """Compile in a worker thread, and submit the constants that it has uploaded."""
        try:
            compiled = await trio.to_thread.run_sync(self._uploaded, function, *given, limiter=self._compiling)
            self._queue.submit_fills()
        except Exception:
            self._watch.look()
            raise
        return compiled

    def _uploaded(self, function: Callable[..., T], *given: Any) -> T:
        try:
            compiled = function(*given)
            self._constants.submit()
        finally:
            self._constants.end()
        return compiled

    def statistics(self) -> Mapping[str, int]:
        """Return the counts of the cache of pipelines."""
        return self._pipelines.statistics()

    async def compile_telling(self, graph: Graph, progress: OnProgress) -> WgpuGraph:
        """Compile a graph and report to ``progress`` how many pipelines are compiled."""
        return await self.compile(graph, now_and_then(progress))

    def _compile(self, graph: Graph, on_progress: Callable[[int, int], None] | None) -> WgpuGraph:
        return WgpuGraph(graph, self._resources, on_progress=on_progress)

    @property
    def code_identity(self) -> str:
        """The properties that kernels depend on: adapter, driver, features, limits, and the compiler."""
        limits = sorted((name, value) for name, value in self.device.limits.items())
        return f"{self.info.adapter}; {self.info.driver}; {engine_of(self.device).title}; {self._features}; {limits}"

    async def save_code(self, compiled: WgpuGraph) -> SavedCode:
        """Return the kernels of a graph, and the bytes of its constants, read back."""
        contents: dict[DeviceMemory, Bytes] = {}
        for memory in compiled.constant_memory():
            storage = Storage(MLOperandDescriptor("uint8", (memory.size,)))
            storage.memory = Memory(memory, memory.size)
            contents[memory] = (await self.read(storage)).data
        return await trio.to_thread.run_sync(partial(compiled.saved, contents), limiter=self._compiling)

    async def load_code(self, code: SavedCode) -> WgpuGraph:
        """Compile the pipelines of kernels that were saved, and upload constants, in a worker thread."""
        return await self._in_thread(lambda: WgpuGraph.of_saved(from_saved(code), self._resources))

    def dispatch(self, compiled: WgpuGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        """Launch all kernels of a graph; they are submitted together with what comes next, or when nothing does.

        Those that use a user's buffer are submitted by themselves and at once, before the user can destroy it.
        """
        storages = (*inputs.values(), *outputs.values())
        self._launch("dispatch()", storages, outputs.values(), partial(compiled.run, inputs, outputs))
        self._waiting.launched(compiled)

    def _launch(
        self, method: str, storages: Iterable[Storage], written: Iterable[Storage], launch: Callable[[], None]
    ) -> None:
        borrowed = [storage for storage in storages if storage.is_borrowed]
        if borrowed or self._reads:
            self.flush()
        self._unsubmitted.append((method, written))
        try:
            self._check_usable(*borrowed)
            launch()
            if borrowed:
                self._submit(self._queue.submit)
        except wgpu.GPUError as error:
            self._mark_unsubmitted(error)
            self._watch.look()
            raise

    def flush(self) -> None:
        """Submit what is collected; a failure is recorded in the buffers that it should have written."""
        if self._reads:
            reads, self._reads = self._reads, []
            self._submit_reads(reads)
        elif self._unsubmitted:
            try:
                self._submit(self._queue.submit)
            except wgpu.GPUError:
                self._watch.look()

    def _submit(self, submit: Callable[[], None]) -> None:
        """Submit what is collected; a failure marks what it should have written."""
        try:
            submit()
        except wgpu.GPUError as error:
            self._mark_unsubmitted(error)
            raise
        self._unsubmitted = []

    def _mark_unsubmitted(self, error: wgpu.GPUError) -> None:
        is_reported_by_loss = is_lost(self.device)
        for method, written in self._unsubmitted:
            failure = Failure.from_text(f"{method} failed: {device_text(error)}")
            if is_reported_by_loss:
                failure.mark_reported()
            for storage in written:
                storage.failure = failure
        self._unsubmitted = []

    def _work_done(self) -> Ticket:
        self.flush()
        self._uploads.map_again()
        return self._queue.work_done()

    def release_graph(self, compiled: WgpuGraph) -> InFlight[None]:
        """Destroy the graph's buffers once the GPU has finished with everything submitted so far."""
        return InFlight(self._release_graph(compiled, self._work_done()))

    async def _release_graph(self, compiled: WgpuGraph, ticket: Ticket) -> None:
        await self._wait(ticket)
        compiled.ahead.forget(None)  # here, where another wait may be encoding them
        await self._queue.destroy(compiled.release)

    # --- the end ---------------------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Wait until the GPU has finished with everything submitted so far."""
        ticket = self._work_done()
        self._waiting.expect(ticket)
        await self._wait(ticket)

    def stop(self) -> None:
        """End a build that is going on; what is submitted cannot be stopped."""
        self._queue.end()

    def close(self) -> None:
        """Drop the staging buffers and pipelines, and give a shared device back."""
        self._watch.stop()
        self.lost = to_nobody
        self._queue.close()
        self._staging.close()
        self._uploads.close()
        self._pipelines.close(self._cached)
        self._copiers.shutdown(wait=False)
        self._constants.close()
        del self._copiers  # here, where interrupts are held off: its threads have weak references with callbacks
        if self._give_back is not None:
            self._give_back()

    async def _wait(self, ticket: Ticket) -> None:
        await self._waiting.wait(ticket)


class TimingWgpuBackend(WgpuBackend):
    """On a device whose clock can be read."""

    def dispatch_timed(
        self, compiled: WgpuGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> InFlight[list[KernelTiming]]:
        """Submit all kernels of a graph by themselves and now, with timestamps; the answer waits for them."""
        self.flush()
        try:
            self._check_usable(*inputs.values(), *outputs.values())
            timed = compiled.timed(inputs, outputs)
        except wgpu.GPUError:
            self._watch.look()
            raise
        try:
            reading = self.read(timed.storage)
        except BaseException:
            timed.release()
            raise
        return InFlight(self._finish_timed(timed, reading))

    async def _finish_timed(self, timed: TimedLaunches, reading: Awaitable[HostArray]) -> list[KernelTiming]:
        try:
            return timed.timings(await reading)
        finally:
            timed.release()


def now_and_then(progress: Callable[[int, int], object]) -> Callable[[int, int], None]:
    """Return a function that calls ``progress`` now and then, in the event loop's thread, and at the end.

    Args:
        progress: the program's; what it raises is raised in the build's thread.
    """
    reported = 0.0

    def report(done: int, total: int) -> None:
        nonlocal reported
        now = perf_counter()
        if done == total or now - reported >= PROGRESS_SECONDS:
            reported = now
            trio.from_thread.run_sync(progress, done, total)

    return report


def backend_type(device: wgpu.GPUDevice) -> type[WgpuBackend]:
    """Return the backend for a device, by its features."""
    return TimingWgpuBackend if FEATURE in device.features else WgpuBackend
