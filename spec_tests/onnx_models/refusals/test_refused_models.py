"""Refusals of a whole model: of its versions, many problems, inputs and outputs."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models.single_node import int64s, make_model, node, parsed
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def refusal(context, model):
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(model).convert(MLGraphBuilder(context))
    return caught.value


@pytest.mark.parametrize(
    ("operator", "opset", "text"),
    [
        ("Relu", 5, "version 1 of the operator is not supported; only those of opset 6, 13, 14 are"),
        ("Relu", 999, "(Relu, opset 999): the installed onnx package knows opsets up to"),
        ("Gelu", 14, "(Gelu, opset 14): ONNX has no such operator in opset 14"),
    ],
)
async def test_unknown_versions_of_operators_are_refused(context, operator, opset, text):
    model = parsed(f"(float[2,3,4] y) {{ y = {operator} (x) }}", inputs="float[2,3,4] x", opset=opset)
    assert text in str(refusal(context, model))


async def test_every_problem_is_reported(context):
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="waits"),
        helper.make_node("FusedMatMul", ["x", "x"], ["c"], name="second", domain="com.microsoft"),
        helper.make_node("Elu", ["x"], ["d"], name="third", gamma=2.0),
        helper.make_node("Unique", ["b"], ["e"], name="perhaps known, were it not for the first"),
        helper.make_node("RandomNormalLike", ["b"], ["g"], name="behind the first"),
        helper.make_node("Relu", ["x"], ["f"], name="fine"),
    ]
    proto = onnx.load_model_from_string(make_model(nodes, {"x": X}, ["b", "c", "d", "e", "f", "g", "z"], opset=15))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    proto.graph.input.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, [1]))
    error = refusal(context, proto.SerializeToString())
    assert [problem.subject for problem in error.problems] == [
        "input 'z'",
        "node 'first' (NonZero, opset 15)",
        "node 'second' (com.microsoft.FusedMatMul, opset 1)",
        "node 'third' (Elu, opset 15)",
        "node 'behind the first' (RandomNormalLike, opset 15)",
    ]
    assert "input 'z': the data type is float64; it must be bool or one of float32" in str(error)


async def test_problems_of_one_kind_are_one_line(context):
    nodes = [
        *(helper.make_node("NonZero", ["x"], [f"a{index}"], name=f"n{index}") for index in range(107)),
        *(helper.make_node("Reshape", ["x", "s"], [f"b{index}"], name=f"r{index}") for index in range(2)),
        helper.make_node("Elu", ["x"], ["c"], name="e", gamma=2.0),
    ]
    outputs = [output for item in nodes for output in item.output]
    error = refusal(context, make_model(nodes, {"x": X, "s": int64s(3, 8)}, outputs, opset=14))
    assert len(error.problems) == 110
    assert (
        str(error)
        == """\
the model cannot be converted:
  107 nodes of NonZero ('n0', 'n1', 'n2', …): the operator is not supported, unless all its inputs are known while \
building
  2 nodes of Reshape ('r0', 'r1'): input shape is computed when the graph runs; it must be known while building; \
freeze input 's', by input_values
  node 'e' (Elu, opset 14): attribute gamma is 2.0; the operator has no such attribute"""
    )


@pytest.mark.parametrize(
    ("shapes", "advice"),
    [
        ([[1], [2]], "; freeze inputs 'k0', 'k1', by input_values"),
        ([[1], [2], [3], [4]], ""),
        ([[1], [1000]], ""),
        ([[1], [1, 1]], ""),
    ],
    ids=["two", "too many", "too large", "a table"],
)
async def test_a_refusal_says_which_inputs_would_do_if_they_were_frozen(context, shapes, advice):
    small = {f"k{index}": np.zeros(shape, np.int64) for index, shape in enumerate(shapes)}
    nodes = [
        *(helper.make_node("Reshape", [name, "flat"], [f"{name}_"]) for name in small),
        helper.make_node("Concat", [f"{name}_" for name in small], ["k"], axis=0),
        helper.make_node("Neg", ["k"], ["n"]),
        helper.make_node("Expand", ["x", "n"], ["y"], name="e"),
    ]
    model = make_model(nodes, {"x": X, **small, "flat": int64s(-1)}, ["y"], {"flat": int64s(-1)}, opset=14)
    error = refusal(context, model)
    reason = "input shape is computed when the graph runs; it must be known while building"
    assert str(error.problems[0]) == f"node 'e' (Expand, opset 14): {reason}{advice}"


SMALL = "(float[2] y) {{ y = {} }}"


@pytest.mark.parametrize(
    ("inputs", "call", "advice"),
    [
        ("float[3] x", "RandomNormalLike (x)", ""),
        ("float[3] x", "RandomUniformLike (x)", ""),
        ("float[3] x", "Bernoulli (x)", ""),
        ("float[1,3] x", "Multinomial (x)", ""),
        ("float[3] x", "Optional (x)", ""),
        ("float[3] x", "StringSplit (x)", ""),
        ("int64[3] x", "TfIdfVectorizer (x)", ""),
        ("uint8[30] x", "ImageDecoder (x)", ""),
        ("float[3] x", "NonZero (x)", "freeze input 'x', by input_values"),
        ("float[2,3] x", "NonZero (x)", "freeze input 'x', by input_values"),
        ("float[64,2] x", "NonZero (x)", ""),
        ("float[2,3] x", "Unique (x)", "freeze input 'x', by input_values"),
    ],
)
async def test_freezing_is_advised_where_the_operator_is_then_computed(context, inputs, call, advice):
    (problem,) = refusal(context, parsed(SMALL.format(call), inputs=inputs, opset=21)).problems
    assert problem.reason.startswith("the operator is not supported")
    assert problem.way_out == advice


async def test_an_output_of_a_type_that_webnn_lacks_is_refused(context):
    model = parsed("(double[2] y) <float[2] w = {1, 2}> { y = Cast <to = 11> (w) }", inputs="")
    assert "output 'y': the data type of a value is float64" in str(refusal(context, model))


async def test_an_output_without_elements_is_refused(context):
    (case,) = node("Slice", 13, X, int64s(2), int64s(2), known=[1, 2])
    text = "output 'y0': its shape is [0, 3, 4]; WebNN has no tensors without elements; leave it out, by outputs"
    assert text in str(refusal(context, case.model()))


async def test_a_sparse_initializer_is_refused(context):
    model = parsed("(float[2,3,4] y) { y = Add (x, w) }", inputs="float[2,3,4] x")
    proto = onnx.load_model_from_string(model)
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("w places", TensorProto.INT64, [1], [2])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    text = "initializer 'w': it is sparse; only dense ones are supported"
    assert text in str(refusal(context, proto.SerializeToString()))
