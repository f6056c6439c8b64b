"""Graphs are saved, loaded, listed and deleted in order on every device, and give the same results."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import webnn_py
from spec_tests.operators.minimal import draw_operands, minimal, outputs_of
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.buffers import constant
from spec_tests.support.computing import run_graph
from spec_tests.support.drawing import build_add_buffer, build_add_number, build_add_one, run
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.stand_ins import noted
from webnn_py import (
    InvalidStateError,
    MLGraphBuilder,
    NotFoundError,
    QuotaExceededError,
    UnknownError,
)
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.content_keys import ContentKey
from webnn_py.devices.saved_code import SavesCode
from webnn_py.saved_graphs import SavedGraphs

backend = on_each(DEVICES)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "graphs"


@pytest.fixture
def saved(folder):
    return SavedGraphs(folder)


@pytest.fixture
async def ml():
    async with webnn_py.open_ml() as opened:
        yield opened


def files(folder):
    return sorted(folder.glob("*.webnn"))


def rolled(seed, *shape):
    return (np.random.default_rng(seed).integers(-8, 8, shape) / 8).astype(np.float32)


def network(context, *, is_keyed=False):
    """Draw folded, repacked and shared constants, views, fused nodes, a recurrent one, and two names of a value."""
    b = MLGraphBuilder(context)

    def weight(seed, *shape):
        array = rolled(seed, *shape)
        if not is_keyed:
            return b.constant(array)
        array.flags.writeable = False
        return b.constant_shared(array, ContentKey(array))

    x = b.input("x", data_type="float32", shape=[1, 4, 6, 6])
    kernel = b.mul(weight(1, 8, 4, 3, 3), b.constant(0.5, data_type="float32"))
    image = b.relu(b.conv2d(x, kernel, bias=weight(2, 8), padding=[1, 1, 1, 1], label="first"))
    rows = b.reshape(b.transpose(image, permutation=[0, 2, 3, 1]), [36, 8])
    projection = weight(3, 8, 8)
    product = b.add(b.matmul(rows, projection), b.matmul(rows, b.transpose(projection)))
    left, right = b.split(product, [3, 5], axis=1)
    states = b.gru(b.reshape(right, [2, 18, 5]), weight(4, 1, 6, 5), weight(5, 1, 6, 2), 2, 2, return_sequence=True)
    clamped = b.clamp(b.softmax(left, axis=1), min_value=-np.inf, max_value=0.5)
    same = b.identity(clamped)
    return b, {"sequence": states[1], "clamped": clamped, "same": same, "last": states[0]}


X = rolled(9, 1, 4, 6, 6)


async def computed(context, graph):
    return {name: array.tobytes() for name, array in (await run_graph(context, graph, {"x": X})).items()}


# --- loading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_keyed", [False, True], ids=["", "constants with keys"])
async def test_a_loaded_graph_computes_the_same_to_the_bit(context, options, folder, monkeypatch, is_keyed):
    saved = SavedGraphs(folder)
    b, outputs = network(context, is_keyed=is_keyed)
    built = await b.build(outputs, keep_source=True)
    byte_length = context.statistics().live_bytes
    expected = await computed(context, built)
    assert await saved.save("network", built) is None
    bytes_of_file = files(folder)[0].read_bytes()
    built.destroy()

    done_again = noted(monkeypatch, Operator, "infer", lambda *_, **__: "checked")
    if "gpu_device" in options:
        lowering = importlib.import_module("webnn_py.devices.wgpu.lowering")  # imports wgpu
        noted(monkeypatch, lowering.GraphLowering, "run", lambda _: done_again.append("compiled"))
    for _ in range(2):
        async with webnn_py.open_ml() as other:
            context = await other.create_context(**options)
            assert await saved.keys(context) == ["network"]
            loaded = await saved.load(context, "network")
            assert repr(loaded) == repr(built).replace(", destroyed", "")
            assert (loaded.input_descriptors, list(loaded.output_descriptors)) == (
                built.input_descriptors,
                list(built.output_descriptors),
            )
            assert context.statistics().live_bytes <= byte_length, "nothing is kept that the built one did without"
            assert await computed(context, loaded) == expected
            if not saved.needs_source(context):
                await saved.save("network", loaded)
            assert files(folder)[0].read_bytes() == bytes_of_file, "what was loaded is saved as it was"
    assert done_again == [], "a graph that is loaded has been checked, and on WebGPU compiled, before"


async def test_every_operator_can_be_saved_with_all_its_options(ml, backend, saved):
    """Save nodes, since WebGPU saves kernels without operators."""
    if backend != "numpy":
        pytest.skip("one device that saves nodes suffices")
    context = await ml.create_context(backend="numpy")
    builder, outputs, feeds = MLGraphBuilder(context), {}, {}
    for name in OPERATORS:
        drawn = getattr(builder, name)(**draw_operands(builder, minimal(name), f"{name}."), label=f"the {name}")
        outputs |= {f"{name}.{output}": operand for output, operand in outputs_of(drawn).items()}
    outputs = {name: builder.identity(operand) for name, operand in outputs.items()}
    graph = await builder.build(outputs, keep_source=True)
    await saved.save("all", graph)
    loaded = await saved.load(context, "all")
    for name, descriptor in graph.input_descriptors.items():
        feeds[name] = np.arange(1, descriptor.element_count + 1).reshape(descriptor.shape)
    results = [await run_graph(context, each, feeds) for each in (graph, loaded)]
    assert len(results[0]) == len(outputs)
    np.testing.assert_equal(*results)


async def test_constant_buffers_are_saved_though_they_are_destroyed(context, saved):
    buffer = await constant(context, [1, 2, 3])
    graph = await build_add_buffer(context, buffer, keep_source=True)
    buffer.destroy()
    await saved.save("k", graph)
    graph.destroy()
    assert await run(context, await saved.load(context, "k"), x=[1, 1, 1]) == {"y": [2, 3, 4]}


async def test_loaded_graphs_have_keyed_constants_in_common(ml, backend, options, saved):
    if backend in {"reference", "onnxruntime"}:
        pytest.skip("it has no constants in common")
    context = await ml.create_context(**options)
    b, outputs = network(context, is_keyed=True)
    built = await b.build(outputs, keep_source=True)
    await saved.save("k", built)
    built.destroy()
    first = await saved.load(context, "k")
    await context.drain()
    alone = context.statistics().live_bytes
    second = await saved.load(context, "k")
    growth = context.statistics().live_bytes - alone
    assert growth < alone - 8 * 4 * 9 * 4, "the largest of the constants is there once"
    first.destroy()
    assert await computed(context, second)


@pytest.mark.parametrize("order", ["built, loaded", "loaded, built"])
async def test_built_and_loaded_graphs_have_keyed_constants_in_common(ml, backend, options, saved, order):
    if backend in {"reference", "onnxruntime"}:
        pytest.skip("it has no constants in common")
    context = await ml.create_context(**options)
    b, outputs = network(context, is_keyed=True)
    built = await b.build(outputs, keep_source=True)
    await context.drain()
    alone = context.statistics().live_bytes
    await saved.save("k", built)
    if order == "loaded, built":
        built.destroy()
    loaded = await saved.load(context, "k")
    if order == "loaded, built":
        b, outputs = network(context, is_keyed=True)
        built = await b.build(outputs)
    await context.drain()
    assert context.statistics().live_bytes - alone < alone - 8 * 4 * 9 * 4, (
        "the largest of the constants is there twice"
    )
    assert await computed(context, built) == await computed(context, loaded)


async def test_built_and_loaded_graphs_release_all_their_memory(context, saved):
    b, outputs = network(context)
    built = await b.build(outputs, keep_source=True)
    await saved.save("k", built)
    loaded = await saved.load(context, "k")
    for graph in (built, loaded):
        graph.destroy()
    await context.drain()
    assert_nothing_lives(context)


async def test_devices_do_not_see_each_others_graphs(ml, options, saved):
    context, numpy = await ml.create_context(**options), await ml.create_context(backend="numpy")
    await saved.save("k", await build_add_one(context, [2], keep_source=True))
    expected = ["k"] if context.backend.name == "numpy" else []
    assert await saved.keys(numpy) == expected


def test_the_document_example_loads_what_it_has_saved(tmp_path):
    text = (Path(webnn_py.__file__).parents[1] / "docs" / "saved_graphs.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    counted = code + 'print(sum(1 for path in __import__("pathlib").Path("graphs").glob("*.webnn")))'
    said = [
        subprocess.run([sys.executable, "-c", counted], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1]
    assert said[0].endswith("['triple']\n1\n")


# --- order and ends ------------------------------------------------------------------------------------------------


async def test_calls_act_in_their_order(context, saved):
    one, two = (
        await build_add_number(context, 1, [2], keep_source=True),
        await build_add_number(context, 2, [2], keep_source=True),
    )
    missing = saved.load(context, "k")
    saved.save("k", one)
    first = saved.load(context, "k")
    saved.save("k", two)
    second, listed = saved.load(context, "k"), saved.keys(context)
    saved.delete(context, "k")
    gone, empty = saved.load(context, "k"), saved.keys(context)
    one.destroy()
    for promise in (missing, gone):
        with pytest.raises(
            NotFoundError, match=r"SavedGraphs\.load\(\): no graph can be loaded under this key: there is no"
        ):
            await promise
    assert (await listed, await empty) == (["k"], [])
    assert [await run(context, await graph, x=[1, 1]) for graph in (first, second)] == [{"y": [2, 2]}, {"y": [3, 3]}]


@pytest.mark.parametrize("method", ["save", "load", "keys"])
async def test_pending_and_later_calls_are_rejected_when_the_context_ends(context, saved, method):
    graph = await build_add_one(context, [2], keep_source=True)
    await saved.save("k", graph)
    arguments = {"save": ["k", graph], "load": [context, "k"], "keys": [context]}[method]
    waiting = getattr(saved, method)(*arguments)
    context.destroy()
    words = rf"SavedGraphs\.{method}\(\): the context is lost: destroy\(\) was called"
    with pytest.raises(InvalidStateError, match=words):
        await waiting
    with pytest.raises(InvalidStateError, match=words):
        await getattr(saved, method)(*arguments)
    await context.device_timeline.wait_ended()
    assert_nothing_lives(context)


# --- refusals ------------------------------------------------------------------------------------------------------


async def refused(promise, error, match):
    with pytest.raises(error, match=match) as caught:
        await promise
    assert caught.type is error


async def test_a_graph_without_its_source_is_refused_where_nodes_are_saved(context, saved):
    graph = await build_add_one(context, [2])
    assert saved.needs_source(context) == (not isinstance(context.device.backend, SavesCode))
    if not saved.needs_source(context):
        await saved.save("k", graph)
        return
    loadable = await build_add_one(context, [2], keep_source=True)
    await saved.save("k", loadable)
    for sourceless in (graph, await saved.load(context, "k")):
        with pytest.raises(
            InvalidStateError, match=r"SavedGraphs\.save\(\): <MLGraph .* has no source, .*keep_source=True"
        ):
            saved.save("k", sourceless)


async def test_wrong_arguments_are_refused(context, saved):
    graph = await build_add_one(context, [2], keep_source=True)
    for call, words in (
        (lambda: saved.save(3, graph), r"SavedGraphs\.save\(\): key is 3; it must be a string"),
        (lambda: saved.load(context, None), r"SavedGraphs\.load\(\): key is None; it must be a string"),
        (lambda: saved.delete(context, "k" * 4097), r"SavedGraphs\.delete\(\): key has 4097 characters; .* 4096"),
        (lambda: saved.save("k", context), r"SavedGraphs\.save\(\): graph is <MLContext.*; it must be an MLGraph"),
        (lambda: saved.load(graph, "k"), r"SavedGraphs\.load\(\): context is <MLGraph.*; it must be an MLContext"),
        (lambda: saved.keys(None), r"SavedGraphs\.keys\(\): context is None; it must be an MLContext"),
        (lambda: saved.delete("k", context), r"SavedGraphs\.delete\(\): context is 'k'; it must be an MLContext"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    graph.destroy()
    with pytest.raises(InvalidStateError, match=r"SavedGraphs\.save\(\): the graph is destroyed"):
        saved.save("k", graph)
    assert await saved.keys(context) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"folder": 3}, r"SavedGraphs\(\): folder is 3; it must be the path of a folder"),
        ({"folder": None}, r"SavedGraphs\(\): folder is None; it must be the path of a folder"),
        ({"most_bytes": -1}, r"most_bytes is -1; it must be a number of bytes"),
        ({"most_bytes": True}, "most_bytes is True; it must be a number of bytes"),
        ({"most_bytes": "1 GB"}, "most_bytes is '1 GB'; it must be a number of bytes"),
    ],
)
def test_wrong_options_are_refused(given, text):
    with pytest.raises(TypeError, match=text):
        SavedGraphs(**{"folder": "graphs"} | given)


async def test_a_graph_larger_than_the_folder_is_refused(options, folder):
    saved = SavedGraphs(folder, most_bytes=1000)
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(**options)
        promise = saved.save(
            "k", await build_add_buffer(context, await constant(context, np.zeros(999)), keep_source=True)
        )
        await refused(
            promise, QuotaExceededError, r"SavedGraphs\.save\(\): the graph cannot be kept: it takes \d+ bytes; the f"
        )
        assert await saved.keys(context) == []


async def test_damaged_files_are_missing_and_the_next_save_mends_them(context, folder, saved):
    graph = await build_add_one(context, [2], keep_source=True)
    await saved.save("k", graph)
    (path,) = files(folder)
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[:-9] + bytes(9), bytes(len(whole))):
        path.write_bytes(damaged)
        await refused(
            saved.load(context, "k"), NotFoundError, r"SavedGraphs\.load\(\): no graph can be loaded under this key: it"
        )
    await saved.save("k", graph)
    assert await run(context, await saved.load(context, "k"), x=[1, 2]) == {"y": [2, 3]}


@pytest.mark.skipif(os.name != "posix", reason="a folder that cannot be made")
async def test_a_folder_that_cannot_be_written_is_reported(options, tmp_path):
    (tmp_path / "file").touch()
    saved = SavedGraphs(tmp_path / "file" / "graphs")
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(**options)
        promise = saved.save("k", await build_add_one(context, [2], keep_source=True))
        await refused(
            promise, UnknownError, r"SavedGraphs\.save\(\) failed on the device: .*(Not a directory|File exists)"
        )
