"""The table of ``docs/drift.md``: to which commit each part was checked."""

from pathlib import Path

from spec_tests.drift import recorded
from spec_tests.idl import specification
from spec_tests.specification import steps

PAGE = Path(__file__).parents[2] / "docs" / "drift.md"
BEGIN, END = "<!-- checked -->\n", "<!-- end of checked -->\n"


def table():
    """Return the table."""
    found = recorded.read()
    (facts,) = specification.REVISIONS
    count = sum(len(one.steps) for one in steps.ALGORITHMS.values())
    rows = [
        ("algorithms and steps", steps.SOURCE, f"{len(steps.ALGORITHMS)} algorithms, {count} steps"),
        ("members of the IDL, by digest", found["text"], f"{len(found['idl'])} members"),
        ("the IDL, as bindings use it", facts, "`javascript/specification/api.json`"),
        ("limits of operators", facts, f"{sum(map(len, specification.LIMITS.values()))} rows"),
        ("test files", found["tests"], f"{len(found['files'])} files"),
        ("sub-tests", found["tests"], f"{sum(count for count, _ in found['sub_tests'].values()):,} sub-tests"),
    ]
    lines = ["| part | checked against | what |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def text():
    """Return the page with its table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def write():
    """Write the page's table."""
    PAGE.write_text(text(), encoding="utf-8")
