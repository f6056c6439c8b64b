"""Conversion in steps: other tasks run, the caller sees its progress, and may stop it."""

import numpy as np
import pytest
import trio

from spec_tests.onnx_models.single_node import parsed
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError, model

LOOP = """(float[3,4] y) <int64 ten = {10}, bool yes = {1}> {
  x0 = Neg (x)
  z = Loop (ten, yes, x0) <body = b (int64 i, bool c, float[3,4] a) => (bool c, float[3,4] n)
  {
    e = Exp (a)
    n = Neg (e)
  }>
  y = Abs (z)
}"""
NODES = 3 + 10 * 2


@pytest.fixture(autouse=True)
def _a_pause_at_each_node(monkeypatch):
    monkeypatch.setattr(model, "STEP_SECONDS", -1.0)


async def test_other_tasks_run_between_nodes_of_a_loop_too(context):
    told, turns = [], []

    async def other():
        while True:
            turns.append(len(told))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        loaded = OnnxModel.load(parsed(LOOP))
        outputs = await loaded.convert_in_steps(MLGraphBuilder(context), progress=lambda *counts: told.append(counts))
        nursery.cancel_scope.cancel()
    assert list(outputs) == ["y"]
    assert told[0] == (0, 3)
    assert told[-1] == (NODES, NODES)
    assert told == sorted(told)
    assert len(told) == NODES + 1
    assert len(set(turns)) > NODES // 2, "the other task saw few of the steps"


async def test_a_conversion_can_be_cancelled_amid_a_loop(context):
    told = []

    def progress(done, total):
        told.append(done)
        if done == 8:
            scope.cancel()

    loaded = OnnxModel.load(parsed(LOOP))
    with trio.CancelScope() as scope:
        await loaded.convert_in_steps(MLGraphBuilder(context), progress=progress)
    assert scope.cancelled_caught
    assert told[-1] == 8
    assert list(await loaded.convert_in_steps(MLGraphBuilder(context))) == ["y"]


async def test_steps_give_what_one_call_gives(context):
    loaded = OnnxModel.load(parsed(LOOP))
    with pytest.raises(ValueError, match="input_shapes names"):
        await loaded.convert_in_steps(MLGraphBuilder(context), {"q": [1]})
    refused = OnnxModel.load(parsed(LOOP.replace("Abs", "Det")))
    with pytest.raises(UnsupportedModelError) as in_steps:
        await refused.convert_in_steps(MLGraphBuilder(context))
    with pytest.raises(UnsupportedModelError) as at_once:
        refused.convert(MLGraphBuilder(context))
    assert str(in_steps.value) == str(at_once.value)
    frozen = {"x": np.ones([3, 4], np.float32)}
    assert list(await loaded.convert_in_steps(MLGraphBuilder(context), None, frozen)) == ["y"]
