"""Checklist S3: feeds and fetches on the host and on the device (ORT #17480)."""

import gc

import numpy as np
import pytest
import trio
import trio.testing
import wgpu

from spec_tests.support.backends import needs_adapter
from spec_tests.support.onnx_programs import add, sum_and_difference
from spec_tests.support.runtime import (
    device_location,
    gpu_buffer,
    live,
    lose,
    placed,
    refused_while_pending,
)
from webnn_py import InvalidStateError, NotSupportedError
from webnn_py.runtime import Environment, Tensor


async def test_s3_1_arrays_in_arrays_out(env, x):
    async with await env.create_session(add()) as session:
        for feed in (x, Tensor(x)):
            results = await session.run({"x": feed})
            assert results["y"].location == "cpu"
            assert results["y"].data_type == "float32"
            assert results["y"].dims == (2, 3)
            np.testing.assert_array_equal(results["y"].data, x + 1)


@needs_adapter
async def test_s3_2_an_input_is_the_users_gpu_buffer(gpu_env, shared_gpu, x):
    buffer = gpu_buffer(shared_gpu, x)
    tensor = Tensor.from_gpu_buffer(buffer, data_type="float32", dims=[2, 3])
    async with await gpu_env.create_session(add(), preferred_output_location="gpu-buffer") as session:
        results = await session.run({"x": tensor})
        await gpu_env.drain()
        assert gpu_env.statistics().host_copies == 0
        np.testing.assert_array_equal(await results["y"].get_data(release=True), x + 1)
    tensor.dispose()
    buffer.destroy()


@needs_adapter
async def test_s3_3_an_output_is_written_to_the_users_gpu_buffer(gpu_env, shared_gpu, x):
    buffer = gpu_buffer(shared_gpu)
    tensor = Tensor.from_gpu_buffer(buffer, data_type="float32", dims=[2, 3])
    async with await gpu_env.create_session(add()) as session:
        results = await session.run({"x": x}, {"y": tensor})
        assert results["y"] is tensor
        await gpu_env.drain()
        np.testing.assert_array_equal(
            np.frombuffer(shared_gpu.queue.read_buffer(buffer, 0, 24), np.float32), x.ravel() + 1
        )
    tensor.dispose()
    buffer.destroy()


@pytest.mark.parametrize(("location", "kept"), [("gpu-buffer", "sd"), ({"d": "gpu-buffer"}, "d")], ids=["all", "some"])
async def test_s3_4_and_5_all_or_some_outputs_stay_on_the_device_if_asked_for(env, backend, x, location, kept):
    async with await env.create_session(sum_and_difference(), preferred_output_location=location) as session:
        results = await session.run({"a": x, "b": x})
        assert list(results) == ["s", "d"]
        places = {name: device_location(backend) if name in kept else "cpu" for name in "sd"}
        assert {name: tensor.location for name, tensor in results.items()} == places
        await env.drain()
        assert env.statistics().host_copies == 4 - len(kept)
        np.testing.assert_array_equal(await results["s"].get_data(release=True), x + x)
        np.testing.assert_array_equal(await results["d"].get_data(release=True), x - x)


@needs_adapter
async def test_s3_6_the_gpu_buffer_of_a_tensor_is_its_memory(gpu_env, shared_gpu, x):
    async with await gpu_env.create_session(add(), preferred_output_location="gpu-buffer") as session:
        tensor = (await session.run({"x": x}))["y"]
        await gpu_env.drain()
        assert isinstance(tensor.gpu_buffer, wgpu.GPUBuffer)
        assert tensor.gpu_buffer is tensor.gpu_buffer
        read = shared_gpu.queue.read_buffer(tensor.gpu_buffer, 0, 24)
        np.testing.assert_array_equal(np.frombuffer(read, np.float32), x.ravel() + 1)
        shared_gpu.queue.write_buffer(tensor.gpu_buffer, 0, x)
        np.testing.assert_array_equal(await tensor.get_data(), x)
        tensor.gpu_buffer.destroy()  # the view, and not the memory
        np.testing.assert_array_equal(await tensor.get_data(release=True), x)
    with pytest.raises(InvalidStateError, match=r"gpu_buffer: <Tensor .*disposed of"):
        tensor.gpu_buffer  # noqa: B018 - reading it is the test


async def test_s3_6_only_webgpu_has_gpu_buffers(ml, numpy_context, x):
    with pytest.raises(InvalidStateError, match=r"gpu_buffer: <Tensor .* is on the host"):
        Tensor(x).gpu_buffer  # noqa: B018 - reading it is the test
    async with Environment(ml, backend="numpy") as env:
        tensor = await env.create_tensor(x)
        with pytest.raises(NotSupportedError, match="on the device numpy; only WebGPU has GPU buffers"):
            tensor.gpu_buffer  # noqa: B018 - likewise
        tensor.dispose()


async def test_s3_7_get_data_downloads_and_the_tensor_stays(env, x):
    tensor = await env.create_tensor(x)
    for _ in range(2):
        data = await tensor.get_data()
        np.testing.assert_array_equal(data, x)
        data[:] = 0  # a copy, owned by the caller
    assert not tensor.disposed


async def test_s3_8_get_data_downloads_and_releases_if_asked_for(env, x):
    tensor = await env.create_tensor(x)
    assert live(env.statistics())[0] == 1
    np.testing.assert_array_equal(await tensor.get_data(release=True), x)
    assert tensor.disposed
    await env.drain()
    assert live(env.statistics()) == (0, 0)
    with pytest.raises(InvalidStateError, match=r"get_data\(\): <Tensor .*was disposed of"):
        await tensor.get_data()


async def test_s3_9_every_use_of_a_disposed_tensor_is_refused(env, x):
    session = await env.create_session(add())
    for tensor in (await env.create_tensor(x), Tensor(x)):
        tensor.dispose()
        tensor.dispose()
        assert (tensor.data_type, tensor.dims) == ("float32", (2, 3))
        for use in (
            lambda tensor: tensor.data,
            lambda tensor: tensor.gpu_buffer,
            lambda tensor: tensor.get_data(),
            lambda tensor: session.run({"x": tensor}),
            lambda tensor: session.run({"x": x}, {"y": tensor}),
            lambda tensor: env.copy_tensors([tensor], [Tensor(x)]),
            lambda tensor: env.copy_tensors([Tensor(x)], [tensor]),
            env.zero,
            lambda tensor: env.cast(tensor, "int32"),
        ):
            with pytest.raises(InvalidStateError, match="disposed of"):
                await use(tensor)
    await session.release()


@needs_adapter
async def test_s3_10_the_users_gpu_buffer_is_never_freed(gpu_env, shared_gpu, x):
    buffer = gpu_buffer(shared_gpu, x)
    for end in ("dispose", "release", "garbage"):
        tensor = Tensor.from_gpu_buffer(buffer, dims=[2, 3])
        session = await gpu_env.create_session(add())
        await session.run({"x": tensor})
        assert tensor.gpu_buffer is buffer
        if end == "dispose":
            tensor.dispose()
        elif end == "garbage":
            del tensor
            gc.collect()
        await session.release()
        tensor = None
        gc.collect()
        read = shared_gpu.queue.read_buffer(buffer, 0, 24)
        np.testing.assert_array_equal(np.frombuffer(read, np.float32), x.reshape(-1), err_msg=end)
    for _ in range(3):  # what was collected is let go by the trio thread
        await trio.lowlevel.checkpoint()
    assert gpu_env.device is None
    buffer.destroy()


async def test_s3_11_outputs_on_the_device_are_their_users_and_the_rest_is_the_sessions(env, x):
    session = await env.create_session(add(), preferred_output_location="gpu-buffer")
    results = [(await session.run({"x": x + number}))["y"] for number in range(3)]
    await session.release()
    assert env.device is not None, "tensors live on it"
    assert live(env.statistics())[0] == 3
    for number, tensor in enumerate(results):
        np.testing.assert_array_equal(await tensor.get_data(release=True), x + number + 1)
    assert env.device is None
    await env.close()
    assert live(env.statistics()) == (0, 0)


async def test_s3_11_a_tensor_that_was_never_disposed_of_is_released_with_a_warning(ml, options, backend, x):
    env = Environment(ml, **options)
    tensor = await env.create_tensor(x)
    await env.drain()
    kept = [tensor]
    del tensor
    with pytest.warns(ResourceWarning, match=rf"<Tensor float32 \[2, 3\] {device_location(backend)}> was never"):
        kept.clear()
    await trio.testing.wait_all_tasks_blocked()
    await env.drain()
    assert live(env.statistics()) == (0, 0)
    await env.close()


async def test_s3_13_an_output_feeds_the_next_run_and_other_sessions(env, x):
    one = await env.create_session(add(1), preferred_output_location="gpu-buffer")
    ten = await env.create_session(add(10), preferred_output_location="gpu-buffer")
    tensor = (await one.run({"x": x}))["y"]
    await env.drain()
    copies = env.statistics().host_copies
    for session in (one, ten, one, ten):
        following = (await session.run({"x": tensor}))["y"]
        tensor.dispose()
        tensor = following
    await env.drain()
    assert env.statistics().host_copies == copies
    np.testing.assert_array_equal(await tensor.get_data(release=True), x + 23)
    await one.release()
    await ten.release()


async def test_s3_14_bound_runs_copy_nothing_between_host_and_device(env, x):
    source = await env.create_tensor(x)
    target = await env.create_tensor(data_type="float32", dims=[2, 3])
    async with await env.create_session(add()) as session:
        await session.run({"x": source}, {"y": target})
        await env.drain()
        before = env.statistics()
        for number in range(10):
            pair = (source, target) if number % 2 else (target, source)
            await session.run({"x": pair[0]}, {"y": pair[1]})
        await env.drain()
        assert env.statistics() == before
        np.testing.assert_array_equal(await target.get_data(release=True), x + 11)
        assert env.statistics().host_copies == before.host_copies + 1


@pytest.mark.parametrize("place", ["array", "tensor", "device"])
@pytest.mark.parametrize("named", ["one", "one and None", "both"])
async def test_s3_15_outputs_with_and_without_a_place_all_come_and_are_filled(env, x, place, named):
    arrays = {name: np.full((2, 3), np.nan, np.float32) for name in ("s", "d")}
    places = {name: await placed(env, array, place) for name, array in arrays.items()}
    fetches = {"one": {"s": places["s"]}, "one and None": {"s": places["s"], "d": None}, "both": places}[named]
    async with await env.create_session(sum_and_difference()) as session:
        results = await session.run({"a": x, "b": x * 2}, fetches)
        assert list(results) == ["s", "d"]
        np.testing.assert_array_equal(await results["s"].get_data(), x * 3)
        np.testing.assert_array_equal(await results["d"].get_data(), -x)
        if place != "device":
            np.testing.assert_array_equal(arrays["s"], x * 3)
        if place != "array":
            assert results["s"] is places["s"]
    for item in places.values():
        if isinstance(item, Tensor):
            item.dispose()


async def test_s3_15_a_list_of_names_fetches_these(env, x):
    async with await env.create_session(sum_and_difference()) as session:
        for names in (["d"], ("s",), ["d", "s"], []):
            copies = env.statistics().host_copies
            results = await session.run({"a": x, "b": x}, names)
            await env.drain()
            assert sorted(results) == sorted(names)
            assert env.statistics().host_copies == copies + 2 + len(names), "only what is fetched is read"


async def test_s3_17_reads_that_overlap_all_get_the_data(env, x):
    tensor = await env.create_tensor(x)
    seen = []

    async def read(*, release):
        seen.append(await tensor.get_data(release=release))

    async with trio.open_nursery() as nursery:
        for index in range(4):
            nursery.start_soon(lambda release=index == 1: read(release=release))
    assert len(seen) == 4
    for data in seen:
        np.testing.assert_array_equal(data, x)
    assert tensor.disposed


async def test_s3_17_disposing_rejects_a_pending_read(env, x):
    tensor = await env.create_tensor(x)
    words = r"get_data\(\): <Tensor .*disposed of while it was being read"
    async with refused_while_pending(env.device.context, tensor.get_data, words):
        tensor.dispose()


async def test_s3_17_a_loss_rejects_a_pending_read(env, x):
    tensor = await env.create_tensor(x)
    context = env.device.context
    async with refused_while_pending(context, tensor.get_data, r"get_data\(\): <Tensor .*lost: .*driver crashed"):
        lose(context)
        await context.lost
    assert env.device is None
