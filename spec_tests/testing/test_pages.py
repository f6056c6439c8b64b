"""The programs in the pages on interleavings and on destruction print what the pages say, on every device."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
OPENS_CONTEXT = 'create_context(backend="numpy")'


def blocks(page):
    """Return the page's programs, each with its printed output, which some lack."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", text, re.DOTALL)


@pytest.mark.parametrize("page", ["interleavings.md", "destruction_timeline.md"])
def test_programs_print_what_the_page_says(page, options, capsys):
    namespace = {"__name__": page, "options": options}
    programs = blocks(page)
    assert sum(OPENS_CONTEXT in program for program, _ in programs) == 1
    assert sum(bool(said) for _, said in programs) >= 5
    for program, said in programs:
        code = compile(program.replace(OPENS_CONTEXT, "create_context(**options)"), page, "exec")
        exec(code, namespace)  # noqa: S102 - our own page
        assert capsys.readouterr().out == said
