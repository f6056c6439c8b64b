"""Sessions whose symbolic dimensions have largest sizes: one graph for all sizes, of the proposal "dynamic shapes"."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import webnn_py
from spec_tests.support.onnx_programs import add
from webnn_py import MLDynamicDimension, MLGraphBuilder, NotSupportedError
from webnn_py.runtime import Environment
from webnn_py.runtime import session as sessions

LARGEST = {"batch": 3, "length": 40}
W = np.arange(12, dtype=np.float32).reshape(4, 3)


def appending():
    """Return a model that appends rows to a cache, and multiplies all: the output is one row longer."""
    value = helper.make_tensor_value_info
    inputs = [
        value("cache", TensorProto.FLOAT, ["batch", "length", 4]),
        value("row", TensorProto.FLOAT, ["batch", 1, 4]),
    ]
    nodes = [
        helper.make_node("Concat", ["cache", "row"], ["longer"], axis=1),
        helper.make_node("MatMul", ["longer", "w"], ["y"]),
    ]
    outputs = [value("y", TensorProto.FLOAT, None), value("longer", TensorProto.FLOAT, None)]
    weights = [onnx.numpy_helper.from_array(W, "w")]
    graph = helper.make_graph(nodes, "appending", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()


def feeds_of(batch, length, seed=0):
    random = np.random.default_rng(seed)
    shapes = {"cache": (batch, length, 4), "row": (batch, 1, 4)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def check_results(results, feeds):
    longer = np.concatenate([feeds["cache"], feeds["row"]], 1)
    np.testing.assert_array_equal(results["longer"].data, longer)
    np.testing.assert_allclose(results["y"].data, longer @ W, rtol=1e-5, atol=1e-5)


@pytest.fixture
async def ml_dynamic():
    async with webnn_py.open_ml(experimental={"dynamic-shapes"}) as ml:
        yield ml


@pytest.fixture
async def dynamic_env(ml_dynamic, backend, options):
    if backend == "onnxruntime":
        pytest.skip("the device has no named dimensions")
    async with Environment(ml_dynamic, **options) as env:
        yield env


async def test_one_graph_serves_all_sizes(dynamic_env):
    async with await dynamic_env.create_session(appending(), largest_sizes=LARGEST) as session:
        graph = session._graph
        for batch, length in ((1, 1), (3, 40), (2, 7), (1, 39), (2, 7)):
            feeds = feeds_of(batch, length, length)
            check_results(await session.run(feeds), feeds)
        assert {plan.graph for plan in session._plans.values()} == {graph}


async def test_tensors_of_any_size_are_bound(dynamic_env):
    async with await dynamic_env.create_session(appending(), largest_sizes=LARGEST) as session:
        feeds = feeds_of(2, 5)
        on_device = {name: await dynamic_env.create_tensor(array) for name, array in feeds.items()}
        longer = await dynamic_env.create_tensor(data_type="float32", dims=[2, 6, 4])
        results = await session.run(on_device, {"longer": longer, "y": np.empty([2, 6, 3], np.float32)})
        assert results["longer"] is longer
        again = {"cache": longer, "row": on_device["row"]}  # the cache of the next step, which never left the device
        y = (await session.run(again, ["y"]))["y"].data
        rows = np.concatenate([feeds["cache"], feeds["row"], feeds["row"]], 1)
        np.testing.assert_allclose(y, rows @ W, rtol=1e-5, atol=1e-5)
        with pytest.raises(TypeError, match=r"output 'y' is float32 \[2, 6, 4\]; it must be float32 \[2, 6, 3\]"):
            await session.run(on_device, {"y": np.empty([2, 6, 4], np.float32)})
        for tensor in (longer, *on_device.values()):
            tensor.dispose()


@pytest.mark.parametrize(
    ("batch", "length", "refusal"),
    [
        (
            1,
            41,
            r"run\(\): input 'cache' is of shape \[1, 41, 4\]; .* with 'length' from 1 to 40, the session's largest",
        ),
        (4, 1, r"with 'batch' from 1 to 3"),
        (1, 0, r"with 'length' from 1 to 40"),
    ],
)
async def test_sizes_beyond_are_refused_before_anything_runs(ml_dynamic, batch, length, refusal):
    async with (
        Environment(ml_dynamic, "numpy") as env,
        await env.create_session(appending(), largest_sizes=LARGEST) as session,
    ):
        with pytest.raises(TypeError, match=refusal):
            await session.run(feeds_of(batch, length))
        feeds = feeds_of(1, 2)
        wrong = {**feeds, "row": feeds_of(2, 2)["row"]}
        with pytest.raises(TypeError, match=r"'batch' is 1 by input 'cache'"):
            await session.run(wrong)
        check_results(await session.run(feeds), feeds)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"largest_sizes": {"batch": 3}}, r"leaves input 'cache', float32 \['batch', 'length', 4\], open; one graph"),
        (
            {"largest_sizes": {**LARGEST, "lenght": 3}},
            r"has \['lenght'\]; the open dimensions are .*; did you mean 'length'",
        ),
        ({"largest_sizes": {"length": 4, "batch": 0}}, r"largest_sizes\['batch'\] is 0; it must be at least 1"),
        ({"largest_sizes": 3}, "largest_sizes is 3; it must be a mapping of names to sizes"),
        ({"largest_sizes": LARGEST, "free_dimensions": {"batch": 2}}, r"largest_sizes has \['batch'\]"),
    ],
)
async def test_wrong_largest_sizes(ml_dynamic, given, refusal):
    async with Environment(ml_dynamic, "numpy") as env:
        with pytest.raises(TypeError, match=refusal):
            await env.create_session(appending(), **given)


async def test_known_sizes_may_be_mixed_with_largest_ones(ml_dynamic):
    async with Environment(ml_dynamic, "numpy") as env:
        options = {"free_dimensions": {"batch": 2}, "largest_sizes": {"length": 9}}
        async with await env.create_session(appending(), **options) as session:
            for length in (9, 1):
                feeds = feeds_of(2, length)
                check_results(await session.run(feeds), feeds)
            assert await session.check_finite(feeds) is None


async def test_it_has_to_be_asked_for(ml):
    async with Environment(ml, "numpy") as env:
        with pytest.raises(NotSupportedError, match=r"largest_sizes: .*dynamic-shapes.*each set of sizes has a graph"):
            await env.create_session(appending(), largest_sizes=LARGEST)
        assert env.sessions == ()


async def test_a_device_without_named_dimensions(ml_dynamic):
    pytest.importorskip("onnxruntime")
    async with Environment(ml_dynamic, "onnxruntime") as env:
        with pytest.raises(NotSupportedError, match="cannot compile graphs with named dimensions"):
            await env.create_session(appending(), largest_sizes=LARGEST)
        assert env.sessions == ()


async def test_buffers_of_many_sizes_are_let_go_of(ml_dynamic, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_SHAPES", 3)
    async with Environment(ml_dynamic, "numpy") as env:
        async with await env.create_session(appending(), largest_sizes=LARGEST) as session:
            for length in [*range(1, 12), 1, 2]:
                feeds = feeds_of(1, length)
                check_results(await session.run(feeds), feeds)
            await env.drain()
            assert len(session._plans) == 3
            assert env.statistics().live_buffers <= 3 * 4
        await env.drain()
        assert env.statistics().live_buffers == 0


async def test_a_captured_run_has_one_set_of_sizes(ml_dynamic):
    async with Environment(ml_dynamic, "numpy") as env:
        options = {"largest_sizes": LARGEST, "enable_graph_capture": True, "preferred_output_location": "ml-tensor"}
        async with await env.create_session(appending(), **options) as session:
            feeds = feeds_of(1, 3)
            on_device = {name: await env.create_tensor(array) for name, array in feeds.items()}
            for _ in range(2):
                results = await session.run(on_device)
            np.testing.assert_allclose((await results["y"].get_data())[0, -1], feeds["row"][0, 0] @ W, rtol=1e-5)
            for tensor in (*on_device.values(), *results.values()):
                tensor.dispose()


async def test_a_graph_of_the_users_with_named_dimensions(ml_dynamic):
    async with Environment(ml_dynamic, "numpy") as env:
        builder = MLGraphBuilder((await env.open_device()).context)
        rows = builder.input("rows", data_type="float32", shape=[MLDynamicDimension("n", 8), 2])
        graph = await builder.build({"sums": builder.concat([rows, builder.neg(rows)], 0)})
        async with await env.create_session(graph) as session:
            assert session.input_descriptors["rows"].shape == ("n", 2)
            for count in (8, 3):
                array = np.ones([count, 2], np.float32)
                assert (await session.run({"rows": array}))["sums"].dims == (2 * count, 2)
            with pytest.raises(TypeError, match="with 'n' from 1 to 8"):
                await session.run({"rows": np.ones([9, 2], np.float32)})


async def test_a_model_without_open_dimensions(ml_dynamic):
    async with Environment(ml_dynamic, "numpy") as env:
        with pytest.raises(TypeError, match=r"largest_sizes has \['n'\]; the open dimensions are none"):
            await env.create_session(add(), largest_sizes={"n": 3})
