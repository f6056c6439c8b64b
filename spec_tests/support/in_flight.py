"""Operations held in flight: before their device step, during it, or after it but before the script is told."""

import pytest
import trio
import trio.testing

from spec_tests.support.fake_device import FakeDevice
from webnn_py import ML, MLContext

WAITING, RUNNING, SAID = "before the device step", "during the device step", "after the device step"
STAGES = (WAITING, RUNNING, SAID)


class InFlight:
    """Brings one operation to a stage and holds it there, until it may land."""

    def __init__(self, ml: ML, context: MLContext, fake: FakeDevice, stage: str):
        self._ml, self._context, self._fake = ml, context, fake
        self.stage = stage
        self._ready = trio.Event()

    async def start(self, step, call):
        """Call, bring what it enqueues, the device's ``step``, to the stage, and return what the call returned."""
        await self._context.drain()
        self._fake.log.clear()
        if self.stage == WAITING:
            self._context.device_timeline.pause()
        elif self.stage == RUNNING:
            self._fake.waiting[step] = self._ready
        else:
            self._ml.script_timeline.pause()
        result = call()
        await trio.testing.wait_all_tasks_blocked()
        assert self._fake.log == ([] if self.stage == WAITING else [step]), "the operation is not at the stage"
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
