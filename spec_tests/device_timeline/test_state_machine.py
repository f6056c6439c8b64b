"""Random events of a script, its tests and a device happen as in a simple model of the timelines.

They are played on a fake device, which runs everything at once and knows who touches freed memory, and on the real
device of each backend. What is compared is the same: every promise's state, value and error; the order of the
device's steps, and of what settles on the script timeline, one entry at a time; what is read, by the awaiting tasks
and into ``out``; ``statistics()``; what is refused.

Not compared on a real device is how it is used after its memory was freed: numpy does not tell, and WebGPU refuses,
which is seen as a failure that the model has not. Nor is what fails first on a GPU that is lost before the script
knows (see ``Player.let_it_be_known``). Failures of a step, and steps that wait, are made before the real step begins.
"""

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.fake_device import FakeDevice
from spec_tests.support.player import Player
from spec_tests.support.watched_device import WatchedDevice, context_on
from webnn_py import open_ml

pytestmark = pytest.mark.filterwarnings("ignore:.*(never awaited|not reported):RuntimeWarning")


class SpoilingDevice(FakeDevice):
    """A fake device that spoils memory that is freed and notes whoever touches it."""

    reason = "the device is gone"

    def __init__(self):
        super().__init__()
        self.freed = []
        self.touched_after_free = []

    def free(self, data):
        super().free(data)
        data[...] = 77
        self.freed.append(data)

    def _watch(self, name, storages):
        if any(s.memory is None or any(s.data is freed for freed in self.freed) for s in storages):
            self.touched_after_free.append(name)

    def write(self, storage, data):
        self._watch("write", [storage])
        return super().write(storage, data)

    def read(self, storage):
        self._watch("read", [storage])
        return super().read(storage)

    def dispatch(self, compiled, inputs, outputs):
        self._watch("dispatch", [*inputs.values(), *outputs.values()])
        return super().dispatch(compiled, inputs, outputs)

    async def quiet(self):
        await wait_all_tasks_blocked()

    async def lose(self):
        self.lost(self.reason)


OFTEN = ["write_buffer", "dispatch", "dispatch", "read_buffer", "read_buffer", "turn", "turn", "fail"]
SOMETIMES = ["create_buffer", "build", "destroy_buffer", "destroy_graph", "wait_for_any", "cancel_waiter"]
TIME = ["block", "unblock", "unblock", "pause", "resume", "resume", "step", "step"]
SCRIPT_TIME = ["pause_script", "resume_script", "resume_script", "step_script"]
SELDOM = ["destroy_context", "device_lost"]

names = st.sampled_from([*OFTEN * 8, *[*SOMETIMES, *TIME, *SCRIPT_TIME] * 2, *SELDOM])
actions = st.tuples(names, st.integers(0, 9), st.integers(0, 99))
sequences = st.integers(1, 80).flatmap(lambda count: st.lists(actions, min_size=count, max_size=count))


async def open_fake(ml):
    device = SpoilingDevice()
    return await context_on(ml, device), device


async def play(chosen, open_context):
    async with trio.open_nursery() as nursery:
        async with open_ml() as ml:
            context, device = await open_context(ml)
            player = Player(ml, context, device, nursery)
            try:
                await player.play(chosen)
            finally:
                device.let_go()
        player.model.lose("the open_ml() block has been left")
        player.model.permits = player.model.script_permits = None
        player.model.turn()
        player.compare()
    assert player.model.statistics[:4] == (0, 0, 0, 0)
    for asked in [*player.created, *player.built, *player.others]:
        asked.check()
        assert len(asked.heard) >= len(asked.waiters), "a waiter was not told"
    assert getattr(device, "touched_after_free", []) == []


@settings(max_examples=settings().max_examples * 5 // 2)
@given(sequences)
def test_every_sequence_of_events_goes_as_the_model_goes(chosen):
    trio.run(play, chosen, open_fake)


@given(chosen=sequences)
@example(chosen=[("block", 4, 0), ("build", 0, 0), ("turn", 0, 0), ("destroy_context", 0, 0)])
def test_every_sequence_of_events_goes_as_the_model_goes_on_a_real_device(backend, options, chosen):
    loses_it = any(name == "device_lost" for name, _, _ in chosen)

    async def open_real(ml):
        context = await ml.create_context(**({"backend": backend} if loses_it else options))
        return context, WatchedDevice(context)

    trio.run(play, chosen, open_real)
