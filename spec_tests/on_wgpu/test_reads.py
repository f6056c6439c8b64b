"""Reads that follow each other share one staging buffer and one map; each has its own answer."""

import numpy as np
import pytest
import trio
import wgpu

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.stand_ins import failing, noted
from spec_tests.support.watched_device import assert_lost
from webnn_py import InvalidStateError, MLPromise, UnknownError, tracing
from webnn_py.devices.wgpu.runtime.memory import ReadbackPool
from webnn_py.devices.wgpu.runtime.transfers import MOST_TOGETHER

SHAPES = [("float32", [4]), ("uint8", [3]), ("int32", [1]), ("float16", [5, 3]), ("uint8", [1])]


@pytest.fixture
async def written(gpu):
    """Buffers of several data types and sizes, and their contents."""
    buffers, arrays = [], []
    for number, (data_type, shape) in enumerate(SHAPES):
        buffer = await gpu.create_buffer(data_type=data_type, shape=shape, readable=True, writable=True)
        array = (np.arange(np.prod(shape)).reshape(shape) + 20 * number).astype(data_type)
        gpu.write_buffer(buffer, array)
        buffers.append(buffer)
        arrays.append(array)
    await gpu.drain()
    return buffers, arrays


@pytest.fixture
def maps(queue, monkeypatch):
    """The buffers that are mapped to be read."""
    return noted(monkeypatch, queue, "map", lambda buffer, *_: buffer)


@pytest.fixture
def submissions(queue, monkeypatch):
    """What is submitted."""
    return noted(monkeypatch, queue, "_submit", lambda *_: "submission")


def assert_equal(results, arrays):
    assert len(results) == len(arrays)
    for result, array in zip(results, arrays, strict=True):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("awaits", ["one after the other", "all at once"])
async def test_reads_of_one_turn_are_one_submission_and_one_map(gpu, written, maps, submissions, awaits):
    buffers, arrays = written
    reads = [gpu.read_buffer(buffer) for buffer in buffers]
    results = [await read for read in reads] if awaits == "one after the other" else await MLPromise.all(reads)
    assert_equal(results, arrays)
    assert (submissions, len(maps)) == (["submission"], 1)
    maps.clear()
    assert_equal([await gpu.read_buffer(buffer) for buffer in buffers], arrays)
    assert len(maps) == len(buffers), "each is a turn of its own"


async def test_a_read_that_nothing_follows_is_submitted_in_the_turn_of_the_task_that_awaits_it(
    gpu, written, submissions
):
    (buffer, *_), (array, *_) = written
    read = gpu.read_buffer(buffer)
    gpu.device_timeline.run_waiting()
    assert submissions == ["submission"]
    np.testing.assert_array_equal(await read, array)


async def test_outputs_of_a_dispatch_are_submitted_with_it_and_read_with_one_map(gpu, maps, submissions):
    graph = await build_add_one(gpu, [2])
    x, *outputs = [
        await gpu.create_buffer(data_type="float32", shape=[2], readable=True, writable=True) for _ in range(4)
    ]
    await gpu.drain()
    submissions.clear()
    for output in outputs:
        gpu.dispatch(graph, {"x": x}, {"y": output})
    assert_equal(await MLPromise.all([gpu.read_buffer(y) for y in outputs]), [np.ones(2, np.float32)] * 3)
    assert (submissions, len(maps)) == (["submission"], 1)


async def test_each_read_has_the_contents_of_its_time(gpu, written):
    (x, *others), (first, *rest) = written
    reads = []
    for number in range(3):
        reads += [gpu.read_buffer(x), gpu.read_buffer(others[0])]
        gpu.write_buffer(x, np.full(4, number, np.float32))
    reads.append(gpu.read_buffer(x))
    results = await MLPromise.all(reads)
    assert_equal(results[1::2], [rest[0]] * 3)
    assert_equal(results[::2], [first, *[np.full(4, number, np.float32) for number in range(3)]])


async def test_a_wait_that_is_cancelled_leaves_the_other_reads_alone(gpu, written, maps):
    buffers, arrays = written
    reads = [gpu.read_buffer(buffer) for buffer in buffers]
    with trio.CancelScope() as scope:
        scope.cancel()
        await reads[1]
    assert scope.cancelled_caught
    assert_equal(await MLPromise.all(reads), arrays)
    assert len(maps) == 1


async def test_a_buffer_that_is_destroyed_rejects_its_own_read_only(gpu, written, maps):
    (first, second, *others), arrays = written
    reads = [gpu.read_buffer(buffer) for buffer in (first, second, *others)]
    second.destroy()
    assert reads[1].state == "rejected"
    with pytest.raises(InvalidStateError, match=r"destroy\(\) was called on the buffer while the read was pending"):
        await reads[1]
    assert_equal(await MLPromise.all([reads[0], *reads[2:]]), [arrays[0], *arrays[2:]])
    assert len(maps) == 1


async def test_a_buffer_may_be_destroyed_between_two_reads(gpu, written):
    (first, second, third, *_), arrays = written
    reads = [gpu.read_buffer(first), gpu.read_buffer(second)]
    second.destroy()
    reads.append(gpu.read_buffer(third))
    assert_equal(await MLPromise.all([reads[0], reads[2]]), [arrays[0], arrays[2]])
    assert isinstance(reads[1].outcome, InvalidStateError)


async def test_a_step_performs_one_read(gpu, written, maps):
    buffers, arrays = written
    gpu.device_timeline.pause()
    reads = [gpu.read_buffer(buffer) for buffer in buffers]
    assert await gpu.device_timeline.step() == 1
    assert [read.state for read in reads] == ["fulfilled"] + ["pending"] * 4
    assert len(maps) == 1
    assert await gpu.device_timeline.step(3) == 3
    assert [read.state for read in reads] == ["fulfilled"] * 4 + ["pending"]
    assert len(maps) == 2
    gpu.device_timeline.resume()
    assert_equal(await MLPromise.all(reads), arrays)


async def test_a_trace_shows_each_read(ml, gpu, written, maps):
    buffers, arrays = written
    with tracing.trace(ml) as trace:
        assert_equal(await MLPromise.all([gpu.read_buffer(buffer) for buffer in buffers]), arrays)
        await gpu.drain()
    of_reads = [event for event in trace.events if event.kind == "read_buffer"]
    for what in ("enqueued", "started", "finished"):
        assert [event.what for event in of_reads].count(what) == len(buffers)
    assert len(maps) == 1


async def test_more_bytes_than_may_share_a_staging_buffer_have_several(gpu, written, maps):
    buffers, arrays = written
    large = [np.full(MOST_TOGETHER // 2 + 1, number, np.uint8) for number in range(2)]
    buffers, arrays = [*buffers, *[await filled(gpu, array, "uint8") for array in large]], [*arrays, *large]
    assert_equal(await MLPromise.all([gpu.read_buffer(buffer) for buffer in buffers]), arrays)
    assert len(maps) == 2, "the last is by itself"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", [4, MOST_TOGETHER // 4], ids=["together", "too many bytes for that"])
async def test_a_dispatch_that_fails_rejects_the_read_of_its_output_alone(gpu, queue, written, monkeypatch, count):
    buffers, arrays = written
    graph, (x, y) = await build_add_one(gpu, [count]), [await zeroed(gpu, [count]) for _ in range(2)]
    await gpu.drain()
    with monkeypatch.context() as patched:
        noted(patched, queue, "launch", lambda launches, *_: launches.insert(0, Failing()))
        gpu.dispatch(graph, {"x": x}, {"y": y})
        reads = [gpu.read_buffer(buffer) for buffer in (buffers[0], y, *buffers[1:])]
        with pytest.raises(UnknownError, match="cannot be encoded"):
            await reads.pop(1)
    assert_equal(await MLPromise.all(reads), arrays)


class Failing:
    """A command that cannot be encoded."""

    encode = staticmethod(failing(wgpu.GPUValidationError("it cannot be encoded")))


async def test_reads_without_memory_for_one_staging_buffer_have_their_own(gpu, written, maps, monkeypatch):
    buffers, arrays = written
    refuse = failing(wgpu.GPUOutOfMemoryError("Not enough memory left."))
    noted(monkeypatch, ReadbackPool, "take", lambda _, byte_length: byte_length <= 32 or refuse())
    assert_equal(await MLPromise.all([gpu.read_buffer(buffer) for buffer in buffers]), arrays)
    assert len(maps) == len(buffers)


async def test_reads_of_a_lost_device_are_all_rejected(gpu, written):
    buffers, _ = written
    reads = [gpu.read_buffer(buffer) for buffer in buffers[1:]]
    gpu.device.backend.device.destroy()
    await assert_lost(gpu, buffers[0])
    for read in reads:
        assert read.state == "rejected"
        assert read.outcome is not None
