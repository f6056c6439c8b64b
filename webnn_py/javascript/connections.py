"""Connections of Node's threads to their host: two named pipes and a socket each, which a thread takes for itself.

Calls and answers are synchronous, as they are in a script, and go through the pipes. Events, the settlements of
promises, come by Node's event loop, through the socket. A pipe would not do: when a worker thread ends, Node closes
both what its event loop reads and all file numbers that the thread has opened. It would close the number of a pipe
twice, the second time perhaps as another thread's. ``js/node_client.cjs`` is the other end.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.context import MLContext
from webnn_py.core.errors import NotSupportedError
from webnn_py.javascript.allowed_calls import AllowedCalls
from webnn_py.javascript.api import API
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.host import Host

FREE: Final = 8
"""The connections that are kept ready for new threads; a thread that finds none waits."""

MOST_FOLDER_BYTES: Final = 80
"""The longest path of a host's folder: a socket's path has 103 bytes at most on macOS, 107 on Linux."""

_HEADER: Final = struct.Struct("<Iq")
"""Bytes of text, bytes of payload (-1: none)."""

_READ_BYTES: Final = 2**20

_NEXT_CALL_NANOSECONDS: Final = 200_000
"""How long the next call is looked for before trio's other tasks get their turn: scripts make several in a row."""

_TURN_NANOSECONDS: Final = 2_000_000
"""How long calls are answered before trio's other tasks get their turn in any case."""


@attrs.frozen
class Service:
    """The parts that all connections share.

    Attributes:
        api: what calls mean.
        allowed: the calls that are answered.
        compatibility: the deviations of the bindings from the specification.
        abandon: destroys a context whose thread has ended.
    """

    api: API
    allowed: AllowedCalls
    compatibility: Compatibility
    abandon: Callable[[MLContext], None]


class Connection:
    """One thread of a Node program, or what waits for one.

    Args:
        folder: where the pipes and the socket are made, in a folder of their own.
        number: the connection's own.
        service: the parts that all connections share.
    """

    def __init__(self, folder: Path, number: int, service: Service) -> None:
        self._abandon = service.abandon
        made = folder / f"new-{number}"
        made.mkdir()
        for name in ("calls", "answers"):
            os.mkfifo(made / name, 0o600)
        self._calls = os.open(made / "calls", os.O_RDONLY | os.O_NONBLOCK)
        # Held open until the thread has its ends: else it would wait, and its absence would be the end of the file.
        self._held = [
            os.open(made / "calls", os.O_WRONLY | os.O_NONBLOCK),
            os.open(made / "answers", os.O_RDWR),
        ]
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)
        self._listener.bind(str(made / "events"))
        self._listener.listen(1)
        self._folder = made.rename(folder / f"free-{number}").with_name(f"used-{number}")
        self._answers = -1
        self._events: socket.socket | None = None
        self._received = bytearray()
        self._unsent: deque[memoryview] = deque()
        self._has_unsent = trio.Event()
        self._host = Host(service.api, service.allowed, service.compatibility, self._settle)

    @enable_ki_protection
    async def run(self, taken: trio.Event) -> None:
        """Answer the thread's calls until it has ended, and destroy its contexts then; set ``taken`` when it comes."""
        try:
            await trio.lowlevel.wait_readable(self._calls)
            events = self._connect()
            taken.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send_rest, events)
                while self._answer_calls():
                    await trio.lowlevel.wait_readable(self._calls)
                nursery.cancel_scope.cancel()
        finally:
            for context in self._host.contexts:
                self._abandon(context)
            for file in (self._calls, self._answers, *self._held):
                if file >= 0:
                    trio.lowlevel.notify_closing(file)
                    os.close(file)
            self._listener.close()
            if self._events is not None:
                trio.lowlevel.notify_closing(self._events)
                self._events.close()
                self._events = None

    def _connect(self) -> socket.socket:
        self._answers = os.open(self._folder / "answers", os.O_WRONLY)
        self._events, _ = self._listener.accept()  # the thread connects before its first call
        self._events.setblocking(False)
        self._events.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _READ_BYTES)
        with contextlib.suppress(AttributeError, OSError):  # Linux's alone, and bounded for each user
            fcntl.fcntl(self._calls, fcntl.F_SETPIPE_SZ, _READ_BYTES)
        while self._held:
            os.close(self._held.pop())
        return self._events

    # --- calls -------------------------------------------------------------------------------------------------

    def _answer_calls(self) -> bool:
        """Answer what has come and what follows at once; return whether the thread is still there."""
        begun = until = time.perf_counter_ns()
        while True:
            try:
                data = os.read(self._calls, _READ_BYTES)
            except BlockingIOError:
                if time.perf_counter_ns() >= until:
                    return True
                os.sched_yield()
                continue
            if not data:
                return False
            self._received += data
            try:
                while (frame := self._take()) is not None:
                    self._answer(*frame)
            except BrokenPipeError:
                return False
            waits = self._waits()
            now = time.perf_counter_ns()
            until = begun if waits or now - begun > _TURN_NANOSECONDS else now + _NEXT_CALL_NANOSECONDS

    def _take(self) -> tuple[bytes, memoryview | None] | None:
        if len(self._received) < _HEADER.size:
            return None
        text_length, length = _HEADER.unpack_from(self._received)
        text_end = _HEADER.size + text_length
        if len(self._received) < text_end + max(length, 0):
            return None
        end = text_end + max(length, 0)
        received, self._received = self._received, self._received[end:]  # the payload may be kept: it is not copied
        view = memoryview(received)
        return bytes(view[_HEADER.size : text_end]), None if length < 0 else view[text_end:end]

    def _answer(self, text: bytes, payload: memoryview | None) -> None:
        answer, data = self._host.handle(text, payload)
        frame = _frame(answer, data) if answer else memoryview(b"")
        while frame:
            frame = frame[os.write(self._answers, frame) :]

    def _waits(self) -> bool:
        """Settle the latest call's promise where the device answers at once; return whether it needs turns of trio."""
        promise = self._host.latest
        if promise is None:
            return False
        promise.run_waiting()
        return promise.state == "pending"

    # --- events ------------------------------------------------------------------------------------------------

    def _settle(self, settlement: dict[str, Any], data: memoryview | None) -> None:
        if self._events is None:  # the thread has ended
            return
        self._unsent.append(_frame(json.dumps(settlement), data))
        if len(self._unsent) == 1 and not self._send(self._events):
            self._has_unsent.set()

    def _send(self, events: socket.socket) -> bool:
        """Send what the socket has room for, and return whether that was all."""
        try:
            while self._unsent:
                sent = events.send(self._unsent[0])
                rest = self._unsent[0][sent:]
                if rest:
                    self._unsent[0] = rest
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return False
        except ConnectionError:  # the thread has ended
            self._unsent.clear()
        return True

    async def _send_rest(self, events: socket.socket) -> None:
        while True:
            await self._has_unsent.wait()
            self._has_unsent = trio.Event()
            while not self._send(events):
                await trio.lowlevel.wait_writable(events)


def _frame(text: str, data: memoryview | None) -> memoryview:
    encoded = text.encode()
    head = _HEADER.pack(len(encoded), -1 if data is None else data.nbytes) + encoded
    return memoryview(head if data is None else b"".join((head, data)))


async def serve(folder: Path, service: Service, task_status: trio.TaskStatus[None]) -> None:
    """Serve all threads that come, until cancelled; ``task_status`` tells when the first may.

    The others are those of :class:`Connection`.

    Raises:
        NotSupportedError: the folder's path is too long.
    """
    if (length := len(os.fsencode(folder))) > MOST_FOLDER_BYTES:
        raise NotSupportedError(
            f"the path {folder} has {length} bytes, and sockets there can have {MOST_FOLDER_BYTES}; "
            "name a folder for temporary files with a shorter path in TMPDIR"
        )
    async with trio.open_nursery() as nursery:

        async def one(number: int) -> None:
            taken = trio.Event()
            nursery.start_soon(Connection(folder, number, service).run, taken)
            await taken.wait()
            nursery.start_soon(one, number + FREE)

        for number in range(FREE):
            nursery.start_soon(one, number)
        task_status.started()
        await trio.sleep_forever()
