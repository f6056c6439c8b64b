"""What tests of JavaScript programs share."""

import pytest

from webnn_py import cli


@pytest.fixture
def run(tmp_path, capsys):
    """Run a module in this process: what it printed."""

    def in_this_process(engine, source, *options):
        path = tmp_path / "program.mjs"
        path.write_text(source, encoding="utf-8")
        status = cli.main(["js", str(path), "--engine", engine, "--backend", "numpy", *options])
        captured = capsys.readouterr()
        assert (status, captured.err) == (0, "")
        return captured.out.splitlines()

    return in_this_process
