"""The host of scripts: answers their messages, keeps the objects that they hold, settles their promises."""

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import attrs

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.steps.subgraphs import SubgraphUse
from webnn_py.errors import DestroyedBufferError, DOMException, QuotaExceededError
from webnn_py.javascript.api import API, Converted
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.memory import SMALL_BYTES, TEXT_FACTOR, MemoryAccount
from webnn_py.javascript.values import data_of, decode
from webnn_py.javascript.words import OutputClosedError
from webnn_py.operators.operand import MLOperand
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.builder import MLGraphBuilder
from webnn_py.script.context import MLContext
from webnn_py.script.graph import MLGraph
from webnn_py.script.records import MLContextLostInfo
from webnn_py.script.subgraphs import MLSubgraph
from webnn_py.timelines.promise import MLPromise
from webnn_py.tracing.source import Source

_NAMELESS = ("<anonymous>", "<eval>")

_FILE_URL = "file://"

NOTHING = '{"value": null}'
"""The answer to a call that returns nothing."""

Settle = Callable[[dict[str, Any], "memoryview | None"], None]


Serve = Callable[[dict[str, Any], "memoryview | None"], "tuple[Any, memoryview | None]"]
"""Answers a message that is no call of the API; raises ValueError for one that it does not know."""


class Host:
    """Handles the messages of one realm.

    Args:
        api: what calls mean.
        serve: answers other messages.
        settle: called when a promise is settled, to notify the realm outside of a call.
        memory_limit: bytes that the script may make this process hold; None for any number.
        settles_within_calls: whether what a call settles goes with its answer, and not by ``settle``.

    Attributes:
        memory: what it makes this process hold.
        latest: the promise that the latest call has returned; None if it has returned none.
    """

    def __init__(  # noqa: PLR0913 - two have defaults
        self,
        api: API,
        compatibility: Compatibility,
        serve: Serve,
        settle: Settle,
        memory_limit: int | None = None,
        *,
        settles_within_calls: bool = True,
    ) -> None:
        self._api = api
        self.memory = MemoryAccount(api.ml, memory_limit, lambda: len(self._objects) + len(self._promises))
        self._mode = compatibility
        self._serve = serve
        self._settle = settle
        self._objects: dict[int, object] = {0: None}
        self._last = 0
        self._promises: dict[int, bool] = {}
        self.latest: MLPromise[Any] | None = None
        self._losses: WeakKeyDictionary[MLContext, int] = WeakKeyDictionary()
        self._settles_within_calls = settles_within_calls
        self._meanwhile: list[dict[str, Any]] | None = None

    @property
    def pending(self) -> int:
        """Promises that will be settled by themselves: all but those of lost contexts."""
        return sum(self._promises.values())

    def handle(self, text: str, payload: memoryview | None) -> tuple[str, memoryview | None]:
        """Answer one message; raises only what ends the script.

        A call whose promise the realm has numbered itself, below 0, gets an empty answer: whatever becomes of it is
        that promise's settlement.
        """
        message = json.loads(text)
        self.latest = None
        for handle in message.get("collected", ()):
            self._objects.pop(handle, None)
        self._meanwhile = [] if self._settles_within_calls else None
        answer: dict[str, Any] = {}
        data = None
        try:
            if "call" in message:
                answer, data = self._call(message, payload, len(text))
            else:
                value, data = self._serve(message, payload)
                answer = {"value": value}
        except OutputClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - becomes the script's exception
            answer = {"error": self._error(error)}
        if "promise" in message:
            if "error" in answer:
                self._settle({"promise": message["promise"], **answer}, None)
            return "", None
        if self._meanwhile:
            answer["settled"] = self._meanwhile
        self._meanwhile = None
        return NOTHING if answer == {"value": None} else json.dumps(answer), data

    @property
    def contexts(self) -> list[MLContext]:
        """The contexts that scripts have."""
        return [thing for thing in self._objects.values() if isinstance(thing, MLContext)]

    def refuse(self, text_bytes: int, payload_bytes: int) -> str | None:
        """Return the answer to a message that is too long to be read; None for one that is to be read."""
        if text_bytes + payload_bytes <= SMALL_BYTES:
            return None
        try:
            self.memory.admit("a message of the script", TEXT_FACTOR * text_bytes + payload_bytes)
        except QuotaExceededError as error:
            return json.dumps({"error": self._error(error), "unread": True})
        return None

    def _call(
        self, message: dict[str, Any], payload: memoryview | None, text_bytes: int
    ) -> tuple[dict[str, Any], memoryview | None]:
        arguments = decode(message["args"], self._find, payload)
        this = self._objects[message.get("this", 0)]
        called = message["interface"], message["call"], this, arguments
        at = message.get("at")
        count = self.memory.admit_call(message["call"], this, arguments, text_bytes)
        loss = self._losses.get(this) if isinstance(this, MLContext) and message["call"] == "destroy" else None
        expected = {"expected": loss} if loss in self._promises else {}
        result = self._api.call(*called) if at is None else self._api.call_from(_source(at), *called)
        convert = result.convert if isinstance(result, Converted) else None
        result = result.promise if isinstance(result, Converted) else result
        self.memory.hold(count, this, result)
        if isinstance(result, MLPromise):
            self.latest = result
            return {"promise": self._promise(result, convert, message.get("promise"))}, None
        value, data = self._encode(result)
        return {"value": value, **expected}, data

    # --- objects -----------------------------------------------------------------------------------------------

    def _find(self, handle: int) -> object:
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
                self._losses[value] = lost = self._promise(value.lost, counted=False)
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
        self,
        promise: MLPromise[Any],
        convert: Callable[[Any], Any] | None = None,
        number: int | None = None,
        *,
        counted: bool = True,
    ) -> int:
        if number is None:
            self._last += 1
            number = self._last
        self._promises[number] = counted
        promise._on_settled(lambda: self._settled(number, promise, convert))
        return number

    def _settled(self, number: int, promise: MLPromise[Any], convert: Callable[[Any], Any] | None) -> None:
        del self._promises[number]
        settlement: dict[str, Any] = {"promise": number}
        data = None
        if promise.state == "rejected":
            settlement["error"] = self._error(cast("Exception", promise._outcome))
        else:
            value: Any = promise._outcome
            settlement["value"], data = self._encode(value if convert is None else convert(value))
        if self._meanwhile is None:
            self._settle(settlement, data)
        elif data is None:
            self._meanwhile.append(settlement)
        else:
            raise AssertionError("bytes come from the device timeline, never within a call")

    # --- errors ------------------------------------------------------------------------------------------------

    def _error(self, error: Exception) -> dict[str, str]:
        if isinstance(error, DestroyedBufferError) and not self._mode.destroyed_is_invalid_state:
            return {"name": "TypeError", "message": str(error)}
        if isinstance(error, DOMException):
            return {"name": error.name, "message": error.message}
        if isinstance(error, TypeError):
            return {"name": "TypeError", "message": str(error)}
        # No other exception is part of the API: it is a defect, and must not pass for an answer.
        traceback.print_exception(error, file=sys.stderr)
        return {"name": "UnknownError", "message": f"{type(error).__name__}: {error}"}


def _source(at: Mapping[str, str]) -> Source:
    """Return a place in a script, as ``js/places.js`` gives it; functions without a name are left out."""
    function, file = at.get("function", ""), at["file"]
    if file.startswith(_FILE_URL):  # as Node calls modules
        file = unquote(file.removeprefix(_FILE_URL))
    return Source(file, int(at["line"]), "" if function in _NAMELESS else function)


def _descriptor_of(value: MLOperand | MLBuffer) -> dict[str, Any]:
    return {"dataType": value.data_type, "shape": value.shape}


def _attributes_of_buffer(buffer: MLBuffer) -> dict[str, Any]:
    flags = {name: getattr(buffer, name) for name in ("readable", "writable", "constant")}
    attributes = {**_descriptor_of(buffer), **flags}
    if buffer._exports is not None:
        attributes["exports"] = {"usage": buffer._exports.usage, "byteLength": buffer._descriptor.byte_length}
    return attributes


def _attributes_of(graph: MLGraph) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "inputs": _descriptors(graph.input_descriptors),
        "outputs": _descriptors(graph.output_descriptors),
    }
    if "compute-policy" in graph._context._experimental:
        attributes["computePolicy"] = graph.compute_policy
    if "subgraph" in graph._context._experimental:
        attributes["subgraphs"] = [_use(use) for use in graph.subgraphs]
    return attributes


def _use(use: SubgraphUse) -> dict[str, Any]:
    """Return how a call of a sub-graph is computed; scripts have no members that are None."""
    return {name: value for name, value in attrs.asdict(use).items() if value is not None}


def _descriptors(by_name: Mapping[str, MLOperandDescriptor]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, {"dataType": descriptor.data_type, "shape": descriptor.shape}) for name, descriptor in by_name.items()
    ]
