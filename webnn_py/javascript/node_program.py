"""Runs a Node program of the user's, in whose threads and child processes ``navigator.ml`` is this library."""

import json
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from webnn_py.core.api.context import MLContext
from webnn_py.core.api.ml import open_ml
from webnn_py.core.errors import NotSupportedError
from webnn_py.extensions.browser_limits import find
from webnn_py.extensions.portability import PortabilityReport, judges
from webnn_py.extras import install_command
from webnn_py.javascript import descriptions
from webnn_py.javascript.allowed_calls import AllowedCalls
from webnn_py.javascript.api import API
from webnn_py.javascript.compatibility import WPT_2026, Compatibility, compatibility_of
from webnn_py.javascript.node_files import own_node, own_path, own_source
from webnn_py.javascript.proposals import with_graph_cache, with_proposals
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.tracing.checks import Check, checking
from webnn_py.tracing.trace_file import traced_to

FILES: Final = ("builtins.js", "stacks.js", "calls.js", "conversions.js", "bindings.js")
"""The package's own files that a Node program loads, in order; what only traces and proposals need, before the last."""

CLIENT: Final = own_path("node_client.cjs")

PROGRAM_SUFFIXES: Final = (".js", ".mjs", ".cjs")
"""The ends of the names of files that Node runs."""

ADDRESS: Final = "WEBNN_PY_HOST"
"""The environment variable that names the host's folder."""

SERVED: Final = "WEBNN_PY_SERVE"
"""The environment variable by which ``js/node_register.cjs`` names the folder to serve it in."""

SIGNALLED: Final = 128
"""Added to the number of the signal that ended a command, it is the status, as in shells."""


@attrs.frozen
class NodeProgram:
    """The options of a Node program, which all its threads and child processes share.

    Attributes:
        backend: the device of its contexts; None for the one that ``create_context()`` takes in Python.
        graph_cache: the folder of saved graphs; None for none.
        trace: the file for a trace; None for none.
        browser: the browser profile of its contexts; None for none.
        portability: collects the calls that browsers would refuse; None for no report.
        compatibility: the deviations of the bindings from the specification, where no browser profile has its own.
        experimental: the proposals that it may try.
        checks: gets the finished checks of the program; None for no check.
        web_worker: whether it is presented to libraries as a worker of a web page, not as Node.
        description: the API; None for the specification's, with what the other options add.
    """

    backend: str | None = None
    graph_cache: Path | None = None
    trace: Path | None = None
    browser: str | None = None
    portability: PortabilityReport | None = None
    compatibility: Compatibility = WPT_2026
    experimental: tuple[str, ...] = ()
    checks: list[Check] | None = None
    web_worker: bool = False
    description: descriptions.Description | None = None

    def api(self) -> tuple[descriptions.Description, Compatibility]:
        """Return the description of its API, and the compatibility mode: the browser's, where it has one."""
        if self.description is not None:
            return self.description, self.compatibility
        described = descriptions.of_specification()
        if self.graph_cache is not None:
            described = with_graph_cache(described)
        described = with_proposals(described, self.experimental)
        return described, self.compatibility if self.browser is None else compatibility_of(find(self.browser))


def require_pipes() -> None:
    """Check that the operating system has named pipes in folders, by which Node's threads and the host communicate.

    Raises:
        NotSupportedError: it has none.
    """
    if not hasattr(os, "mkfifo"):
        raise NotSupportedError("webnn-py node needs named pipes in folders, which Linux and macOS have")


@asynccontextmanager
async def hosted(program: NodeProgram, folder: Path) -> AsyncIterator[None]:
    """Serve, within the block, all threads that find the host's folder.

    Raises:
        NotSupportedError: the folder's path is too long.
    """
    from webnn_py.javascript import connections  # noqa: PLC0415 - not everywhere

    description, compatibility = program.api()
    optional = ["places.js"] if program.trace is not None or program.checks is not None else []
    optional += ["webgpu.js"] if "webgpu-interop" in program.experimental else []
    names = [*FILES[:-1], *optional, FILES[-1]]
    realm: dict[str, Any] = {
        "description": description,
        "files": [{"name": name, "source": own_source(name)} for name in names],
        "client": str(CLIENT),
        "webWorker": program.web_worker,
    }
    opened = open_ml(experimental=program.experimental, extensions=judges(program.browser, program.portability))
    async with opened as ml, traced_to(ml, program.trace), trio.open_nursery() as nursery:
        saved = None if program.graph_cache is None else SavedGraphs(program.graph_cache)
        api = API(ml, compatibility, program.backend, saved=saved)

        def abandon(context: MLContext) -> None:
            with ExitStack() as stack:
                for check in program.checks or ():
                    stack.enter_context(check.abandoning())
                context.destroy()

        service = connections.Service(api, AllowedCalls(description), compatibility, abandon)
        with checking(ml, program.checks):
            await nursery.start(connections.serve, folder, service)
            written = folder / "realm.new"
            written.write_text(json.dumps(realm), encoding="utf-8")
            written.rename(folder / "realm.json")  # whoever sees it sees all of it
            yield
        nursery.cancel_scope.cancel()


def environment_for(folder: Path) -> dict[str, str]:
    """Return the environment of a program: this process's, with what Node loads first, and a Node where there is none.

    Raises:
        NotSupportedError: there is no Node.
    """
    environment = dict(os.environ)
    if shutil.which("node") is None:
        try:
            ours = own_node().parent
        except NotSupportedError:
            wanted = f"install Node 20 or later, or that of the package: {install_command('javascript')}"
            raise NotSupportedError(f"there is no Node on the PATH; {wanted}") from None
        environment["PATH"] = os.pathsep.join(filter(None, [environment.get("PATH"), str(ours)]))
    quoted = str(CLIENT).replace("\\", "\\\\").replace('"', '\\"')
    options = environment.get("NODE_OPTIONS", "")
    return environment | {ADDRESS: str(folder), "NODE_OPTIONS": f'{options} --require="{quoted}"'.lstrip()}


def _shares_terminal() -> bool:
    """Return whether the terminal sends Ctrl-C to the command, too, whatever the standard input is."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:  # there is none
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


async def _pass_on(signals: AsyncIterator[int], process: trio.Process) -> None:
    """Send the command the signals that are to end it, except those that the terminal has sent it."""
    async for number in signals:
        if number != signal.SIGINT or not _shares_terminal():
            with suppress(ProcessLookupError):
                process.send_signal(number)


def _executed(command: list[str], path: str | None) -> list[str]:
    """Return the command line: for a program's file, Node's."""
    if command[0].endswith(PROGRAM_SUFFIXES):
        if not Path(command[0]).is_file():
            raise FileNotFoundError(f"{command[0]}: no such file")
        command = ["node", *command]
    executable = shutil.which(command[0], path=path)
    if executable is None:
        raise FileNotFoundError(f"{command[0]}: no such command")
    return [executable, *command[1:]]


async def _run(program: NodeProgram, command: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="webnn_py-"))
    try:
        environment = environment_for(folder)
        executed = _executed(command, environment.get("PATH"))
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with hosted(program, folder), trio.open_nursery() as nursery:
                try:
                    process = await trio.lowlevel.open_process(executed, env=environment)
                except OSError as error:
                    raise FileNotFoundError(f"{executed[0]} cannot be run: {error.strerror}") from error
                try:
                    nursery.start_soon(_pass_on, signals, process)
                    status = await process.wait()
                finally:
                    if process.returncode is None:
                        process.kill()
                nursery.cancel_scope.cancel()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else SIGNALLED - status


async def _serve(program: NodeProgram, folder: Path) -> None:
    """Serve the program that has started this process, until its end closes the standard input."""
    try:
        async with hosted(program, folder):
            await trio.to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
    finally:
        if (folder / "realm.json").exists():  # else the program looks there for the reason
            shutil.rmtree(folder, ignore_errors=True)


def run_command(program: NodeProgram, command: list[str]) -> int:
    """Run a program until it ends, and return its status: for one that a signal ended, 128 and the signal's number.

    SIGINT and SIGTERM are passed on to it.

    Args:
        program: the options.
        command: a command with its arguments, or the file of a program, which Node runs, with the program's.

    Raises:
        FileNotFoundError: there is no such command or file, or it cannot be run.
        NotSupportedError: there is no Node, the operating system has no named pipes, or the path of the folder for
            temporary files is too long.
    """
    require_pipes()
    warnings.simplefilter("ignore", ResourceWarning)  # scripts leave buffers to the garbage collector, as they may
    return trio.run(_run, program, command)


def serve_parent(program: NodeProgram, folder: Path) -> None:
    """Serve the program that has made the folder and started this process, until it ends.

    Raises:
        NotSupportedError: the operating system has no named pipes, or the folder's path is too long.
    """
    require_pipes()
    warnings.simplefilter("ignore", ResourceWarning)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program's own affair
    trio.run(_serve, program, folder)
