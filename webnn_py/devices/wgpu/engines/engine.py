"""The door to the GPU: all that the device asks of an engine, an implementation of WebGPU.

An engine has wgpu-py's interface, whose objects the device uses, and below it the C functions of ``webgpu.h``. What
every run of a graph does calls those with handles: 1 to 3 µs a kernel, where wgpu-py takes ten times as long. Answers
are polled for or waited for by the device timeline: wgpu-py's promises poll from a thread of their own, and cannot be
cancelled safely.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count, groupby
from logging import Logger
from typing import Any, Final, Protocol, cast

import wgpu
from trio.lowlevel import enable_ki_protection

from webnn_py.devices.wgpu.records.driver import DRIVER

BACKENDS: Final = ("Vulkan", "Metal", "DX12")
"""OpenGL is left out: its compute shaders are poorer, and looking for it writes to the terminal where there is no
display."""

ERRORS: Final = {
    "Validation": wgpu.GPUValidationError,
    "OutOfMemory": wgpu.GPUOutOfMemoryError,
    "Internal": wgpu.GPUInternalError,
}
"""The errors of ``webgpu.h``, as all engines raise them."""

Launch = tuple[wgpu.GPUComputePipeline, wgpu.GPUBindGroup, int, int, int]
"""A kernel to run: pipeline, bind group, and workgroups in x, y and z."""


class Ticket:
    """An answer of the GPU: done is None until it comes, then "" or the error.

    Attributes:
        behind: it comes when so many submissions of its queue are done.
        future: the engine's number of what is waited for.
    """

    __slots__ = ("behind", "done", "future")

    def __init__(self, behind: int = 0) -> None:
        self.done: str | None = None
        self.behind, self.future = behind, 0


class Checked:
    """Raises the errors of this thread's calls of C functions at the end of the context.

    Args:
        checks: returns those of this thread; errors are left with the last one.
    """

    __slots__ = ("_checks", "message", "type")

    def __init__(self, checks: Callable[[], deque[Any]]) -> None:
        self._checks = checks
        self.type = ""
        self.message: str | None = None

    def __enter__(self) -> None:
        self._checks().append(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self._checks().pop()
        if self.message is not None and error is None:
            raise ERRORS.get(self.type, wgpu.GPUError)(self.message)


class Encodes(Protocol):
    """A command that is no plain launch."""

    def encode(self, engine: Engine, encoder: Any) -> None:
        """Add it to a command encoder of an engine, a handle."""


class Engine(ABC):
    """An implementation of WebGPU; for use by any thread.

    Args:
        ffi: cffi's interface to it.
        lib: its C functions.
        api: the package that has wgpu-py's interface to it.

    Attributes:
        title: its name and version.
        log: has an error when some device is lost.
        features: the features of devices that kernels can use, as it calls them.
        subgroups: the one of these that subgroups take.
    """

    title: str
    log: Logger
    features: tuple[str, ...]
    subgroups: str

    def __init__(self, ffi: Any, lib: Any, api: Any) -> None:
        self._ffi, self._lib, self.api = ffi, lib, api
        self._adapters: Sequence[wgpu.GPUAdapter] | None = None
        self._numbers = count(1)
        self._asked: dict[int, Ticket] = {}
        self._mapped = self._callback("WGPUMapAsyncStatus")
        self._work_done = self._callback("WGPUQueueWorkDoneStatus")
        self._encoder_descriptor = ffi.new("WGPUCommandEncoderDescriptor *")
        self._pass_descriptor = ffi.new("WGPUComputePassDescriptor *")
        self._command_descriptor = ffi.new("WGPUCommandBufferDescriptor *")
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._release_nothing)

    def _release_nothing(self) -> None:
        """Keep finalizers from calls that wait, in a forked process, for threads of its parent for ever."""
        if DRIVER.is_inherited:
            for kind in (self.api.GPUObjectBase, self.api.GPUAdapter):
                kind.__del__ = lambda _object: None

    @abstractmethod
    def checked(self) -> Checked:
        """Return a context that raises the errors of this thread's calls of C functions at its end."""

    # --- adapters and devices ----------------------------------------------------------------------------------------

    def adapters(self) -> Sequence[wgpu.GPUAdapter]:
        """Return the adapters of this machine; drivers are loaded for that, once."""
        if self._adapters is None:
            self._adapters = self._find_adapters()
        return self._adapters

    @abstractmethod
    def _find_adapters(self) -> Sequence[wgpu.GPUAdapter]:
        """Make the engine's instance, of which a process has one, and return its adapters."""

    @abstractmethod
    def open(self, adapter: wgpu.GPUAdapter, features: list[str], limits: dict[str, int | None]) -> wgpu.GPUDevice:
        """Return a device of an adapter with these features and limits."""

    @abstractmethod
    def is_lost(self, device: wgpu.GPUDevice) -> bool:
        """Return whether a device is lost. This takes some µs."""

    def untie(self, device: wgpu.GPUDevice) -> None:
        """Let a destroyed device go with the last reference to it, and not only when garbage is collected.

        wgpu-py's devices refer to themselves, and to their queues, which refer to them.
        """
        device.queue._device = None
        device._device = None

    def again(self, kind: type[wgpu.GPUBuffer], buffer: wgpu.GPUBuffer, label: str) -> wgpu.GPUBuffer:
        """Return one more object for the memory of a buffer, of a subclass of its class."""
        handle, make = buffer._internal, cast("Any", kind)
        self._lib.wgpuBufferAddRef(handle)
        return cast("wgpu.GPUBuffer", make(label, handle, buffer._device, buffer.size, buffer.usage, "unmapped"))

    @staticmethod
    def let_go(buffer: wgpu.GPUBuffer) -> None:
        """Make an object unusable, and leave the memory to others that are for it."""
        buffer._release()

    @staticmethod
    def device_of(buffer: wgpu.GPUBuffer) -> wgpu.GPUDevice:
        """Return the device of a buffer."""
        return buffer._device

    @abstractmethod
    def is_destroyed(self, buffer: wgpu.GPUBuffer, layout: wgpu.GPUBindGroupLayout) -> bool:
        """Return whether a buffer is destroyed, given a layout of bind groups with one read-only buffer."""

    @abstractmethod
    def trusted_pipeline(
        self, device: wgpu.GPUDevice, code: str, label: str, layout: wgpu.GPUPipelineLayout
    ) -> wgpu.GPUComputePipeline:
        """Return a pipeline without run-time checks: only for kernels whose every index is provably in range.

        Bounds checks and forced bounds of loops cost a third of a matmul. With them where the engine has no others.
        """

    @abstractmethod
    def timestamp_period(self, device: wgpu.GPUDevice) -> float:
        """Return the nanoseconds between two ticks of the GPU's clock."""

    # --- commands ----------------------------------------------------------------------------------------------------

    def encoded(self, device: wgpu.GPUDevice, commands: Iterable[Launch | Encodes]) -> Any:
        """Return a command buffer, a handle that :meth:`release` takes.

        Raises:
            wgpu.GPUError: they cannot be encoded.
        """
        lib, null = self._lib, self._ffi.NULL
        encoder = finished = null
        try:
            with self.checked():
                encoder = lib.wgpuDeviceCreateCommandEncoder(device._internal, self._encoder_descriptor)
                for kind, alike in groupby(commands, type):
                    if kind is tuple:
                        self.encode_pass(encoder, cast("Iterable[Launch]", alike))
                    else:
                        for command in cast("Iterable[Encodes]", alike):
                            command.encode(self, encoder)
                finished = lib.wgpuCommandEncoderFinish(encoder, self._command_descriptor)
        except BaseException:
            if finished != null:
                lib.wgpuCommandBufferRelease(finished)
            raise
        finally:
            if encoder != null:
                lib.wgpuCommandEncoderRelease(encoder)
        return finished

    def encode_pass(self, encoder: Any, launches: Iterable[Launch], descriptor: Any = None) -> None:
        """Add launches as one pass to a command encoder."""
        lib, null = self._lib, self._ffi.NULL
        compute = lib.wgpuCommandEncoderBeginComputePass(encoder, descriptor or self._pass_descriptor)
        set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        set_bind_group = lib.wgpuComputePassEncoderSetBindGroup
        dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        last = None
        for pipeline, group, x, y, z in launches:
            if pipeline is not last:
                set_pipeline(compute, pipeline._internal)
                last = pipeline
            set_bind_group(compute, 0, group._internal, 0, null)
            dispatch(compute, x, y, z)
        lib.wgpuComputePassEncoderEnd(compute)
        lib.wgpuComputePassEncoderRelease(compute)

    def encode_timed(self, encoder: Any, launch: Launch, queries: wgpu.GPUQuerySet, index: int) -> None:
        """Add a pass with one launch, at whose ends the GPU writes its clock into two places of a query set."""
        writes = self._ffi.new("WGPUPassTimestampWrites *")
        writes.querySet = queries._internal
        writes.beginningOfPassWriteIndex, writes.endOfPassWriteIndex = index, index + 1
        descriptor = self._ffi.new("WGPUComputePassDescriptor *")
        descriptor.timestampWrites = writes
        self.encode_pass(encoder, [launch], descriptor)

    def encode_resolve(
        self, encoder: Any, queries: wgpu.GPUQuerySet, count: int, target: wgpu.GPUBuffer, offset: int
    ) -> None:
        """Add a copy of the first timestamps of a query set into a buffer, as 64-bit integers."""
        self._lib.wgpuCommandEncoderResolveQuerySet(encoder, queries._internal, 0, count, target._internal, offset)

    def encode_copy(
        self,
        encoder: Any,
        source: wgpu.GPUBuffer,
        source_offset: int,
        target: wgpu.GPUBuffer,
        target_offset: int,
        byte_length: int,
    ) -> None:
        """Add a copy of bytes from one buffer to another; all are multiples of 4."""
        self._lib.wgpuCommandEncoderCopyBufferToBuffer(
            encoder, source._internal, source_offset, target._internal, target_offset, byte_length
        )

    def encode_clear(self, encoder: Any, buffer: wgpu.GPUBuffer, byte_length: int) -> None:
        """Set bytes from the beginning of a buffer to zero; a multiple of 4."""
        self._lib.wgpuCommandEncoderClearBuffer(encoder, buffer._internal, 0, byte_length)

    def submit(self, device: wgpu.GPUDevice, commands: Sequence[Any]) -> None:
        """Submit command buffers.

        Only what was encoded without an error may be submitted: what wgpu-native refuses then, on a lost device too, is
        not raised but ends the process.
        """
        with self.checked():
            self._lib.wgpuQueueSubmit(
                device.queue._internal, len(commands), self._ffi.new("WGPUCommandBuffer[]", commands)
            )

    def release(self, commands: Iterable[Any]) -> None:
        """Let go of command buffers."""
        for handle in commands:
            self._lib.wgpuCommandBufferRelease(handle)

    def write(self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, data: Any, byte_length: int) -> None:
        """Copy a contiguous array into a buffer; the engine keeps a copy on the host until the next submission."""
        with self.checked():
            self._lib.wgpuQueueWriteBuffer(
                device.queue._internal, buffer._internal, 0, self._ffi.from_buffer(data), byte_length
            )

    # --- answers -----------------------------------------------------------------------------------------------------

    def map(self, ticket: Ticket, buffer: wgpu.GPUBuffer, byte_length: int, *, writes: bool) -> None:
        """Ask for the buffer's memory on the host's side, to read or to write it."""
        mode = self._lib.WGPUMapMode_Write if writes else self._lib.WGPUMapMode_Read
        info = self._how_to_answer(ticket, "WGPUBufferMapCallbackInfo *", self._mapped)
        with self.checked():
            ticket.future = self._lib.wgpuBufferMapAsync(buffer._internal, mode, 0, byte_length, info[0]).id

    def mapped_bytes(self, buffer: wgpu.GPUBuffer, byte_length: int, *, writes: bool) -> memoryview:
        """Return the memory of a buffer that is mapped to be read or written, until :meth:`unmap`."""
        find = self._lib.wgpuBufferGetMappedRange if writes else self._lib.wgpuBufferGetConstMappedRange
        pointer = find(buffer._internal, 0, byte_length)
        if pointer == self._ffi.NULL:
            raise MemoryError("the staging buffer has no memory on the host")
        return memoryview(self._ffi.buffer(pointer, byte_length))

    def unmap(self, buffer: wgpu.GPUBuffer) -> None:
        """Give the memory of a mapped buffer back."""
        with self.checked():
            self._lib.wgpuBufferUnmap(buffer._internal)

    def work_done(self, ticket: Ticket, device: wgpu.GPUDevice) -> None:
        """Ask for the end of everything that is submitted."""
        info = self._how_to_answer(ticket, "WGPUQueueWorkDoneCallbackInfo *", self._work_done)
        with self.checked():
            ticket.future = self._lib.wgpuQueueOnSubmittedWorkDone(device.queue._internal, info[0]).id

    def finish(self, device: wgpu.GPUDevice) -> None:
        """Block until all that is submitted is done, and all is answered that was asked before."""
        ticket = Ticket()
        self.work_done(ticket, device)
        while ticket.done is None:
            self.wait(device, ticket, is_shared=False)
        self.poll(device)

    def _how_to_answer(self, ticket: Ticket, kind: str, callback: Any) -> Any:
        """Return the engine's answer to a ticket, by a number: nobody may wait for it any more when it comes."""
        number = next(self._numbers)
        self._asked[number] = ticket
        info = self._ffi.new(kind)
        info.mode, info.callback = self._lib.WGPUCallbackMode_AllowProcessEvents, callback
        info.userdata1 = self._ffi.cast("void *", number)
        return info

    def _callback(self, status: str) -> Any:
        """Return a C function that answers tickets, given a status of a type."""
        success = getattr(self._lib, f"{status}_Success")

        @enable_ki_protection  # an interrupt within a callback would be printed and lost, and so would the answer
        def answer(given: int, message: Any, number: Any, _unused: Any) -> None:
            self._answer(int(self._ffi.cast("uintptr_t", number)), message, is_ok=given == success)

        return self._ffi.callback(f"void({status}, WGPUStringView, void *, void *)", answer)

    def _answer(self, number: int, message: Any, *, is_ok: bool) -> None:
        ticket = self._asked.pop(number, None)
        if ticket is not None:
            text = "" if is_ok else self._ffi.string(message.data, message.length).decode(errors="replace")
            ticket.done = "" if is_ok else text or "the device is lost"

    @abstractmethod
    def poll(self, device: wgpu.GPUDevice) -> None:
        """Let finished work of a device say so."""

    @abstractmethod
    def wait(self, device: wgpu.GPUDevice, ticket: Ticket, *, is_shared: bool) -> None:
        """Block until a ticket is answered, or the work is done and another thread is about to give the answer.

        Args:
            device: the device that was asked.
            ticket: the ticket.
            is_shared: whether others submit to the device, which the wait must not keep from it.
        """
