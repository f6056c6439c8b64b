"""What fails on the device is told by the promise, or by the next read of a buffer that it should have written."""

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one, build_sum_and_difference
from webnn_py import OperationError, UnknownError
from webnn_py.errors import InvalidStateError


@pytest.fixture(params=["at once", "awaited"])
def begin(request, device):
    """Say how the next such step runs: at once, or as one that is awaited."""

    def begin_next(step):
        if request.param == "awaited":
            device.waiting[step] = trio.Event()
            device.waiting[step].set()

    return begin_next


@pytest.fixture
def fail(device, begin):
    """Make the next such step fail, at once or while it is awaited."""

    def fail_next(step, error):
        device.failing[step] = error
        begin(step)

    return fail_next


async def test_a_failed_write_is_told_by_the_next_read(context, fail):
    buffer = await zeroed(context, [2])
    fail("write", RuntimeError("the bus is down"))

    context.write_buffer(buffer, np.ones(2, np.float32))

    with pytest.raises(UnknownError, match=r"read_buffer\(\).*write_buffer\(\) failed: the bus is down"):
        await context.read_buffer(buffer)
    with pytest.raises(UnknownError, match="the bus is down"):
        await context.read_buffer(buffer)


async def test_a_failed_dispatch_marks_all_its_outputs_and_no_input(context, fail):
    graph = await build_sum_and_difference(context, [2])
    a, b = await filled(context, [5, 6]), await filled(context, [1, 2])
    s, d = await filled(context, [7, 7]), await filled(context, [8, 8])
    fail("dispatch", RuntimeError("the kernel is broken"))

    context.dispatch(graph, {"a": a, "b": b}, {"s": s, "d": d})

    for output in (s, d):
        with pytest.raises(UnknownError, match=r"read_buffer\(\).*dispatch\(\) failed: the kernel is broken"):
            await context.read_buffer(output)
    np.testing.assert_array_equal(await context.read_buffer(a), [5, 6])
    np.testing.assert_array_equal(await context.read_buffer(b), [1, 2])


async def test_a_mark_propagates_through_dispatches_which_do_not_run(device, context, fail):
    add, mix = await build_add_one(context, [2]), await build_sum_and_difference(context, [2])
    good, *chain = [await filled(context, [number, number]) for number in range(6)]
    await context.drain()
    fail("write", RuntimeError("the bus is down"))
    device.log.clear()

    context.write_buffer(chain[0], np.ones(2, np.float32))
    context.dispatch(add, {"x": chain[0]}, {"y": chain[1]})
    context.dispatch(mix, {"a": good, "b": chain[1]}, {"s": chain[2], "d": chain[3]})
    context.dispatch(add, {"x": chain[3]}, {"y": chain[4]})

    for buffer in chain:
        with pytest.raises(UnknownError, match="the bus is down"):
            await context.read_buffer(buffer)
    with pytest.raises(UnknownError, match=r"the input 'b' of a dispatch\(\).*the input 'x' of a dispatch\(\)"):
        await context.read_buffer(chain[4])
    np.testing.assert_array_equal(await context.read_buffer(good), [0, 0])
    assert device.log == ["write", "read"]


async def test_a_full_write_clears_the_mark(device, context, begin):
    buffer = await zeroed(context, [2])
    device.failing["write"] = RuntimeError("the bus is down")
    context.write_buffer(buffer, np.ones(2, np.float32))
    before = context.read_buffer(buffer)
    await context.drain()
    begin("write")
    context.write_buffer(buffer, np.full(2, 3, np.float32))

    np.testing.assert_array_equal(await context.read_buffer(buffer), [3, 3])
    with pytest.raises(UnknownError, match="the bus is down"):
        await before


async def test_a_dispatch_that_writes_a_marked_buffer_clears_the_mark(device, context, begin):
    graph = await build_add_one(context, [2])
    source, target = await filled(context, [1, 2]), await zeroed(context, [2])
    await context.drain()
    device.failing["write"] = RuntimeError("the bus is down")
    context.write_buffer(target, np.ones(2, np.float32))
    begin("dispatch")

    context.dispatch(graph, {"x": source}, {"y": target})

    np.testing.assert_array_equal(await context.read_buffer(target), [2, 3])


async def test_a_marked_input_that_is_written_again_lets_dispatches_run_again(device, context):
    graph = await build_add_one(context, [2])
    source, target = await zeroed(context, [2]), await zeroed(context, [2])
    device.failing["write"] = RuntimeError("the bus is down")
    context.write_buffer(source, np.ones(2, np.float32))
    context.dispatch(graph, {"x": source}, {"y": target})
    failed = context.read_buffer(target)
    context.write_buffer(source, np.ones(2, np.float32))
    context.dispatch(graph, {"x": source}, {"y": target})

    np.testing.assert_array_equal(await context.read_buffer(target), [2, 2])
    with pytest.raises(UnknownError):
        await failed


async def test_a_write_that_fails_after_one_that_failed_tells_the_later_reason(device, context, fail):
    buffer = await zeroed(context, [2])
    device.failing["write"] = RuntimeError("first")
    context.write_buffer(buffer, np.ones(2, np.float32))
    await context.drain()
    fail("write", RuntimeError("second"))
    context.write_buffer(buffer, np.ones(2, np.float32))
    with pytest.raises(UnknownError, match="second"):
        await context.read_buffer(buffer)


async def test_a_failed_allocation_rejects_create_buffer_and_leaks_nothing(device, context, fail):
    cause = MemoryError("no room for 8 bytes")
    fail("allocate", cause)

    with pytest.raises(UnknownError, match=r"create_buffer\(\) failed on the device: no room for 8 bytes") as caught:
        await zeroed(context, [2])
    await context.drain()

    assert caught.value.__cause__ is cause
    assert context.statistics().live_buffers == 0
    assert context.statistics().live_bytes == 0
    assert device.log == ["allocate"]
    np.testing.assert_array_equal(await context.read_buffer(await zeroed(context, [2])), [0, 0])


@pytest.mark.parametrize("step", ["allocate", "write"])
async def test_a_failed_step_of_create_constant_buffer_rejects_it_and_leaks_nothing(device, context, fail, step):
    cause = RuntimeError("not today")
    fail(step, cause)

    with pytest.raises(UnknownError, match=r"create_constant_buffer\(\) failed on the device: not today") as caught:
        await context.create_constant_buffer(np.ones(2, np.float32), data_type="float32", shape=[2])
    await context.drain()

    assert caught.value.__cause__ is cause
    assert context.statistics().live_buffers == 0
    assert context.statistics().live_bytes == 0
    assert device.log.count("free") == (step == "write")


@pytest.mark.parametrize("with_out", [False, True], ids=["fresh array", "out"])
async def test_a_failed_read_rejects_and_a_later_read_works(context, fail, with_out):
    buffer = await filled(context, [1, 2])
    out = np.full(2, 9, np.float32)
    cause = RuntimeError("the bus is down")
    fail("read", cause)

    with pytest.raises(UnknownError, match=r"read_buffer\(\) failed on the device: the bus is down") as caught:
        await context.read_buffer(buffer, out=out if with_out else None)

    assert caught.value.__cause__ is cause
    assert context.statistics().live_bytes == 8, "no staging memory is left"
    np.testing.assert_array_equal(out, [9, 9])
    np.testing.assert_array_equal(await context.read_buffer(buffer), [1, 2])


async def test_out_is_not_written_when_the_buffer_is_marked(device, context):
    buffer = await zeroed(context, [2])
    device.failing["write"] = RuntimeError("the bus is down")
    context.write_buffer(buffer, np.ones(2, np.float32))
    out = np.full(2, 9, np.float32)
    with pytest.raises(UnknownError, match="the bus is down"):
        await context.read_buffer(buffer, out=out)
    np.testing.assert_array_equal(out, [9, 9])


async def test_a_failed_compilation_rejects_build_with_operation_error_and_leaks_nothing(context, fail):
    cause = RuntimeError("add [hidden] is too much for this device")
    fail("compile", cause)

    with pytest.raises(OperationError, match=r"build\(\).*add \[hidden\] is too much for this device") as caught:
        await build_add_number(context, 1, [2])
    await context.drain()

    assert caught.value.__cause__ is cause
    assert context.statistics().live_bytes == 0
    graph = await build_add_number(context, 1, [2])
    source, target = await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await context.read_buffer(target), [2, 3])


async def start(context, step, buffer, graph):
    """Start something that needs ``step`` and return the promise that tells of it."""
    if step == "allocate":
        return context.create_buffer(data_type="float32", shape=[2])
    if step == "compile":
        return build_add_number(context, 1, [2])
    if step == "write":
        context.write_buffer(buffer, np.ones(2, np.float32))
    elif step == "dispatch":
        source = await zeroed(context, [2])
        context.dispatch(graph, {"x": source}, {"y": buffer})
    return context.read_buffer(buffer)


@pytest.mark.parametrize("step", ["allocate", "write", "read", "compile", "dispatch"])
@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError, RuntimeError])
async def test_an_error_without_a_text_is_told_by_its_name(context, fail, step, error):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    await context.drain()
    fail(step, error())
    with pytest.raises((UnknownError, OperationError), match=error.__name__):
        await (await start(context, step, buffer, graph))


@pytest.mark.parametrize("step", ["allocate", "read", "compile"])
async def test_every_awaiter_of_a_failed_promise_gets_an_exception_of_its_own_with_the_cause(device, context, step):
    buffer = await zeroed(context, [2])
    cause = device.failing[step] = RuntimeError("once")
    promise = await start(context, step, buffer, None)
    caught = []
    for _ in range(2):
        with pytest.raises((UnknownError, OperationError), match="once") as info:
            await promise
        caught.append(info.value)
    assert caught[0] is not caught[1]
    assert [error.__cause__ for error in caught] == [cause, cause]


async def test_a_failure_is_not_a_loss(device, context):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    for step in ("allocate", "write", "read", "compile", "dispatch"):
        device.failing[step] = RuntimeError(step)
        with pytest.raises((UnknownError, OperationError), match=step):
            await (await start(context, step, buffer, graph))
    assert context.lost.state == "pending"


async def test_a_write_that_fails_after_the_context_was_lost_tells_nobody(device, context):
    buffer = await zeroed(context, [2])
    finish = device.waiting["write"] = trio.Event()
    device.failing["write"] = RuntimeError("gone")
    context.write_buffer(buffer, np.ones(2, np.float32))
    promise = context.read_buffer(buffer)
    await device.quiet()
    context.destroy()
    finish.set()
    with pytest.raises(InvalidStateError, match=r"destroy\(\) was called on the context"):
        await promise
    await context.drain()
    assert context.statistics().live_bytes == 0
