"""Ctrl-C at any moment ends the program by ``KeyboardInterrupt``, and every device is released."""

import json
import pkgutil
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import trio

from spec_tests.support.backends import ON_GPU
from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.depth import amount
from spec_tests.support.drawing import build_add_buffer
from spec_tests.support.releases import assert_ended
from spec_tests.support.watched_device import ENDS, STEPS
from webnn_py import open_ml
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.devices.wgpu.engines import engine_of
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.saved_graphs.folder import UNFINISHED

ROUNDS = {"quick": 25, "full": 100, "thorough": 1000}


@pytest.fixture(autouse=True)
def _interrupts():
    """Handle interrupts as a program of its own does; a worker of pytest may ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupting(step):
    """Return ``step`` with a Ctrl-C before it and another after it."""

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        try:
            return step(*arguments, **options)
        finally:
            signal.raise_signal(signal.SIGINT)

    return interrupted


async def use_everything(ml, options, prepare):
    """Have a device take each of its steps once at least; ``prepare`` is called with the context first."""
    context = await ml.create_context(**options)
    prepare(context)
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    weights = await constant(context, [1, 1])
    graph = await build_add_buffer(context, weights)
    for _ in range(3):
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.read_buffer(y)
    copy_buffer(context, x, y)
    clear_buffer(context, y)
    graph.destroy()
    x.destroy()
    await context.drain()


def assert_interrupted(program):
    """Check that a program, which is given a list for its context, is interrupted and leaves nothing."""
    contexts = []

    async def in_block():
        async with open_ml() as ml:
            await program(ml, contexts)

    with pytest.raises(KeyboardInterrupt):
        trio.run(in_block)
    assert_ended(contexts[0])


def assert_an_interrupt_ends_it_all(options, prepare):
    """Check that an interrupt at that moment ends the program and leaves nothing."""

    async def program(ml, contexts):
        def prepare_and_note(context):
            contexts.append(context)
            prepare(context)

        await use_everything(ml, options, prepare_and_note)

    assert_interrupted(program)


@pytest.mark.parametrize("step", [*STEPS, *ENDS])
def test_an_interrupt_while_the_device_takes_a_step_ends_the_program(options, step):
    def prepare(context):
        backend = context.device.backend
        setattr(backend, step, interrupting(getattr(backend, step)))

    assert_an_interrupt_ends_it_all(options, prepare)


@pytest.mark.parametrize("backend", [ON_GPU], scope="module")
def test_an_interrupt_within_a_callback_of_the_gpu_loses_no_answer(options, monkeypatch):
    def prepare(context):
        engine = engine_of(context.device.backend.device)
        monkeypatch.setattr(engine, "_answer", interrupting(engine._answer))

    assert_an_interrupt_ends_it_all(options, prepare)


@pytest.mark.parametrize("call", ["create_buffer", "create_constant_buffer", "write_buffer", "read_buffer", "dispatch"])
def test_a_call_that_is_interrupted_is_made_as_a_whole_and_the_interrupt_comes_next(options, call, monkeypatch):
    def prepare(context):
        method, timeline = getattr(context, call), context.device_timeline

        def call_interrupted(*arguments, **keywords):
            with monkeypatch.context() as patch:
                patch.setattr(timeline, "enqueue", interrupting(timeline.enqueue))
                return method(*arguments, **keywords)

        setattr(context, call, call_interrupted)

    assert_an_interrupt_ends_it_all(options, prepare)


@pytest.mark.parametrize(
    "place",
    [
        "webnn_py.saved_graphs.saved_graphs.code_of",
        "webnn_py.saved_graphs.saved_graphs.load_code",
        "webnn_py.saved_graphs.folder.GraphFolder.save",
        "webnn_py.saved_graphs.folder.GraphFolder.load",
        "webnn_py.core.api.graph.MLGraph._fill",
    ],
)
def test_an_interrupt_while_a_graph_is_saved_or_loaded_leaves_nothing(options, tmp_path, monkeypatch, place):
    async def program(ml, contexts):
        context = await ml.create_context(**options)
        contexts.append(context)
        saved = SavedGraphs(tmp_path / "graphs")
        graph = await build_add_buffer(context, await constant(context, [1, 1]), keep_source=True)
        await saved.save("before", graph)
        monkeypatch.setattr(place, interrupting(pkgutil.resolve_name(place)))
        saved.save("k", graph)
        await saved.load(context, "before")
        await trio.sleep_forever()

    assert_interrupted(program)
    assert list((tmp_path / "graphs").glob(f"*{UNFINISHED}")) == []


def test_an_interrupt_while_a_context_is_destroyed_leaves_nothing_of_it(options):
    async def program(ml, contexts):
        context = await ml.create_context(**options)
        contexts.append(context)
        await filled(context, [1, 2])
        context.device.recall_lent = interrupting(context.device.recall_lent)
        context.destroy()
        assert context.lost.state == "fulfilled"
        await trio.sleep_forever()

    assert_interrupted(program)


def test_an_interrupt_while_the_block_is_being_left_waits_until_nothing_is_left(options):
    async def program():
        async with open_ml() as ml:
            context = await ml.create_context(**options)
            seen.append(context)
            await filled(context, [1, 2])
            backend = context.device.backend
            backend.close = interrupting(backend.close)
        left.append(True)
        assert_ended(context)
        await trio.sleep_forever()

    seen, left = [], []
    with pytest.raises(KeyboardInterrupt):
        trio.run(program)
    assert left == [True]
    assert_ended(seen[0])


def test_an_interrupt_while_a_promise_is_awaited_ends_that_wait_and_not_the_work(options):
    async def program():
        async with open_ml() as ml:
            context = await ml.create_context(**options)
            buffer = await filled(context, [1, 2])
            context.device_timeline.pause()
            promise = context.read_buffer(buffer)
            token = trio.lowlevel.current_trio_token()
            token.run_sync_soon(partial(signal.raise_signal, signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                await promise
            context.device_timeline.resume()
            np.testing.assert_array_equal(await promise, [1, 2])

    trio.run(program)


@pytest.mark.parametrize("wait", ["promise", "end"])
def test_an_interrupt_as_a_wait_begins_leaves_no_waiter(options, monkeypatch, wait):
    """The awaited event comes while the task waits for another one, and does not wake it."""
    begin = trio.lowlevel.wait_task_rescheduled

    def interrupted(abort):
        if trio.lowlevel.current_task().name.endswith("program"):
            signal.raise_signal(signal.SIGINT)
        return begin(abort)

    async def program():
        async with open_ml() as ml:
            context = await ml.create_context(**options)
            buffer = await filled(context, [1, 2])
            context.device_timeline.pause()
            promise = context.read_buffer(buffer)
            waiting = (lambda: promise) if wait == "promise" else context.device_timeline.wait_ended
            with monkeypatch.context() as patch:
                patch.setattr(trio.lowlevel, "wait_task_rescheduled", interrupted)
                patch.setattr(trio._core, "wait_task_rescheduled", interrupted)  # which trio.Event calls
                with pytest.raises(KeyboardInterrupt):
                    await waiting()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(settled, promise)
                context.device_timeline.resume()
                if wait == "end":
                    context.destroy()
                    nursery.start_soon(ended, context.device_timeline)
            assert promise.state == ("fulfilled" if wait == "promise" else "rejected")

    async def settled(promise):
        while promise.state == "pending":
            await trio.lowlevel.checkpoint()

    async def ended(timeline):
        while not timeline.ended:
            await trio.lowlevel.checkpoint()

    trio.run(program)


OF_OTHERS = ("XDG_RUNTIME_DIR", "mpd_setminalloc")
"""Words of messages by a driver, and by the standard library's decimal when its import was interrupted and repeated."""


@pytest.mark.parametrize("rounds", [pytest.param(None, id="rounds")])
def test_interrupts_at_random_moments_of_a_busy_program(backend, rounds, pytestconfig):
    rounds = amount(pytestconfig, **ROUNDS)
    seed = pytestconfig.option.seed
    program = ["-m", "spec_tests.support.interrupted", backend, str(rounds), str(seed)]
    run = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60 + 4 * rounds,
        cwd=pytestconfig.rootpath,
    )
    again = f"again by: python {' '.join(program)}"
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"{run.stderr}\n{again}"
    *done, last = answers
    assert len(done) == rounds, again
    bad = [answer for answer in done if answer["left"]]
    assert not bad, again
    assert last == {"threads": []}, again
    told = [line for line in run.stderr.splitlines() if not any(words in line for words in OF_OTHERS)]
    assert not told, f"an interrupt was swallowed? {told}, {again}"
