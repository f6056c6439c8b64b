"""Sessions are traced as what they do on the timelines."""

import numpy as np

from spec_tests.support.onnx_programs import program
from spec_tests.support.trace_format import check_document, of_phase
from webnn_py.runtime import Environment, blocking

KIND = ("float32", [2])
X = {"x": np.ones(2, np.float32)}


def doubled():
    return program([("Add", ["x", "x"], ["y"], {})], {"x": KIND}, {"y": KIND})


def finished(trace):
    return {event.kind for event in trace.events if event.what == "finished"}


async def test_an_environment_is_traced_from_its_device_to_its_end(ml, options):
    environment = Environment(ml, **options)
    with environment.trace() as trace:
        session = await environment.create_session(doubled())
        await session.run(X)
        await environment.close()
    assert {"build", "create_buffer", "write_buffer", "dispatch", "read_buffer", "release"} <= finished(trace)
    check_document(trace.document())
    call = next(event for event in trace.events if event.what == "enqueued" and event.kind == "dispatch")
    assert call.operation.source.function == "test_an_environment_is_traced_from_its_device_to_its_end"


def test_a_blocking_environment_is_traced_from_another_thread():
    with blocking.Environment("numpy") as environment, environment.trace() as trace:
        environment.create_session(doubled()).run(X)
    assert {"build", "dispatch", "read_buffer"} <= finished(trace)
    check_document(trace.document())


def test_a_trace_ends_though_its_environment_was_closed_before():
    environment = blocking.Environment("numpy")
    with environment.trace() as trace:
        environment.create_session(doubled()).run(X)
        environment.close()
    count = len(trace.events)
    assert "release" in finished(trace)
    with blocking.Environment("numpy") as another:
        another.create_session(doubled()).run(X)
    assert len(trace.events) == count
    assert of_phase(check_document(trace.document()), "X", "call")
