"""A device that is gone: the context learns of it on the script timeline, and everything is told."""

import warnings

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_number
from webnn_py import InvalidStateError, MLGraphBuilder, UnknownError
from webnn_py.errors import DestroyedBufferError


@pytest.fixture(scope="module")
def options(backend):
    """No device of other tests: it will be lost."""
    return {"backend": backend}


async def test_lost_tells_the_reason_of_the_device(device, context):
    await device.lose()
    assert (await context.lost).message.startswith(device.reason)


async def test_until_the_script_timeline_has_run_the_loss_nothing_is_lost(ml, device, context):
    buffer = await filled(context, [1, 2])
    ml.script_timeline.pause()
    await device.lose()

    assert context.lost.state == "pending"
    promise = context.read_buffer(buffer)
    assert promise.state == "pending"
    await ml.script_timeline.step()
    assert context.lost.state == "fulfilled"
    assert promise.state == "rejected"


async def test_results_queued_before_the_loss_arrive(ml, device, context):
    buffer = await filled(context, [1, 2])
    ml.script_timeline.pause()
    promise = context.read_buffer(buffer)
    await device.quiet()
    await device.lose()
    await ml.script_timeline.step(2)
    np.testing.assert_array_equal(await promise, [1, 2])
    assert context.lost.state == "fulfilled"


async def test_everything_that_is_pending_rejects_with_the_reason(device, context):
    buffer = await zeroed(context, [2])
    finish = device.waiting["write"] = trio.Event()
    context.write_buffer(buffer, np.ones(2, np.float32))
    out = np.full(2, 9, np.float32)
    promises = {
        "read_buffer": context.read_buffer(buffer),
        "read_buffer with out": context.read_buffer(buffer, out=out),
        "create_buffer": context.create_buffer(data_type="float32", shape=[2]),
        "create_constant_buffer": context.create_constant_buffer(bytes(2), data_type="uint8", shape=[2]),
        "build": build_add_number(context, 1, [2]),
    }
    await device.quiet()
    await device.lose()
    await context.lost
    finish.set()

    for name, promise in promises.items():
        with pytest.raises(InvalidStateError, match=rf"{name.split()[0]}\(\): .*{device.reason}"):
            await promise
    await context.drain()
    np.testing.assert_array_equal(out, [9, 9])
    assert device.log == ["allocate", "write", "stop", "free", "close"]
    assert context.statistics().live_bytes == 0


async def test_every_later_call_is_refused_with_the_reason(device, context):
    buffer, other = await zeroed(context, [2]), await zeroed(context, [2])
    graph = await build_add_number(context, 1, [2])
    weights = await constant(context, [1, 2])
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type="float32", shape=[2])
    await device.lose()
    await context.lost

    later = [
        (InvalidStateError, lambda: context.create_buffer(data_type="float32", shape=[2])),
        (InvalidStateError, lambda: context.create_constant_buffer(bytes(2), data_type="uint8", shape=[2])),
        (DestroyedBufferError, lambda: context.read_buffer(buffer)),
        (DestroyedBufferError, lambda: context.write_buffer(buffer, np.ones(2, np.float32))),
        (InvalidStateError, lambda: context.dispatch(graph, {"x": buffer}, {"y": other})),
        (InvalidStateError, lambda: MLGraphBuilder(context)),
        (InvalidStateError, lambda: builder.add(operand, operand)),
        (InvalidStateError, lambda: builder.build({"y": operand})),
        (DestroyedBufferError, lambda: builder.constant(weights)),
    ]
    for error, call in later:
        with pytest.raises(error, match=device.reason):
            await call()


async def test_the_first_reason_stays(device, context):
    await device.lose()
    device.backend.lost("and again")
    await context.lost
    context.destroy()
    assert (await context.lost).message.startswith(device.reason)
    await context.drain()
    assert device.log == ["stop", "close"]


async def test_a_device_that_goes_after_destroy_changes_nothing(device, context):
    context.destroy()
    await device.lose()
    await context.drain()
    assert "destroy() was called" in (await context.lost).message


async def test_a_loss_leaves_other_devices_alone_and_a_new_context_works(ml, device, context, options, elsewhere):
    other = await ml.create_context(**elsewhere)
    kept = await filled(other, [1, 2])
    await device.lose()
    await context.lost
    np.testing.assert_array_equal(await other.read_buffer(kept), [1, 2])

    fresh = await ml.create_context(**options)
    graph = await build_add_number(fresh, 1, [2])
    source, target = await filled(fresh, [1, 2]), await zeroed(fresh, [2])
    fresh.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await fresh.read_buffer(target), [2, 3])


async def test_an_error_of_the_device_before_the_loss_is_told_as_an_error(ml, device, context):
    """As in the text: what fails before the loss has reached the script rejects with its own error."""
    buffer = await zeroed(context, [2])
    ml.script_timeline.pause()
    device.failing["read"] = RuntimeError("no answer")
    promise = context.read_buffer(buffer)
    await device.quiet()
    await device.lose()
    ml.script_timeline.resume()
    with pytest.raises(UnknownError, match="no answer"):
        await promise


async def test_a_lost_context_leaves_the_register_of_contexts(ml, device, context):
    assert list(ml._contexts) == [context]
    await device.lose()
    await context.lost
    await device.quiet()
    assert list(ml._contexts) == []


async def test_failures_of_a_device_that_is_lost_are_told_by_the_loss_alone(device, context):
    buffer = await zeroed(context, [2])
    device.failing["write"] = RuntimeError("no answer")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        context.write_buffer(buffer, np.ones(2, np.float32))
        await context.drain()
        await device.lose()
        await context.lost
        await context.drain()
        del buffer
    assert [str(warning.message) for warning in told] == []
