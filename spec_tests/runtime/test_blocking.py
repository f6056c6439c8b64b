"""Environments, sessions and tensors without ``await`` give the same results and errors, from any thread."""

import asyncio
import copy
import gc
import inspect
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from spec_tests.support import depth
from spec_tests.support.onnx_programs import add, chain, product, sum_and_difference
from spec_tests.support.runtime import (
    device_location,
    interrupt,
    interrupt_often,
    interrupt_when_it_waits,
    loops_that_have_not_ended,
)
from webnn_py import InvalidStateError, runtime
from webnn_py.runtime import blocking
from webnn_py.runtime.loop_thread import LoopThread

W = np.arange(12, dtype=np.float32).reshape(4, 3)
needs_signals = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread here")


@pytest.fixture
def env(options):
    with blocking.Environment(**options) as environment:
        yield environment
    assert environment.closed
    assert not LoopThread.running
    assert environment.statistics().live_buffers == 0


@pytest.fixture
def session(env):
    with env.create_session(add()) as made:
        yield made


# --- the same as with await ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", blocking.__all__)
def test_names_and_arguments_are_those_of_the_asynchronous_form(name):
    with_await, without = getattr(runtime, name), getattr(blocking, name)
    names = {item for item in (*dir(with_await), *with_await.__annotations__) if not item.startswith("_")}
    assert names == {item for item in dir(without) if not item.startswith("_")}
    for item in names - {"create_tensor"}:  # which is overloaded
        own, its = getattr(without, item), getattr(with_await, item, None)
        assert callable(own) == callable(its), item
        if callable(own):
            assert not inspect.iscoroutinefunction(own), item
            assert list(inspect.signature(own).parameters) == list(inspect.signature(its).parameters), item


def test_a_session_runs(env, x):
    session = env.create_session(sum_and_difference())
    assert session.input_names == ("a", "b")
    assert session.output_names == ("s", "d")
    assert repr(session) == (
        "<InferenceSession (a: float32 [2, 3], b: float32 [2, 3]) -> (s: float32 [2, 3], d: float32 [2, 3])>"
    )
    outputs = session.run({"a": x, "b": blocking.Tensor(x)})
    np.testing.assert_array_equal(outputs["s"].data, x + x)
    np.testing.assert_array_equal(outputs["d"].get_data(), x - x)
    assert env.sessions == (session,)
    session.release()
    session.release()
    assert session.released
    assert env.sessions == ()
    with pytest.raises(InvalidStateError, match=r"run\(\): the session was released"):
        session.run({"a": x, "b": x})


def test_tensors_stay_on_the_device(env, backend, x):
    session = env.create_session(add(), preferred_output_location="gpu-buffer")
    first = session.run({"x": x})["y"]
    assert (first.location, first.dims, first.data_type) == (device_location(backend), (2, 3), "float32")
    copies = env.statistics().host_copies
    second = env.create_tensor(data_type="float32", dims=[2, 3])
    assert session.run({"x": first}, {"y": second})["y"] is second
    third = env.cast(second, "int32")
    assert env.cast(second, "int32", out=third) is third
    fourth = env.create_tensor(data_type="int32", dims=[2, 3])
    fourth.copy_from(third, count=3)
    assert env.statistics().host_copies == copies
    host = blocking.Tensor(np.empty((2, 3), np.float32))
    env.copy_tensors([second], [host])
    np.testing.assert_array_equal(host.data, x + 2)
    np.testing.assert_array_equal(fourth.get_data().ravel(), [2, 3, 4, 0, 0, 0])
    env.zero(second)
    assert not second.get_data(release=True).any()
    assert second.disposed
    for tensor in (first, third, fourth, host):
        tensor.dispose()
        assert tensor.disposed
    with pytest.raises(InvalidStateError, match="was disposed of"):
        first.get_data()
    with pytest.raises(InvalidStateError, match="was disposed of"):
        host.data  # noqa: B018 - it raises


def test_tensors_on_the_host_need_no_environment(x):
    source, target = blocking.Tensor(x), blocking.Tensor(np.zeros_like(x))
    target.copy_from(source, source_offset=1, count=2)
    assert target.get_data().ravel()[:2].tolist() == [1, 2]
    for loop in list(LoopThread.running):
        loop.join()


def test_a_tensor_on_the_host_is_pickled_and_another_is_not(env, session, x):
    again = pickle.loads(pickle.dumps(session.run({"x": x})["y"]))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.data, x + 1)
    tensor = env.create_tensor(x)
    with pytest.raises(TypeError):
        pickle.dumps(tensor)
    tensor.dispose()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_session_and_its_environment_cannot_be_copied(env, session, x, duplicate):
    for name, facade in (("Environment", env), ("InferenceSession", session)):
        with pytest.raises(TypeError, match=f"^{name} can be neither copied nor pickled; make an Environment and its"):
            duplicate(facade)
    gc.collect()
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)


def test_the_device_is_opened_and_drained(options):
    with blocking.Environment(**options) as env:
        assert env.device is None
        env.drain()
        assert env.open_device() == env.device
        assert env.has_context()
        env.drain()


def test_errors_are_the_same(env, session, x):
    with pytest.raises(TypeError, match=r"create_session\(\): model is int"):
        env.create_session(1)
    with pytest.raises(FileNotFoundError):
        env.create_session("missing.onnx")
    with pytest.raises(TypeError, match="z"):
        session.run({"z": x})
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        env.create_session(add(), wrong=1)
    with pytest.raises(TypeError, match="no public constructor"):
        blocking.InferenceSession()
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)


def test_things_of_a_closed_environment_are_refused(options, x):
    env = blocking.Environment(**options)
    session, tensor = env.create_session(add()), env.create_tensor(x)
    env.close()
    env.close()
    session.release()
    for use in (lambda: env.create_session(add()), lambda: session.run({"x": x}), tensor.get_data):
        with pytest.raises(InvalidStateError, match="the environment is closed"):
            use()
    tensor.dispose()
    assert env.has_context() is False
    assert env.device is None


def test_two_environments_share_the_loop(env, session, options, x):
    with blocking.Environment(**options) as other:
        assert len(LoopThread.running) == 1
        other.create_session(add(2.0)).run({"x": x})
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)


# --- threads and event loops -----------------------------------------------------------------------------------------


def test_threads_share_a_session(env):
    session = env.create_session(product(W))

    def work(seed):
        for count in np.random.default_rng(seed).integers(1, 5, 10):
            rows = np.full((count, 4), seed, np.float32)
            np.testing.assert_array_equal(session.run({"x": rows})["y"].data, rows @ W)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))


def test_a_run_blocks_asyncio_unless_it_is_called_in_a_thread(session, x):
    async def main():
        direct = session.run({"x": x})
        return direct, await asyncio.gather(*[asyncio.to_thread(session.run, {"x": x + n}) for n in range(4)])

    direct, others = asyncio.run(main())
    np.testing.assert_array_equal(direct["y"].data, x + 1)
    for n, outputs in enumerate(others):
        np.testing.assert_array_equal(outputs["y"].data, x + n + 1)


def test_a_callback_that_blocks_is_refused(env, session, x):
    def progress(_done, _total):
        session.run({"x": x})

    with pytest.raises(RuntimeError, match="own thread, which would wait for itself"):
        env.create_session(chain(3), progress=progress)
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)


# --- interrupts ------------------------------------------------------------------------------------------------------


@needs_signals
def test_an_interrupt_ends_a_run_and_the_session_goes_on(env, session, x):
    loop, timeline = env._loop, env.device.context.device_timeline
    session.run({"x": x})

    loop.run_sync(timeline.pause)
    loop.run_soon(partial(interrupt_when_it_waits, timeline))
    with pytest.raises(KeyboardInterrupt):
        session.run({"x": x})
    loop.run_sync(timeline.resume)
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)


@needs_signals
def test_an_interrupt_ends_the_loading_of_a_model(env, x):
    told = []

    def progress(done, _total):
        told.append(done)
        if len(told) == 1:  # a second interrupt could come when the first has ended the call
            interrupt()

    with pytest.raises(KeyboardInterrupt):
        env.create_session(chain(2000), progress=progress)
    assert told[0] < 2000
    assert env.sessions == ()
    np.testing.assert_array_equal(env.create_session(add()).run({"x": x})["y"].data, x + 1)


@needs_signals
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",  # Python drops those that strike in finalisers
    "ignore:.* was never:ResourceWarning",  # what an interrupt takes before a with statement has it
)
def test_interrupts_at_any_moment_leave_nothing(request, options, x):
    """A timer interrupts a program that opens, loads, runs, and closes."""
    wanted = depth.amount(request.config, quick=50, full=200, thorough=1000)
    seed, environments = request.config.option.seed, []

    def program():
        with blocking.Environment(**options) as env:
            environments[:] = [env]
            session = env.create_session(add())
            for _ in range(300):
                np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1, err_msg=f"seed {seed}")

    interrupt_often(program, seed=seed, count=wanted, longest=3e-2)
    assert environments, seed
    last = environments.pop()
    last.close()
    assert last.statistics().live_buffers == 0, seed
    del last
    gc.collect()
    for loop in loops_that_have_not_ended():
        loop.join()
    assert not LoopThread.running, seed


# --- dropped without a close -----------------------------------------------------------------------------------------


def test_an_environment_that_is_dropped_is_closed(options, x):
    env = blocking.Environment(**options)
    session = env.create_session(add())
    loop, inner = env._loop, env._async
    del env
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)
    with pytest.warns(ResourceWarning, match="never closed"):
        del session
    loop.join()
    assert inner.closed
    assert inner.statistics().live_buffers == 0


def test_a_session_that_is_dropped_is_released(env, session, x):
    dropped = env.create_session(add())
    loop, inner = env._loop, dropped._async
    del dropped
    loop.run(inner.release)  # waits for the release that has begun
    assert env.sessions == (session,)
    np.testing.assert_array_equal(session.run({"x": x})["y"].data, x + 1)


def test_a_tensor_has_the_label_that_it_was_given(env, x):
    tensor, plain = env.create_tensor(x, label="cache"), env.create_tensor(data_type="float32", dims=[2])
    assert (tensor.label, plain.label) == ("cache", "")
    assert "'cache' float32 [2, 3]" in repr(tensor)
    assert {item.label: item.live_buffers for item in env.statistics().by_label} == {"cache": 1, "": 1}
    tensor.dispose()
    plain.dispose()
