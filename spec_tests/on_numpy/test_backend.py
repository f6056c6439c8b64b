"""Long work of the numpy device runs in a worker thread, short work inline; a lost context ends what runs."""

import threading

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.stand_ins import clocks_of, noted
from webnn_py import MLGraphBuilder
from webnn_py.core.operators import arithmetic
from webnn_py.devices.numpy import executable, table

SHORT, LONG = 0.0, 1e12
"""Elementary operations that clearly take less, or more, than the hand-over to a thread is worth."""


class ObservedAdd:
    """Stands for the kernel of ``add``: says what work it is, and notes in which thread it ran."""

    def __init__(self):
        self.work = SHORT
        self.threads = []
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def make(self, _node):
        def add(a, b, output):
            self.threads.append(threading.get_ident())
            self.begun.set()
            assert self.may_end.wait(60), "the test never let the kernel end"
            np.add(a, b, out=output)

        return add


@pytest.fixture
def observed_add(monkeypatch):
    observed = ObservedAdd()
    entry = table.NumpyEntry(observed.make, None, lambda _node: observed.work)
    assert table.find(arithmetic.add)  # the others of its category are there as well
    monkeypatch.setitem(table._TABLE, arithmetic.add, entry)
    return observed


@pytest.mark.parametrize(("work", "inline"), [(SHORT, True), (LONG, False)], ids=["short", "long"])
async def test_a_long_dispatch_runs_in_a_worker_thread_and_a_short_one_inline(
    numpy_context, observed_add, work, inline
):
    observed_add.work = work
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])

    numpy_context.dispatch(graph, {"x": x}, {"y": y})

    np.testing.assert_array_equal(await numpy_context.read_buffer(y), [2, 3])
    assert [thread == threading.get_ident() for thread in observed_add.threads] == [inline]


@pytest.mark.parametrize(("work", "inline"), [(SHORT, True), (LONG, False)], ids=["short", "long"])
async def test_a_long_compilation_runs_in_a_worker_thread_and_a_short_one_inline(
    numpy_context, observed_add, work, inline
):
    observed_add.work = work
    builder = MLGraphBuilder(numpy_context)
    one = builder.constant(np.ones(2, np.float32))
    await builder.build({"y": builder.add(one, one)})
    assert [thread == threading.get_ident() for thread in observed_add.threads] == [inline]


@pytest.fixture
def clocks(monkeypatch):
    return clocks_of(monkeypatch, executable)


async def test_where_a_dispatch_runs_follows_how_long_the_last_one_took(numpy_context, observed_add, clocks):
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    await numpy_context.drain()
    clocks["computing_time"].extend([0.0, 1.0, 0.0, 0.0])
    clocks["perf_counter"].extend([0.0, 1.0])
    for _ in range(3):
        numpy_context.dispatch(graph, {"x": x}, {"y": y})
        await numpy_context.drain()
    assert [thread == threading.get_ident() for thread in observed_add.threads] == [True, False, True]


async def test_short_dispatches_are_measured_by_the_clock_until_one_was_not_short(numpy_context, clocks):
    clocks["perf_counter"].extend([0.0, 0.0001, 0.0, 1.0])
    clocks["computing_time"].extend([0.0, 0.0, 0.0, 0.4])
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    compiled, expected = graph.handle.compiled, []
    for _ in range(4):
        numpy_context.dispatch(graph, {"x": x}, {"y": y})
        await numpy_context.drain()
        expected.append(compiled.expected_seconds)
    assert expected == [0.0, 0.0001, executable.SHORT_SECONDS, 0.4]


@pytest.mark.parametrize(("elements", "inline"), [(2, True), (2**20, False)], ids=["short", "long"])
async def test_a_long_read_runs_in_a_worker_thread_and_a_short_one_inline(numpy_context, monkeypatch, elements, inline):
    handed_over = noted(monkeypatch, trio.to_thread, "run_sync")
    buffer = await zeroed(numpy_context, [elements])
    values = await numpy_context.read_buffer(buffer)
    assert values.shape == (elements,)
    assert not values.any()
    assert len(handed_over) == (0 if inline else 1)


async def test_other_tasks_go_on_while_a_kernel_runs_in_its_thread(numpy_context, observed_add, options):
    observed_add.work = LONG
    observed_add.may_end.clear()
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    numpy_context.dispatch(graph, {"x": x}, {"y": y})
    promise = numpy_context.read_buffer(y)

    other = await numpy_context._ml.create_context(**options)
    elsewhere = await filled(other, [3])
    np.testing.assert_array_equal(await other.read_buffer(elsewhere), [3])
    assert promise.state == "pending"

    observed_add.may_end.set()
    np.testing.assert_array_equal(await promise, [2, 3])


async def test_a_dispatch_that_runs_when_the_context_is_lost_ends_before_its_next_kernel(numpy_context, observed_add):
    observed_add.work = LONG
    observed_add.may_end.clear()
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2])
    graph = await builder.build({"y": builder.add(builder.add(builder.add(x, x), x), x)})
    source, target = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    numpy_context.dispatch(graph, {"x": source}, {"y": target})
    await trio.to_thread.run_sync(observed_add.begun.wait)

    numpy_context.destroy()
    observed_add.may_end.set()
    await numpy_context.drain()

    assert len(observed_add.threads) == 1
    assert numpy_context.statistics().live_bytes == 0
