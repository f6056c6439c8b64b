"""``ReleaseQueue``: enqueues the release of buffers and graphs that were destroyed or collected as garbage."""

from collections import deque
from contextlib import suppress
from functools import partial

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.device.backend import Storage
from webnn_py.core.device.device import Device, GraphHandle
from webnn_py.core.timelines.device_timeline import DeviceOperation, DeviceTimeline, Work


class ReleaseQueue:
    """Puts a context's releases onto its device timeline."""

    def __init__(self, device: Device, timeline: DeviceTimeline) -> None:
        self._device = device
        self._timeline = timeline
        self._token = trio.lowlevel.current_trio_token()
        self._collected: deque[Storage | GraphHandle] = deque()

    def release(self, handle: Storage | GraphHandle) -> None:
        """Enqueue the release of a buffer or graph that was destroyed."""
        self._timeline.enqueue(self._operation(handle))

    def release_from_any_thread(self, handle: Storage | GraphHandle) -> None:
        """Release a buffer or graph that was collected as garbage: finalizers run in any thread, at any time."""
        self._collected.append(handle)
        with suppress(trio.RunFinishedError):  # the run is over, and the device's memory went with it
            self._token.run_sync_soon(self.release_collected)

    @enable_ki_protection
    def release_collected(self) -> None:
        """Enqueue the releases that :meth:`release_from_any_thread` has collected so far."""
        while self._collected:
            handle = self._collected.popleft()
            if self._timeline.ended:
                self._work(handle)()
            else:
                self._timeline.enqueue(self._operation(handle, is_collected=True))

    def _operation(self, handle: Storage | GraphHandle, *, is_collected: bool = False) -> DeviceOperation:
        return DeviceOperation("release", self._work(handle), abortable=False, is_collected=is_collected)

    def _work(self, handle: Storage | GraphHandle) -> Work:
        if isinstance(handle, Storage):
            return partial(self._device.release, handle)
        return partial(self._device.release_graph, handle)
