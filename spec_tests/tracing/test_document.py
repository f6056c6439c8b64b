"""The programs of docs/tracing.md run, and print what it says."""

import re
from pathlib import Path

DOCUMENT = (Path(__file__).parents[2] / "docs/tracing.md").read_text(encoding="utf-8")


def test_the_programs_of_the_document_print_its_outputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trace, instrument = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", DOCUMENT, re.DOTALL)
    exec(compile(trace, "trace.py", "exec"), {})  # noqa: S102 - the page's own
    assert capsys.readouterr().out == printed
    assert (tmp_path / "trace.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    exec(compile(instrument, "instrument.py", "exec"), {})  # noqa: S102 - the page's own
    assert capsys.readouterr().out == "create_buffer\n"
