"""A context on a WebGPU device: truth about where it runs, order, memory, loss. On software where there is no GPU."""

import gc
import threading
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import trio
import wgpu
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.watched_device import quiet
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, MLPromise, OperationError, UnknownError
from webnn_py.device.on_wgpu import adapters, backend
from webnn_py.device.on_wgpu.records.table import find
from webnn_py.device.on_wgpu.runtime import executable, memory, native
from webnn_py.operators.registry import OPERATORS

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)

ONES = np.ones(4, np.float32)


@pytest.fixture
async def gpu(ml):
    return await ml.create_context(backend="wgpu")


async def buffers(context, count, **flags):
    options = {"readable": True, "writable": True, **flags}
    return [await context.create_buffer(data_type="float32", shape=[4], **options) for _ in range(count)]


async def test_the_backend_tells_where_it_runs(gpu):
    assert gpu.backend.name == "wgpu"
    assert gpu.backend.adapter
    assert gpu.backend.driver
    assert gpu.backend.limits["max-storage-buffer-binding-size"] >= gpu.op_support_limits()["max_tensor_byte_length"]


@pytest.mark.parametrize(
    ("preference", "order"),
    [
        ("default", ["DiscreteGPU", "IntegratedGPU", "CPU"]),
        ("high-performance", ["DiscreteGPU", "IntegratedGPU", "CPU"]),
        ("low-power", ["IntegratedGPU", "DiscreteGPU", "CPU"]),
    ],
)
def test_power_preference_chooses_the_adapter(monkeypatch, preference, order):
    class Adapter:
        def __init__(self, kind):
            self.info = {"adapter_type": kind}

    there = [Adapter(kind) for kind in ("CPU", "IntegratedGPU", "DiscreteGPU")]
    monkeypatch.setattr(adapters, "adapters", lambda: tuple(there))
    for kind in order:
        chosen = adapters.choose(preference, software=True)
        assert chosen.info["adapter_type"] == kind
        there.remove(chosen)
    there[:] = [Adapter("CPU")]
    assert adapters.choose(preference, software=False) is None


async def test_64_bit_integers_are_refused_everywhere_where_the_adapter_has_none(ml, monkeypatch):
    features_of = backend.features_of
    monkeypatch.setattr(backend, "features_of", lambda device: attrs.evolve(features_of(device), shader_int64=False))
    context = await ml.create_context(backend="wgpu")
    limits = context.op_support_limits()
    assert not {"int64", "uint64"} & set(limits["input"]["data_types"])
    assert not {"int64", "uint64"} & set(limits["gather"]["indices"]["data_types"])
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[4])
    refused = r"int64; this device has float32, float16, int32, uint32, int8, uint8"
    with pytest.raises(TypeError, match=rf"create_buffer\(\): .*{refused}"):
        await context.create_buffer(data_type="int64", shape=[4])
    for draw in (
        lambda: builder.input("y", data_type="int64", shape=[4]),
        lambda: builder.constant(1, data_type="int64"),
        lambda: builder.constant(np.ones(4, np.int64)),
        lambda: builder.cast(x, "int64"),
        lambda: builder.arg_max(x, 0, output_data_type="int64"),
    ):
        with pytest.raises(TypeError, match="int64"):
            draw()
    graph = await builder.build({"y": builder.cast(x, "int32")})
    assert graph.output_descriptors["y"].data_type == "int32"


async def test_operations_run_in_the_order_of_the_calls(gpu):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    answers = []
    for number in range(50):
        gpu.write_buffer(x, number * ONES)
        gpu.dispatch(graph, {"x": x}, {"y": y})
        answers.append(gpu.read_buffer(y))
    for number, answer in enumerate(answers):
        np.testing.assert_array_equal(await answer, (number + 1) * ONES)


async def test_fresh_buffers_read_as_zeros(gpu):
    (buffer,) = await buffers(gpu, 1)
    np.testing.assert_array_equal(await gpu.read_buffer(buffer), 0 * ONES)


async def test_destroying_a_buffer_rejects_its_read_and_lets_the_dispatch_finish(gpu):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu.write_buffer(x, ONES)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    answer, other = gpu.read_buffer(x), gpu.read_buffer(y)
    x.destroy()
    assert answer.state == "rejected"
    with pytest.raises(InvalidStateError):
        await answer
    np.testing.assert_array_equal(await other, 2 * ONES)
    with pytest.raises(DestroyedBufferError):
        gpu.write_buffer(x, ONES)


async def test_everything_is_released(ml, gpu):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu.write_buffer(x, ONES)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    abandoned = gpu.read_buffer(y)
    y.destroy()
    x.destroy()
    graph.destroy()
    assert abandoned.state == "rejected"
    await gpu.drain()
    assert (gpu.statistics().live_buffers, gpu.statistics().live_bytes) == (0, 0)
    gpu.destroy()


def is_destroyed(memory, device):
    try:
        device.queue.write_buffer(memory, 0, ONES)
    except wgpu.GPUValidationError as error:
        return "destroyed" in str(error)
    return False


async def test_released_memory_is_gone_whoever_still_refers_to_it(gpu):
    x, y = await buffers(gpu, 2)
    builder = MLGraphBuilder(gpu)
    operand = builder.input("x", data_type="float32", shape=[4])
    graph = await builder.build({"y": builder.add(operand, builder.constant(ONES))})
    gpu.dispatch(graph, {"x": x}, {"y": y})
    await gpu.read_buffer(y)
    owned, device = graph._handle.compiled._owned, gpu._device.backend.device
    memory = {"buffer": x._storage.data, "constant of the graph": owned[0]}
    assert not any(is_destroyed(held, device) for held in memory.values())

    x.destroy()
    graph.destroy()
    await gpu.drain()

    assert [name for name, held in memory.items() if not is_destroyed(held, device)] == [], "these still have memory"
    gpu.destroy()
    await gpu.device_timeline.wait_ended()
    with pytest.raises(wgpu.GPUValidationError, match="lost"):
        device.create_buffer(size=4, usage=wgpu.BufferUsage.COPY_DST)


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


async def test_a_graph_runs_on_more_buffers_than_it_keeps_bind_groups_for(gpu, monkeypatch):
    monkeypatch.setattr(executable, "MOST_GROUPS", 2)
    graph = await build_add_one(gpu, [4])
    given, computed = await buffers(gpu, 9), await buffers(gpu, 9)
    for number, x in enumerate(given):
        gpu.write_buffer(x, ONES * number)
    await gpu.drain()
    for x, y in zip(given, computed, strict=True):  # nothing is submitted in between
        gpu.dispatch(graph, {"x": x}, {"y": y})
    for number, y in enumerate(computed):
        np.testing.assert_array_equal(await gpu.read_buffer(y), ONES * (number + 1))


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


async def test_ordinary_modules_do_where_the_library_has_no_others(gpu, monkeypatch):
    library = native._api.libf

    class Library:
        def __getattr__(self, name):
            if name.endswith("Trusted"):
                raise AttributeError(name)
            return getattr(library, name)

    monkeypatch.setattr(native._api, "libf", Library())
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu.write_buffer(x, ONES)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), 2 * ONES)


async def test_a_submission_that_fails_marks_what_it_should_have_written(gpu, monkeypatch):
    graph = await build_add_one(gpu, [4])
    x, y, z = await buffers(gpu, 3)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES)

    def refuse(*_arguments):
        raise wgpu.GPUValidationError("the queue is closed")

    with monkeypatch.context() as patched:
        patched.setattr(gpu._device.backend._queue, "_encode_launches", refuse)
        gpu.dispatch(graph, {"x": x}, {"y": y})
        await quiet(gpu)  # nothing more comes, so what is collected is submitted
    gpu.dispatch(graph, {"x": y}, {"y": z})

    with pytest.raises(UnknownError, match=r"read_buffer\(\).*dispatch\(\) failed: the queue is closed"):
        await gpu.read_buffer(y)
    with pytest.raises(UnknownError, match=r"the input 'x' of a dispatch\(\).*the queue is closed"):
        await gpu.read_buffer(z)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES)
    assert gpu.lost.state == "pending"


async def test_constants_count_from_the_build_to_the_release(gpu):
    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[4])
    graph = await builder.build({"y": builder.add(x, builder.constant(np.arange(4, dtype=np.float32)))})
    built = gpu.statistics().live_bytes
    assert built >= ONES.nbytes
    x, y = await buffers(gpu, 2)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    await gpu.drain()
    assert gpu.statistics().live_bytes == built + 2 * ONES.nbytes
    for thing in (graph, x, y):
        thing.destroy()
    await gpu.drain()
    assert gpu.statistics().live_bytes == 0


async def test_contexts_come_and_go(ml):
    for number in range(20):
        context = await ml.create_context(backend="wgpu")
        graph = await build_add_one(context, [4])
        x, y = await buffers(context, 2)
        context.write_buffer(x, number * ONES)
        context.dispatch(graph, {"x": x}, {"y": y})
        np.testing.assert_array_equal(await context.read_buffer(y), (number + 1) * ONES)
        context.destroy()
        await context.device_timeline.wait_ended()
        assert context.statistics().live_bytes == 0


async def test_a_lost_device_loses_the_context_and_another_one_works_at_once(ml, gpu):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu._device.backend.device.destroy()  # as a driver's failure does, behind the context's back
    gpu.dispatch(graph, {"x": x}, {"y": y})
    with pytest.raises((UnknownError, InvalidStateError)):
        await gpu.read_buffer(y)
    info = await gpu.lost
    assert "lost" in info.message
    with pytest.raises(DestroyedBufferError, match="lost"):
        gpu.write_buffer(x, ONES)
    with pytest.raises(InvalidStateError, match="lost"):
        await gpu.create_buffer(data_type="float32", shape=[4])
    await gpu.device_timeline.wait_ended()
    assert gpu.statistics().live_bytes == 0
    again = await ml.create_context(backend="wgpu")
    (z,) = await buffers(again, 1)
    again.write_buffer(z, ONES)
    np.testing.assert_array_equal(await again.read_buffer(z), ONES)


async def test_a_loss_is_noticed_though_nothing_uses_the_device(gpu):
    gpu._device.backend.device.destroy()
    with trio.fail_after(20):
        assert "lost" in (await gpu.lost).message


async def test_a_cancelled_drain_returns_while_the_gpu_works(gpu, monkeypatch):
    finished, said = threading.Event(), []
    queue = gpu._device.backend._queue
    poll = queue.poll

    def poll_slowly(*, wait):
        if wait:
            said.append("the GPU has finished" if finished.wait(20) else "nobody waited for it")
            poll(wait=True)

    monkeypatch.setattr(queue, "poll", poll_slowly)
    (x,) = await buffers(gpu, 1)
    gpu.write_buffer(x, ONES)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(gpu.drain)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert not said
    finished.set()
    np.testing.assert_array_equal(await gpu.read_buffer(x), ONES)


FIRST = {
    "write_buffer": lambda s: s.gpu.write_buffer(s.x, ONES),
    "a dispatch as before": lambda s: s.gpu.dispatch(s.graph, {"x": s.x}, {"y": s.y}),
    "a dispatch with other buffers": lambda s: s.gpu.dispatch(s.graph, {"x": s.y}, {"y": s.x}),
    "read_buffer": lambda s: s.gpu.read_buffer(s.x),
    "create_buffer": lambda s: s.gpu.create_buffer(data_type="int8", shape=[1]),
    "create_constant_buffer": lambda s: s.gpu.create_constant_buffer(ONES, data_type="float32", shape=[4]),
    "build": lambda s: build_add_number(s.gpu, 7, [3, 5]),
}
"""What may touch a device first after it was lost."""


@pytest.mark.parametrize("what", FIRST)
async def test_whatever_touches_a_lost_device_first_notices_the_loss(gpu, what):
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(
        await gpu.read_buffer(y), ONES
    )  # now everything that a dispatch and a read need is there
    gpu._device.backend.device.destroy()

    answer = FIRST[what](SimpleNamespace(gpu=gpu, graph=graph, x=x, y=y))
    await quiet(gpu)

    assert gpu.lost.state == "fulfilled", f"{what} did not notice that the device is lost"
    assert "lost" in (await gpu.lost).message
    if isinstance(answer, MLPromise):
        with pytest.raises((InvalidStateError, UnknownError, OperationError), match="lost"):
            await answer
    await gpu.device_timeline.wait_ended()
    assert gpu.statistics().live_bytes == 0


async def test_a_kernel_that_does_not_compile_rejects_build_with_its_operator_and_types(gpu, monkeypatch):
    monkeypatch.setattr(find(OPERATORS["tanh"]), "expression", lambda _node, _x: "nonsense")
    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[4])
    with pytest.raises(OperationError, match="'tanh float32' does not compile"):
        await builder.build({"y": builder.tanh(x)})
    await build_add_one(gpu, [4])


async def test_memory_that_cannot_be_had_is_an_unknown_error_and_the_context_lives_on(gpu, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise wgpu.GPUOutOfMemoryError("Not enough memory left.")

    with monkeypatch.context() as patched:
        patched.setattr(gpu._device.backend, "device", type("Device", (), {"create_buffer": refuse})())
        with pytest.raises(UnknownError, match="Not enough memory"):
            await gpu.create_buffer(data_type="float32", shape=[4])
    (x,) = await buffers(gpu, 1)
    gpu.write_buffer(x, ONES)
    np.testing.assert_array_equal(await gpu.read_buffer(x), ONES)


async def test_a_destroyed_context_leaves_nothing_for_the_garbage_collector(ml):
    async def live():
        context = await ml.create_context(backend="wgpu")
        graph = await build_add_one(context, [4])
        x, y = await buffers(context, 2)
        context.write_buffer(x, ONES)
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.read_buffer(y)
        context.destroy()
        await context.device_timeline.wait_ended()

    async def objects():
        for _ in range(20):  # threads let go of what they worked on a moment after they have answered
            await trio.to_thread.run_sync(int)
        return {name: count["count"] for name, count in wgpu.diagnostics.object_counts.get_dict().items()}

    gc.collect()
    gc.disable()
    try:
        before = await objects()
        for _ in range(3):
            await live()
            await wait_all_tasks_blocked()
        assert await objects() == before
    finally:
        gc.enable()
