"""Report a failed step of a device by its promise, or by reads of the buffers that it should have written."""

import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number, build_add_one, build_sum_and_difference, run
from spec_tests.support.scene import ONES
from webnn_py import OperationError, UnknownError

BROKEN = RuntimeError("the bus is down")


async def test_a_failed_write_rejects_every_read_until_a_write_succeeds(context, fail, begin):
    buffer = await zeroed(context, [2])
    fail("write", BROKEN)

    context.write_buffer(buffer, ONES)

    for _ in range(2):
        with pytest.raises(UnknownError, match=r"read_buffer\(\).*write_buffer\(\) failed: the bus is down"):
            await context.read_buffer(buffer)
    before = context.read_buffer(buffer)
    begin("write")
    context.write_buffer(buffer, 3 * ONES)
    np.testing.assert_array_equal(await context.read_buffer(buffer), [3, 3])
    with pytest.raises(UnknownError, match="the bus is down"):
        await before


async def test_a_failed_dispatch_rejects_reads_of_all_its_outputs_and_of_no_input(context, fail):
    graph = await build_sum_and_difference(context, [2])
    inputs = {"a": await filled(context, [5, 6]), "b": await filled(context, [1, 2])}
    outputs = {"s": await filled(context, [7, 7]), "d": await filled(context, [8, 8])}
    fail("dispatch", RuntimeError("the kernel is broken"))

    context.dispatch(graph, inputs, outputs)

    for output in outputs.values():
        with pytest.raises(UnknownError, match=r"read_buffer\(\).*dispatch\(\) failed: the kernel is broken"):
            await context.read_buffer(output)
    np.testing.assert_array_equal(await context.read_buffer(inputs["a"]), [5, 6])
    np.testing.assert_array_equal(await context.read_buffer(inputs["b"]), [1, 2])
    context.dispatch(graph, inputs, outputs)
    np.testing.assert_array_equal(await context.read_buffer(outputs["s"]), [6, 8])
    np.testing.assert_array_equal(await context.read_buffer(outputs["d"]), [4, 4])


async def test_a_failure_propagates_through_dispatches_which_do_not_run(device, context, fail):
    add, mix = await build_add_one(context, [2]), await build_sum_and_difference(context, [2])
    good, *chain = [await filled(context, [number, number]) for number in range(6)]
    await context.drain()
    fail("write", BROKEN)
    device.log.clear()

    context.write_buffer(chain[0], ONES)
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
    context.write_buffer(chain[0], ONES)
    context.dispatch(add, {"x": chain[0]}, {"y": chain[1]})
    np.testing.assert_array_equal(await context.read_buffer(chain[1]), [2, 2])


CREATIONS = {
    "create_buffer": lambda context: context.create_buffer(data_type="float32", shape=[2]),
    "create_constant_buffer": lambda context: context.create_constant_buffer(ONES, data_type="float32", shape=[2]),
}


@pytest.mark.parametrize(
    ("method", "step"),
    [("create_buffer", "allocate"), ("create_constant_buffer", "allocate"), ("create_constant_buffer", "write")],
)
@pytest.mark.parametrize("cause", [MemoryError("not today"), ValueError("not today")], ids=repr)
async def test_a_failed_creation_rejects_with_the_cause_and_leaks_nothing(
    device, context, fail, *, method, step, cause
):
    fail(step, cause)

    with pytest.raises(UnknownError, match=rf"^{method}\(\) failed on the device: not today$") as caught:
        await CREATIONS[method](context)
    await context.drain()

    assert caught.type is UnknownError
    assert caught.value.__cause__ is cause
    assert (context.statistics().live_buffers, context.statistics().live_bytes) == (0, 0)
    assert device.log.count("free") == (step == "write")
    assert await CREATIONS[method](context)


@pytest.mark.parametrize("with_out", [False, True], ids=["fresh array", "out"])
async def test_a_failed_read_rejects_and_no_other_does(context, fail, with_out):
    buffer = await filled(context, [1, 2])
    out = np.full(2, 9, np.float32)
    fail("read", BROKEN)

    failed, good = context.read_buffer(buffer, out=out if with_out else None), context.read_buffer(buffer)

    with pytest.raises(UnknownError, match=r"^read_buffer\(\) failed on the device: the bus is down$") as caught:
        await failed
    np.testing.assert_array_equal(await good, [1, 2])
    assert caught.value.__cause__ is BROKEN
    assert context.statistics().live_bytes == 8, "no staging memory is left"
    np.testing.assert_array_equal(out, [9, 9])
    buffer.destroy()
    with pytest.raises(UnknownError, match="the bus is down"):
        await failed


async def test_out_is_not_written_when_the_buffer_has_no_data(device, context):
    buffer, out = await zeroed(context, [2]), np.full(2, 9, np.float32)
    device.failing["write"] = BROKEN
    context.write_buffer(buffer, ONES)
    with pytest.raises(UnknownError, match="the bus is down"):
        await context.read_buffer(buffer, out=out)
    np.testing.assert_array_equal(out, [9, 9])


async def test_a_failed_compilation_rejects_build_with_operation_error_and_leaks_nothing(context, device, fail):
    cause = RuntimeError("add [hidden] is too much for this device")
    fail("compile", cause)

    held = await constant(context, [1, 2])
    building = build_add_buffer(context, held)
    held.destroy()
    with pytest.raises(OperationError, match=r"^build\(\):.*cannot be compiled: add \[hidden\] is too much") as caught:
        await building
    await context.drain()

    assert (caught.type, caught.value.__cause__) == (OperationError, cause)
    assert context.statistics().live_bytes == 0
    assert "release_graph" not in device.log, "nothing was compiled, so nothing is to be released"
    assert await run(context, await build_add_number(context, 1, [2]), x=[1, 2]) == {"y": [2, 3]}


async def start(context, step, buffer, graph):
    """Start an operation that needs ``step`` and return the promise that its failure rejects."""
    if step == "allocate":
        return context.create_buffer(data_type="float32", shape=[2])
    if step == "compile":
        return build_add_number(context, 1, [2])
    if step == "write":
        context.write_buffer(buffer, ONES)
    elif step == "dispatch":
        source = await zeroed(context, [2])
        context.dispatch(graph, {"x": source}, {"y": buffer})
    return context.read_buffer(buffer)


@pytest.mark.parametrize("step", ["allocate", "write", "read", "compile", "dispatch"])
@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError, RuntimeError])
async def test_an_error_without_a_message_is_reported_by_its_name(context, fail, step, error):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    await context.drain()
    fail(step, error())
    with pytest.raises((UnknownError, OperationError), match=error.__name__):
        await (await start(context, step, buffer, graph))


async def test_a_failure_is_not_a_loss(device, context):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    for step in ("allocate", "write", "read", "compile", "dispatch"):
        device.failing[step] = RuntimeError(step)
        with pytest.raises((UnknownError, OperationError), match=step):
            await (await start(context, step, buffer, graph))
    assert context.lost.state == "pending"
