"""Large models are drawn in steps that report their progress, let other tasks run and can be cancelled."""

import numpy as np
import pytest
import trio
import trio.testing

from spec_tests.support.onnx_programs import add, chain
from spec_tests.support.runtime import assert_adds, live
from webnn_py import InvalidStateError
from webnn_py.runtime import Environment


async def test_drawing_a_large_model_reports_its_progress_and_lets_other_tasks_run(env):
    told, ticks = [], 0
    done = trio.Event()

    async def tick():
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        session = await env.create_session(chain(600), progress=lambda *now: told.append((*now, ticks)))
        done.set()
    assert told[-1][:2] == (600, 600)
    assert len(told) > 3
    assert [item[:2] for item in told] == sorted(item[:2] for item in told)
    # Tasks run in any order within a tick: in two pauses, others have run at least once.
    assert all(later[2] > earlier[2] for earlier, later in zip(told, told[2:-1], strict=False)), told
    np.testing.assert_array_equal((await session.run({"x": np.zeros(2, np.float32)}))["y"].data, [600, 600])
    await session.release()


async def test_drawing_a_large_model_can_be_cancelled(env, x):
    with trio.CancelScope() as scope:
        await env.create_session(chain(2000), progress=lambda _done, _all: scope.cancel())
    assert scope.cancelled_caught
    assert env.sessions == ()
    assert env.device is None
    assert live(env.statistics()) == (0, 0)
    async with await env.create_session(add()) as session:
        await assert_adds(session, x)


async def test_closing_while_a_device_is_being_opened_ends_it(ml, options, contexts):
    env = Environment(ml, **options)

    async def create():
        with pytest.raises(InvalidStateError, match=r"open_device\(\): the environment is closed"):
            await env.open_device()

    ml.script_timeline.pause()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(create)
        await trio.testing.wait_all_tasks_blocked()
        assert env._owner._opening is not None
        await env.close()
        ml.script_timeline.resume()
    assert env.device is None
    (context,) = contexts
    assert context.lost.state == "fulfilled"


async def test_opening_a_device_ends_when_every_caller_is_cancelled(ml, options, contexts):
    async with Environment(ml, **options) as env:
        with trio.CancelScope() as scope:
            scope.cancel()
            await env.create_session(add())
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(env._owner.acquire, "test")
                nursery.start_soon(env._owner.acquire, "test")
                await trio.lowlevel.checkpoint()
                scope.cancel()
        while env._owner._opening is not None:
            await trio.lowlevel.checkpoint()
        assert env.device is None
    for context in contexts:
        assert context.lost.state == "fulfilled"
