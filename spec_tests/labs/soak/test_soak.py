"""The soak does what it says for an episode of each kind, and finds what is wrong."""

import numpy as np
import pytest
import trio

from spec_tests.labs.soak import __main__ as soak
from spec_tests.labs.soak.actions import Counts, call_badly, compute
from spec_tests.labs.soak.programs import Program

SEED = [7, 16]


@pytest.fixture
def counts():
    return Counts()


@pytest.mark.parametrize("kind", ["quiet", "ended"])
def test_an_episode_leaves_nothing_behind(counts, kind, caplog, monkeypatch):
    caplog.set_level("CRITICAL", logger="wgpu")  # it loses devices
    monkeypatch.setattr(soak, "TASKS", 1)
    contexts = []
    trio.run(soak.episode, kind, SEED, counts, contexts)
    soak.check_books(kind, contexts, counts)
    assert not counts.faults
    assert len(contexts) == soak.CONTEXTS * len(soak.BACKENDS)
    assert sum(counts.done.values()) > len(contexts)


async def test_a_wrong_result_is_a_fault(context, rng, counts, monkeypatch):
    expected = Program.expected
    monkeypatch.setattr(Program, "expected", lambda program, x: expected(program, x) + np.float32(0.01))
    await compute(context, rng, counts)
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
