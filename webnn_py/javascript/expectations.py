"""Sub-tests that are known to fail, with reasons, and the judgement of a run by them."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

import attrs

from webnn_py.javascript.results import HARNESS, FileResult

Verdict = Literal["pass", "expected failure", "unexpected failure", "unexpected pass"]

SHIPPED = Path(__file__).with_name("expected_failures.toml")


@attrs.frozen
class Expected:
    """One sub-test that is known to fail.

    Attributes:
        reason: what the specification says instead.
        section: where it says so.
    """

    reason: str
    section: str


@attrs.frozen
class Judged:
    """One sub-test, or a file as a whole, and what it is worth."""

    file: str
    name: str
    verdict: Verdict
    status: str
    message: str | None
    reason: str | None


Expectations = Mapping[tuple[str, str], Expected]
"""By the file's path, without a variant, and the name of the sub-test."""


def load(path: Path, compatibility: str, backend: str, experimental: Collection[str] = ()) -> Expectations:
    """Read expected failures, those for one compatibility mode and one backend, with some proposals switched on.

    Raises:
        ValueError: an entry lacks something, or says the same twice.
    """
    found: dict[tuple[str, str], Expected] = {}
    for group in tomllib.loads(path.read_text(encoding="utf-8")).get("failure", []):
        missing = {"compatibility", "file", "subtests", "reason", "section"} - group.keys()
        if missing or not group["reason"] or not group["section"]:
            raise ValueError(f"{path}: an entry lacks {', '.join(sorted(missing)) or 'a reason or a section'}: {group}")
        if group["compatibility"] != compatibility or backend not in group.get("backends", [backend]):
            continue
        if group.get("without") in experimental:
            continue
        for name in group["subtests"]:
            key = (group["file"], name)
            if key in found:
                raise ValueError(f"{path}: {name!r} of {group['file']} is listed twice")
            found[key] = Expected(group["reason"], group["section"])
    return found


def judge(result: FileResult, expectations: Expectations) -> list[Judged]:
    """Return the verdict on each sub-test of a file, and one on the file itself if it ended badly."""
    path = result.id.partition("?")[0]
    judged = []
    seen = set()
    outcomes: list[tuple[str, str, str | None]] = [(test.name, test.status, test.message) for test in result.subtests]
    if result.harness != "OK":
        outcomes.append((HARNESS, result.harness, result.message))
    for name, status, message in outcomes:
        seen.add((path, name))
        expected = expectations.get((path, name))
        if status == "PASS":
            verdict: Verdict = "pass" if expected is None else "unexpected pass"
        else:
            verdict = "unexpected failure" if expected is None else "expected failure"
        reason = None if expected is None else f"{expected.reason} ({expected.section})"
        judged.append(Judged(result.id, name, verdict, status, message, reason))
    # An expectation of what does not exist would hide that a sub-test was renamed or is gone.
    for (file, name), expected in expectations.items():
        if file == path and (file, name) not in seen:
            text = "listed as an expected failure, but the file has no such sub-test"
            judged.append(Judged(result.id, name, "unexpected failure", "NOTRUN", text, expected.reason))
    return judged
