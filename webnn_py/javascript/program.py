"""Runs a JavaScript program: a script or an ES module, with ``navigator.ml``, ``console``, timers and its modules."""

import math
import signal
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import attrs
import trio

from webnn_py.browser_profiles import PortabilityReport, find
from webnn_py.javascript import descriptions
from webnn_py.javascript.browser_members import compatibility_of, with_members
from webnn_py.javascript.compatibility import WPT_2026, Compatibility
from webnn_py.javascript.engine import EngineName, LimitError, NotedInterrupt
from webnn_py.javascript.engine_commands import UNLIMITED, Limits
from webnn_py.javascript.graph_cache import with_graph_cache
from webnn_py.javascript.local_files import Folder
from webnn_py.javascript.proposals import with_proposals
from webnn_py.javascript.session import open_session
from webnn_py.javascript.words import say


class UnreadableProgramError(Exception):
    """What was to be run is missing, or is no program."""


@attrs.frozen
class Program:
    """A program and what it may use.

    Attributes:
        path: its file.
        engine: the engine.
        backend: the device of its contexts.
        module: whether it is an ES module whatever its name is.
        files: the folder that ``fetch()`` reads; None for none.
        graph_cache: the folder of saved graphs; None for none.
        trace: the file for a trace; None for none.
        browser: the browser profile of its contexts; None for none.
        portability: gathers what browsers would refuse; None for nothing of the kind.
        compatibility: what the bindings do otherwise than the text, where it is no browser's.
        quiet: whether what it says goes to the standard error.
        limits: what it may use up.
        experimental: the proposals that it may try.
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
    """The world of a program: the terminal, the modules beside it, and the files that it was given."""

    def __init__(self, program: Program) -> None:
        self._modules = Folder(program.path.absolute().parent)
        self._files = None if program.files is None else Folder(program.files)
        self._quiet = program.quiet
        self.failed = False

    def log(self, level: str, text: str) -> None:
        """Write a line; what nobody caught goes to the standard error and makes the program fail."""
        uncaught = level in {"uncaught", "unhandled"}
        self.failed = self.failed or uncaught
        start = {"uncaught": "Uncaught ", "unhandled": "Unhandled rejection: "}.get(level, "")
        say(start + text, sys.stderr if self._quiet or uncaught or level in {"warn", "error"} else sys.stdout)

    def fetch(self, url: str) -> memoryview | None:
        """A file of the folder that was given, by a path from it or a ``file:`` URL with it as the root.

        Raises:
            TypeError: the URL is of the network, or no folder was given.
        """
        if self._files is None:
            raise TypeError(f"fetch(): {url!r} cannot be read: scripts get no files without the option --files FOLDER")
        data = self._files.read(self._files.find(url))
        return None if data is None else memoryview(data)

    def module(self, specifier: str, referrer: str) -> tuple[str, memoryview]:
        """A module in the program's folder or below.

        Raises:
            TypeError: there is none.
        """
        if not specifier.startswith(("./", "../", "/", "file:")):
            raise TypeError(f"cannot import {specifier!r} in {referrer}: only files beside the program, by ./name.js")
        name = self._modules.find(specifier, referrer)
        data = self._modules.read(name)
        if data is None:
            raise TypeError(f"cannot import {specifier!r} in {referrer}: there is no file {name}")
        return name, memoryview(data)

    def serve(self, message: dict[str, Any]) -> None:
        """There are no other messages."""
        raise ValueError(f"unknown message {message}")


@asynccontextmanager
async def _interruptible() -> AsyncIterator[None]:
    """Raise Ctrl-C's KeyboardInterrupt here, not in a task of a timeline that it may find at work."""
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


async def _run(program: Program, source: str, world: CommandLineWorld) -> None:
    description = descriptions.of_specification()
    folder = program.graph_cache
    if folder is not None:
        description = with_graph_cache(description)
    description = with_proposals(description, program.experimental)
    compatibility = program.compatibility
    if program.browser is not None:
        profile = find(program.browser)
        description, compatibility = with_members(description, profile), compatibility_of(profile)
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
    )
    name = program.path.name
    module = program.module or program.path.suffix == ".mjs"
    seconds = program.limits.seconds
    with trio.move_on_after(math.inf if seconds is None else seconds) as scope:
        async with _interruptible(), opened as session:
            session.call("openProgram", {"href": f"file:///{name}"})
            evaluate = session.evaluate_module if module else session.evaluate
            await session.run(lambda: evaluate(source, name))
    if scope.cancelled_caught:
        raise LimitError(f"it ran for {seconds:g} s, its time limit")


def run_program(program: Program) -> bool:
    """Run a program until nothing is left to wait for; False when an exception or a rejection was not handled.

    Raises:
        UnreadableProgramError: there is no such file, or it is no text.
        BaseExceptionGroup: of LimitError, OutputClosedError or KeyboardInterrupt, which ended it.
    """
    warnings.simplefilter("ignore", ResourceWarning)  # scripts leave buffers to the garbage collector, as they may
    source = program.source()
    world = CommandLineWorld(program)
    trio.run(_run, program, source, world)
    return not world.failed
