"""Composites: one node where the device takes them whole, and operators of the specification everywhere else."""

import numpy as np
import onnx
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import make_model
from spec_tests.operators.decomposed import DECOMPOSITIONS
from spec_tests.support.computing import compute, run_graph
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.checking import check_finite
from webnn_py.core.operators.composite import COMPOSITES
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.extensions.browser_limits import find
from webnn_py.extensions.portability import PortabilityReport
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError, save
from webnn_py.pictures import picture
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.web_export import save_js

pytest.importorskip("onnxruntime")

STEPS, BATCH, SIZE, UNITS = 4, 2, 3, 5
ENDS = ["y", "yh", "yc"]
RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 1, (STEPS, BATCH, SIZE)).astype(np.float32)
NAME = "dynamic_quantize_lstm"


def network(inputs=("x",), **changes):
    """A model of one network, called "network"; what is no input is an initializer."""
    arrays = {
        "x": X,
        "w": RNG.integers(-128, 127, (1, SIZE, 4 * UNITS), np.int8),
        "r": RNG.integers(-128, 127, (1, UNITS, 4 * UNITS), np.int8),
        "b": RNG.uniform(-1, 1, (1, 8 * UNITS)).astype(np.float32),
        "ws": np.array([0.006], np.float32),
        "wz": np.array([3], np.int8),
        "rs": np.array([0.007], np.float32),
        "rz": np.array([0], np.int8),
    } | changes
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    options = {"hidden_size": UNITS, "domain": "com.microsoft", "name": "network"}
    node = helper.make_node("DynamicQuantizeLSTM", names, ENDS, **options)
    initializers = {name: array for name, array in arrays.items() if name not in inputs}
    return make_model([node], arrays, ENDS, initializers, opset=15)


def drawn(context, model, **options):
    builder = MLGraphBuilder(context)
    return builder, OnnxModel.load(model).convert(builder, **options)


def operators(_builder, outputs):
    return [node.operator.name for node in drawing_of("a test", outputs).nodes]


async def contexts(ml):
    return [await ml.create_context(backend=backend) for backend in ("onnxruntime", "reference")]


async def test_a_device_that_takes_it_whole_is_drawn_one_node_and_others_its_operators(ml):
    whole, steps = [operators(*drawn(context, network())) for context in await contexts(ml)]
    assert whole.count(NAME) == 1
    assert len(whole) < 10
    assert not {*steps} & {*COMPOSITES}
    assert len(steps) > 100


async def test_a_quantization_by_its_own_range_is_one_node_as_well(ml):
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ENDS)
    found = []
    for context in await contexts(ml):
        for shape in ((3, 4), ()):  # of which the device takes those with dimensions
            model = make_model([node], {"x": np.ones(shape, np.float32)}, ENDS, opset=15)
            found.append(operators(*drawn(context, model)))
    assert found[0] == ["dynamic_quantize"]
    assert all("quantize_linear" in names for names in found[1:])


def test_composites_are_none_of_the_specifications_operators():
    assert not COMPOSITES.keys() & (OPERATORS.keys() | DECOMPOSITIONS.keys() | {*dir(MLGraphBuilder)})


async def test_the_node_is_called_as_the_model_calls_it(ml):
    _builder, outputs = drawn((await contexts(ml))[0], network())
    pictured = picture(outputs)
    assert "dynamicQuantizeLstm [network]" in str(pictured)
    assert "dynamicQuantizeLstm" in pictured.to_svg()


async def test_a_drawing_that_is_written_down_has_operators_of_the_specification(ml, tmp_path):
    texts, model = [], network()
    for context in await contexts(ml):
        builder, outputs = drawn(context, model)
        assert not {node.operator.name for node in spelled_out(drawing_of("a test", outputs)).nodes} & {*COMPOSITES}
        save_js(outputs, tmp_path)
        texts.append((tmp_path / "model.js").read_text())
        save(outputs, tmp_path / "saved.onnx")
        onnx.checker.check_model(onnx.load(tmp_path / "saved.onnx"))
        builder.destroy()
    assert texts[0].count("= builder.") == texts[1].count("= builder.") > 100


async def test_a_saved_model_computes_the_same(ml, tmp_path):
    context = (await contexts(ml))[0]
    builder, outputs = drawn(context, network())
    save(outputs, tmp_path / "saved.onnx")
    expected = await compute(context, builder, {"x": X}, outputs)
    builder, outputs = drawn(context, tmp_path / "saved.onnx")
    found = await compute(context, builder, {"x": X}, outputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=5e-3)


async def test_the_operator_of_a_composite_that_gives_infinity_is_found(ml):
    model = network(w=np.full((1, SIZE, 4 * UNITS), 127, np.int8))
    found = []
    for context in await contexts(ml):
        _builder, outputs = drawn(context, model)
        found.append(await check_finite(outputs, {"x": np.full_like(X, 3e38)}))
    assert found[0].operator == found[1].operator == "mul"
    assert found[0].label == "network"


async def test_a_graph_with_one_is_saved_and_loaded(tmp_path):
    saved = SavedGraphs(tmp_path)
    async with open_ml() as ml:
        context = await ml.create_context(backend="onnxruntime", threads=1)
        builder, outputs = drawn(context, network())
        graph = await builder.build(outputs, keep_source=True)
        await saved.save("network", graph)
        loaded = await saved.load(context, "network")
        np.testing.assert_equal(*[await run_graph(context, each, {"x": X}) for each in (graph, loaded)])


REFUSED = {
    "an input of float16": {"x": X.astype(np.float16)},
    "scales of float16": {"ws": np.array([0.006], np.float16)},
    "a zero point of another type": {"wz": np.array([3], np.uint8)},
    "weights of int32": {"w": np.zeros((1, SIZE, 4 * UNITS), np.int32)},
    "a bias of another length": {"b": np.zeros((1, 6 * UNITS), np.float32)},
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_composite_is_refused_in_the_words_of_its_operators(ml, case):
    model = network(**REFUSED[case])
    for context in await contexts(ml):
        with pytest.raises(UnsupportedModelError) as caught:
            drawn(context, model)
        assert f"{NAME}()" not in str(caught.value)


async def test_a_network_that_only_its_operators_accept_is_drawn_as_operators(ml):
    model = network(b=np.ones((1, 2), np.float32))  # a bias that is broadcast
    results = []
    for context in await contexts(ml):
        builder, outputs = drawn(context, model)
        assert NAME not in operators(builder, outputs)
        results.append(await compute(context, builder, {"x": X}, outputs))
    for name, array in results[0].items():
        np.testing.assert_allclose(array, results[1][name], rtol=0, atol=5e-3)


async def test_each_column_may_have_a_scale_of_its_own(ml):
    scales = {name: RNG.uniform(0.002, 0.01, (1, 4 * UNITS)).astype(np.float32) for name in ("ws", "rs")}
    model = network(**scales, wz=np.full((1, 4 * UNITS), 3, np.int8), rz=np.zeros((1, 4 * UNITS), np.int8))
    results = []
    for context in await contexts(ml):
        builder, outputs = drawn(context, model)
        results.append((NAME in operators(builder, outputs), await compute(context, builder, {"x": X}, outputs)))
    assert [is_one for is_one, _ in results] == [True, False]
    for name, array in results[0][1].items():
        np.testing.assert_allclose(array, results[1][1][name], rtol=0, atol=5e-3)


async def test_a_composite_of_constants_is_known_while_building(ml):
    model = onnx.load_from_string(network(inputs=()))
    nodes = [
        helper.make_node("ReduceMax", ["yh"], ["most"], keepdims=0),
        helper.make_node("Ceil", ["most"], ["one"]),
        helper.make_node("Cast", ["one"], ["count"], to=onnx.TensorProto.INT64),
        helper.make_node("Unsqueeze", ["count", "axes"], ["shape"]),
        helper.make_node("Expand", ["ws", "shape"], ["scales"]),
    ]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0], np.int64), "axes"))
    model.graph.output.append(helper.make_tensor_value_info("scales", onnx.TensorProto.FLOAT, None))
    _, outputs = drawn((await contexts(ml))[0], model.SerializeToString())
    assert outputs["scales"].shape == (1,)


async def test_reports_for_browsers_name_operators_that_browsers_have():
    report = PortabilityReport([find("chromium-153-litert")])
    async with open_ml(extensions=[report]) as ml:
        context = await ml.create_context(backend="onnxruntime")
        assert NAME not in operators(*drawn(context, network()))
    assert "dynamicQuantizeLstm" not in "\n".join(report.lines())
