"""Bars are shown on a terminal alone, count what is done, and leave nothing behind."""

import io
import sys
from contextlib import redirect_stderr

import pytest

from webnn_py.command import progress


def test_a_bar_counts_on_a_terminal(terminal):
    with progress.bar("importing", "nodes") as advance:
        advance(40, 40)
    shown = terminal.getvalue()
    assert "importing" in shown
    assert shown.endswith("\r")  # and what comes next is written over it


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["a file", "nothing"])
def test_elsewhere_nothing_is_shown(stream):
    with redirect_stderr(stream), progress.bar("importing", "nodes") as advance:
        advance(1, 2)
    assert stream is None or stream.getvalue() == ""


def test_without_the_library_nothing_is_shown(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with progress.bar("importing", "nodes") as advance:
        advance(1, 2)
    assert terminal.getvalue() == ""


def test_a_run_on_a_terminal_shows_its_parts_and_prints_the_same(command, doubled, terminal):
    ended = command("run", doubled, "--shape", "rows=1", "--backend", "numpy")
    assert ended.status == 0
    for part in ("loading model.onnx", "importing", "building", "running"):
        assert part in terminal.getvalue()
    assert "outputs" in ended.out
