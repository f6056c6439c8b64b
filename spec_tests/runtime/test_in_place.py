"""Caches that a run updates: in the tensor that it reads, or from one tensor to another."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import OPTIONS
from spec_tests.support.backends import ON_GPU
from spec_tests.support.cache_facts import COPYING
from spec_tests.support.onnx_programs import make_model
from spec_tests.support.sampled_engine import owner
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime import Environment, Tensor
from webnn_py.saved_graphs import SavedGraphs

CAPACITY, HEADS, KEY_HEADS, SIZE = 8, 4, 2, 16
NAMES = ("query", "past_key", "past_value", "last", "total")
CACHES = {"present_key": "past_key", "present_value": "past_value"}


@pytest.fixture(params=["numpy", "onnxruntime", ON_GPU])
def in_place_device(request):
    """Return a device that updates caches in their place."""
    if owner(request.param) in COPYING:
        pytest.skip("this execution provider copies caches")
    return request.param


def decoder(new, batch=1, data_type="float32"):
    """Return a model that attends to a cache, with packed queries, keys and values of ``new`` positions."""
    inputs = ["query", "", "", "past_key", "past_value", "last", "total"]
    heads = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS}
    node = helper.make_node(
        "GroupQueryAttention", inputs, ["output", *CACHES], domain="com.microsoft", name="attention", **heads
    )
    cache = np.zeros((batch, KEY_HEADS, CAPACITY, SIZE), data_type)
    rows = np.zeros((batch, new, (HEADS + 2 * KEY_HEADS) * SIZE), data_type)
    lengths = np.zeros(batch, np.int32), np.zeros((), np.int32)
    arrays = dict(zip(NAMES, (rows, cache, cache, *lengths), strict=True))
    return make_model([node], arrays, ["output", *CACHES], opset=17)


class Steps:
    """A prompt of three positions and then one at a time, here and in onnxruntime with caches of its own."""

    def __init__(self, batch=1):
        self.batch = batch
        rng = np.random.default_rng(5)
        width = (HEADS + 2 * KEY_HEADS) * SIZE
        self.rows = [rng.standard_normal((batch, new, width)).astype(np.float32) for new in (3, 1, 1, 1)]

    def feeds(self, step):
        """Return what a step is fed, but for caches."""
        last = sum(item.shape[1] for item in self.rows[: step + 1]) - 1
        lengths = {"last": np.full(self.batch, last, np.int32), "total": np.array(last + 1, np.int32)}
        return {"query": self.rows[step], **lengths}

    def expected(self):
        """Yield the results of each step by onnxruntime."""
        caches = [np.zeros((self.batch, KEY_HEADS, CAPACITY, SIZE), np.float32)] * 2
        for step, rows in enumerate(self.rows):
            model = decoder(rows.shape[1], self.batch)
            session = onnxruntime.InferenceSession(model, OPTIONS, providers=["CPUExecutionProvider"])
            output, *caches = session.run(None, {**self.feeds(step), **dict(zip(CACHES.values(), caches, strict=True))})
            yield output, caches


async def caches_on_device(env, batch=1):
    shape = (batch, KEY_HEADS, CAPACITY, SIZE)
    return {name: await env.create_tensor(data_type="float32", dims=shape) for name in CACHES.values()}


@pytest.mark.parametrize("batch", [1, 2])
async def test_a_cache_in_one_tensor_is_what_onnxruntime_computes(ml, in_place_device, batch):
    async with Environment(ml, in_place_device) as env:
        steps, tensors = Steps(batch), await caches_on_device(env, batch)
        prompt = await env.create_session(decoder(3, batch))
        decode = await env.create_session(decoder(1, batch))
        assert prompt.in_place == decode.in_place == CACHES
        places = {name: tensors[of] for name, of in CACHES.items()}
        for step, (output, caches) in enumerate(steps.expected()):
            session = prompt if step == 0 else decode
            results = await session.run({**steps.feeds(step), **tensors}, {"output": None, **places})
            np.testing.assert_allclose(results["output"].data, output, atol=1e-5)
            assert results["present_key"] is tensors["past_key"]
            for tensor, cache in zip(tensors.values(), caches, strict=True):
                np.testing.assert_allclose(await tensor.get_data(), cache, atol=1e-5)
        for tensor in tensors.values():
            tensor.dispose()


async def test_a_cache_that_goes_from_one_tensor_to_another_is_the_same(env):
    steps, now, later = Steps(), await caches_on_device(env), await caches_on_device(env)
    sessions = {new: await env.create_session(decoder(new)) for new in (3, 1)}
    for step, (output, caches) in enumerate(steps.expected()):
        session = sessions[steps.rows[step].shape[1]]
        places = {name: later[of] for name, of in CACHES.items()}
        results = await session.run({**steps.feeds(step), **now}, {"output": None, **places})
        np.testing.assert_allclose(results["output"].data, output, atol=1e-5)
        now, later = later, now
        for tensor, cache in zip(now.values(), caches, strict=True):
            np.testing.assert_allclose(await tensor.get_data(), cache, atol=1e-5)
    for tensor in (*now.values(), *later.values()):
        tensor.dispose()


async def test_other_outputs_need_tensors_of_their_own(ml, in_place_device):
    async with Environment(ml, in_place_device) as env:
        tensors, session = await caches_on_device(env), await env.create_session(decoder(1))
        feeds = {**Steps().feeds(1), **tensors}
        with pytest.raises(TypeError, match="output 'present_key' is the same tensor as input 'past_value'; each"):
            await session.run(feeds, {"present_key": tensors["past_value"]})
        both = dict.fromkeys(CACHES, tensors["past_key"])
        with pytest.raises(TypeError, match="output 'present_value' is the same tensor as input 'past_key'; each"):
            await session.run(feeds, both)
        for tensor in tensors.values():
            tensor.dispose()


async def test_rows_behind_the_new_ones_stay_in_place(ml, in_place_device):
    async with Environment(ml, in_place_device) as env:
        tensors, session = await caches_on_device(env), await env.create_session(decoder(1))
        ones = np.ones(tensors["past_key"].dims, np.float32)
        await env.copy_tensors([Tensor(ones)], [tensors["past_key"]])
        feeds = {"query": Steps().rows[1], "last": np.int32([2]), "total": np.array(3, np.int32), **tensors}
        await session.run(feeds, {name: tensors[of] for name, of in CACHES.items()})
        after = await tensors["past_key"].get_data()
        assert (after[:, :, [0, 1, *range(3, CAPACITY)]] == 1).all()
        assert (after[:, :, 2] != 1).all()
        for tensor in tensors.values():
            tensor.dispose()


async def test_saved_graphs_are_in_place_too(tmp_path, in_place_device):
    saved = SavedGraphs(tmp_path)
    async with open_ml() as ml:
        context = await ml.create_context(backend=in_place_device)
        builder = MLGraphBuilder(context)
        graph = await builder.build(OnnxModel.load(decoder(1)).convert(builder), keep_source=True)
        await saved.save("decoder", graph)
        loaded = await saved.load(context, "decoder")
        assert loaded.in_place == graph.in_place == CACHES
        graph.destroy()
        loaded.destroy()


async def test_an_input_that_something_else_reads_is_not_updated_in_place(ml, in_place_device):
    context = await ml.create_context(backend=in_place_device)
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(decoder(1)).convert(builder)
    past = next(operand for operand, value in builder._values.items() if getattr(value, "name", "") == "past_key")
    graph = await builder.build({**outputs, "other": builder.neg(past)})
    assert graph.in_place == {"present_value": "past_value"}
    graph.destroy()


async def test_a_step_allocates_and_compiles_nothing_and_uploads_the_token_alone(ml, in_place_device):
    async with Environment(ml, in_place_device) as env:
        tensors, session = await caches_on_device(env), await env.create_session(decoder(1))
        places = {name: tensors[of] for name, of in CACHES.items()}
        seen = []
        for step in range(6):
            feeds = {"query": Steps().rows[1], "last": np.int32([step]), "total": np.array(step + 1, np.int32)}
            await session.run({**feeds, **tensors}, {"output": None, **places})
            found = env.device.context.statistics()
            seen.append((found.live_buffers, found.live_bytes, found.of_backend, found.host_copies - 4 * step))
        assert seen[2:] == seen[1:-1], "four copies a step: what is fed, and the output"
        for tensor in tensors.values():
            tensor.dispose()


async def test_samples_continue_at_places_of_their_own(ml, in_place_device):
    new, last, rng = 3, np.int32([4, 6]), np.random.default_rng(6)
    width, shape = (HEADS + 2 * KEY_HEADS) * SIZE, (2, KEY_HEADS, CAPACITY, SIZE)
    caches = {name: rng.standard_normal(shape).astype(np.float32) for name in CACHES.values()}
    rows = rng.standard_normal((2, new, width)).astype(np.float32)
    alone = onnxruntime.InferenceSession(decoder(new), OPTIONS, providers=["CPUExecutionProvider"])
    async with Environment(ml, in_place_device) as env:
        tensors = {name: await env.create_tensor(array) for name, array in caches.items()}
        session = await env.create_session(decoder(new, 2))
        feeds = {"query": rows, "last": last, "total": np.asarray(last.max() + 1, np.int32), **tensors}
        results = await session.run(feeds, {"output": None, **{name: tensors[of] for name, of in CACHES.items()}})
        keys = await tensors["past_key"].get_data()
        for sample in range(2):
            own = slice(sample, sample + 1)
            given = {"query": rows[own], "last": last[own], "total": np.asarray(last[sample] + 1, np.int32)}
            output, key, _ = alone.run(None, given | {name: array[own] for name, array in caches.items()})
            np.testing.assert_allclose(results["output"].data[own], output, atol=1e-5)
            count = last[sample] + 1
            np.testing.assert_allclose(keys[own, :, :count], key[:, :, :count], atol=1e-6)
        for tensor in tensors.values():
            tensor.dispose()


@pytest.mark.parametrize("in_place_device", ["numpy", "onnxruntime"], indirect=True)
async def test_rows_that_scatter_nd_writes_go_into_the_tensor_of_its_input(ml, in_place_device):
    async with Environment(ml, in_place_device) as env:
        builder = MLGraphBuilder((await env.open_device()).context)
        cache = builder.input("cache", data_type="float32", shape=[6, 2])
        place = builder.input("place", data_type="int32", shape=[1, 1])
        rows = builder.input("rows", data_type="float32", shape=[1, 2])
        written = builder.scatter_nd(cache, place, rows)
        graph = await builder.build({"written": written, "sums": builder.reduce_sum(written, axes=[0])})
        async with await env.create_session(graph) as session:
            assert session.in_place == {"written": "cache"}
            tensor, expected = await env.create_tensor(np.ones([6, 2], np.float32)), np.ones([6, 2], np.float32)
            for at in (4, 0, 4):
                feeds = {"place": np.array([[at]], np.int32), "rows": np.full([1, 2], at + 2, np.float32)}
                results = await session.run({**feeds, "cache": tensor}, {"written": tensor, "sums": None})
                expected[at] = at + 2
                np.testing.assert_array_equal(results["sums"].data, expected.sum(0))
            np.testing.assert_array_equal(await tensor.get_data(), expected)
            other = (await session.run({**feeds, "cache": expected}))["written"]
            np.testing.assert_array_equal(other.data, expected)
            tensor.dispose()


async def test_a_tensor_that_something_else_reads_stays_as_it_is(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    cache = builder.input("cache", data_type="float32", shape=[6, 2])
    place = builder.input("place", data_type="int32", shape=[1, 1])
    written = builder.scatter_nd(cache, place, builder.slice(cache, [5, 0], [1, 2]))
    assert (await builder.build({"written": written})).in_place == {}
