"""Checklist S0: devices are opened and closed with their sessions, and references to lost ones go (ORT #27634)."""

import numpy as np
import pytest
import trio

from spec_tests.support import depth
from spec_tests.support.backends import needs_adapter
from spec_tests.support.onnx_programs import add, sum_and_difference
from spec_tests.support.runtime import assert_adds, built, live, lose
from spec_tests.support.watched_device import destroy_and_log
from webnn_py import InvalidStateError
from webnn_py.onnx_models import OnnxModel
from webnn_py.runtime import Environment


async def test_s0_1_and_2_sessions_of_several_models_follow_one_another(env, x):
    for model, feeds in ((add(), {"x": x}), (sum_and_difference(), {"a": x, "b": x}), (add(2), {"x": x})) * 2:
        async with await env.create_session(model) as session:
            results = await session.run(feeds)
            assert sorted(results) == sorted(session.output_names)
    assert env.sessions == ()


async def test_s0_3_the_last_session_ends_the_device_and_no_other(env, contexts, x):
    sessions = [await env.create_session(add(number)) for number in range(3)]
    assert len(contexts) == 1
    assert env.sessions == tuple(sessions)
    for number in (0, 2):
        await sessions[number].release()
        assert env.device is not None
    results = await sessions[1].run({"x": x})
    np.testing.assert_array_equal(results["y"].data, x + 1)
    assert contexts[0].lost.state == "pending"
    await sessions[1].release()
    assert contexts[0].lost.state == "fulfilled"


async def test_s0_4_a_device_is_preserved_if_asked_for(ml, options, contexts, x):
    async with Environment(ml, preserve_device=True, **options) as env:
        for number in range(3):
            async with await env.create_session(add(number)) as session:
                await session.run({"x": x})
            assert env.device is not None
            assert live(env.statistics()) == (0, 0)
        assert len(contexts) == 1
        assert contexts[0].lost.state == "pending"
    assert contexts[0].lost.state == "fulfilled"


@pytest.mark.parametrize("way", ["release", "loss", "destroy"])
async def test_s0_5_the_reference_is_never_stale(env, way):
    session = await env.create_session(add())
    device = env.device
    seen = []
    device.context.lost.on_settled(lambda: seen.append(env.device))
    if way == "release":
        await session.release()
    elif way == "destroy":
        device.context.destroy()
    else:
        lose(device.context)
        assert env.device is device, "the script timeline has not run the loss yet"
        await device.context.lost
    assert env.device is None
    assert seen == [None]
    await session.release()


async def test_s0_7_the_reference_is_set_and_unset_and_set_again(env):
    assert env.device is None
    seen = []
    for _ in range(3):
        session = await env.create_session(add())
        assert env.device is not None
        assert env.device.id == 0
        assert env.device.info == env.device.context.backend
        seen.append(env.device.context)
        await session.release()
        assert env.device is None
    assert len(set(seen)) == 3


async def test_s0_8_after_a_loss_the_next_session_has_a_fresh_device(env, x):
    first = await env.create_session(add())
    lost = env.device.context
    lose(lost)
    await lost.lost
    with pytest.raises(InvalidStateError, match=r"run\(\): the device was lost: .*driver crashed.*create the session"):
        await first.run({"x": x})
    second = await env.create_session(add(5))
    assert env.device.context is not lost
    await assert_adds(second, x, 5)
    await first.release()
    await assert_adds(second, x, 5)
    await second.release()


@needs_adapter
async def test_s0_8_after_a_gpu_is_gone_the_next_session_has_a_fresh_one(ml, x):
    async with Environment(ml, "wgpu") as env:
        for number in range(2):
            session = await env.create_session(add(number))
            await assert_adds(session, x, number)
            context = env.device.context
            destroy_and_log(context)
            await context.lost
            assert env.device is None
            await session.release()
        async with await env.create_session(add(7)) as session:
            await assert_adds(session, x, 7)


async def test_s0_9_a_late_loss_does_not_wipe_a_newer_device(env):
    first = await env.create_session(add())
    old = env._owner.current
    old.context.destroy()
    second = await env.create_session(add())
    newer = env.device
    env._owner._forget(old)  # as a callback that comes late would
    assert env.device is newer
    await first.release()
    assert env.device is newer
    await second.release()
    assert env.device is None


async def test_s0_10_a_create_that_races_with_a_loss_sees_through_it(env, x):
    first = await env.create_session(add())
    lost = env.device.context
    lose(lost)  # told by the script timeline while the next session is being made
    second = await env.create_session(add(3))
    assert lost.lost.state == "fulfilled"
    assert env.device.context is not lost
    await assert_adds(second, x, 3)
    await first.release()
    await second.release()


async def test_s0_10_a_create_that_races_with_the_last_release_gets_a_living_device(env, x):
    first = await env.create_session(add())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.release)
        second = await env.create_session(add(3))
        assert env.device.context.lost.state == "pending"
        await assert_adds(second, x, 3)
    await second.release()


async def test_s0_11_a_users_context_is_used_and_never_destroyed(context, ml, x):
    env = Environment(ml, context=context)
    session = await env.create_session(add())
    assert env.device.context is context
    await session.run({"x": x})
    await session.release()
    assert env.device.context is context
    await env.close()
    assert context.lost.state == "pending"
    assert live(context.statistics()) == (0, 0)


async def test_s0_11_a_users_context_that_is_lost_is_cleared_and_none_is_opened_in_its_place(context, ml):
    async with Environment(ml, context=context) as env:
        lose(context)
        await context.lost
        assert env.device is None
        with pytest.raises(
            InvalidStateError, match=r"create_session\(\): the context that .* given is lost: .*crashed"
        ):
            await env.create_session(add())


@needs_adapter
async def test_s0_11_a_users_gpu_device_is_used_and_never_destroyed(ml, shared_gpu, x):
    async with Environment(ml, gpu_device=shared_gpu) as env:
        for number in range(2):
            async with await env.create_session(add(number)) as session:
                assert env.device.context.device.backend.device is shared_gpu
                await assert_adds(session, x, number)


async def test_s0_11_a_users_graph_is_run_and_stays_the_users(context, ml, x):
    graph = await built(context, number=4)
    async with Environment(ml, context=context) as env:
        async with await env.create_session(graph) as session:
            await assert_adds(session, x, 4)
        async with await env.create_session(graph) as session:
            await session.run({"x": x})
    graph.destroy()


async def test_s0_11_a_graph_of_another_context_is_refused(context, env):
    graph = await built(context)
    with pytest.raises(TypeError, match=r"create_session\(\): <MLGraph .*belongs to another context"):
        await env.create_session(graph)
    assert env.device is None
    assert env.sessions == ()


async def test_s0_12_releasing_twice_is_harmless_and_a_released_session_refuses(env, x):
    session = await env.create_session(add())
    await session.release()
    await session.release()
    assert session.released
    with pytest.raises(InvalidStateError, match=r"run\(\): the session was released"):
        await session.run({"x": x})
    assert repr(session).endswith("released>")


@pytest.mark.parametrize("preserve", [True, False])
async def test_s0_12_many_rounds_leave_memory_and_contexts_where_they_were(
    pytestconfig, ml, options, *, contexts, preserve, x
):
    model, rounds = OnnxModel.load(add()), depth.amount(pytestconfig, quick=60, full=300, thorough=1000)
    async with Environment(ml, preserve_device=preserve, **options) as env:
        for number in range(rounds):
            async with await env.create_session(model) as session:
                results = await session.run({"x": x})
                assert env.statistics().live_bytes > 0
            assert (*live(env.statistics()), env.statistics().sessions) == (0, 0, 0), number
        np.testing.assert_array_equal(results["y"].data, x + 1)
        assert env.statistics().host_copies == 2 * rounds
    assert len(contexts) == (1 if preserve else rounds)
    assert all(context.device_timeline.ended for context in contexts)


async def test_s0_6_ended_contexts_are_forgotten_without_a_call_of_statistics(env, x):
    for number in range(5):
        async with await env.create_session(add(number)) as session:
            await session.run({"x": x})
        await env.drain()
    assert len(env._owner._former) <= 1


async def test_s0_6_draining_waits_for_the_contexts_that_end(env, x):
    async with await env.create_session(add(), preferred_output_location="gpu-buffer") as session:
        results = await session.run({"x": x})
    results["y"].dispose()
    await env.drain()
    assert env.statistics().live_buffers == 0
