"""Values of JavaScript, and its exceptions."""

from collections.abc import Callable
from typing import Any

OBJECT, INT, NULL, UNDEFINED, EXCEPTION, FLOAT = -1, 0, 2, 3, 6, 8
"""quickjs-ng's tags."""


class RefusedError(Exception):
    """An error that scripts are to get: the name of its class, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Pending(Exception):  # noqa: N818 - the engine has the exception
    """JavaScript has thrown, and its exception is pending."""


class Values:
    """Makes and reads values of JavaScript.

    Args:
        engine: the declarations of quickjs-ng's C API, its library, its context, and what makes callbacks, as
            ``ffi.callback`` does.
    """

    def __init__(self, engine: tuple[Any, Any, Any, Any]) -> None:
        ffi, self._js, self._context, self._callback = engine
        self._ffi = ffi
        self._new_value, self._double = ffi.typeof("JSValue *"), ffi.typeof("double *")
        self._hooks: list[Any] = []
        self._undefined = self._value(UNDEFINED)

    def register(self, *hooks: Any) -> Any:
        """Take JavaScript's functions: one makes an array, one an error, one takes the items of an iterable."""
        self._hooks = [self._js.JS_DupValue(self._context, one) for one in hooks]
        return self._undefined

    def _guarded(self, body: Callable[[], Any]) -> Any:
        """Return what a function of JavaScript's is to return: its value, or the mark of a pending exception."""
        try:
            return body()
        except Pending:
            return self._value(EXCEPTION)
        except RefusedError as refused:
            return self._js.JS_Throw(self._context, self._error(refused))

    def _error(self, refused: RefusedError) -> Any:
        """Return the exception for a script, or the one that making it has thrown."""
        try:
            return self._call_js(self._hooks[1], self._text(refused.kind), self._text(" ".join(str(refused).split())))
        except Pending:
            return self._js.JS_GetException(self._context)

    def _value(self, tag: int, data: int = 0) -> Any:
        return self._ffi.new(self._new_value, (data, tag))[0]

    def _integer(self, value: int) -> Any:
        return self._value(INT, value & 0xFFFFFFFF)

    def _float(self, value: float) -> Any:
        made = self._ffi.new(self._new_value, (0, FLOAT))
        self._ffi.cast(self._double, made)[0] = value
        return made[0]

    def _text(self, text: str) -> Any:
        data = text.encode("utf-8", "replace")
        return self._js.JS_NewStringLen(self._context, data, len(data))

    def _string(self, value: Any) -> str:
        length = self._ffi.new("size_t *")
        pointer = self._js.JS_ToCStringLen2(self._context, length, value, False)
        if pointer == self._ffi.NULL:
            raise Pending
        text = bytes(self._ffi.buffer(pointer, length[0])).decode("utf-8", "surrogatepass")
        self._js.JS_FreeCString(self._context, pointer)
        return text

    def _bytes(self, value: Any) -> tuple[Any, int]:
        size = self._ffi.new("size_t *")
        pointer = self._js.JS_GetUint8Array(self._context, size, value)
        if pointer == self._ffi.NULL:
            raise Pending
        return pointer, size[0]

    def _call_js(self, function: Any, *arguments: Any) -> Any:
        """Call a function; frees the arguments. Raises Pending."""
        result = self._js.JS_Call(self._context, function, self._undefined, len(arguments), list(arguments))
        for one in arguments:
            self._js.JS_FreeValue(self._context, one)
        if result.tag == EXCEPTION:
            raise Pending
        return result

    def _number(self, value: Any) -> int:
        """Return an integer that ``js/quickjs_wasm.js`` or the engine gives."""
        if value.tag == FLOAT:
            return int(self._ffi.cast("double *", self._ffi.new("JSValue *", value))[0])
        data: int = value.data & 0xFFFFFFFF
        return data - 2**32 if data >= 2**31 else data
