"""The model's own functions, converted where they are called."""

import numpy as np
import onnx
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import InvalidModelError, OnnxModel, UnsupportedModelError

X = np.array([[1, -2, 3]], np.float32)
KNOWN = "float low = {0}, float[1,3] w = {1, -2, 3}"


def model(nodes, *functions, outputs="float[1,3] y"):
    return parsed(f"({outputs}) <{KNOWN}> {{ {nodes} }}", *functions, inputs="float[1,3] x", opset=14)


LEAKY = "Leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }"
LEAKY_BY_DEFAULT = LEAKY.replace("<slope>", "<slope: float = 0.5>")
THROUGH = "Through <s> (a) => (b) { m = own.Leaky <slope: float = @s> (a)  b = Neg (m) }"
HALVES = "Halves (a) => (low, high) { high = Relu (a)  low = Sub (a, high) }"
OPTIONAL = "Bounded (a, low, high) => (b) { b = Clip (a, low, high) }"
CONSTANT = "Given <v> () => (b) { b = Constant <value: tensor = @v> () }"
CHOICE = """Choice <slope> (a) => (b) {
  c = Constant <value = bool {1}> ()
  b = If (c) <then_branch = t () => (float[1,3] p) { p = LeakyRelu <alpha: float = @slope> (a) },
    else_branch = e () => (float[1,3] q) { q = LeakyRelu <alpha: float = @slope> (a) }>
}"""

ALIKE = {
    "an attribute": model("y = own.Leaky <slope = 0.25> (x)", LEAKY),
    "a default": model("y = own.Leaky (x)", LEAKY_BY_DEFAULT),
    "a default that is given": model("y = own.Leaky <slope = 0.25> (x)", LEAKY_BY_DEFAULT),
    "an absent attribute": model("y = own.Leaky (x)", LEAKY),
    "an attribute handed on": model("y = own.Through <s = 0.25> (x)", LEAKY, THROUGH),
    "two calls": model("m = own.Leaky <slope = 0.25> (x)  y = own.Leaky <slope = 0.5> (m)", LEAKY),
    "two outputs": model("y, z = own.Halves (x)", HALVES, outputs="float[1,3] y, float[1,3] z"),
    "one output of two": model("y, unused = own.Halves (x)", HALVES),
    "the second output only": model("unused, y = own.Halves (x)", HALVES),
    "a left out input at the end": model("y = own.Bounded (x, low)", OPTIONAL),
    "a left out input": model("y = own.Bounded (x, , low)", OPTIONAL),
    "a tensor": model("g = own.Given <v = float[3] {1, -2, 3}> ()  y = Add (x, g)", CONSTANT),
    "known inputs": model("h, i = own.Halves (w)  y = Add (x, i)", HALVES),
    "names as outside": model("a = Neg (x)  b = own.Leaky (a)  y = Add (a, b)", LEAKY),
}


@pytest.mark.parametrize("data", ALIKE.values(), ids=ALIKE)
async def test_a_call_gives_what_the_body_computes(context, data):
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


OF_OPSET_11 = """<domain: "own", opset_import: ["": 11]> F (a) => (b)
{ u = Unsqueeze <axes = [0]> (a)  b = Squeeze <axes = [0]> (u) }"""
RELU = '<domain: "", opset_import: ["": 14]> Relu (a) => (b) { b = Neg (a) }'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (model("y = own.Choice <slope = 0.25> (x)", CHOICE), np.where(X > 0, X, X / 4)),
        (model("y = Relu (x)", RELU), -X),
        (model("y = own.F (x)", OF_OPSET_11), X),
    ],
    ids=["attributes in branches", "the name of an operator", "operator sets of its own"],
)
async def test_a_body_has_its_own_meaning(context, data, expected):
    assert_same(await run(context, data, {"x": X}), [expected])


async def test_a_reference_outside_of_functions_is_an_absent_attribute(context):
    proto = onnx.load_model_from_string(model("y = LeakyRelu (x)"))
    proto.graph.node[0].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    assert_same(await run(context, proto.SerializeToString(), {"x": X}), [np.where(X > 0, X, X / 100)])


async def test_overloads_are_distinguished(context):
    bodies = ["F (a) => (b) { b = Neg (a) }", "F (a) => (b) { b = Relu (a) }"]
    proto = onnx.load_model_from_string(model("m = own.F (x)  y = own.F (m)", *bodies))
    proto.functions[1].overload = proto.graph.node[0].overload = "other"
    assert_same(await run(context, proto.SerializeToString(), {"x": X}), [-np.maximum(X, 0)])


async def test_the_nodes_of_a_function_have_the_call_s_name(context):
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(model("[call] y = own.Leaky (x)", LEAKY)).convert(builder)
    assert [node.label for node in drawing_of("a test", outputs).nodes] == ["call/LeakyRelu of b"]


@pytest.mark.parametrize(
    ("call", "function", "text"),
    [
        ("y = own.Leaky (x, x)", LEAKY, "the call has 2 inputs and 1 outputs; the function has 1 and 1"),
        ("y, z = own.Leaky (x)", LEAKY, "the call has 1 inputs and 2 outputs; the function has 1 and 1"),
        ("y = own.Unknown (x)", LEAKY, r"operators of the domain 'own' are not supported"),
        (
            "[call] y = own.F (x)",
            "F (a) => (b) { [d] b = RandomNormalLike (a) }",
            r"node 'call/d' \(RandomNormalLike, opset 14\): the operator is not supported",
        ),
        (
            "[call] y = own.F ()",
            "F (a) => (b) { [r] b = Relu (a) }",
            r"node 'call/r' \(Relu, opset 14\): input X is missing; it is needed",
        ),
        ("y = own.F ()", "F (a) => (a) { }", "output 'y': it is an input of a function that its call leaves out"),
    ],
)
async def test_a_call_that_does_not_fit_is_refused(context, call, function, text):
    with pytest.raises(UnsupportedModelError, match=text):
        OnnxModel.load(model(call, function)).convert(MLGraphBuilder(context))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("[n] b = Add (a, x)", "node 'call/n' uses 'x', which nothing computes"),
        ("", "the function 'F' uses 'b', which nothing computes"),
    ],
)
async def test_a_body_that_lacks_a_value_is_refused(context, body, text):
    with pytest.raises(InvalidModelError, match=text):
        OnnxModel.load(model("[call] y = own.F (x)", f"F (a) => (b) {{ {body} }}")).convert(MLGraphBuilder(context))


def test_two_functions_of_a_name_are_refused():
    with pytest.raises(InvalidModelError, match="two of the model's functions have the name 'Leaky'"):
        OnnxModel.load(model("y = own.Leaky (x)", LEAKY, LEAKY))
