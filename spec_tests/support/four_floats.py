"""Buffers of four float32 numbers."""

import numpy as np

from spec_tests.support.drawing import build_add_one

ONES = np.ones(4, np.float32)


async def buffers(context, count, **flags):
    options = {"readable": True, "writable": True, **flags}
    return [await context.create_buffer(data_type="float32", shape=[4], **options) for _ in range(count)]


async def check_add_one(context, graph=None):
    """A graph of ``build_add_one()``, which is built if none is given, computes 2 of 1."""
    graph = await build_add_one(context, [4]) if graph is None else graph
    x, y = await buffers(context, 2)
    context.write_buffer(x, ONES)
    context.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await context.read_buffer(y), 2 * ONES)
