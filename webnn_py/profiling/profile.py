"""``profile()``: runs a graph by itself and times its kernels."""

from __future__ import annotations

from collections.abc import Mapping

from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import converted, unsigned_long
from webnn_py.core.device.backend import TimesKernels
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.profiling.feeds import byte_length, checked_feeds
from webnn_py.profiling.measuring import measure
from webnn_py.profiling.report import GraphProfile


@enable_ki_protection
def profile(graph: MLGraph, feeds: Mapping[str, object], *, repeat: int = 10) -> MLPromise[GraphProfile]:
    """Run a graph by itself and report where the time goes, kernel by kernel.

    The profile has its own buffers and releases them. Nothing else runs on the context during that time.

    Args:
        graph: the graph.
        feeds: the data of each input, by name: exactly its bytes, see :meth:`webnn_py.MLContext.write_buffer`.
        repeat: how many runs are timed, and how many run without timings after a warm-up of half a second or more; one
            more of each comes first and does not count. Times are the median of the faster half.

    Returns:
        A promise of the profile, rejected with ``InvalidStateError`` when the context is lost and ``UnknownError`` when
        the device fails.

    Raises:
        TypeError: ``feeds`` do not match the graph's inputs, or ``repeat`` is below 1.
        InvalidStateError: the graph is destroyed, or the context is lost.
        NotSupportedError: the device does not time kernels.
    """
    context = graph.context
    times = converted("profile(): repeat", unsigned_long, repeat)
    if times < 1:
        raise TypeError("profile(): repeat is 0; it must be at least 1")
    graph.check_usable("profile")
    if not isinstance(context.device.backend, TimesKernels):
        raise NotSupportedError(
            f"profile(): {context.backend} does not time kernels; the device numpy does, and wgpu where the adapter "
            "has timestamp-query"
        )
    given = checked_feeds("profile", feeds, graph.input_descriptors)

    async def work() -> GraphProfile:
        measured = await measure(context.device, graph.handle, given, graph.output_descriptors, times)
        return GraphProfile.from_measurement(str(context.backend), measured)

    return context.enqueue("profile", work, held_bytes=byte_length(given))
