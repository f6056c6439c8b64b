"""quickjs-ng as a process: it reads commands, carries them out and confirms them; scripts call the host in between.

Run by its path with the path of the library, a memory limit in bytes (0: none), and the path of wasmtime's library
where scripts have WebAssembly; never imported, and it imports nothing of the package but, by its path, what runs that.
The library is that of the package quickjs-ng, called through its C API: the package's own Python wrapper has neither
modules nor word of rejections, and takes no limits together with calls out of scripts.
"""

import importlib.util
import json
import os
import signal
import struct
import sys
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import cffi  # type: ignore[import-untyped]  # it has no type hints

MAX_STACK_BYTES = 4 * 2**20
"""Half of a main thread's usual stack: some thousands of JavaScript frames."""

FULL_BYTES = 2**16
"""A runtime with less than this left is full."""

_HEADER = struct.Struct("<cIq")

OUT_OF_MEMORY = 70
"""The status of a process whose script has used up its memory; ``engine_commands.py`` knows it."""

_NULL, _UNDEFINED, _EXCEPTION = 2, 3, 6
_PENDING = 0  # the state of a promise
_MODULE, _BACKTRACE_BARRIER, _COMPILE_ONLY = 1 << 0, 1 << 6, 1 << 5


class Thrown(Exception):  # noqa: N818 - it carries a script's exception, which is the error
    """A JavaScript exception, as JSON with message and stack."""


class Pipe:
    """Frames to and from the parent process."""

    def __init__(self) -> None:
        self._input = os.fdopen(0, "rb")
        self._output = os.fdopen(1, "wb")

    def _read_exactly(self, count: int) -> bytes:
        data = self._input.read(count)
        if len(data) < count:
            os._exit(0)  # the parent is gone, or has closed the engine: nobody is left to tell anything
        return data

    def read(self) -> tuple[str, bytes | None]:
        """Return a frame's text and payload."""
        _, text_length, length = _HEADER.unpack(self._read_exactly(_HEADER.size))
        text = self._read_exactly(text_length).decode()
        return text, None if length < 0 else self._read_exactly(length)

    def write(self, kind: bytes, text: str, payload: Any = None) -> None:
        """Send a frame; ``payload`` is a bytes-like object or None."""
        data = text.encode()
        self._output.write(_HEADER.pack(kind, len(data), -1 if payload is None else len(payload)) + data)
        if payload is not None:
            self._output.write(payload)
        self._output.flush()


class Realm:
    """A runtime with one context, and the host at the other end of the pipe."""

    def __init__(self, library: str, memory_limit: int, pipe: Pipe, wasm_library: str | None) -> None:
        self._pipe = pipe
        self._ffi = cffi.FFI()
        self._ffi.cdef(Path(__file__).with_name("quickjs_api.h").read_text(encoding="utf-8"))
        self._js: Any = self._ffi.dlopen(library)
        self._runtime = self._js.JS_NewRuntime()
        self._js.JS_SetMemoryLimit(self._runtime, memory_limit)
        self._js.JS_SetMaxStackSize(self._runtime, MAX_STACK_BYTES)
        self._context = self._js.JS_NewContext(self._runtime)
        self._given: bytes | None = None
        self._rejected: list[tuple[Any, Any]] = []
        self._undefined = self._module = self._value(_UNDEFINED)
        self._evaluating: str | None = None
        callback = partial(self._ffi.callback, onerror=_end_if_full)
        # The library keeps these by their addresses: they live as long as the realm.
        self._callbacks = [
            callback("JSCFunction", self._send),
            callback("JSCFunction", self._take),
            callback("JSHostPromiseRejectionTracker", self._note_rejection),
            callback("JSModuleNormalizeFunc", self._resolve_module),
            callback("JSModuleLoaderFunc2", self._load_module),
            callback("JSModuleCheckSupportedImportAttributes", self._check_attributes),
        ]
        send, take, tracker, normalize, loader, check = self._callbacks
        self._js.JS_SetHostPromiseRejectionTracker(self._runtime, tracker, self._ffi.NULL)
        self._js.JS_SetModuleLoaderFunc2(self._runtime, normalize, loader, check, self._ffi.NULL)
        functions = [self._js.JS_NewCFunction2(self._context, one, b"", 0, 0, 0) for one in (send, take)]
        self._wasm = None
        if wasm_library is not None:
            self._wasm = _web_assembly()((self._ffi, self._js, self._context, callback), wasm_library, memory_limit)
            functions.append(self._wasm.functions())
        prelude = Path(__file__).with_name("js") / "quickjs_prelude.js"
        entry = self._evaluate(prelude.read_text(encoding="utf-8"), "webnn_py:prelude.js")
        self._entry = self._call(entry, *functions)
        self._sources: dict[str, bytes] = {}
        self._loaded: set[str] = set()

    # --- values ------------------------------------------------------------------------------------------------

    def _value(self, tag: int) -> Any:
        return self._ffi.new("JSValue *", (0, tag))[0]

    def _checked(self, value: Any) -> Any:
        """Return a result, or the exception that it stands for, raised."""
        if value.tag != _EXCEPTION:
            return value
        raise Thrown(self._shown(self._js.JS_GetException(self._context)))

    def _shown(self, error: Any) -> str:
        if error.tag == _NULL and self._is_full():
            os._exit(OUT_OF_MEMORY)  # the engine throws null when it has no memory for an error
        shown = self._raw_call(self._entry, self._text("shown"), error)
        return '{"message": "Error: not shown", "stack": ""}' if shown.tag == _EXCEPTION else self._string(shown)

    def _is_full(self) -> bool:
        usage = self._ffi.new("int64_t[64]")  # a structure of integers, of which the first are size and limit
        self._js.JS_ComputeMemoryUsage(self._runtime, usage)
        return bool(0 < usage[1] < usage[0] + FULL_BYTES)

    def _text(self, text: str) -> Any:
        data = text.encode("utf-8", "surrogatepass")
        return self._js.JS_NewStringLen(self._context, data, len(data))

    def _string(self, value: Any) -> str:
        """Return the text of a JavaScript string; frees it."""
        length = self._ffi.new("size_t *")
        pointer = self._js.JS_ToCStringLen2(self._context, length, value, False)
        text = bytes(self._ffi.buffer(pointer, length[0])).decode("utf-8", "surrogatepass")
        self._js.JS_FreeCString(self._context, pointer)
        self._js.JS_FreeValue(self._context, value)
        return text

    def _buffer(self, data: bytes | None) -> Any:
        if data is None:
            return self._value(_NULL)
        return self._checked(self._js.JS_NewArrayBufferCopy(self._context, data, len(data)))

    def _raw_call(self, function: Any, *arguments: Any) -> Any:
        """Call a function; frees the arguments."""
        result = self._js.JS_Call(self._context, function, self._undefined, len(arguments), list(arguments))
        for one in arguments:
            self._js.JS_FreeValue(self._context, one)
        return result

    def _call(self, function: Any, *arguments: Any) -> Any:
        return self._checked(self._raw_call(function, *arguments))

    def _enter(self, entry: str, *arguments: Any) -> None:
        self._js.JS_FreeValue(self._context, self._call(self._entry, self._text(entry), *arguments))

    def _evaluate(self, source: str, name: str, flags: int = 0) -> Any:
        data = source.encode("utf-8", "surrogatepass")
        return self._checked(self._js.JS_Eval(self._context, data, len(data), name.encode(), flags))

    # --- what scripts call -------------------------------------------------------------------------------------

    def _ask(self, text: str, payload: Any) -> str:
        self._pipe.write(b"C", text, payload)
        answer, self._given = self._pipe.read()
        return answer

    def _send(self, context: Any, _this: Any, _count: int, arguments: Any) -> Any:
        text = self._string(self._js.JS_DupValue(context, arguments[0]))
        if arguments[1].tag == _NULL:
            return self._text(self._ask(text, None))
        size = self._ffi.new("size_t *")
        pointer = self._js.JS_GetUint8Array(context, size, arguments[1])
        return self._text(self._ask(text, self._ffi.buffer(pointer, size[0]) if size[0] else b""))

    def _take(self, _context: Any, _this: Any, _count: int, _arguments: Any) -> Any:
        given, self._given = self._given, None
        if given is None:
            return self._value(_NULL)
        return self._js.JS_NewArrayBufferCopy(self._context, given, len(given))

    def _note_rejection(self, context: Any, promise: Any, reason: Any, handled: bool, _opaque: Any) -> None:  # noqa: FBT001 - the C API
        if not handled:
            self._rejected.append((self._js.JS_DupValue(context, promise), self._js.JS_DupValue(context, reason)))
            return
        for entry in [entry for entry in self._rejected if entry[0].data == promise.data]:
            self._rejected.remove(entry)
            for value in entry:
                self._js.JS_FreeValue(context, value)

    # --- modules -----------------------------------------------------------------------------------------------

    def _resolve_module(self, context: Any, base: Any, name: Any, _opaque: Any) -> Any:
        """Return the name of a module, as the host says; its source is kept until it is loaded."""
        asked = {"module": self._ffi.string(name).decode(), "from": self._ffi.string(base).decode()}
        answer = json.loads(self._ask(json.dumps(asked), None))
        if "error" in answer:
            self._throw("refusal", answer["error"]["message"])
            return self._ffi.NULL
        found = answer["value"].encode()
        if answer["value"] not in self._loaded:
            self._sources[answer["value"]] = self._given or b""
        self._given = None
        return self._js.js_strndup(context, found, len(found))

    def _throw(self, kind: str, message: str) -> None:
        self._js.JS_Throw(self._context, self._raw_call(self._entry, self._text(kind), self._text(message)))

    def _check_attributes(self, context: Any, _opaque: Any, attributes: Any) -> int:
        given = self._js.JS_DupValue(context, attributes)
        return -1 if self._raw_call(self._entry, self._text("attributes"), given).tag == _EXCEPTION else 0

    def _load_module(self, context: Any, name: Any, _opaque: Any, _attributes: Any) -> Any:
        called = self._ffi.string(name).decode()
        source = self._sources.pop(called)
        compiled = self._js.JS_Eval(context, source, len(source), name, _MODULE | _COMPILE_ONLY)
        if compiled.tag == _EXCEPTION:  # which quotes the text
            self._js.JS_FreeValue(context, self._js.JS_GetException(context))
            self._throw("syntaxError", f"cannot import {called}: it is not a JavaScript module")
            return self._ffi.NULL
        self._loaded.add(called)  # from now on the engine knows it by its name
        module = self._ffi.cast("JSModuleDef *", compiled.data)
        self._describe_module(module, called)
        self._js.JS_FreeValue(context, compiled)  # the context keeps it
        return module

    def _describe_module(self, module: Any, name: str) -> None:
        meta = self._js.JS_GetImportMeta(self._context, module)
        self._enter("meta", meta, self._text(f"file:///{name}"))

    # --- what to do --------------------------------------------------------------------------------------------

    def do(self, message: dict[str, Any], payload: bytes | None) -> None:
        """Do what the parent says; raises Thrown."""
        match message:
            case {"do": "load", "source": source, "name": name}:
                self._enter("load", self._evaluate(f"({source}\n)", f"webnn_py:{name}"))
            case {"do": "evaluate", "source": source, "name": name}:
                self._js.JS_FreeValue(self._context, self._evaluate(source, name, _BACKTRACE_BARRIER))
            case {"do": "module", "source": source, "name": name}:
                self._run_module(source, name)
            case {"do": "call", "function": function, "argument": argument}:
                self._enter("call", self._text(function), self._text(argument), self._buffer(payload))
            case {"do": "jobs"}:
                self._run_jobs()

    def _run_module(self, source: str, name: str) -> None:
        self._evaluating = name
        compiled = self._evaluate(source, name, _MODULE | _COMPILE_ONLY)
        self._loaded.add(name)
        self._describe_module(self._ffi.cast("JSModuleDef *", compiled.data), name)
        self._module = self._checked(self._js.JS_EvalFunction(self._context, compiled))

    def _run_jobs(self) -> None:
        """Microtasks until there are none; then each rejection that none of them has handled, and what follows."""
        context = self._ffi.new("JSContext **")
        while True:
            while (status := self._js.JS_ExecutePendingJob(self._runtime, context)) != 0:
                if status < 0:
                    self._enter("uncaught", self._js.JS_GetException(self._context))
            if not self._rejected:
                self._tell_module_is_evaluated()
                return
            promise, reason = self._rejected.pop(0)
            if promise.data == self._module.data:  # what a module throws is an exception that nothing caught
                self._js.JS_FreeValue(self._context, promise)
                self._enter("uncaught", reason)
            else:
                self._enter("rejected", reason, promise)

    def _tell_module_is_evaluated(self) -> None:
        if self._evaluating is not None and self._js.JS_PromiseState(self._context, self._module) != _PENDING:
            name, self._evaluating = self._evaluating, None
            self._ask(json.dumps({"evaluated": name}), None)


def _end_if_full(kind: type[BaseException], error: BaseException, traceback: TracebackType) -> None:
    """End the process where Python has no memory for a callback, as it must where the operating system limits it."""
    if isinstance(error, MemoryError):
        os._exit(OUT_OF_MEMORY)
    sys.excepthook(kind, error, traceback)


def _web_assembly() -> Any:
    """Return the class of the package ``quickjs_wasm``, which is imported by its path."""
    path = Path(__file__).with_name("quickjs_wasm") / "__init__.py"
    found = importlib.util.spec_from_file_location("quickjs_wasm", path)
    if found is None or found.loader is None:
        raise FileNotFoundError(path)
    sys.modules["quickjs_wasm"] = package = importlib.util.module_from_spec(found)
    found.loader.exec_module(package)
    return package.WebAssembly


def main() -> None:
    """Serve the parent until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process
    pipe = Pipe()
    realm = Realm(sys.argv[1], int(sys.argv[2]), pipe, sys.argv[3] if len(sys.argv) > 3 else None)
    while True:
        text, payload = pipe.read()
        error = "null"
        try:
            realm.do(json.loads(text), payload)
        except Thrown as failure:
            error = str(failure)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        pipe.write(b"D", error)


if __name__ == "__main__":
    main()
