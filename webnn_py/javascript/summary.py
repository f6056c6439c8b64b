"""A finished run: its results, what they are worth, its totals."""

from collections import Counter
from typing import Any

import attrs

from webnn_py.javascript.expectations import Judged
from webnn_py.javascript.results import HARNESS, FileResult


@attrs.define
class Run:
    """Everything that reports show.

    Attributes:
        facts: what ran, where and how, as words.
        files: the results, in the order of their names.
        judged: what each sub-test is worth, by file.
        seconds: wall time of the whole.
    """

    facts: dict[str, str]
    files: list[FileResult]
    judged: dict[str, list[Judged]]
    seconds: float

    def every(self) -> list[Judged]:
        """Return all judgements."""
        return [one for judged in self.judged.values() for one in judged]

    def unexpected(self) -> list[Judged]:
        """Unexpected results: failures, and passes where a failure is listed."""
        return [one for one in self.every() if one.verdict.startswith("unexpected")]

    @property
    def as_expected(self) -> bool:
        """Return whether the command may end with status 0."""
        return bool(self.files) and not self.unexpected()

    def totals(self) -> dict[str, Any]:
        """Return the totals as plain data."""
        verdicts = Counter(one.verdict for one in self.every())
        statuses = Counter(test.status for result in self.files for test in result.subtests)
        return {
            "files": len(self.files),
            "files_not_ok": sum(one.name == HARNESS for one in self.every()),
            "subtests": statuses.total(),
            "passed": statuses["PASS"],
            "never_ran": statuses["NOTRUN"],  # those of a file that crashed are not known
            "files_incomplete": sum(result.harness != "OK" for result in self.files),
            "expected_failures": verdicts["expected failure"],
            "unexpected_failures": verdicts["unexpected failure"],
            "unexpected_passes": verdicts["unexpected pass"],
            "seconds": round(self.seconds, 2),
        }


def line(run: Run) -> str:
    """Return the totals as one line."""
    totals = run.totals()
    return (
        f"{totals['passed']:,} of {totals['subtests']:,} sub-tests passed in {totals['files']} files, "
        f"{totals['seconds']:.1f} s; {totals['expected_failures']} expected failures, "
        f"{totals['unexpected_failures']} unexpected failures, {totals['unexpected_passes']} unexpected passes; "
        f"{totals['never_ran']} sub-tests never ran, {totals['files_incomplete']} files did not complete"
    )
