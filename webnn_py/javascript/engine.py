"""JavaScript engines: each a process that waits for what to do, and asks its host while it does it.

A process of its own is what makes a script stoppable: in an endless loop, in a library call that never ends, at a time
limit, over its memory, or when it brings the engine down.
"""

import json
import os
import signal
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from types import FrameType
from typing import IO, Any, Literal, cast, get_args

from webnn_py.javascript import engine_commands
from webnn_py.javascript.engine_commands import UNLIMITED, Command, Limits

HostCall = Callable[[str, "memoryview | None"], "tuple[str, memoryview | None]"]
"""The host's answer to a script's message: JSON and bytes in, JSON and bytes out. It raises only to end the script."""

Refusal = Callable[[int, int], "str | None"]
"""The answer to a message of so many bytes of text and of payload that is not to be read; None for one that is."""

EngineName = Literal["quickjs", "node"]

ENGINES: tuple[EngineName, ...] = get_args(EngineName)

_COMMANDS: dict[EngineName, Callable[[Limits], Command]] = {
    "quickjs": engine_commands.quickjs,
    "node": engine_commands.node,
}

_HEADER = struct.Struct("<cIq")
"""Kind, bytes of text, bytes of payload (-1: none)."""

_SKIPPED_BYTES = 2**16

_EXIT_SECONDS = 5.0

_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""The environment variables of an engine's process: those that loading needs, and none that a script must not know."""


class ScriptError(Exception):
    """An exception that a script did not catch."""

    def __init__(self, message: str, stack: str = "") -> None:
        super().__init__(message)
        self.stack = stack


class EngineError(Exception):
    """The engine itself failed: it died, or sent an unknown message."""


class LimitError(Exception):
    """A script was ended because it used up what it was given."""


def require(name: EngineName, limits: Limits = UNLIMITED) -> None:
    """See that an engine's packages are installed.

    Raises:
        NotSupportedError: it is not.
    """
    _COMMANDS[name](limits)


def start(name: EngineName, limits: Limits, host: HostCall, refuse: Refusal = lambda _text, _payload: None) -> "Engine":
    """Start an engine.

    Raises:
        NotSupportedError: its package is not installed.
    """
    return Engine(name, _COMMANDS[name](limits), host, refuse, limits)


def own_source(name: str) -> str:
    """One of the package's own JavaScript files."""
    return (resources.files("webnn_py.javascript") / "js" / name).read_text(encoding="utf-8")


class NotedInterrupt:
    """A handler of Ctrl-C that remembers it before it passes it on.

    One that comes between two entries of an engine is passed to whoever waits, who may get no turn before the next.
    """

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self._handler = handler
        self.noted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        self.noted = True
        self._handler(number, frame)


@contextmanager
def _interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Within, Ctrl-C calls ``stop``; at its end the block raises KeyboardInterrupt, whatever else it raised."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    interrupted = False

    def note(_signal: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        stop()

    signal.signal(signal.SIGINT, note)
    try:
        if isinstance(before, NotedInterrupt) and before.noted:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupted:
            raise KeyboardInterrupt


class Engine:
    """A JavaScript engine with one realm.

    The package's own files are functions of one object, the *runtime*, which scripts never see. Nothing runs
    microtasks but :meth:`run_jobs`. Every method raises LimitError once a limit is reached, EngineError when the
    process is gone, KeyboardInterrupt when Ctrl-C ended it.
    """

    def __init__(self, name: EngineName, command: Command, host: HostCall, refuse: Refusal, limits: Limits) -> None:
        self.name = name
        self._host = host
        self._refuse = refuse
        self._command = command
        self._limits = limits
        self._overdue = False
        self._process = subprocess.Popen(  # noqa: S603 - the package's own executables and scripts
            command.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if limits.memory_bytes is None else subprocess.DEVNULL,  # V8 prints pages about full memory
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)
        self._watch = None if limits.seconds is None else threading.Timer(limits.seconds, self._time_is_up)
        if self._watch is not None:
            self._watch.daemon = True
            self._watch.start()
        if command.growth_bytes is not None:
            try:
                self.load("() => {}", "start.js")  # it has started when it has done something
                engine_commands.bound_growth(self._process.pid, command.growth_bytes)
            except BaseException:
                self.close()  # nothing else refers to it
                raise

    @property
    def process_id(self) -> int:
        """The id of its process."""
        return self._process.pid

    def kill(self) -> None:
        """End its process, from any thread."""
        self._process.kill()

    def _time_is_up(self) -> None:
        self._overdue = True
        self._process.kill()

    def _ended(self) -> Exception:
        """Return the exception to raise for a process that has ended."""
        status = self._process.wait()
        if self._overdue:
            return LimitError(f"it ran for {self._limits.seconds:g} s, its time limit")
        if self._limits.memory_bytes is not None and status in self._command.out_of_memory:
            return LimitError(f"it used up {self._limits.memory_bytes / 2**20:g} MiB, its memory limit")
        return EngineError(f"{self._command.title} ended with status {status}")

    # --- frames ------------------------------------------------------------------------------------------------

    def _write(self, kind: bytes, text: str, payload: memoryview | None) -> None:
        data = text.encode()
        length = -1 if payload is None else payload.nbytes
        self._input.write(_HEADER.pack(kind, len(data), length) + data)
        if payload is not None:
            self._input.write(payload)
        self._input.flush()

    def _read(self) -> tuple[bytes, str, memoryview | None]:
        """Return a frame; of kind R and with its answer as the text, if it was refused."""
        kind, text_length, length = _HEADER.unpack(self._read_exactly(_HEADER.size))
        refusal = self._refuse(text_length, max(length, 0)) if kind == b"C" else None
        if refusal is not None:
            for start in range(0, rest := text_length + max(length, 0), _SKIPPED_BYTES):
                self._read_exactly(min(_SKIPPED_BYTES, rest - start))
            return b"R", refusal, None
        text = self._read_exactly(text_length).decode()
        return kind, text, None if length < 0 else memoryview(self._read_exactly(length))

    def _read_exactly(self, count: int) -> bytes:
        data = self._output.read(count)
        if len(data) < count:
            raise self._ended()
        return data

    def _do(self, text: dict[str, Any], payload: memoryview | None = None) -> None:
        """Have the engine do something, and be its host until it has done it."""
        with _interruptible(self._process.kill):
            try:
                self._write(b"X", json.dumps(text), payload)
                while True:
                    kind, answer, data = self._read()
                    if kind == b"D":
                        break
                    self._write(b"A", *((answer, None) if kind == b"R" else self._host(answer, data)))
            except BrokenPipeError:
                raise self._ended() from None
            except BaseException:
                self._process.kill()  # it waits for an answer that does not come
                raise
        error = json.loads(answer)
        if error is not None:
            raise ScriptError(error["message"], error["stack"])

    # --- what it does ------------------------------------------------------------------------------------------

    def load(self, source: str, name: str) -> None:
        """Evaluate a function expression and call it with the runtime."""
        self._do({"do": "load", "source": source, "name": name})

    def evaluate(self, source: str, name: str, *, module: bool = False) -> None:
        """Evaluate a classic script; raises ScriptError. What a module throws is reported as an uncaught exception."""
        self._do({"do": "module" if module else "evaluate", "source": source, "name": name})

    def call(self, function: str, argument: str, payload: memoryview | None = None) -> None:
        """Call a function of the runtime with parsed JSON and bytes."""
        self._do({"do": "call", "function": function, "argument": argument}, payload)

    def run_jobs(self) -> None:
        """Run microtasks until there are none, then report rejections that nothing handles."""
        self._do({"do": "jobs"})

    def close(self) -> None:
        """Give everything back."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch.join()
        with suppress(BrokenPipeError):  # it may be dead, and never have read what was written
            self._input.close()  # the process ends at the end of its input
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
