"""Sessions with a graph cache: a graph that was made before is loaded, and is the same to the bit."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
import trio
import trio.testing

import webnn_py
from spec_tests.support.onnx_programs import add, product, sum_and_difference
from spec_tests.support.runtime import lose
from spec_tests.support.stand_ins import noted
from webnn_py import InvalidStateError, OperationError, UnknownError
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.extensions.browser_limits import BrowserLimits
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime import Environment, blocking
from webnn_py.saved_graphs import SavedGraphs

W = np.random.default_rng(5).standard_normal((64, 48)).astype(np.float32)  # large enough to be told by a digest
X = np.random.default_rng(6).standard_normal((3, 64)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "graphs"


@pytest.fixture
async def cached(ml, options, folder):
    async with Environment(ml, **options, graph_cache=folder) as environment:
        yield environment


@pytest.fixture
def conversions(monkeypatch):
    """The models that are converted from now on."""
    return noted(monkeypatch, OnnxModel, "convert_in_steps", lambda model, *_, **__: model)


def graphs(folder):
    return sorted(folder.glob("*.webnn"))


async def result(env, model=None, x=X, **options):
    async with await env.create_session(product(W) if model is None else model, **options) as session:
        return (await session.run({"x": x}))["y"].numpy()


async def test_a_later_environment_loads_the_graph(ml, options, folder, conversions):
    results = []
    for _ in range(2):
        async with Environment(ml, **options, graph_cache=folder) as env:
            results.append(await result(env))
        assert len(conversions) == 1
        assert len(graphs(folder)) == 1
    np.testing.assert_array_equal(*results, strict=True)
    async with Environment(ml, **options) as env:  # without a folder: nothing is kept
        np.testing.assert_array_equal(await result(env), results[0], strict=True)
    assert len(conversions) == 2
    assert len(graphs(folder)) == 1


async def test_an_environment_of_a_users_context_has_a_graph_cache(ml, options, folder, conversions):
    context = await ml.create_context(**options)
    for _ in range(2):
        async with Environment(ml, context=context, graph_cache=folder) as env:
            await result(env)
    assert len(conversions) == len(graphs(folder)) == 1


async def test_each_shape_has_a_graph_and_all_give_their_memory_back(cached, folder, conversions):
    for _ in range(2):
        async with await cached.create_session(product(W)) as session:
            for rows in (1, 2):
                np.testing.assert_allclose(
                    (await session.run({"x": X[:rows]}))["y"], X[:rows] @ W, rtol=1e-4, atol=1e-4
                )
    assert len(conversions) == 2
    assert len(graphs(folder)) == 2
    await cached.drain()
    assert cached.statistics().live_buffers == 0


async def test_every_change_of_a_graph_has_another_key(cached, folder, conversions):
    other = W.copy()
    other[-1, -1] += 1
    few = W[:, :2].copy()  # too few bytes for a digest
    models = [product(W), product(other), product(few), product(few + 1), product(W, "rows")]
    for count, model in enumerate(models, 1):
        await result(cached, model)
        assert len(graphs(folder)) == count
    x = np.ones((2, 3), np.float32)
    for given in (
        {},
        {"output_names": ["s"]},
        {"output_names": ["d"]},
        {"input_values": {"b": x}},
        {"input_values": {"b": -x}},
    ):
        async with await cached.create_session(sum_and_difference(), **given) as session:
            await session.run(dict.fromkeys(session.input_names, x))
        count += 1
        assert len(graphs(folder)) == count == len(conversions)
    for narrowed in (False, True):  # which says another thing of the same bytes
        keys = {OnnxModel.load(add(), narrow_float64=narrow).digest() for narrow in (narrowed, narrowed)}
        assert len(keys) == 1
    assert OnnxModel.load(add()).digest() != OnnxModel.load(add(), narrow_float64=True).digest()


def test_the_digest_of_a_model_does_not_depend_on_its_source(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(product(W))
    digest = OnnxModel.load(path).digest()
    read = OnnxModel.load(product(W))
    read.read_weights()
    assert read.digest() == read.digest() == digest
    program = (
        "import sys; from webnn_py.onnx_models import OnnxModel; print(OnnxModel.load(sys.argv[1]).digest().hex())"
    )
    other = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest.hex()


def test_a_digest_knows_data_beside_the_model(tmp_path):
    digests = []
    for number in range(2):
        path = tmp_path / f"{number}.onnx"
        onnx.save_model(
            onnx.load_from_string(product(W + number)),
            path,
            save_as_external_data=True,
            location="weights",
            size_threshold=0,
        )
        digests.append(OnnxModel.load(path).digest())
        (tmp_path / "weights").unlink()
    assert len(set(digests)) == 2


async def test_a_damaged_file_is_built_again_and_mended(cached, folder, conversions):
    expected = await result(cached)
    (path,) = graphs(folder)
    path.write_bytes(path.read_bytes()[:-1])
    np.testing.assert_array_equal(await result(cached), expected)
    np.testing.assert_array_equal(await result(cached), expected)
    assert len(conversions) == 2


@pytest.mark.parametrize("error", [OperationError, UnknownError])
async def test_a_graph_that_cannot_be_loaded_is_built_with_a_warning(cached, monkeypatch, conversions, error):
    expected = await result(cached)
    monkeypatch.setattr(SavedGraphs, "load", lambda *_: MLPromise.refused(error("load(): no"), "load()", None))
    with pytest.warns(RuntimeWarning, match=r"a graph is built again, .* cannot be used: load\(\): no"):
        np.testing.assert_array_equal(await result(cached), expected)
    assert len(conversions) == 2


async def test_a_folder_that_cannot_be_written_costs_time_only(ml, options, tmp_path):
    (tmp_path / "file").touch()
    async with Environment(ml, **options, graph_cache=tmp_path / "file") as env:
        with (
            pytest.warns(RuntimeWarning, match="a graph is built again, .* cannot be used: .*file"),
            pytest.warns(RuntimeWarning, match="a graph is not kept in the graph cache: .*file"),
        ):
            np.testing.assert_allclose(await result(env), X @ W, rtol=1e-4, atol=1e-4)
    async with Environment(ml, **options, graph_cache=tmp_path / "small", graph_cache_bytes=10) as env:
        with pytest.warns(RuntimeWarning, match=r"a graph is not kept in the graph cache: .*the folder may have 10"):
            np.testing.assert_allclose(await result(env), X @ W, rtol=1e-4, atol=1e-4)


async def test_nothing_is_left_when_saving_is_cancelled(cached, monkeypatch):
    forever = MLPromise._create("save()")
    monkeypatch.setattr(SavedGraphs, "save", lambda *_: forever)
    context = (await cached.open_device()).context
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cached.create_session, product(W, 3))
        while forever._waiters is None:
            await trio.lowlevel.checkpoint()
        assert context.statistics().live_bytes > 0
        nursery.cancel_scope.cancel()
    await cached.drain()
    assert (cached.sessions, cached.statistics().live_bytes) == ((), 0)


async def test_a_device_that_is_lost_while_a_graph_is_saved_is_opened_again(cached, monkeypatch):
    save = SavedGraphs.save
    lost = []

    def save_and_lose(self, key, graph):
        promise = save(self, key, graph)
        if not lost:
            lost.append(graph.context)
            lose(graph.context)
        return promise

    monkeypatch.setattr(SavedGraphs, "save", save_and_lose)
    try:
        async with await cached.create_session(add()) as session:
            x = np.ones((2, 3), np.float32)
            np.testing.assert_array_equal((await session.run({"x": x}))["y"], 2)
    except InvalidStateError as error:
        assert "the device was lost" in str(error)  # noqa: PT017 - where the file was faster than the loss
    assert lost


async def test_a_context_with_a_browsers_limits_keeps_no_graphs(folder):
    async with (
        webnn_py.open_ml(extensions=[BrowserLimits("chromium-153-litert")]) as ml,
        Environment(ml, "numpy", graph_cache=folder) as env,
    ):
        await result(env)
    assert graphs(folder) == []


def test_blocking_sessions_have_a_graph_cache(options, folder, conversions):
    results = []
    for _ in range(2):
        with blocking.Environment(**options, graph_cache=folder) as env, env.create_session(product(W)) as session:
            results.append(session.run({"x": X})["y"].numpy())
    np.testing.assert_array_equal(*results, strict=True)
    assert len(conversions) == len(graphs(folder)) == 1
