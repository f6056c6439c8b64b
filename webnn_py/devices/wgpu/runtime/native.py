"""The one door to wgpu-native behind wgpu-py: what wgpu-py does not offer, or does too slowly for small work.

* Trusted shader modules: without bounds checks and forced loop bounds, which cost a third of a matmul.
* A whole dispatch encoded and submitted with cached handles: 1 to 3 µs a kernel.
* Mapping and waiting by polling, owned by the device timeline: wgpu-py's promises poll from a thread of their own and
  cannot be cancelled safely.

Errors of all calls in a ``checked`` block are raised at its end, as wgpu-py's own exceptions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count, groupby
from threading import get_ident
from time import perf_counter, sleep
from typing import Any, Final, Protocol, cast

import attrs
import trio
import wgpu
from trio.lowlevel import enable_ki_protection
from wgpu.backends.wgpu_native import _api, _helpers
from wgpu.backends.wgpu_native._ffi import ffi, lib

from webnn_py.devices.wgpu import c_types  # noqa: F401 - makes wgpu-py find C types quickly
from webnn_py.devices.wgpu.records.driver import DRIVER

NO_CHECKS = 0

NOT_IN_NAGA: Final = ("enable subgroups;\n", "diagnostic(off, subgroup_uniformity);\n")
"""Directives of standard WGSL that naga refuses or warns of: it has the functions without them (wgpu issue 5555)."""
_SPONTANEOUS = lib.WGPUCallbackMode_AllowProcessEvents


class Ticket:
    """An answer of the GPU: done is None until it comes, then "" or the error.

    The library gets a number for it, since it may answer when nobody waits any more.
    """

    __slots__ = ("behind", "done", "number")

    def __init__(self, behind: int = 0) -> None:
        self.done: str | None = None
        self.behind = behind  # so many submissions of its queue
        self.number = next(_NUMBERS)
        _PENDING[self.number] = self

    def fail(self, error: str) -> None:
        """Answer it with an error: nothing was asked of the library."""
        del _PENDING[self.number]
        self.done = error

    @property
    def userdata(self) -> Any:
        """Return the number that the library passes to the callback."""
        return ffi.cast("void *", self.number)


_NUMBERS: Final = count(1)
_PENDING: Final[dict[int, Ticket]] = {}


def _settle(ok: bool, message: Any, userdata: Any) -> None:  # noqa: FBT001 - a C callback's argument
    ticket = _PENDING.pop(int(ffi.cast("uintptr_t", userdata)), None)
    if ticket is not None:
        text = "" if ok else ffi.string(message.data, message.length).decode(errors="replace")
        ticket.done = "" if ok else text or "the device is lost"


@ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")  # type: ignore[untyped-decorator]
@enable_ki_protection  # an interrupt within a callback would be printed and lost, and so would the answer
def _mapped(status: int, message: Any, userdata: Any, _unused: Any) -> None:
    _settle(status == lib.WGPUMapAsyncStatus_Success, message, userdata)


@ffi.callback("void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)")  # type: ignore[untyped-decorator]
@enable_ki_protection  # an interrupt within a callback would be printed and lost, and so would the answer
def _work_done(status: int, message: Any, userdata: Any, _unused: Any) -> None:
    _settle(status == lib.WGPUQueueWorkDoneStatus_Success, message, userdata)


_problems = _api.error_handler._get_proxy_stack


class checked:  # noqa: N801 - reads like the function that it would be, were that not slower
    """Raise the errors of this thread's raw calls at the end of the context.

    wgpu-py leaves it with what lies on top of the thread's stack, as it does for its own calls: this lies there.
    """

    __slots__ = ("message", "name", "type")

    def __init__(self, what: str) -> None:
        self.name = what
        self.type = ""
        self.message: str | None = None

    def __enter__(self) -> None:
        _problems().append(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        _problems().pop()
        if self.message is not None and error is None:
            raise _helpers.ERROR_TYPES.get(self.type, wgpu.GPUError)(self.message)


def trusted_module(device: wgpu.GPUDevice, code: str, label: str) -> wgpu.GPUShaderModule:
    """Return a shader module without run-time checks: only for kernels whose every index is provably in range.

    Falls back to an ordinary module where the library lacks the function.
    """
    for directive in NOT_IN_NAGA:
        code = code.replace(directive, "", 1)
    create = getattr(_api.libf, "wgpuDeviceCreateShaderModuleTrusted", None)
    if create is None:
        return device.create_shader_module(label=label, code=code)
    text, name = ffi.new("char[]", code.encode()), ffi.new("char[]", label.encode())
    source = ffi.new("WGPUShaderSourceWGSL *")
    source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    source.code.data, source.code.length = text, len(text) - 1
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
    descriptor.label.data, descriptor.label.length = name, len(name) - 1
    return _api.GPUShaderModule(label, create(device._internal, descriptor, NO_CHECKS), device)


def untie(device: wgpu.GPUDevice) -> None:
    """Let a destroyed device go with the last reference to it, and not only when garbage is collected.

    wgpu-py's devices refer to themselves, and to their queues, which refer to them.
    """
    device.queue._device = None
    device._device = None


def _release_nothing() -> None:
    """Keep wgpu-py's finalizers from calls that wait, in a forked process, for threads of its parent for ever."""
    if DRIVER.is_inherited:
        for kind in (wgpu.GPUObjectBase, wgpu.GPUAdapter):
            kind.__del__ = lambda _object: None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_nothing)


def is_lost(device: wgpu.GPUDevice) -> bool:
    """Return whether a device is lost: only then it refuses a layout without bindings. This takes 1 or 2 µs."""
    layout = ffi.NULL
    try:
        with checked("is lost"):
            layout = lib.wgpuDeviceCreateBindGroupLayout(device._internal, _NO_BINDINGS)
    except wgpu.GPUError as error:
        return "lost" in str(error).lower()
    finally:
        if layout != ffi.NULL:
            lib.wgpuBindGroupLayoutRelease(layout)
    return False


_NO_BINDINGS: Final = ffi.new("WGPUBindGroupLayoutDescriptor *")


Launch = tuple[Any, Any, int, int, int, wgpu.GPUBindGroup]
"""A kernel to run: pipeline and bind group, as raw handles, workgroups in x, y and z, and what owns the bind group."""


@attrs.frozen(eq=False)
class BufferCopy:
    """Bytes to copy from one buffer to another; offsets and length are multiples of 4."""

    source: wgpu.GPUBuffer
    target: wgpu.GPUBuffer
    byte_length: int
    source_offset: int = 0
    target_offset: int = 0

    def encode(self, encoder: Any) -> None:
        lib.wgpuCommandEncoderCopyBufferToBuffer(
            encoder,
            self.source._internal,
            self.source_offset,
            self.target._internal,
            self.target_offset,
            self.byte_length,
        )


@attrs.frozen(eq=False)
class BufferClear:
    """Bytes to set to zero, from the beginning of a buffer; a multiple of 4."""

    buffer: wgpu.GPUBuffer
    byte_length: int

    def encode(self, encoder: Any) -> None:
        lib.wgpuCommandEncoderClearBuffer(encoder, self.buffer._internal, 0, self.byte_length)


class Encodes(Protocol):
    """A command that is no plain launch."""

    def encode(self, encoder: Any) -> None:
        """Add it to a command encoder, a raw handle."""


class EncodedAhead(Protocol):
    """The first of some launches, as command buffers."""

    def launched(self) -> None:
        """Take note that all of them are launched."""

    def take(self) -> tuple[list[Any], int]:
        """Return the command buffers, which are the caller's now, and how many launches are in them."""


Command = Launch | Encodes

MOST_COLLECTED = 32
"""The launches that take the host about as long as a submission takes."""

FIRST_SUBMITTED = 8
LEAST_LAUNCHES = 16
"""A GPU that has nothing to do gets the first launches by themselves, if there are so many, then twice as many each
time, and works on them while the host encodes the others: 4 to 7 µs each, and 50 for a submission."""

LEAST_PAUSE, MOST_PAUSE = 5e-5, 1e-3
PAUSE_SHARE = 0.02
"""Seconds between two looks for an answer, and how much of the time that it has taken they may add."""


def encode_pass(encoder: Any, descriptor: Any, launches: Iterable[Launch]) -> None:
    """Add launches as one pass to a command encoder, a raw handle."""
    compute = lib.wgpuCommandEncoderBeginComputePass(encoder, descriptor)
    set_pipeline = lib.wgpuComputePassEncoderSetPipeline
    set_bind_group = lib.wgpuComputePassEncoderSetBindGroup
    dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
    last = None
    for pipeline, group, x, y, z, _owner in launches:
        if pipeline is not last:
            set_pipeline(compute, pipeline)
            last = pipeline
        set_bind_group(compute, 0, group, 0, ffi.NULL)
        dispatch(compute, x, y, z)
    lib.wgpuComputePassEncoderEnd(compute)
    lib.wgpuComputePassEncoderRelease(compute)


class NativeQueue:
    """A device's queue, through the raw functions.

    Launches, and copies between buffers, are collected and submitted together, before anything else that goes into the
    queue: a submission costs more than ten launches, and the GPU pauses between two of them.

    Submissions are made in the thread that this was made in, the event loop's: a task that destroyed the device between
    the check of a submission and the submission itself would end the process.

    Attributes:
        most_collected: as many launches are submitted without waiting for more.
    """

    most_collected = MOST_COLLECTED

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._owner = device  # a thread may still be polling when nobody else has the device any more
        self._device = device._internal
        self._queue = device.queue._internal
        self._encoder_descriptor = ffi.new("WGPUCommandEncoderDescriptor *")
        self._pass_descriptor = ffi.new("WGPUComputePassDescriptor *")
        self._command_descriptor = ffi.new("WGPUCommandBufferDescriptor *")
        self._map_info = ffi.new("WGPUBufferMapCallbackInfo *")
        self._map_info.mode, self._map_info.callback = _SPONTANEOUS, _mapped
        self._launches: list[Command] = []
        self._thread = get_ident()
        self.ending: Future[None] = Future()  # done when the context is lost: then builds end
        self._submissions = 0
        self._answered = 0  # so many of them are known to be done
        self._has_fills = False

    def end(self) -> None:
        """The context is lost."""
        if not self.ending.done():
            self.ending.set_result(None)

    @property
    def _is_idle(self) -> bool:
        """Return whether the GPU is known to have done all that was submitted."""
        return self._answered == self._submissions

    def launch(self, launches: Sequence[Command], ahead: EncodedAhead | None = None) -> None:
        """Collect kernels and copies for the next submission; submit while there are many, so that the GPU begins.

        Args:
            launches: what to collect.
            ahead: has the first of them, as far as they are encoded; nobody else may have destroyed what they use.
        """
        if ahead is not None:
            ahead.launched()
            if self._is_idle:
                finished, count = ahead.take()
                if count:
                    self._submit("dispatch", self._take_launches(), finished)
                    launches = launches[count:]
        waiting = [*self._take_launches(), *launches]
        is_first = self._is_idle and len(waiting) >= LEAST_LAUNCHES
        piece = min(FIRST_SUBMITTED, self.most_collected) if is_first else self.most_collected
        while len(waiting) >= piece:
            self._submit("dispatch", waiting[:piece])
            del waiting[:piece]
            piece = min(2 * piece, self.most_collected)
        self._launches = waiting

    @staticmethod
    def give_up(finished: Iterable[Any]) -> None:
        """Let go of command buffers."""
        for commands in finished:
            lib.wgpuCommandBufferRelease(commands)

    def submit(self) -> None:
        """Submit what is collected."""
        if self._launches:
            self._submit("dispatch", self._take_launches())

    def run(self, launches: Sequence[Command]) -> None:
        """Submit kernels by themselves and now; what is collected stays so, and fails for itself.

        A build calls it in its worker thread.
        """
        if get_ident() == self._thread:
            self._submit("build", launches)
        else:
            trio.from_thread.run_sync(self._submit, "build", launches)

    def write(self, buffer: wgpu.GPUBuffer, data: Any, byte_length: int) -> None:
        """Copy ``data``, a contiguous buffer, into ``buffer`` behind everything before."""
        self.submit()
        self._in_turn(partial(self._write, "write", buffer, data, byte_length))

    def fill(self, buffer: wgpu.GPUBuffer, data: Any, byte_length: int) -> None:
        """Copy ``data`` into memory that nothing has used yet; in any thread.

        The library keeps a copy on the host until the next submission.
        """
        self._has_fills = True
        self._write("fill", buffer, data, byte_length)

    def _write(self, what: str, buffer: wgpu.GPUBuffer, data: Any, byte_length: int) -> None:
        with checked(what):
            lib.wgpuQueueWriteBuffer(self._queue, buffer._internal, 0, ffi.from_buffer(data), byte_length)

    def submit_fills(self) -> None:
        """Submit the copies of :meth:`fill`: the first dispatch neither waits for them nor keeps their memory."""
        if self._has_fills and not self.ending.done():
            self._submit("build", [])

    def submit_copies(self, copies: Encodes) -> None:
        """Submit what is collected, and copies behind it."""
        self._submit("copy", [*self._take_launches(), copies])

    def _take_launches(self) -> list[Command]:
        launches, self._launches = self._launches, []
        return launches

    def _submit(self, what: str, launches: Sequence[Command], finished: Sequence[Any] = ()) -> None:
        """Submit what is collected, and behind it what was finished before.

        Only what was encoded without an error is submitted: what the library refuses then, on a lost device too, is
        not raised but ends the process.
        """
        try:
            encoded = self.encoded(what, launches)
        except BaseException:
            self.give_up(finished)
            raise
        self._submissions += 1
        self._has_fills = False
        self._in_turn(partial(self._hand_over, [encoded, *finished]))

    def _hand_over(self, commands: Sequence[Any]) -> None:
        try:
            with checked("submit"):
                lib.wgpuQueueSubmit(self._queue, len(commands), ffi.new("WGPUCommandBuffer[]", commands))
        finally:
            self.give_up(commands)

    def _in_turn(self, call: Callable[[], None], ticket: Ticket | None = None) -> None:
        """Make a call that uses the queue, behind all that came before.

        Args:
            call: the call.
            ticket: what it asks for.
        """
        call()

    def catch_up(self) -> None:
        """Wait until the library has been given all that was submitted, before a user submits by himself."""

    async def destroy(self, destroy: Callable[[], None]) -> None:
        """Call what destroys memory, which waits for a submission that is under way."""
        destroy()

    def close(self) -> None:
        """Nothing more comes."""

    def encoded(self, what: str, launches: Sequence[Command]) -> Any:
        """Return a command buffer of launches, as a raw handle.

        Raises:
            wgpu.GPUError: they cannot be encoded.
        """
        encoder = commands = ffi.NULL
        try:
            with checked(what):
                encoder = lib.wgpuDeviceCreateCommandEncoder(self._device, self._encoder_descriptor)
                if launches:
                    self._encode_launches(encoder, launches)
                commands = lib.wgpuCommandEncoderFinish(encoder, self._command_descriptor)
        except BaseException:
            if commands != ffi.NULL:
                lib.wgpuCommandBufferRelease(commands)
            raise
        finally:
            if encoder != ffi.NULL:
                lib.wgpuCommandEncoderRelease(encoder)
        return commands

    def _encode_launches(self, encoder: Any, launches: Sequence[Command]) -> None:
        for kind, commands in groupby(launches, type):
            if kind is tuple:
                encode_pass(encoder, self._pass_descriptor, cast("Iterable[Launch]", commands))
            else:
                for command in cast("Iterable[Encodes]", commands):
                    command.encode(encoder)

    def answered(self, ticket: Ticket) -> None:
        """Take note that the GPU has done all that was submitted before a ticket was asked for."""
        self._answered = max(self._answered, ticket.behind)

    def map(self, buffer: wgpu.GPUBuffer, byte_length: int, *, writes: bool = False) -> Ticket:
        """Ask for the buffer's memory on the host's side, to read or to write it."""
        mode = lib.WGPUMapMode_Write if writes else lib.WGPUMapMode_Read
        ticket = Ticket(self._submissions)
        self._in_turn(partial(self._ask_for_memory, buffer, mode, byte_length, ticket), ticket)
        return ticket

    def _ask_for_memory(self, buffer: wgpu.GPUBuffer, mode: Any, byte_length: int, ticket: Ticket) -> None:
        self._map_info.userdata1 = ticket.userdata
        with checked("map"):
            lib.wgpuBufferMapAsync(buffer._internal, mode, 0, byte_length, self._map_info[0])

    @staticmethod
    def mapped_bytes(buffer: wgpu.GPUBuffer, byte_length: int, *, writes: bool = False) -> memoryview:
        """Return the memory of a buffer that is mapped to be read or written, until :meth:`unmap`."""
        find = lib.wgpuBufferGetMappedRange if writes else lib.wgpuBufferGetConstMappedRange
        pointer = find(buffer._internal, 0, byte_length)
        if pointer == ffi.NULL:
            raise MemoryError("the staging buffer has no memory on the host")
        return memoryview(ffi.buffer(pointer, byte_length))

    def unmap(self, buffer: wgpu.GPUBuffer) -> None:
        """Give the memory of a mapped buffer back."""
        with checked("unmap"):
            lib.wgpuBufferUnmap(buffer._internal)

    def work_done(self) -> Ticket:
        """Submit what is collected; a ticket for everything so far."""
        self.submit()
        ticket = Ticket(self._submissions)
        self._in_turn(partial(self._ask_for_end, ticket), ticket)
        return ticket

    def _ask_for_end(self, ticket: Ticket) -> None:
        info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        info.mode, info.callback, info.userdata1 = _SPONTANEOUS, _work_done, ticket.userdata
        with checked("work done"):
            lib.wgpuQueueOnSubmittedWorkDone(self._queue, info[0])

    def poll(self, *, wait: bool) -> bool:
        """Let finished work say so; with ``wait``, block until everything submitted has finished.

        Returns whether everything submitted has.
        """
        # wgpu-native 29 sets the lowest byte of the 32 bits that its header declares; the others are left as they were.
        return bool(lib.wgpuDevicePoll(self._device, wait, ffi.NULL) & 0xFF)

    def look_for(self, ticket: Ticket) -> None:
        """Poll now and then until a ticket is answered, or everything submitted has finished.

        A wait would keep all others from submitting to the device until it ends (gfx-rs/wgpu#9470, in wgpu 29).
        """
        began = perf_counter()
        while ticket.done is None and not self.poll(wait=False):
            sleep(min(max(LEAST_PAUSE, PAUSE_SHARE * (perf_counter() - began)), MOST_PAUSE))
