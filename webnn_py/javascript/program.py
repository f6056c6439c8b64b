"""Runs a JavaScript program: a script or an ES module, with ``navigator.ml``, ``console``, timers and its modules."""

import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import attrs
import trio

from webnn_py.browser_profiles import PortabilityReport, find
from webnn_py.javascript import descriptions
from webnn_py.javascript.compatibility import WPT_2026, Compatibility, compatibility_of
from webnn_py.javascript.engine import Engine, EngineName, LimitError, NotedInterrupt
from webnn_py.javascript.engine_commands import UNLIMITED, Limits
from webnn_py.javascript.local_files import Folder
from webnn_py.javascript.memory import watched
from webnn_py.javascript.proposals import with_graph_cache, with_proposals
from webnn_py.javascript.session import open_session
from webnn_py.javascript.words import OutputClosedError, say
from webnn_py.tracing.checks import Check

GRACE_SECONDS: Final = 5.0
"""How long a program may take to end once its time limit is up; a running build or dispatch may keep it from ending."""

UNSETTLED: Final = 13
"""The status of a module whose top-level await never settles, as it is Node's."""

MODULE_SUFFIXES: Final = (".js", ".mjs")


class UnreadableProgramError(Exception):
    """The program's file is missing, or is no program."""


@attrs.frozen
class Program:
    """A program and what it may use.

    Attributes:
        path: its file.
        engine: the engine.
        backend: the device of its contexts.
        module: whether it is an ES module whatever its name is.
        files: the folder that ``fetch()`` and ``import`` read; None for none.
        graph_cache: the folder of saved graphs; None for none.
        trace: the file for a trace; None for none.
        browser: the browser profile of its contexts; None for none.
        portability: gathers what browsers would refuse; None for nothing of the kind.
        compatibility: what the bindings do otherwise than the text, where it is no browser's.
        quiet: whether what it says goes to the standard error.
        limits: what it may use up.
        experimental: the proposals that it may try.
        checks: gets what is wrong with it; None for nothing of the kind.
    """

    path: Path
    engine: EngineName
    backend: str
    module: bool = False
    files: Path | None = None
    graph_cache: Path | None = None
    trace: Path | None = None
    browser: str | None = None
    portability: PortabilityReport | None = None
    compatibility: Compatibility = WPT_2026
    quiet: bool = False
    limits: Limits = UNLIMITED
    experimental: tuple[str, ...] = ()
    checks: list[Check] | None = None

    @property
    def name(self) -> str:
        """The program's own name, from which its imports start: its path relative to ``files`` if it is there."""
        return (None if self.files is None else Folder(self.files).name_of(self.path)) or self.path.name

    def source(self) -> str:
        """Its text.

        Raises:
            UnreadableProgramError: there is none.
        """
        try:
            return self.path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableProgramError(f"{self.path} is not UTF-8 (byte {error.start})") from None
        except OSError as error:
            raise UnreadableProgramError(f"{self.path}: {error.strerror or error}") from None


class CommandLineWorld:
    """The world of a program: the terminal, and the files that it was given.

    Attributes:
        failed: whether something was not caught.
    """

    def __init__(self, program: Program, source: str) -> None:
        self._name, self._source = program.name, source
        self._files = None if program.files is None else Folder(program.files)
        self._quiet = program.quiet
        self.failed = False

    def log(self, level: str, text: str) -> None:
        """Write a line; an uncaught error goes to the standard error and makes the program fail."""
        uncaught = level in {"uncaught", "unhandled"}
        self.failed = self.failed or uncaught
        start = {"uncaught": "Uncaught ", "unhandled": "Unhandled rejection: "}.get(level, "")
        say(start + text, sys.stderr if self._quiet or uncaught or level in {"warn", "error"} else sys.stdout)

    def fetch(self, url: str, most: int | None) -> memoryview | None:
        """Return a file of the folder that was given, by a path from it or a ``file:`` URL with it as the root.

        Raises:
            TypeError: the URL is of the network, no folder was given, or it has more than ``most`` bytes.
        """
        if self._files is None:
            raise TypeError(f"fetch(): {url!r} cannot be read: scripts get no files without the option --files FOLDER")
        data = self._files.read(self._files.find(url), most)
        return None if data is None else memoryview(data)

    def module(self, specifier: str, referrer: str, most: int | None) -> tuple[str, memoryview]:
        """Return the program itself, or the module of this name in the given folder.

        Raises:
            TypeError: there is none, no folder was given, or it has more than ``most`` bytes.
        """
        refused = f"cannot import {specifier!r} in {referrer}"
        if not specifier.startswith(("./", "../", "/", "file:")):
            raise TypeError(f"{refused}: modules are files, given as ./name.js")
        name = Folder(Path()).find(specifier, self._name if referrer == "<input>" else referrer)  # QuickJS's of eval()
        if name == self._name:
            return name, memoryview(self._source.encode())
        if self._files is None:
            raise TypeError(f"{refused}: scripts get no files without the option --files FOLDER")
        if not name.endswith(MODULE_SUFFIXES):
            raise TypeError(f"{refused}: a module's name ends in {' or '.join(MODULE_SUFFIXES)}; fetch() reads others")
        data = self._files.read(name, most)
        if data is None:
            raise TypeError(f"{refused}: there is no file {name} in the folder of --files")
        return name, memoryview(data)

    def serve(self, message: dict[str, Any]) -> None:
        """There are no other messages."""
        raise ValueError(f"unknown message {message}")


@asynccontextmanager
async def _interruptible() -> AsyncIterator[None]:
    """Raise Ctrl-C's KeyboardInterrupt here, not in a task of a timeline that may be running."""
    if threading.current_thread() is not threading.main_thread():  # where no signal comes
        yield
        return
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        handler = cast("Callable[[int, FrameType | None], object]", signal.getsignal(signal.SIGINT))  # trio's
        signal.signal(signal.SIGINT, NotedInterrupt(handler))
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                await anext(signals)
                raise KeyboardInterrupt

            nursery.start_soon(wait)
            yield
            nursery.cancel_scope.cancel()


def _end(program: Program, engine: Engine, reason: str) -> None:
    """End this process and the engine's, from any thread: a running operator cannot be ended otherwise."""
    with suppress(OutputClosedError):
        say(f"webnn-py js: {program.path} was ended: {reason}", sys.stderr)
    engine.kill()
    os._exit(1)


def described(
    browser: str | None, compatibility: Compatibility, experimental: Collection[str], *, saves_graphs: bool
) -> tuple[dict[str, Any], Compatibility]:
    """Return the API that a program is given, and the compatibility mode: the browser's, where it is given one."""
    description = descriptions.of_specification()
    if saves_graphs:
        description = with_graph_cache(description)
    description = with_proposals(description, experimental)
    return description, compatibility if browser is None else compatibility_of(find(browser))


async def _run(program: Program, source: str, world: CommandLineWorld) -> int:
    folder = program.graph_cache
    description, compatibility = described(
        program.browser, program.compatibility, program.experimental, saves_graphs=folder is not None
    )
    opened = open_session(
        program.engine,
        world,
        description,
        compatibility=compatibility,
        backend=program.backend,
        limits=program.limits,
        graph_cache=folder,
        trace=program.trace,
        browser=program.browser,
        portability=program.portability,
        experimental=program.experimental,
        checks=program.checks,
    )
    name, unsettled = program.name, None
    module = program.module or program.path.suffix == ".mjs"
    seconds, memory = program.limits.seconds, program.limits.memory_bytes
    too_long = f"it ran for {seconds or 0:g} s, its time limit"
    too_large = f"it used up {(memory or 0) / 2**20:g} MiB, its memory limit"
    with ExitStack() as ending, trio.move_on_after(math.inf if seconds is None else seconds) as scope:
        async with _interruptible(), opened as session:
            end = partial(_end, program, session.engine)
            if seconds is not None:
                late = threading.Timer(seconds + GRACE_SECONDS, end, [too_long])
                late.daemon = True
                late.start()
                ending.callback(late.cancel)
            with watched(memory, session.engine.process_id, partial(end, too_large)):
                session.call("openProgram", {"href": f"file:///{name}"})
                await session.run(lambda: session.evaluate(source, name, module=module))
                unsettled = session.unsettled
    if scope.cancelled_caught:
        raise LimitError(too_long)
    if unsettled is not None:
        say(f"{unsettled}: unsettled top-level await: nothing is left that could end it", sys.stderr)
    return 1 if world.failed else 0 if unsettled is None else UNSETTLED


def run_program(program: Program) -> int:
    """Run a program until nothing is left to wait for.

    One that makes this process grow beyond its memory limit in a way that cannot be refused ends this process, with a
    message and the status 1; so does one whose build or dispatch goes on for some seconds after its time limit.

    Returns:
        The status: 1 when an exception or a rejection was not handled, else 13 when a module's top-level await is not
        settled, else 0.

    Raises:
        UnreadableProgramError: there is no such file, or it is no text.
        BaseExceptionGroup: of LimitError, OutputClosedError or KeyboardInterrupt, which ended it.
    """
    warnings.simplefilter("ignore", ResourceWarning)  # scripts leave buffers to the garbage collector, as they may
    source = program.source()
    return trio.run(_run, program, source, CommandLineWorld(program, source))
