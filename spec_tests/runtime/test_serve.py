"""The example of a server: no request is lost, whatever the load; what cannot be served is told at once."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import trio

from spec_tests.support import depth
from spec_tests.support.backends import BACKENDS
from spec_tests.support.onnx_programs import product

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve.py"
W = np.arange(12, dtype=np.float32).reshape(4, 3)
CLIENTS = 40


def load_example():
    pytest.importorskip("h11")
    specification = importlib.util.spec_from_file_location("serve", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


example = load_example()


class Client:
    """A connection, on which requests follow each other."""

    def __init__(self, stream):
        self._stream = stream
        self._received = b""

    async def ask(self, method, target, content=b""):
        """The status of an answer, and the answer."""
        head = f"{method} {target} HTTP/1.1\r\nhost: here\r\ncontent-length: {len(content)}\r\n\r\n"
        await self._stream.send_all(head.encode() + content)
        while b"\r\n\r\n" not in self._received:
            await self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(self._received) < length:
            await self._receive()
        answer, self._received = self._received[:length], self._received[length:]
        return int(head.split()[1]), json.loads(answer)

    async def _receive(self):
        received = await self._stream.receive_some()
        assert received, "the server has closed the connection"
        self._received += received

    async def infer(self, rows):
        item = {"name": "x", "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
        return await self.ask("POST", "/v2/models/model/infer", json.dumps({"inputs": [item]}).encode())


@asynccontextmanager
async def serving(session, **limits):
    """The server, and how to connect to it."""
    server = example.Server("model", session, example.Limits(**limits))
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


@pytest.fixture
async def session(env):
    return await env.create_session(product(W))


def assert_right(status, answer, rows):
    assert status == 200, answer
    output = answer["outputs"][0]
    assert (output["name"], output["datatype"], output["shape"]) == ("y", "FP32", [len(rows), 3])
    np.testing.assert_array_equal(np.reshape(output["data"], [-1, 3]), rows @ W)


async def test_under_load_no_request_is_lost(request, session, backend, capsys):
    # Ten thousand take the processor a quarter of a minute: on one device a day.
    has_turn = depth.has_turn(request.config, BACKENDS.index(backend), len(BACKENDS))
    count = 10_000 if depth.is_thorough(request.config) or (depth.is_full(request.config) and has_turn) else 1000
    latencies = []

    async def client(connect, number):
        connection = await connect()
        for index in range(number, count, CLIENTS):
            rows = np.full((1 + index % 3, 4), index, np.float32)
            start = time.perf_counter()
            status, answer = await connection.infer(rows)
            latencies.append(time.perf_counter() - start)
            assert_right(status, answer, rows)

    async with serving(session) as (_, connect), trio.open_nursery() as nursery:
        for number in range(CLIENTS):
            nursery.start_soon(client, connect, number)
    assert len(latencies) == count
    half, most, worst = (1000 * value for value in np.percentile(latencies, [50, 99, 100]))
    with capsys.disabled():
        print(
            f"\n{backend}: {count} requests, {CLIENTS} clients: median {half:.1f} ms, 99 % {most:.1f}, all {worst:.1f}"
        )


async def test_what_waits_together_is_one_batch(session, env, monkeypatch):
    batches = []
    run = type(session).run

    async def watched(self, feeds):
        batches.append(feeds["x"].shape[0])
        return await run(self, feeds)

    monkeypatch.setattr(type(session), "run", watched)
    answered = []

    async def client(connect, rows):
        answered.append(await (await connect()).infer(rows))

    async with serving(session, delay=30, rows=6) as (_, connect), trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(client, connect, np.ones((2, 4), np.float32))
    assert batches == [8], "six rows, padded to a power of two"
    for status, answer in answered:
        assert_right(status, answer, np.ones((2, 4), np.float32))


async def test_too_many_requests_are_refused_at_once_and_the_others_answered(session, env):
    timeline = env.device.context.device_timeline
    timeline.pause()
    answers = []

    async def client(connect):
        answers.append(await (await connect()).infer(np.ones((1, 4), np.float32)))
        if sum(status == 503 for status, _ in answers) == 12 - 2 - 2:
            timeline.resume()  # the others are in a batch that runs, in one that is made, or wait

    async with serving(session, waiting=2, rows=1) as (_, connect), trio.open_nursery() as nursery:
        for _ in range(12):
            nursery.start_soon(client, connect)
        with trio.move_on_after(60):
            while len(answers) < 12:
                await trio.lowlevel.checkpoint()
        timeline.resume()
    statuses = sorted(status for status, _ in answers)
    assert len(statuses) == 12
    assert set(statuses) == {200, 503}
    assert all("try again later" in answer["error"] for status, answer in answers if status == 503)


async def test_a_request_that_takes_too_long_is_told_so(session, env, mock_clock):
    mock_clock.rate = 1  # as the wall's, and it jumps when told
    timeline = env.device.context.device_timeline
    rows = np.ones((1, 4), np.float32)
    async with serving(session, seconds=600) as (_, connect), trio.open_nursery() as nursery:
        client = await connect()
        timeline.pause()
        late = []

        @nursery.start_soon
        async def wait_for_it():
            late.append(await client.infer(rows))
            timeline.resume()
            assert_right(*await client.infer(rows), rows)

        while not timeline.statistics().queued_operations:
            await trio.lowlevel.checkpoint()
        mock_clock.jump(600)
    assert [status for status, _ in late] == [504]


REFUSED = {
    "another target": ("GET", "/v2", b"", 404),
    "no JSON": ("POST", "/v2/models/model/infer", b"{", 400),
    "no inputs": ("POST", "/v2/models/model/infer", b"[]", 400),
    "unknown type": (
        "POST",
        "/v2/models/model/infer",
        b'{"inputs": [{"name": "x", "datatype": "X", "data": []}]}',
        400,
    ),
    "wrong name": (
        "POST",
        "/v2/models/model/infer",
        b'{"inputs": [{"name": "z", "datatype": "FP32", "shape": [1], "data": [1]}]}',
        400,
    ),
    "wrong shape": (
        "POST",
        "/v2/models/model/infer",
        b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}',
        400,
    ),
    "too long": ("POST", "/v2/models/model/infer", b" " * 5000, 413),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_bad_request_is_refused_and_the_server_goes_on(session, case):
    method, target, content, expected = REFUSED[case]
    async with serving(session, body=4000) as (_, connect):
        status, answer = await (await connect()).ask(method, target, content)
        assert status == expected, answer
        assert answer["error"]
        status, answer = await (await connect()).ask("GET", "/v2/models/model")
        assert (status, answer["inputs"][0]["shape"]) == (200, [-1, 4])


async def test_closing_answers_what_has_come(session, env):
    timeline = env.device.context.device_timeline
    rows = np.ones((1, 4), np.float32)
    answers = []

    async def client(connect):
        answers.append(await (await connect()).infer(rows))

    async with serving(session) as (server, connect), trio.open_nursery() as nursery:
        timeline.pause()
        for _ in range(3):
            nursery.start_soon(client, connect)
        while not timeline.statistics().queued_operations:
            await trio.lowlevel.checkpoint()
        server.close()
        timeline.resume()
    assert answers
    for status, answer in answers:
        assert_right(status, answer, rows)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to a process here")
def test_the_script_serves_until_it_is_interrupted(tmp_path):
    (tmp_path / "model.onnx").write_bytes(product(W))
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "model.onnx"), "--port", "0", "--backend", "numpy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), process.communicate()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output, errors) == (0, "", "")
