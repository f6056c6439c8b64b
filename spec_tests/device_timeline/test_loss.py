"""After the loss of a device a new context works, and unread failures do not warn."""

import warnings

import numpy as np
import pytest

from spec_tests.support.buffers import zeroed
from spec_tests.support.drawing import build_add_number, run


@pytest.fixture(scope="module")
def options(backend):
    """Return options for a device of its own, which a test may lose."""
    return {"backend": backend}


async def test_after_a_loss_a_new_context_works(ml, device, context, options):
    await device.lose()
    await context.lost
    fresh = await ml.create_context(**options)
    assert await run(fresh, await build_add_number(fresh, 1, [2]), x=[1, 2]) == {"y": [2, 3]}


async def test_an_unread_failure_before_the_loss_warns_of_nothing(device, context):
    buffer = await zeroed(context, [2])
    device.failing["write"] = RuntimeError("no answer")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        context.write_buffer(buffer, np.ones(2, np.float32))
        await context.drain()
        await device.lose()
        await context.lost
        await context.drain()
        del buffer
    assert [str(warning.message) for warning in caught] == []
