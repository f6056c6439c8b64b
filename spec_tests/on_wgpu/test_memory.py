"""The memory through which the host reads: kept, reused, and not without limit."""

from types import SimpleNamespace

import numpy as np
import pytest

from spec_tests.support.four_floats import ONES, buffers
from webnn_py.devices.wgpu.runtime import memory


async def test_reads_take_the_staging_memory_that_earlier_reads_have_left(gpu, monkeypatch):
    (x,) = await buffers(gpu, 1)
    await gpu.read_buffer(x)
    made = []
    create = gpu._device.backend.device.create_buffer
    monkeypatch.setattr(
        gpu._device.backend._staging,
        "_device",
        SimpleNamespace(create_buffer=lambda **options: made.append(options) or create(**options)),
    )
    for _ in range(3):
        await gpu.read_buffer(x)
    assert made == []
    first, second = gpu.read_buffer(x), gpu.read_buffer(x)
    await first
    await second
    assert len(made) == 1, "two reads in flight need memory of their own"


async def test_staging_memory_is_kept_up_to_a_limit(gpu, monkeypatch):
    monkeypatch.setattr(memory, "KEPT_BYTES", 1)
    (x,) = await buffers(gpu, 1)
    gpu.write_buffer(x, ONES)
    for _ in range(2):
        np.testing.assert_array_equal(await gpu.read_buffer(x), ONES)
    assert not any(gpu._device.backend._staging._idle.values())


async def test_staging_memory_that_is_taken_again_does_not_count_as_idle(gpu, monkeypatch):
    monkeypatch.setattr(memory, "KEPT_BYTES", 256)
    (x,) = await buffers(gpu, 1)
    for _ in range(3):
        await gpu.read_buffer(x)
    assert [len(idle) for idle in gpu._device.backend._staging._idle.values()] == [1]


@pytest.mark.parametrize(("byte_length", "taken"), [(1, 256), (300, 512), (2**24, 2**24), (2**24 + 4, 2**24 + 32)])
async def test_staging_memory_comes_in_sizes_that_others_can_use(gpu, byte_length, taken):
    pool = memory.ReadbackPool(gpu._device.backend.device)
    assert pool.take(byte_length).size == taken
