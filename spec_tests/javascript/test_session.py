"""A session on the script timeline: the promise's hook, and what is left when it ends."""

import pytest
import trio

import webnn_py
from spec_tests.support.scripts import Notes
from webnn_py.javascript import descriptions
from webnn_py.javascript.engine import EngineError
from webnn_py.javascript.session import open_session
from webnn_py.timelines.promise import MLPromise


def test_callbacks_are_called_when_the_promise_settles_in_their_order():
    promise = MLPromise._create()
    called = []
    promise._on_settled(lambda: called.append(("first", promise.state)))
    promise._on_settled(lambda: called.append(("second", promise.state)))
    assert called == []
    promise._resolve(1)
    assert called == [("first", "fulfilled"), ("second", "fulfilled")]
    promise._resolve(2)
    assert len(called) == 2


def test_a_callback_comes_at_once_when_the_promise_is_settled():
    called = []
    promise = MLPromise._refused(TypeError("no"))
    promise._on_settled(lambda: called.append(promise.state))
    assert called == ["rejected"]


async def test_callbacks_and_awaiting_tasks_do_not_disturb_each_other():
    promise = MLPromise._create()
    called, got = [], []

    async def wait():
        got.append(await promise)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        promise._on_settled(lambda: called.append("called"))
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        promise._resolve("value")
        assert called == ["called"]
    assert got == ["value", "value"]


async def test_a_callback_may_settle_and_watch_other_promises():
    first, second = MLPromise._create(), MLPromise._create()
    called = []

    def then():
        second._on_settled(lambda: called.append("second"))
        second._resolve(None)

    first._on_settled(then)
    first._on_settled(lambda: called.append("first"))
    first._resolve(None)
    assert called == ["second", "first"]


@pytest.mark.parametrize("engine", ["quickjs", "node"])
async def test_leaving_a_session_early_leaves_nothing(engine):
    notes = Notes()
    async with open_session(engine, notes, descriptions.of_specification(), backend="numpy") as session:
        ended = trio.Event()
        source = """
          navigator.ml.createContext().then(async (context) => {
            const tensor = await context.createTensor({dataType: 'float32', shape: [1], readable: true});
            setInterval(() => {}, 1);
            context.readTensor(tensor).then(() => console.log('read'), () => console.log('rejected'));
            console.log('asked');
          });
        """

        def task():
            session.evaluate(source, "early.js")
            ended.set()

        session.enqueue(task)
        await ended.wait()
        while "asked" not in notes.lines:
            await trio.lowlevel.checkpoint()
    assert "rejected" not in notes.lines


@pytest.mark.parametrize("engine", ["quickjs", "node"])
async def test_queued_tasks_of_a_closed_session_run_nothing(engine):
    notes = Notes()
    async with open_session(engine, notes, descriptions.of_specification(), backend="numpy") as session:

        def close():
            session.evaluate("setTimeout(() => console.log('fired'), 1e6); console.log('started');", "open.js")
            (timer,) = session.timers._live
            session.enqueue(lambda: session._fire_timer(timer))
            session.enqueue(lambda: session.evaluate("console.log('evaluated')", "late.js"))
            session.enqueue(lambda: session.evaluate("console.log('evaluated')", "late.mjs", module=True))
            session.close()

        session.enqueue(close)
        await trio.testing.wait_all_tasks_blocked()
    assert notes.lines == ["started"]


async def test_an_exception_of_the_block_comes_out_and_the_engine_is_closed():
    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_session("node", Notes(), descriptions.of_specification(), backend="numpy") as session:
            raise KeyError("mine")
    assert caught.group_contains(KeyError)
    assert session.engine._process.returncode == 0


async def test_an_engine_that_dies_in_a_task_ends_the_session_loudly():
    async def die():
        async with open_session("node", Notes(), descriptions.of_specification(), backend="numpy") as session:
            session.engine._process.kill()
            await session.run(lambda: session.evaluate("1", "late.js"))

    with pytest.raises(BaseExceptionGroup) as caught:
        await die()
    assert caught.group_contains(EngineError)


async def test_python_and_a_script_share_one_script_timeline():
    notes = Notes()
    async with open_session("quickjs", notes, descriptions.of_specification(), backend="numpy") as session:
        ml = session._host._api.ml
        assert isinstance(ml, webnn_py.ML)
        context = await ml.create_context(backend="numpy")
        buffer = await context.create_buffer(data_type="int8", shape=[1], readable=True)
        await session.run(lambda: session.evaluate("Promise.resolve().then(() => console.log('script'))", "a.js"))
        assert (await context.read_buffer(buffer)).tolist() == [0]
    assert notes.lines == ["script"]
