"""The protocol of engines, held by both."""

import os
import signal
import sys

import pytest

from spec_tests.support.scripts import both_engines
from webnn_py.errors import NotSupportedError
from webnn_py.javascript import engine as engines
from webnn_py.javascript import engine_commands
from webnn_py.javascript.engine import EngineError, LimitError, ScriptError, start
from webnn_py.javascript.engine_commands import UNLIMITED, Limits

PROBE = """(runtime) => {
  runtime.echo = ({text, times}, bytes) => {
    const view = bytes === null ? null : new Uint8Array(bytes);
    for (let i = 0; i < times; i += 1) globalThis.answer = runtime.send(JSON.stringify(text), view);
  };
  globalThis.say = (text) => runtime.send(JSON.stringify(text), null)[0];
}"""


class Recorder:
    def __init__(self):
        self.messages = []

    def __call__(self, text, payload):
        self.messages.append((text, None if payload is None else bytes(payload)))
        return text, payload


@pytest.fixture
def host():
    return Recorder()


@pytest.fixture
def opened(request, host):
    engine = start(request.param, UNLIMITED, host)
    engine.load(PROBE, "probe")
    yield engine
    engine.close()


on_both = pytest.mark.parametrize("opened", engines.ENGINES, indirect=True)


@on_both
@pytest.mark.parametrize("data", [None, b"", bytes(range(256)) * 1000])
def test_text_and_bytes_are_passed_to_the_engine_and_back(opened, host, data):
    text = '"NUL \\u0000, lone \\ud800, wide \\ud83d\\ude00"'
    opened.call("echo", f'{{"text": {text}, "times": 2}}', None if data is None else memoryview(data))
    assert len(host.messages) == 2
    for got, payload in host.messages:
        assert payload == data
        assert "\\u0000" in got
        assert "\\ud800" in got
        assert "😀" in got
    opened.evaluate("say(answer[1] === null ? 'none' : new Uint8Array(answer[1]).length)", "look")
    assert host.messages[-1][0] == ('"none"' if data is None else str(len(data)))


@on_both
def test_scripts_share_a_scope(opened, host):
    opened.evaluate("const one = 1; let two = 2; function three() { return 3; }", "first")
    opened.evaluate("'use strict'; say(one + two + three())", "second")
    assert host.messages == [("6", None)]


@on_both
def test_an_exception_is_raised_with_its_name_and_the_engine_goes_on(opened, host):
    with pytest.raises(ScriptError, match="RangeError: too far"):
        opened.evaluate("throw new RangeError('too far')", "bad")
    with pytest.raises(ScriptError, match="SyntaxError"):
        opened.evaluate("(", "worse")
    opened.evaluate("say('still here')", "good")
    assert host.messages == [('"still here"', None)]


@on_both
def test_only_run_jobs_runs_microtasks(opened, host):
    opened.evaluate("Promise.resolve().then(() => say('microtask')); say('script')", "script")
    opened.evaluate("say('next script')", "next")
    assert [text for text, _ in host.messages] == ['"script"', '"next script"']
    opened.run_jobs()
    assert host.messages[-1] == ('"microtask"', None)


@on_both
def test_deep_recursion_is_an_exception_not_a_crash(opened, host):
    opened.evaluate("let depth = 0; (function f() { depth += 1; f(); })", "define")
    with pytest.raises(ScriptError, match="RangeError"):
        opened.evaluate("(function f() { depth += 1; f(); })()", "deep")
    opened.evaluate("say(depth > 1000)", "look")
    assert host.messages == [("true", None)]


@both_engines
def test_an_error_of_the_host_ends_the_engine(engine):
    def broken(text, payload):
        raise KeyError(text)

    opened = start(engine, UNLIMITED, broken)
    opened.load(PROBE, "probe")
    with pytest.raises(KeyError):
        opened.evaluate("try { say(1) } catch {}", "call")
    with pytest.raises(EngineError, match="ended with status"):
        opened.evaluate("1", "late")
    opened.close()


@pytest.mark.parametrize("noticed", ["at the call", "before the call"])
@both_engines
def test_an_engine_that_dies_is_reported(host, noticed, engine):
    opened = start(engine, UNLIMITED, host)
    opened._process.kill()
    if noticed == "before the call":
        opened._process.wait()  # the pipe is broken: what is asked for cannot even be written
    with pytest.raises(EngineError, match="ended with status"):
        opened.load(PROBE, "probe")
    opened.close()


LITTLE = Limits(memory_bytes=2**26)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing bounds what buffers hold")
def test_an_engine_that_dies_before_its_memory_is_bounded_is_reported(host, monkeypatch):
    bound = engine_commands.bound_growth

    def late(process, count):
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        bound(process, count)

    monkeypatch.setattr(engine_commands, "bound_growth", late)
    opened = start("node", LITTLE, host)
    with pytest.raises(EngineError, match="ended with status"):
        opened.load(PROBE, "probe")
    opened.close()


def test_an_engine_that_does_not_start_leaves_nothing(host, monkeypatch):
    begun = []

    def refuse(engine, _source, _name):
        begun.append(engine._process)
        raise LimitError("at once")

    monkeypatch.setattr(engines.Engine, "load", refuse)
    with pytest.raises(LimitError, match="at once"):
        start("node", LITTLE, host)
    (process,) = begun
    assert process.returncode is not None
    assert process.stdin.closed
    assert process.stdout.closed


@both_engines
def test_an_engine_that_is_not_installed_is_named_with_the_cure(engine, monkeypatch):
    monkeypatch.setattr(engine_commands, "find_spec", lambda _name: None)
    with pytest.raises(NotSupportedError, match=rf"{engine}.*pip install"):
        start(engine, UNLIMITED, Recorder())


@both_engines
def test_an_interrupt_that_came_before_the_engine_was_entered_is_not_lost(engine, host):
    passed_on = []
    handler = engines.NotedInterrupt(lambda number, _frame: passed_on.append(number))
    opened = start(engine, UNLIMITED, host)
    before = signal.signal(signal.SIGINT, handler)
    try:
        signal.raise_signal(signal.SIGINT)  # whoever waits has no turn before the script runs
        with pytest.raises(KeyboardInterrupt):
            opened.evaluate("for (;;) {}", "endless")
    finally:
        signal.signal(signal.SIGINT, before)
        opened.close()
    assert passed_on == [signal.SIGINT]
