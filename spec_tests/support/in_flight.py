"""Operations held in flight: before their device step, during it, or after it but before the script is told."""

import pytest
import trio

from spec_tests.support.watched_device import WatchedDevice
from webnn_py import ML, MLContext

WAITING, RUNNING, SAID = "before the device step", "during the device step", "after the device step"
STAGES = (WAITING, RUNNING, SAID)


class InFlight:
    """Brings one operation to a stage and holds it there, until it may land."""

    def __init__(self, ml: ML, context: MLContext, device: WatchedDevice, stage: str):
        self._ml, self._context, self._device = ml, context, device
        self.stage = stage
        self._ready = trio.Event()

    async def start(self, step, call):
        """Call, bring what it enqueues, the device's ``step``, to the stage, and return what the call returned."""
        await self._context.drain()
        self._device.log.clear()
        if self.stage == WAITING:
            self._context.device_timeline.pause()
        elif self.stage == RUNNING:
            self._device.waiting[step] = self._ready
        else:
            self._ml.script_timeline.pause()
        result = call()
        await self._device.quiet()
        assert self._device.log == ([] if self.stage == WAITING else [step]), "the operation is not at the stage"
        return result

    async def land(self):
        """Let everything run to its end."""
        self._ready.set()
        self._context.device_timeline.resume()
        self._ml.script_timeline.resume()
        await self._context.drain()


def stages(*chosen):
    """Parametrise a test with stages."""
    return pytest.mark.parametrize("stage", chosen)
