"""Verdicts of engines: graphs are drawn as Chromium draws them, and the engine says which operators it takes."""

import attrs
import numpy as np
import pytest

import webnn_py
from spec_tests.operators.minimal import draw_operands, minimal
from spec_tests.support.cells import cells
from spec_tests.support.computing import compute
from webnn_py import EngineVerdict, InvalidStateError, MLGraphBuilder, UnknownError
from webnn_py.browser_profiles import ENGINES, NAMES, PortabilityReport, find
from webnn_py.operators.registry import OPERATORS
from webnn_py.script.builder import drawing_of

pytest.importorskip("onnxruntime")
from webnn_py.device.on_onnxruntime.as_chromium import asking, placing
from webnn_py.device.on_onnxruntime.as_chromium.drawing import OPSETS, places_in
from webnn_py.device.on_onnxruntime.as_chromium.engine_process import ENGINES_PROCESS, EngineProcess
from webnn_py.device.on_onnxruntime.as_chromium.registry import RULES

WITH_PEEPHOLES = {"lstm", "lstm_cell"}
"""Operators whose smallest call has peepholes, to which ONNX gives the new cell state; Chromium draws them so."""

CPU, WEBGPU, DML = "chromium-windows-cpu", "chromium-windows-webgpu", "chromium-windows-dml"


@pytest.fixture
async def builder(ml):
    return MLGraphBuilder(await ml.create_context(backend="numpy"))


def drawn_by(builder, method, *operands, **options):
    """The outputs of a call, by name; operands are (data type, shape), or arrays for constants."""
    given = [
        builder.constant(operand)
        if isinstance(operand, np.ndarray)
        else builder.input(f"x{index}", data_type=operand[0], shape=operand[1])
        for index, operand in enumerate(operands)
    ]
    named = {name: given.pop() for name in reversed(options.pop("last", ()))}
    result = getattr(builder, method)(*given, **named, **options)
    return {f"y{index}": item for index, item in enumerate(result if isinstance(result, list) else [result])}


# --- the drawing -------------------------------------------------------------------------------------------------


def test_every_operator_of_the_specification_is_drawn():
    assert RULES.keys() == OPERATORS.keys()


F = "float32"
FORMS = {
    "channels last": (
        "conv2d",
        (F, [1, 4, 5, 2]),
        (F, [2, 2, 2, 3]),
        {"input_layout": "nhwc", "filter_layout": "hwio"},
    ),
    "grouped": (
        "conv2d",
        (F, [1, 4, 5, 5]),
        (F, [4, 2, 3, 2]),
        {"groups": 2, "padding": [1, 0, 2, 1], "strides": [2, 1]},
    ),
    "transposed": (
        "conv_transpose2d",
        (F, [1, 4, 3, 2]),
        (F, [2, 3, 3, 2]),
        {"input_layout": "nhwc", "filter_layout": "hwoi", "strides": [2, 2], "output_sizes": [9, 8]},
    ),
    "pooled": ("max_pool2d", (F, [1, 6, 7, 2]), {"layout": "nhwc", "window_dimensions": [3, 2], "strides": [2, 2]}),
    "rounded up": (
        "average_pool2d",
        (F, [1, 1, 6, 6]),
        {"window_dimensions": [3, 3], "strides": [2, 2], "output_shape_rounding": "ceil"},
    ),
    "norms": ("l2_pool2d", (F, [1, 2, 4, 4]), {"window_dimensions": [2, 2]}),
    "last axis": ("batch_normalization", (F, [2, 3, 4]), (F, [4]), (F, [4]), {"axis": 2}),
    "one axis": ("batch_normalization", (F, [3]), (F, [3]), (F, [3]), {"axis": 0}),
    "images": ("instance_normalization", (F, [2, 3, 4, 5]), (F, [5]), {"layout": "nhwc", "last": ["scale"]}),
    "in order": ("layer_normalization", (F, [2, 3, 4]), (F, [3, 4]), (F, [3, 4]), {"last": ["scale", "bias"]}),
    "reversed axes": ("layer_normalization", (F, [2, 3, 4]), (F, [4, 3]), {"axes": [2, 1], "last": ["scale"]}),
    "first axes": (
        "layer_normalization",
        (F, [2, 3, 4]),
        (F, [3, 2]),
        (F, [3, 2]),
        {"axes": [1, 0], "last": ["scale", "bias"]},
    ),
    "no axes": ("layer_normalization", (F, [2, 3]), {"axes": []}),
    "gates": (
        "gru",
        (F, [3, 2, 4]),
        (F, [2, 6, 4]),
        (F, [2, 6, 2]),
        (F, [2, 6]),
        {"steps": 3, "hidden_size": 2, "direction": "both", "layout": "rzn", "return_sequence": True, "last": ["bias"]},
    ),
    "states": (
        "lstm",
        (F, [3, 2, 4]),
        (F, [1, 8, 4]),
        (F, [1, 8, 2]),
        (F, [1, 8]),
        (F, [1, 2, 2]),
        {
            "steps": 3,
            "hidden_size": 2,
            "direction": "backward",
            "layout": "ifgo",
            "activations": ["relu", "sigmoid", "tanh"],
            "last": ["recurrent_bias", "initial_cell_state"],
        },
    ),
    "between": ("resample2d", (F, [1, 3, 4, 2]), {"axes": [1, 2], "scales": [2.0, 2.0], "mode": "linear"}),
    "outside": ("resample2d", (F, [2, 3, 4, 2]), {"axes": [0, 3], "sizes": [4, 6]}),
    "sizes": ("resample2d", (F, [1, 2, 3, 4]), {"sizes": [6, 8]}),
    "blocks": ("dequantize_linear", ("int8", [4, 6]), (F, [2, 6]), ("int8", [2, 6]), {}),
    "blocks of two axes": ("dequantize_linear", ("int8", [4, 6]), (F, [2, 3]), ("int8", [2, 3]), {}),
    "rows": ("quantize_linear", (F, [2, 3]), (F, [2, 1]), ("uint8", [2, 1]), {}),
    "one scale": ("quantize_linear", (F, [2, 3]), (F, [1, 1]), ("uint8", [1, 1]), {}),
    "magnitudes": ("reduce_l1", (F, [2, 3]), {"axes": []}),
    "logarithms": ("reduce_log_sum", (F, [2, 3]), {"axes": []}),
    "squares": ("reduce_sum_square", (F, [2, 3]), {"axes": []}),
    "kept": ("reduce_max", (F, [2, 3]), {"axes": [1], "keep_dimensions": True}),
    "places": ("arg_max", (F, [2, 3]), {"axis": 1, "output_data_type": "int64"}),
    "backwards": ("reverse", (F, [2, 3]), {"axes": [1]}),
    "nothing": ("reverse", (F, [2, 3]), {"axes": []}),
    "mirrored": ("pad", (F, [3]), {"beginning_padding": [2], "ending_padding": [1], "mode": "reflection"}),
    "strides": ("slice", (F, [5]), {"starts": [1], "sizes": [4], "strides": [2]}),
    "scalar": ("tile", (F, []), {"repetitions": []}),
    "lengths": ("split", (F, [5, 2]), {"splits": [2, 3]}),
    "lower": ("triangular", (F, [3, 3]), {"upper": False, "diagonal": 1}),
    "integers": ("clamp", ("int32", [4]), {"max_value": 1}),
    "many": ("gather_nd", (F, [2, 3]), ("int32", [4, 2]), {}),
    "written": ("scatter_nd", (F, [2, 3]), ("int32", [1, 1]), (F, [1, 3]), {}),
}


def data_of(value, rng):
    """Numbers that every operator takes: floats near one, and 0 and 1."""
    descriptor = value.descriptor
    if descriptor.data_type == "float32":
        return rng.uniform(0.2, 1.2, descriptor.shape).astype(np.float32)
    return rng.integers(0, 2, descriptor.shape).astype(descriptor.data_type)


async def assert_computes_as_drawn(builder, outputs, *, last_axes_only=False):
    """Compare what the CPU makes of the drawing with what the numpy device computes."""
    graph, rng = drawing_of("test", outputs), np.random.default_rng(1)
    engine = attrs.evolve(ENGINES[CPU], resamples_last_axes_only=last_axes_only)
    session = placing.session_of(asking.model_of(graph, engine), engine)
    data = {name: data_of(value, rng) for name, value in graph.inputs.items()}
    fed = {item.name: array for item, array in zip(session.get_inputs(), data.values(), strict=True)}
    there = session.run(None, fed)
    here = await compute(builder._context, builder, data, outputs)
    for array, expected in zip(there, here.values(), strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_allclose(array.astype(float), expected.astype(float), rtol=1e-4, atol=1e-5)


@cells("name", [name for name in OPERATORS if name not in WITH_PEEPHOLES])
async def test_the_smallest_call_of_each_operator_computes_as_drawn(ml, name):
    builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
    rank = {"input": 1} if name in {"pad", "slice"} else {}  # onnxruntime's kernels run on no scalars
    result = getattr(builder, name)(**draw_operands(builder, minimal(name, rank=rank)))
    outputs = {f"y{index}": item for index, item in enumerate(result if isinstance(result, list) else [result])}
    await assert_computes_as_drawn(builder, outputs)


@cells("form", list(FORMS))
async def test_other_forms_compute_as_drawn(ml, form):
    method, *operands, options = FORMS[form]
    for last_axes_only in (False, True) if method == "resample2d" else (False,):
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        outputs = drawn_by(builder, method, *operands, **options)
        await assert_computes_as_drawn(builder, outputs, last_axes_only=last_axes_only)


async def test_large_constants_lie_outside_the_model(builder):
    constant = np.arange(64, dtype=np.float32).reshape(8, 8)
    outputs = drawn_by(builder, "add", ("float32", [8, 8]), constant)
    model = asking.model_of(drawing_of("test", outputs), ENGINES[CPU])
    assert [array.nbytes for array in model.beside.values()] == [256]
    await assert_computes_as_drawn(builder, outputs)


def test_the_operators_of_a_node_are_found_in_longer_names():
    assert places_in("webnn12_3") == [12]
    assert places_in("fused webnn1_0 and webnn2_1_0/MatMulAdd webnn1_2") == [1, 2]
    assert places_in("Transpose_token_7") == []
    assert OPSETS[""] == 21


# --- the verdict -------------------------------------------------------------------------------------------------


def asked(builder, outputs, browser=CPU):
    return asking.ask(browser, drawing_of("test", outputs))


def wrong_and_right(builder):
    """Two operators that no kernel of the CPU is for, with labels, between others."""
    x = builder.input("x", data_type="int32", shape=[2])
    first = builder.prelu(builder.neg(x), x, label="first")
    return {"y": builder.add(first, x), "z": builder.prelu(x, x, label="second")}


async def test_a_graph_that_the_engine_takes_runs_whole(builder):
    verdict = asked(builder, drawn_by(builder, "matmul", (F, [2, 3]), (F, [3, 2])))
    assert (verdict.builds, verdict.runs_whole, verdict.operators) == (True, True, ())
    assert verdict.found.startswith("asked of CPUExecutionProvider in onnxruntime ")
    assert verdict.found.endswith(f", on {verdict.date}")
    assert len(verdict.date) == len("2026-01-31")


async def test_all_operators_that_make_no_session_are_found_and_not_the_first(builder):
    verdict = asked(builder, wrong_and_right(builder))
    assert (verdict.builds, verdict.runs_whole) == (False, False)
    assert [(one.operator, one.label, one.outcome) for one in verdict.operators] == [
        ("prelu", "first", "refused"),
        ("prelu", "second", "refused"),
    ]
    assert all("PRelu" in one.reason and "webnn" not in one.reason for one in verdict.operators)
    assert "prelu" in verdict.error


async def test_an_operator_that_chromium_lacks_is_refused(builder, monkeypatch):
    outputs = drawn_by(builder, "softsign", (F, [2]))
    monkeypatch.delitem(RULES, "softsign")
    verdict = asked(builder, outputs)
    assert (verdict.builds, verdict.error) == (False, "Chromium has no such operator")
    assert [(one.operator, one.outcome) for one in verdict.operators] == [("softsign", "refused")]


async def test_an_engine_that_ends_its_process_has_an_error_and_is_asked_again(builder):
    graph = drawing_of("test", drawn_by(builder, "neg", (F, [2])))
    model = asking.model_of(graph, ENGINES[CPU])
    process = EngineProcess()
    assert process.placements(ENGINES[CPU], model).error == ""
    process._process.kill()
    assert process.placements(ENGINES[CPU], model).error == "CPUExecutionProvider ends the process, with SIGKILL"
    assert process.placements(ENGINES[CPU], model).nodes == (("CPUExecutionProvider", "webnn0_0", "Neg"),)
    process.close()


async def test_what_is_not_installed_cannot_be_asked(builder):
    verdict = asked(builder, drawn_by(builder, "neg", (F, [2])), DML)
    assert (verdict.builds, verdict.runs_whole, verdict.operators, verdict.date) == (None, None, (), "")
    assert verdict.found.startswith("not asked: onnxruntime has no DmlExecutionProvider here; pip install ")
    assert verdict.as_json()["runs_whole"] is None


def test_a_package_without_a_device_and_a_broken_one_are_named(monkeypatch):
    assert placing.presence_of(ENGINES[CPU]).versions.startswith("onnxruntime ")
    missing = placing.presence_of(ENGINES[DML], ["onnxruntime_ep_bad cannot be used: no library"]).missing
    assert missing.endswith("for Windows alone; onnxruntime_ep_bad cannot be used: no library")
    monkeypatch.setattr(placing.installed, "register_installed", lambda: {ENGINES[DML].provider: "onnxruntime_ep_dml"})
    missing = placing.presence_of(ENGINES[DML]).missing
    assert missing == "the package onnxruntime_ep_dml finds no device for DmlExecutionProvider here"


@pytest.fixture
def webgpu():
    """The name of the profile, where its engine can be asked."""
    missing = ENGINES_PROCESS.presence(ENGINES[WEBGPU]).missing
    if missing:
        pytest.skip(missing)
    return WEBGPU


async def test_operators_that_are_left_to_the_cpu_have_labels_and_reasons(builder, webgpu):
    x = builder.input("x", data_type="float32", shape=[4])
    small = builder.input("small", data_type="int8", shape=[4])
    outputs = {
        "y": builder.softsign(builder.relu(x), label="own label"),
        "z": builder.add(small, small, label="bytes"),
        "w": builder.exp(x),
    }
    verdict = asked(builder, outputs, webgpu)
    assert (verdict.builds, verdict.runs_whole) == (True, False)
    assert [attrs.astuple(one) for one in sorted(verdict.operators, key=lambda one: one.operator)] == [
        ("add", "bytes", 2, ("Add",), "cpu", "WebGpuExecutionProvider takes no Add of int8, but of float32"),
        (
            *("softsign", "own label", 1, ("Softsign",), "cpu"),
            "WebGpuExecutionProvider takes no Softsign of float32 with these shapes and options",
        ),
    ]
    assert "onnxruntime-ep-webgpu" in verdict.versions


async def test_verdicts_agree_with_a_session_without_fallback(builder, webgpu):
    for method, runs in (("relu", True), ("softsign", False), ("gelu", True)):
        graph = drawing_of("test", drawn_by(builder, method, (F, [4])))
        assert asking.ask(webgpu, graph).runs_whole == runs
        model = asking.model_of(graph, ENGINES[webgpu])
        error = ENGINES_PROCESS.placements(ENGINES[webgpu], model, has_fallback=False).error
        assert (error == "") == runs
        assert runs or "fallback to CPU EP has been explicitly disabled" in error
        builder = MLGraphBuilder(builder._context)


# --- where verdicts are asked for --------------------------------------------------------------------------------


def test_profiles_with_engines_have_one_table_of_limits():
    assert not ENGINES.keys() & set(NAMES)
    for name, engine in ENGINES.items():
        profile = find(name)
        assert (profile.name, profile.engine) == (name, engine)
        assert profile.operators.keys() == OPERATORS.keys()
        assert engine.title in profile.title


async def test_a_builder_asks_an_engine(builder):
    x = builder.input("x", data_type="float32", shape=[2])
    verdict = await builder.browser_verdict({"y": builder.abs(x)}, CPU)
    assert isinstance(verdict, EngineVerdict)
    assert verdict.runs_whole
    for wrong in ("chromium-153-litert", "chromium-windows-gpu", 3):
        with pytest.raises(
            TypeError, match=r"browser_verdict\(\): browser is .*; it must be one of chromium-windows-cpu"
        ):
            await builder.browser_verdict({"y": x}, wrong)
    with pytest.raises(TypeError, match=r"browser_verdict\(\): outputs is empty"):
        await builder.browser_verdict({}, CPU)
    y = builder.abs(x)
    await builder.build({"y": y})
    with pytest.raises(InvalidStateError, match=r"browser_verdict\(\)"):
        await builder.browser_verdict({"y": y}, CPU)
    assert webnn_py.EngineVerdict is EngineVerdict


async def test_a_context_refuses_what_the_engine_refuses(ml):
    context = await ml.create_context(backend="numpy", browser=CPU)
    assert context.op_support_limits()["preferred_input_layout"] == "nchw"
    builder = MLGraphBuilder(context)
    with pytest.raises(UnknownError, match=rf"build\(\): the browser profile {CPU} refuses it: .*prelu"):
        await builder.build(wrong_and_right(builder))
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2])
    with pytest.raises(TypeError, match=rf"the browser profile {CPU} refuses it: the data type"):
        builder.where(
            *(builder.input(str(n), data_type=kind, shape=[2]) for n, kind in enumerate(["uint8", "int8", "int8"]))
        )
    await builder.build({"y": builder.neg(x)})


async def test_a_context_whose_engine_cannot_be_asked_has_the_limits_alone(ml):
    builder = MLGraphBuilder(await ml.create_context(backend="numpy", browser=DML))
    await builder.build(wrong_and_right(builder))


async def test_a_report_says_how_its_answers_were_found(builder):
    report = PortabilityReport(map(find, (*NAMES, CPU, DML)))
    assert report.found(find(CPU)) == "limits by table; operators not asked: no graph was built"
    graph = drawing_of("test", wrong_and_right(builder))
    for name in (CPU, DML):
        report.add_verdict(find(name), asking.ask(name, graph))
    told = report.as_json()
    assert told[NAMES[0]]["found"] == "by table"
    assert "graphs" not in told[NAMES[0]]
    assert not told[CPU]["runs"]
    assert [(one["what"], one["error"], one["labels"]) for one in told[CPU]["failing"]] == [
        ("prelu", "UnknownError", ["first", "second"])
    ]
    assert told[CPU]["graphs"][0]["builds"] is False
    assert told[DML]["failing"] == []
    assert told[DML]["runs"] is None
    assert told[DML]["found"].startswith(
        "limits by table; operators not asked: onnxruntime has no DmlExecutionProvider"
    )
    lines = list(report.lines())
    assert lines[-5].split()[:7] == [DML, "all", "of", "it", "not", "known", "onnxruntime"]
    assert lines[-3].split() == [NAMES[0], "by", "table"]
    assert "asked of CPUExecutionProvider" in lines[-2]


async def test_what_runs_on_the_cpu_fails_nowhere(builder, webgpu):
    report = PortabilityReport([find(webgpu)])
    outputs = {"y": builder.sign(builder.input("x", data_type="float32", shape=[2]), label="one")}
    report.add_verdict(find(webgpu), asked(builder, outputs, webgpu))
    told = report.as_json()[webgpu]
    assert told["runs"]
    assert [(one["what"], one["error"], one["labels"]) for one in told["failing"]] == [("sign", None, ["one"])]
    assert list(report.lines())[1].split()[:7] == [webgpu, "sign", "1", "no,", "on", "the", "CPU"]
