"""Tools enqueue operations of their own by ``context.enqueue()``, and add graphs by ``context.add_graph()``."""

import numpy as np
import pytest

from spec_tests.support.buffers import zeroed
from spec_tests.support.computing import run_graph
from spec_tests.support.drawing import build_add_one
from spec_tests.support.scene import F32, ONES
from webnn_py import InvalidStateError, NotFoundError, UnknownError
from webnn_py.core.in_flight import done


def fail():
    raise KeyError("no such thing")


def not_found(kind, error):
    return NotFoundError(f"{kind}(): {error}")


async def test_work_runs_in_its_turn_and_its_value_is_that_of_the_promise(context):
    buffer = await zeroed(context, [2])
    seen = []
    context.device_timeline.pause()
    context.write_buffer(buffer, ONES)
    promise = context.enqueue("count", lambda: seen.append(1) or len(seen))
    assert (seen, promise.state) == ([], "pending")
    context.device_timeline.resume()
    assert await promise == 1


async def test_what_work_raises_is_an_unknown_error_or_what_the_tool_makes_of_it(context):
    with pytest.raises(UnknownError, match=r"^find\(\) failed on the device: 'no such thing'"):
        await context.enqueue("find", fail)
    with pytest.raises(NotFoundError, match=r"^find\(\): 'no such thing'$"):
        await context.enqueue("find", fail, failed=not_found)


async def test_an_added_graph_runs_as_one_that_was_built(context):
    built = await build_add_one(context, [2], keep_source=True)

    async def work(handle):
        await done(context.device.compile(built.source, handle))
        return built.input_descriptors, built.output_descriptors, built.operator_count

    added = await context.add_graph("copy", work)
    assert repr(added) == repr(built)
    assert added.source is None
    np.testing.assert_equal(*[await run_graph(context, graph, {"x": ONES}) for graph in (built, added)])
    before = context.statistics().live_bytes
    added.destroy()
    await context.drain()
    assert context.statistics().live_bytes <= before


async def test_an_added_graph_whose_work_fails_or_whose_context_is_lost_leaves_nothing(context):
    async def work(_handle):
        fail()

    with pytest.raises(NotFoundError, match=r"^copy\(\): 'no such thing'$"):
        await context.add_graph("copy", work, failed=not_found)
    context.destroy()
    for call in (lambda: context.add_graph("copy", work), lambda: context.enqueue("find", fail)):
        with pytest.raises(InvalidStateError, match="the context is lost"):
            await call()
    with pytest.raises(InvalidStateError):
        await context.create_buffer(**F32)
    await context.device_timeline.wait_ended()
    assert context.statistics().live_bytes == 0
