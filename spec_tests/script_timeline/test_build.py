"""``build()`` makes a graph of a drawing: names, outputs, inputs that no output needs, and constants."""

import types

import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_one, run
from spec_tests.support.scene import F32, ONES, assert_refused
from webnn_py import DestroyedBufferError, MLOperandDescriptor

# --- what is refused, after which the builder is as it was -----------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (lambda _: None, "outputs is None; it must be a mapping"),
        (lambda d: [("y", d.y)], "outputs is .*; it must be a mapping"),
        (lambda d: d.y, "outputs is <MLOperand.*; it must be a mapping"),
        (lambda _: {}, "outputs is empty"),
        (lambda d: {"": d.y}, "an output's name is empty"),
        (lambda d: {"y": d.y, "": d.y}, "an output's name is empty"),
        (lambda d: {1: d.y}, r"outputs\[1\] is <MLOperand"),
        (lambda _: {"y": None}, r"outputs\['y'\] is None; it must be an MLOperand"),
        (lambda d: {"y": [d.y]}, r"outputs\['y'\] is \[<MLOperand.*must be an MLOperand"),
        (lambda d: {"y": d.y, "x": d.x}, r"outputs\['x'\] is an input; use identity\(\)"),
        (lambda d: {"c": d.builder.constant(ONES)}, r"outputs\['c'\] is a constant; use identity\(\)"),
        (lambda d: {"c": d.builder.constant(1, data_type="int8")}, r"outputs\['c'\] is a constant"),
        (lambda d: {"c": d.builder.constant(d.buffer)}, r"outputs\['c'\] is a constant; use identity\(\)"),
    ],
)
async def test_outputs_are_refused_and_the_builder_stays_usable(context, builder, outputs, words):
    x = builder.input("x", **F32)
    drawn = types.SimpleNamespace(builder=builder, x=x, y=builder.add(x, x), buffer=await constant(context, [1, 2]))
    await assert_refused("build", lambda: builder.build(outputs(drawn)), TypeError, rf"^build\(\): {words}")
    assert await run(context, await builder.build({"z": builder.add(drawn.y, x)}), x=[1, 2]) == {"z": [3, 6]}


async def test_a_progress_that_is_no_function_is_refused_and_the_builder_goes_on(builder):
    outputs = {"y": builder.neg(builder.input("x", **F32))}
    with pytest.raises(TypeError, match=r"^build\(\): progress is 5; it must be a function of two numbers, or None"):
        await builder.build(outputs, progress=5)
    assert (await builder.build(outputs, progress=None)).output_descriptors["y"].shape == (2,)


@pytest.mark.parametrize("depth", [1, 5], ids=["next to the output", "five operators away"])
async def test_a_destroyed_constant_buffer_is_found_wherever_the_output_needs_it(context, builder, depth):
    buffer, x = await constant(context, [1, 2]), builder.input("x", **F32)
    y = builder.constant(buffer)
    for _ in range(depth):
        y = builder.add(y, x)
    buffer.destroy()
    await assert_refused("build", lambda: builder.build({"y": y}), DestroyedBufferError, r"^build\(\).*destroyed")
    assert await run(context, await builder.build({"z": builder.add(x, x)}), x=[1, 2]) == {"z": [2, 4]}


# --- inputs ----------------------------------------------------------------------------------------------------------


async def test_an_input_that_no_output_needs_is_not_an_input_of_the_graph(context, builder):
    x, unused = builder.input("x", **F32), builder.input("unused", **F32)
    builder.add(x, unused)
    graph = await builder.build({"y": builder.add(x, x)})
    assert list(graph.input_descriptors) == ["x"]
    buffers = [await filled(context, [1, 2]) for _ in range(3)]
    with pytest.raises(TypeError, match=r"inputs are \['unused', 'x'\]; the graph's are \['x'\]"):
        context.dispatch(graph, {"x": buffers[0], "unused": buffers[1]}, {"y": buffers[2]})
    assert await run(context, graph, x=[1, 2]) == {"y": [2, 4]}


# --- outputs ---------------------------------------------------------------------------------------------------------


async def test_descriptors_tell_each_inputs_and_outputs_data_type_and_shape(builder):
    x = builder.input("x", data_type="float16", shape=[2, 3])
    y = builder.reduce_sum(x, axes=[1], keep_dimensions=False)
    graph = await builder.build({"z": builder.add(x, x), "y": y})
    assert dict(graph.input_descriptors) == {"x": MLOperandDescriptor("float16", (2, 3))}
    assert list(graph.output_descriptors) == ["z", "y"]
    assert graph.output_descriptors["y"] == MLOperandDescriptor("float16", (2,))
    assert isinstance(graph.output_descriptors, types.MappingProxyType)
    assert repr(graph) == (
        "<MLGraph 2 operators, inputs 'x' float16 [2, 3], outputs 'z' float16 [2, 3], 'y' float16 [2]>"
    )


async def test_two_outputs_of_one_operand_are_buffers_of_their_own(context, builder):
    x = builder.input("x", **F32)
    y = builder.add(x, x)
    graph = await builder.build({"first": y, "second": y})
    source, first, second = [await filled(context, [1, 2]) for _ in range(3)]
    context.dispatch(graph, {"x": source}, {"first": first, "second": second})
    context.write_buffer(first, 9 * ONES)
    np.testing.assert_array_equal(await context.read_buffer(second), [2, 4])


async def test_an_output_may_have_the_name_of_an_input(context, builder):
    x = builder.input("x", **F32)
    graph = await builder.build({"x": builder.add(x, x)})
    assert list(graph.input_descriptors) == list(graph.output_descriptors) == ["x"]
    assert await run(context, graph, x=[1, 2]) == {"x": [2, 4]}


def repeated(step, count):
    def draw(b, x):
        y = x
        for _ in range(count):
            y = step(b, y)
        return {"y": y}

    return draw


def read_output(b, x):
    y = b.add(x, x)
    return {"z": b.reshape(b.mul(y, y), [2, 1]), "y": y}


def shared_output(b, x):
    y = b.add(x, x)
    return {"first": y, "second": y, "third": b.add(y, x)}


GRAPHS = {
    "no inputs": (lambda b, _: {"y": b.add(b.constant(ONES), b.constant(2 * ONES))}, {"y": [3, 3]}),
    "an input of many operators": (
        lambda b, x: {"s": b.add(x, x), "d": b.sub(x, x), "p": b.mul(x, x)},
        {"s": [2, 4], "d": [0, 0], "p": [1, 4]},
    ),
    "an operand that is two outputs": (shared_output, {"first": [2, 4], "second": [2, 4], "third": [3, 6]}),
    "a single result of several": (lambda b, x: {"last": b.split(x, 2)[1]}, {"last": [2]}),
    "an output that is read": (read_output, {"z": [[4], [16]], "y": [2, 4]}),
    "the identity of an input": (lambda b, x: {"y": b.identity(x), "z": b.add(x, x)}, {"y": [1, 2], "z": [2, 4]}),
    "the identity of a constant": (lambda b, _: {"y": b.identity(b.constant(5 * ONES))}, {"y": [5, 5]}),
    "two thousand operators": (repeated(lambda b, y: b.add(y, b.constant(ONES)), 2000), {"y": [2001, 2002]}),
    "shared operands": (repeated(lambda b, y: b.add(y, y), 60), {"y": [2**60, 2**61]}),
}


@pytest.mark.parametrize("name", GRAPHS)
async def test_a_graph_computes_its_outputs(context, builder, name):
    draw, expected = GRAPHS[name]
    graph = await builder.build(draw(builder, builder.input("x", **F32)))
    assert await run(context, graph, **{name: [1, 2] for name in graph.input_descriptors}) == expected


async def test_a_mapping_changed_after_the_call_changes_nothing(context, builder):
    x = builder.input("x", **F32)
    outputs = {"y": builder.add(x, x)}
    building = builder.build(outputs)
    outputs.clear()
    assert await run(context, await building, x=[1, 2]) == {"y": [2, 4]}


async def test_a_mapping_of_buffers_changed_after_the_dispatch_changes_nothing(context):
    graph = await build_add_one(context, [2])
    source, target, other = await filled(context, [1, 2]), await zeroed(context, [2]), await zeroed(context, [2])
    inputs, outputs = {"x": source}, {"y": target}
    context.device_timeline.pause()
    context.dispatch(graph, types.MappingProxyType(inputs), outputs)
    inputs["x"], outputs["y"] = other, other
    context.device_timeline.resume()
    np.testing.assert_array_equal(await context.read_buffer(target), [2, 3])
    np.testing.assert_array_equal(await context.read_buffer(other), [0, 0])


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (lambda _: None, "inputs is None; it must be a mapping of names to buffers"),
        (lambda x: [("x", x)], "inputs is .*; it must be a mapping"),
        (lambda _: {"x": None}, r"inputs\['x'\] is None; it must be an MLBuffer"),
        (lambda _: {"x": np.zeros(2, np.float32)}, r"inputs\['x'\] is array.*; it must be an MLBuffer"),
        (lambda x: {b"x": x}, r"inputs\[b'x'\] is"),
    ],
)
async def test_a_dispatch_takes_a_mapping_of_names_to_buffers(context, inputs, words):
    graph, x, y = await build_add_one(context, [2]), await filled(context, [1, 2]), await zeroed(context, [2])
    with pytest.raises(TypeError, match=rf"^dispatch\(\): {words}"):
        context.dispatch(graph, inputs(x), {"y": y})


# --- constants and size ----------------------------------------------------------------------------------------------


async def test_one_graph_may_be_dispatched_many_times_with_different_buffers(context):
    graph = await build_add_one(context, [2])
    results = [await run(context, graph, x=[value, value]) for value in range(5)]
    assert results == [{"y": [value + 1] * 2} for value in range(5)]
