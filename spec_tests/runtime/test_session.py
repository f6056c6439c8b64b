"""Sessions of models of every kind, with open shapes and overlapping runs."""

import sys

import numpy as np
import onnx
import pytest
import trio
import trio.testing

from spec_tests.support.onnx_programs import add, product, program, sum_and_difference
from spec_tests.support.runtime import assert_adds, built, live
from spec_tests.support.stand_ins import noted
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError
from webnn_py.runtime import Environment, Tensor, TensorDescriptor
from webnn_py.runtime.runs import BoundGraph

W = np.arange(12, dtype=np.float32).reshape(4, 3)


def rows(count):
    return np.arange(count * 4, dtype=np.float32).reshape(count, 4) % 7


# --- models --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bytes", "path", "str", "model"])
async def test_a_model_comes_as_bytes_path_or_loaded(env, tmp_path, kind, x):
    (tmp_path / "model.onnx").write_bytes(add())
    model = {
        "bytes": add(),
        "path": tmp_path / "model.onnx",
        "str": str(tmp_path / "model.onnx"),
        "model": OnnxModel.load(add()),
    }[kind]
    async with await env.create_session(model) as session:
        assert session.input_names == ("x",)
        assert session.output_names == ("y",)
        assert dict(session.input_descriptors) == {"x": TensorDescriptor("float32", (2, 3))}
        assert dict(session.output_descriptors) == {"y": TensorDescriptor("float32", (2, 3))}
        assert repr(session) == "<InferenceSession (x: float32 [2, 3]) -> (y: float32 [2, 3])>"
        await assert_adds(session, x)


async def test_ways_out_name_the_options_of_sessions(env):
    text = "g (float[2] x) => (float[2] y, float[0] z) <int64[1] i = {1}> { y = Neg (x)  z = Slice (x, i, i) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}').SerializeToString()
    with pytest.raises(UnsupportedModelError, match="leave it out, by output_names"):
        await env.create_session(model)
    async with await env.create_session(model, output_names=["y"]) as session:
        assert session.output_names == ("y",)


async def test_a_graph_is_built_on_the_device_that_the_environment_opens(env, x):
    device = await env.open_device()
    assert device is env.device
    graph = await built(device.context)
    async with await env.create_session(graph) as session:
        await assert_adds(session, x)
        assert await env.open_device() is device
    assert env.device is device
    graph.destroy()


async def test_a_wrong_model_is_refused_and_leaves_nothing(env, tmp_path):
    unsupported = program([("NonZero", ["x"], ["y"], {})], {"x": ("float32", [2])}, {"y": ("int32", [1, 2])})
    for model, error, words in (
        (1, TypeError, r"create_session\(\): model is int; it must be the path or the bytes"),
        (b"no model", ValueError, "ONNX model"),
        (tmp_path / "missing.onnx", FileNotFoundError, "missing.onnx"),
        (unsupported, UnsupportedModelError, "NonZero"),
    ):
        with pytest.raises(error, match=words):
            await env.create_session(model)
    assert env.sessions == ()
    assert env.device is None


async def test_without_onnx_a_model_is_refused_with_the_missing_packages(env, monkeypatch, context, ml, x):
    graph = await built(context)
    monkeypatch.setitem(sys.modules, "webnn_py.onnx_models", None)
    with pytest.raises(ImportError, match=r"create_session\(\): ONNX models need more: pip install .*onnx"):
        await env.create_session(add())
    async with Environment(ml, context=context) as own, await own.create_session(graph) as session:
        await assert_adds(session, x)
    graph.destroy()


async def test_booleans_go_in_as_they_are(env):
    model = program([("Not", ["x"], ["y"], {})], {"x": ("bool", [4])}, {"y": ("bool", [4])})
    given = np.array([True, False, False, True])
    async with await env.create_session(model) as session:
        for feed in (given, Tensor(given), given.astype(np.uint8)):
            np.testing.assert_array_equal((await session.run({"x": feed}))["y"].data, ~given)


@pytest.mark.parametrize("data_type", ["float32", "float64"])
async def test_an_input_that_no_output_needs_may_be_fed(env, x, data_type):
    kind = ("float32", [2, 3])
    model = program([("Relu", ["x"], ["y"], {})], {"x": kind, "unused": (data_type, [2, 3])}, {"y": kind})
    async with await env.create_session(model) as session:
        assert session.input_names == ("x", "unused")
        results = await session.run({"x": x, "unused": x.astype(data_type)})
        np.testing.assert_array_equal(results["y"].data, x)


# --- open shapes ---------------------------------------------------------------------------------------------


async def test_feeds_decide_open_shapes_and_a_shape_seen_again_has_its_graph(env, monkeypatch):
    async with await env.create_session(product(W)) as session:
        assert session.input_descriptors["x"] == TensorDescriptor("float32", ("batch", 4))
        made = noted(monkeypatch, session._model, "graph", lambda _opened, shapes, _progress: shapes["x"])
        for count in (1, 5, 2, 5, 1, 2):
            results = await session.run({"x": rows(count)})
            np.testing.assert_array_equal(results["y"].data, rows(count) @ W)
        assert made == [(1, 4), (5, 4), (2, 4)]


def paired():
    """y = a + b, whose first dimension is one name's."""
    kind = ("float32", ["n", 2])
    return program([("Add", ["a", "b"], ["y"], {})], {"a": kind, "b": kind}, {"y": kind})


async def test_one_name_is_one_size(env):
    a = np.ones((3, 2), np.float32)
    async with await env.create_session(paired()) as session:
        np.testing.assert_array_equal((await session.run({"a": a, "b": a}))["y"].data, a + a)
        for feeds, words in (
            ({"a": a, "b": a[:1]}, r"'b' is of shape \[1, 2\]; .* float32 \['n', 2\], and 'n' is 3 by input 'a'"),
            ({"a": a[:, :1], "b": a}, r"'a' is of shape \[3, 1\]; it must be float32 \['n', 2\]"),
            ({"a": a[0], "b": a}, r"'a' is of shape \[2\]; it must be float32 \['n', 2\]"),
        ):
            with pytest.raises(TypeError, match=f"input {words}"):
                await session.run(feeds)


async def test_free_dimensions_bind_names(env):
    a = np.ones((3, 2), np.float32)
    async with await env.create_session(paired(), free_dimensions={"n": 3}) as session:
        assert session.input_descriptors["a"].shape == (3, 2)
        assert session.output_descriptors["y"].shape == (3, 2)
        np.testing.assert_array_equal((await session.run({"a": a, "b": a}))["y"].data, a + a)
        with pytest.raises(TypeError, match=r"input 'a' is of shape \[1, 2\]; it must be float32 \[3, 2\]"):
            await session.run({"a": a[:1], "b": a[:1]})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"free_dimensions": {"n": 0}}, r"free_dimensions\['n'\] is 0; it must be at least 1"),
        ({"input_values": {"a": W[:, :2]}, "free_dimensions": {"n": 3}}, r"input_values\['a'\] is of shape \[4, 2\]; "),
    ],
)
async def test_options_that_do_not_fit_the_model_are_refused(env, given, words):
    with pytest.raises(TypeError, match=rf"create_session\(\): {words}"):
        await env.create_session(paired(), **given)
    assert env.device is None


async def test_inputs_can_be_frozen(env):
    b = np.array([[1, 2], [3, 4]], np.float32)
    async with await env.create_session(paired(), input_values={"b": b}) as session:
        assert dict(session.input_descriptors) == {"a": TensorDescriptor("float32", (2, 2))}
        np.testing.assert_array_equal((await session.run({"a": b * 10}))["y"].data, b * 11)
        assert env.statistics().host_copies == 2


async def test_of_a_model_s_outputs_a_session_may_have_some(env):
    a = np.ones((2, 3), np.float32)
    async with await env.create_session(sum_and_difference(), output_names=["d"]) as session:
        assert session.output_names == ("d",)
        result = await session.run({"a": a, "b": a})
        assert list(result) == ["d"]
        np.testing.assert_array_equal(result["d"].data, a - a)


async def test_an_input_with_its_own_value_may_have_another(env, x):
    model = add(number=1.0)
    proto = onnx.load_model_from_string(model)
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [1]))
    for options, added in (({}, 1), ({"input_values": {"w": np.float32([5])}}, 5)):
        async with await env.create_session(proto.SerializeToString(), **options) as session:
            assert session.input_names == ("x",)
            await assert_adds(session, x, added)


async def test_a_feed_without_elements_is_accepted_where_it_is_only_joined(env):
    """As the first past of a key-value cache."""
    kind = ("float32", ["n", 4])
    nodes = [("Concat", ["past", "x"], ["y"], {"axis": 0})]
    model = program(nodes, {"past": kind, "x": ("float32", [2, 4])}, {"y": kind})
    async with await env.create_session(model) as session:
        for length in (0, 3):
            y = (await session.run({"past": rows(length), "x": rows(2)}))["y"]
            np.testing.assert_array_equal(y.data, np.concatenate([rows(length), rows(2)]))


async def test_the_place_of_an_output_is_checked_when_its_shape_is_known(env):
    async with await env.create_session(product(W)) as session:
        right = np.zeros((2, 3), np.float32)
        for _ in range(2):
            with pytest.raises(TypeError, match=r"output 'y' is float32 \[2, 3\]; it must be float32 \[5, 3\]"):
                await session.run({"x": rows(5)}, {"y": right})
        await session.run({"x": rows(2)}, {"y": right})
        np.testing.assert_array_equal(right, rows(2) @ W)


# --- overlapping runs ----------------------------------------------------------------------------------------


async def test_runs_that_overlap_are_run_in_order(env, monkeypatch):
    """Some runs wait for their graph, the others for those runs."""
    session = await env.create_session(product(np.eye(4, dtype=np.float32)))
    order = noted(
        monkeypatch, BoundGraph, "enqueue", lambda _bound, _opened, request, _fresh: int(request.feeds["x"][0, 0])
    )

    async def run(number, count):
        results = await session.run({"x": rows(count) + number})
        np.testing.assert_array_equal(results["y"].data, rows(count) + number)

    await run(0, 3)
    counts = (3, 2, 3, 3, 1, 2, 1, 3)
    env.device.context.device_timeline.pause()
    async with trio.open_nursery() as nursery:
        for number, count in enumerate(counts, 1):
            nursery.start_soon(run, number, count)
            await trio.testing.wait_all_tasks_blocked()
        env.device.context.device_timeline.resume()
    assert order == list(range(len(counts) + 1))
    await session.release()


async def test_overlapping_runs_share_the_sessions_buffers(env, x):
    async with await env.create_session(add()) as session:
        await session.run({"x": x})
        buffers = live(env.statistics())[0]

        async def run(number):
            np.testing.assert_array_equal((await session.run({"x": x + number}))["y"].data, x + number + 1)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(run, number)
        assert live(env.statistics())[0] == buffers == 2


async def test_a_feed_may_be_changed_once_the_run_has_begun(env, x):
    async with await env.create_session(add()) as session:
        await session.run({"x": x})
        feed = x.copy()
        results = []

        async def run():
            results.append(await session.run({"x": feed}))

        env.device.context.device_timeline.pause()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
            feed[:] = -1
            env.device.context.device_timeline.resume()
        np.testing.assert_array_equal(results[0]["y"].data, x + 1)
