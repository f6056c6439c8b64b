"""The program of docs/pictures_of_graphs.md prints and draws what stands there."""

import contextlib
import re
from pathlib import Path

from spec_tests.support.backends import needs_adapter

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "pictures_of_graphs.md").read_text(encoding="utf-8")


def without_numbers_of_bytes(text):
    """The size of the arena depends on the adapter, which the first line names."""
    return re.sub(r"[\d,]+ bytes", "bytes", text).splitlines()[1:]


@needs_adapter
def test_the_program_draws_the_picture_of_the_page(tmp_path, capsys):
    program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    (printed,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    with contextlib.chdir(tmp_path):
        exec(compile(program, "the page", "exec"), {})  # noqa: S102 - a program of ours
    assert without_numbers_of_bytes(capsys.readouterr().out) == without_numbers_of_bytes(printed)
    drawn = (tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert drawn == (DOCS / "pictures" / "graph.svg").read_text(encoding="utf-8")


def test_the_page_names_every_way_of_looking():
    for name in (
        "describe()",
        "to_html()",
        "to_svg()",
        "to_mermaid()",
        "to_dot()",
        "picture(outputs)",
        "--graph FILE",
    ):
        assert name in PAGE
