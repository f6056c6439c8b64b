"""Write the tables of ``docs/conformance.md``: ``python docs/make_conformance_page.py REPORT.json…``.

The reports are those of ``webnn-py wpt CHECKOUT --report REPORT.json``, one for each backend. What stands
above the mark in the page is written by hand and stays.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webnn_py.core.operators.registry import OPERATORS

PAGE = Path(__file__).with_name("conformance.md")
MARK = "<!-- everything below is written by docs/make_conformance_page.py -->\n"

OTHER = "not of one operator"

Report = dict[str, Any]

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_BY_LOWER_NAME = {operator.spec_name.lower(): operator.spec_name for operator in OPERATORS.values()}


def operator_of(file: str, name: str) -> str:
    """The operator that a sub-test is about: from its variant, its own name, or its file's."""
    variant = re.search(r"[?&]op=(\w+)", file)
    stem = file.partition("?")[0].rpartition("/")[2].partition(".")[0].replace("_", "")
    words = [variant[1]] if variant else [*_WORD.findall(name)[:4], stem]
    return next((_BY_LOWER_NAME[word.lower()] for word in words if word.lower() in _BY_LOWER_NAME), OTHER)


def name_of(report: Report) -> str:
    """Backend and Node."""
    return f"{report['facts']['backend']}, {report['facts']['Node']}"


def each_subtest(report: Report) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sub-test with its file."""
    for file in report["files"]:
        for test in file["subtests"]:
            yield file["id"], test


def totals(reports: list[Report]) -> Iterator[str]:
    """One line a report."""
    yield "| backend, Node | files | sub-tests | passed | expected failures | unexpected |"
    yield "|---|---|---|---|---|---|"
    for report in reports:
        numbers = report["totals"]
        unexpected = numbers["unexpected_failures"] + numbers["unexpected_passes"]
        yield (
            f"| {name_of(report)} | {numbers['files']} | {numbers['subtests']:,} | {numbers['passed']:,} "
            f"| {numbers['expected_failures']} | {unexpected} |"
        )


def by_operator(reports: list[Report]) -> Iterator[str]:
    """Passed and all sub-tests of every operator, one column a report."""
    counted = []
    for report in reports:
        counts: Counter[tuple[str, bool]] = Counter()
        for file, test in each_subtest(report):
            counts[operator_of(file, test["name"]), test["status"] == "PASS"] += 1
        counted.append(counts)
    yield "| operator | " + " | ".join(name_of(report) for report in reports) + " |"
    yield "|---" * (len(reports) + 1) + "|"
    for operator in [*(operator.spec_name for operator in OPERATORS.values()), OTHER]:
        cells = []
        for counts in counted:
            passed, failed = counts[operator, True], counts[operator, False]
            cells.append(f"{passed} of {passed + failed}" if passed + failed else "no sub-tests")
        yield f"| {operator} | " + " | ".join(cells) + " |"


def expected(report: Report) -> Iterator[str]:
    """Yield the rows of expected failures, with their reasons."""
    yield "| file | sub-tests | reason |"
    yield "|---|---|---|"
    groups: dict[tuple[str, str], list[str]] = {}
    for file, test in each_subtest(report):
        if test["verdict"] == "expected failure":
            short = file.removeprefix("webnn/").partition("?")[0]
            groups.setdefault((short, test["reason"]), []).append(test["name"])
    for (file, reason), names in groups.items():
        yield f"| `{file}` | {'<br>'.join(names)} | {reason} |"


def main(paths: list[str]) -> None:
    """Rewrite the page below the mark."""
    reports: list[Report] = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    above, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    sections = [
        ("Totals", totals(reports)),
        ("Expected failures", expected(reports[0])),
        ("By operator", by_operator(reports)),
    ]
    text = above + MARK
    for title, lines in sections:
        text += f"\n## {title}\n\n" + "\n".join(lines) + "\n"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
