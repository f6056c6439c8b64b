"""``MLGraphBuilder`` makes inputs, constants and operators, with labels, until it has built or was destroyed."""

import inspect

import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import run
from spec_tests.support.scene import F32, ONES
from webnn_py import (
    InvalidStateError,
    MLGraphBuilder,
    MLOperand,
    OperationError,
)
from webnn_py.core.descriptors import DATA_TYPES


@pytest.mark.parametrize("context", [None, "context", 1, object()], ids=["None", "a string", "a number", "an object"])
def test_a_builder_needs_a_context(context):
    with pytest.raises(TypeError, match=r"MLGraphBuilder\(\): context is .*; it must be an MLContext"):
        MLGraphBuilder(context)


# --- inputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", DATA_TYPES)
@pytest.mark.parametrize("shape", [[], [1], [2, 3, 4]], ids=str)
async def test_an_input_has_its_data_type_and_shape(builder, data_type, shape):
    operand = builder.input("x", data_type=data_type, shape=shape)
    assert (operand.data_type, operand.shape, operand.rank) == (data_type, tuple(shape), len(shape))
    assert operand.shape is operand.shape
    assert repr(operand) == f"<MLOperand input 'x' {data_type} {shape}>"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "name is empty; it must not be"),
        (None, "name is None; it must be a string"),
        (1, "name is 1; it must be a string"),
        (b"x", "name is b'x'; it must be a string"),
        ("x", "name is 'x'; another input of this builder has it"),
    ],
)
async def test_a_wrong_name_of_an_input_is_refused(builder, name, words):
    builder.input("x", **F32)
    with pytest.raises(TypeError, match=rf"^input\(\): {words}$"):
        builder.input(name, **F32)


async def test_a_refused_input_does_not_take_its_name(builder):
    with pytest.raises(TypeError, match="dimension 0"):
        builder.input("x", data_type="float32", shape=[0])
    assert builder.input("x", **F32).shape == (2,)


async def test_another_builder_may_use_the_same_name(context, builder):
    builder.input("x", **F32)
    assert MLGraphBuilder(context).input("x", **F32)


async def test_names_that_differ_only_in_case_or_form_are_different(builder):
    for name in ("x", "X", "é", "e\u0301", " x", "x\0"):
        builder.input(name, **F32)


async def test_a_lone_surrogate_in_a_name_is_the_same_replacement_character_everywhere(context, builder):
    x = builder.input("in\ud800", **F32)
    with pytest.raises(TypeError, match="another input"):
        builder.input("in\udfff", **F32)
    graph = await builder.build({"out\udc00": builder.add(x, x)})
    assert list(graph.input_descriptors) == ["in\ufffd"]
    assert list(graph.output_descriptors) == ["out\ufffd"]
    source, target = await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"in\ud800": source}, {"out\ufffd": target})
    assert (await context.read_buffer(target)).tolist() == [2, 4]


# --- constants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", DATA_TYPES)
async def test_a_numpy_array_has_its_own_data_type_and_shape(builder, data_type):
    operand = builder.constant(np.zeros((2, 3), data_type))
    assert (operand.data_type, operand.shape) == (data_type, (2, 3))
    scalar = builder.constant(np.zeros((), data_type)[()])
    assert (scalar.data_type, scalar.shape) == (data_type, ())
    swapped = builder.constant(np.zeros(2, np.dtype(data_type).newbyteorder()))
    assert (swapped.data_type, swapped.shape) == (data_type, (2,))


@pytest.mark.parametrize(
    "dtype", ["float64", "int16", "uint16", "bool", "complex64", "object", "U1", "S1", "datetime64[s]"]
)
async def test_a_numpy_array_of_another_data_type_is_refused(builder, dtype):
    with pytest.raises(
        TypeError, match=r"^constant\(\): the array's data type is .*; it must be one of float32, float16"
    ):
        builder.constant(np.zeros(2, dtype))


async def test_a_numpy_array_may_be_given_its_descriptor(builder):
    flat = builder.constant(np.zeros(6, np.float32), data_type="float32", shape=[2, 3])
    assert flat.shape == (2, 3)
    assert builder.constant(np.zeros((2, 3), np.float32), data_type="float32").shape == (2, 3)
    assert builder.constant(np.zeros(8, np.uint8), data_type="int64", shape=[1]).data_type == "int64"
    with pytest.raises(TypeError, match="data are float32; they must be int32"):
        builder.constant(np.zeros(2, np.float32), data_type="int32")


async def test_an_empty_numpy_array_is_refused(builder):
    with pytest.raises(TypeError, match=r"constant\(\).*\[0\]; dimension 0 must be from 1"):
        builder.constant(np.zeros(0, np.float32))


@pytest.mark.parametrize("value", [b"1234", [1.0], 1, "1", None], ids=repr)
async def test_a_value_without_a_data_type_of_its_own_needs_one(builder, value):
    with pytest.raises(TypeError, match=r"^constant\(\): data_type is missing"):
        builder.constant(value)


async def test_a_constant_buffer_has_its_own_descriptor_and_takes_no_other(context, builder):
    buffer = await constant(context, [[1, 2]], "int8")
    operand = builder.constant(buffer)
    assert (operand.data_type, operand.shape) == ("int8", (1, 2))
    for given in ({"data_type": "int8"}, {"shape": [1, 2]}, {"data_type": "int8", "shape": [1, 2]}):
        with pytest.raises(TypeError, match="has its own data type and shape; give neither"):
            builder.constant(buffer, **given)


async def test_a_constant_buffer_may_be_used_twice_and_by_two_builders(context, builder):
    buffer = await constant(context, [1, 2])
    graphs = []
    for each in (builder, MLGraphBuilder(context)):
        x = each.input("x", **F32)
        y = each.add(each.add(x, each.constant(buffer)), each.constant(buffer))
        graphs.append(await each.build({"y": y}))
    buffer.destroy()
    for graph in graphs:
        assert await run(context, graph, x=[10, 20]) == {"y": [12, 24]}
        graph.destroy()


# --- operators and labels --------------------------------------------------------------------------------------------


async def test_each_call_gives_a_new_operand(builder):
    x = builder.input("x", **F32)
    first, second = builder.add(x, x), builder.add(x, x)
    assert first is not second
    assert first is not x
    assert isinstance(first, MLOperand)


async def test_an_operator_takes_no_operand_of_another_builder_in_any_place(context, builder):
    other = MLGraphBuilder(context)
    own, foreign = (b.input("x", data_type="float32", shape=[2, 2]) for b in (builder, other))
    calls = {
        "a": lambda: builder.matmul(foreign, own),
        "b": lambda: builder.matmul(own, foreign),
        "c": lambda: builder.gemm(own, own, c=foreign),
        r"inputs\[1\]": lambda: builder.concat([own, foreign], 0),
        "scale": lambda: builder.instance_normalization(builder.reshape(own, [1, 2, 2, 1]), scale=foreign),
    }
    for place, call in calls.items():
        with pytest.raises(TypeError, match=rf"{place} belongs to another builder"):
            call()
    assert builder.matmul(own, own).shape == (2, 2)


@pytest.mark.parametrize("given", [None, 1, np.ones(2, np.float32), "x"], ids=["None", "number", "array", "string"])
async def test_an_operator_takes_nothing_but_operands(builder, given):
    x = builder.input("x", **F32)
    with pytest.raises(TypeError, match=r"^add\(\): b is .*; it must be an MLOperand"):
        builder.add(x, given)


async def test_an_operator_refuses_unknown_missing_and_surplus_arguments(builder):
    x = builder.input("x", **F32)
    with pytest.raises(TypeError, match=r"add\(\).*missing a required argument: 'b'"):
        builder.add(x)
    with pytest.raises(TypeError, match=r"add\(\).*too many positional arguments"):
        builder.add(x, x, x)
    with pytest.raises(TypeError, match=r"add\(\).*unexpected keyword argument 'axis'"):
        builder.add(x, x, axis=1)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("hidden layer", "[hidden layer]"),
        ("日本", "[日本]"),
        ("a\nb\0c\x1b[31m", "[a\\u000ab\\u0000c\\u001b[31m]"),
        ("\u202eabc\u2066", "[\\u202eabc\\u2066]"),
        ("\u200b", "[\\u200b]"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("refusal", ["a shape", "an argument", "another builder"])
async def test_a_label_is_in_the_message_with_control_characters_shown_as_codes(
    context, builder, label, shown, refusal
):
    x, y = builder.input("x", **F32), builder.input("y", data_type="float32", shape=[3])
    b = {"a shape": y, "an argument": 1, "another builder": MLGraphBuilder(context).input("x", **F32)}[refusal]
    with pytest.raises(TypeError) as caught:
        builder.add(x, b, label=label)
    assert str(caught.value).startswith(f"add() {shown}: ")


async def test_without_a_label_the_message_has_no_brackets(builder):
    x, y = builder.input("x", **F32), builder.input("y", data_type="int8", shape=[2])
    with pytest.raises(TypeError, match=r"^add\(\): the data type of b is int8; it must be float32, that of a$"):
        builder.add(x, y)


@pytest.mark.parametrize("label", [None, 1, b"label"], ids=repr)
async def test_a_label_is_a_string(builder, label):
    x = builder.input("x", **F32)
    with pytest.raises(TypeError, match=r"^add\(\): label is .*; it must be a string"):
        builder.add(x, x, label=label)


async def test_inputs_and_constants_take_no_label():
    for method in (MLGraphBuilder.input, MLGraphBuilder.constant):
        assert "label" not in inspect.signature(method).parameters


# --- when a builder is spent -----------------------------------------------------------------------------------------

CALLS = {
    "input": [lambda b, _x, _held: b.input("z", **F32)],
    "constant": [
        lambda b, _x, _held: b.constant(ONES),
        lambda b, _x, _held: b.constant(bytes(8), **F32),
        lambda b, _x, _held: b.constant(1, data_type="int8"),
        lambda b, _x, held: b.constant(held),
    ],
    "add": [lambda b, x, _held: b.add(x, x)],
    "build": [lambda b, x, _held: b.build({"y": x})],
}


async def assert_spent(builder, x, held, words):
    for method, calls in CALLS.items():
        for call in calls:
            with pytest.raises(InvalidStateError, match=rf"^{method}\(\): .*{words}"):
                await call(builder, x, held)


async def test_a_builder_is_spent_from_the_call_of_build_on(context, builder):
    x, held = builder.input("x", **F32), await constant(context, [1, 2])
    y = builder.add(x, x)
    context.device_timeline.pause()
    building = builder.build({"y": y})
    await assert_spent(builder, y, held, "has built its graph; make another builder")
    assert repr(builder) == "<MLGraphBuilder has built>"
    context.device_timeline.resume()
    assert await run(context, await building, x=[1, 2]) == {"y": [2, 4]}


@pytest.mark.parametrize("end", ["the device refuses", "the context is lost"])
async def test_a_builder_is_spent_by_a_build_that_fails(context, device, end):
    builder, held = MLGraphBuilder(context), await constant(context, [1, 2])
    x = builder.input("x", **F32)
    y = builder.add(x, x)
    if end == "the device refuses":
        device.failing["compile"] = RuntimeError("no")
    context.device_timeline.pause()
    building = builder.build({"y": y})
    if end == "the context is lost":
        context.destroy()
    context.device_timeline.resume()
    with pytest.raises((InvalidStateError, OperationError)):
        await building
    await assert_spent(builder, y, held, "has built|context is lost")


async def test_a_destroyed_builder_refuses_every_call(context, builder):
    x, held = builder.input("x", **F32), await constant(context, [1, 2])
    builder.destroy()
    builder.destroy()
    await assert_spent(builder, x, held, r"destroy\(\) was called on the builder")


async def test_a_graph_works_after_its_builder_is_destroyed(context, builder):
    x = builder.input("x", **F32)
    building = builder.build({"y": builder.add(x, builder.constant(ONES))})
    builder.destroy()
    assert await run(context, await building, x=[1, 2]) == {"y": [2, 3]}
