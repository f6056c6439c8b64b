"""Ctrl-C ends ``webnn-py run`` at once, and what was traced until then is saved."""

import json
import signal

import attrs
import pytest

from spec_tests.support.stand_ins import noted
from spec_tests.support.trace_format import check_document, of_phase
from webnn_py import cli
from webnn_py.devices.numpy import backend

INTERRUPTED = 130

SOON = 3
"""So many calls of a step may be begun behind an interrupt: each gives way for a turn, and the end takes some turns."""


def interrupt_at_call(monkeypatch, of, name, number):
    """Have Ctrl-C pressed within the call of a method, the so-and-so-many-th; returns a list of its calls."""

    def interrupt(*_, **__):
        if len(calls) + 1 == number:
            signal.raise_signal(signal.SIGINT)

    calls = noted(monkeypatch, of, name, interrupt)
    return calls


def operations(path):
    events = check_document(json.loads(path.read_text(encoding="utf-8")))
    return [event["name"] for event in of_phase(events, "X", "operation")]


@attrs.frozen
class Case:
    """Ctrl-C within the so-and-so-many-th call of a step of the device, without a trace or with one."""

    step: str
    number: int
    traced_step: str
    traced_number: int
    options: list[str]
    recorded: dict[str, int]


CASES = {
    "building": Case("compile", 1, "compile", 1, [], {"build": 1}),
    "running": Case("dispatch", 4, "dispatch_timed", 4, ["--repeat", "99"], {"write_buffer": 4, "dispatch": 4}),
    "profiling": Case("dispatch_timed", 3, "dispatch_timed", 5, ["--profile"], {"dispatch": 2, "profile": 1}),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.fixture
def run(model, monkeypatch, capsys):
    """Run the model until Ctrl-C is pressed, and return how often the step was called."""
    monkeypatch.setattr(backend, "THREAD_SECONDS", 0)  # as with a larger model: steps wait

    def call(step, number, *options):
        calls = interrupt_at_call(monkeypatch, backend.NumpyBackend, step, number)
        assert cli.main(["run", str(model), "--backend", "numpy", *options]) == INTERRUPTED
        assert capsys.readouterr() == ("", "")
        return len(calls)

    return call


def test_an_interrupt_ends_the_command_soon_and_prints_nothing(run, case):
    assert case.number <= run(case.step, case.number, *case.options) <= case.number + SOON


def test_an_interrupted_command_saves_its_trace(run, case, tmp_path):
    path = tmp_path / "run.json"
    times = run(case.traced_step, case.traced_number, *case.options, "--trace", str(path))
    assert case.traced_number <= times <= case.traced_number + SOON
    found = operations(path)
    assert all(count <= found.count(name) <= count + 1 for name, count in case.recorded.items()), found
