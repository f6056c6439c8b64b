"""Random small programs: exploring on from new states only comes to what exploring every order by itself comes to."""

from contextlib import suppress
from random import Random
from types import SimpleNamespace

import numpy as np

from spec_tests.support import depth
from spec_tests.support.buffers import zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.testing.actions import create, destroy, destroy_context, dispatch, write
from webnn_py.testing import TooManyOrdersError, interleavings
from webnn_py.testing.execution import Execution

MOST_ORDERS = 80
BAD = np.array([9, 9], np.float32)


async def program(ml):
    context = await ml.create_context(backend="numpy", max_queued_bytes=4)
    fail_to_write(context.device.backend, BAD)
    x, y = [await zeroed(context, [2]) for _ in range(2)]
    return SimpleNamespace(context=context, x=x, y=y, graph=await build_add_one(context, [2]), promise=None, seen=[])


def fail_to_write(backend, bad):
    write = backend.write

    def write_or_fail(storage, data):
        if np.array_equal(data, bad):
            raise RuntimeError("no memory")
        return write(storage, data)

    backend.write = write_or_fail


def write_what_fails(s):
    s.context.write_buffer(s.x, BAD)


def read(s):
    s.promise = s.context.read_buffer(s.y)
    return s.promise


async def wait(s):
    return None if s.promise is None else await s.promise


async def wait_for_capacity(s):
    await s.context.wait_for_capacity()


def destroy_y(s):
    s.y.destroy()


def destroy_graph(s):
    s.graph.destroy()


def look(s):
    s.seen.append(s.context.statistics())


def state(s):
    return None if s.promise is None else s.promise.state


ACTIONS = [write, write_what_fails, dispatch, read, read, wait, wait_for_capacity, create, look, state]
ENDS = [destroy, destroy_y, destroy_graph, destroy_context]


def chosen(random):
    """One or two agents' actions, among them something that ends."""
    agents = {
        "a": random.choices(ACTIONS, k=random.randint(1, 2)),
        "b": random.choices(ACTIONS, k=random.randint(0, 1)),
    }
    random.choice(list(agents.values())).append(random.choice(ENDS))
    return agents


def explored(agents):
    """The report of so many of the actions as have few orders: each of them is to be explored by itself."""
    while True:
        with suppress(TooManyOrdersError):
            report = interleavings(program, agents, check=seen, most_orders=MOST_ORDERS // 2)
            if report.orders <= MOST_ORDERS:
                return report
        max(agents.values(), key=len).pop(0)


def each_by_itself(monkeypatch, *given, **options):
    """The report of every order, run by itself to its end."""
    with monkeypatch.context() as patch:
        patch.setattr(Execution, "state", lambda self: tuple(self.order))
        return interleavings(*given, **options)


def seen(s, outcome):
    """Make what was seen in passing a part of the outcome."""
    outcome.buffers["seen"] = [(statistics.queued_operations, statistics.live_buffers) for statistics in s.seen]


def summary(report):
    outcomes = {str(found.outcome): found.orders for found in report.outcomes}
    return outcomes, report.orders, report.violating_orders, report.violation and report.violation.kind


def test_random_programs_come_to_the_same(request, monkeypatch):
    for number in range(depth.amount(request.config, quick=6, full=30, thorough=300)):
        agents = chosen(Random(f"{request.config.option.seed} {number}"))  # noqa: S311 - chance for tests
        once = explored(agents)
        every = each_by_itself(monkeypatch, program, agents, check=seen)
        names = {name: [action.__name__ for action in of] for name, of in agents.items()}
        assert summary(once) == summary(every), names
        assert every.runs == every.orders, names
