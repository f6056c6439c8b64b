"""Calls of WebNN's operators in models: those that this package wrote are drawn, others are read as any function."""

import pytest
from onnx import helper

from spec_tests.onnx_models.export.exporting import operators_of, read_back
from webnn_py import MLGraphBuilder
from webnn_py.onnx_export.function_digests import seal
from webnn_py.onnx_models import UnsupportedModelError, to_model


def linear_model(context):
    """A model with one call."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[3])
    return to_model({"y": builder.linear(x, alpha=2, beta=3, label="line")})


async def test_a_call_is_drawn_as_the_operator(context):
    _builder, outputs = read_back(context, linear_model(context))
    assert operators_of(outputs) == ["linear"]


async def test_a_function_that_was_changed_is_read_as_any_other(context):
    model = linear_model(context)
    model.functions[0].node.append(helper.make_node("Neg", ["output"], ["negated"]))
    model.functions[0].output[0] = "negated"
    _builder, outputs = read_back(context, model)
    assert operators_of(outputs) == ["mul", "add", "neg"]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (None, "missing or no object in JSON"),
        (b"", "missing or no object in JSON"),
        (b"[1]", "missing or no object in JSON"),
        (b"\xff", "missing or no object in JSON"),
        (b"[" * 100_000, "missing or no object in JSON"),
        (b'{"alpha": "x"}', "alpha"),
        (b'{"gamma": 1}', "gamma"),
        (b'{"input": 1, "slope": 2}', "slope"),
    ],
)
async def test_options_that_the_operator_has_not_are_refused(context, written, words):
    model = linear_model(context)
    if written is None:
        del model.graph.node[0].attribute[:]
    else:
        model.graph.node[0].attribute[0].s = written
    with pytest.raises(UnsupportedModelError, match=words):
        read_back(context, model)


async def test_a_call_with_other_inputs_or_outputs_is_refused(context):
    model = linear_model(context)
    model.graph.node[0].input.append("x")
    with pytest.raises(UnsupportedModelError, match="the number of inputs is 2; it must be 1"):
        read_back(context, model)
    model = linear_model(context)
    model.graph.node[0].output.append("z")
    with pytest.raises(UnsupportedModelError, match="the number of outputs is 2; it must be at most 1"):
        read_back(context, model)


async def test_a_sealed_function_of_no_operator_is_read_as_any_other(context):
    model = linear_model(context)
    function = model.functions[0]
    function.name = model.graph.node[0].op_type = "curve"
    del function.metadata_props[:]
    seal(function)
    _builder, outputs = read_back(context, model)
    assert operators_of(outputs) == ["mul", "add"]
