"""A trace has kernels where they are asked for, on devices that time them."""

from time import perf_counter_ns

import pytest

from spec_tests.support.trace_format import check_document, of_phase
from webnn_py import tracing
from webnn_py.core.device.backend import KernelTiming


@pytest.mark.parametrize("clock", ["gpu", "host"])
async def test_kernels_lie_within_their_dispatch(ml, context, program, clock):
    graph, x, y = program
    backend = context.device.backend
    dispatch = backend.dispatch

    def timed(compiled, inputs, outputs):
        begin = perf_counter_ns()
        pending = dispatch(compiled, inputs, outputs)
        since = begin if clock == "host" else 0
        timings = [
            KernelTiming("add", ("add",), since, 1000, 8, clock),
            KernelTiming("copy", (), since + 1000, 10**12, 4, clock),  # more than there is room for
        ]

        async def later():
            if pending is not None:
                await pending
            return timings

        return later() if clock == "gpu" or pending is not None else timings

    backend.dispatch_timed = timed
    with tracing.trace(ml, kernels=True) as trace:
        context.dispatch(graph, {"x": x}, {"y": y})
        result = await context.read_buffer(y)
    del backend.dispatch_timed
    context.dispatch(graph, {"x": x}, {"y": y})  # which is timed no more

    assert result.tolist() == [1]
    assert [event.kernel.name for event in trace.events if event.what == "kernel"] == ["add", "copy"]
    events = check_document(trace.document())
    (operation,) = [event for event in of_phase(events, "X", "operation") if event["name"] == "dispatch"]
    kernels = of_phase(events, "X", "kernel")
    assert [event["args"]["operators"] for event in kernels] == [["add"], []]
    for kernel in kernels:
        assert operation["ts"] <= kernel["ts"] + 0.001
        assert kernel["ts"] + kernel["dur"] <= operation["ts"] + operation["dur"] + 0.001
    assert kernels[1]["args"]["measured"] == 10**9
    assert kernels[0]["args"]["clock"] == clock


async def test_without_kernels_dispatches_are_not_timed(ml, context, program):
    graph, x, y = program
    context.device.backend.dispatch_timed = pytest.fail
    with tracing.trace(ml):
        context.dispatch(graph, {"x": x}, {"y": y})
        assert (await context.read_buffer(y)).tolist() == [1]
