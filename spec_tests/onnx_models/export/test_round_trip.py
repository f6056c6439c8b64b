"""Models that others made: read, written, and read again, they are the same drawing, and compute the same."""

import numpy as np
import onnx
import pytest

from spec_tests.onnx_models.export.exporting import described, operators_of, read_back, run, written_again
from spec_tests.onnx_models.reading.foreign_models import MODELS
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, to_model

SIZE = 4
"""The sizes that the models leave open of their inputs."""

FOLDED = ("quantized", "recurrent", "loops")
"""Of these, nodes that depend on constants only are drawn, which reading computes when they were written."""


def without_labels(lines):
    return [line.rpartition("} ")[0] for line in lines]


def drawn(context, proto):
    model = OnnxModel.load(proto.SerializeToString())
    shapes = {
        name: [size if isinstance(size, int) else SIZE for size in info.shape] for name, info in model.inputs.items()
    }
    builder = MLGraphBuilder(context)
    return builder, shapes, model.convert(builder, shapes)


def feeds_for(proto, shapes, rng):
    types = {item.name: item.type.tensor_type.elem_type for item in proto.graph.input}
    return {
        name: rng.integers(0, 256, shape).astype(np.int32)
        if types[name] == onnx.TensorProto.INT32
        else rng.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }


@pytest.mark.parametrize("name", MODELS)
async def test_a_model_is_the_same_drawing_when_it_was_written(context, name):
    _builder, _, outputs = drawn(context, MODELS[name]())
    written = to_model(outputs)
    onnx.checker.check_model(written, full_check=True)
    again, model, _other = written_again(context, written)
    if name in FOLDED:  # which leaves other constants
        again, model, _other = written_again(context, model)
    assert written_again(context, model)[0] == again
    assert without_labels(again) == without_labels(described(outputs)) or name in FOLDED
    _other, read = read_back(context, written)
    assert operators_of(read, constant=False) == operators_of(outputs, constant=False)


@pytest.mark.parametrize("name", MODELS)
async def test_onnxruntime_computes_the_same_of_a_model_that_was_written_again(context, rng, name):
    proto = MODELS[name]()
    _builder, shapes, outputs = drawn(context, proto)
    feeds = feeds_for(proto, shapes, rng)
    for node in proto.graph.node:
        node.ClearField("name")  # some have the same, which onnxruntime refuses
    expected, got = run(proto, feeds), run(to_model(outputs), feeds)
    for output, array in expected.items():
        kind = np.uint8 if array.dtype == bool else array.dtype
        np.testing.assert_allclose(got[output], array.astype(kind), rtol=1e-4, atol=1e-5, err_msg=output)
