"""Fixtures that run Node programs, hosted by this process."""

from typing import NamedTuple

import pytest

from spec_tests.support.node import path_with_own_node
from webnn_py import cli
from webnn_py.javascript.node_program import NodeProgram, run_command


class Ended(NamedTuple):
    """The status of a program that has ended, and the texts that it wrote."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def end_of(tmp_path, capfd):
    """Run a program, a module unless its name says otherwise, and return its end."""

    def in_this_process(source, *options, name="program.mjs", arguments=()):
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        status = cli.main(["node", "--backend", "numpy", *options, "--", str(path), *arguments])
        return Ended(status, *capfd.readouterr())

    return in_this_process


@pytest.fixture
def own_node_first(monkeypatch):
    """Have programs run in the Node of the extra ``javascript``, whatever the machine has."""
    monkeypatch.setenv("PATH", path_with_own_node())


@pytest.fixture
def run(end_of, own_node_first):
    """Run a module that must succeed, and return the lines that it printed."""

    def in_this_process(source, *options):
        ended = end_of(source, *options)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout.splitlines()

    return in_this_process


@pytest.fixture
def run_with(tmp_path, capfd, own_node_first):
    """Run a module with options of :class:`NodeProgram`, and return the lines that it printed."""

    def in_this_process(source, **options):
        path = tmp_path / "program.mjs"
        path.write_text(source, encoding="utf-8")
        status = run_command(NodeProgram("numpy", **options), [str(path)])
        printed = capfd.readouterr()
        assert (status, printed.err) == (0, "")
        return printed.out.splitlines()

    return in_this_process
