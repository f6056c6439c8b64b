"""Copies between GPU buffers that are a user's, that are one and the same, and that fail when they are submitted."""

import numpy as np
import pytest
import wgpu

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.stand_ins import failing
from spec_tests.support.watched_device import quiet
from webnn_py import UnknownError
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.devices.wgpu import interop
from webnn_py.devices.wgpu.runtime import buffer_copies
from webnn_py.devices.wgpu.runtime.memory import STORAGE


def users_buffer(context, values):
    """A user's GPU buffer that holds some float16 numbers."""
    data = np.array(values, np.float16)
    buffer = context.device.backend.device.create_buffer(size=data.nbytes, usage=STORAGE)
    context.device.backend.device.queue.write_buffer(buffer, 0, data)
    return buffer


def imported(context, buffer, size):
    return interop.import_buffer(context, buffer, data_type="float16", shape=[size], readable=True, writable=True)


async def read_whole(context, buffer):
    await context.drain()
    return np.frombuffer(context.device.backend.device.queue.read_buffer(buffer), np.float16)


@pytest.mark.parametrize("offset", [0, 1])
async def test_copies_to_a_users_buffer_leave_alone_what_lies_beyond_the_tensor(gpu, offset):
    theirs = users_buffer(gpu, [9] * 64)
    target = imported(gpu, theirs, 16)
    source = await filled(gpu, np.arange(16), "float16")
    clear_buffer(gpu, target)
    copy_buffer(gpu, source, target, destination_offset=offset, count=16 - offset)
    expected = [*[0] * offset, *range(16 - offset), *[9] * 48]
    np.testing.assert_array_equal(await read_whole(gpu, theirs), expected)


@pytest.mark.parametrize("offset", [0, 1])
async def test_a_copy_from_a_users_buffer_is_submitted_before_they_can_destroy_it(gpu, offset):
    theirs = users_buffer(gpu, range(64))
    target = await zeroed(gpu, [16], "float16")
    await gpu.drain()
    copy_buffer(gpu, imported(gpu, theirs, 16), target, source_offset=offset, count=8)
    await quiet(gpu)
    theirs.destroy()
    np.testing.assert_array_equal(await gpu.read_buffer(target), [*range(offset, offset + 8), *[0] * 8])


async def test_two_tensors_in_one_users_buffer_are_copied_where_they_do_not_overlap(gpu):
    theirs = users_buffer(gpu, range(64))
    whole, part = imported(gpu, theirs, 64), imported(gpu, theirs, 16)
    copy_buffer(gpu, part, whole, destination_offset=33)
    expected = [*range(33), *range(16), *range(49, 64)]
    np.testing.assert_array_equal(await gpu.read_buffer(whole), expected)
    copy_buffer(gpu, part, whole, destination_offset=5)
    with pytest.raises(UnknownError, match=r"copy_buffer\(\) failed: source and destination overlap"):
        await gpu.read_buffer(whole)
    np.testing.assert_array_equal(await read_whole(gpu, theirs), expected)


async def test_a_users_buffer_that_is_destroyed_fails_the_copy_and_nothing_else(gpu):
    theirs = users_buffer(gpu, range(64))
    source, target = imported(gpu, theirs, 16), await zeroed(gpu, [16], "float16")
    await gpu.drain()
    theirs.destroy()
    copy_buffer(gpu, source, target)
    with pytest.raises(UnknownError, match=r"copy_buffer\(\) failed: the imported GPU buffer has been destroyed"):
        await gpu.read_buffer(target)
    clear_buffer(gpu, target)
    np.testing.assert_array_equal(await gpu.read_buffer(target), [0] * 16)
    assert gpu.lost.state == "pending"


@pytest.mark.parametrize("method", ["copy_buffer", "clear_buffer"])
async def test_a_submission_that_fails_marks_what_copies_should_have_written(gpu, monkeypatch, method):
    source, target = await filled(gpu, [1, 2]), await zeroed(gpu, [2])
    await gpu.drain()
    with monkeypatch.context() as patched:
        refuse = failing(wgpu.GPUValidationError("the queue is closed"))
        patched.setattr(gpu.device.backend._queue.engine, f"encode_{method.removesuffix('_buffer')}", refuse)
        copy_buffer(gpu, source, target) if method == "copy_buffer" else clear_buffer(gpu, target)
        await quiet(gpu)
    with pytest.raises(UnknownError, match=rf"{method}\(\) failed: the queue is closed"):
        await gpu.read_buffer(target)
    np.testing.assert_array_equal(await gpu.read_buffer(source), [1, 2])


@pytest.mark.parametrize("same", [False, True], ids=["two buffers", "one buffer"])
async def test_a_copy_for_which_there_is_no_memory_is_told_by_the_next_read(gpu, monkeypatch, same):
    source = await filled(gpu, np.arange(16), "int8")
    target = source if same else await zeroed(gpu, [16], "int8")
    copy_buffer(gpu, source, target, source_offset=1, destination_offset=8, count=3)  # so that the kernel is there
    await gpu.drain()

    class NoMemory:
        def __getattr__(self, name):
            raise wgpu.GPUOutOfMemoryError("Not enough memory left.")

    with monkeypatch.context() as patched:
        patched.setattr(gpu.device.backend._copies, "_device", NoMemory())
        copy_buffer(gpu, source, target, source_offset=1, destination_offset=8, count=3)
        await quiet(gpu)
    with pytest.raises(UnknownError, match=r"copy_buffer\(\) failed: Not enough memory left\."):
        await gpu.read_buffer(target)


async def test_a_kernel_that_does_not_compile_is_told_by_the_next_read(gpu, monkeypatch):
    source, target = await filled(gpu, [1, 2], "int8"), await zeroed(gpu, [2], "int8")
    with monkeypatch.context() as patched:
        patched.setattr(buffer_copies, "SOURCE", "nonsense")
        copy_buffer(gpu, source, target, source_offset=1)
        with pytest.raises(UnknownError, match=r"copy_buffer\(\) failed:"):
            await gpu.read_buffer(target)
    clear_buffer(gpu, target)
    copy_buffer(gpu, source, target, source_offset=1)
    np.testing.assert_array_equal(await gpu.read_buffer(target), [2, 0])


async def test_copies_of_words_take_no_kernel(gpu):
    source, target = await filled(gpu, np.arange(9)), await zeroed(gpu, [9])
    copy_buffer(gpu, source, target, source_offset=1, destination_offset=5, count=3)
    copy_buffer(gpu, target, target, source_offset=5, destination_offset=0, count=3)
    bytes_in, bytes_out = await filled(gpu, np.arange(9), "int8"), await zeroed(gpu, [5], "int8")
    copy_buffer(gpu, bytes_in, bytes_out, source_offset=4)
    np.testing.assert_array_equal(await gpu.read_buffer(target), [1, 2, 3, 0, 0, 1, 2, 3, 0])
    np.testing.assert_array_equal(await gpu.read_buffer(bytes_out), [4, 5, 6, 7, 8])
    assert not gpu.device.backend._copies.is_prepared
