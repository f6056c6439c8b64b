"""Connections of Node's threads to their host: three named pipes each, which a thread takes for itself.

Calls and answers are synchronous, as they are in a script; events, the settlements of promises, come by Node's event
loop. ``js/node_client.cjs`` is the other end.
"""

import contextlib
import fcntl
import json
import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.javascript.api import API
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.host import Host
from webnn_py.script.context import MLContext

FREE: Final = 8
"""So many pipes are kept ready for threads to come; one that finds none waits."""

_HEADER: Final = struct.Struct("<Iq")
"""Bytes of text, bytes of payload (-1: none)."""

_READ_BYTES: Final = 2**20

_NEXT_CALL_NANOSECONDS: Final = 60_000
"""How long the next call is awaited before trio's other tasks get their turn: scripts make several in a row."""

_TURN_NANOSECONDS: Final = 2_000_000
"""How long calls are answered before trio's other tasks get their turn in any case."""


def _serve(message: dict[str, Any], _payload: memoryview | None) -> tuple[Any, memoryview | None]:
    raise ValueError(f"unknown message {message}")


class Connection:
    """One thread of a Node program, or pipes that wait for one.

    Args:
        folder: where the pipes are made, in a folder of their own.
        number: the connection's own.
        api: what calls mean.
        compatibility: what the bindings do otherwise than the text.
        abandon: destroys a context whose thread has ended.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        api: API,
        compatibility: Compatibility,
        abandon: Callable[[MLContext], None],
    ) -> None:
        self._abandon = abandon
        made = folder / f"new-{number}"
        made.mkdir()
        for name in ("calls", "answers", "events"):
            os.mkfifo(made / name, 0o600)
        self._calls = os.open(made / "calls", os.O_RDONLY | os.O_NONBLOCK)
        # Held open until the thread has its ends: else it would wait, and its absence would be the end of the file.
        self._held = [
            os.open(made / "calls", os.O_WRONLY | os.O_NONBLOCK),
            os.open(made / "answers", os.O_RDWR),
            os.open(made / "events", os.O_RDWR),
        ]
        self._folder = made.rename(folder / f"free-{number}").with_name(f"used-{number}")
        self._answers = self._events = -1
        self._received = bytearray()
        self._unsent: deque[memoryview] = deque()
        self._has_unsent = trio.Event()
        self._host = Host(api, compatibility, _serve, self._settle, settles_within_calls=False)

    @enable_ki_protection
    async def run(self, taken: trio.Event) -> None:
        """Answer the thread's calls until it has ended, and destroy its contexts then; set ``taken`` when it comes."""
        try:
            await trio.lowlevel.wait_readable(self._calls)
            self._connect()
            taken.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send_rest)
                while self._answer_calls():
                    await trio.lowlevel.wait_readable(self._calls)
                nursery.cancel_scope.cancel()
        finally:
            for context in self._host.contexts:
                self._abandon(context)
            for file in (self._calls, self._answers, self._events, *self._held):
                if file >= 0:
                    trio.lowlevel.notify_closing(file)
                    os.close(file)
            self._answers = self._events = -1

    def _connect(self) -> None:
        self._answers = os.open(self._folder / "answers", os.O_WRONLY)
        self._events = os.open(self._folder / "events", os.O_WRONLY | os.O_NONBLOCK)
        for file in (self._calls, self._events):
            with contextlib.suppress(AttributeError, OSError):  # Linux's alone, and bounded for each user
                fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _READ_BYTES)
        while self._held:
            os.close(self._held.pop())

    # --- calls -------------------------------------------------------------------------------------------------

    def _answer_calls(self) -> bool:
        """Answer what has come and what follows at once; return whether the thread is still there."""
        begun = time.perf_counter_ns()
        until = begun
        while True:
            try:
                data = os.read(self._calls, _READ_BYTES)
            except BlockingIOError:
                rest = (until - time.perf_counter_ns()) / 1e9
                if rest <= 0 or not select.select([self._calls], [], [], rest)[0]:
                    return True
                continue
            if not data:
                return False
            self._received += data
            waits = True  # a script waits for promises by leaving its turn
            while (frame := self._take()) is not None:
                try:
                    waits = self._answer(*frame)
                except BrokenPipeError:
                    return False
            now = time.perf_counter_ns()
            until = begun if waits or now - begun > _TURN_NANOSECONDS else now + _NEXT_CALL_NANOSECONDS

    def _take(self) -> tuple[str, memoryview | None] | None:
        if len(self._received) < _HEADER.size:
            return None
        text_length, length = _HEADER.unpack_from(self._received)
        text_end = _HEADER.size + text_length
        if len(self._received) < text_end + max(length, 0):
            return None
        received, self._received = self._received, bytearray()  # a thread waits for its answer: nothing follows
        view = memoryview(received)
        return str(view[_HEADER.size : text_end], "utf-8"), None if length < 0 else view[text_end:]

    def _answer(self, text: str, payload: memoryview | None) -> bool:
        """Answer a call, and return whether its result is a promise."""
        answer, data = self._host.handle(text, payload)
        frame = _frame(answer, data)
        while frame:
            frame = frame[os.write(self._answers, frame) :]
        return answer.startswith('{"promise"')

    # --- events ------------------------------------------------------------------------------------------------

    def _settle(self, settlement: dict[str, Any], data: memoryview | None) -> None:
        if self._events < 0:  # the thread has ended
            return
        self._unsent.append(_frame(json.dumps(settlement), data))
        if len(self._unsent) == 1 and not self._send():
            self._has_unsent.set()

    def _send(self) -> bool:
        """Send what the pipe has room for, and return whether that was all."""
        try:
            while self._unsent:
                sent = os.write(self._events, self._unsent[0])
                rest = self._unsent[0][sent:]
                if rest:
                    self._unsent[0] = rest
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return False
        except BrokenPipeError:  # the thread has ended
            self._unsent.clear()
        return True

    async def _send_rest(self) -> None:
        while True:
            await self._has_unsent.wait()
            self._has_unsent = trio.Event()
            while not self._send():
                await trio.lowlevel.wait_writable(self._events)


def _frame(text: str, data: memoryview | None) -> memoryview:
    encoded = text.encode()
    head = _HEADER.pack(len(encoded), -1 if data is None else data.nbytes) + encoded
    return memoryview(head if data is None else b"".join((head, data)))


async def serve(
    folder: Path,
    api: API,
    compatibility: Compatibility,
    abandon: Callable[[MLContext], None],
    task_status: trio.TaskStatus[None],
) -> None:
    """Serve all threads that come, until cancelled; ``task_status`` tells when the first may.

    The others are those of :class:`Connection`.
    """
    async with trio.open_nursery() as nursery:

        async def one(number: int) -> None:
            taken = trio.Event()
            nursery.start_soon(Connection(folder, number, api, compatibility, abandon).run, taken)
            await taken.wait()
            nursery.start_soon(one, number + FREE)

        for number in range(FREE):
            nursery.start_soon(one, number)
        task_status.started()
        await trio.sleep_forever()
