"""Checks that a context has released everything."""

from webnn_py import MLContext


def assert_nothing_lives(context: MLContext) -> None:
    """Check that no memory lives in a context, and that nothing is queued."""
    statistics = context.statistics()
    assert (statistics.live_buffers, statistics.live_bytes, statistics.queued_operations) == (0, 0, 0)


def assert_ended(context: MLContext) -> None:
    """Check that a context is lost, that its timeline has ended, and that nothing lives in it."""
    assert_nothing_lives(context)
    assert context.device_timeline.ended
    assert context.lost.state == "fulfilled"
