"""The engines of the WebGPU device do the same, each on an adapter that it takes."""

import os
import subprocess
import sys

import numpy as np
import pytest

from spec_tests.support.backends import ENGINES, SWIFTSHADER, needs_adapter
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one, run
from spec_tests.support.four_floats import ONES
from spec_tests.support.watched_device import assert_lost
from webnn_py import MLGraphBuilder, NotSupportedError, OperationError
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.wgpu import adapters, interop
from webnn_py.devices.wgpu.engines import engine_of
from webnn_py.devices.wgpu.records.table import find
from webnn_py.devices.wgpu.runtime.memory import STORAGE

pytestmark = pytest.mark.sampled(1)


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture
async def gpu(ml, engine):
    return await ml.create_context(backend="wgpu", gpu_engine=engine)


async def test_a_context_tells_its_engine(gpu, engine):
    title = {"wgpu-native": "wgpu 0.", "dawn": "wgpudawn 0."}[engine]
    assert f", {title}" in gpu.backend.driver


async def test_what_was_written_before_a_dispatch_is_computed_and_read_behind_it(gpu):
    graph, x, y = await build_add_one(gpu, [4]), await filled(gpu, ONES), await zeroed(gpu, [4])
    for number in range(200):
        gpu.write_buffer(x, ONES * number)
        gpu.dispatch(graph, {"x": x}, {"y": y})
        if number % 10 == 0:
            np.testing.assert_array_equal(await gpu.read_buffer(y), ONES * (number + 1))
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES * 200)


async def test_long_arrays_are_written_and_read(gpu):
    numbers = np.arange(2**21, dtype=np.float32)
    x = await zeroed(gpu, [numbers.size])
    for sign in (1, -1, 1):  # mapped memory is used again
        gpu.write_buffer(x, sign * numbers)
        np.testing.assert_array_equal(await gpu.read_buffer(x), sign * numbers)


async def test_bytes_are_copied_and_cleared(gpu):
    source, target = await filled(gpu, np.arange(16), "int8"), await zeroed(gpu, [16], "int8")
    copy_buffer(gpu, source, target, source_offset=1, destination_offset=3, count=5)
    np.testing.assert_array_equal(await gpu.read_buffer(target), [0, 0, 0, 1, 2, 3, 4, 5, *[0] * 8])
    clear_buffer(gpu, target)
    np.testing.assert_array_equal(await gpu.read_buffer(target), [0] * 16)


async def test_a_kernel_that_does_not_compile_rejects_build_and_harms_no_other(gpu, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(find(OPERATORS["tanh"]), "expression", lambda _node, _x: "nonsense")
        builder = MLGraphBuilder(gpu)
        with pytest.raises(OperationError, match="'tanh float32' does not compile"):
            await builder.build({"y": builder.tanh(builder.input("x", data_type="float32", shape=[4]))})
    graph = await build_add_number(gpu, 3, [2])
    assert (await run(gpu, graph, x=[1, 2]))["y"] == [4, 5]


async def test_kernels_are_timed(gpu):
    graph, x, y = await build_add_one(gpu, [4]), await filled(gpu, ONES), await zeroed(gpu, [4])
    backend = gpu.device.backend
    await gpu.drain()
    (timing,) = await backend.dispatch_timed(graph.handle.compiled, {"x": x.storage}, {"y": y.storage})
    assert 0 <= timing.duration_ns < 10**10
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES + 1)


async def test_memory_is_shared_with_the_users_device(ml, engine):
    device = adapters.request_device(adapters.choose("default", software=True, engine=engine))
    gpu = await ml.create_context(gpu_device=device)
    given = device.create_buffer(size=32, usage=STORAGE)
    x = interop.import_buffer(gpu, given, data_type="float32", shape=[4], readable=True, writable=True)
    gpu.write_buffer(x, ONES)
    await gpu.drain()
    assert np.frombuffer(device.queue.read_buffer(given, 0, 16), np.float32).tolist() == [1, 1, 1, 1]
    y = await zeroed(gpu, [4])
    lent = await interop.export_to_gpu(gpu, y)
    device.queue.write_buffer(lent, 0, 7 * ONES)
    lent.destroy()
    np.testing.assert_array_equal(await gpu.read_buffer(y), 7 * ONES)


async def test_a_device_that_is_destroyed_loses_its_contexts_alone(ml, gpu, engine):
    (x,) = [await filled(gpu, ONES)]
    gpu.device.backend.device.destroy()
    await assert_lost(gpu, x)
    other = await ml.create_context(backend="wgpu", gpu_engine=engine)
    np.testing.assert_array_equal(await other.read_buffer(await filled(other, [3])), [3])


async def test_each_of_many_contexts_has_a_device_that_works(ml, engine):
    for number in range(10):
        gpu = await ml.create_context(backend="wgpu", gpu_engine=engine)
        np.testing.assert_array_equal(await gpu.read_buffer(await filled(gpu, [number])), [number])
        gpu.destroy()
        await gpu.device_timeline.wait_ended()


@needs_adapter
async def test_a_device_of_another_engine_than_is_asked_for_is_refused(ml, shared_gpu):
    other = {"wgpu": "dawn", "wgpudawn": "wgpu-native"}[engine_of(shared_gpu).title.split()[0]]
    with pytest.raises((TypeError, NotSupportedError), match=f"gpu_engine.*{other}"):
        await ml.create_context(gpu_device=shared_gpu, gpu_engine=other)


async def test_an_engine_that_there_is_not_is_refused_with_those_that_there_are(ml):
    with pytest.raises(TypeError, match="gpu_engine is 'metal'; it must be one of 'wgpu-native', 'dawn'"):
        await ml.create_context(gpu_engine="metal")


def test_an_engine_that_is_not_installed_is_refused_with_the_command_that_installs_it():
    program = """
import sys, trio, webnn_py
sys.modules["wgpudawn"] = None

async def main():
    async with webnn_py.open_ml() as ml:
        await ml.create_context(gpu_engine="dawn")

try:
    trio.run(main)
except* webnn_py.NotSupportedError as group:
    print(group.exceptions[0])
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "gpu_engine 'dawn' cannot be loaded" in ran.stdout
    assert "pip install" in ran.stdout


FOUND_AT_ONCE = """
import sys, threading
from webnn_py.devices.wgpu import adapters

def find():
    begin.wait()
    print(bool(adapters.adapters(sys.argv[1])))

begin = threading.Barrier(4)
threads = [threading.Thread(target=find) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_look_for_adapters_at_the_same_moment_all_find_them(engine):
    drivers = {} if engine == "wgpu-native" else {"VK_ADD_DRIVER_FILES": str(SWIFTSHADER)}
    ran = subprocess.run(
        [sys.executable, "-c", FOUND_AT_ONCE, engine],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | drivers,
    )
    assert ran.stdout.count("True") == 4, ran.stderr  # lines of threads may run into each other
