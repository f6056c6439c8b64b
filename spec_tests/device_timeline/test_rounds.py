"""Hundreds of rounds leave no bytes on the device, and no objects in the process or in its driver."""

import gc
import threading
from contextlib import ExitStack, contextmanager

import attrs
import numpy as np
import pytest
import trio
import wgpu

from spec_tests.support.buffers import filled
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.watched_device import WatchedDevice, quiet
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu.runtime import device_loss

ROUNDS = {"quick": 50, "full": 50, "thorough": 200}
FEWEST_LEAKED = 50
"""So many objects are there more where a round of a quick run leaves one; fewer may be threads and caches."""
PATIENCE = 50
"""So often it is looked again: what leaks stays."""


@pytest.fixture(autouse=True)
def _untraced_threads():
    """Coverage keeps a few objects of each thread that was ever traced, and wgpu-py starts one for each device."""
    trace = threading.gettrace()
    threading.settrace(None)
    yield
    threading.settrace(trace)


async def whole_round(context):
    """Create, build, dispatch, read and destroy, also with a failed and an abandoned read."""
    weights = await context.create_constant_buffer(bytes(range(4)), data_type="uint8", shape=[4])
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="uint8", shape=[4])
    more = builder.constant(np.arange(4, dtype=np.uint8))
    y = builder.mul(builder.add(builder.add(x, builder.constant(weights)), more), x)
    graph = await builder.build({"y": y, "z": builder.reverse(y)})
    source = await context.create_buffer(data_type="uint8", shape=[4], writable=True)
    targets = [await context.create_buffer(data_type="uint8", shape=[4], readable=True) for _ in "yz"]
    context.write_buffer(source, bytes([1, 1, 2, 2]))
    context.dispatch(graph, {"x": source}, dict(zip("yz", targets, strict=True)))
    np.testing.assert_array_equal(await context.read_buffer(targets[0]), [1, 3, 12, 16])
    np.testing.assert_array_equal(await context.read_buffer(targets[1]), [16, 12, 3, 1])
    abandoned = context.read_buffer(targets[0])
    for thing in (graph, weights, source, *targets):
        thing.destroy()
    assert abandoned.state == "rejected"
    await context.drain()
    assert_nothing_lives(context)


@contextmanager
def no_device_asked():
    """While this lasts, no thread asks a device whether it is lost, which takes a buffer for a moment."""
    with ExitStack() as stack:
        for watch in device_loss._LISTENER._all():
            stack.enter_context(watch._asking)
        yield


@attrs.frozen
class Counted:
    """Numbers of objects: those that Python tracks, and those of each kind in the WebGPU library."""

    tracked: int
    native: dict[str, int]

    @classmethod
    def now(cls):
        gc.collect()
        with no_device_asked():
            kinds = wgpu.diagnostics.wgpu_native_counts.get_dict()
        native = {kind: counts["count"] for kind, counts in kinds.items() if kind != "total"}
        # With those that conftest.py has frozen: what takes the place of one of them is none more.
        return cls(len(gc.get_objects()) + gc.get_freeze_count(), native)

    def beyond(self, before):
        """Return how many objects have come since ``before``: of WebGPU by their kind, and of Python."""
        more = {kind: count - before.native[kind] for kind, count in self.native.items() if count > before.native[kind]}
        return more, self.tracked - before.tracked


@pytest.fixture
def rounds(pytestconfig):
    return ROUNDS[pytestconfig.option.depth]


async def assert_nothing_grows(rounds, do_round):
    """Rounds leave as much behind as there was when the first ones had filled what is kept for later."""
    for _ in range(20):
        await do_round()
    before = Counted.now()
    for _ in range(rounds):
        await do_round()
    more, grown = Counted.now().beyond(before)
    for _ in range(PATIENCE):
        if not more and grown < FEWEST_LEAKED:
            break
        await trio.sleep(0.1)  # threads of a busy machine have yet to let go of the last round's
        more, grown = Counted.now().beyond(before)
    assert not more, f"so many objects of WebGPU more after {rounds} rounds: {more}"
    assert grown < FEWEST_LEAKED, f"{grown} objects of Python more after {rounds} rounds"


async def test_rounds_in_one_context_leave_nothing_behind(rounds, context):
    async def one_round():
        await whole_round(context)
        await quiet(context)

    await assert_nothing_grows(rounds, one_round)


@pytest.mark.parametrize("end", ["destroyed", "lost"])
async def test_contexts_that_end_leave_nothing_behind(rounds, ml, backend, end, caplog):
    for engine in ("wgpu", "wgpudawn"):
        caplog.set_level("CRITICAL", logger=engine)  # pytest keeps every record

    async def one_context():
        context = await ml.create_context(backend=backend)
        await whole_round(context)
        buffer = await filled(context, [1, 2])
        await context.drain()
        context.device_timeline.pause()  # wgpu-native keeps a few bytes of each request that a lost device refuses
        pending = context.read_buffer(buffer)
        if end == "destroyed":
            context.destroy()
        else:
            await WatchedDevice(context).lose()
            await context.lost
        context.device_timeline.resume()
        await context.drain()
        assert pending.state == "rejected"
        assert context.statistics().live_bytes == 0
        await quiet(context)

    await assert_nothing_grows(rounds, one_context)
    assert len(ml._contexts) == 0
