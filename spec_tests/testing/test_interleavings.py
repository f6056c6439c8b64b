"""Interleavings: how many there are, what they come to, which are the same, and what is wrong with some."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import zeroed
from spec_tests.support.promises import pending, resolve
from spec_tests.testing.actions import ONES, create, destroy, destroy_context, one_buffer, read, write
from spec_tests.testing.test_same_states import each_by_itself, summary
from webnn_py import InvalidStateError, UnknownError
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import Storage
from webnn_py.testing import Ended, Outcome, TooManyOrdersError, Violation, interleavings, replay


async def two_contexts(ml):
    first, second = await one_buffer(ml), await one_buffer(ml)
    return SimpleNamespace(ml=ml, context=first.context, x=first.x, other=second.context, y=second.x)


def write_other(s):
    s.other.write_buffer(s.y, ONES)


def read_other(s):
    return s.other.read_buffer(s.y)


def look(s):
    return s.context.statistics().queued_operations


async def read_and_wait(s):
    return (await s.context.read_buffer(s.x)).tolist()


# --- how many --------------------------------------------------------------------------------------------------------

BY_HAND = [
    ("nothing to do", one_buffer, [], 1),
    ("a call that asks nothing of the device", one_buffer, [look, look], 1),
    ("a write: call, operation", one_buffer, [write], 1),
    ("two writes: the first operation before or after the second call", one_buffer, [write] * 2, 2),
    ("three: ballot sequences, the third Catalan number", one_buffer, [write] * 3, 5),
    ("a read: call, operation, settlement", one_buffer, [read], 1),
    ("two reads: standard Young tableaux of two rows by three", one_buffer, [read] * 2, 5),
    ("waiting leaves no choice", one_buffer, [read_and_wait] * 3, 1),
    ("two agents: as two writes, in two orders of the calls", one_buffer, {"a": [write], "b": [write]}, 4),
    ("two devices: one operation anywhere behind its call", two_contexts, [write, write_other], 3),
]


@pytest.mark.parametrize(
    ("program", "actions", "orders"), [row[1:] for row in BY_HAND], ids=[row[0] for row in BY_HAND]
)
def test_there_are_as_many_orders_as_by_hand(program, actions, orders):
    report = interleavings(program, actions)
    assert report.orders == orders
    assert sum(found.orders for found in report.outcomes) == orders


def extensions(steps, before):
    """Count the orders of ``steps`` that keep to the pairs ``before``, independently, by recursion."""
    counts = {frozenset(): 1}

    def count(left):
        if left not in counts:
            first = [step for step in left if not any(b == step and a in left for a, b in before)]
            counts[left] = sum(count(left - {step}) for step in first)
        return counts[left]

    return count(frozenset(steps))


def test_orders_of_a_write_a_read_and_a_destroy_are_the_linear_extensions():
    before = ["wr", "rd", "wW", "rR", "dF", "WR", "RF", "RQ"]  # calls, operations, and Q: the settlement
    assert interleavings(one_buffer, [write, read, destroy]).orders == extensions("wrdWRFQ", before) == 12


def test_orders_of_reads_of_two_contexts_are_the_linear_extensions():
    # Settlements are in the order of the operations, so they are counted once for each of these.
    common = ["ab", "aA", "bB"]
    first, second = [*common, "AB", "AX", "XY", "BY"], [*common, "BA", "BX", "XY", "AY"]
    expected = extensions("abABXY", first) + extensions("abABXY", second)
    assert interleavings(two_contexts, [read, read_other]).orders == expected


# --- which are the same ----------------------------------------------------------------------------------------------

PROGRAMS = {
    "a destroy": (one_buffer, [write, read, destroy]),
    "the context's end": (one_buffer, [write, read, destroy_context, read]),
    "a creation that may be dropped": (one_buffer, [create, destroy_context]),
    "agents": (one_buffer, {"a": [write, read_and_wait], "b": [destroy]}),
    "two contexts": (two_contexts, [read, read_other, destroy_context]),
    "looks in passing": (one_buffer, {"a": [write, read], "b": [look]}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_orders_that_lead_to_the_same_state_come_to_the_same(name, monkeypatch):
    merged = interleavings(*PROGRAMS[name])
    each = each_by_itself(monkeypatch, *PROGRAMS[name])
    assert summary(merged) == summary(each)
    assert each.runs == each.orders


def test_an_order_is_run_on_only_from_a_state_that_is_new():
    report = interleavings(one_buffer, [write] * 3)
    # A state is how many calls and operations are done. Two steps are possible after one call, two, and two with one
    # operation: for each of these three, the second step is taken in a run more.
    assert (report.orders, report.runs) == (5, 4)


def look_and_return(s):
    return s.context.statistics()


def look_and_keep(s):
    s.seen = s.context.statistics()


def look_and_list(s):
    s.seen = [{"all": s.context.statistics()}]


@pytest.mark.parametrize("look", [look_and_return, look_and_keep, look_and_list])
def test_what_an_action_sees_of_a_device_in_passing_keeps_states_apart(options, look):
    async def program(ml):
        context = await ml.create_context(**options)
        return SimpleNamespace(context=context, x=await zeroed(context, [2]))

    seen = []

    def check(s, outcome):
        value = outcome.actions["b: " + look.__name__].value or s.seen
        seen.append((value[0]["all"] if isinstance(value, list) else value).queued_operations)

    report = interleavings(program, {"a": [write], "b": [look]}, check=check)
    assert (report.orders, report.violation) == (3, None)
    assert sorted(seen) == [0, 0, 1]


def test_two_explorations_report_the_same():
    assert str(interleavings(*PROGRAMS["agents"])) == str(interleavings(*PROGRAMS["agents"]))


# --- what they come to -----------------------------------------------------------------------------------------------


def test_an_outcome_says_what_became_of_actions_promises_and_buffers():
    report = interleavings(one_buffer, [write, read, destroy, write])
    outcomes = {found.outcome.actions["read"].state: found for found in report.outcomes}
    assert set(outcomes) == {"fulfilled", "rejected"}
    read_early, rejected = outcomes["fulfilled"].outcome, outcomes["rejected"].outcome
    np.testing.assert_array_equal(read_early.actions["read"].value, ONES)
    assert type(rejected.actions["read"].error) is InvalidStateError
    assert rejected.actions["write (2)"].state == "raised"
    assert str(read_early).splitlines()[0:3] == [
        "write: returned",
        "read: fulfilled: float32 [1.0, 1.0]",
        "destroy: returned",
    ]
    assert read_early.buffers == {"x": "destroyed"}


def test_buffers_of_a_mapping_are_read_at_the_end():
    async def program(ml):
        return vars(await one_buffer(ml))

    (found,) = interleavings(program, [lambda s: s["context"].write_buffer(s["x"], ONES)]).outcomes
    np.testing.assert_array_equal(found.outcome.buffers["x"], ONES)
    assert found.outcome.actions == {"action 1": Ended("returned")}


def test_every_example_is_an_order_that_ends_so():
    report = interleavings(one_buffer, [write, read, destroy])
    assert [report.replay(found.example) for found in report.outcomes] == [found.outcome for found in report.outcomes]


def test_agents_that_are_woken_together_go_on_in_both_orders():
    async def program(ml):
        scene = await one_buffer(ml)
        scene.woken, scene.read = "", pending("held")
        return scene

    def waits(name):
        async def wait(s):
            await s.read
            s.woken += name
            return s.woken

        return wait

    def settle(s):
        resolve(s.read, None)

    report = interleavings(program, {"a": [waits("a")], "b": [waits("b")], "c": [settle]})
    seen = {tuple(ended.value for ended in found.outcome.actions.values()) for found in report.outcomes}
    assert seen == {("a", "ab", None), ("ba", "b", None)}
    # Both begin before the settlement, in two orders, and go on in two; or one of the two does, and goes on before the
    # other begins or after; or neither.
    assert report.orders == 2 * 2 + 2 * 2 + 2


def test_a_cancelled_wait_goes_on_when_it_has_its_turn():
    async def program(ml):
        scene = await one_buffer(ml)
        scene.scopes, scene.woken, scene.read = [trio.CancelScope() for _ in "ab"], "", pending("held")
        return scene

    def waits(name, number):
        async def wait(s):
            with s.scopes[number]:
                await s.read
            s.woken += name
            return s.woken

        return wait

    def cancel(s):
        for scope in s.scopes:
            scope.cancel()
        return s.woken

    report = interleavings(program, {"a": [waits("a", 0)], "b": [waits("b", 1)], "c": [cancel]})
    seen = {tuple(ended.value for ended in found.outcome.actions.values()) for found in report.outcomes}
    assert seen == {("a", "ab", ""), ("ba", "b", "")}
    assert (report.orders, report.violation) == (10, None)


def test_contexts_that_actions_open_are_stepped_as_well():
    async def open_and_write(s):
        context = await s.ml.create_context(backend="numpy")
        buffer = await zeroed(context, [2])
        context.write_buffer(buffer, ONES)
        return context.statistics().queued_operations

    (found,) = interleavings(one_buffer, [open_and_write]).outcomes
    assert found.outcome.actions["open_and_write"].value == 1
    assert "device 2: write_buffer" in found.example


# --- what is wrong ---------------------------------------------------------------------------------------------------


def never_fulfilled(scene, outcome):
    assert outcome.actions["read"].state == "rejected"


def test_a_planted_violation_is_found_with_its_order_and_replayed():
    report = interleavings(one_buffer, [read, destroy], check=never_fulfilled)
    assert report.violation.kind == "check"
    assert report.violation.order == (
        "read",
        "device: read_buffer",
        "script: read_buffer",
        "destroy",
        "device: release",
    )
    assert report.violating_orders == 1
    assert report.orders == 5
    assert "4. destroy" in str(report)
    again = replay(one_buffer, [read, destroy], report.violation.order, check=never_fulfilled)
    assert isinstance(again, Violation)
    assert str(again) == str(report.violation)


def test_what_an_action_raises_that_is_no_refusal_of_the_api_is_a_violation():
    def is_settled(s):
        assert s.read.state != "pending", "too soon"

    def begin(s):
        s.read = read(s)

    report = interleavings(one_buffer, {"a": [begin], "b": [is_settled]})
    assert (report.violation.kind, report.violation.order) == ("action", ("a: begin", "b: is_settled"))
    assert "b: is_settled has raised AssertionError: too soon" in report.violation.message
    # And where b is before a there is no attribute; after the settlement all is well.
    assert (report.orders, report.violating_orders) == (4, 3)


def test_a_type_error_of_the_programs_own_is_no_refusal():
    def mistake(s):
        return len(3)

    assert interleavings(one_buffer, [mistake]).violation.kind == "action"
    assert interleavings(one_buffer, [destroy, write]).violation is None


@pytest.mark.parametrize("wait", [False, True], ids=["returned", "awaited"])
def test_a_promise_that_never_settles_is_a_hang(wait):
    def forgotten(s):
        return pending("forgotten")

    async def awaited(s):
        await pending("forgotten")

    report = interleavings(one_buffer, [write, awaited if wait else forgotten])
    assert report.violation.kind == "hang"
    assert ("awaited waits" if wait else "the promise of forgotten is pending") in report.violation.message
    assert report.violating_orders == report.orders == 2


def test_the_promise_of_a_context_that_lives_on_may_wait():
    assert interleavings(one_buffer, [lambda s: s.context.lost]).violation is None


def test_memory_that_stays_behind_is_a_leak():
    def allocate(s):
        """Have the device allocate memory for no buffer of the script's."""
        s.context.device.allocate(Storage(MLOperandDescriptor("float32", (2,))))

    report = interleavings(one_buffer, [allocate, destroy])
    assert report.violation.kind == "leak"
    assert "all buffers and graphs of device are destroyed, and it holds 1 buffers, 8 bytes" in report.violation.message
    assert "the block has been left, and device holds" in interleavings(one_buffer, [allocate]).violation.message


def test_a_failure_that_nobody_was_told_of_is_a_violation():
    def fails(*_arguments):
        raise RuntimeError("no memory")

    async def failing(ml):
        scene = await one_buffer(ml)
        scene.context.device.backend.write = fails
        return scene

    report = interleavings(failing, [write, destroy])
    assert report.violation.kind == "warning"
    assert "this was not reported" in report.violation.message
    told = interleavings(failing, [write, read])
    assert told.violation is None
    assert {type(found.outcome.actions["read"].error) for found in told.outcomes} == {UnknownError}


def test_other_warnings_are_passed_on():
    def deprecated(s):
        warnings.warn("old", FutureWarning, stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert interleavings(one_buffer, [deprecated]).violation is None
    assert [str(warning.message) for warning in caught] == ["old"]


# --- what is refused -------------------------------------------------------------------------------------------------


def test_more_orders_than_may_be_run_are_refused():
    with pytest.raises(TooManyOrdersError, match="most_orders=3 were run, and there are more") as caught:
        interleavings(one_buffer, [write, read, destroy], most_orders=3)
    assert caught.value.violation is None
    with pytest.raises(TooManyOrdersError, match="the first violation until then: check"):
        interleavings(one_buffer, [read, destroy, write], most_orders=2, check=lambda *_: 1 / 0)


def test_a_program_that_does_otherwise_the_second_time_is_refused():
    calls = []

    def sometimes(s):
        calls.append(1)
        if len(calls) % 2:
            s.context.write_buffer(s.x, ONES)

    with pytest.raises(RuntimeError, match="have led to another state than before"):
        interleavings(one_buffer, [write, sometimes, write])


def test_an_action_that_resumes_a_timeline_is_refused():
    with pytest.raises(RuntimeError, match="'action 1' has resumed a timeline"):
        interleavings(one_buffer, [lambda s: s.context.device_timeline.resume()])


def test_an_order_that_is_not_possible_is_refused():
    with pytest.raises(
        ValueError, match="after 1 steps 'script: read_buffer' is not possible; possible: device: read_b"
    ):
        replay(one_buffer, [read], ("read", "script: read_buffer"))
    with pytest.raises(ValueError, match="after 1 steps the order ends; possible: device: read_buffer"):
        replay(one_buffer, [read], ("read",))
    assert isinstance(replay(one_buffer, [read], ["read", "device: read_buffer", "script: read_buffer"]), Outcome)


@pytest.mark.parametrize(
    "action", [3, lambda: None, lambda _, __: None], ids=["a number", "no argument", "two arguments"]
)
def test_what_is_no_action_is_refused(action):
    with pytest.raises(TypeError, match="is no action: a function of the scene"):
        interleavings(one_buffer, [action])


@pytest.mark.parametrize("name", ["device", "device 2", "script"])
def test_an_agent_with_the_name_of_a_timeline_is_refused(name):
    with pytest.raises(ValueError, match="is what steps of timelines are called"):
        interleavings(one_buffer, {name: [write]})


async def test_it_is_no_task_of_trios():
    with pytest.raises(RuntimeError, match=r"interleavings\(\) runs trio itself: call it outside"):
        interleavings(one_buffer, [write])


def test_what_the_program_raises_comes_out():
    async def program(ml):
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        interleavings(program, [write])
