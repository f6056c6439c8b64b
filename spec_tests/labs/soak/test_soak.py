"""The soak does what it says for an episode of each kind, and finds what is wrong."""

from functools import partial

import attrs
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


def test_growth_is_a_fault(counts, capsys):
    flat = soak.Sample(resident=200.0, objects=70_000, native=3, threads=8)
    warm = partial(attrs.evolve, flat, resident=100.0)
    soak.check_growth([warm()] * 10 + [flat] * 30, counts)
    assert not counts.faults
    soak.check_growth([attrs.evolve(flat, objects=70_000 + 600 * number) for number in range(40)], counts)
    assert counts.faults == ["objects has grown from 78700 to 90700"]
    natives = [attrs.evolve(flat, native=3 * number) for number in range(40)]
    soak.check_growth(natives, Counts({"lost in the middle": 40}, faults := []))
    assert not faults, "the library keeps something of each request that a lost device refuses"
    soak.check_growth(natives, Counts({"lost in the middle": 2}, faults))
    assert faults == ["native has grown from 44 to 104"]
    assert "threads: 8 in the second quarter, 8 in the last" in capsys.readouterr().out
