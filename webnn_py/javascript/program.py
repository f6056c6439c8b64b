"""Runs a JavaScript program: a script or an ES module, with ``navigator.ml``, ``console``, timers and local files."""

import sys
import warnings
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import trio

from webnn_py.javascript import descriptions
from webnn_py.javascript.engine import EngineName
from webnn_py.javascript.session import Session, open_session
from webnn_py.javascript.words import say


class CommandLineWorld:
    """The world of a program: the terminal, and files from where it stands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.failed = False

    def log(self, level: str, text: str) -> None:
        """Write a line; what nobody caught goes to the standard error and makes the program fail."""
        uncaught = level in {"uncaught", "unhandled"}
        self.failed = self.failed or uncaught
        start = {"uncaught": "Uncaught ", "unhandled": "Unhandled rejection: "}.get(level, "")
        say(start + text, sys.stderr if uncaught or level in {"warn", "error"} else sys.stdout)

    def fetch(self, url: str) -> memoryview | None:
        """A local file, by a path from the program's folder or a file: URL.

        Raises:
            TypeError: the URL is of the network.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"", "file"} or parts.netloc:
            raise TypeError(f"fetch(): {url!r} is not a local file")
        path = self._folder / unquote(parts.path)
        return memoryview(path.read_bytes()) if path.is_file() else None

    def serve(self, message: dict[str, Any]) -> None:
        """There are no other messages."""
        raise ValueError(f"unknown message {message}")


async def _run(opened: AbstractAsyncContextManager[Session], source: str, name: str, *, module: bool) -> None:
    async with opened as session:
        evaluate = session.evaluate_module if module else session.evaluate
        await session.run(lambda: evaluate(source, name))


def run_program(path: Path, *, engine: EngineName, backend: str, module: bool = False) -> bool:
    """Run a program until nothing is left to wait for; False when an exception was not caught.

    Raises:
        FileNotFoundError: there is no such file.
    """
    warnings.simplefilter("ignore", ResourceWarning)  # scripts leave buffers to the garbage collector, as they may
    source = path.read_text(encoding="utf-8")
    world = CommandLineWorld(path.absolute().parent)
    opened = open_session(engine, world, descriptions.of_specification(), backend=backend)
    trio.run(partial(_run, opened, source, str(path), module=module or path.suffix == ".mjs"))
    return not world.failed
