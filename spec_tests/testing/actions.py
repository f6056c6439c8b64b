"""Scenes of interleavings, and actions on them."""

from types import SimpleNamespace

import numpy as np

from spec_tests.support.buffers import zeroed

ONES = np.ones(2, np.float32)


async def one_buffer(ml):
    context = await ml.create_context(backend="numpy")
    return SimpleNamespace(ml=ml, context=context, x=await zeroed(context, [2]))


def write(s):
    s.context.write_buffer(s.x, ONES)


def read(s):
    return s.context.read_buffer(s.x)


def create(s):
    return s.context.create_buffer(data_type="float32", shape=[2])


def dispatch(s):
    s.context.dispatch(s.graph, {"x": s.x}, {"y": s.y})


def destroy(s):
    s.x.destroy()


def destroy_context(s):
    s.context.destroy()
