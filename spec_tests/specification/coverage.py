"""The record of the tests, of three kinds, that reach each step; ``measure`` writes it, and git ignores it."""

import json
from functools import cache
from pathlib import Path

from spec_tests.specification import steps

FILE = Path(__file__).parents[2] / "build" / "specification" / "coverage.json"

FAULTS = Path(__file__).with_name("faults.json")

KINDS = {"wpt": "web-platform-tests", "proposed": "proposed", "ours": "here"}
"""Kinds of tests → their names in tables."""


@cache
def recorded():
    """Return by kind and by ``ALGORITHM STEP`` the number of tests, and a few of them."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {kind: {} for kind in KINDS}


def write(kind, found):
    """Replace what is recorded of a kind of tests."""
    order = [f"{one.name} {step.identifier}" for one in steps.ALGORITHMS.values() for step in one.steps]
    recorded()[kind] = {key: found[key] for key in order if key in found}
    parts = []
    for name in KINDS:
        lines = ",\n".join(
            f" {json.dumps(key)}: {json.dumps(tests, ensure_ascii=False)}" for key, tests in recorded()[name].items()
        )
        parts.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def own_tests(name, identifier):
    """Return the tests, as arguments of pytest, that were written because others pass without the step."""
    from spec_tests.specification.test_refusals import EFFECTS, NAMED, REFUSED  # noqa: PLC0415 - the site has no pytest

    key = f"{name} {identifier}".removeprefix("MLGraphBuilder.")
    file = "spec_tests/specification/test_refusals.py::test_a_step_"
    refuses = [f"{file}refuses_in_its_own_words[{key}]"] if key in REFUSED else []
    return [
        *refuses,
        *([f"{file}has_its_effect[{key}]"] if key in EFFECTS else []),
        *([NAMED[key]] if key in NAMED else []),
    ]


def cell(name, identifier):
    """Return the tests of a step for a table."""
    parts = []
    for kind, title in KINDS.items():
        if found := recorded()[kind].get(f"{name} {identifier}"):
            count, first, *_ = found
            if kind == "ours":
                first = next((test.removeprefix("spec_tests/") for test in own_tests(name, identifier)), first)
            parts.append(f"{title} {count}: {first.replace('|', '/').replace('<', '&lt;')}")
    return "<br>".join(parts)


def unreached(kind):
    """Return the steps that no test of a kind reaches, as (algorithm, step); those without code left out."""
    reasons = steps.reasons()
    return [
        (algorithm, step)
        for algorithm in steps.ALGORITHMS.values()
        for step in algorithm.steps
        if (algorithm.name, step.identifier) not in reasons
        and f"{algorithm.name} {step.identifier}" not in recorded()[kind]
    ]


def measured():
    """Return the kinds of tests that were measured."""
    return [kind for kind in KINDS if recorded()[kind]]


def unexplained():
    """Return the lines about steps that no test reaches and no reason explains, or the other way round.

    Where all kinds were measured: otherwise nothing is known.
    """
    if len(measured()) < len(KINDS):
        return []
    reasons = set(steps.reasons("unreached"))
    missed = {kind: {(algorithm.name, step.identifier) for algorithm, step in unreached(kind)} for kind in KINDS}
    in_its_form = missed["wpt"] & missed["proposed"]
    return [
        *(f"no test of web-platform-tests' form reaches {' '.join(step)}" for step in sorted(in_its_form - reasons)),
        *(f"reasons.toml says that no test reaches {' '.join(step)}" for step in sorted(reasons - in_its_form)),
    ]


def summary():
    """Return the lines of the overview about tests; none where nothing was measured."""
    if not measured():
        return []
    count = sum(len(one.steps) for one in steps.ALGORITHMS.values()) - len(steps.reasons())
    numbers = "; ".join(f"{KINDS[kind]} {count - len(unreached(kind)):,}" for kind in measured())
    text = (
        f"Of the {count:,} steps with code, tests reach: {numbers}. A step that refuses something counts where it "
        "does; how that is measured: `spec_tests/specification/tracing.py`. Tables name the test of the fewest steps."
    )
    explained = steps.reasons("unreached")
    lines = [f"* {name} {identifier}: {reason}" for (name, identifier), reason in explained.items()]
    introduction = (
        "[Proposed tests](../proposed_tests.md) are for steps that web-platform-tests do not reach. "
        "Neither of the two reaches:"
    )
    return [text, "", introduction, "", *lines, "", *_faults()]


def _faults():
    """Return the lines about deliberate faults; none where there were none."""
    if not FAULTS.exists():
        return []
    outcomes = json.loads(FAULTS.read_text(encoding="utf-8"))
    explained = steps.reasons("equivalent")
    found = sum(outcome == "found" for outcome, _ in outcomes.values())
    text = (
        f"`python -m spec_tests.specification.faults` leaves out, one at a time, the {len(outcomes)} statements of "
        f"steps that can be: tests of these steps fail for {found}. For the others no program can tell the difference:"
    )
    lines = [f"* {name} {identifier}: {reason}" for (name, identifier), reason in explained.items()]
    return [text, "", *lines, ""]
