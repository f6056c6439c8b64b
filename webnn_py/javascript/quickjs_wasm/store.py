"""The engine and store of wasmtime, and the memories in it."""

import platform
from pathlib import Path
from typing import Any

from .values import EXCEPTION, Pending, RefusedError, Values

MAX_WASM_STACK_BYTES = 3 * 2**19
"""Within it, WebAssembly and the JavaScript that it calls."""

PAGE_LOG2 = 16

WINCH, CRANELIFT = 2, 1
"""Compilers: the first is ten times as fast, and makes slower code; it is complete on x86-64 alone."""

FUNCTION, GLOBAL, TABLE, MEMORY, SHARED_MEMORY = range(5)
"""Kinds of externals."""


class Store(Values):
    """One engine and store.

    What instances share has a number: an entry of ``_things``, of the kind, a pointer, and more for functions.

    Args:
        engine: that of :class:`Values`.
        library: the path of wasmtime's library.
        memory_limit: bytes of each memory; 0 for any number.
    """

    def __init__(self, engine: tuple[Any, Any, Any, Any], library: str, memory_limit: int) -> None:
        super().__init__(engine)
        ffi = self._ffi
        ffi.cdef(Path(__file__).with_name("wasmtime_api.h").read_text(encoding="utf-8"))
        self._wasm: Any = ffi.dlopen(library)
        config = self._wasm.wasm_config_new()
        compiler = WINCH if platform.machine() in {"x86_64", "AMD64"} else CRANELIFT
        self._wasm.wasmtime_config_strategy_set(config, compiler)
        self._wasm.wasmtime_config_cranelift_opt_level_set(config, 0)
        self._wasm.wasmtime_config_wasm_threads_set(config, True)
        self._wasm.wasmtime_config_shared_memory_set(config, True)
        self._wasm.wasmtime_config_memory_may_move_set(config, False)
        self._wasm.wasmtime_config_max_wasm_stack_set(config, MAX_WASM_STACK_BYTES)
        self._engine = self._wasm.wasm_engine_new_with_config(config)
        store = self._wasm.wasmtime_store_new(self._engine, ffi.NULL, ffi.NULL)
        if memory_limit:
            self._wasm.wasmtime_store_limiter(store, memory_limit, -1, -1, -1, -1)
        self._store = self._wasm.wasmtime_store_context(store)
        self._things: list[Any] = []
        self._by_place: dict[tuple[Any, ...], int] = {}
        self._views: dict[int, tuple[int, Any]] = {}
        self._growths = ffi.new("uint32_t[1]")

    def _words(self, error: Any) -> str:
        vector = self._ffi.new("wasm_byte_vec_t *")
        self._wasm.wasmtime_error_message(error, vector)
        self._wasm.wasmtime_error_delete(error)
        return self._taken(vector)

    def _taken(self, vector: Any) -> str:
        text = bytes(self._ffi.buffer(vector.data, vector.size)).decode("utf-8", "replace").rstrip("\0")
        self._wasm.wasm_byte_vec_delete(vector)
        return text

    def _check(self, error: Any, kind: str) -> None:
        if error != self._ffi.NULL:
            raise RefusedError(kind, self._words(error))

    def _note(self, found: Any) -> int:
        """Return the number of a thing, the same for the same; it is no function."""
        of = found.of
        if found.kind == GLOBAL:
            variable = of.variable
            return self._numbered((GLOBAL, variable.first, variable.second, variable.third), GLOBAL, variable)
        if found.kind == SHARED_MEMORY:
            start = self._wasm.wasmtime_sharedmemory_data(of.shared)
            return self._numbered((SHARED_MEMORY, start), SHARED_MEMORY, of.shared)
        kept = of.table if found.kind == TABLE else of.memory
        return self._numbered((found.kind, kept.one.first, kept.second), found.kind, kept)

    def _numbered(self, place: tuple[Any, ...], kind: int, value: Any, *types: list[int]) -> int:
        if place not in self._by_place:
            self._by_place[place] = len(self._things)
            kept = value if kind == SHARED_MEMORY else self._ffi.new(f"{self._ffi.typeof(value).cname} *", value)
            self._things.append((kind, kept, *types))
        return self._by_place[place]

    def _put(self, thing: Any, into: Any) -> None:
        into.kind = thing[0]
        value = thing[1] if thing[0] == SHARED_MEMORY else thing[1][0]
        setattr(into.of, ("function", "variable", "table", "memory", "shared")[thing[0]], value)

    def memory(self, initial: Any, maximum: Any, is_shared: Any) -> Any:
        """Make a memory of so many pages, at most ``maximum`` (-1: any number): its number."""
        most, shared = self._number(maximum), bool(self._number(is_shared))
        type_ = self._ffi.new("wasm_memorytype_t **")
        sizes = self._number(initial), most >= 0, max(most, 0)
        self._check(self._wasm.wasmtime_memorytype_new(*sizes, False, shared, PAGE_LOG2, type_), "RangeError")
        if shared:
            made = self._ffi.new("wasmtime_sharedmemory_t **")
            error = self._wasm.wasmtime_sharedmemory_new(self._engine, type_[0], made)
        else:
            made = self._ffi.new("wasmtime_memory_t *")
            error = self._wasm.wasmtime_memory_new(self._store, type_[0], made)
        self._wasm.wasm_memorytype_delete(type_[0])
        self._check(error, "RangeError")
        found = self._ffi.new("wasmtime_extern_t *")
        self._put((SHARED_MEMORY, made[0]) if shared else (MEMORY, made), found)
        return self._integer(self._note(found))

    def grow_memory(self, handle: Any, pages: Any) -> Any:
        """Let a memory grow: the number of pages that it had."""
        kind, memory = self._things[self._number(handle)]
        before = self._ffi.new("uint64_t *")
        if kind == SHARED_MEMORY:
            error = self._wasm.wasmtime_sharedmemory_grow(memory, self._number(pages), before)
        else:
            error = self._wasm.wasmtime_memory_grow(self._store, memory, self._number(pages), before)
        self._check(error, "RangeError")
        self._renew_views()
        return self._integer(before[0])

    def buffer(self, handle: Any) -> Any:
        """Return a memory's bytes, always the same buffer until it grows."""
        number = self._number(handle)
        if number not in self._views:
            kind, memory = self._things[number]
            size = self._size_of(kind, memory)
            is_shared = kind == SHARED_MEMORY
            start = (
                self._wasm.wasmtime_sharedmemory_data(memory)
                if is_shared
                else self._wasm.wasmtime_memory_data(self._store, memory)
            )
            null = self._ffi.NULL
            made = self._js.JS_NewArrayBuffer(self._context, start, size, 0, null, null, is_shared)
            if made.tag == EXCEPTION:
                raise Pending
            self._views[number] = size, made
        return self._js.JS_DupValue(self._context, self._views[number][1])

    def _size_of(self, kind: int, memory: Any) -> int:
        if kind == SHARED_MEMORY:
            return int(self._wasm.wasmtime_sharedmemory_data_size(memory))
        return int(self._wasm.wasmtime_memory_data_size(self._store, memory))

    def _renew_views(self) -> None:
        """Detach the buffers of memories that have grown; JavaScript, which sees the count, asks for others."""
        for number, (size, made) in list(self._views.items()):
            kind, memory = self._things[number]
            if self._size_of(kind, memory) != size:
                if kind == MEMORY:
                    self._js.JS_DetachArrayBuffer(self._context, made)
                self._js.JS_FreeValue(self._context, made)
                del self._views[number]
                self._growths[0] += 1
