"""Saving a drawing: what the file is like, and what is refused."""

import io
import math

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import webnn_py
from spec_tests.onnx_models.export.exporting import OPTIONS, run
from spec_tests.support.buffers import constant
from webnn_py import InvalidStateError, MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, export, save, to_model

X = np.array([[1, -2, 3]], np.float32)


@pytest.fixture
async def builder(context):
    return MLGraphBuilder(context)


def scaled(builder, weights=None, **options):
    """An input times weights: an output by its name."""
    x = builder.input("x", data_type="float32", shape=X.shape)
    weights = np.array([1, 2, 3], np.float32) if weights is None else weights
    return {"y": builder.mul(x, builder.constant(weights), **options)}


async def test_a_saved_model_has_its_producer_and_metadata(builder, tmp_path):
    save(scaled(builder), tmp_path / "model.onnx", metadata={"author": "nobody"})
    model = OnnxModel.load(tmp_path / "model.onnx")
    assert (model.metadata.producer_name, model.metadata.producer_version) == ("webnn_py", webnn_py.__version__)
    assert dict(model.metadata.opsets) == {"": 20}
    assert dict(model.metadata.properties) == {"author": "nobody"}
    assert {name: str(info) for name, info in model.inputs.items()} == {"x": "float32 [1, 3]"}
    assert {name: str(info) for name, info in model.outputs.items()} == {"y": "float32 [1, 3]"}


async def test_a_drawing_can_be_built_after_it_was_saved(builder):
    outputs = scaled(builder)
    file = io.BytesIO()
    save(outputs, file)
    assert onnx.load_model_from_string(file.getvalue()) == to_model(outputs)
    await builder.build(outputs)


@pytest.mark.parametrize("external_data", [False, True])
async def test_weights_stand_in_the_file_or_beside_it(builder, tmp_path, external_data):
    weights = np.linspace(0, 1, 3000, dtype=np.float32).reshape(1000, 3)
    path = tmp_path / "model.onnx"
    save(scaled(builder, weights), path, external_data=external_data)
    beside = tmp_path / "model.onnx.data"
    assert beside.exists() is external_data
    assert (path.stat().st_size < weights.nbytes) is external_data
    np.testing.assert_array_equal(run(onnx.load(path), {"x": X})["y"], X * weights)
    other = MLGraphBuilder(builder.context)
    again = to_model(OnnxModel.load(path).convert(other))
    np.testing.assert_array_equal(numpy_helper.to_array(again.graph.initializer[0]), weights)


async def test_sizes_of_many_parts_stand_in_the_file(builder, tmp_path):
    """Onnxruntime infers shapes before it reads external data."""
    rows = np.arange(1200, dtype=np.float32).reshape(600, 2)
    x = builder.input("x", data_type="float32", shape=rows.shape)
    backwards = builder.concat(builder.split(x, 600, axis=0)[::-1], axis=0)
    path = tmp_path / "model.onnx"
    save({"y": builder.add(backwards, builder.constant(rows))}, path, external_data=True)
    assert (tmp_path / "model.onnx.data").stat().st_size == rows.nbytes
    session = onnxruntime.InferenceSession(path, OPTIONS, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["y"], {"x": rows})[0], rows[::-1] + rows)


async def test_a_model_too_large_for_one_file_is_two(builder, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "LARGEST_FILE", 5000)
    outputs = scaled(builder, np.ones((1000, 3), np.float32))
    save(outputs, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx.data").stat().st_size == 12_000
    with pytest.raises(ValueError, match=r"larger than 5,000 bytes .* give a path"):
        save(outputs, io.BytesIO())
    with pytest.raises(ValueError, match="external_data needs a file beside the model's"):
        save(outputs, io.BytesIO(), external_data=True)


async def test_equal_constants_are_written_once(builder):
    x = builder.input("x", data_type="float32", shape=[3])
    ones = [builder.constant(np.ones(3, np.float32)) for _ in range(2)]
    large = np.ones(2000, np.float32)
    large.flags.writeable = False
    shared = [builder.constant_shared(large, b"key") for _ in range(2)]
    y = builder.add(builder.add(x, ones[0]), ones[1])
    z = builder.mul(builder.mul(builder.reduce_sum(x), shared[0]), shared[1])
    model = to_model({"y": y, "z": z})
    assert sorted(math.prod(item.dims) for item in model.graph.initializer if item.data_type == 1) == [3, 2000]


async def test_names_are_the_labels_and_those_of_inputs_and_outputs(builder):
    x = builder.input("x", data_type="float32", shape=[2])
    a = builder.exp(x, label="x")
    b = builder.neg(a, label="constant")
    c = builder.add(b, builder.constant(1, data_type="float32"))
    d = builder.add(c, a, label="add")
    model = to_model({"add": d, "also": d})
    onnx.checker.check_model(model, full_check=True)
    assert [node.name for node in model.graph.node] == ["x", "constant", "add", "add_2", "also"]
    results = run(model, {"x": np.zeros(2, np.float32)})
    for name in ("add", "also"):
        np.testing.assert_array_equal(results[name], [1, 1])


async def test_functions_are_written_once_for_all_calls_that_need_the_same(builder):
    x = builder.input("x", data_type="float32", shape=[2, 3])
    y = builder.cast(x, "int32")
    z = builder.cast(builder.mul(x, x), "int32")
    model = to_model({"y": y, "z": z, "narrow": builder.cast(x, "int8")})
    assert [function.name for function in model.functions] == ["cast", "cast_2"]
    calls = [(node.name, node.op_type) for node in model.graph.node if node.domain]
    assert calls == [("cast", "cast"), ("cast_2", "cast"), ("cast_3", "cast_2")]


async def test_a_boolean_that_is_there_is_not_made_again(builder):
    x = builder.input("x", data_type="float32", shape=[3])
    is_positive = builder.greater(x, builder.constant(0, data_type="float32"))
    y = builder.where(builder.logical_not(is_positive), x, builder.neg(x))
    assert [node.op_type for node in to_model({"y": y}).graph.node] == ["Greater", "Not", "Neg", "Where"]


async def test_only_constant_indices_that_are_in_range_are_taken_as_they_are(builder):
    x = builder.input("x", data_type="float32", shape=[3])
    drawn = {
        "inside": builder.gather(x, builder.constant(np.array([-3, 2], np.int32))),
        "above": builder.gather(x, builder.constant(np.array([0, 3], np.int32))),
        "below": builder.gather(x, builder.constant(np.array([-4, 0], np.int32))),
    }
    model = to_model(drawn)
    assert [node.op_type for node in model.graph.node] == ["Gather", "gather", "gather"]
    results = run(model, {"x": X[0]})
    for name, expected in (("inside", [1, 3]), ("above", [1, 3]), ("below", [1, 1])):
        np.testing.assert_array_equal(results[name], expected)


async def test_quantization_in_blocks_takes_a_newer_opset(builder):
    x = builder.input("x", data_type="int8", shape=[2, 6])
    scale, zero = builder.constant(np.ones((2, 3), np.float32)), builder.constant(np.zeros((2, 3), np.int8))
    model = to_model({"y": builder.dequantize_linear(x, scale, zero)})
    assert model.opset_import[0].version == 21
    given = np.arange(12, dtype=np.int8).reshape(2, 6)
    np.testing.assert_array_equal(run(model, {"x": given})["y"], given.astype(np.float32))


# --- refusals --------------------------------------------------------------------------------------------------------


async def test_a_built_graph_can_no_longer_be_saved(builder):
    outputs = scaled(builder)
    await builder.build(outputs)
    with pytest.raises(InvalidStateError, match=r"save\(\): the builder has built its graph"):
        to_model(outputs)


async def test_outputs_are_refused_as_by_build(builder):
    x = builder.input("x", data_type="float32", shape=[2])
    other = MLGraphBuilder(builder.context)
    mixed = {"a": builder.neg(x), "b": other.neg(other.input("x", data_type="float32", shape=[2]))}
    for outputs, words in (
        ({}, r"save\(\): outputs is empty"),
        ({"y": x}, r"save\(\): outputs\['y'\] is an input; use identity\(\)"),
        (mixed, r"save\(\): outputs\['b'\] belongs to another builder"),
        ([x], r"save\(\): outputs is "),
    ):
        with pytest.raises(TypeError, match=words):
            to_model(outputs)


async def test_a_drawing_whose_builder_is_gone_is_refused(context):
    builder = MLGraphBuilder(context)
    outputs = scaled(builder)
    del builder
    with pytest.raises(TypeError, match=r"the builder of outputs\['y'\] is gone; keep it"):
        to_model(outputs)


async def test_a_constant_buffer_is_refused(builder):
    buffer = await constant(builder.context, [1, 2, 3])
    x = builder.input("x", data_type="float32", shape=[3])
    outputs = {"y": builder.add(x, builder.constant(buffer))}
    with pytest.raises(ValueError, match=r"a constant float32 \[3\] is a constant buffer"):
        to_model(outputs)
