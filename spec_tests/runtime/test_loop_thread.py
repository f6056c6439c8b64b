"""The loop of blocking code passes answers, errors and interrupts between threads, and leaves nothing."""

import contextvars
import random
import signal
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import trio
import trio.testing

from spec_tests.support.runtime import interrupt, interrupt_often, loops_that_have_not_ended
from webnn_py import InvalidStateError, OperationError
from webnn_py.runtime import loop_thread
from webnn_py.runtime.loop_thread import LoopThread

needs_signals = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread here")


class Resource:
    """A resource of a loop that notes when it is closed."""

    def __init__(self):
        self.closed = threading.Event()

    async def close(self):
        await trio.lowlevel.checkpoint()
        self.closed.set()


def close(loop, resource):
    """Close a resource as an environment does."""
    if loop.is_usable():
        loop.run(loop.close, resource)
    if not loop.is_usable():
        loop.join()


@pytest.fixture
def opened():
    """Return a loop and a resource that is open on it, which a test may close."""
    before = set(threading.enumerate())
    loop, resource = LoopThread.shared(), Resource()
    loop.run_sync(loop.keep, resource)
    yield loop, resource
    close(loop, resource)
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    assert not left
    assert loop not in LoopThread.running


@pytest.fixture
def loop(opened):
    return opened[0]


async def plus(a, *, b):
    await trio.lowlevel.checkpoint()
    return a + b


# --- answers and errors ----------------------------------------------------------------------------------------------


def test_a_call_returns_the_result_of_the_function(loop):
    assert loop.run(plus, 1, b=2) == 3
    assert loop.run_sync(divmod, 7, 2) == (3, 1)
    assert loop.run_sync(threading.current_thread) is not threading.current_thread()


def test_a_call_has_the_context_variables_of_its_caller(loop):
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("the caller's")
    assert loop.run_sync(variable.get) == "the caller's"


@pytest.mark.parametrize(
    "error", [OperationError("own"), ExceptionGroup("own group", [ValueError("own")]), SystemExit(3)], ids=type
)
def test_an_error_is_raised_unchanged(loop, error):
    async def fail():
        await trio.lowlevel.checkpoint()
        raise error

    with pytest.raises(type(error)) as caught:
        loop.run(fail)
    assert caught.value is error
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[0] == "test_an_error_is_raised_unchanged"
    assert frames[-1] == "fail"
    assert len(frames) <= 6, frames
    assert loop.run(plus, 1, b=2) == 3


def test_calls_of_many_threads_run_concurrently(loop):
    arrived = []
    all_here = loop.run_sync(trio.Event)

    async def meet(number):
        arrived.append(number)
        if len(arrived) == 8:
            all_here.set()
        await all_here.wait()
        return number

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(partial(loop.run, meet), range(8))]
    assert answers == list(range(8))


# --- interrupts ------------------------------------------------------------------------------------------------------


@needs_signals
def test_an_interrupt_cancels_the_call_and_nothing_else(loop):
    ended = []

    async def hang():
        try:
            interrupt()
            await trio.sleep_forever()
        finally:
            ended.append("cancelled")

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            loop.run(hang)
        assert ended.pop() == "cancelled", "the call has ended when the interrupt comes out"
    assert loop.run(plus, 1, b=2) == 3


@needs_signals
def test_an_interrupt_waits_for_a_shielded_call(loop):
    finished = []

    async def finish():
        with trio.CancelScope(shield=True):
            interrupt()
            await trio.testing.wait_all_tasks_blocked()
            finished.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        loop.run(finish)
    assert finished == ["all of it"]


@needs_signals
def test_a_second_interrupt_does_not_wait(loop):
    released, finished = loop.run_sync(trio.Event), loop.run_sync(trio.Event)

    async def finish():
        with trio.CancelScope(shield=True):
            await released.wait()
        finished.set()

    async def interrupted_twice():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(finish)
            try:
                interrupt()
                await trio.sleep_forever()
            finally:
                interrupt()

    with pytest.raises(KeyboardInterrupt):
        loop.run(interrupted_twice)
    assert not finished.is_set()
    loop.run_sync(released.set)
    loop.run(finished.wait)


@pytest.fixture
def _unused_end_at_once(monkeypatch):
    """A loop that nothing is opened on ends at once."""
    monkeypatch.setattr(loop_thread, "SECONDS_UNUSED", 0)


@needs_signals
@pytest.mark.usefixtures("_unused_end_at_once")
def test_an_interrupt_as_the_loop_is_started_leaves_no_loop(monkeypatch):
    start, loops = threading.Thread.start, []

    def start_and_interrupt(thread):
        start(thread)
        loops.append(thread)
        interrupt()

    def start_a_loop():
        LoopThread.shared()
        threading.Event().wait(60)  # however late the interrupt comes

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            start_a_loop()
    loops[0].join()
    assert not LoopThread.running
    LoopThread.shared().join()


@needs_signals
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python drops those in finalisers
def test_interrupts_at_any_moment_end_the_call_alone():
    seed = random.randrange(2**32)  # noqa: S311 - no secret

    def round_of_calls():
        loop, resource = LoopThread.shared(), Resource()
        try:
            loop.run_sync(loop.keep, resource)
            for number in range(30):
                assert loop.run(plus, number, b=1) == number + 1, seed
        finally:
            close(loop, resource)

    interrupt_often(round_of_calls, seed=seed, count=300, longest=1e-2)
    for loop in loops_that_have_not_ended():
        for resource in list(loop._open):  # the interrupt struck before close() began
            loop.run(loop.close, resource)
        loop.join()
    assert not LoopThread.running, seed


# --- the end ---------------------------------------------------------------------------------------------------------


def test_the_loop_runs_while_something_is_open(opened):
    loop, first = opened
    assert LoopThread.shared() is loop
    second = Resource()
    loop.run_sync(loop.keep, second)
    close(loop, first)
    assert loop.run(plus, 1, b=2) == 3
    close(loop, second)
    assert second.closed.is_set()
    assert loop not in LoopThread.running
    assert loop._thread not in threading.enumerate()


@pytest.mark.usefixtures("_unused_end_at_once")
def test_a_loop_that_nothing_is_opened_on_ends():
    loop = LoopThread.shared()
    loop.join()
    assert loop not in LoopThread.running


def test_the_loop_runs_on_when_closing_fails(opened):
    loop, resource = opened

    class Broken(Resource):
        async def close(self):
            await super().close()
            raise OperationError("a fault of the library")

    broken = Broken()
    loop.run_sync(loop.keep, broken)
    with pytest.raises(OperationError, match="a fault of the library"):
        loop.run(loop.close, broken)
    assert not resource.closed.is_set()
    close(loop, resource)
    assert resource.closed.is_set()


def test_nothing_is_opened_on_a_loop_that_is_about_to_end(opened):
    loop, resource = opened

    async def close_and_open():
        await loop.close(resource)
        loop.keep(Resource())

    with pytest.raises(InvalidStateError, match="loop has ended"):
        loop.run(close_and_open)


def test_a_finaliser_closes_without_waiting(opened):
    loop, resource = opened
    loop.run_sync(loop.run_soon, partial(loop.close, resource))
    loop.join()
    assert resource.closed.is_set()


def test_a_call_after_the_end_is_refused(opened):
    loop, resource = opened
    close(loop, resource)
    with pytest.raises(InvalidStateError, match="environment is closed"):
        loop.run(plus, 1, b=2)
    loop.run_soon(resource.close)


def test_the_end_ends_calls_of_other_threads(opened):
    loop, resource = opened
    begun, errors = threading.Event(), []

    async def hang():
        begun.set()
        await trio.sleep_forever()

    def call():
        try:
            loop.run(hang)
        except InvalidStateError as error:
            errors.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    begun.wait()
    close(loop, resource)
    thread.join()
    assert errors == ["the environment is closed, and its loop has ended"]


def test_a_loop_that_fails_raises_the_cause_and_the_next_one_works(loop):
    failure = ZeroDivisionError("a fault of the library")

    async def fail():
        await trio.lowlevel.checkpoint()
        raise failure

    async def hang():
        loop.ml._nursery.start_soon(fail)
        await trio.sleep_forever()

    with pytest.raises(InvalidStateError) as caught:
        loop.run(hang)
    cause = caught.value.__cause__
    assert isinstance(cause, ExceptionGroup)
    assert cause.subgroup(lambda error: error is failure)
    after, resource = LoopThread.shared(), Resource()
    assert after is not loop
    after.run_sync(after.keep, resource)
    assert after.run(plus, 1, b=2) == 3
    close(after, resource)
