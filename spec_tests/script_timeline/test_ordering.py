"""Operations run, and their promises settle, in the order of the calls."""

import numpy as np
import pytest

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import (
    build_add_one,
    run,
)
from webnn_py import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES


async def test_two_dispatches_to_one_output_are_read_in_call_order(context):
    graph = await build_add_one(context, [2])
    a, b = await filled(context, [1, 2]), await filled(context, [10, 20])
    output = await zeroed(context, [2])

    context.dispatch(graph, {"x": a}, {"y": output})
    first = context.read_buffer(output)
    context.dispatch(graph, {"x": b}, {"y": output})
    second = context.read_buffer(output)

    np.testing.assert_array_equal(await second, [11, 21])
    np.testing.assert_array_equal(await first, [2, 3])


async def test_a_read_sees_the_last_write_before_it_and_none_after(context):
    buffer = await zeroed(context, [2])

    before = context.read_buffer(buffer)
    context.write_buffer(buffer, np.array([1, 2], np.float32))
    context.write_buffer(buffer, np.array([3, 4], np.float32))
    between = context.read_buffer(buffer)
    context.write_buffer(buffer, np.array([5, 6], np.float32))

    np.testing.assert_array_equal(await before, [0, 0])
    np.testing.assert_array_equal(await between, [3, 4])
    np.testing.assert_array_equal(await context.read_buffer(buffer), [5, 6])


async def test_a_dispatch_sees_the_write_before_it_and_not_the_write_after_it(context):
    graph = await build_add_one(context, [2])
    x, y = await zeroed(context, [2]), await zeroed(context, [2])

    context.write_buffer(x, np.array([1, 2], np.float32))
    context.dispatch(graph, {"x": x}, {"y": y})
    context.write_buffer(x, np.array([100, 200], np.float32))

    np.testing.assert_array_equal(await context.read_buffer(y), [2, 3])
    np.testing.assert_array_equal(await context.read_buffer(x), [100, 200])


async def test_three_buffers_rotate_through_a_chain_of_dispatches_without_a_wait(context):
    builder = MLGraphBuilder(context)
    a, b = (builder.input(name, data_type="int64", shape=[1]) for name in "ab")
    graph = await builder.build({"sum": builder.add(a, b)})
    older, newer, free = [await filled(context, [value], "int64") for value in (0, 1, 0)]

    for _ in range(50):
        context.dispatch(graph, {"a": older, "b": newer}, {"sum": free})
        older, newer, free = newer, free, older

    np.testing.assert_array_equal(await context.read_buffer(newer), [20365011074])
    np.testing.assert_array_equal(await context.read_buffer(older), [12586269025])


async def test_a_constant_keeps_its_bytes_when_their_source_changes(context):
    builder = MLGraphBuilder(context)
    source = np.array([1, 2], np.float32)
    y = builder.add(builder.input("x", data_type="float32", shape=[2]), builder.constant(source))
    source[:] = 100
    graph = await builder.build({"y": y})
    source[:] = 200
    assert await run(context, graph, x=[0, 0]) == {"y": [1, 2]}


@pytest.mark.parametrize("operator", ["identity", "relu", "hard_swish", "mul", "reshape"])
async def test_a_dispatch_leaves_its_inputs_and_its_outputs_apart(context, operator):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[4])
    method = getattr(builder, operator)
    y = {"mul": lambda: method(x, x), "reshape": lambda: method(x, [2, 2])}.get(operator, lambda: method(x))()
    graph = await builder.build({"y": y})
    values = [-2.0, -0.5, 0.5, 4.0]
    source, target = await filled(context, values), await zeroed(context, y.shape)

    context.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await context.read_buffer(source), values)
    before = await context.read_buffer(target)
    context.write_buffer(source, np.zeros(4, np.float32))
    np.testing.assert_array_equal(await context.read_buffer(target), before)
    assert before.any()
    context.write_buffer(target, np.full(y.shape, 9, np.float32))
    np.testing.assert_array_equal(await context.read_buffer(source), np.zeros(4))


@pytest.mark.parametrize("data_type", DATA_TYPES)
@pytest.mark.parametrize("shape", [[], [1], [2, 3]], ids=str)
async def test_a_fresh_buffer_reads_as_zeros(context, data_type, shape):
    data = await context.read_buffer(await zeroed(context, shape, data_type))

    assert (data.dtype.name, data.shape) == (data_type, tuple(shape))
    assert data.tobytes() == bytes(data.nbytes)


async def test_the_caller_may_change_an_array_that_was_read(context):
    buffer = await filled(context, [1, 2])
    first, second = await context.read_buffer(buffer), await context.read_buffer(buffer)
    first[:] = 9

    assert first.flags.writeable
    np.testing.assert_array_equal(second, [1, 2])
    np.testing.assert_array_equal(await context.read_buffer(buffer), [1, 2])


@pytest.mark.parametrize("name", ["\0", "a\0b", "\t\n", "名前", "\U0001f9e0", " "], ids=ascii)
async def test_a_name_may_be_any_text(context, name):
    builder = MLGraphBuilder(context)
    x = builder.input(name, data_type="float32", shape=[2])
    graph = await builder.build({name: builder.add(x, x)})
    assert await run(context, graph, **{name: [1, 2]}) == {name: [2, 4]}
