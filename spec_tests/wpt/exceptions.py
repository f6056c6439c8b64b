"""The vectors that are expected to fail, and why; what is not as listed is red."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

LISTED = Path(__file__).parents[1] / "expected_failures.toml"


def expected_failures(kind: str) -> dict[str, str]:
    """The reasons by id, of the ``vectors`` or the ``validation`` cases."""
    entries = tomllib.loads(LISTED.read_text(encoding="utf-8"))[kind]
    reasons = {entry["id"]: entry["reason"] for entry in entries}
    assert len(reasons) == len(entries), "an id is listed twice"
    return reasons


def judge(identifier: str, wrong: str | None, listed: dict[str, str]) -> None:
    """End the test of one case: ``wrong`` says what is, or is None."""
    if identifier not in listed:
        assert wrong is None, f"{identifier}: {wrong}"
    elif wrong is None:
        pytest.fail(f"{identifier} passes, but is listed in {LISTED.name}: delete the entry")
    else:
        pytest.xfail(f"{listed[identifier]} ({wrong})")


def assert_known(listed: Iterable[str], identifiers: Iterable[str]) -> None:
    """Every listed id is that of a case."""
    unknown = set(listed) - set(identifiers)
    assert not unknown, f"{LISTED.name} lists cases that are not there: {sorted(unknown)}"
