"""Large writes and reads, through mapped memory in slices; the slices are small here."""

import threading

import numpy as np
import pytest
import trio

from spec_tests.support.stand_ins import beside_a_busy_task, failing, noted
from spec_tests.support.watched_device import assert_lost, finish_work
from webnn_py.devices.wgpu import backend as wgpu_backend
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.runtime import transfers, uploads
from webnn_py.devices.wgpu.runtime.device_loss import is_lost
from webnn_py.devices.wgpu.runtime.uploads import StagedBytes

SLICE = 1024


LIMITS = {
    "SLICE": SLICE,
    "LEAST": 512,
    "MOST_STAGED": 8 * SLICE,
    "KEPT": 6 * SLICE,
    "LARGE": 512,
    "SHARE": 300,
    "PIECE": SLICE,
    "LONG_READ": 4 * SLICE,
    "SLICE_READ": SLICE,
    "SLICES_READ": 2,
}


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    """A function that sets limits of transfers; all are small from the start."""

    def set_limits(**limits):
        for name, value in limits.items():
            for module in (transfers, uploads, wgpu_backend):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, value)

    set_limits(**LIMITS)
    return set_limits


def numbers(count, first=0):
    return np.arange(first, first + count, dtype=np.int32)


async def made(gpu, count, data_type="int32"):
    return await gpu.create_buffer(data_type=data_type, shape=[count], readable=True, writable=True)


async def written(gpu, count):
    """Return a buffer of the numbers from 0, which have arrived."""
    x = await made(gpu, count)
    gpu.write_buffer(x, numbers(count))
    await gpu.drain()
    return x


@pytest.mark.parametrize(
    ("data_type", "count"),
    [
        *(("int32", count) for count in (128, 255, 256, 257, 1023, 1024, 1025, 1900)),
        *(("uint8", count) for count in (513, 1027, 8003)),
    ],
)
async def test_what_is_written_is_read(gpu, data_type, count):
    x, data = await made(gpu, count, data_type), numbers(count).astype(data_type)
    gpu.write_buffer(x, data)
    np.testing.assert_array_equal(await gpu.read_buffer(x), data)


async def test_what_happens_to_the_array_later_has_no_effect(gpu):
    x, data = await made(gpu, 1000), numbers(1000)
    gpu.device_timeline.pause()
    gpu.write_buffer(x, data)
    data[:] = 0
    gpu.device_timeline.resume()
    np.testing.assert_array_equal(await gpu.read_buffer(x), numbers(1000))


async def test_writes_and_a_long_read_keep_their_order(gpu):
    x = await made(gpu, 1900)
    for turn in range(3):
        gpu.write_buffer(x, numbers(1900, turn))
        read = gpu.read_buffer(x)
        gpu.write_buffer(x, numbers(1900, 99))
        np.testing.assert_array_equal(await read, numbers(1900, turn))


async def test_mapped_memory_is_used_again_and_bounded(gpu, ring):
    x = await made(gpu, 1024)
    for turn in range(6):
        gpu.write_buffer(x, numbers(1024, turn))
        await gpu.read_buffer(x)
    assert ring.byte_length == 4 * SLICE
    gpu.device_timeline.pause()
    for turn in range(4):  # 16 slices, of which 8 may be there
        gpu.write_buffer(x, numbers(1024, turn))
    assert ring.byte_length == 8 * SLICE
    gpu.device_timeline.resume()
    np.testing.assert_array_equal(await gpu.read_buffer(x), numbers(1024, 3))
    gpu.write_buffer(x, numbers(1024))
    assert ring.byte_length <= 6 * SLICE


async def test_what_is_never_written_leaves_its_memory(ring):
    staged = ring.stage(numbers(512))
    assert isinstance(staged, StagedBytes)
    assert ring.idle_bytes == 0
    del staged
    assert ring.idle_bytes == 2 * SLICE


async def test_without_mapped_memory_a_write_takes_the_other_way(gpu, ring, monkeypatch):
    noted(monkeypatch, ring, "_map", failing(MemoryError()))
    x = await made(gpu, 1000)
    gpu.write_buffer(x, numbers(1000))
    assert ring.byte_length == 0
    np.testing.assert_array_equal(await gpu.read_buffer(x), numbers(1000))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("is_under_way", [False, True])
async def test_a_large_write_to_a_lost_device_leaves_mapped_memory_alone(gpu, queue, ring, monkeypatch, is_under_way):
    """The memory has gone with the device: the library ends the process when it is asked for it."""
    x, backend = await written(gpu, 512), gpu.device.backend
    if not is_under_way:
        finish_work(backend)
        ring._collect()
    assert bool(ring.idle_bytes) != is_under_way

    def check(*_given, **_kind):
        assert not is_lost(backend.device), "asked for memory that has gone"  # write_buffer() raises it

    noted(monkeypatch, queue.engine, "mapped_bytes", check)
    backend.device.destroy()
    assert isinstance(backend.stage(numbers(512)), np.ndarray)
    gpu.write_buffer(x, numbers(512))
    await assert_lost(gpu, x)


@pytest.mark.sampled(1)
async def test_a_device_that_another_task_destroys_while_a_large_read_is_copied_rejects_it(ml, limit, monkeypatch):
    device = request_device(choose("default", software=True))
    gpu = await ml.create_context(gpu_device=device)
    x = await written(gpu, 2000)
    copy, copied, begun = transfers.copy_in_shares, [], trio.Event()
    limit(LONG_READ=transfers.LARGE * 100)

    def copy_unless_lost(*given):
        begun.set()
        copied.append((threading.get_ident(), is_lost(device)))
        if not is_lost(device):
            copy(*given)

    async def destroy():
        await begun.wait()
        device.destroy()

    monkeypatch.setattr(transfers, "copy_in_shares", copy_unless_lost)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(destroy)
        await assert_lost(gpu, x)
    assert {thread for thread, _ in copied} == {threading.get_ident()}, "in a thread, beside which a task may destroy"
    assert not any(gone for _, gone in copied), "copied memory that has gone"


@pytest.mark.sampled(1)
async def test_what_is_read_of_a_device_of_its_own_is_copied_beside_other_tasks(gpu, monkeypatch):
    x = await written(gpu, 2000)
    threads = noted(monkeypatch, transfers, "copy_in_shares")
    np.testing.assert_array_equal(await gpu.read_buffer(x), numbers(2000))
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.sampled(1)
async def test_what_is_not_that_much_is_copied_in_pieces_between_other_tasks_turns(gpu, limit, monkeypatch):
    x = await written(gpu, 2000)
    limit(LARGE=2**20, LONG_READ=2**20)
    turns = noted(monkeypatch, transfers, "copy_in_shares", lambda *_: "piece")
    async with beside_a_busy_task(turns):
        np.testing.assert_array_equal(await gpu.read_buffer(x), numbers(2000))
    pieces = [index for index, turn in enumerate(turns) if turn == "piece"]
    assert len(pieces) == 8
    assert turns[pieces[0] : pieces[-1]].count("other") >= 6, "one after each piece, in a random order at the ends"
