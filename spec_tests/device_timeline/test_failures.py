"""What fails on the device is told by the promise, or by the next read of a buffer that it should have written."""

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one, build_sum_and_difference
from webnn_py import OperationError, UnknownError
from webnn_py.errors import InvalidStateError


@pytest.fixture(params=["at once", "awaited"])
def begin(request, fake):
    """Say how the next such step runs: at once, or as one that is awaited."""

    def begin_next(step):
        if request.param == "awaited":
            fake.waiting[step] = trio.Event()
            fake.waiting[step].set()

    return begin_next


@pytest.fixture
def fail(fake, begin):
    """Make the next such step fail, at once or while it is awaited."""

    def fail_next(step, error):
        fake.failing[step] = error
        begin(step)

    return fail_next


async def test_a_failed_write_is_told_by_the_next_read(fake_context, fail):
    buffer = await zeroed(fake_context, [2])
    fail("write", RuntimeError("the bus is down"))

    fake_context.write_buffer(buffer, np.ones(2, np.float32))

    with pytest.raises(UnknownError, match=r"read_buffer\(\).*write_buffer\(\) failed: the bus is down"):
        await fake_context.read_buffer(buffer)
    with pytest.raises(UnknownError, match="the bus is down"):
        await fake_context.read_buffer(buffer)


async def test_a_failed_dispatch_marks_all_its_outputs_and_no_input(fake_context, fail):
    graph = await build_sum_and_difference(fake_context, [2])
    a, b = await filled(fake_context, [5, 6]), await filled(fake_context, [1, 2])
    s, d = await filled(fake_context, [7, 7]), await filled(fake_context, [8, 8])
    fail("dispatch", RuntimeError("the kernel is broken"))

    fake_context.dispatch(graph, {"a": a, "b": b}, {"s": s, "d": d})

    for output in (s, d):
        with pytest.raises(UnknownError, match=r"read_buffer\(\).*dispatch\(\) failed: the kernel is broken"):
            await fake_context.read_buffer(output)
    np.testing.assert_array_equal(await fake_context.read_buffer(a), [5, 6])
    np.testing.assert_array_equal(await fake_context.read_buffer(b), [1, 2])


async def test_a_mark_propagates_through_dispatches_which_do_not_run(fake, fake_context, fail):
    add, mix = await build_add_one(fake_context, [2]), await build_sum_and_difference(fake_context, [2])
    good, *chain = [await filled(fake_context, [number, number]) for number in range(6)]
    await fake_context.drain()
    fail("write", RuntimeError("the bus is down"))
    fake.log.clear()

    fake_context.write_buffer(chain[0], np.ones(2, np.float32))
    fake_context.dispatch(add, {"x": chain[0]}, {"y": chain[1]})
    fake_context.dispatch(mix, {"a": good, "b": chain[1]}, {"s": chain[2], "d": chain[3]})
    fake_context.dispatch(add, {"x": chain[3]}, {"y": chain[4]})

    for buffer in chain:
        with pytest.raises(UnknownError, match="the bus is down"):
            await fake_context.read_buffer(buffer)
    with pytest.raises(UnknownError, match=r"the input 'b' of a dispatch\(\).*the input 'x' of a dispatch\(\)"):
        await fake_context.read_buffer(chain[4])
    np.testing.assert_array_equal(await fake_context.read_buffer(good), [0, 0])
    assert fake.log == ["write", "read"]


async def test_a_full_write_clears_the_mark(fake, fake_context, begin):
    buffer = await zeroed(fake_context, [2])
    fake.failing["write"] = RuntimeError("the bus is down")
    fake_context.write_buffer(buffer, np.ones(2, np.float32))
    before = fake_context.read_buffer(buffer)
    await fake_context.drain()
    begin("write")
    fake_context.write_buffer(buffer, np.full(2, 3, np.float32))

    np.testing.assert_array_equal(await fake_context.read_buffer(buffer), [3, 3])
    with pytest.raises(UnknownError, match="the bus is down"):
        await before


async def test_a_dispatch_that_writes_a_marked_buffer_clears_the_mark(fake, fake_context, begin):
    graph = await build_add_one(fake_context, [2])
    source, target = await filled(fake_context, [1, 2]), await zeroed(fake_context, [2])
    await fake_context.drain()
    fake.failing["write"] = RuntimeError("the bus is down")
    fake_context.write_buffer(target, np.ones(2, np.float32))
    begin("dispatch")

    fake_context.dispatch(graph, {"x": source}, {"y": target})

    np.testing.assert_array_equal(await fake_context.read_buffer(target), [2, 3])


async def test_a_marked_input_that_is_written_again_lets_dispatches_run_again(fake, fake_context):
    graph = await build_add_one(fake_context, [2])
    source, target = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    fake.failing["write"] = RuntimeError("the bus is down")
    fake_context.write_buffer(source, np.ones(2, np.float32))
    fake_context.dispatch(graph, {"x": source}, {"y": target})
    failed = fake_context.read_buffer(target)
    fake_context.write_buffer(source, np.ones(2, np.float32))
    fake_context.dispatch(graph, {"x": source}, {"y": target})

    np.testing.assert_array_equal(await fake_context.read_buffer(target), [2, 2])
    with pytest.raises(UnknownError):
        await failed


async def test_a_write_that_fails_after_one_that_failed_tells_the_later_reason(fake, fake_context, fail):
    buffer = await zeroed(fake_context, [2])
    fake.failing["write"] = RuntimeError("first")
    fake_context.write_buffer(buffer, np.ones(2, np.float32))
    await fake_context.drain()
    fail("write", RuntimeError("second"))
    fake_context.write_buffer(buffer, np.ones(2, np.float32))
    with pytest.raises(UnknownError, match="second"):
        await fake_context.read_buffer(buffer)


async def test_a_failed_allocation_rejects_create_buffer_and_leaks_nothing(fake, fake_context, fail):
    cause = MemoryError("no room for 8 bytes")
    fail("allocate", cause)

    with pytest.raises(UnknownError, match=r"create_buffer\(\) failed on the device: no room for 8 bytes") as caught:
        await zeroed(fake_context, [2])
    await fake_context.drain()

    assert caught.value.__cause__ is cause
    assert fake_context.statistics().live_buffers == 0
    assert fake_context.statistics().live_bytes == 0
    assert fake.log == ["allocate"]
    np.testing.assert_array_equal(await fake_context.read_buffer(await zeroed(fake_context, [2])), [0, 0])


@pytest.mark.parametrize("step", ["allocate", "write"])
async def test_a_failed_step_of_create_constant_buffer_rejects_it_and_leaks_nothing(fake, fake_context, fail, step):
    cause = RuntimeError("not today")
    fail(step, cause)

    with pytest.raises(UnknownError, match=r"create_constant_buffer\(\) failed on the device: not today") as caught:
        await fake_context.create_constant_buffer(np.ones(2, np.float32), data_type="float32", shape=[2])
    await fake_context.drain()

    assert caught.value.__cause__ is cause
    assert fake_context.statistics().live_buffers == 0
    assert fake_context.statistics().live_bytes == 0
    assert fake.log.count("free") == (step == "write")


@pytest.mark.parametrize("with_out", [False, True], ids=["fresh array", "out"])
async def test_a_failed_read_rejects_and_a_later_read_works(fake_context, fail, with_out):
    buffer = await filled(fake_context, [1, 2])
    out = np.full(2, 9, np.float32)
    cause = RuntimeError("the bus is down")
    fail("read", cause)

    with pytest.raises(UnknownError, match=r"read_buffer\(\) failed on the device: the bus is down") as caught:
        await fake_context.read_buffer(buffer, out=out if with_out else None)

    assert caught.value.__cause__ is cause
    assert fake_context.statistics().live_bytes == 8, "no staging memory is left"
    np.testing.assert_array_equal(out, [9, 9])
    np.testing.assert_array_equal(await fake_context.read_buffer(buffer), [1, 2])


async def test_out_is_not_written_when_the_buffer_is_marked(fake, fake_context):
    buffer = await zeroed(fake_context, [2])
    fake.failing["write"] = RuntimeError("the bus is down")
    fake_context.write_buffer(buffer, np.ones(2, np.float32))
    out = np.full(2, 9, np.float32)
    with pytest.raises(UnknownError, match="the bus is down"):
        await fake_context.read_buffer(buffer, out=out)
    np.testing.assert_array_equal(out, [9, 9])


async def test_a_failed_compilation_rejects_build_with_operation_error_and_leaks_nothing(fake_context, fail):
    cause = RuntimeError("add [hidden] is too much for this device")
    fail("compile", cause)

    with pytest.raises(OperationError, match=r"build\(\).*add \[hidden\] is too much for this device") as caught:
        await build_add_number(fake_context, 1, [2])
    await fake_context.drain()

    assert caught.value.__cause__ is cause
    assert fake_context.statistics().live_bytes == 0
    graph = await build_add_number(fake_context, 1, [2])
    source, target = await filled(fake_context, [1, 2]), await zeroed(fake_context, [2])
    fake_context.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await fake_context.read_buffer(target), [2, 3])


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
async def test_an_error_without_a_text_is_told_by_its_name(fake_context, fail, step, error):
    buffer, graph = await zeroed(fake_context, [2]), await build_add_one(fake_context, [2])
    await fake_context.drain()
    fail(step, error())
    with pytest.raises((UnknownError, OperationError), match=error.__name__):
        await (await start(fake_context, step, buffer, graph))


@pytest.mark.parametrize("step", ["allocate", "read", "compile"])
async def test_every_awaiter_of_a_failed_promise_gets_an_exception_of_its_own_with_the_cause(fake, fake_context, step):
    buffer = await zeroed(fake_context, [2])
    cause = fake.failing[step] = RuntimeError("once")
    promise = await start(fake_context, step, buffer, None)
    caught = []
    for _ in range(2):
        with pytest.raises((UnknownError, OperationError), match="once") as info:
            await promise
        caught.append(info.value)
    assert caught[0] is not caught[1]
    assert [error.__cause__ for error in caught] == [cause, cause]


async def test_a_failure_is_not_a_loss(fake, fake_context):
    buffer, graph = await zeroed(fake_context, [2]), await build_add_one(fake_context, [2])
    for step in ("allocate", "write", "read", "compile", "dispatch"):
        fake.failing[step] = RuntimeError(step)
        with pytest.raises((UnknownError, OperationError), match=step):
            await (await start(fake_context, step, buffer, graph))
    assert fake_context.lost.state == "pending"


async def test_a_write_that_fails_after_the_context_was_lost_tells_nobody(fake, fake_context):
    buffer = await zeroed(fake_context, [2])
    finish = fake.waiting["write"] = trio.Event()
    fake.failing["write"] = RuntimeError("gone")
    fake_context.write_buffer(buffer, np.ones(2, np.float32))
    promise = fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()
    fake_context.destroy()
    finish.set()
    with pytest.raises(InvalidStateError, match=r"destroy\(\) was called on the context"):
        await promise
    await fake_context.drain()
    assert fake_context.statistics().live_bytes == 0
