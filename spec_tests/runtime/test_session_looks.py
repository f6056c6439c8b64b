"""``profile()`` and ``check_finite()`` of sessions give what those of graphs and builders give."""

import numpy as np
import pytest

from spec_tests.support.onnx_programs import add, product, program
from spec_tests.support.runtime import assert_adds, built, refused_while_pending
from webnn_py import InvalidStateError, NotSupportedError
from webnn_py.core.device.backend import TimesKernels
from webnn_py.runtime import Environment, Tensor, blocking

W = np.arange(12, dtype=np.float32).reshape(4, 3)
LOOKS = pytest.mark.parametrize("method", ["profile", "check_finite"])


def logarithm():
    """y = exp(log(x - 1)), for any number of rows"""
    return program(
        [
            ("Sub", ["x", "one"], ["d"], {"name": "difference"}),
            ("Log", ["d"], ["l"], {"name": "log"}),
            ("Exp", ["l"], ["y"], {}),
        ],
        {"x": ("float32", ["batch", 2])},
        {"y": ("float32", ["batch", 2])},
        {"one": np.ones(1, np.float32)},
    )


def kernels(profile):
    return [node.operator for kernel in profile.kernels for node in kernel.nodes]


@pytest.fixture
async def timed_env(env):
    """Return an environment on a device that times kernels."""
    device = (await env.open_device()).context.device
    if not isinstance(device.backend, TimesKernels):
        pytest.skip("the device does not time kernels, which another test checks")
    return env


async def test_a_device_that_does_not_time_kernels_is_refused(ml, x):
    async with Environment(ml, "reference") as env, await env.create_session(add()) as session:
        with pytest.raises(NotSupportedError, match=r"^profile\(\): reference .* does not time kernels"):
            await session.profile({"x": x})
        await assert_adds(session, x)


async def test_a_profile_is_of_the_graph_for_the_feeds_shapes(timed_env):
    env = timed_env
    async with await env.create_session(product(W)) as session:
        for rows, feeds in ((2, (np.asarray, Tensor)), (5, (np.asarray,))):
            x = np.ones((rows, 4), np.float32)
            tensor = await env.create_tensor(x)
            for feed in (*(form(x) for form in feeds), tensor):
                profile = await session.profile({"x": feed}, repeat=1)
                assert kernels(profile) == ["matmul"]
                assert profile.kernels[0].flops == 2 * rows * 4 * 3
            np.testing.assert_array_equal((await session.run({"x": tensor}))["y"], x @ W)
            tensor.dispose()
    await env.drain()
    assert env.statistics().live_buffers == 0


async def test_a_profile_of_a_users_graph_and_of_a_captured_run(timed_env, x):
    env = timed_env
    graph = await built((await env.open_device()).context)
    async with await env.create_session(graph) as session:
        assert kernels(await session.profile({"x": x}, repeat=1)) == ["add"]
    graph.destroy()
    async with await env.create_session(
        add(), enable_graph_capture=True, preferred_output_location="ml-tensor"
    ) as session:
        tensor = await env.create_tensor(x)
        y = (await session.run({"x": tensor}))["y"]
        assert kernels(await session.profile({"x": x}, repeat=1)) == ["add"]
        assert (await session.run({"x": tensor}))["y"] is y
        tensor.dispose()
        y.dispose()


async def test_the_first_node_that_makes_a_nan_is_found(env):
    async with await env.create_session(logarithm()) as session:
        for rows in (1, 3):
            x = np.full((rows, 2), 3, np.float32)
            assert await session.check_finite({"x": x}) is None
            x[-1, 1] = 1
            tensor = await env.create_tensor(x)
            for feed in (x, tensor):
                found = await session.check_finite({"x": feed})
                assert (found.operator, found.index) == ("log", (rows - 1, 1))
            tensor.dispose()
        np.testing.assert_allclose((await session.run({"x": np.full((1, 2), 3, np.float32)}))["y"], 2, rtol=1e-5)
    await env.drain()
    assert env.statistics().live_buffers == 0


@LOOKS
async def test_feeds_that_are_not_the_sessions_are_refused(env, method):
    async with await env.create_session(product(W)) as session:
        look = getattr(session, method)
        gone = await env.create_tensor(np.ones((2, 4), np.float32))
        gone.dispose()
        for feeds, error, words in (
            ({}, TypeError, r"feeds has \[\]; the inputs are \['x'\]"),
            ([], TypeError, "feeds is list; it must be a mapping"),
            ({"x": np.ones((2, 5), np.float32)}, TypeError, r"input 'x' is of shape \[2, 5\]"),
            ({"x": np.ones((2, 4), np.int32)}, TypeError, "input 'x' is int32"),
            ({"x": gone}, InvalidStateError, "input 'x', <Tensor .*>, was disposed of"),
        ):
            with pytest.raises(error, match=rf"^{method}\(\): {words}"):
                await look(feeds)
        np.testing.assert_array_equal((await session.run({"x": np.ones((1, 4), np.float32)}))["y"], W.sum(0)[None])


@LOOKS
async def test_a_released_session_refuses(env, method):
    x = np.ones((1, 4), np.float32)
    session = await env.create_session(product(W))
    context = env.device.context
    words = rf"{method}\(\): the session was released"
    pending = refused_while_pending(
        context, lambda: getattr(session, method)({"x": x}), f"{words} while it was pending"
    )
    async with pending:
        session._release()
    with pytest.raises(InvalidStateError, match=words):
        await getattr(session, method)({"x": x})


def test_blocking_sessions_have_both_methods(options):
    with blocking.Environment(**options) as env, env.create_session(logarithm()) as session:
        x = np.ones((2, 2), np.float32)
        tensor = env.create_tensor(x)
        for feed in (x, blocking.Tensor(x), tensor):
            assert session.check_finite({"x": feed}).operator == "log"
        if isinstance(session._async._opened.context.device.backend, TimesKernels):
            assert set(kernels(session.profile({"x": tensor}, repeat=1))) >= {"log"}
        tensor.dispose()
