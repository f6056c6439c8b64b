"""Contexts on onnxruntime: their options, where work runs, what ends it, and what they hold."""

import gc
import re
import threading
import weakref
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.computing import compute, run_graph
from spec_tests.support.drawing import build_add_number
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder, NotSupportedError, OperationError
from webnn_py.extras import install_command

onnxruntime = pytest.importorskip("onnxruntime")

from webnn_py.buffer_copies import clear_buffer  # noqa: E402 - an extra
from webnn_py.devices.onnxruntime import backend, engine, executable, session  # noqa: E402 - an extra


@pytest.fixture
def sessions(monkeypatch):
    """The options of every session that is made."""
    return noted(
        monkeypatch, engine.onnxruntime, "InferenceSession", lambda _model, options, **others: (options, others)
    )


async def test_options_are_told_to_every_session(ml, sessions):
    given = {"threads": 3, "spinning": True, "deterministic_compute": True}
    for options in (given, {"execution_provider": "CPUExecutionProvider", "threads": 1}):
        await build_add_number(await ml.create_context(**options), 1, [2])
    seen = [
        (
            options.intra_op_num_threads,
            options.get_session_config_entry("session.intra_op.allow_spinning"),
            options.use_deterministic_compute,
            others["providers"],
        )
        for options, others in sessions
    ]
    assert seen == [(3, "1", True, ["CPUExecutionProvider"]), (1, "0", False, ["CPUExecutionProvider"])]


async def test_transposes_are_not_fused_where_that_may_end_the_process(context, sessions):
    """To make such a session would end the tests, now and then."""
    for data_type, draw in (
        ("float32", lambda b, x: b.matmul(b.transpose(x), x)),
        ("float16", lambda b, x: b.matmul(b.transpose(x), x)),
        ("float16", lambda b, x: b.cast(b.transpose(x), "float32")),
    ):
        builder = MLGraphBuilder(context)
        await builder.build({"y": draw(builder, builder.input("x", data_type=data_type, shape=[2, 2]))})
    fused = [engine.FUSES_TRANSPOSES not in others["disabled_optimizers"] for _, others in sessions]
    assert fused == [True, False, True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threads": 0}, "threads is 0; it must be from 1 to 1024"),
        ({"threads": -1}, "threads is -1; it must be from 1 to 1024$"),
        ({"threads": "many"}, "threads is 'many'"),
        ({"spinning": 1}, "spinning is 1; it must be True or False"),
        ({"execution_provider": 3}, "execution_provider is 3; it must be the name of one of onnxruntime's"),
        ({"provider_options": 3}, "provider_options is 3; it must be a mapping of the provider's options by name"),
        ({"provider_options": {"": 1}}, "it must be a mapping of the provider's options by name"),
        (
            {"provider_options": {"device_id": None}},
            r"provider_options\['device_id'\] is None; it must be a string, a number or a boolean",
        ),
        (
            {"provider_options": {"arena": 1}},
            "provider_options is {'arena': '1'}; CPUExecutionProvider has no options of its own; the",
        ),
    ],
)
async def test_a_wrong_option_is_refused(ml, options, words):
    with pytest.raises(TypeError, match=words):
        await ml.create_context(**options)


async def test_a_provider_that_is_not_there_is_refused_with_those_that_are(ml):
    with pytest.raises(NotSupportedError, match=r"execution_provider is 'Abacus'; the .* has .*CPUExecutionProvider"):
        await ml.create_context(execution_provider="Abacus")
    with pytest.raises(NotSupportedError, match=r"; did you mean 'CPUExecutionProvider'\?"):
        await ml.create_context(execution_provider="CPUExecutionProvidr")


async def test_a_provider_that_is_not_tested_is_told_apart(ml, context):
    assert context.backend.driver == f"onnxruntime {onnxruntime.__version__}, CPUExecutionProvider"
    others = [name for name in onnxruntime.get_available_providers() if name != "CPUExecutionProvider"]
    for name in others[:1]:
        other = await ml.create_context(execution_provider=name)
        assert other.backend.driver == f"onnxruntime {onnxruntime.__version__}, {name}, not tested"


async def test_a_provider_that_gives_up_is_told_and_not_replaced(ml, monkeypatch):
    monkeypatch.setattr(engine, "names", lambda: ["CPUExecutionProvider", "Abacus"])
    monkeypatch.setattr(
        engine.onnxruntime, "InferenceSession", lambda *_, **__: SimpleNamespace(get_providers=lambda: ["CPU"])
    )
    context = await ml.create_context(execution_provider="Abacus")
    with pytest.raises(OperationError, match="onnxruntime cannot use Abacus here"):
        await build_add_number(context, 1, [2])


async def test_what_is_missing_is_told_with_what_installs_it(ml, monkeypatch):
    import sys  # noqa: PLC0415 - its table of modules is patched here

    for name in [name for name in sys.modules if name.startswith("webnn_py.devices.onnxruntime.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("backend", "engine"):
        monkeypatch.delattr(f"webnn_py.devices.onnxruntime.{name}")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        NotSupportedError, match=rf"onnxruntime cannot be loaded: .*{re.escape(install_command('onnxruntime'))}"
    ):
        await ml.create_context(backend="onnxruntime")


# --- running -------------------------------------------------------------------------------------------------------


async def test_a_dispatch_that_runs_when_the_context_is_lost_ends_before_its_next_node(context, monkeypatch):
    begun, ended = threading.Event(), []

    def observed(graph):
        begun.set()
        while not graph._run_options.terminate:
            pass  # until the context says so
        try:
            run(graph)
        except Exception as error:
            ended.append(str(error))
            raise

    run = executable.OnnxruntimeGraph.run
    monkeypatch.setattr(executable.OnnxruntimeGraph, "run", observed)
    graph = await build_add_number(context, 1, [2])
    graph.handle.compiled.expected_seconds = executable.NOT_MEASURED
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": x}, {"y": y})
    await trio.to_thread.run_sync(begun.wait)
    context.destroy()
    await context.drain()
    assert len(ended) == 1
    assert "terminate" in ended[0]
    assert context.statistics().live_bytes == 0


@pytest.mark.parametrize("elements", [2, backend.LEAST_TAKEN // 4], ids=["copied", "taken"])
async def test_buffers_are_written_between_dispatches_and_in_turn_input_and_output(context, elements):
    graph = await build_add_number(context, 1, [elements])
    first, second = [await filled(context, np.full(elements, value)) for value in (1, 10)]
    context.dispatch(graph, {"x": first}, {"y": second})
    context.dispatch(graph, {"x": second}, {"y": first})
    np.testing.assert_array_equal(await context.read_buffer(first), np.full(elements, 3))
    context.write_buffer(first, np.full(elements, 5, np.float32))
    context.dispatch(graph, {"x": first}, {"y": second})
    clear_buffer(context, first)
    np.testing.assert_array_equal(await context.read_buffer(second), np.full(elements, 6))
    context.dispatch(graph, {"x": first}, {"y": second})
    np.testing.assert_array_equal(await context.read_buffer(second), np.full(elements, 1))


async def test_a_name_may_be_an_inputs_and_an_outputs(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="int32", shape=[2])
    outputs = {"x": builder.add(x, x), "x y": builder.sub(x, x)}
    got = await compute(context, builder, {"x": np.array([1, 2], np.int32)}, outputs)
    assert {name: array.tolist() for name, array in got.items()} == {"x": [2, 4], "x y": [0, 0]}


async def test_a_destroyed_buffer_is_held_by_no_graph(context):
    graph = await build_add_number(context, 1, [2])
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await context.read_buffer(y), [2, 3])
    array = weakref.ref(x.storage.data.array)
    x.destroy()
    await context.drain()
    gc.collect()
    assert array() is None
    x = await filled(context, [3, 4])
    context.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await context.read_buffer(y), [4, 5])


async def test_a_released_graph_holds_neither_session_nor_buffers(context):
    graph = await build_add_number(context, 1, [2])
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": x}, {"y": y})
    await context.drain()
    session = weakref.ref(graph.handle.compiled._quick)
    graph.destroy()
    await context.drain()
    gc.collect()
    assert session() is None
    x.destroy()
    y.destroy()
    await context.drain()
    assert context.statistics().live_buffers == 0


@pytest.mark.parametrize("place", ["off by a byte", "of one that is destroyed", "of one that the script changes"])
async def test_a_large_constant_is_read_where_it_lies_as_long_as_the_graph_lives(context, place):
    numbers = np.arange(4096, dtype=np.float32)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[4096])
    if place == "off by a byte":
        constant = builder.constant(np.frombuffer(b"\0" + numbers.tobytes(), np.float32, offset=1))
    elif place == "of one that is destroyed":
        buffer = await context.create_constant_buffer(numbers, data_type="float32", shape=[4096])
        constant = builder.constant(buffer)
    else:
        given = numbers.copy()
        constant = builder.constant(given)
        given[:] = 7
    graph = await builder.build({"y": builder.add(x, constant)})
    if place == "of one that is destroyed":
        buffer.destroy()
        del buffer
    del builder, constant
    await context.drain()
    gc.collect()
    results = await run_graph(context, graph, {"x": np.ones(4096)})
    np.testing.assert_array_equal(results["y"], numbers + 1)


@pytest.mark.parametrize("copies", [False, True])
async def test_inputs_are_bound_at_each_run_where_a_provider_copies_them(ml, monkeypatch, copies):
    monkeypatch.setattr(engine, "CPU", attrs.evolve(engine.CPU, copies_inputs=copies))
    context = await ml.create_context(backend="onnxruntime", threads=1)
    graph = await build_add_number(context, 1, [2])
    bound = noted(monkeypatch, session.HostBuffer, "bind_input")
    await run_graph(context, graph, {"x": np.zeros(2, np.float32)})
    assert len(bound) == (2 if copies else 1)


async def test_packages_with_execution_providers_are_registered_and_broken_ones_warned_of(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    for name, path in (("ep_good", "'good.so'"), ("ep_bad", "open('no library')"), ("qnn", "'qnn.so'")):
        text = f"get_library_path = lambda: {path}\nget_ep_name = lambda: 'onnxruntime_{name}Provider'\n"
        (tmp_path / f"onnxruntime_{name}.py").write_text(text, encoding="utf-8")
    registered = []
    monkeypatch.setattr(
        engine.onnxruntime, "register_execution_provider_library", lambda *given: registered.append(given)
    )
    with pytest.warns(RuntimeWarning, match="onnxruntime_ep_bad cannot be used: .*no library"):
        of_providers = engine.register_installed.__wrapped__()
    assert registered == [("onnxruntime_ep_good", "good.so"), ("onnxruntime_qnnProvider", "qnn.so")]
    assert of_providers == {
        "onnxruntime_ep_goodProvider": "onnxruntime_ep_good",
        "onnxruntime_qnnProvider": "onnxruntime_qnn",
    }


async def test_a_provider_of_an_installed_package_without_a_device_is_told(ml, monkeypatch):
    monkeypatch.setattr(engine, "register_installed", lambda: {"AbacusExecutionProvider": "onnxruntime_ep_abacus"})
    with pytest.raises(NotSupportedError, match="onnxruntime_ep_abacus has it, but finds no device for it here"):
        await ml.create_context(execution_provider="AbacusExecutionProvider")


async def test_two_packages_of_onnxruntime_are_named_where_a_provider_is_missing(ml, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("onnxruntime_gpu", "onnxruntime"):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
        (folder / "METADATA").write_text(text, encoding="utf-8")
    with pytest.raises(NotSupportedError, match="onnxruntime and onnxruntime-gpu replace each other's files"):
        await ml.create_context(execution_provider="CUDAExecutionProvider")
