"""Reprs show the kind of a thing, its name and its state; they stay short, never raise and change nothing."""

import numpy as np
import pytest

from spec_tests.support.drawing import build_add_one
from spec_tests.support.promises import pending, reject
from webnn_py import MLGraphBuilder, UnknownError

F32 = {"data_type": "float32", "shape": [4]}


async def test_the_repr_of_an_operand_has_its_operator_and_label(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", **F32)
    assert repr(x) == "<MLOperand input 'x' float32 [4]>"
    assert repr(builder.constant(1, data_type="int8")) == "<MLOperand constant int8 []>"
    assert repr(builder.relu(x)) == "<MLOperand relu float32 [4]>"
    assert repr(builder.relu(x, label="hidden")) == "<MLOperand relu 'hidden' float32 [4]>"
    halves = builder.split(x, 2, label="halves")
    assert [repr(half) for half in halves] == [f"<MLOperand split[{i}] 'halves' float32 [2]>" for i in range(2)]


async def test_a_label_is_shown_without_control_characters_and_cut(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    shown = repr(builder.relu(builder.input("x", **F32), label="\n\u202e" * 5000))
    assert shown.isprintable()
    assert shown.endswith("... float32 [4]>")
    assert len(shown) < 120


async def test_the_repr_of_a_builder_shows_that_it_was_destroyed(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    builder.input("x", **F32)
    assert repr(builder) == "<MLGraphBuilder 1 operands>"
    builder.destroy()
    assert repr(builder) == "<MLGraphBuilder destroyed>"


async def test_the_repr_of_a_buffer_has_its_flags_and_its_end(numpy_context):
    buffer = await numpy_context.create_buffer(**F32, readable=True, writable=True)
    constant = await numpy_context.create_constant_buffer(np.ones(4, np.float32), **F32)
    buffer.destroy()
    assert repr(buffer) == "<MLBuffer float32 [4] readable writable, destroyed>"
    assert repr(constant) == "<MLBuffer float32 [4] constant>"


async def test_the_repr_of_a_promise_has_its_call(numpy_context):
    drawn = MLGraphBuilder(numpy_context)
    numpy_context.device_timeline.pause()
    creation, refused = numpy_context.create_buffer(**F32), drawn.build({})
    building = drawn.build({"y": drawn.relu(drawn.input("x", **F32))})
    assert repr(creation) == "<MLPromise of create_buffer() pending>"
    assert repr(building) == "<MLPromise of build() pending>"
    assert repr(refused) == ("<MLPromise of build() rejected: TypeError: outputs is empty; a graph needs at least one>")
    assert refused.outcome is not None, "so that it does not warn"
    assert repr(numpy_context.lost) == "<MLPromise of lost pending>"
    numpy_context.device_timeline.resume()
    await numpy_context.drain()
    assert repr(creation) == "<MLPromise of create_buffer() fulfilled>"


@pytest.mark.filterwarnings("ignore:UnknownError that was never awaited:RuntimeWarning")
@pytest.mark.parametrize("words", ["no\nroom " * 1000, "", "\n"], ids=["long", "empty", "blank"])
async def test_the_repr_of_a_promise_has_the_error_on_one_short_line(words):
    promise = pending("read_buffer()")
    reject(promise, UnknownError(words))
    assert repr(promise).startswith("<MLPromise of read_buffer() rejected: UnknownError: ")
    assert "\n" not in repr(promise)
    assert len(repr(promise)) < 140


async def test_the_repr_of_a_timeline_has_its_queue_and_state(ml, numpy_context):
    timeline = numpy_context.device_timeline
    assert repr(timeline) == "<DeviceTimeline 0 queued>"
    timeline.pause()
    numpy_context.create_buffer(**F32)
    assert repr(timeline) == "<DeviceTimeline 1 queued, paused>"
    assert repr(ml.script_timeline) == "<ScriptTimeline 0 queued>"
    numpy_context.destroy()
    assert repr(timeline) == "<DeviceTimeline 2 queued, paused, closing, context lost>"
    timeline.resume()
    await timeline.wait_ended()
    assert repr(timeline) == "<DeviceTimeline 0 queued, ended, context lost>"


async def test_the_repr_of_a_context_has_its_device_and_the_reason_of_its_loss(numpy_context):
    assert repr(numpy_context) == f"<MLContext on {numpy_context.backend}>"
    numpy_context.device.backend.lost("gone " * 1000)
    await numpy_context.lost
    assert repr(numpy_context).startswith(f"<MLContext on {numpy_context.backend}, lost: gone gone")
    assert len(repr(numpy_context)) < 250


async def test_a_repr_enqueues_nothing(numpy_context):
    buffer, graph = await numpy_context.create_buffer(**F32), await build_add_one(numpy_context, [4])
    numpy_context.device_timeline.pause()
    before = numpy_context.statistics()
    for thing in (buffer, graph, numpy_context, numpy_context.lost, numpy_context.device_timeline):
        repr(thing)
    assert numpy_context.statistics() == before
