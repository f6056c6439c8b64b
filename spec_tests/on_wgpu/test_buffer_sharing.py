"""Buffers shared with a user's own WebGPU work, without copies."""

import gc
from functools import partial

import numpy as np
import pytest
import trio
import wgpu
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import ONES, buffers
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, NotSupportedError, UnknownError
from webnn_py.devices.wgpu import interop
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.engines import engine_of

USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
DOUBLE = """
@group(0) @binding(0) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { b[i] = 2.0 * b[i]; }
"""


@pytest.fixture(scope="module")
def device():
    return request_device(choose("default", software=True))


@pytest.fixture
async def gpu(ml, device):
    return await ml.create_context(gpu_device=device)


def run_doubling(device, buffer):
    """A pass of the user's own that doubles four floats."""
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": device.create_shader_module(code=DOUBLE), "entry_point": "main"}
    )
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": buffer}}]
    )
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(1)
    compute.end()
    device.queue.submit([encoder.finish()])


async def test_a_borrowed_device_outlives_its_context(ml, gpu, device):
    assert gpu.backend.name == "wgpu"
    gpu.destroy()
    await gpu.device_timeline.wait_ended()
    device.create_buffer(size=4, usage=USAGE).destroy()
    again = await ml.create_context(gpu_device=device)
    await build_add_one(again, [4])


async def test_a_context_on_a_device_that_is_lost_already_is_lost(ml):
    device = request_device(choose("default", software=True))
    device.destroy()
    context = await ml.create_context(gpu_device=device)
    with trio.fail_after(60):
        assert "had been lost before the context was created" in (await context.lost).message
    with pytest.raises(InvalidStateError):
        MLGraphBuilder(context)
    with pytest.raises(InvalidStateError):
        await context.create_buffer(data_type="float32", shape=[4])


async def test_an_imported_buffer_is_the_users_own_memory(gpu, device):
    graph = await build_add_one(gpu, [4])
    foreign = device.create_buffer(size=32, usage=USAGE)
    device.queue.write_buffer(foreign, 0, 3 * ONES)
    x = interop.import_buffer(gpu, foreign, data_type="float32", shape=[4], readable=True, writable=True)
    y = await gpu.create_buffer(data_type="float32", shape=[4], readable=True)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), 4 * ONES)
    gpu.write_buffer(x, 7 * ONES)
    await gpu.drain()
    np.testing.assert_array_equal(np.frombuffer(device.queue.read_buffer(foreign, 0, 16), np.float32), 7 * ONES)
    x.destroy()
    await gpu.drain()
    np.testing.assert_array_equal(np.frombuffer(device.queue.read_buffer(foreign, 0, 16), np.float32), 7 * ONES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 16}, "has 16 bytes; for float32 .4. it must have at least 32"),
        ({"usage": wgpu.BufferUsage.STORAGE}, "lacks a usage"),
    ],
    ids=["small", "usage"],
)
async def test_a_gpu_buffer_that_does_not_fit_is_refused(gpu, device, options, words):
    foreign = device.create_buffer(**{"size": 32, "usage": USAGE, **options})
    with pytest.raises(TypeError, match=rf"import_buffer\(\): .*{words}"):
        interop.import_buffer(gpu, foreign, data_type="float32", shape=[4])


async def test_what_is_no_gpu_buffer_or_another_devices_is_refused(gpu):
    with pytest.raises(TypeError, match=r"import_buffer\(\): gpu_buffer is 5; it must be a wgpu.GPUBuffer"):
        interop.import_buffer(gpu, 5, data_type="float32", shape=[4])
    other = request_device(choose("default", software=True))
    with pytest.raises(TypeError, match="another device"):
        interop.import_buffer(gpu, other.create_buffer(size=32, usage=USAGE), data_type="float32", shape=[4])
    other.destroy()


@pytest.mark.parametrize("is_back", [False, True])
async def test_a_lent_buffer_is_not_imported(gpu, is_back):
    x = await gpu.create_buffer(data_type="float32", shape=[8], readable=True)
    lent = await interop.export_to_gpu(gpu, x)
    if is_back:
        lent.destroy()
    with pytest.raises(TypeError, match=r"import_buffer\(\): .* which export_to_gpu\(\) lent"):
        interop.import_buffer(gpu, lent, data_type="float32", shape=[8])
    lent.destroy()
    np.testing.assert_array_equal(await gpu.read_buffer(x), np.zeros(8))


async def test_a_dispatch_from_and_to_the_same_gpu_buffer_fails_and_says_so(gpu, device):
    foreign, imported, x, _, graph = await shared(gpu, device)
    other = interop.import_buffer(gpu, foreign, data_type="float32", shape=[4], readable=True)
    gpu.dispatch(graph, {"x": imported}, {"y": other})
    with pytest.raises(UnknownError, match="dispatch"):
        await gpu.read_buffer(other)
    gpu.dispatch(graph, {"x": x}, {"y": other})
    np.testing.assert_array_equal(await gpu.read_buffer(imported), 2 * ONES)


async def shared(gpu, device, **options):
    """A user's buffer, an ``MLBuffer`` over it, two others, and a graph that adds 1."""
    foreign = device.create_buffer(size=32, usage=USAGE, **options)
    imported = interop.import_buffer(gpu, foreign, data_type="float32", shape=[4], readable=True, writable=True)
    others = await buffers(gpu, 2)
    gpu.write_buffer(others[0], ONES)
    return foreign, imported, *others, await build_add_one(gpu, [4])


@pytest.mark.parametrize("was_used", [False, True])
@pytest.mark.parametrize("use", ["dispatch from", "dispatch to", "read", "write"])
async def test_a_destroyed_gpu_buffer_fails_what_uses_it_and_nothing_else(gpu, device, use, was_used):
    foreign, imported, x, y, graph = await shared(gpu, device)
    if was_used:
        gpu.dispatch(graph, {"x": imported}, {"y": y})
        gpu.dispatch(graph, {"x": x}, {"y": imported})
        await gpu.drain()
    gpu.dispatch(graph, {"x": x}, {"y": y})
    foreign.destroy()
    spoilt = imported
    if use == "dispatch from":
        spoilt = await gpu.create_buffer(data_type="float32", shape=[4], readable=True)
        gpu.dispatch(graph, {"x": imported}, {"y": spoilt})
    elif use == "dispatch to":
        gpu.dispatch(graph, {"x": x}, {"y": imported})
    elif use == "write":
        gpu.write_buffer(imported, ONES)
    with pytest.raises(UnknownError, match="the imported GPU buffer has been destroyed"):
        await gpu.read_buffer(spoilt)
    np.testing.assert_array_equal(await gpu.read_buffer(y), 2 * ONES)


async def test_a_mapped_gpu_buffer_is_used_once_it_is_unmapped(gpu, device):
    foreign, imported, _, y, graph = await shared(gpu, device, mapped_at_creation=True)
    gpu.dispatch(graph, {"x": imported}, {"y": y})
    for spoilt in (imported, y):
        with pytest.raises(UnknownError, match="the imported GPU buffer is mapped"):
            await gpu.read_buffer(spoilt)
    foreign.unmap()
    gpu.write_buffer(imported, ONES)
    gpu.dispatch(graph, {"x": imported}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), 2 * ONES)


async def test_a_lost_device_is_not_taken_for_a_destroyed_gpu_buffer(ml):
    device = request_device(choose("default", software=True))
    gpu = await ml.create_context(gpu_device=device)
    _, imported, *_ = await shared(gpu, device)
    await gpu.drain()
    device.destroy()
    with pytest.raises(InvalidStateError, match="the context is lost: the GPU device was lost"):
        await gpu.read_buffer(imported)
    assert "the GPU device was lost" in (await gpu.lost).message


async def test_a_users_pass_runs_between_two_dispatches_without_host_copies(gpu, device):
    graph = await build_add_one(gpu, [4])
    x, y, z = await buffers(gpu, 3)
    gpu.write_buffer(x, 4 * ONES)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    copies = gpu.statistics().host_copies
    lent = await interop.export_to_gpu(gpu, y)
    assert isinstance(lent, engine_of(device).api.GPUBuffer)
    gpu.dispatch(graph, {"x": y}, {"y": z})  # waits until y has come back
    answer = gpu.read_buffer(z)
    await wait_all_tasks_blocked()
    assert answer.state == "pending"
    run_doubling(device, lent)
    assert gpu.statistics().host_copies <= copies + 1  # the write alone
    lent.destroy()
    np.testing.assert_array_equal(await answer, 11 * ONES)


async def test_what_was_dispatched_before_a_buffer_is_lent_has_been_submitted(gpu, device):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    backend = gpu.device.backend
    lend = backend.lend

    def lend_and_run(*args):
        lent = lend(*args)
        run_doubling(device, lent)  # as soon as anybody can
        return lent

    backend.lend = lend_and_run
    gpu.write_buffer(x, 4 * ONES)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    (await interop.export_to_gpu(gpu, y)).destroy()
    np.testing.assert_array_equal(await gpu.read_buffer(y), 10 * ONES)


async def test_what_was_dispatched_before_work_that_needs_a_lent_buffer_has_been_submitted(gpu, device):
    graph = await build_add_one(gpu, [4])
    x, y, z = await buffers(gpu, 3)
    lent = await interop.export_to_gpu(gpu, z)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    gpu.write_buffer(z, ONES)  # waits
    await wait_all_tasks_blocked()
    there = np.frombuffer(device.queue.read_buffer(y.storage.data), np.float32)
    np.testing.assert_array_equal(there[: ONES.size], ONES, "the GPU waits for the user, too")
    lent.destroy()


async def test_work_that_needs_a_lent_buffer_waits_and_other_work_before_it_does_not(gpu):
    x, y = await buffers(gpu, 2)
    lent = await interop.export_to_gpu(gpu, x)
    free, waiting = gpu.read_buffer(y), gpu.read_buffer(x)
    np.testing.assert_array_equal(await free, 0 * ONES)
    assert waiting.state == "pending"
    lent.destroy()
    lent.destroy()
    np.testing.assert_array_equal(await waiting, 0 * ONES)


@pytest.mark.parametrize("use", ["write", "dispatch to"])
async def test_what_overwrites_a_lent_buffer_comes_behind_the_users_work(gpu, device, use):
    x, y = await buffers(gpu, 2)
    graph = await build_add_one(gpu, [4])
    lent = await interop.export_to_gpu(gpu, y)
    if use == "write":
        gpu.write_buffer(y, ONES)
    else:
        gpu.dispatch(graph, {"x": x}, {"y": y})
    await wait_all_tasks_blocked()
    device.queue.write_buffer(lent, 0, 7 * ONES)
    lent.destroy()
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES)


async def test_a_lent_buffer_is_lent_again_once_it_is_back(gpu):
    x = await gpu.create_buffer(data_type="float32", shape=[4], readable=True)
    first, again = await interop.export_to_gpu(gpu, x), interop.export_to_gpu(gpu, x)
    answer = gpu.read_buffer(x)
    await wait_all_tasks_blocked()
    assert (again.state, answer.state) == ("pending", "pending")
    first.destroy()
    second = await again
    await wait_all_tasks_blocked()
    assert answer.state == "pending"
    second.destroy()
    np.testing.assert_array_equal(await answer, 0 * ONES)


async def test_a_lent_buffer_is_released_once_it_is_back(gpu):
    x = await gpu.create_buffer(data_type="float32", shape=[4])
    lent = await interop.export_to_gpu(gpu, x)
    x.destroy()
    await wait_all_tasks_blocked()
    assert gpu.statistics().live_buffers == 1
    lent.destroy()
    await gpu.drain()
    assert gpu.statistics().live_buffers == 0


async def lent_and_read(gpu):
    """Return a buffer that is lent, and a read that waits for it."""
    (x,) = await buffers(gpu, 1)
    return await interop.export_to_gpu(gpu, x), gpu.read_buffer(x)


async def test_losing_the_device_calls_lent_buffers_in(ml):
    gpu = await ml.create_context(backend="wgpu")
    lent, waiting = await lent_and_read(gpu)
    await wait_all_tasks_blocked()
    gpu.device.backend.device.destroy()
    with trio.fail_after(60), pytest.raises(InvalidStateError, match="the GPU device was lost"):
        await waiting
    del lent  # without a warning: nothing waits for it


def lent_buffers():
    """Return the number of lent buffers that wgpu-py holds."""
    gc.collect()
    return wgpu.GPUBuffer._ot.counts.get("LentBuffer", 0)


def let_go(held):
    held.clear()
    gc.collect()


async def let_go_here(held):
    let_go(held)


@pytest.mark.parametrize("where", ["here", "in a thread", "in a promise that nobody awaits"])
async def test_a_lent_buffer_that_is_lost_to_the_garbage_collector_comes_back_with_a_warning(gpu, where):
    x = await gpu.create_buffer(data_type="float32", shape=[4], readable=True, writable=True)
    gpu.write_buffer(x, ONES)
    before = lent_buffers()
    held = [interop.export_to_gpu(gpu, x)]
    answer = gpu.read_buffer(x)
    await wait_all_tasks_blocked()
    assert answer.state == "pending"
    if where != "in a promise that nobody awaits":
        held.append(await held[0])
    drop = partial(trio.to_thread.run_sync, let_go) if where == "in a thread" else let_go_here
    with pytest.warns(ResourceWarning, match="never given back"):
        await drop(held)
    assert lent_buffers() == before
    np.testing.assert_array_equal(await answer, ONES)


async def test_exports_of_wrong_buffers_are_refused(gpu):
    constant = await gpu.create_constant_buffer(ONES, data_type="float32", shape=[4])
    with pytest.raises(TypeError, match=r"export_to_gpu\(\): .*constant"):
        await interop.export_to_gpu(gpu, constant)
    x = await gpu.create_buffer(data_type="float32", shape=[4])
    x.destroy()
    with pytest.raises(DestroyedBufferError):
        await interop.export_to_gpu(gpu, x)


async def test_the_numpy_device_shares_nothing(numpy_context):
    x = await numpy_context.create_buffer(data_type="float32", shape=[4])
    with pytest.raises(NotSupportedError, match=r"export_to_gpu\(\): the context runs on numpy"):
        await interop.export_to_gpu(numpy_context, x)
    with pytest.raises(NotSupportedError, match=r"import_buffer\(\): the context runs on numpy"):
        interop.import_buffer(numpy_context, object(), data_type="float32", shape=[4])
