"""The host of scripts: answers their messages, keeps the objects that they hold, settles their promises."""

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import attrs

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.records import MLContextLostInfo
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.errors import DestroyedBufferError, DOMException
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.devices.wgpu.interop import usage_of_exports
from webnn_py.extensions.compute_policy import effective
from webnn_py.extensions.subgraph import MLSubgraph, uses_of
from webnn_py.extensions.subgraph_calls import SubgraphUse
from webnn_py.javascript.allowed_calls import AllowedCalls
from webnn_py.javascript.api import API, Converted
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.values import Message, MessageError, data_of, decode
from webnn_py.tracing.source import Source

_NAMELESS = ("<anonymous>", "<eval>")

_FILE_URL = "file://"

NOTHING = '{"value": null}'
"""The answer to a call that returns nothing."""

Settle = Callable[[dict[str, Any], "memoryview | None"], None]


class Host:
    """Handles the messages of one thread of a program.

    Args:
        api: what calls mean.
        allowed: the calls that are answered.
        compatibility: the deviations of the bindings from the specification.
        settle: called when a promise is settled.

    Attributes:
        latest: the promise that the latest call has returned; None if it has returned none.
    """

    def __init__(self, api: API, allowed: AllowedCalls, compatibility: Compatibility, settle: Settle) -> None:
        self._api = api
        self._allowed = allowed
        self._mode = compatibility
        self._settle = settle
        self._objects: dict[int, object] = {0: api.ml}
        self._last = 0
        self._promises: set[int] = set()
        self.latest: MLPromise[Any] | None = None
        self._losses: WeakKeyDictionary[MLContext, int] = WeakKeyDictionary()

    def handle(self, data: bytes, payload: memoryview | None) -> tuple[str, memoryview | None]:
        """Answer one message.

        A call whose promise the realm has numbered itself, below 0, gets an empty answer: whatever becomes of it is
        that promise's settlement.
        """
        self.latest = None
        number = None
        result: memoryview | None = None
        try:
            message = Message.read(data)
            if message.promise in self._promises:
                raise MessageError(f"the promise {message.promise} is still pending")
            number = message.promise
            for handle in message.collected:
                if handle != 0:
                    self._objects.pop(handle, None)
            answer, result = self._call(message, payload)
        except Exception as error:  # noqa: BLE001 - becomes the script's exception
            answer = {"error": self._error(error)}
        if number is not None:
            if "error" in answer:
                self._settle({"promise": number, **answer}, None)
            return "", None
        return NOTHING if answer == {"value": None} else json.dumps(answer), result

    @property
    def contexts(self) -> list[MLContext]:
        """The contexts that scripts have."""
        return [thing for thing in self._objects.values() if isinstance(thing, MLContext)]

    def _call(self, message: Message, payload: memoryview | None) -> tuple[dict[str, Any], memoryview | None]:
        arguments = decode(message.arguments, self._find, payload)
        this = self._find(message.this)
        called = message.interface, message.member, this, arguments
        self._allowed.check(*called)
        loss = self._losses.get(this) if isinstance(this, MLContext) and message.member == "destroy" else None
        expected = {"expected": loss} if loss in self._promises else {}
        result = self._api.call(*called) if message.at is None else self._api.call_from(_source(message.at), *called)
        convert = result.convert if isinstance(result, Converted) else None
        result = result.promise if isinstance(result, Converted) else result
        if isinstance(result, MLPromise):
            self.latest = result
            return {"promise": self._promise(result, convert, message.promise)}, None
        value, data = self._encode(result)
        return {"value": value, **expected}, data

    # --- objects -----------------------------------------------------------------------------------------------

    def _find(self, handle: object) -> object:
        if type(handle) is not int or handle not in self._objects:
            raise MessageError(f"there is no object {handle!r}")
        return self._objects[handle]

    def _encode(self, value: Any) -> tuple[Any, memoryview | None]:
        """Return a result for the script: JSON, and bytes for what is an ``ArrayBuffer`` there."""
        if hasattr(value, "dtype"):
            return None, data_of(value)
        if isinstance(value, list):
            return [self._describe(item) for item in value], None
        return self._describe(value), None

    def _describe(self, value: Any) -> Any:
        """Return an object of the API by its handle and attributes; anything else as it is."""
        attributes: dict[str, Any] = {}
        match value:
            case MLOperand():
                attributes = _descriptor_of(value)
            case MLBuffer():
                attributes = _attributes_of_buffer(value)
            case MLContext():
                self._losses[value] = lost = self._promise(value.lost)
                attributes = {"accelerated": value.accelerated, "lost": lost}
            case MLContextLostInfo():
                return {"message": value.message}
            case MLGraph():
                attributes = _attributes_of(value)
            case (str() as name, MLOperand() as operand):
                return [name, self._describe(operand)]
            case MLSubgraph():
                attributes = {"name": value.name}
            case MLGraphBuilder():
                pass
            case _:
                return value
        self._last += 1
        self._objects[self._last] = value
        return {"handle": self._last, "attributes": attributes}

    # --- promises ----------------------------------------------------------------------------------------------

    def _promise(
        self, promise: MLPromise[Any], convert: Callable[[Any], Any] | None = None, number: int | None = None
    ) -> int:
        if number is None:
            self._last += 1
            number = self._last
        self._promises.add(number)
        promise.on_settled(lambda: self._settled(number, promise, convert))
        return number

    def _settled(self, number: int, promise: MLPromise[Any], convert: Callable[[Any], Any] | None) -> None:
        self._promises.remove(number)
        settlement: dict[str, Any] = {"promise": number}
        data = None
        if promise.state == "rejected":
            settlement["error"] = self._error(cast("Exception", promise.outcome))
        else:
            value: Any = promise.outcome
            settlement["value"], data = self._encode(value if convert is None else convert(value))
        self._settle(settlement, data)

    # --- errors ------------------------------------------------------------------------------------------------

    def _error(self, error: Exception) -> dict[str, str]:
        if isinstance(error, DestroyedBufferError) and not self._mode.destroyed_is_invalid_state:
            return {"name": "TypeError", "message": str(error)}
        if isinstance(error, DOMException):
            return {"name": error.name, "message": error.message}
        if isinstance(error, TypeError):
            return {"name": "TypeError", "message": str(error)}
        if isinstance(error, MessageError):
            return {"name": "UnknownError", "message": str(error)}
        # No other exception is part of the API: it is a defect, and must not pass for an answer.
        traceback.print_exception(error, file=sys.stderr)
        return {"name": "UnknownError", "message": f"{type(error).__name__}: {error}"}


def _source(at: Mapping[str, str]) -> Source:
    """Return a place in a script, as ``js/places.js`` gives it; functions without a name are left out."""
    function, file = at.get("function", ""), at["file"]
    if file.startswith(_FILE_URL):  # as Node calls modules
        file = unquote(file.removeprefix(_FILE_URL))
    settled = int(at["settled"]) if "settled" in at else None
    return Source(file, int(at["line"]), "" if function in _NAMELESS else function, settled)


def _descriptor_of(value: MLOperand | MLBuffer) -> dict[str, Any]:
    return {"dataType": value.data_type, "shape": value.shape}


def _attributes_of_buffer(buffer: MLBuffer) -> dict[str, Any]:
    flags = {name: getattr(buffer, name) for name in ("readable", "writable", "constant")}
    attributes = {**_descriptor_of(buffer), **flags}
    if (usage := usage_of_exports(buffer)) is not None:
        attributes["exports"] = {"usage": usage, "byteLength": buffer.storage.descriptor.byte_length}
    return attributes


def _attributes_of(graph: MLGraph) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "inputs": _descriptors(graph.input_descriptors),
        "outputs": _descriptors(graph.output_descriptors),
    }
    if "compute-policy" in graph.context.experimental:
        attributes["computePolicy"] = effective(graph)
    if "subgraph" in graph.context.experimental:
        attributes["subgraphs"] = [_use(use) for use in uses_of(graph)]
    return attributes


def _use(use: SubgraphUse) -> dict[str, Any]:
    """Return how a call of a sub-graph is computed; scripts have no members that are None."""
    return {name: value for name, value in attrs.asdict(use).items() if value is not None}


def _descriptors(by_name: Mapping[str, MLOperandDescriptor]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, {"dataType": descriptor.data_type, "shape": descriptor.shape}) for name, descriptor in by_name.items()
    ]
