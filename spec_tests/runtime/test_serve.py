"""The example of a server loses no request under any load, and refuses at once the requests that it cannot serve."""

import json
import math
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from functools import partial

import numpy as np
import pytest
import trio

from spec_tests.models.decoder_models import SIZES, Form, write_folder
from spec_tests.support import depth
from spec_tests.support.cells import cells
from spec_tests.support.examples import EXAMPLES, load_example
from spec_tests.support.onnx_programs import product
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime import Environment

W = np.arange(12, dtype=np.float32).reshape(4, 3)
CLIENTS = 40


pytest.importorskip("hypercorn")
example = load_example("serve")
ONE_ROW = np.ones((1, 4), np.float32)


class Client:
    """A connection, on which requests follow each other."""

    def __init__(self, stream):
        self.stream = stream
        self._received = b""

    async def ask(self, method, target, content=b"", **headers):
        """Send a request and return the status and the body of its answer."""
        await self.stream.send_all(head_of(method, target, len(content), **headers) + content)
        status, _, answer = await self.answer(method)
        return status, json.loads(answer, parse_constant=refuse) if answer else None

    async def answer(self, method="POST"):
        """Return the status, the headers and the body of the next answer."""
        while b"\r\n\r\n" not in self._received:
            await self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = 0 if method == "HEAD" else int(headers.get("content-length", "0"))
        while len(self._received) < length:
            await self._receive()
        answer, self._received = self._received[:length], self._received[length:]
        return int(lines[0].split()[1]), headers, answer

    async def _receive(self):
        received = await self.stream.receive_some()
        assert received, "the server has closed the connection"
        self._received += received

    async def infer(self, rows):
        return await self.ask("POST", "/v2/models/model/infer", inference(rows.tolist(), rows.shape))


def head_of(method, target, length, **headers):
    lines = [f"{method} {target} HTTP/1.1", "host: here", f"content-length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def inference(data, shape, **changes):
    item = {"name": "x", "datatype": "FP32", "shape": list(shape), "data": data}
    return json.dumps({"inputs": [item | changes]}).encode()


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


@asynccontextmanager
async def serving(env, model=None, **limits):
    """Serve a model; yield the server and a function that connects to it."""
    loaded = OnnxModel.load(product(W)) if model is None else model
    server = example.Server("model", env, loaded, example.Limits(**limits))
    async with trio.open_nursery() as nursery:
        port = await nursery.start(server.serve, 0)

        streams = []

        async def connect():
            streams.append(await trio.open_tcp_stream("127.0.0.1", port))
            return Client(streams[-1])

        try:
            yield server, connect
        finally:
            for stream in streams:
                await stream.aclose()
            server.close()


def assert_right(status, answer, rows):
    assert status == 200, answer
    output = answer["outputs"][0]
    assert (output["name"], output["datatype"], output["shape"]) == ("y", "FP32", [len(rows), 3])
    np.testing.assert_array_equal(np.reshape(output["data"], [-1, 3]), rows @ W)


async def test_under_load_no_request_is_lost(pytestconfig, env, backend, capsys):
    count = depth.amount(pytestconfig, quick=300, full=1000, thorough=10_000)
    latencies = []

    async def client(connect, number):
        connection = await connect()
        for index in range(number, count, CLIENTS):
            rows = np.full((1 + index % 3, 4), index, np.float32)
            start = time.perf_counter()
            status, answer = await connection.infer(rows)
            latencies.append(time.perf_counter() - start)
            assert_right(status, answer, rows)

    async with serving(env) as (_, connect), trio.open_nursery() as nursery:
        for number in range(CLIENTS):
            nursery.start_soon(client, connect, number)
    assert len(latencies) == count
    half, most, worst = (1000 * value for value in np.percentile(latencies, [50, 99, 100]))
    with capsys.disabled():
        print(
            f"\n{backend}: {count} requests, {CLIENTS} clients: median {half:.1f} ms, 99 % {most:.1f}, all {worst:.1f}"
        )


async def assert_alive(connect):
    """Check that a new connection is answered."""
    assert (await (await connect()).ask("GET", "/v2/health/live"))[0] == 200


async def assert_serves(connect):
    """Check that an inference on a new connection gives the right answer."""
    assert_right(*await (await connect()).infer(ONE_ROW), ONE_ROW)


async def paused(env, connect):
    """Pause the device's timeline after a first inference, and return it."""
    await (await connect()).infer(ONE_ROW)
    timeline = env.device.context.device_timeline
    timeline.pause()
    return timeline


async def test_too_many_requests_are_refused_at_once_and_the_others_answered(env):
    answers = []

    async def client(connect):
        answers.append(await (await connect()).infer(ONE_ROW))
        if sum(status == 503 for status, _ in answers) == 12 - 2 - 2:
            timeline.resume()  # the others are in a batch that runs, in one that is made, or wait

    async with serving(env, waiting=2, rows=1) as (_, connect), trio.open_nursery() as nursery:
        timeline = await paused(env, connect)
        for _ in range(12):
            nursery.start_soon(client, connect)
        await until(lambda: len(answers) == 12)
        timeline.resume()
    statuses = sorted(status for status, _ in answers)
    assert len(statuses) == 12
    assert set(statuses) == {200, 503}
    assert all("try again later" in answer["error"] for status, answer in answers if status == 503)


@pytest.fixture
def clock(mock_clock):
    mock_clock.rate = 1  # as a wall clock, which a test advances
    return mock_clock


async def until(condition):
    with trio.move_on_after(60):
        while not condition():
            await trio.lowlevel.checkpoint()


async def test_a_request_that_takes_too_long_is_answered_with_504(env, clock):
    async with serving(env, seconds=600) as (_, connect), trio.open_nursery() as nursery:
        client = await connect()
        timeline = await paused(env, connect)
        late = []

        @nursery.start_soon
        async def wait_for_it():
            late.append(await client.infer(ONE_ROW))
            timeline.resume()
            assert_right(*await client.infer(ONE_ROW), ONE_ROW)

        await until(lambda: timeline.statistics().queued_operations)
        clock.jump(600)
    assert [status for status, _ in late] == [504]


INFER = "/v2/models/model/infer"
ITEM = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}

REFUSED = {
    "another target": ("GET", "/v2", b"", 404),
    "a method that a target does not have": ("POST", "/v2/models/model", b"", 405),
    "no body": ("POST", INFER, b"", 400),
    "no JSON": ("POST", INFER, b"{", 400),
    "no UTF-8": ("POST", INFER, b"\xff", 400),
    "no object": ("POST", INFER, b"[]", 400),
    "deep": ("POST", INFER, b"[" * 3900, 400),
    "no list": ("POST", INFER, b'{"inputs": 1}', 400),
    "too long": ("POST", INFER, b" " * 5000, 413),
} | {
    name: ("POST", INFER, json.dumps({"inputs": [ITEM | changes]}).encode(), 400)
    for name, changes in {
        "unknown type": {"datatype": "X"},
        "another input": {"name": "z"},
        "a name that is a list": {"name": ["x"]},
        "wrong shape": {"shape": [4]},
        "no rows": {"shape": [0, 4], "data": []},
        "a negative size": {"shape": [-1, 4]},
        "a huge size": {"shape": [2**60, 4]},
        "too few data": {"data": [1, 2, 3]},
        "an element that is text": {"data": [1, 2, 3, "four"]},
        "NaN as no JSON": {"data": [1, 2, 3, math.nan]},
    }.items()
}


@cells("case", REFUSED)
async def test_a_bad_request_is_refused_and_the_server_goes_on(ml, case):
    method, target, content, expected = REFUSED[case]
    async with Environment(ml, "numpy") as env, serving(env, body=4000) as (_, connect):
        client = await connect()
        status, answer = await client.ask(method, target, content)
        assert status == expected, answer
        assert answer["error"]
        status, answer = await (client if expected != 413 else await connect()).ask("GET", "/v2/models/model")
        assert (status, answer["inputs"][0]["shape"]) == (200, [-1, 4])


async def test_infinities_and_nan_are_text_both_ways(env):
    async with serving(env) as (_, connect):
        client = await connect()
        content = inference([["NaN", 0, 0, 0], ["Infinity", 0, 0, 0], [0, "-Infinity", 0, 0], [1, 2, 3, 4]], [4, 4])
        status, answer = await client.ask("POST", INFER, content)
        data = np.reshape(answer["outputs"][0]["data"], [4, 3])
        assert (status, data[0].tolist()) == (200, ["NaN"] * 3)
        assert data[1].tolist() == ["NaN", "Infinity", "Infinity"]
        assert data[2].tolist() == ["-Infinity"] * 3
        assert data[3].astype(float).tolist() == (np.float32([1, 2, 3, 4]) @ W).tolist()


# --- clients that are slow, or many ----------------------------------------------------------------------------------


async def test_a_body_that_does_not_come_is_answered_with_408(env, clock):
    async with serving(env, body_seconds=600) as (server, connect):
        client = await connect()
        await client.stream.send_all(head_of("POST", INFER, 100) + b"{")
        await until(lambda: server.application.bytes_of_bodies)
        clock.jump(600)
        status, headers, _ = await client.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert server.application.bytes_of_bodies == 0


async def test_bodies_that_are_too_many_are_refused_until_there_is_room(env):
    async with serving(env, body=1000, bodies=1500) as (server, connect):
        slow = [await connect() for _ in range(2)]
        for client in slow:
            await client.stream.send_all(head_of("POST", INFER, 1000) + b" " * 700)
        await until(lambda: server.application.bytes_of_bodies == 1400)
        status, answer = await (await connect()).ask("POST", INFER, b" " * 200)
        assert (status, "try again later" in answer["error"]) == (503, True)
        for client in slow:
            await client.stream.aclose()
        await until(lambda: server.application.bytes_of_bodies == 0)
        await assert_serves(connect)


async def test_connections_that_are_too_many_are_refused_until_there_is_room(env):
    async with serving(env, connections=2) as (server, connect):
        first, second = await connect(), await connect()
        for client in (first, second):
            assert (await client.ask("GET", "/v2/health/live"))[0] == 200
        assert (await (await connect()).answer())[0] == 503
        await first.stream.aclose()
        await until(lambda: server.connections == 1)
        await assert_alive(connect)


async def test_the_server_ends_although_clients_drip(env, clock):
    ended = trio.Event()
    server = example.Server("model", env, OnnxModel.load(product(W)), example.Limits(grace=600))
    async with trio.open_nursery() as nursery:

        async def serve(*, task_status):
            await server.serve(0, task_status=task_status)
            ended.set()

        port = await nursery.start(serve)
        idle, head, body = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(3)]
        await head.send_all(b"POST / HTTP/1.1\r\nhost:")
        await body.send_all(head_of("POST", INFER, 100) + b"{")
        await until(lambda: server.connections == 3 and server.application.bytes_of_bodies)
        server.close()
        await body.send_all(b" ")
        assert await idle.receive_some() == b""
        assert not ended.is_set()
        clock.jump(600)
        await ended.wait()
        for stream in (idle, head, body):
            await stream.aclose()


# --- sizes and parsing -----------------------------------------------------------------------------------------------


def test_large_integers_are_read_exactly():
    numbers = [9007199254740993, 18446744073709551615]
    assert example.arrays_of(inference(numbers, [2], datatype="UINT64"))["x"].tolist() == numbers


@pytest.mark.parametrize(("data_type", "number"), [("INT8", 128), ("UINT8", -1), ("INT64", 2**63), ("INT32", 1.5)])
def test_integers_that_do_not_fit_are_refused(data_type, number):
    with pytest.raises(example.Refusal, match="no inference request"):
        example.arrays_of(inference([number], [1], datatype=data_type))


async def test_closing_answers_earlier_requests(env):
    answers = []

    async def client(connect):
        answers.append(await (await connect()).infer(ONE_ROW))

    async with serving(env, grace=600) as (server, connect), trio.open_nursery() as nursery:
        timeline = await paused(env, connect)
        for _ in range(3):
            nursery.start_soon(client, connect)
        await until(lambda: timeline.statistics().queued_operations)
        server.close()
        timeline.resume()
    assert answers
    for status, answer in answers:
        assert_right(status, answer, ONE_ROW)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to a process here")
def test_the_script_serves_until_it_is_interrupted(tmp_path):
    (tmp_path / "model.onnx").write_bytes(product(W))
    command = [
        sys.executable,
        str(EXAMPLES / "serve.py"),
        str(tmp_path / "model.onnx"),
        "--port",
        "0",
        "--backend",
        "numpy",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), process.communicate()
        drips = socket.create_connection(("127.0.0.1", int(line.split("/")[2].split(":")[1])))
        drips.sendall(head_of("POST", INFER, 100) + b"{")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output, errors) == (0, "", "")
        drips.close()


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    pytest.importorskip("tokenizers")
    return write_folder(tmp_path_factory.mktemp("decoder"), SIZES["tiny"], Form())


def text_request(text, **parameters):
    return json.dumps({"text_input": text, "parameters": parameters}).encode()


async def streamed(connection, content):
    """Return the pieces of text that come, and what is left of the last one."""
    await connection.stream.send_all(head_of("POST", "/v2/models/model/generate_stream", len(content)) + content)
    received = b""
    while not received.endswith(b"\r\n0\r\n\r\n"):
        received += await connection.stream.receive_some()
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"text/event-stream" in head
    events = [line for line in body.split(b"\r\n") if line.startswith(b"data: ")]
    return [json.loads(event[6:])["text_output"] for event in events]


async def test_a_text_streams(ml, decoder):
    async with Environment(ml, "numpy") as env, serving(env, decoder, texts=1) as (_, connect):
        connection = await connect()
        pieces = await streamed(connection, text_request("hello", max_new_tokens=12))
        assert len(pieces) > 3
        ask = partial(connection.ask, "POST", "/v2/models/model/generate")
        status, whole = await ask(text_request("hello", max_new_tokens=12))
        assert (status, whole["text_output"]) == (200, "".join(pieces))
        for content, words in (
            (b"[]", "no text request"),
            (b'{"text_input": 5}', "text_input must be a text"),
            (text_request("a", beams=3), "parameters has ['beams']"),
            (text_request("a", temperature=-1), "temperature is -1.0; it must be at least 0"),
            (text_request("a", max_new_tokens=999), "beyond the capacity of 256"),
        ):
            status, told = await ask(content)
            assert (status, words in told["error"]) == (400, True), told


async def test_a_client_that_goes_ends_its_text(ml, decoder):
    async with Environment(ml, "numpy") as env, serving(env, decoder, texts=1) as (server, connect):
        leaving, other = await connect(), await connect()
        content = text_request("hello")
        await leaving.stream.send_all(head_of("POST", "/v2/models/model/generate_stream", len(content)) + content)
        await leaving.stream.receive_some()
        await leaving.stream.aclose()
        with trio.fail_after(20):
            status = 503
            while status == 503:
                status, _ = await other.ask("POST", "/v2/models/model/generate", text_request("a", max_new_tokens=1))
        assert status == 200
        assert server.application._texts == 0
