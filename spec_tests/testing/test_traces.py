"""The trace of a violation: of the same order, run once more."""

import pytest

from spec_tests.testing.actions import destroy, one_buffer, read
from webnn_py.testing import interleavings


def test_a_violation_has_the_trace_of_its_order():
    def answered(scene, outcome):
        assert outcome.actions["read"].state == "fulfilled"

    report = interleavings(one_buffer, [read, destroy], check=answered)
    trace = report.violation.trace
    enqueued = [event.operation for event in trace.events if event.what == "enqueued"][-2:]
    assert [operation.kind for operation in enqueued] == ["read_buffer", "release"]
    assert [operation.source.function for operation in enqueued] == ["read", "destroy"]
    (rejected,) = [event for event in trace.events if event.what == "rejected"]
    assert (rejected.cause, rejected.caused_by) == ("destroy()", enqueued[-1].number)
    assert "Trace" not in f"{report.violation}{report.violation!r}"
    assert report.runs == interleavings(one_buffer, [read, destroy]).runs


def test_a_violation_that_its_second_run_does_not_have_is_refused():
    runs = []

    def fails_once(s):
        runs.append(s)
        assert len(runs) > 1

    with pytest.raises(RuntimeError, match="have led to another state than before"):
        interleavings(one_buffer, [fails_once])


def test_an_order_that_cannot_be_run_again_for_its_trace_is_refused():
    runs = []

    def once(s):
        runs.append(s)
        return read(s) if len(runs) == 1 else None

    def never(scene, outcome):
        raise AssertionError("always")

    with pytest.raises(RuntimeError, match="have led to another state than before"):
        interleavings(one_buffer, [once], check=never)
