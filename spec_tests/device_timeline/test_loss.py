"""A device that is gone: the context learns of it on the script timeline, and everything is told."""

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_number
from webnn_py import InvalidStateError, MLGraphBuilder, UnknownError
from webnn_py.errors import DestroyedBufferError


async def test_lost_tells_the_reason_of_the_device(fake, fake_context):
    fake.lost("driver reset")
    assert (await fake_context.lost).message == "driver reset"


async def test_until_the_script_timeline_has_run_the_loss_nothing_is_lost(ml, fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    ml.script_timeline.pause()
    fake.lost("driver reset")

    assert fake_context.lost.state == "pending"
    promise = fake_context.read_buffer(buffer)
    assert promise.state == "pending"
    await ml.script_timeline.step()
    assert fake_context.lost.state == "fulfilled"
    assert promise.state == "rejected"


async def test_results_queued_before_the_loss_arrive(ml, fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    ml.script_timeline.pause()
    promise = fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()
    fake.lost("driver reset")
    await ml.script_timeline.step(2)
    np.testing.assert_array_equal(await promise, [1, 2])
    assert fake_context.lost.state == "fulfilled"


async def test_everything_that_is_pending_rejects_with_the_reason(fake, fake_context):
    buffer = await zeroed(fake_context, [2])
    finish = fake.waiting["write"] = trio.Event()
    fake_context.write_buffer(buffer, np.ones(2, np.float32))
    out = np.full(2, 9, np.float32)
    promises = {
        "read_buffer": fake_context.read_buffer(buffer),
        "read_buffer with out": fake_context.read_buffer(buffer, out=out),
        "create_buffer": fake_context.create_buffer(data_type="float32", shape=[2]),
        "create_constant_buffer": fake_context.create_constant_buffer(bytes(2), data_type="uint8", shape=[2]),
        "build": build_add_number(fake_context, 1, [2]),
    }
    await wait_all_tasks_blocked()
    fake.lost("driver reset")
    await fake_context.lost
    finish.set()

    for name, promise in promises.items():
        with pytest.raises(InvalidStateError, match=rf"{name.split()[0]}\(\): .*driver reset"):
            await promise
    await fake_context.drain()
    np.testing.assert_array_equal(out, [9, 9])
    assert fake.log == ["allocate", "write", "stop", "free", "close"]
    assert fake_context.statistics().live_bytes == 0


async def test_every_later_call_is_refused_with_the_reason(fake, fake_context):
    buffer, other = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    graph = await build_add_number(fake_context, 1, [2])
    weights = await constant(fake_context, [1, 2])
    builder = MLGraphBuilder(fake_context)
    operand = builder.input("x", data_type="float32", shape=[2])
    fake.lost("driver reset")
    await fake_context.lost

    later = [
        (InvalidStateError, lambda: fake_context.create_buffer(data_type="float32", shape=[2])),
        (InvalidStateError, lambda: fake_context.create_constant_buffer(bytes(2), data_type="uint8", shape=[2])),
        (DestroyedBufferError, lambda: fake_context.read_buffer(buffer)),
        (DestroyedBufferError, lambda: fake_context.write_buffer(buffer, np.ones(2, np.float32))),
        (InvalidStateError, lambda: fake_context.dispatch(graph, {"x": buffer}, {"y": other})),
        (InvalidStateError, lambda: MLGraphBuilder(fake_context)),
        (InvalidStateError, lambda: builder.add(operand, operand)),
        (InvalidStateError, lambda: builder.build({"y": operand})),
        (DestroyedBufferError, lambda: builder.constant(weights)),
    ]
    for error, call in later:
        with pytest.raises(error, match="driver reset"):
            await call()


async def test_the_first_reason_stays(fake, fake_context):
    fake.lost("driver reset")
    fake.lost("driver reset again")
    await fake_context.lost
    fake_context.destroy()
    assert (await fake_context.lost).message == "driver reset"
    await fake_context.drain()
    assert fake.log == ["stop", "close"]


async def test_a_device_that_goes_after_destroy_changes_nothing(fake, fake_context):
    fake_context.destroy()
    fake.lost("driver reset")
    await fake_context.drain()
    assert "destroy() was called" in (await fake_context.lost).message


async def test_a_loss_leaves_other_contexts_alone_and_a_new_context_works(ml, fake, fake_context):
    other = await ml.create_context(backend="numpy")
    kept = await filled(other, [1, 2])
    fake.lost("driver reset")
    await fake_context.lost
    np.testing.assert_array_equal(await other.read_buffer(kept), [1, 2])

    fresh = await ml.create_context(backend="numpy")
    graph = await build_add_number(fresh, 1, [2])
    source, target = await filled(fresh, [1, 2]), await zeroed(fresh, [2])
    fresh.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await fresh.read_buffer(target), [2, 3])


async def test_an_error_of_the_device_before_the_loss_is_told_as_an_error(ml, fake, fake_context):
    """As in the text: what fails before the loss has reached the script rejects with its own error."""
    buffer = await zeroed(fake_context, [2])
    ml.script_timeline.pause()
    fake.failing["read"] = RuntimeError("no answer")
    promise = fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()
    fake.lost("driver reset")
    ml.script_timeline.resume()
    with pytest.raises(UnknownError, match="no answer"):
        await promise


async def test_a_lost_context_leaves_the_register_of_contexts(ml, fake, fake_context):
    assert list(ml._contexts) == [fake_context]
    fake.lost("driver reset")
    await fake_context.lost
    await wait_all_tasks_blocked()
    assert list(ml._contexts) == []
