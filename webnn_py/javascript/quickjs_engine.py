"""quickjs-ng in this process: deterministic, and nothing to start."""

import base64
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import quickjs  # type: ignore[import-untyped]  # it has no type hints

from webnn_py.javascript.engine import EngineError, EngineName, HostCall, ScriptError

MAX_STACK_BYTES = 4 * 2**20
"""Half of a main thread's usual stack: some thousands of JavaScript frames."""

# Strings are what crosses the border, so bytes cross it as base64, which the engine does natively.
_PRELUDE = r"""
(function () {
  'use strict';
  const [send, take, given] = [globalThis.__send, globalThis.__take, globalThis.__given];
  for (const name of ['__send', '__take', '__given']) delete globalThis[name];
  const runtime = {
    slots: new WeakMap(),
    send(text, bytes) {
      const answer = send(text, bytes === null ? null : bytes.toBase64());
      return [answer, decoded(take())];
    },
  };
  const decoded = (text) => text === null ? null : Uint8Array.fromBase64(text).buffer;
  return (what, text) => {
    if (what === 'watch') return void text.then(undefined, runtime.reportError);
    if (what === 'load') return void (0, eval)(`(${text}\n)`)(runtime);
    runtime[what](JSON.parse(text), decoded(given()));
  };
})()
"""


class QuickjsEngine:
    """One quickjs-ng context."""

    name: EngineName = "quickjs"

    def __init__(self, host: HostCall) -> None:
        self.version = version("quickjs-ng")
        self._host = host
        self._answer: str | None = None
        self._given: str | None = None
        self._failure: BaseException | None = None
        self._context: Any = quickjs.Context()
        self._context.set_max_stack_size(MAX_STACK_BYTES)
        self._context.add_callable("__send", self._send)
        self._context.add_callable("__take", self._take)
        self._context.add_callable("__given", self._take_given)
        self._enter: Any = self._context.eval(_PRELUDE)

    def _send(self, text: str, payload: str | None) -> str:
        try:
            answer, data = self._host(text, None if payload is None else memoryview(base64.b64decode(payload)))
            self._answer = None if data is None else base64.b64encode(data).decode("ascii")
        except BaseException as error:  # noqa: BLE001 - raised here it would come out at some later call as another
            self._failure = self._failure or error
            return '{"error": {"name": "UnknownError", "message": "the host failed"}}'
        return answer

    def _take(self) -> str | None:
        answer, self._answer = self._answer, None
        return answer

    def _take_given(self) -> str | None:
        given, self._given = self._given, None
        return given

    def _guard(self, function: Callable[..., Any], *args: object) -> Any:
        try:
            return function(*args)
        except quickjs.JSException as error:
            message, _, stack = str(error).partition("\n")
            raise ScriptError(message, stack) from None
        finally:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise EngineError("the host failed while a script was calling it") from failure

    def load(self, source: str, name: str) -> None:
        """Evaluate one of the package's own files."""
        self._guard(self._enter, "load", source)

    def evaluate(self, source: str, name: str) -> None:
        """Evaluate a classic script."""
        self._guard(self._context.eval, source)

    def evaluate_module(self, source: str, name: str) -> None:
        """Evaluate an ES module."""
        try:
            evaluated = self._guard(self._context.module, source)
        except ScriptError as error:
            if "could not load module" in str(error):
                raise ScriptError(f"{error}; this engine imports no files, Node does", error.stack) from None
            raise
        self._guard(self._enter, "watch", evaluated)

    def call(self, function: str, argument: str, payload: memoryview | None = None) -> None:
        """Call a function of the runtime."""
        self._given = None if payload is None else base64.b64encode(payload).decode("ascii")
        self._guard(self._enter, function, argument)

    def run_jobs(self) -> None:
        """Run microtasks until there are none."""
        while self._guard(self._context.execute_pending_job):
            pass

    def close(self) -> None:
        """Give everything back."""
        self._enter = None
        self._context = None
