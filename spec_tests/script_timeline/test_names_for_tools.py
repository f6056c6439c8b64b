"""What tools, importers and sessions read of the API's objects, beyond the specification."""

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import zeroed
from spec_tests.support.scene import F32
from webnn_py import MLGraphBuilder, MLOperand, UnknownError, open_ml
from webnn_py.core.graph import Constant, Input, Output
from webnn_py.core.operators import arithmetic


async def test_a_context_says_why_it_is_lost(context):
    assert context.lost_message is None
    context.destroy()
    assert context.lost_message == (await context.lost).message


async def test_a_context_has_its_buffers_and_graphs_until_they_are_destroyed(context):
    builder = MLGraphBuilder(context)
    buffer = await zeroed(context, [2])
    graph = await builder.build({"y": builder.identity(builder.input("x", data_type="float32", shape=[2]))})
    assert context.resources == (buffer, graph)
    assert (buffer.context, graph.context) == (context, context)
    assert not buffer.destroyed
    buffer.destroy()
    assert buffer.destroyed
    assert context.resources == (graph,)
    context.destroy()
    assert context.resources == ()


async def test_a_block_has_its_contexts_until_they_have_ended():
    async with open_ml(experimental={"int4"}) as ml:
        assert ml.contexts == ()
        first, second = [await ml.create_context(backend="numpy") for _ in range(2)]
        assert ml.contexts == (first, second)
        assert ml.opening is None
        assert first.experimental == {"int4"}
        first.destroy()
        await first.device_timeline.wait_ended()
        assert first not in ml.contexts


async def test_options_of_a_later_context_are_checked_together(ml):
    ml.check_options({"backend": "numpy", "keep_subnormals": True, "label": "later"})
    with pytest.raises(TypeError, match=r"colour is no option of the device 'numpy'.*did you mean 'color'\?"):
        ml.check_options({"backend": "numpy", "colour": 1}, ["color"])
    assert ml.contexts == ()


async def test_a_promise_has_its_outcome_when_it_is_settled(context):
    promise = context.create_buffer(**F32)
    settled = []
    promise.on_settled(lambda: settled.append(promise.outcome))
    assert promise.outcome is None
    buffer = await promise
    assert settled == [buffer]
    refused = context.create_buffer(data_type="float32", shape=[0])
    assert type(refused.outcome) is TypeError
    at_once = []
    refused.on_settled(lambda: at_once.append(refused.state))
    assert at_once == ["rejected"]


@pytest.mark.filterwarnings("error")
async def test_a_rejection_whose_outcome_is_read_counts_as_awaited(context):
    def fail():
        raise RuntimeError("no room")

    promise = context.enqueue("look", fail)
    await context.drain()
    assert type(promise.outcome) is UnknownError
    del promise
    await trio.testing.wait_all_tasks_blocked()


async def test_an_importer_goes_from_operands_to_values_and_back(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2])
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    ones = builder.constant_shared(array, "ones")
    y = builder.append(arithmetic.add, x, ones, label="sum")
    assert [type(builder.value_of(operand)) for operand in (x, ones, y)] == [Input, Constant, Output]
    again = builder.operand_of(builder.value_of(y), "sum")
    assert type(again) is MLOperand
    assert builder.value_of(again) is builder.value_of(y)
    other = MLGraphBuilder(context)
    with pytest.raises(TypeError, match="another builder"):
        other.value_of(y)
    (await builder.build({"y": again})).destroy()


async def test_the_repr_of_a_graph_grows_with_its_nodes_not_with_the_ways_through_it(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2])
    for _ in range(50):
        x = builder.add(x, x)
    graph = await builder.build({"y": x}, keep_source=True)
    assert 50 * len("<Node add(") < len(repr(graph.source)) < 50 * 200
