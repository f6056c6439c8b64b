"""Runs that are cancelled, released, lost or failed raise an error, and nothing is left."""

import gc

import numpy as np
import pytest
import trio
import trio.testing

from spec_tests.runtime.test_session import W, rows
from spec_tests.support.onnx_programs import add, product, sum_and_difference
from spec_tests.support.runtime import assert_adds, live, lose, refused_while_pending
from webnn_py import InvalidStateError, OperationError, UnknownError
from webnn_py.runtime import Environment


async def test_a_cancelled_run_leaves_the_session_usable(env, x):
    async with await env.create_session(add()) as session:
        context = env.device.context
        for _ in range(3):
            context.device_timeline.pause()
            with trio.move_on_after(0) as scope:
                await session.run({"x": x})
            assert scope.cancelled_caught
            context.device_timeline.resume()
            np.testing.assert_array_equal((await session.run({"x": x + 2}))["y"].data, x + 3)
        await context.drain()
        assert live(env.statistics())[0] == 2


@pytest.mark.filterwarnings("error:.* was never destroyed:ResourceWarning")
async def test_a_run_cancelled_while_its_graph_is_built_leaves_the_session_usable(env):
    async with await env.create_session(product(W)) as session:
        context = env.device.context
        await session.run({"x": rows(1)})
        await context.drain()
        before = live(env.statistics())
        context.device_timeline.pause()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run, {"x": rows(2)})
            await trio.testing.wait_all_tasks_blocked()
            assert context.device_timeline.queued_operations == 1, "it waits for the device to compile"
            nursery.cancel_scope.cancel()
        context.device_timeline.resume()
        await context.drain()  # the graph comes
        await context.drain()  # and goes
        assert live(env.statistics()) == before, "the graph that came too late is destroyed"
        np.testing.assert_array_equal((await session.run({"x": rows(2)}))["y"].data, rows(2) @ W)


@pytest.mark.filterwarnings("error:.* was never destroyed:ResourceWarning")
async def test_graphs_and_buffers_are_destroyed_by_their_release_and_not_as_garbage(ml, options, x):
    async with Environment(ml, preserve_device=True, **options) as env:
        session = await env.create_session(add())
        await session.run({"x": x})
        await session.release()
        del session
        gc.collect()
        await env.drain()
        assert live(env.statistics()) == (0, 0)


@pytest.mark.parametrize("preserve", [True, False])
async def test_releasing_rejects_pending_runs_and_waits_for_the_device(ml, options, preserve, x):
    async with Environment(ml, preserve_device=preserve, **options) as env:
        session = await env.create_session(add())
        await session.run({"x": x})
        context = env.device.context
        released = trio.Event()

        async def release():
            await session.release()
            released.set()

        words = r"run\(\): the session was released while it was pending"
        pending = refused_while_pending(context, lambda: session.run({"x": x}), words)
        async with trio.open_nursery() as nursery, pending:
            nursery.start_soon(release)
            await trio.testing.wait_all_tasks_blocked()
            assert session.released
            assert not released.is_set(), "the device has not released anything yet"
        assert live(env.statistics()) == (0, 0)


async def test_releasing_rejects_runs_that_wait_for_their_graph(env):
    session = await env.create_session(product(W))
    context = env.device.context
    context.device_timeline.pause()

    async def run(count):
        with pytest.raises(InvalidStateError, match=r"run\(\): the (session was released|device was lost) while"):
            await session.run({"x": rows(count)})

    async with trio.open_nursery() as nursery:
        for count in (1, 2, 1):
            nursery.start_soon(run, count)
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(session.release)
        await trio.testing.wait_all_tasks_blocked()
        context.device_timeline.resume()
    assert live(env.statistics()) == (0, 0)


async def test_a_loss_rejects_pending_runs(env, x):
    session = await env.create_session(add())
    context = env.device.context
    words = r"run\(\): the device was lost while it was pending: .*crashed"
    async with refused_while_pending(context, lambda: session.run({"x": x}), words):
        lose(context)
        await context.lost
    await session.release()
    assert live(env.statistics()) == (0, 0)


async def test_a_failed_run_raises_and_the_next_one_succeeds(env, x, monkeypatch):
    async with await env.create_session(add()) as session:
        await session.run({"x": x})

        def dispatch(*_args):
            raise RuntimeError("the kernel failed")

        with monkeypatch.context() as patch:
            patch.setattr(env.device.context.device.backend, "dispatch", dispatch)
            with pytest.raises(UnknownError, match="the kernel failed"):
                await session.run({"x": x})
        await assert_adds(session, x)


async def test_a_graph_that_cannot_be_compiled_leaves_nothing(env, monkeypatch, x):
    first = await env.create_session(add())
    before = live(env.statistics())

    def compile_graph(_graph):
        raise RuntimeError("no such kernel")

    with monkeypatch.context() as patch:
        patch.setattr(env.device.context.device.backend, "compile", compile_graph)
        with pytest.raises(OperationError, match="no such kernel"):
            await env.create_session(sum_and_difference())
    await env.drain()
    assert live(env.statistics()) == before
    assert env.sessions == (first,)
    await first.release()
