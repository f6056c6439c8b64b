"""The model's own functions, converted where they are called."""

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_same, make_model, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.graph import Graph
from webnn_py.onnx_models import InvalidModelError, OnnxModel, UnsupportedModelError

X = np.array([[1, -2, 3]], np.float32)
OPSETS = (helper.make_opsetid("", 14), helper.make_opsetid("own", 1))


def referring(operator, inputs, outputs, kind=AttributeProto.FLOAT, **references):
    """A node whose attributes refer to attributes of its function."""
    node = helper.make_node(operator, inputs, outputs)
    for name, reference in references.items():
        node.attribute.append(AttributeProto(name=name, ref_attr_name=reference, type=kind))
    return node


def function(name, inputs, outputs, nodes, attributes=(), *, defaults=(), opsets=OPSETS):
    protos = [helper.make_attribute(key, value) for key, value in dict(defaults).items()]
    return helper.make_function(
        "own", name, inputs, outputs, nodes, list(opsets), attributes=list(attributes), attribute_protos=protos
    )


def call(name, inputs, outputs, **attributes):
    return helper.make_node(name, inputs, outputs, domain="own", name=f"call {outputs[0]}", **attributes)


def model(nodes, functions, outputs=("y",), **initializers):
    data = make_model(nodes, {"x": X, **initializers}, outputs, initializers, opset=14)
    proto = onnx.load_model_from_string(data)
    proto.ir_version = 9
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.extend(functions)
    return proto.SerializeToString()


LEAKY = function("Leaky", ["a"], ["b"], [referring("LeakyRelu", ["a"], ["b"], alpha="slope")], ["slope"])
LEAKY_BY_DEFAULT = function(
    "Leaky", ["a"], ["b"], [referring("LeakyRelu", ["a"], ["b"], alpha="slope")], defaults={"slope": 0.5}
)
THROUGH = function(
    "Through", ["a"], ["b"], [referring("Leaky", ["a"], ["m"], slope="s"), helper.make_node("Neg", ["m"], ["b"])], ["s"]
)
THROUGH.node[0].domain = "own"
HALVES = function(
    "Halves",
    ["a"],
    ["low", "high"],
    [helper.make_node("Relu", ["a"], ["high"]), helper.make_node("Sub", ["a", "high"], ["low"])],
)
OPTIONAL = function("Bounded", ["a", "low", "high"], ["b"], [helper.make_node("Clip", ["a", "low", "high"], ["b"])])
CONSTANT = function(
    "Given",
    [],
    ["b"],
    [referring("Constant", [], ["b"], kind=AttributeProto.TENSOR, value="v")],
    ["v"],
)
CHOICE = function(
    "Choice",
    ["a"],
    ["b"],
    [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node(
            "If",
            ["c"],
            ["b"],
            **{
                name: helper.make_graph(
                    [referring("LeakyRelu", ["a"], [name], alpha="slope")],
                    name,
                    [],
                    [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
                )
                for name in ("then_branch", "else_branch")
            },
        ),
    ],
    ["slope"],
)

ALIKE = {
    "an attribute": model([call("Leaky", ["x"], ["y"], slope=0.25)], [LEAKY]),
    "a default": model([call("Leaky", ["x"], ["y"])], [LEAKY_BY_DEFAULT]),
    "a default that is given": model([call("Leaky", ["x"], ["y"], slope=0.25)], [LEAKY_BY_DEFAULT]),
    "an absent attribute": model([call("Leaky", ["x"], ["y"])], [LEAKY]),
    "an attribute handed on": model([call("Through", ["x"], ["y"], s=0.25)], [LEAKY, THROUGH]),
    "two calls": model([call("Leaky", ["x"], ["m"], slope=0.25), call("Leaky", ["m"], ["y"], slope=0.5)], [LEAKY]),
    "two outputs": model([call("Halves", ["x"], ["y", "z"])], [HALVES], ["y", "z"]),
    "one output of two": model([call("Halves", ["x"], ["y", "unused"])], [HALVES]),
    "the second output only": model([call("Halves", ["x"], ["unused", "y"])], [HALVES]),
    "a left out input at the end": model([call("Bounded", ["x", "low"], ["y"])], [OPTIONAL], low=np.float32(0)),
    "a left out input": model([call("Bounded", ["x", "", "low"], ["y"])], [OPTIONAL], low=np.float32(0)),
    "a tensor": model(
        [call("Given", [], ["g"], v=numpy_helper.from_array(X)), helper.make_node("Add", ["x", "g"], ["y"])], [CONSTANT]
    ),
    "known inputs": model(
        [call("Halves", ["w"], ["h", "i"]), helper.make_node("Add", ["x", "i"], ["y"])], [HALVES], w=X
    ),
    "names as outside": model(
        [
            helper.make_node("Neg", ["x"], ["a"]),
            call("Leaky", ["a"], ["b"]),
            helper.make_node("Add", ["a", "b"], ["y"]),
        ],
        [LEAKY],
    ),
}


@pytest.mark.parametrize("data", ALIKE.values(), ids=ALIKE)
async def test_a_call_gives_what_the_body_computes(context, data):
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


async def test_branches_in_a_function_see_its_attributes(context):
    data = model([call("Choice", ["x"], ["y"], slope=0.25)], [CHOICE])
    assert_same(await run(context, data, {"x": X}), [np.where(X > 0, X, X / 4)])


async def test_a_function_goes_before_an_operator_of_the_same_name(context):
    relu = function("Relu", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])])
    relu.domain = ""
    data = model([helper.make_node("Relu", ["x"], ["y"])], [relu])
    assert_same(await run(context, data, {"x": X}), [-X])


async def test_overloads_are_told_apart(context):
    functions = [
        function("F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])]),
        function("F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])]),
    ]
    functions[1].overload = "other"
    nodes = [call("F", ["x"], ["m"]), call("F", ["m"], ["y"])]
    nodes[0].overload = "other"
    assert_same(await run(context, model(nodes, functions), {"x": X}), [-np.maximum(X, 0)])


async def test_a_function_has_operator_sets_of_its_own(context):
    nodes = [helper.make_node("Unsqueeze", ["a"], ["u"], axes=[0]), helper.make_node("Squeeze", ["u"], ["b"], axes=[0])]
    data = model([call("F", ["x"], ["y"])], [function("F", ["a"], ["b"], nodes, opsets=[helper.make_opsetid("", 11)])])
    assert_same(await run(context, data, {"x": X}), [X])


async def test_what_a_function_s_nodes_become_has_the_call_s_name(context):
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(model([call("Leaky", ["x"], ["y"])], [LEAKY])).convert(builder)
    graph = Graph.reaching({name: builder._values[operand] for name, operand in outputs.items()})
    assert [node.label for node in graph.nodes] == ["call y/LeakyRelu of b"]


@pytest.mark.parametrize(
    ("nodes", "functions", "text"),
    [
        ([call("Leaky", ["x", "x"], ["y"])], [LEAKY], "the call has 2 inputs and 1 outputs; the function has 1 and 1"),
        ([call("Leaky", ["x"], ["y", "z"])], [LEAKY], "the call has 1 inputs and 2 outputs; the function has 1 and 1"),
        ([call("Unknown", ["x"], ["y"])], [LEAKY], r"operators of the domain 'own' are not supported"),
        (
            [call("F", ["x"], ["y"])],
            [function("F", ["a"], ["b"], [helper.make_node("RandomNormalLike", ["a"], ["b"], name="d")])],
            r"node 'call y/d' \(RandomNormalLike, opset 14\): the operator is not supported",
        ),
        (
            [call("F", [], ["y"])],
            [function("F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"], name="r")])],
            r"node 'call y/r' \(Relu, opset 14\): input X is missing; it is needed",
        ),
        (
            [call("F", [], ["y"])],
            [function("F", ["a"], ["a"], [])],
            "output 'y': it is an input of a function that its call leaves out",
        ),
    ],
)
async def test_a_call_that_does_not_fit_is_refused(context, nodes, functions, text):
    with pytest.raises(UnsupportedModelError, match=text):
        OnnxModel.load(model(nodes, functions)).convert(MLGraphBuilder(context))


async def test_a_body_that_lacks_a_value_is_refused(context):
    body = function("F", ["a"], ["b"], [helper.make_node("Add", ["a", "x"], ["b"], name="n")])
    with pytest.raises(InvalidModelError, match="node 'call y/n' uses 'x', which nothing computes"):
        OnnxModel.load(model([call("F", ["x"], ["y"])], [body])).convert(MLGraphBuilder(context))
    empty = function("F", ["a"], ["b"], [])
    with pytest.raises(InvalidModelError, match="the function 'F' uses 'b', which nothing computes"):
        OnnxModel.load(model([call("F", ["x"], ["y"])], [empty])).convert(MLGraphBuilder(context))


def test_two_functions_of_a_name_are_refused():
    with pytest.raises(InvalidModelError, match="two of the model's functions have the name 'Leaky'"):
        OnnxModel.load(model([call("Leaky", ["x"], ["y"])], [LEAKY, LEAKY]))
