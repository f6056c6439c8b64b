"""The next run of a graph is encoded while the host waits, computes the same, and is dropped with the graph."""

import numpy as np
import pytest

from spec_tests.support.stand_ins import noted
from spec_tests.support.watched_device import assert_lost
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu import interop
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.runtime import commands_ahead, waiting
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue
from webnn_py.devices.wgpu.runtime.memory import STORAGE

pytestmark = pytest.mark.sampled(1)

WIDTH = 24
PRODUCTS = 5
IN_A_PIECE = 2
PIECES = -(-PRODUCTS // IN_A_PIECE)


@pytest.fixture
def ahead(monkeypatch):
    """Waits have all the time that there is; how many command buffers each submission of some has had."""
    for module, name, value in (
        (commands_ahead, "LEAST_LAUNCHES_AHEAD", 1),
        (commands_ahead, "MOST_AHEAD", IN_A_PIECE),
        (waiting, "BLOCK_SECONDS", -1e9),
    ):
        monkeypatch.setattr(module, name, value)
    counts = []
    sizes = lambda _self, _launches, finished=(): counts.extend([len(finished)] if finished else [])  # noqa: E731
    noted(monkeypatch, ContextQueue, "_submit", sizes)
    return counts


async def used(context):
    """Return a model that has run three times, and its buffers."""
    model = await Model(context).build()
    x, y = await model.buffers()
    for number in range(3):
        await model.check(x, y, number)
    return model, x, y


class Model:
    """A chain of products, none of which becomes part of another kernel, and buffers for it."""

    def __init__(self, context):
        rng = np.random.default_rng(4)
        self.context = context
        self.weights = [rng.standard_normal((WIDTH, WIDTH), np.float32) / WIDTH for _ in range(PRODUCTS)]

    async def build(self):
        builder = MLGraphBuilder(self.context)
        y = builder.input("x", data_type="float32", shape=[WIDTH, WIDTH])
        for weight in self.weights:
            y = builder.matmul(y, builder.constant(weight))
        self.graph = await builder.build({"y": y})
        return self

    async def buffers(self):
        options = {"data_type": "float32", "shape": [WIDTH, WIDTH], "readable": True, "writable": True}
        return [await self.context.create_buffer(**options) for _ in range(2)]

    async def check(self, x, y, number):
        data = np.full((WIDTH, WIDTH), number, np.float32)
        self.context.write_buffer(x, data)
        self.context.dispatch(self.graph, {"x": x}, {"y": y})
        for weight in self.weights:
            data = data @ weight
        np.testing.assert_allclose(await self.context.read_buffer(y), data, rtol=1e-4, atol=1e-6)


async def test_a_graph_that_runs_again_and_again_is_encoded_ahead(gpu, ahead):
    model, x, y = await used(gpu)
    assert ahead == [], "the third run's wait is the first that knows how long it takes"
    for number in range(3):
        await model.check(x, y, number)
    assert ahead == [PIECES] * 3


async def test_other_buffers_are_not_those_that_it_is_encoded_for(gpu, ahead):
    model = await Model(gpu).build()
    pairs = [await model.buffers() for _ in range(2)]
    for number in range(4):
        await model.check(*pairs[0], number)
    assert ahead
    count = len(ahead)
    for number in range(4):
        await model.check(*pairs[(number + 1) % 2], number)
    assert len(ahead) == count


async def test_a_released_graph_lets_go_of_it(gpu, queue, ahead, monkeypatch):
    model, *_ = await used(gpu)
    given_up = noted(monkeypatch, queue.engine, "release", len)
    model.graph.destroy()
    await gpu.drain()
    assert PIECES in given_up


async def test_what_uses_a_users_buffer_is_never_encoded_ahead(ml, ahead):
    device = request_device(choose("default", software=True))
    gpu = await ml.create_context(gpu_device=device)
    model = await Model(gpu).build()
    x, _ = await model.buffers()
    given = device.create_buffer(size=WIDTH * WIDTH * 4, usage=STORAGE)
    y = interop.import_buffer(gpu, given, data_type="float32", shape=[WIDTH, WIDTH], readable=True)
    for number in range(4):
        await model.check(x, y, number)
    assert ahead == []


async def test_it_is_not_submitted_to_a_device_that_is_lost(ml, ahead):
    device = request_device(choose("default", software=True))
    gpu = await ml.create_context(gpu_device=device)
    model, x, y = await used(gpu)
    await model.check(x, y, 3)
    assert ahead == [PIECES]
    device.destroy()
    gpu.dispatch(model.graph, {"x": x}, {"y": y})
    await assert_lost(gpu, y)
