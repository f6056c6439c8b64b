"""Fixtures of the device timelines' tests."""

import pytest

from webnn_py.core.timelines import timeline


@pytest.fixture
def set_clock(monkeypatch):
    """A function that gives timelines another clock."""
    return lambda clock: monkeypatch.setattr(timeline, "perf_counter", clock)
