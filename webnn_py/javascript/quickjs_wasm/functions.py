"""Functions: WebAssembly's as JavaScript calls them, and JavaScript's as WebAssembly does."""

from typing import Any

from .store import FUNCTION, Store
from .values import EXCEPTION, INT, NULL, OBJECT, Pending, RefusedError

MAX_DEPTH = 300
"""Calls of JavaScript within calls of WebAssembly within …: each takes some frames of Python's."""

FULL_STACK = "Maximum call stack size exceeded"

I32, I64, F32, F64, V128, FUNCREF = range(6)
"""Kinds of values."""

FUNCREF_TYPE = 129
"""Their kind as wasm.h has it, which is otherwise the same."""

NAMES = {I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128", FUNCREF_TYPE: "funcref"}


def value_kind(kind: int) -> int:
    """Return the kind of the values of a type, by the kind of that."""
    return FUNCREF if kind == FUNCREF_TYPE else kind


def name_of(kind: int) -> str:
    """Return the name of a type, by its kind."""
    return NAMES.get(kind, "externref")


class Functions(Store):
    """Calls in both directions; its arguments are :class:`Store`'s."""

    def __init__(self, engine: tuple[Any, Any, Any, Any], library: str, memory_limit: int) -> None:
        super().__init__(engine, library, memory_limit)
        self._seen: dict[int, Any] = {}  # functions as JavaScript has them
        self._by_object: dict[int, int] = {}
        self._imported: list[tuple[Any, list[int]]] = []
        self._thrown: Any = None
        self._depth = 0
        self._new_values = self._ffi.typeof("wasmtime_val_t[]")
        self._new_trap = self._ffi.typeof("wasm_trap_t **")
        self._called = self._callback("JSCFunctionData", self._call)
        self._host = self._callback("wasmtime_func_callback_t", self._call_host)

    def _note(self, found: Any) -> int:
        """Return the number of what an instance exports."""
        return self._note_function(found.of.function) if found.kind == FUNCTION else super()._note(found)

    def _note_function(self, function: Any) -> int:
        place = (0, int(self._ffi.cast("uintptr_t", function.place)))
        if place in self._by_place:
            return self._by_place[place]
        type_ = self._wasm.wasmtime_func_type(self._store, self._ffi.new("wasmtime_func_t *", function))
        parameters = self._kinds(self._wasm.wasm_functype_params(type_))
        results = self._kinds(self._wasm.wasm_functype_results(type_))
        self._wasm.wasm_functype_delete(type_)
        return self._numbered(place, 0, function, parameters, results)

    def _seen_function(self, handle: int) -> Any:
        """Return a function as JavaScript has it, always the same."""
        if handle not in self._seen:
            parameters = self._things[handle][2]
            made = self._js.JS_NewCFunctionData2(
                self._context, self._called, str(handle).encode(), len(parameters), handle, 0, self._ffi.NULL
            )
            if made.tag == EXCEPTION:
                raise Pending
            self._seen[handle] = made
            self._by_object[made.data] = handle
        return self._seen[handle]

    def function(self, handle: Any) -> Any:
        """Return a function by its number."""
        return self._js.JS_DupValue(self._context, self._seen_function(self._number(handle)))

    def _function_for(self, value: Any, type_: Any) -> Any:
        """Return a function for an import: the one that WebAssembly has exported, or one that calls JavaScript's."""
        known = self._by_object.get(value.data)
        if known is not None:
            return self._things[known][1][0]
        self._imported.append(
            (self._js.JS_DupValue(self._context, value), self._kinds(self._wasm.wasm_functype_results(type_)))
        )
        made = self._ffi.new("wasmtime_func_t *")
        place = self._ffi.cast("void *", len(self._imported) - 1)
        self._wasm.wasmtime_func_new(self._store, type_, self._host, place, self._ffi.NULL, made)
        return made[0]

    def _kinds(self, vector: Any) -> list[int]:
        kinds = [self._wasm.wasm_valtype_kind(vector.data[index]) for index in range(vector.size)]
        return [value_kind(kind) for kind in kinds]

    def _handle_of(self, value: Any) -> int:
        handle = self._by_object.get(value.data) if value.tag == OBJECT else None
        if handle is None:
            raise RefusedError("TypeError", "it must be null or a function that WebAssembly exports")
        return handle

    def _to_js(self, value: Any) -> Any:
        kind = value.kind
        if kind == I32:
            return self._integer(value.of.i32)
        if kind == I64:
            return self._js.JS_NewBigInt64(self._context, value.of.i64)
        if kind in {F32, F64}:
            return self._float(value.of.f32 if kind == F32 else value.of.f64)
        if kind == FUNCREF and value.of.function.store_id == 0:
            return self._value(NULL)
        if kind == FUNCREF:
            return self._js.JS_DupValue(self._context, self._seen_function(self._note_function(value.of.function)))
        raise RefusedError("TypeError", f"values of type {name_of(kind)} do not cross to JavaScript")

    def _to_wasm(self, kind: int, value: Any, into: Any) -> None:
        """Convert a value; raises Pending, RefusedError."""
        failed = 0
        into.kind = kind
        if kind == I32 and value.tag == INT:
            into.of.i32 = self._number(value)
        elif kind == I32:
            failed = self._js.JS_ToInt32(self._context, self._ffi.addressof(into.of, "i32"), value)
        elif kind == I64:
            failed = self._js.JS_ToBigInt64(self._context, self._ffi.addressof(into.of, "i64"), value)
        elif kind in {F32, F64}:
            number = self._ffi.new("double *")
            failed = self._js.JS_ToFloat64(self._context, number, value)
            setattr(into.of, name_of(kind), number[0])
        elif kind == FUNCREF:
            into.of.function.store_id = 0
            if value.tag != NULL:
                into.of.function = self._things[self._handle_of(value)][1][0]
        else:
            raise RefusedError("TypeError", f"values of type {name_of(kind)} do not cross from JavaScript")
        if failed:
            raise Pending

    def _call(self, _context: Any, _this: Any, count: int, arguments: Any, handle: int, _data: Any) -> Any:
        """Call an exported function."""
        return self._guarded(lambda: self._call_wasm(handle, count, arguments))

    def _call_wasm(self, handle: int, count: int, arguments: Any) -> Any:
        _, function, parameters, results = self._things[handle]
        given = self._ffi.new(self._new_values, len(parameters))
        for index, kind in enumerate(parameters):
            self._to_wasm(kind, arguments[index] if index < count else self._undefined, given[index])
        if self._depth > MAX_DEPTH:
            raise RefusedError("RangeError", FULL_STACK)
        returned = self._ffi.new(self._new_values, len(results))
        trap = self._ffi.new(self._new_trap)
        self._depth += 1
        try:
            error = self._wasm.wasmtime_func_call(
                self._store, function, given, len(parameters), returned, len(results), trap
            )
        finally:
            self._depth -= 1
        self._check_trap(error, trap[0])
        if not results:
            return self._undefined
        if len(results) == 1:
            return self._to_js(returned[0])
        make_list = self._hooks[0]
        return self._call_js(make_list, *[self._to_js(returned[index]) for index in range(len(results))])

    def _check_trap(self, error: Any, trap: Any) -> None:
        """Raise what has ended a call: the exception of JavaScript that it called, or a RuntimeError."""
        self._renew_views()
        if self._thrown is not None and (error != self._ffi.NULL or trap != self._ffi.NULL):
            thrown, self._thrown = self._thrown, None
            if error != self._ffi.NULL:
                self._wasm.wasmtime_error_delete(error)
            if trap != self._ffi.NULL:
                self._wasm.wasm_trap_delete(trap)
            self._js.JS_Throw(self._context, thrown)
            raise Pending
        self._check(error, "RuntimeError")
        if trap != self._ffi.NULL:
            vector = self._ffi.new("wasm_byte_vec_t *")
            self._wasm.wasm_trap_message(trap, vector)
            self._wasm.wasm_trap_delete(trap)
            words = self._taken(vector).rpartition("wasm trap: ")[2].strip()
            if words == "call stack exhausted":
                raise RefusedError("RangeError", FULL_STACK)
            raise RefusedError("RuntimeError", words)

    def _call_host(self, place: Any, _caller: Any, given: Any, count: int, results: Any, result_count: int) -> Any:
        """Call a function of JavaScript for WebAssembly; what it throws, or what else fails, ends that by a trap."""
        try:
            self._renew_views()
            function, kinds = self._imported[int(self._ffi.cast("uintptr_t", place))]
            returned = self._call_js(function, *[self._to_js(given[index]) for index in range(count)])
            try:
                if result_count == 1:
                    self._to_wasm(kinds[0], returned, results[0])
                elif result_count:
                    self._take_list(returned, kinds, results)
            finally:
                self._js.JS_FreeValue(self._context, returned)
        except Pending:
            self._thrown = self._js.JS_GetException(self._context)
        except RefusedError as refused:
            self._thrown = self._error(refused)
        else:
            return self._ffi.NULL
        return self._wasm.wasmtime_trap_new(b"", 0)

    def _take_list(self, returned: Any, kinds: list[int], results: Any) -> None:
        given = self._js.JS_DupValue(self._context, returned)
        items = self._call_js(self._hooks[2], given, self._integer(len(kinds)))
        try:
            for index, kind in enumerate(kinds):
                item = self._js.JS_GetPropertyUint32(self._context, items, index)
                try:
                    self._to_wasm(kind, item, results[index])
                finally:
                    self._js.JS_FreeValue(self._context, item)
        finally:
            self._js.JS_FreeValue(self._context, items)
