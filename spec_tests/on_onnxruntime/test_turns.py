"""Buffers that alternate, as those of a state do: each pair is bound once, and read and written in place."""

import numpy as np
import pytest

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder

onnxruntime = pytest.importorskip("onnxruntime")

from webnn_py.devices.onnxruntime.backend import LEAST_TAKEN  # noqa: E402 - an extra


@pytest.fixture
async def add(context):
    """A graph that adds ``x`` to a state."""
    builder = MLGraphBuilder(context)
    x, state = (builder.input(name, data_type="float32", shape=[2]) for name in ("x", "state"))
    return await builder.build({"next": builder.add(x, state)})


@pytest.fixture
def bound(monkeypatch):
    """The bindings."""
    return {
        name: noted(monkeypatch, onnxruntime.IOBinding, name)
        for name in ("bind_ortvalue_input", "bind_ortvalue_output")
    }


async def test_a_state_in_two_buffers_is_bound_once_for_each(context, add, bound):
    x = await filled(context, [1, 10])
    before, after = await zeroed(context, [2]), await zeroed(context, [2])
    for count in range(1, 8):
        context.dispatch(add, {"x": x, "state": before}, {"next": after})
        assert (await context.read_buffer(after)).tolist() == [count, 10 * count], f"run {count}"
        before, after = after, before
    assert {name: len(calls) for name, calls in bound.items()} == {"bind_ortvalue_input": 4, "bind_ortvalue_output": 2}


async def test_three_buffers_in_turn_and_those_that_are_gone_are_no_matter(context, add):
    x = await filled(context, [1, 10])
    states = [await zeroed(context, [2]) for _ in range(3)]
    for count in range(1, 8):
        context.dispatch(add, {"x": x, "state": states[0]}, {"next": states[1]})
        assert (await context.read_buffer(states[1])).tolist() == [count, 10 * count], f"run {count}"
        states = [*states[1:], states[0]]
        if count == 4:
            states[2].destroy()
            states[2] = await zeroed(context, [2])


async def test_large_writes_take_turns_with_two_pieces_of_memory_which_are_bound_once(context, bound):
    elements = LEAST_TAKEN // 4
    graph = await build_add_one(context, [elements])
    x, y = await zeroed(context, [elements]), await zeroed(context, [elements])
    pieces, given = set(), np.zeros(elements, np.float32)
    for number in range(8):
        given[:] = number
        context.write_buffer(x, given)
        given[:] = -1
        context.dispatch(graph, {"x": x}, {"y": y})
        np.testing.assert_array_equal(await context.read_buffer(y), np.full(elements, number + 1))
        pieces.add(x._storage.data.array.ctypes.data)
    assert len(pieces) == 2
    assert len(bound["bind_ortvalue_input"]) <= 3


async def test_the_same_inputs_go_to_other_outputs(context, add):
    x, state = await filled(context, [1, 10]), await filled(context, [2, 20])
    targets = [await zeroed(context, [2]) for _ in range(2)]
    for target in targets:
        context.dispatch(add, {"x": x, "state": state}, {"next": target})
    assert [(await context.read_buffer(target)).tolist() for target in targets] == [[3, 30]] * 2
