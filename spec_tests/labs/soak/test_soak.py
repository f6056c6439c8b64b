"""The soak does what it says for an episode of each kind, and finds what is wrong."""

from functools import partial

import numpy as np
import pytest
import trio

from spec_tests.labs.soak import __main__ as soak
from spec_tests.labs.soak.actions import Counts, call_badly, compute
from spec_tests.support.watched_device import context_on
from webnn_py.core.reference import ReferenceBackend

SEED = [7, 16]


@pytest.fixture
def counts():
    return Counts()


@pytest.mark.parametrize("kind", ["quiet", "ended"])
def test_an_episode_leaves_nothing_behind(counts, kind, caplog):
    caplog.set_level("CRITICAL", logger="wgpu")  # it loses devices
    contexts = []
    trio.run(partial(soak.episode, kind, SEED, counts, contexts, tasks=1))
    soak.check_books(kind, contexts, counts)
    assert not counts.faults
    assert len(contexts) == soak.CONTEXTS * len(soak.BACKENDS)
    assert sum(counts.done.values()) > len(contexts)


class SlightlyOff(ReferenceBackend):
    def read(self, storage):
        return super().read(storage) + np.float32(0.01)


async def test_a_wrong_result_is_a_fault(ml, rng, counts):
    await compute(await context_on(ml, SlightlyOff()), rng, counts)
    assert "off" in counts.faults[0]


async def test_a_bad_call_that_is_not_refused_is_a_fault(context, rng, counts, monkeypatch):
    await call_badly(context, rng, counts)
    assert counts.done == {"refused": 13}
    assert not counts.faults
    monkeypatch.setattr(type(context), "dispatch", lambda *_: None)
    await call_badly(context, rng, counts)
    assert len(counts.faults) == 3


async def test_a_buffer_that_is_left_is_a_fault(context, counts):
    buffer = await context.create_buffer(data_type="float32", shape=[3])
    soak.check_books("quiet", [context], counts)
    assert "left: (1, 12, 0, 0)" in counts.faults[0]
    assert "lost is pending" in counts.faults[1]
    buffer.destroy()
