"""Fixtures for steps of a device that fail."""

import pytest
import trio


@pytest.fixture(params=["at once", "awaited"])
def begin(request, device):
    """Make the next run of a step begin at once, or as one that is awaited."""

    def begin_next(step):
        if request.param == "awaited":
            device.waiting[step] = trio.Event()
            device.waiting[step].set()

    return begin_next


@pytest.fixture
def fail(device, begin):
    """Make the next run of a step fail, at once or while it is awaited."""

    def fail_next(step, error):
        device.failing[step] = error
        begin(step)

    return fail_next
