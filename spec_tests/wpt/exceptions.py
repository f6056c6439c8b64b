"""The vectors that are expected to fail, and why; what is not as listed is red."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

LISTED = Path(__file__).parents[1] / "expected_failures.toml"


def expected_failures(kind: str) -> dict[str, str]:
    """The reasons by id, of the ``vectors`` or the ``validation`` cases."""
    entries = tomllib.loads(LISTED.read_text(encoding="utf-8"))[kind]
    reasons = {entry["id"]: entry["reason"] for entry in entries}
    assert len(reasons) == len(entries), "an id is listed twice"
    return reasons


def judge_all(verdicts: Mapping[str, str | None], listed: Mapping[str, str]) -> None:
    """Check that the cases are wrong that are listed, and no others: of each what is wrong, or None."""
    unexpected = [f"{name}: {words}" for name, words in verdicts.items() if words is not None and name not in listed]
    passing = [
        f"{name} passes, but is listed in {LISTED.name}: delete the entry"
        for name, words in verdicts.items()
        if words is None and name in listed
    ]
    assert not unexpected + passing, "\n".join(unexpected + passing)


def assert_known(listed: Iterable[str], identifiers: Iterable[str]) -> None:
    """Every listed id is that of a case."""
    unknown = set(listed) - set(identifiers)
    assert not unknown, f"{LISTED.name} lists cases that are not there: {sorted(unknown)}"
