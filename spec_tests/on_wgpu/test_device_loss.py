"""A device that is lost: noticed by whatever touches it first, or by asking it."""

import gc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import zeroed
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.four_floats import ONES, buffers
from spec_tests.support.stand_ins import noted
from spec_tests.support.watched_device import assert_lost, finish_work, quiet
from webnn_py import InvalidStateError, MLPromise, OperationError, UnknownError
from webnn_py.buffer_copies import clear_buffer, copy_buffer


async def test_a_loss_is_noticed_though_nothing_uses_the_device(gpu):
    gpu.device.backend.device.destroy()
    with trio.fail_after(60):
        assert "lost" in (await gpu.lost).message


FIRST = {
    "write_buffer": lambda s: s.gpu.write_buffer(s.x, ONES),
    "a dispatch as before": lambda s: s.gpu.dispatch(s.graph, {"x": s.x}, {"y": s.y}),
    "a dispatch with other buffers": lambda s: s.gpu.dispatch(s.graph, {"x": s.y}, {"y": s.x}),
    "read_buffer": lambda s: s.gpu.read_buffer(s.x),
    "copy_buffer": lambda s: copy_buffer(s.gpu, s.x, s.y),
    "copy_buffer by a kernel": lambda s: copy_buffer(s.gpu, s.bytes, s.bytes, destination_offset=5, count=2),
    "clear_buffer": lambda s: clear_buffer(s.gpu, s.x),
    "create_buffer": lambda s: s.gpu.create_buffer(data_type="int8", shape=[1]),
    "create_constant_buffer": lambda s: s.gpu.create_constant_buffer(ONES, data_type="float32", shape=[4]),
    "build": lambda s: build_add_number(s.gpu, 7, [3, 5]),
}
"""The operations that may be the first on a lost device."""


@pytest.mark.parametrize("what", FIRST)
async def test_whatever_touches_a_lost_device_first_notices_the_loss(gpu, what):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    eight = await zeroed(gpu, [8], "int8")
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(
        await gpu.read_buffer(y), ONES
    )  # now everything that a dispatch and a read need is there
    gpu.device.backend.device.destroy()

    answer = FIRST[what](SimpleNamespace(gpu=gpu, graph=graph, x=x, y=y, bytes=eight))
    await quiet(gpu)

    assert gpu.lost.state == "fulfilled", f"{what} did not notice that the device is lost"
    assert "lost" in (await gpu.lost).message
    if isinstance(answer, MLPromise):
        with pytest.raises((InvalidStateError, UnknownError, OperationError), match="lost"):
            await answer
    await gpu.device_timeline.wait_ended()
    assert gpu.statistics().live_bytes == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", ["read_buffer", "create_buffer", "create_constant_buffer", "build"])
async def test_what_a_lost_device_refuses_is_told_by_the_loss_alone_where_nobody_awaits_it(gpu, what):
    (x,) = await buffers(gpu, 1)
    gpu.device.backend.device.destroy()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        FIRST[what](SimpleNamespace(gpu=gpu, x=x))
        await gpu.lost
        await gpu.device_timeline.wait_ended()
    assert [str(warning.message) for warning in told] == []


@pytest.mark.parametrize("when", ["before the answer", "behind the answer"])
async def test_a_read_whose_device_is_lost_before_the_bytes_are_copied_is_rejected(gpu, queue, monkeypatch, when):
    (x,) = await buffers(gpu, 1)
    gpu.write_buffer(x, ONES)
    backend = gpu.device.backend

    def lose(ticket):
        while when == "behind the answer" and ticket.done is None:  # another operation's look brings it
            queue.wait(ticket, is_shared=False)
        backend.device.destroy()

    noted(monkeypatch, backend, "_wait", lose)
    await assert_lost(gpu, x)


async def test_a_device_that_is_destroyed_when_a_read_has_been_answered_rejects_it(gpu, queue, monkeypatch):
    """Between the answer and the moment when somebody takes the bytes."""
    (x,) = await buffers(gpu, 1)
    gpu.write_buffer(x, ONES)
    await gpu.drain()
    backend = gpu.device.backend
    poll = queue.poll

    def answer_then_destroy():
        finish_work(backend)
        backend.device.destroy()
        poll()  # which lets go of the memory

    with monkeypatch.context() as patch:
        patch.setattr(queue, "poll", answer_then_destroy)
        await assert_lost(gpu, x)
    await gpu.device_timeline.wait_ended()
    assert gpu.statistics().live_bytes == 0


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("error::RuntimeWarning")
async def test_a_dispatch_that_a_lost_device_never_got_is_told_by_the_loss_alone(gpu):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    await gpu.read_buffer(y)
    gpu.device_timeline.pause()
    gpu.dispatch(graph, {"x": x}, {"y": y})
    gpu.write_buffer(x, ONES)  # before which the dispatch is submitted
    y.destroy()
    gpu.device.backend.device.destroy()
    await gpu.device_timeline.step()
    await gpu.device_timeline.step()
    del y
    gc.collect()  # the output, which nobody can read any more, does not warn besides
    gpu.device_timeline.resume()
    assert "lost" in (await gpu.lost).message
