"""Serve an ONNX model over HTTP: batching, back-pressure, timeouts; a part of the Open Inference Protocol.

python examples/serve.py model.onnx [--port 8000]         (pip install '.[serve]')

The first dimension of every input and output is the batch, and is left open by the model.
``POST /v2/models/NAME/infer`` takes one request with any number of rows; those that wait at the same time are run as
one batch. When too many wait, the answer is 503 at once; when one waits for too long, 504. ``GET /v2/health/ready``
and ``GET /v2/models/NAME`` say what is there. Ctrl-C ends the server when all requests that have come are answered.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import h11
import numpy as np
import trio

from webnn_py import open_ml
from webnn_py.runtime import Environment, InferenceSession

DATA_TYPES: Final = {"FP32": "float32", "FP16": "float16", "INT8": "int8", "UINT8": "uint8"} | {
    f"{sign}INT{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (32, 64)
}
PROTOCOL_NAMES: Final = {ours: theirs for theirs, ours in DATA_TYPES.items()}
Arrays = dict[str, np.ndarray[Any, Any]]


@attrs.frozen
class Limits:
    """How much the server takes.

    Attributes:
        rows: at most so many rows are run as a batch.
        waiting: so many requests may wait for a batch.
        delay: seconds that a batch waits for more rows, if it is not full.
        seconds: how long a request may take from its last byte to its answer.
        idle: how long a client may be silent.
        body: bytes of a request.
    """

    rows: int = 32
    waiting: int = 256
    delay: float = 0.002
    seconds: float = 30.0
    idle: float = 60.0
    body: int = 64 << 20


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is answered with a status and a text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@attrs.define(eq=False)
class Waiting:
    """A request in the queue: its rows, and what came of them."""

    feeds: Arrays
    rows: int
    done: trio.Event = attrs.field(factory=trio.Event)
    outputs: Arrays | None = None
    error: Exception | None = None
    abandoned: bool = False


class Batcher:
    """Runs what waits as batches, one after the other."""

    def __init__(self, session: InferenceSession, limits: Limits) -> None:
        self._session = session
        self._limits = limits
        self._send, self._receive = trio.open_memory_channel[Waiting](limits.waiting)

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
            raise Refusal(400 if isinstance(request.error, TypeError) else 500, str(request.error))
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
                    if rows + request.rows > self._limits.rows or _kind(request) != _kind(batch[0]):
                        held = request  # begins the next batch
                        break
                    batch.append(request)
                    rows += request.rows
            await self._run_batch([request for request in batch if not request.abandoned])

    async def _run_batch(self, batch: list[Waiting]) -> None:
        if not batch:
            return
        rows = sum(request.rows for request in batch)
        padding = (1 << (rows - 1).bit_length()) - rows  # so that a session compiles few graphs
        feeds = {}
        for name, first in batch[0].feeds.items():
            parts = [request.feeds[name] for request in batch]
            feeds[name] = np.concatenate([*parts, np.zeros((padding, *first.shape[1:]), first.dtype)])
        try:
            outputs = await self._session.run(feeds)
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


def _kind(request: Waiting) -> list[tuple[str, Any, tuple[int, ...]]]:
    """What requests of a batch have in common."""
    return sorted((name, array.dtype, array.shape[1:]) for name, array in request.feeds.items())


# --- the protocol ----------------------------------------------------------------------------------------------------


def feeds_of(body: bytes, session: InferenceSession) -> Arrays:
    """The arrays of an inference request.

    Raises:
        Refusal: it is not one, or not one for this model.
    """
    feeds: Arrays = {}
    try:
        for item in json.loads(body)["inputs"]:
            array = np.array(item["data"], DATA_TYPES[item["datatype"]])
            feeds[item["name"]] = array.reshape([int(size) for size in item["shape"]])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise Refusal(400, f"no inference request: {type(error).__name__}: {error}") from None
    if set(feeds) != set(session.input_names):
        raise Refusal(400, f"inputs {sorted(feeds)} given; the model's are {list(session.input_names)}")
    for name, array in feeds.items():
        expected = session.input_descriptors[name]
        shape = expected.shape or array.shape
        fits = len(shape) == array.ndim and all(
            isinstance(size, str) or size == given for size, given in zip(shape, array.shape, strict=True)
        )
        if array.dtype.name != expected.data_type or not fits or not array.ndim or not array.size:
            raise Refusal(400, f"input {name!r} is {array.dtype} {list(array.shape)}; it must be {expected}")
    if len({array.shape[0] for array in feeds.values()}) != 1:
        raise Refusal(400, "the inputs have different numbers of rows")
    return feeds


def described(name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """An inference response."""
    return {
        "model_name": name,
        "outputs": [
            {
                "name": key,
                "shape": list(array.shape),
                "datatype": PROTOCOL_NAMES[array.dtype.name],
                "data": array.ravel().tolist(),
            }
            for key, array in arrays.items()
        ],
    }


class Server:
    """One model, over HTTP/1.1."""

    def __init__(self, name: str, session: InferenceSession, limits: Limits) -> None:
        self._name = name
        self._session = session
        self._limits = limits
        self._batcher = Batcher(session, limits)

    async def serve(self, port: int, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer on the loopback interface until :meth:`close`; started, it tells the port."""
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        async with trio.open_nursery() as batches:
            batches.start_soon(self._batcher.run)
            async with trio.open_nursery() as connections:
                self._closing = connections.cancel_scope
                task_status.started(listeners[0].socket.getsockname()[1])
                connections.start_soon(partial(trio.serve_listeners, self._connection, listeners))
            batches.cancel_scope.cancel()

    def close(self) -> None:
        """Take no more requests; :meth:`serve` ends when those that have come are answered."""
        self._closing.cancel()

    async def _connection(self, stream: trio.SocketStream) -> None:
        """Answer a client's requests one by one, until it goes."""
        connection = h11.Connection(h11.SERVER)
        try:
            async with stream:
                await self._exchange(connection, stream)
                while set(connection.states.values()) == {h11.DONE}:
                    connection.start_next_cycle()
                    await self._exchange(connection, stream)
        except (trio.BrokenResourceError, trio.TooSlowError, h11.RemoteProtocolError):
            return  # the client has gone, is silent, or speaks something else

    async def _exchange(self, connection: h11.Connection, stream: trio.SocketStream) -> None:
        event = await self._next_event(connection, stream)
        if not isinstance(event, h11.Request):
            return
        with trio.CancelScope(shield=True):  # a request that has begun is answered
            try:
                body = await self._body(connection, stream)
                status, answer = 200, await self._answer(event.method, event.target.decode("latin-1"), body)
            except Refusal as refusal:
                status, answer = refusal.status, {"error": str(refusal)}
            content = json.dumps(answer).encode()
            headers = [("content-type", "application/json"), ("content-length", str(len(content)))]
            if status == 503:
                headers.append(("retry-after", "1"))
            with trio.fail_after(self._limits.idle):
                for part in (h11.Response(status_code=status, headers=headers), h11.Data(content), h11.EndOfMessage()):
                    await stream.send_all(connection.send(part) or b"")

    async def _next_event(self, connection: h11.Connection, stream: trio.SocketStream) -> Any:
        while (event := connection.next_event()) is h11.NEED_DATA:
            with trio.fail_after(self._limits.idle):
                connection.receive_data(await stream.receive_some())
        return event

    async def _body(self, connection: h11.Connection, stream: trio.SocketStream) -> bytes:
        body = bytearray()
        if connection.they_are_waiting_for_100_continue:
            await stream.send_all(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        while isinstance(event := await self._next_event(connection, stream), h11.Data):
            body += event.data
            if len(body) > self._limits.body:
                raise Refusal(413, f"a request may have {self._limits.body} bytes")
        return bytes(body)

    async def _answer(self, method: bytes, target: str, body: bytes) -> dict[str, Any]:
        model = f"/v2/models/{self._name}"
        if (method, target) == (b"POST", f"{model}/infer"):
            return described(self._name, await self._batcher.infer(feeds_of(body, self._session)))
        if method == b"GET" and target in {"/v2/health/live", "/v2/health/ready", f"{model}/ready"}:
            return {"ready": True}
        if (method, target) == (b"GET", model):
            inputs, outputs = [
                [
                    {
                        "name": name,
                        "datatype": PROTOCOL_NAMES.get(item.data_type, item.data_type),
                        "shape": [size if isinstance(size, int) else -1 for size in item.shape or ()],
                    }
                    for name, item in descriptors.items()
                ]
                for descriptors in (self._session.input_descriptors, self._session.output_descriptors)
            ]
            return {"name": self._name, "platform": "webnn_py", "inputs": inputs, "outputs": outputs}
        raise Refusal(404, f"{method.decode('latin-1')} {target}: there is POST {model}/infer, and GET {model}")


async def main(path: Path, port: int, backend: str | None, limits: Limits) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    async with open_ml() as ml, Environment(ml, backend) as env, trio.open_nursery() as nursery:
        server = Server(path.stem, await env.create_session(path), limits)
        port = await nursery.start(server.serve, port)
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            print(f"http://127.0.0.1:{port}/v2/models/{path.stem} on {env.device and env.device.info}", flush=True)
            async for _ in signals:
                server.close()
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve an ONNX model over HTTP.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    parser.add_argument("--backend", help="numpy or wgpu (default: a GPU if there is one)")
    arguments = parser.parse_args()
    trio.run(main, arguments.model, arguments.port, arguments.backend, Limits())
