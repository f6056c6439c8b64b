"""``MLGraphBuilder.check_finite()`` names the node that makes the first NaN or infinity."""

import json

import numpy as np
import pytest

from spec_tests.support.backends import DEVICES
from spec_tests.support.releases import assert_nothing_lives
from webnn_py import InvalidStateError, MLGraphBuilder, UnknownError
from webnn_py.checking import check_finite, non_finite

X = np.array([[1.0, 2.0, 0.0], [4.0, -1.0, 9.0]], np.float32)


@pytest.fixture
def drawn(context):
    """Return a builder and its input ``x`` [2, 3]."""
    builder = MLGraphBuilder(context)
    yield builder, builder.input("x", data_type="float32", shape=X.shape)
    builder.destroy()


async def test_a_finite_graph_has_none_and_can_be_built(drawn):
    builder, x = drawn
    outputs = {"y": builder.sqrt(builder.abs(x))}
    promise = check_finite(outputs, {"x": X})
    assert await promise is None
    (await builder.build(outputs)).destroy()


async def test_the_node_in_the_middle_of_a_fused_chain_is_named(drawn):
    builder, x = drawn
    root = builder.sqrt(builder.mul(x, builder.constant(4.0, data_type="float32")), label="root")
    outputs = {"y": builder.softmax(builder.relu(builder.add(root, x)), 1)}
    found = await check_finite(outputs, {"x": X})
    assert (found.operator, found.label, found.node, found.output, found.index) == ("sqrt", "root", 1, 0, (1, 1))
    assert np.isnan(found.value)
    assert (found.result.minimum, found.result.maximum, found.result.nans, found.result.infinities) == (0, 6, 1, 0)
    (operand,) = found.inputs
    assert (operand.name, operand.minimum, operand.maximum, operand.nans) == ("input", -4, 36, 0)
    assert str(found).splitlines() == [
        "sqrt [root] (node 1) makes nan at [1, 1]",
        "  output float32 [2, 3]: 0 to 6, 1 NaN",
        "  input float32 [2, 3]: -4 to 36",
    ]


async def test_an_infinity_of_finite_operands_is_found(drawn):
    builder, x = drawn
    outputs = {"y": builder.exp(builder.div(builder.constant(1.0, data_type="float32"), x, label="inverse"))}
    found = await check_finite(outputs, {"x": X})
    assert (found.operator, found.label, found.index, found.value) == ("div", "inverse", (0, 2), np.inf)
    assert [(item.name, item.minimum, item.maximum) for item in found.inputs] == [("a", 1, 1), ("b", -1, 9)]


async def test_masks_may_be_infinite_but_must_not_become_nan(drawn):
    builder, x = drawn
    mask = builder.constant(np.array([[0, -np.inf, 0], [-np.inf, -np.inf, -np.inf]], np.float32))
    scores = builder.add(x, mask)
    outputs = {"y": builder.softmax(scores, 1, label="attention")}
    found = await check_finite(outputs, {"x": X})
    assert (found.operator, found.label, found.index) == ("softmax", "attention", (1, 0))
    assert found.inputs[0].infinities == 4


async def test_an_output_with_an_infinity_is_named_alone(drawn):
    builder, x = drawn
    first, second = builder.split(builder.log(builder.abs(x)), 2, axis=0)
    found = await check_finite({"a": first, "b": second}, {"x": np.abs(X) + 1})
    assert found is None
    found = await check_finite({"b": builder.concat([first, second], 0)}, {"x": X})
    assert (found.operator, found.index, found.value) == ("log", (0, 2), -np.inf)


async def test_a_nan_of_the_data_is_found_in_the_constant_or_input(drawn):
    builder, x = drawn
    outputs = {"y": builder.add(x, builder.constant(np.array([0, 0, np.nan], np.float32)))}
    found = await check_finite(outputs, {"x": X})
    assert (found.operator, found.node, found.index) == ("constant", None, (2,))
    found = await check_finite(outputs, {"x": np.full_like(X, np.nan)})
    assert (found.operator, found.label, found.node, found.index) == ("input", "x", None, (0, 0))
    assert str(found).splitlines()[0] == "input [x] brings nan at [0, 0]"


async def test_constant_buffers_are_checked(context):
    builder = MLGraphBuilder(context)
    buffer = await context.create_constant_buffer(np.float32([2, -3]), data_type="float32", shape=[2])
    outputs = {"y": builder.log(builder.constant(buffer), label="of a buffer")}
    found = await check_finite(outputs, {})
    assert (found.label, found.index, found.inputs[0].minimum) == ("of a buffer", (1,), -3)
    buffer.destroy()
    with pytest.raises(TypeError, match=r"^check_finite\(\)"):
        await check_finite(outputs, {})
    builder.destroy()


async def test_integers_are_always_finite(drawn):
    builder, x = drawn
    assert await check_finite({"y": builder.cast(builder.round_even(x), "int32")}, {"x": X}) is None


@pytest.mark.parametrize(("most_nodes", "most_bytes"), [(1, 2**20), (2, 2**20), (64, 1), (64, 50)])
async def test_parts_of_any_size_find_the_same(drawn, monkeypatch, most_nodes, most_bytes):
    for name, most in (("MOST_NODES", most_nodes), ("MOST_BYTES", most_bytes)):
        monkeypatch.setattr(non_finite, name, most)
    builder, x = drawn
    values = [x]
    for _ in range(4):
        values.append(builder.add(values[-1], values[0]))
    outputs = {"y": builder.sqrt(builder.concat([values[4], values[1]], 0), label="last")}
    found = await check_finite(outputs, {"x": X})
    assert (found.label, found.node, found.index) == ("last", 5, (1, 1))
    assert found.inputs[0].minimum == -5


@pytest.mark.parametrize("name", DEVICES)
async def test_every_device_finds_the_first_node(ml, name):
    context = await ml.create_context(backend=name)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    found = await check_finite({"y": builder.gelu(builder.reciprocal(x, label="first"))}, {"x": X})
    assert (found.operator, found.label, found.index) == ("reciprocal", "first", (0, 2))
    builder.destroy()


async def test_inputs_that_no_output_needs_may_be_given(drawn):
    builder, x = drawn
    builder.input("spare", data_type="float32", shape=[1])
    assert await check_finite({"y": builder.exp(x)}, {"x": X, "spare": None}) is None


async def test_the_dictionary_is_json(drawn):
    builder, x = drawn
    found = await check_finite({"y": builder.log(x, label="of x")}, {"x": np.abs(X)})
    document = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert (document["label"], document["index"], document["value"]) == ("of x", [0, 2], "-inf")
    assert document["inputs"][0]["maximum"] == 9


async def test_nothing_is_left_after_a_check_and_after_one_that_fails(context, device, drawn):
    builder, x = drawn
    await check_finite({"y": builder.sqrt(builder.exp(x))}, {"x": X})
    assert_nothing_lives(context)
    device.failing["dispatch"] = RuntimeError("out of order")
    with pytest.raises(UnknownError, match=r"^check_finite\(\) failed on the device: out of order"):
        await check_finite({"y": builder.exp(x)}, {"x": X})
    assert_nothing_lives(context)


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, r"feeds are of \[\]; the graph's inputs are \['x'\]"),
        ({"x": X.T}, r"feeds\['x'\]: "),
        (None, "feeds is None; it must be a mapping"),
    ],
)
async def test_feeds_that_do_not_fit_are_refused(drawn, feeds, words):
    builder, x = drawn
    with pytest.raises(TypeError, match=rf"^check_finite\(\): {words}"):
        await check_finite({"y": builder.exp(x)}, feeds)


async def test_check_finite_refuses_what_build_refuses(drawn, context):
    builder, x = drawn
    outputs = {"y": builder.exp(x)}
    with pytest.raises(TypeError, match=r"^check_finite\(\): outputs\['x'\] is an input"):
        await check_finite({"x": x}, {"x": X})
    (await builder.build(outputs)).destroy()
    with pytest.raises(InvalidStateError, match=r"^check_finite\(\): the builder has built"):
        await check_finite(outputs, {"x": X})
