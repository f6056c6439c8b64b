"""Serve an ONNX model over HTTP: batching, back-pressure, timeouts; a part of the Open Inference Protocol.

python examples/serve.py model.onnx [--port 8000]         (pip install '.[serve]')
python examples/serve.py FOLDER                           (pip install '.[serve,generation]')

The first dimension of every input and output is the batch, and is left open by the model.
``POST /v2/models/NAME/infer`` takes one request with any number of rows; those that wait at the same time are run as
one batch. ``GET /v2/health/ready`` and ``GET /v2/models/NAME`` say what is there. What is too much is answered at once:
a body that is too long by 413, too many bodies, requests or connections by 503; a body that comes too slowly by 408,
a request that waits for too long by 504. NaN and the infinities, which JSON lacks, are the strings "NaN", "Infinity"
and "-Infinity", as in Protocol Buffers' JSON.

Of a folder with a language model (docs/generation.md) the text streams: ``POST /v2/models/NAME/generate_stream`` takes
``{"text_input": "Once", "parameters": {"max_new_tokens": 20, "temperature": 0.7}}``, as Triton's generate extension
does, and answers with an event for each piece of text; ``/generate`` answers when all of it is there. A client that
goes ends its text. Ctrl-C ends the server when the requests that have come are answered,
after some seconds in any case.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from json.decoder import JSONArray  # type: ignore[attr-defined]  # what json.JSONDecoder.parse_array is
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # the one that asks the decoder
from pathlib import Path
from typing import Any, Final, cast

import attrs
import numpy as np
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from webnn_py import open_ml
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime import Environment, InferenceSession
from webnn_py.runtime.generation import Generation, Generator, Token, create_generator, generate

DATA_TYPES: Final = {"FP32": "float32", "FP16": "float16", "INT8": "int8", "UINT8": "uint8"} | {
    f"{sign}INT{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (32, 64)
}
PROTOCOL_NAMES: Final = {ours: theirs for theirs, ours in DATA_TYPES.items()}
PARAMETERS: Final = frozenset({"max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty", "seed", "stop"})
"""Of a request for text."""

LONGEST_ESCAPE: Final = 12
"""Bytes that a character takes in JSON at most: two escapes, ``\\ud83d\\ude00``."""

PARAMETERS_LENGTH: Final = 1 << 18
"""Bytes of a request for text besides its prompt, stops among them."""

SLICE: Final = 1 << 16
"""Elements, or characters, that are converted in one go: between them other threads get turns."""

FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n"
"""The answer to a connection too many."""

Arrays = dict[str, np.ndarray[Any, Any]]


@attrs.frozen
class Limits:
    """How much the server takes.

    Attributes:
        rows: at most so many rows are run as a batch.
        waiting: so many requests may wait for a batch.
        delay: seconds that a batch waits for more rows, if it is not full.
        seconds: how long a request may take from its last byte to its answer.
        idle: seconds until a client has sent the head of a request.
        body_seconds: seconds for the rest of the request.
        write_seconds: seconds for each part of an answer to be taken by the client.
        grace: seconds for clients when the server ends.
        connections: at the same time.
        body: bytes of a request.
        bodies: bytes of all requests that are being read or parsed.
        shapes: the model is kept ready for so many sizes of what it leaves open besides the batch.
        texts: so many texts are generated at the same time.
        characters: a prompt may have so many for each token that the generator has room for.
    """

    rows: int = 32
    waiting: int = 256
    delay: float = 0.002
    seconds: float = 30.0
    idle: float = 60.0
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    grace: float = 3.0
    connections: int = 256
    body: int = 16 << 20
    bodies: int = 64 << 20
    shapes: int = 8
    texts: int = 8
    characters: int = 16


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is answered with a status and a text."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


# --- batches ---------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Waiting:
    """A request in the queue: its rows, and what came of them."""

    feeds: Arrays
    rows: int
    done: trio.Event = attrs.field(factory=trio.Event)
    outputs: Arrays | None = None
    error: Exception | None = None
    abandoned: bool = False

    @property
    def kind(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """Return what requests of a batch have in common."""
        return tuple(sorted((name, array.dtype.name, array.shape[1:]) for name, array in self.feeds.items()))


class Batcher:
    """Runs what waits as batches, one after the other.

    A session keeps a graph for each shape of its inputs. Batches are padded to powers of two, so that there are few;
    sizes that are open otherwise have sessions of their own, of which those used last are kept.
    """

    def __init__(self, environment: Environment, model: OnnxModel, limits: Limits) -> None:
        self._environment = environment
        self._model = model
        self._limits = limits
        self._send, self._receive = trio.open_memory_channel[Waiting](limits.waiting)
        self.sessions: dict[Any, InferenceSession] = {}

    async def infer(self, feeds: Arrays) -> Arrays:
        """Wait for the outputs of a request.

        Raises:
            Refusal: too much waits, or it took too long, or the model refuses it.
        """
        request = Waiting(feeds, next(iter(feeds.values())).shape[0])
        try:
            self._send.send_nowait(request)
        except trio.WouldBlock:
            raise Refusal(503, f"{self._limits.waiting} requests wait already; try again later") from None
        try:
            with trio.fail_after(self._limits.seconds):
                await request.done.wait()
        except trio.TooSlowError:
            raise Refusal(504, f"not answered within {self._limits.seconds} seconds") from None
        finally:
            request.abandoned = not request.done.is_set()
        if request.outputs is None:
            is_refused = isinstance(request.error, TypeError | ValueError)  # by the model, for its shapes
            raise Refusal(400 if is_refused else 500, str(request.error))
        return request.outputs

    async def run(self) -> None:
        """Run batches until cancelled."""
        held: Waiting | None = None
        while True:
            batch = [held or await self._receive.receive()]
            held, rows = None, batch[0].rows
            with trio.move_on_after(self._limits.delay):
                while rows < self._limits.rows:
                    request = await self._receive.receive()
                    if rows + request.rows > self._limits.rows or request.kind != batch[0].kind:
                        held = request  # begins the next batch
                        break
                    batch.append(request)
                    rows += request.rows
            await self._run_batch([request for request in batch if not request.abandoned])

    async def _run_batch(self, batch: list[Waiting]) -> None:
        if not batch:
            return
        rows = sum(request.rows for request in batch)
        padding = (1 << (rows - 1).bit_length()) - rows
        feeds = {}
        for name, first in batch[0].feeds.items():
            parts = [request.feeds[name] for request in batch]
            feeds[name] = np.concatenate([*parts, np.zeros((padding, *first.shape[1:]), first.dtype)])
        try:
            session = await self._session(batch[0].kind)
            outputs = await session.run(feeds)
            start = 0
            for request in batch:
                stop = start + request.rows
                request.outputs = {name: tensor.data[start:stop] for name, tensor in outputs.items()}
                start = stop
        except Exception as error:  # noqa: BLE001 - the clients are told
            for request in batch:
                request.error = error
        for request in batch:
            request.done.set()

    async def _session(self, kind: Any) -> InferenceSession:
        session = self.sessions.pop(kind, None) or await self._environment.create_session(self._model)
        self.sessions[kind] = session  # the last of them
        if len(self.sessions) > self._limits.shapes:
            await self.sessions.pop(next(iter(self.sessions))).release()
        return session


# --- the protocol ----------------------------------------------------------------------------------------------------


class Decoder(json.JSONDecoder):
    """Reads JSON so that other threads get turns: long lists of numbers slice by slice, all else in Python."""

    def __init__(self) -> None:
        super().__init__(parse_constant=_refuse_constant)
        self.parse_array = self._array
        self.scan_once = py_make_scanner(self)

    def _array(self, at: tuple[str, int], scan_once: Any) -> tuple[list[Any], int]:
        text, start = at
        end = text.find("]", start)
        if any(text.find(mark, start, end) >= 0 for mark in '[{"') or end < 0:
            result: tuple[list[Any], int] = JSONArray(at, scan_once)
            return result
        numbers: list[Any] = []
        while True:
            stop = end if end - start <= SLICE else text.rfind(",", start, start + SLICE)
            part = json.loads(f"[{text[start : max(stop, start)]}]", parse_constant=_refuse_constant)
            if stop < start or (numbers and not part):
                raise json.JSONDecodeError("no list of numbers", text, start)
            numbers += part
            if stop == end:
                return numbers, end + 1
            start = stop + 1


def _refuse_constant(name: str) -> None:
    raise ValueError(f'{name} is no JSON; it is written as the string "{name}"')


def arrays_of(body: bytes) -> Arrays:
    """The arrays of an inference request.

    Raises:
        Refusal: it is not one.
    """
    arrays: Arrays = {}
    try:
        request = json.loads(body, cls=Decoder)
        for item in request["inputs"]:
            name, shape = item["name"], item["shape"]
            if not isinstance(name, str):
                raise TypeError(f"the name of an input is {name!r:.40}; it must be a string")
            if name in arrays:
                raise ValueError(f"the input {name!r} is given twice")
            if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
                raise TypeError(f"the shape of {name!r} is {shape!r:.40}; it must be a list of integers")
            if math.prod(shape) > len(body):
                raise ValueError(f"{name!r} has fewer elements than its shape {shape!r:.40}")
            arrays[name] = np.empty(shape, DATA_TYPES[item["datatype"]])
            with np.errstate(over="ignore"):
                _fill(arrays[name], item["data"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise Refusal(400, f"no inference request: {type(error).__name__}: {error}") from None
    return arrays


def _fill(array: np.ndarray[Any, Any], data: Any) -> None:
    """Put the elements of a list, or of nested ones, into an array of their shape."""
    if not isinstance(data, list):
        raise TypeError(f"data are {type(data).__name__}; they must be a list")
    if array.ndim > 1 and data and isinstance(data[0], list):
        for row, items in zip(array, data, strict=True):
            _fill(row, items)
        return
    flat = array.reshape(-1)
    if len(data) != flat.size:
        raise ValueError(f"there are {len(data)} elements; the shape has {flat.size}")
    for start in range(0, flat.size, SLICE):
        part = data[start : start + SLICE]
        if None in part:
            raise TypeError("an element is null")
        if array.dtype.kind != "f" and not all(type(element) is int for element in part):
            raise TypeError(f"an element of {array.dtype} is no integer")
        flat[start : start + SLICE] = np.array(part, array.dtype)


def check(arrays: Arrays, session: InferenceSession) -> None:
    """Check that arrays are a model's inputs.

    Raises:
        Refusal: they are not.
    """
    if set(arrays) != set(session.input_names):
        raise Refusal(400, f"inputs {sorted(arrays)} given; the model's are {list(session.input_names)}")
    for name, array in arrays.items():
        expected = session.input_descriptors[name]
        shape = expected.shape or array.shape
        fits = len(shape) == array.ndim and all(
            isinstance(size, str) or size == given for size, given in zip(shape, array.shape, strict=True)
        )
        if array.dtype.name != expected.data_type or not fits or not array.ndim or not array.size:
            raise Refusal(400, f"input {name!r} is {array.dtype} {list(array.shape)}; it must be {expected}")
    if len({array.shape[0] for array in arrays.values()}) != 1:
        raise Refusal(400, "the inputs have different numbers of rows")


def encoded(name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """An inference response."""
    outputs = []
    for key, array in arrays.items():
        facts = {"name": key, "shape": list(array.shape), "datatype": PROTOCOL_NAMES[array.dtype.name]}
        outputs.append(f'{json.dumps(facts)[:-1]}, "data": [{", ".join(_elements(array.reshape(-1)))}]}}')
    return f'{{"model_name": {json.dumps(name)}, "outputs": [{", ".join(outputs)}]}}'.encode()


def _elements(flat: np.ndarray[Any, Any]) -> Iterator[str]:
    """The elements as JSON, some at a time."""
    for start in range(0, flat.size, SLICE):
        part = flat[start : start + SLICE]
        numbers = part.tolist()
        if part.dtype.kind == "f":
            for index in np.flatnonzero(~np.isfinite(part)):
                value = numbers[index]
                numbers[index] = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        yield json.dumps(numbers)[1:-1]


# --- the application -------------------------------------------------------------------------------------------------

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Answer = tuple[int, dict[str, str], bytes]
Post = Callable[["Body", Send], Awaitable[Answer | None]]
"""Answers a request, or returns an answer."""


class Application:
    """The ASGI application: one model.

    Args:
        name: the model's.
        metadata: what is said of it.
        posts: what can be asked of it, by the last part of the path.
        limits: how much is taken.
        longest: bytes of a request, if these are fewer than the limits allow.
    """

    def __init__(
        self, name: str, metadata: dict[str, Any], posts: Mapping[str, Post], limits: Limits, longest: int | None = None
    ) -> None:
        self._name = name
        self._limits = limits
        self._longest = limits.body if longest is None else min(longest, limits.body)
        self.bytes_of_bodies = 0
        self._parsers = trio.CapacityLimiter(1)  # more would take turns, and hold more
        model = f"/v2/models/{name}"
        ready = json.dumps({"ready": True}).encode()
        self._gets = dict.fromkeys(("/v2/health/live", "/v2/health/ready", f"{model}/ready"), ready)
        self._gets[model] = json.dumps({"name": name, "platform": "webnn_py", **metadata}).encode()
        self._posts = {f"{model}/{path}": post for path, post in posts.items()}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        reader = Body(scope, receive, self._limits, self._longest)
        try:
            answer = await self._answer(scope["method"], scope["path"], reader, send)
            if answer is None:
                return
            status, headers, content = answer
        except Refusal as refusal:
            status, headers = refusal.status, refusal.headers
            content = json.dumps({"error": str(refusal)}).encode()
        if status == 503:
            headers = headers | {"retry-after": "1"}
        if not reader.ended:
            headers = headers | {"connection": "close"}
        if status != 204:
            headers = headers | {"content-type": "application/json", "content-length": str(len(content))}
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": content, "more_body": True})
        await reader.skip()  # a client that is still sending would not see the answer
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, method: str, path: str, body: Body, send: Send) -> Answer | None:
        post = self._posts.get(path)
        if path not in self._gets and post is None and (method, path) != ("OPTIONS", "*"):
            posts, gets = ", ".join(self._posts), ", ".join(self._gets)
            raise Refusal(404, f"{path!r:.100}: there is POST {posts}, and GET of {gets}")
        methods = ("GET", "HEAD", "OPTIONS") if post is None else ("OPTIONS", "POST")
        allowed = ", ".join(methods)
        if method == "OPTIONS":
            return 204, {"allow": allowed}, b""
        if method not in methods:
            raise Refusal(405, f"{method!r:.40} of {path}; allowed are {allowed}", allow=allowed)
        return (200, {}, self._gets[path]) if post is None else await post(body, send)

    @contextmanager
    def _counted(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of a body while it is read and parsed."""
        held = 0

        def count(more: int) -> None:
            nonlocal held
            if self.bytes_of_bodies + more > self._limits.bodies:
                raise Refusal(503, "too many requests are being read; try again later")
            held += more
            self.bytes_of_bodies += more

        try:
            yield count
        finally:
            self.bytes_of_bodies -= held


class Inference(Application):
    """Runs a model on arrays."""

    def __init__(self, name: str, session: InferenceSession, batcher: Batcher, limits: Limits) -> None:
        self._session = session
        self._batcher = batcher
        inputs, outputs = [
            [
                {
                    "name": key,
                    "datatype": PROTOCOL_NAMES.get(item.data_type, item.data_type),
                    "shape": [size if isinstance(size, int) else -1 for size in item.shape or ()],
                }
                for key, item in descriptors.items()
            ]
            for descriptors in (session.input_descriptors, session.output_descriptors)
        ]
        super().__init__(name, {"inputs": inputs, "outputs": outputs}, {"infer": self._infer}, limits)

    async def _infer(self, body: Body, send: Send) -> Answer:
        with self._counted() as count:
            arrays = await trio.to_thread.run_sync(arrays_of, await body.read(count), limiter=self._parsers)
        check(arrays, self._session)
        outputs = await self._batcher.infer(arrays)
        return 200, {}, await trio.to_thread.run_sync(encoded, self._name, outputs, limiter=self._parsers)


class Text(Application):
    """Continues texts by a language model."""

    def __init__(self, name: str, generator: Generator, limits: Limits) -> None:
        self._generator = generator
        self._texts = 0
        self._characters = limits.characters * generator.capacity
        text = [{"name": "text_input", "datatype": "BYTES", "shape": [1]}]
        posts = {"generate": self._whole, "generate_stream": self._stream}
        metadata = {"inputs": text, "outputs": [{**text[0], "name": "text_output"}]}
        super().__init__(name, metadata, posts, limits, LONGEST_ESCAPE * self._characters + PARAMETERS_LENGTH)

    @asynccontextmanager
    async def _generation(self, body: Body) -> AsyncIterator[tuple[Token, Generation]]:
        """Begin the text that a request asks for: its first token, and those after it. It ends with the block."""
        with self._counted() as count:
            content = await body.read(count)
            request = await trio.to_thread.run_sync(text_request, content, limiter=self._parsers)
        if len(request["prompt"]) > self._characters:
            raise Refusal(413, f"text_input may have {self._characters} characters")
        if self._texts >= self._limits.texts:
            raise Refusal(503, f"{self._limits.texts} texts are being generated; try again later")
        self._texts += 1
        try:
            try:
                generation = generate(self._generator, **request)
                first = await anext(generation)  # which makes tokens of the prompt
            except (TypeError, ValueError) as error:
                raise Refusal(400, str(error)) from error
            async with generation:
                yield first, generation
        finally:
            self._texts -= 1

    async def _whole(self, body: Body, send: Send) -> Answer:
        async with self._generation(body) as (first, generation):
            text = "".join([first.text, *[token.text async for token in generation]])
        return 200, {}, self._encoded(text)

    async def _stream(self, body: Body, send: Send) -> None:
        async with self._generation(body) as (first, generation):
            fields = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            token: Token | None = first
            while token is not None:
                if token.text:
                    event = b"data: " + self._encoded(token.text) + b"\n\n"
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                token = await anext(generation, None)
        await send({"type": "http.response.body", "body": b""})

    def _encoded(self, text: str) -> bytes:
        return json.dumps({"model_name": self._name, "text_output": text}).encode()


def text_request(content: bytes) -> dict[str, Any]:
    """The arguments of ``generate()`` that a body asks for.

    Raises:
        Refusal: it is no such request.
    """
    try:
        request = json.loads(content, cls=Decoder)
        parameters = request.get("parameters", {})
        unknown = sorted(parameters.keys() - PARAMETERS)
    except (ValueError, AttributeError, RecursionError) as error:
        raise Refusal(400, f"no text request: {error}") from error
    if not isinstance(request.get("text_input"), str) or not request["text_input"]:
        raise Refusal(400, "text_input must be a text, and not empty")
    if unknown:
        raise Refusal(400, f"parameters has {unknown[:9]!s:.200}; there are {sorted(PARAMETERS)}")
    return {"prompt": request["text_input"], **parameters}


class Body:
    """The body of a request, as it comes."""

    def __init__(self, scope: Any, receive: Receive, limits: Limits, longest: int) -> None:
        headers = dict(scope["headers"])
        self._declared = int(headers.get(b"content-length", b"0"))
        self._coding = headers.get(b"content-encoding", b"identity").decode("latin-1")
        self._receive = receive
        self._limits = limits
        self._longest = longest
        self.ended = self._declared == 0 and b"transfer-encoding" not in headers and scope["http_version"][0] == "1"

    async def read(self, count: Callable[[int], None]) -> bytes:
        """All of it; ``count`` is told of each piece.

        Raises:
            Refusal: it is too long, comes too slowly, or is coded; or ``count`` refuses it.
        """
        if self._coding != "identity":
            raise Refusal(415, f"content-encoding {self._coding!r:.40}: only identity is read")
        body = bytearray()
        try:
            with trio.fail_after(self._limits.body_seconds):
                while not self.ended and self._declared <= self._longest:
                    piece = await self._next()
                    count(len(piece))
                    body += piece
                    if len(body) > self._longest:
                        break
        except trio.TooSlowError:
            raise Refusal(408, f"the request took more than {self._limits.body_seconds} seconds to come") from None
        if max(self._declared, len(body)) > self._longest:
            raise Refusal(413, f"a request may have {self._longest} bytes")
        return bytes(body)

    async def skip(self) -> None:
        """Read what is left, up to the limits of a body and of the time when the server ends."""
        length = 0
        with trio.move_on_after(self._limits.grace):
            while not self.ended and length < self._limits.body:
                length += len(await self._next())

    async def _next(self) -> bytes:
        message = await self._receive()
        self.ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece


# --- the server ------------------------------------------------------------------------------------------------------


class ClientStream:
    """A client's stream: hypercorn shields what it sends from being cancelled, so that writes need an end of their own.

    Args:
        stream: the stream.
        deadlines: gathers the scopes of writes, for the end of the server.
        seconds: how long a write may take.
        closed: cancelled when the stream is closed, by either side.
    """

    def __init__(
        self, stream: trio.SocketStream, deadlines: set[trio.CancelScope], seconds: float, closed: trio.CancelScope
    ) -> None:
        self._stream = stream
        self._deadlines = deadlines
        self._seconds = seconds
        self._closed = closed
        self.socket = stream.socket
        self.send_eof = stream.send_eof

    async def receive_some(self, most: int | None = None) -> bytes | bytearray:
        """Receive data; when the client has gone, end what waits for it, which hypercorn does after its idle time."""
        data: bytes | bytearray = b""
        try:
            data = await self._stream.receive_some(most)
        finally:
            if not data:
                self._closed.cancel()
        return data

    async def send_all(self, data: bytes) -> None:
        """Send data.

        Raises:
            trio.BrokenResourceError: the client does not take them.
        """
        with trio.move_on_after(self._seconds) as scope:
            self._deadlines.add(scope)
            try:
                await self._stream.send_all(data)
            finally:
                self._deadlines.discard(scope)
        if scope.cancelled_caught:
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError

    async def aclose(self) -> None:
        """Close it, and end what waits for the client."""
        await self._stream.aclose()
        self._closed.cancel()


class Server:
    """One model, or the language model of a folder, over HTTP/1.1 and HTTP/2."""

    def __init__(self, name: str, environment: Environment, model: OnnxModel | Path, limits: Limits) -> None:
        self._name = name
        self._environment = environment
        self._model = model
        self._limits = limits
        self._context = WorkerContext(None)
        self._config = Config()
        self._config.keep_alive_timeout = limits.idle
        self._config.errorlog = logging.getLogger("serve")
        self._config.include_server_header = False
        self.connections = 0
        self._writes: set[trio.CancelScope] = set()

    async def serve(self, port: int, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer on the loopback interface until :meth:`close`; started, it tells the port."""
        async with self._opened() as self.application:
            listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
            async with trio.open_nursery() as clients:
                async with trio.open_nursery() as accepting:
                    self._accepting = accepting.cancel_scope
                    serve = partial(trio.serve_listeners, handler_nursery=clients)
                    accepting.start_soon(serve, self._connection, listeners)
                    task_status.started(listeners[0].socket.getsockname()[1])
                await self._context.terminated.set()  # clients that are idle are closed, others after their answers
                clients.cancel_scope.deadline = trio.current_time() + self._limits.grace
                for write in self._writes:
                    write.deadline = clients.cancel_scope.deadline

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Application]:
        """Open the application of the model."""
        if isinstance(self._model, Path):
            async with await create_generator(self._environment, self._model) as generator:
                yield Text(self._name, generator, self._limits)
            return
        self.batcher = Batcher(self._environment, self._model, self._limits)
        async with await self._environment.create_session(self._model) as session, trio.open_nursery() as batches:
            batches.start_soon(self.batcher.run)
            yield Inference(self._name, session, self.batcher, self._limits)
            batches.cancel_scope.cancel()

    def close(self) -> None:
        """Take no more requests; :meth:`serve` ends when those that have come are answered, or after some seconds."""
        self._accepting.cancel()

    async def _connection(self, stream: trio.SocketStream) -> None:
        """Serve a client until it goes."""
        self.connections += 1
        try:
            if self.connections > self._limits.connections:
                with trio.move_on_after(self._limits.grace):
                    await stream.send_all(FULL)
                return
            with trio.CancelScope() as closed:
                client = ClientStream(stream, self._writes, self._limits.write_seconds, closed)
                await TCPServer(
                    ASGIWrapper(self.application), self._config, self._context, ConnectionState({}), cast("Any", client)
                )
        except Exception:  # one client's, and no other's
            logging.getLogger("serve").exception("a connection has failed")
        finally:
            self.connections -= 1
            await trio.aclose_forcefully(stream)


async def main(path: Path, port: int, backend: str | None, limits: Limits) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    async with open_ml() as ml, Environment(ml, backend) as env, trio.open_nursery() as nursery:
        model = await trio.to_thread.run_sync(lambda: path if path.is_dir() else OnnxModel.load(path))
        server = Server(path.stem, env, model, limits)
        port = await nursery.start(server.serve, port)
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            print(f"http://127.0.0.1:{port}/v2/models/{path.stem} on {env.device and env.device.info}", flush=True)
            async for _ in signals:
                server.close()
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve an ONNX model over HTTP.")
    parser.add_argument("model", type=Path, help="an .onnx file, or the folder of a language model")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    parser.add_argument("--backend", help="a device of webnn-py devices (default: the best there is)")
    arguments = parser.parse_args()
    trio.run(main, arguments.model, arguments.port, arguments.backend, Limits())
