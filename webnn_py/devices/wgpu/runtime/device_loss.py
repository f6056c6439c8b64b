"""Noticing that a device is lost.

Engines keep the device-lost callback for themselves and only log it. So their log is what wakes us, and a
device that really is lost says so when it is asked; calls that fail look at once. The callback comes only when
something uses the device: a thread asks devices now and then, lest the loss of one that is idle go unnoticed.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final

import trio
import wgpu

from webnn_py.devices.wgpu.engines import engine_of

IDLE_SECONDS: Final = 0.5
"""How often devices are asked that nothing may be using."""


class DeviceLossWatch:
    """Reports, once and in the trio thread, that a device is lost."""

    def __init__(self, device: wgpu.GPUDevice, say: Callable[[str], None]) -> None:
        self._device: wgpu.GPUDevice | None = device
        self._say = say
        self._token = trio.lowlevel.current_trio_token()
        self._asking = threading.RLock()
        engine_of(device).log.addHandler(_LISTENER)
        _LISTENER.add(self)

    def look(self, reason: str = "") -> None:
        """Ask the device; call from the trio thread."""
        if self._is_lost():
            device, say = self._device, self._say
            self.stop()
            _LISTENER.wake(reason, device)  # other contexts may be on it, too
            say(reason or "the device was destroyed or its driver failed")

    def _is_lost(self) -> bool:
        with self._asking:
            return self._device is not None and is_lost(self._device)

    def look_soon(self, reason: str) -> None:
        """Have the trio thread look; call from any."""
        try:
            self._token.run_sync_soon(self.look, reason)
        except trio.RunFinishedError:
            _LISTENER.discard(self)

    def stop(self) -> None:
        """Report nothing more, and drop the references to the device and the callback."""
        with self._asking:
            self._device = None
        self._say = to_nobody
        _LISTENER.discard(self)


def is_lost(device: wgpu.GPUDevice) -> bool:
    """Return whether a device is lost. This takes some µs."""
    return engine_of(device).is_lost(device)


def to_nobody(_reason: str) -> None:
    """Ignore the loss of a device."""


class _Listener(logging.Handler):
    """Hears what the engine logs when some device is lost, and has a thread that asks all devices."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._watches: weakref.WeakSet[DeviceLossWatch] = weakref.WeakSet()
        self._changing = threading.RLock()
        self._thread: threading.Thread | None = None

    def add(self, watch: DeviceLossWatch) -> None:
        with self._changing:
            self._watches.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._ask_again_and_again, name="webnn-loss", daemon=True)
                self._thread.start()

    def discard(self, watch: DeviceLossWatch) -> None:
        with self._changing:
            self._watches.discard(watch)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "device was lost" in text.lower():
            self.wake(" ".join(text.split()))

    def wake(self, reason: str, device: wgpu.GPUDevice | None = None) -> None:
        """Have the watches of a device look, or all of them; call from any thread."""
        for watch in self._all():
            if device is None or watch._device is device:
                watch.look_soon(reason)

    def _all(self) -> list[DeviceLossWatch]:
        with self._changing:
            return list(self._watches)

    def _ask_again_and_again(self) -> None:
        """The body of the thread, which ends with the last device."""
        while True:
            time.sleep(IDLE_SECONDS)
            for watch in self._all():
                if watch._is_lost():
                    watch.look_soon("")  # the trio thread asks again before it says anything
                del watch
            with self._changing:
                if not self._watches:
                    self._thread = None
                    return


_LISTENER: Final = _Listener()
