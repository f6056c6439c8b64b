"""Modules, instances, tables and globals; and all functions as JavaScript gets them."""

import json
import sys
from collections.abc import Callable
from typing import Any

from .functions import FUNCREF, FUNCREF_TYPE, NAMES, Functions, name_of, value_kind
from .store import GLOBAL, TABLE
from .values import OBJECT, RefusedError

MAX_FRAMES = 10_000
"""Python's own limit, which calls within calls must not reach."""

_KINDS = ("function", "global", "table", "memory")

_OF_NAME = {name: kind for kind, name in NAMES.items()} | {"anyfunc": FUNCREF, "funcref": FUNCREF}


class WebAssembly(Functions):
    """The functions that JavaScript calls, by :meth:`functions`; arguments are :class:`Functions`'s."""

    def __init__(self, engine: tuple[Any, Any, Any, Any], library: str, memory_limit: int) -> None:
        super().__init__(engine, library, memory_limit)
        sys.setrecursionlimit(MAX_FRAMES)
        self._modules: dict[int, Any] = {}
        self._last_module = 0
        self._callbacks: list[Any] = []  # the engine keeps them by their addresses

    def functions(self) -> Any:
        """Return an object with the functions, for ``js/quickjs_wasm.js``, and the count of memories' growths."""
        made = self._js.JS_NewObject(self._context)
        null, bytes_ = self._ffi.NULL, self._ffi.cast("uint8_t *", self._growths)
        counted = self._js.JS_NewArrayBuffer(self._context, bytes_, 4, 0, null, null, False)
        self._js.JS_SetPropertyStr(self._context, made, b"growths", counted)
        for function in (
            self.register,
            self.validate,
            self.compile,
            self.drop,
            self.instantiate,
            self.function,
            self.memory,
            self.grow_memory,
            self.buffer,
            self.table,
            self.table_size,
            self.grow_table,
            self.get_element,
            self.set_element,
            self.global_,
            self.get_global,
            self.set_global,
        ):
            entry = self._callback("JSCFunction", self._entry(function))
            self._callbacks.append(entry)
            name = function.__name__.encode()
            value = self._js.JS_NewCFunction2(self._context, entry, name, 0, 0, 0)
            self._js.JS_SetPropertyStr(self._context, made, name, value)
        return made

    def _entry(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def entry(_context: Any, _this: Any, count: int, arguments: Any) -> Any:
            return self._guarded(lambda: function(*[arguments[index] for index in range(count)]))

        return entry

    def validate(self, source: Any) -> Any:
        """Return whether bytes are a module."""
        error = self._wasm.wasmtime_module_validate(self._engine, *self._bytes(source))
        if error == self._ffi.NULL:
            return self._value(1, 1)
        self._wasm.wasmtime_error_delete(error)
        return self._value(1, 0)

    def compile(self, source: Any) -> Any:
        """Compile bytes: its number, its imports and its exports, as JSON."""
        made = self._ffi.new("wasmtime_module_t **")
        self._check(self._wasm.wasmtime_module_new(self._engine, *self._bytes(source), made), "CompileError")
        self._last_module += 1
        self._modules[self._last_module] = made[0]
        described = {
            "module": self._last_module,
            "imports": self._imports(made[0]),
            "exports": self._exports(made[0]),
        }
        return self._text(json.dumps(described))

    def drop(self, module: Any) -> Any:
        """Let go of a module that no script has any more."""
        self._wasm.wasmtime_module_delete(self._modules.pop(self._number(module)))
        return self._undefined

    def _name(self, name: Any) -> str:
        return bytes(self._ffi.buffer(name.data, name.size)).decode()

    def _imports(self, module: Any) -> list[dict[str, str]]:
        wasm, found = self._wasm, []
        vector = self._ffi.new("wasm_importtype_vec_t *")
        wasm.wasmtime_module_imports(module, vector)
        for index in range(vector.size):
            one = vector.data[index]
            type_ = self._type_of(wasm.wasm_importtype_type(one))
            names = {"module": wasm.wasm_importtype_module(one), "name": wasm.wasm_importtype_name(one)}
            found.append({**{key: self._name(name) for key, name in names.items()}, **type_})
        wasm.wasm_importtype_vec_delete(vector)
        return found

    def _exports(self, module: Any) -> list[dict[str, str]]:
        wasm, found = self._wasm, []
        vector = self._ffi.new("wasm_exporttype_vec_t *")
        wasm.wasmtime_module_exports(module, vector)
        for index in range(vector.size):
            one = vector.data[index]
            type_ = self._type_of(wasm.wasm_exporttype_type(one))
            found.append({"name": self._name(wasm.wasm_exporttype_name(one)), **type_})
        wasm.wasm_exporttype_vec_delete(vector)
        return found

    def _type_of(self, type_: Any) -> dict[str, str]:
        kind = _KINDS[self._wasm.wasm_externtype_kind(type_)]
        if kind != "global":
            return {"kind": kind}
        of = self._wasm.wasm_externtype_as_globaltype_const(type_)
        return {"kind": kind, "type": name_of(self._wasm.wasm_valtype_kind(self._wasm.wasm_globaltype_content(of)))}

    def instantiate(self, module: Any, *imports: Any) -> Any:
        """Make an instance with a value for each import, a function or a number: its exports, as JSON."""
        made = self._modules[self._number(module)]
        given = self._ffi.new("wasmtime_extern_t[]", len(imports))
        vector = self._ffi.new("wasm_importtype_vec_t *")
        self._wasm.wasmtime_module_imports(made, vector)
        for index, value in enumerate(imports):
            if value.tag == OBJECT:
                given[index].kind = 0
                type_ = self._wasm.wasm_importtype_type(vector.data[index])
                given[index].of.function = self._function_for(
                    value, self._wasm.wasm_externtype_as_functype_const(type_)
                )
            else:
                self._put(self._things[self._number(value)], given[index])
        self._wasm.wasm_importtype_vec_delete(vector)
        instance, trap = self._ffi.new("wasmtime_instance_t *"), self._ffi.new("wasm_trap_t **")
        error = self._wasm.wasmtime_instance_new(self._store, made, given, len(imports), instance, trap)
        if error != self._ffi.NULL and self._thrown is None:
            raise RefusedError("LinkError", self._words(error))
        self._check_trap(error, trap[0])
        return self._text(json.dumps(self._exported(instance)))

    def _exported(self, instance: Any) -> list[dict[str, object]]:
        name, length = self._ffi.new("char **"), self._ffi.new("size_t *")
        exports: list[dict[str, object]] = []
        while True:
            found = self._ffi.new("wasmtime_extern_t *")
            if not self._wasm.wasmtime_instance_export_nth(self._store, instance, len(exports), name, length, found):
                return exports
            called = bytes(self._ffi.buffer(name[0], length[0])).decode()
            kind = _KINDS[min(found.kind, 3)]
            exports.append({"name": called, "kind": kind, "handle": self._note(found)})

    def table(self, initial: Any, maximum: Any, element: Any) -> Any:
        """Make a table of functions, at most ``maximum`` (-1: any number): its number."""
        limits = self._ffi.new("wasm_limits_t *", (self._number(initial), self._number(maximum) & 0xFFFFFFFF))
        type_ = self._wasm.wasm_tabletype_new(self._wasm.wasm_valtype_new(FUNCREF_TYPE), limits)
        made = self._ffi.new("wasmtime_table_t *")
        error = self._wasm.wasmtime_table_new(self._store, type_, self._element(element), made)
        self._wasm.wasm_tabletype_delete(type_)
        self._check(error, "RangeError")
        found = self._ffi.new("wasmtime_extern_t *")
        self._put((TABLE, made), found)
        return self._integer(self._note(found))

    def _element(self, value: Any) -> Any:
        element = self._ffi.new("wasmtime_val_t *")
        self._to_wasm(FUNCREF, value, element)
        return element

    def table_size(self, handle: Any) -> Any:
        """Return the number of a table's elements."""
        return self._integer(self._wasm.wasmtime_table_size(self._store, self._things[self._number(handle)][1]))

    def grow_table(self, handle: Any, count: Any, element: Any) -> Any:
        """Let a table grow: the number of elements that it had."""
        before = self._ffi.new("uint64_t *")
        table = self._things[self._number(handle)][1]
        grown = self._wasm.wasmtime_table_grow(self._store, table, self._number(count), self._element(element), before)
        self._check(grown, "RangeError")
        return self._integer(before[0])

    def get_element(self, handle: Any, index: Any) -> Any:
        """Return an element of a table: a function or null."""
        found = self._ffi.new("wasmtime_val_t *")
        table = self._things[self._number(handle)][1]
        if not self._wasm.wasmtime_table_get(self._store, table, self._number(index), found):
            raise RefusedError("RangeError", f"get(): the table has no element {self._number(index)}")
        return self._to_js(found[0])

    def set_element(self, handle: Any, index: Any, element: Any) -> Any:
        """Set an element of a table."""
        table = self._things[self._number(handle)][1]
        set_ = self._wasm.wasmtime_table_set(self._store, table, self._number(index), self._element(element))
        self._check(set_, "RangeError")
        return self._undefined

    def global_(self, kind: Any, is_mutable: Any, value: Any) -> Any:
        """Make a global of a type by its name, with a value: its number."""
        name = self._string(kind)
        initial = self._ffi.new("wasmtime_val_t *")
        self._to_wasm(_OF_NAME[name], value, initial)
        content = self._wasm.wasm_valtype_new(FUNCREF_TYPE if _OF_NAME[name] == FUNCREF else _OF_NAME[name])
        type_ = self._wasm.wasm_globaltype_new(content, self._number(is_mutable))
        made = self._ffi.new("wasmtime_global_t *")
        error = self._wasm.wasmtime_global_new(self._store, type_, initial, made)
        self._wasm.wasm_globaltype_delete(type_)
        self._check(error, "TypeError")
        found = self._ffi.new("wasmtime_extern_t *")
        self._put((GLOBAL, made), found)
        return self._integer(self._note(found))

    def get_global(self, handle: Any) -> Any:
        """Return a global's value."""
        found = self._ffi.new("wasmtime_val_t *")
        self._wasm.wasmtime_global_get(self._store, self._things[self._number(handle)][1], found)
        return self._to_js(found[0])

    def set_global(self, handle: Any, value: Any) -> Any:
        """Set a global's value."""
        variable = self._things[self._number(handle)][1]
        type_ = self._wasm.wasmtime_global_type(self._store, variable)
        kind = self._wasm.wasm_valtype_kind(self._wasm.wasm_globaltype_content(type_))
        is_mutable = self._wasm.wasm_globaltype_mutability(type_)
        self._wasm.wasm_globaltype_delete(type_)
        if not is_mutable:
            raise RefusedError("TypeError", "a global that is not mutable cannot be set")
        given = self._ffi.new("wasmtime_val_t *")
        self._to_wasm(value_kind(kind), value, given)
        self._check(self._wasm.wasmtime_global_set(self._store, variable, given), "TypeError")
        return self._undefined
