"""Fixtures that run JavaScript programs in this process."""

from typing import NamedTuple

import pytest

from webnn_py import cli


class Ended(NamedTuple):
    """The status of a program that has ended, and the texts that it wrote."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def end_of(tmp_path, capsys):
    """Run a program, a module unless its name says otherwise, and return its end."""

    def in_this_process(source, *options, name="program.mjs"):
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        return Ended(cli.main(["js", str(path), *options]), *capsys.readouterr())

    return in_this_process


@pytest.fixture
def run(end_of):
    """Run a module that must succeed, and return the lines that it printed."""

    def in_this_process(engine, source, *options):
        ended = end_of(source, "--engine", engine, "--backend", "numpy", *options)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout.splitlines()

    return in_this_process
