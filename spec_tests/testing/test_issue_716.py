"""The resolution of webnn issue 716, in every order of the script's and the devices' steps, on every device."""

from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_one
from spec_tests.testing.actions import destroy, destroy_context, dispatch, read
from webnn_py import DestroyedBufferError, InvalidStateError
from webnn_py.testing import interleavings


@attrs.frozen
class Case:
    """A rule: the actions, by agents where there are several, and what holds at the end of every order."""

    actions: object
    holds: object


def is_answered(ended, values):
    return ended.state == "fulfilled" and ended.value.tolist() == values


def is_rejected(ended):
    return ended.state == "rejected" and type(ended.error) is InvalidStateError


# --- reads -----------------------------------------------------------------------------------------------------------


def read_into(s):
    s.out = np.full(2, -1, np.float32)
    return s.context.read_buffer(s.x, out=s.out)


def out_is_written_by_answers_only(s, outcome):
    written = outcome.actions["read_into"].state == "fulfilled"
    assert s.out.tolist() == ([5, 6] if written else [-1, -1])


def reads_are_answered_in_order_until_all_are_rejected(s, outcome):
    ended = [outcome.actions["read"], outcome.actions["read (2)"]]
    answered = [end for end in ended if is_answered(end, [5, 6])]
    assert ended[: len(answered)] == answered
    assert all(is_rejected(end) for end in ended[len(answered) :])


def calls_are_refused_after_it_only(s, outcome):
    refused = [ended for ended in outcome.actions.values() if ended.error is not None]
    assert all(type(ended.error) in (DestroyedBufferError, InvalidStateError) for ended in refused)
    assert outcome.buffers["x"] == "destroyed"


def write(s):
    s.context.write_buffer(s.x, np.array([7, 8], np.float32))


# --- dispatches ------------------------------------------------------------------------------------------------------


def dispatch_on(s):
    s.context.dispatch(s.graph, {"x": s.y}, {"y": s.z})


def destroy_between(s):
    s.y.destroy()


def the_chain_is_computed(s, outcome):
    assert outcome.buffers["z"].tolist() == [7, 8]


def build_with_constant(s):
    return build_add_buffer(s.context, s.constant)


def destroy_constant(s):
    s.constant.destroy()


async def the_graph_has_the_constant(s, outcome):
    graph = outcome.actions["build_with_constant"].value
    s.context.dispatch(graph, {"x": s.x}, {"y": s.y})
    assert (await s.context.read_buffer(s.y)).tolist() == [15, 26]


# --- contexts --------------------------------------------------------------------------------------------------------


def read_other(s):
    return s.other.read_buffer(s.of_other)


def the_other_context_is_not_touched(s, outcome):
    assert is_answered(outcome.actions["read_other"], [1, 2])
    assert outcome.buffers["x"] == "destroyed"


def lost(s):
    return s.context.lost


def all_is_gone(s, outcome):
    assert outcome.actions["lost"].state == "fulfilled"
    statistics = s.context.statistics()
    assert (statistics.live_buffers, statistics.queued_operations) == (0, 0)
    assert {outcome.buffers[name] for name in "xyz"} == {"destroyed"}


# --- waiting ---------------------------------------------------------------------------------------------------------


def begin_to_read(s):
    s.promise = s.context.read_buffer(s.x)
    return s.promise


async def wait_in_scope(s):
    with s.scope:
        await s.promise
    return s.scope.cancelled_caught


def cancel(s):
    s.scope.cancel()


def the_read_goes_on(s, outcome):
    assert is_answered(outcome.actions["reader: begin_to_read"], [5, 6])


CASES = {
    "a read that is rejected leaves out as it was": Case([read_into, destroy], out_is_written_by_answers_only),
    "all pending reads are rejected": Case([read, read, destroy], reads_are_answered_in_order_until_all_are_rejected),
    "destroying twice is destroying once": Case([read, destroy, destroy], calls_are_refused_after_it_only),
    "later calls are refused": Case({"app": [write], "cleaner": [destroy]}, calls_are_refused_after_it_only),
    "what lies between two dispatches may go": Case([dispatch, dispatch_on, destroy_between], the_chain_is_computed),
    "a graph keeps its constants": Case([build_with_constant, destroy_constant], the_graph_has_the_constant),
    "a context takes its own with it only": Case([read_other, destroy_context], the_other_context_is_not_touched),
    "a lost context has nothing left": Case([dispatch, lost, destroy_context], all_is_gone),
    "cancelling who waits cancels nothing else": Case(
        {"reader": [begin_to_read, wait_in_scope], "other": [cancel]}, the_read_goes_on
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_holds_in_every_order(name, options):
    async def program(ml):
        context, other = await ml.create_context(**options), await ml.create_context(backend="numpy")
        return SimpleNamespace(
            context=context,
            other=other,
            graph=await build_add_one(context, [2]),
            constant=await constant(context, [10, 20]),
            x=await filled(context, [5, 6]),
            y=await zeroed(context, [2]),
            z=await zeroed(context, [2]),
            of_other=await filled(other, [1, 2]),
            scope=trio.CancelScope(),
        )

    case = CASES[name]
    report = interleavings(program, case.actions, check=case.holds)
    assert report.violation is None, report.violation
    assert report.orders > 1
