"""Noticing that a device is lost.

wgpu-py keeps the device-lost callback for itself and only logs what it is told. So its log is what wakes us, and a
device that really is lost refuses the smallest request; calls that fail look at once.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Final

import trio
import wgpu

from webnn_py.device.on_wgpu.native import ask

LOG: Final = logging.getLogger("wgpu")


class LossWatch:
    """Tells, once and in the trio thread, that a device is lost."""

    def __init__(self, device: wgpu.GPUDevice, say: Callable[[str], None]) -> None:
        self._device = device
        self._say = say
        self._token = trio.lowlevel.current_trio_token()
        self._stopped = False
        _LISTENER.watches.add(self)

    def look(self, reason: str = "") -> None:
        """Ask the device for the smallest buffer; call from the trio thread."""
        if self._stopped:
            return
        try:
            ask(self._device)
        except wgpu.GPUError as error:
            if "lost" in str(error).lower():
                say = self._say
                self.stop()
                say(reason or "the device was destroyed or its driver failed")

    def look_soon(self, reason: str) -> None:
        """The same from any thread."""
        try:
            self._token.run_sync_soon(self.look, reason)
        except trio.RunFinishedError:
            self.stop()

    def stop(self) -> None:
        """Say nothing more, and let go of whom it was said to."""
        self._stopped = True
        self._say = to_nobody
        _LISTENER.watches.discard(self)


def to_nobody(_reason: str) -> None:
    """What says that a device is lost, when nobody needs to hear it."""


class _Listener(logging.Handler):
    """Hears what wgpu-py logs when some device is lost."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.watches: weakref.WeakSet[LossWatch] = weakref.WeakSet()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "device was lost" in text.lower():
            for watch in list(self.watches):
                watch.look_soon(" ".join(text.split()))


_LISTENER: Final = _Listener()
LOG.addHandler(_LISTENER)
