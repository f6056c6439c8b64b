"""``Releases``: how a context lets go of buffers and graphs, destroyed or collected as garbage."""

from collections import deque
from contextlib import suppress
from functools import partial

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.device.backend import Storage
from webnn_py.device.device import Device, GraphHandle
from webnn_py.timelines.device_timeline import DeviceOperation, DeviceTimeline, Work


class Releases:
    """Puts a context's releases onto its device timeline."""

    def __init__(self, device: Device, timeline: DeviceTimeline) -> None:
        self._device = device
        self._timeline = timeline
        self._token = trio.lowlevel.current_trio_token()
        self._collected: deque[Storage | GraphHandle] = deque()

    def release(self, thing: Storage | GraphHandle) -> None:
        """Release what was destroyed."""
        self._timeline.enqueue(self._operation(thing))

    def release_from_anywhere(self, thing: Storage | GraphHandle) -> None:
        """Release what was collected as garbage: a finaliser may run in any thread at any time."""
        self._collected.append(thing)
        with suppress(trio.RunFinishedError):  # the run is over and took the memory with it
            self._token.run_sync_soon(self.release_collected)

    @enable_ki_protection
    def release_collected(self) -> None:
        """Release what was collected so far."""
        while self._collected:
            thing = self._collected.popleft()
            if self._timeline.ended:
                self._work(thing)()
            else:
                operation = self._operation(thing)
                operation.mark_collected()
                self._timeline.enqueue(operation)

    def _operation(self, thing: Storage | GraphHandle) -> DeviceOperation:
        return DeviceOperation("release", self._work(thing), abortable=False)

    def _work(self, thing: Storage | GraphHandle) -> Work:
        if isinstance(thing, Storage):
            return partial(self._device.release, thing)
        return partial(self._device.release_graph, thing)
