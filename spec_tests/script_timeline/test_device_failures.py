"""What scripts are told when the device fails: allocations, copies, compilations and dispatches."""

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_number, build_sum_and_difference
from spec_tests.support.scene import ONES
from webnn_py import InvalidStateError, MLGraphBuilder, OperationError, UnknownError


class DeviceError(Exception):
    """What the device raises in these tests."""


F32 = {"data_type": "float32", "shape": [2]}

CREATIONS = {
    "create_buffer": lambda context: context.create_buffer(**F32),
    "create_constant_buffer": lambda context: context.create_constant_buffer(ONES, **F32),
}


@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("create_buffer", "allocate"),
        ("create_constant_buffer", "allocate"),
        ("create_constant_buffer", "write"),
    ],
)
@pytest.mark.parametrize("error", [DeviceError("no room"), MemoryError("no room"), ValueError("no room")], ids=repr)
async def test_a_failed_creation_rejects_with_unknown_error_and_leaves_no_memory(context, device, method, step, error):
    device.failing[step] = error

    with pytest.raises(UnknownError, match=rf"^{method}\(\) failed on the device: no room$") as caught:
        await CREATIONS[method](context)

    assert caught.type is UnknownError
    assert caught.value.__cause__ is error
    await context.drain()
    assert (context.statistics().live_buffers, context.statistics().live_bytes) == (0, 0)
    assert device.log.count("free") == (step == "write")
    await CREATIONS[method](context)
    assert context.statistics().live_buffers == 1


async def test_a_device_error_without_words_is_told_by_its_type(context, device):
    device.failing["allocate"] = MemoryError()
    with pytest.raises(UnknownError, match=r"failed on the device: MemoryError$"):
        await context.create_buffer(**F32)


async def test_a_failed_copy_rejects_that_read_and_no_other(context, device):
    buffer = await filled(context, [1, 2])
    await context.drain()
    device.failing["read"] = DeviceError("cable cut")
    out = np.full(2, -1, np.float32)

    failed, good = context.read_buffer(buffer, out=out), context.read_buffer(buffer)

    with pytest.raises(UnknownError, match=r"^read_buffer\(\) failed on the device: cable cut$"):
        await failed
    np.testing.assert_array_equal(await good, [1, 2])
    np.testing.assert_array_equal(out, [-1, -1])


async def test_a_read_that_failed_is_no_longer_pending_when_its_buffer_is_destroyed(context, device):
    buffer = await filled(context, [1, 2])
    await context.drain()
    device.failing["read"] = DeviceError("cable cut")
    failed = context.read_buffer(buffer)
    await context.drain()

    buffer.destroy()

    with pytest.raises(UnknownError, match="cable cut"):
        await failed


async def test_a_failed_write_raises_nothing_and_is_told_by_every_later_read(context, device):
    buffer = await filled(context, [1, 2])
    await context.drain()
    device.failing["write"] = DeviceError("cable cut")

    context.write_buffer(buffer, 5 * ONES)

    for _ in range(2):
        with pytest.raises(UnknownError, match=r"read_buffer\(\).*write_buffer\(\) failed: cable cut"):
            await context.read_buffer(buffer)
    context.write_buffer(buffer, 6 * ONES)
    np.testing.assert_array_equal(await context.read_buffer(buffer), [6, 6])


async def test_a_failed_dispatch_raises_nothing_and_is_told_by_reads_of_all_its_outputs(context, device):
    graph = await build_sum_and_difference(context, [2])
    inputs = {"a": await filled(context, [5, 6]), "b": await filled(context, [1, 2])}
    outputs = {"s": await zeroed(context, [2]), "d": await zeroed(context, [2])}
    device.failing["dispatch"] = DeviceError("kernel panic")

    context.dispatch(graph, inputs, outputs)

    for buffer in outputs.values():
        with pytest.raises(UnknownError, match=r"read_buffer\(\).*dispatch\(\) failed: kernel panic"):
            await context.read_buffer(buffer)
    np.testing.assert_array_equal(await context.read_buffer(inputs["a"]), [5, 6])
    context.dispatch(graph, inputs, outputs)
    np.testing.assert_array_equal(await context.read_buffer(outputs["s"]), [6, 8])
    np.testing.assert_array_equal(await context.read_buffer(outputs["d"]), [4, 4])


async def test_a_failure_goes_through_the_dispatches_that_read_it_with_its_first_words(context, device):
    graph = await build_add_number(context, 1, [2])
    first, second, third = [await filled(context, [0, 0]) for _ in range(3)]
    await context.drain()
    device.failing["write"] = DeviceError("cable cut")
    context.write_buffer(first, ONES)
    device.log.clear()

    context.dispatch(graph, {"x": first}, {"y": second})
    context.dispatch(graph, {"x": second}, {"y": third})

    with pytest.raises(UnknownError, match=r"input 'x'.*dispatch\(\).*write_buffer\(\) failed: cable cut"):
        await context.read_buffer(third)
    assert "dispatch" not in device.log, "nothing may be computed from data that are not there"
    context.write_buffer(first, ONES)
    context.dispatch(graph, {"x": first}, {"y": second})
    np.testing.assert_array_equal(await context.read_buffer(second), [2, 2])
    with pytest.raises(UnknownError, match="cable cut"):
        await context.read_buffer(third)


@pytest.mark.parametrize("step", ["write", "dispatch"])
async def test_a_failure_that_comes_after_a_wait_is_told_too(context, device, step):
    ready = trio.Event()
    graph = await build_add_number(context, 1, [2])
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    await context.drain()
    device.waiting[step], device.failing[step] = ready, DeviceError("late")
    if step == "write":
        context.write_buffer(y, ONES)
    else:
        context.dispatch(graph, {"x": x}, {"y": y})
    read = context.read_buffer(y)

    ready.set()

    with pytest.raises(UnknownError, match="failed: late"):
        await read


async def test_a_failed_compilation_rejects_with_operation_error_and_spends_the_builder(context, device):
    builder = MLGraphBuilder(context)
    x = builder.input("x", **F32)
    y = builder.add(x, x)
    error = device.failing["compile"] = DeviceError("no such instruction")

    with pytest.raises(OperationError, match=r"^build\(\):.*cannot be compiled: no such instruction$") as caught:
        await builder.build({"y": y})

    assert caught.type is OperationError
    assert caught.value.__cause__ is error
    with pytest.raises(InvalidStateError, match=r"build\(\).*has built"):
        await builder.build({"y": y})
    assert await build_add_number(context, 1, [2])
    assert "release_graph" not in device.log, "nothing was compiled, so nothing is to be released"


async def test_a_failed_compilation_lets_go_of_its_constant_buffer(context, device):
    builder = MLGraphBuilder(context)
    x = builder.input("x", **F32)
    held = await constant(context, [1, 2])
    device.failing["compile"] = DeviceError("no such instruction")
    building = builder.build({"y": builder.add(x, builder.constant(held))})
    held.destroy()

    with pytest.raises(OperationError):
        await building

    await context.drain()
    assert context.statistics().live_bytes == 0
