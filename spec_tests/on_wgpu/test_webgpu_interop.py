"""The proposal "webgpu-interop" in Python: the context's own GPU device shares memory, any other gets copies."""

import numpy as np
import pytest
import trio
import wgpu

import webnn_py
from spec_tests.on_wgpu.test_buffer_sharing import device, run_doubling  # noqa: F401 - a fixture
from spec_tests.support.backends import BACKENDS
from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import ONES
from spec_tests.support.hostile import VALUES
from webnn_py import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.devices.wgpu import interop
from webnn_py.devices.wgpu.adapters import choose, request_device

KIND = {"data_type": "float32", "shape": [4], "readable": True, "writable": True}
Usage = wgpu.BufferUsage


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"webgpu-interop"}) as opened:
        yield opened


@pytest.fixture
async def shared(ml, device):  # noqa: F811
    return await ml.create_context(gpu_device=device)


@pytest.fixture(params=["shared", *BACKENDS])
async def context(request, ml, device):  # noqa: F811
    """A context on the GPU device, and one on each device, which has copies."""
    options = {"gpu_device": device} if request.param == "shared" else {"backend": request.param}
    return await ml.create_context(**options)


async def test_work_of_both_sides_is_done_in_the_order_of_the_calls(context, device):  # noqa: F811
    graph = await build_add_one(context, [4])
    x, y = [await interop.create_exportable_buffer(context, device, **KIND) for _ in range(2)]
    context.write_buffer(x, ONES)
    lent = await interop.export_to_gpu(context, x)
    assert isinstance(lent, wgpu.GPUBuffer)
    run_doubling(device, lent)
    lent.destroy()
    lent.destroy()
    context.dispatch(graph, {"x": x}, {"y": y})
    again = await interop.export_to_gpu(context, y)
    run_doubling(device, again)
    again.destroy()
    context.dispatch(graph, {"x": y}, {"y": x})
    np.testing.assert_array_equal(await context.read_buffer(y), 6 * ONES)
    np.testing.assert_array_equal(await context.read_buffer(x), 7 * ONES)


async def test_the_contexts_own_device_shares_memory_and_others_get_copies(ml, shared, device):  # noqa: F811
    for context, copies in ((shared, 0), (await ml.create_context(backend="numpy"), 2)):
        x = await interop.create_exportable_buffer(context, device, **KIND)
        before = context.statistics().host_copies
        (await interop.export_to_gpu(context, x)).destroy()
        await context.drain()
        assert context.statistics().host_copies - before == copies


async def test_an_exported_buffer_is_the_gpu_devices_alone(context, device):  # noqa: F811
    graph = await build_add_one(context, [4])
    x, y = [await interop.create_exportable_buffer(context, device, **KIND) for _ in range(2)]
    plain = await context.create_buffer(**KIND)
    exporting = interop.export_to_gpu(context, x)
    for use in (
        lambda: context.dispatch(graph, {"x": x}, {"y": y}),
        lambda: context.dispatch(graph, {"x": y}, {"y": x}),
        lambda: context.write_buffer(x, ONES),
        lambda: copy_buffer(context, x, y),
        lambda: copy_buffer(context, y, x),
        lambda: clear_buffer(context, x),
    ):
        with pytest.raises(TypeError, match=r"exported> is exported to WebGPU; destroy\(\) of its GPUBuffer brings"):
            use()
    for promise in (context.read_buffer(x), interop.export_to_gpu(context, x)):
        with pytest.raises(TypeError, match="is exported to WebGPU"):
            await promise
    context.dispatch(graph, {"x": y}, {"y": plain})
    np.testing.assert_array_equal(await context.read_buffer(plain), ONES)
    lent = await exporting
    x.destroy()
    with pytest.raises(TypeError, match="is destroyed"):
        await interop.export_to_gpu(context, x)
    lent.destroy()
    out = await interop.export_to_gpu(context, y)
    context.destroy()
    out.destroy()


@pytest.mark.parametrize(
    ("usage", "use"),
    [
        (Usage.MAP_READ, lambda buffer: np.testing.assert_array_equal(_read(buffer), ONES)),
        (Usage.MAP_READ | Usage.COPY_DST, lambda buffer: buffer.map_sync(wgpu.MapMode.READ)),
        (Usage.MAP_WRITE, lambda buffer: buffer.map_sync(wgpu.MapMode.WRITE)),
        (Usage.STORAGE | Usage.INDIRECT, repr),
        (Usage.COPY_SRC, repr),
    ],
)
async def test_usages_are_those_asked_for(shared, device, usage, use):  # noqa: F811
    x = await interop.create_exportable_buffer(shared, device, usage=usage, **KIND)
    shared.write_buffer(x, ONES)
    lent = await interop.export_to_gpu(shared, x)
    assert lent.usage & usage == usage
    use(lent)
    lent.destroy()
    np.testing.assert_array_equal(await shared.read_buffer(x), ONES)


def _read(buffer):
    buffer.map_sync(wgpu.MapMode.READ)
    return np.frombuffer(buffer.read_mapped(0, 16), np.float32)


async def test_odd_sizes_are_padded(ml, device):  # noqa: F811
    context = await ml.create_context(backend="numpy")
    x = await interop.create_exportable_buffer(
        context, device, data_type="uint8", shape=[2, 3], readable=True, writable=True
    )
    context.write_buffer(x, bytes(range(6)))
    lent = await interop.export_to_gpu(context, x)
    assert lent.size == 8
    device.queue.write_buffer(lent, 0, bytes([7, 7, 7, 7]))
    lent.destroy()
    np.testing.assert_array_equal(await context.read_buffer(x), [[7, 7, 7], [7, 4, 5]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gpu_device": 5}, "gpu_device is 5; it must be a wgpu.GPUDevice"),
        ({"usage": 0}, "usage is 0x0; it must be flags of GPUBufferUsage"),
        ({"usage": Usage.MAP_READ | Usage.STORAGE}, "usage is 0x81; MAP_READ may be combined with COPY_DST only"),
        ({"usage": "STORAGE"}, "usage is 'STORAGE'"),
        ({"shape": [0]}, "dimension 0 must be from 1"),
    ],
)
async def test_what_does_not_fit_is_refused(shared, device, given, words):  # noqa: F811
    arguments = {"gpu_device": device, **KIND, **given}
    with pytest.raises(TypeError, match=rf"create_exportable_buffer\(\): .*{words}"):
        await interop.create_exportable_buffer(shared, **arguments)


async def test_a_hostile_argument_does_no_harm(shared, device):  # noqa: F811
    for make in VALUES.values():
        for name in ("gpu_device", "usage"):
            promise = interop.create_exportable_buffer(shared, **{"gpu_device": device, name: make(), **KIND})
            if promise.state == "rejected":
                with pytest.raises(TypeError, match=rf"^create_exportable_buffer\(\): {name} is"):
                    await promise
        with pytest.raises(TypeError, match=r"^export_to_gpu\(\): "):
            await interop.export_to_gpu(shared, make())


async def test_what_a_lost_device_had_is_lost(ml):
    other = request_device(choose("default", software=True))
    context = await ml.create_context(backend="numpy")
    x = await interop.create_exportable_buffer(context, other, **KIND)
    lent = await interop.export_to_gpu(context, x)
    other.destroy()
    lent.destroy()
    with pytest.raises(UnknownError, match=r"export_to_gpu\(\) failed: the GPUDevice is lost"):
        await context.read_buffer(x)
    with pytest.raises(InvalidStateError, match="the GPUDevice is lost"):
        await interop.create_exportable_buffer(context, other, **KIND)


async def test_a_forgotten_copy_comes_back_with_a_warning(ml, device):  # noqa: F811
    context = await ml.create_context(backend="numpy")
    x = await interop.create_exportable_buffer(context, device, **KIND)
    held = [await interop.export_to_gpu(context, x)]
    device.queue.write_buffer(held[0], 0, 3 * ONES)
    with pytest.warns(ResourceWarning, match="never given back"):
        held.clear()
    await trio.testing.wait_all_tasks_blocked()
    np.testing.assert_array_equal(await context.read_buffer(x), 3 * ONES)


async def test_nothing_of_it_is_there_unless_it_is_asked_for(device):  # noqa: F811
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        with pytest.raises(NotSupportedError, match=r'create_exportable_buffer\(\): this is of .*"webgpu-interop"'):
            await interop.create_exportable_buffer(context, device, **KIND)


async def test_what_a_context_without_webgpu_can_export_is_in_the_refusal(ml):
    context = await ml.create_context(backend="numpy")
    buffer = await context.create_buffer(**KIND)
    with pytest.raises(NotSupportedError, match="except those of create_exportable_buffer"):
        await interop.export_to_gpu(context, buffer)
    buffer.destroy()
