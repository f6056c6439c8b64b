"""Checklist S3: feeds and fetches that do not fit are refused before anything is enqueued (ORT #17480)."""

import numpy as np
import pytest
import trio
import wgpu

from spec_tests.support.backends import needs_adapter
from spec_tests.support.onnx_programs import add, sum_and_difference
from spec_tests.support.runtime import assert_adds, gpu_buffer, placed
from webnn_py import InvalidStateError, NotSupportedError, open_ml
from webnn_py.runtime import Environment, Tensor

WRONG = {
    "data type": ("float16", (2, 3), r"output 'y' is float16 \[2, 3\]; it must be float32 \[2, 3\]"),
    "rank": ("float32", (6,), r"output 'y' is float32 \[6\]; it must be float32 \[2, 3\]"),
    "size": ("float32", (2, 4), r"output 'y' is float32 \[2, 4\]; it must be float32 \[2, 3\]"),
}


@pytest.mark.parametrize("place", ["array", "tensor", "device"])
@pytest.mark.parametrize("flaw", WRONG)
async def test_s3_12_a_wrong_output_is_refused_before_anything_is_enqueued(env, x, flaw, place):
    data_type, dims, words = WRONG[flaw]
    array = np.full(dims, 7, data_type)
    target = await placed(env, array, place)
    right = np.zeros_like(x)
    async with await env.create_session(add()) as session:
        await session.run({"x": x})
        before = env.statistics(), env.device.context.device_timeline.statistics().done
        with pytest.raises(TypeError, match=rf"run\(\): {words}"):
            await session.run({"x": x}, {"y": target})
        assert (env.statistics(), env.device.context.device_timeline.statistics().done) == before
        np.testing.assert_array_equal(array, np.full(dims, 7))
        results = await session.run({"x": x}, {"y": right})
        assert results["y"].data is right
        np.testing.assert_array_equal(right, x + 1)
    if isinstance(target, Tensor):
        target.dispose()


async def refusals(env, x):
    """Return feeds, fetches, error and message of refused runs, by what is wrong."""
    one, two = await env.create_tensor(x), await env.create_tensor(x)
    dead = await env.create_tensor(x)
    dead.dispose()
    read_only = np.zeros_like(x)
    read_only.flags.writeable = False
    whole = np.zeros((3, 3), np.float32)
    feeds = {"a": x, "b": x}
    cases = {
        "unknown output": (feeds, {"z": None}, TypeError, r"fetches has 'z'; the outputs are \['s', 'd'\]"),
        "unknown output in a list": (feeds, ["s", "z"], TypeError, r"fetches has 'z'; the outputs are"),
        "an output twice": (feeds, ["s", "s"], TypeError, "fetches has 's' twice"),
        "a name for fetches": (feeds, "s", TypeError, "fetches is str; it must be a list of outputs' names"),
        "no place": (feeds, {"s": [0]}, TypeError, r"output 's' is list; it must be a numpy array, a Tensor or None"),
        "missing input": ({"a": x}, None, TypeError, r"feeds has \['a'\]; the inputs are \['a', 'b'\]"),
        "unknown input": ({**feeds, "c": x}, None, TypeError, r"feeds has \['a', 'b', 'c'\]; the inputs are"),
        "no feeds": ([x], None, TypeError, "feeds is list; it must be a mapping"),
        "no array": ({"a": x, "b": [1]}, None, TypeError, "input 'b' is list; it must be a numpy array or a Tensor"),
        "input's data type": ({"a": x, "b": x.astype("f8")}, None, TypeError, "input 'b'.* array of float64 given"),
        "input's other data type": ({"a": x, "b": x.astype("i4")}, None, TypeError, "input 'b' is int32; it must be"),
        "input's shape": ({"a": x, "b": x[0]}, None, TypeError, r"input 'b' is of shape \[3\]; it must be float32 \[2"),
        "disposed input": ({"a": x, "b": dead}, None, InvalidStateError, "input 'b', <Tensor .*was disposed of"),
        "disposed output": (feeds, {"s": dead}, InvalidStateError, "output 's', <Tensor .*was disposed of"),
        "a tensor for two inputs": ({"a": one, "b": one}, None, TypeError, "input 'b' is the same tensor as input 'a'"),
        "a tensor for two outputs": (
            feeds,
            {"s": one, "d": one},
            TypeError,
            "output 'd' is the same tensor as output 's'",
        ),
        "in and out": ({"a": x, "b": two}, {"s": two}, TypeError, "output 's' is the same tensor as input 'b'"),
        "an array for two outputs": (
            feeds,
            {"s": whole[:2], "d": whole[1:]},
            TypeError,
            "'d' overlaps output 's'",
        ),
        "an array in and out": ({"a": x, "b": whole[:2]}, {"s": whole[1:]}, TypeError, "'s' overlaps input 'b'"),
        "read-only": (feeds, {"s": read_only}, TypeError, "output 's' is an array that is read-only"),
        "strided": (feeds, {"s": np.zeros((2, 6), np.float32)[:, ::2]}, TypeError, "an array that is not contiguous"),
    }
    return cases, [one, two]


async def test_s3_16_wrong_feeds_and_fetches_are_refused_and_change_nothing(env, x):
    session = await env.create_session(sum_and_difference())
    cases, tensors = await refusals(env, x)
    await session.run({"a": x, "b": x})
    await env.drain()
    before = env.statistics(), env.device.context.device_timeline.statistics().done
    for name, (feeds, fetches, kind, words) in cases.items():
        with pytest.raises(kind, match=rf"run\(\): .*{words}"):
            await session.run(feeds, fetches)
        assert (env.statistics(), env.device.context.device_timeline.statistics().done) == before, name
    results = await session.run({"a": x, "b": x})
    np.testing.assert_array_equal(results["s"].data, x + x)
    for tensor in tensors:
        tensor.dispose()
    await session.release()


async def test_s3_16_a_tensor_of_another_environment_is_refused(ml, env, options, x):
    async with Environment(ml, **options) as other:
        foreign = await other.create_tensor(x)
        async with await env.create_session(add()) as session:
            with pytest.raises(TypeError, match=r"run\(\): input 'x' is on the device of another environment"):
                await session.run({"x": foreign})
            with pytest.raises(TypeError, match=r"run\(\): output 'y' is on the device of another environment"):
                await session.run({"x": x}, {"y": foreign})
            await assert_adds(session, x)
        foreign.dispose()


@needs_adapter
async def test_s3_16_gpu_buffers_that_do_not_fit_are_refused(gpu_env, shared_gpu, x):
    with pytest.raises(TypeError, match=r"from_gpu_buffer\(\): gpu_buffer is 1; it must be a wgpu.GPUBuffer"):
        Tensor.from_gpu_buffer(1, dims=[2, 3])
    with pytest.raises(TypeError, match=r"from_gpu_buffer\(\): data_type is 'f'; it must be one of"):
        Tensor.from_gpu_buffer(gpu_buffer(shared_gpu), data_type="f", dims=[2, 3])
    with pytest.raises(TypeError, match=r"has 24 bytes; float32 \[2, 3\] takes 24, .*multiple of 32.* at least 32"):
        Tensor.from_gpu_buffer(gpu_buffer(shared_gpu, size=24), dims=[2, 3])
    lacking = Tensor.from_gpu_buffer(gpu_buffer(shared_gpu, usage=wgpu.BufferUsage.COPY_DST), dims=[2, 3])
    async with await gpu_env.create_session(add()) as session:
        with pytest.raises(TypeError, match=r"run\(\): input 'x': import_buffer\(\): gpu_buffer lacks a usage"):
            await session.run({"x": lacking})
        await assert_adds(session, x)


@needs_adapter
async def test_s3_16_a_gpu_buffer_is_refused_by_a_device_that_is_no_gpu(ml, shared_gpu):
    tensor = Tensor.from_gpu_buffer(gpu_buffer(shared_gpu), dims=[2, 3])
    async with Environment(ml, backend="numpy") as env, await env.create_session(add()) as session:
        with pytest.raises(NotSupportedError, match=r"run\(\): input 'x': .* it must run on WebGPU"):
            await session.run({"x": tensor})
    with pytest.raises(InvalidStateError, match=r"get_data\(\): no environment has used <Tensor"):
        await tensor.get_data()
    with pytest.raises(InvalidStateError, match=r"copy_from\(\): no environment has used <Tensor"):
        await tensor.copy_from(Tensor(np.zeros((2, 3), np.float32)))


@needs_adapter
async def test_s3_16_a_users_gpu_buffer_is_bound_to_the_environment_by_a_copy(gpu_env, shared_gpu, x):
    tensor = Tensor.from_gpu_buffer(gpu_buffer(shared_gpu), dims=[2, 3])
    own = await gpu_env.create_tensor(x)
    await tensor.copy_from(own)
    np.testing.assert_array_equal(await tensor.get_data(), x)
    own.dispose()
    tensor.dispose()


def test_s3_16_an_environment_is_made_in_trio():
    async def opened():
        async with open_ml() as ml:
            return ml

    ml = trio.run(opened)
    with pytest.raises(RuntimeError, match=r"Environment\(\): it must be made in the trio task"):
        Environment(ml)
    with pytest.raises(TypeError, match=r"Environment\(\): ml is int; it must be what open_ml\(\) gives"):
        Environment(1)
