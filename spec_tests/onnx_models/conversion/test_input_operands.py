"""A model can be a part of a graph: operands take the place of its inputs."""

import numpy as np
import pytest

from spec_tests.support.onnx_programs import program
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel

MODEL = OnnxModel.load(
    program(
        [("Add", ["a", "b"], ["y"], {})],
        {name: ("float32", ["rows", 3]) for name in "ab"},
        {"y": ("float32", ["rows", 3])},
    )
)


async def test_operands_take_the_place_of_inputs(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2, 3])
    first = MODEL.convert(builder, {"b": [2, 3]}, input_operands={"a": builder.neg(x)})["y"]
    second = await MODEL.convert_in_steps(builder, input_operands={"a": first, "b": x})
    graph = await builder.build(second)
    assert set(graph.input_descriptors) == {"x", "b"}
    arrays = {name: np.full([2, 3], value, np.float32) for name, value in (("x", 5), ("b", 7))}
    buffers = {}
    for name, array in arrays.items():
        buffers[name] = await numpy_context.create_buffer(data_type="float32", shape=[2, 3], writable=True)
        numpy_context.write_buffer(buffers[name], array)
    output = await numpy_context.create_buffer(data_type="float32", shape=[2, 3], readable=True)
    numpy_context.dispatch(graph, buffers, {"y": output})
    np.testing.assert_array_equal(await numpy_context.read_buffer(output), np.full([2, 3], 7))


async def test_operands_that_do_not_fit_are_refused(numpy_context):
    builder, other = MLGraphBuilder(numpy_context), MLGraphBuilder(numpy_context)
    right = builder.input("x", data_type="float32", shape=[2, 3])
    for operands, shapes, words in (
        ({"c": right}, {}, r"input_operands names \['c'\]; the model's inputs are"),
        ({"a": right}, {"a": [2, 3], "b": [2, 3]}, r"input_operands names \['a'\], which input_shapes or input_values"),
        ({"a": builder.cast(right, "float16")}, {"b": [2, 3]}, "it must be an operand of the builder, of float32"),
        ({"a": other.input("x", data_type="float32", shape=[2, 3])}, {"b": [2, 3]}, "an operand of the builder"),
        ({"a": builder.reshape(right, [3, 2])}, {"b": [2, 3]}, r"the shape of input 'a' is \[3, 2\]; it must fit"),
    ):
        with pytest.raises(ValueError, match=words):
            MODEL.convert(builder, shapes, input_operands=operands)
