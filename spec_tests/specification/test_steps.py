"""Every step of the specification's algorithms is done somewhere, or is explained; comments name steps that exist."""

import os
import re
from pathlib import Path

import pytest

from spec_tests.specification import make_pages, references, steps
from spec_tests.specification.forms import FORMS
from spec_tests.specification.make_steps import identified, recorded
from spec_tests.specification.text import read

STEPS = [(algorithm, step) for algorithm in steps.ALGORITHMS.values() for step in algorithm.steps]

TEXT = """
## Section ## {#section}
<details open algorithm>
<summary>The <dfn method for=MLContext>dispatch(|graph|)</dfn> method steps are:</summary>
    1. If |graph| is [=MLGraph/lost=], then [=exception/throw=] a {{TypeError}}.
    1. Switch on |graph|:
        <dl class=switch>
            : {{MLGraph}}
            ::
                1. Return true.
        </dl>

        Note: No part of the step.
    1. Return false.
        <details class=note>
        <summary>Nor is this.</summary>
        Note.
        </details>
</details>
"""


def test_every_step_is_done_somewhere_or_explained():
    reasons = steps.reasons()
    missing = [
        f"{algorithm.name} {step.identifier}: {step.summary}"
        for algorithm, step in STEPS
        if (algorithm.name, step.identifier) not in reasons and not references.places(algorithm, step)
    ]
    assert not missing, "\n".join(missing)


def test_all_steps_of_the_text_are_there():
    assert len(steps.ALGORITHMS) == 150
    assert len([step for _, step in STEPS if step.identifier != "0"]) == 1555


def test_refusals_of_operators_are_found_by_a_comment_not_by_the_declaration_alone():
    reasons = steps.reasons()
    for algorithm, step in STEPS:
        if step.refuses and algorithm.is_operator and (algorithm.name, step.identifier) not in reasons:
            assert references.declaration(algorithm) not in references.places(algorithm, step)


def test_every_form_is_written_in_code():
    _, forms = references._in_code()
    explained = {"name"}  # by reasons
    assert set(forms) == set(FORMS) - explained


@pytest.mark.parametrize(
    "reference",
    ["MLContext.dispatch", "MLContext.dispatch 99", "no such algorithm 1", "* no such form", "build 4.9", "build 4-3"],
)
def test_comments_that_name_nothing_are_refused(reference):
    with pytest.raises(references.UnknownStepError, match="somewhere"):
        references.resolved(reference, "somewhere")


def test_references_name_ranges_with_the_steps_below():
    _, found = references.resolved("build 3-4.2, 16", "")
    assert [identifier for _, identifier in found] == ["3", "4", "4.1", "4.2", "16"]


def test_steps_are_read_with_their_nesting_and_without_notes():
    (algorithm,) = read(TEXT)
    assert algorithm.name == "MLContext.dispatch"
    assert [step.number for step in algorithm.steps] == ["1", "2", "2.1", "3"]
    assert algorithm.steps[0].summary == "If graph is lost, then throw a"
    assert "Note" not in algorithm.text
    assert algorithm.steps[3].text == "Return false."


def test_identifiers_survive_edits_of_other_steps():
    def recorded_steps(text, before=()):
        (algorithm,) = read(text)
        names = identified(before, algorithm)
        return [
            steps.Step(name, s.number, s.digest, "", "", False) for name, s in zip(names, algorithm.steps, strict=True)
        ]

    before = recorded_steps(TEXT)
    assert [step.identifier for step in before] == ["1", "2", "2.1", "3"]
    inserted = TEXT.replace("    1. Switch", "    1. Let |a| be 1.\n    1. Switch")
    after = recorded_steps(inserted, before)
    assert [(step.identifier, step.number) for step in after] == [
        ("1", "1"),
        ("1a", "2"),
        ("2", "3"),
        ("2.1", "3.1"),
        ("3", "4"),
    ]
    more = recorded_steps(inserted.replace("    1. Switch", "    1. Let |b| be 2.\n    1. Switch"), after)
    assert [step.identifier for step in more] == ["1", "1a", "1b", "2", "2.1", "3"]
    many = "".join(f"    1. Let |b| be {number}.\n" for number in range(30))
    names = [step.identifier for step in recorded_steps(TEXT.replace("    1. Switch", f"{many}    1. Switch"), before)]
    assert names[24:31] == ["1x", "1y", "1z", "1aa", "1ab", "1ac", "1ad"]
    removed = recorded_steps(
        inserted.replace("    1. If |graph| is [=MLGraph/lost=], then [=exception/throw=] a {{TypeError}}.\n", ""),
        after,
    )
    assert [step.identifier for step in removed] == ["1a", "2", "2.1", "3"]
    changed = recorded_steps(TEXT.replace("Return false", "Return true"), before)
    assert [step.identifier for step in changed] == ["1", "2", "2.1", "3"]
    assert changed[-1].digest != before[-1].digest


def test_the_pages_have_every_step_with_the_functions_that_do_it():
    pages, reasons = make_pages.pages(), steps.reasons()
    for algorithm, step in STEPS:
        page = pages[f"{make_pages.page_of(algorithm)}.md"]
        section = page.partition(f"\n## `{algorithm.name}`\n")[2].partition("\n## ")[0]
        (row,) = [line for line in section.splitlines() if re.match(rf"\| {re.escape(step.identifier)}[ (]", line)]
        reason = reasons.get((algorithm.name, step.identifier))
        done_by = [f"`{place.function}`" for place in references.places(algorithm, step)]
        assert all(word in row for word in ([reason] if reason else done_by)), row


def test_the_record_is_that_of_the_text():
    """With ``WEBNN_SPECIFICATION=PATH/TO/index.bs``, of the commit that the record names."""
    path = os.environ.get("WEBNN_SPECIFICATION")
    if path is None:
        pytest.skip("WEBNN_SPECIFICATION names no index.bs")
    now = recorded(Path(path).read_text(encoding="utf-8"), steps.ALGORITHMS)
    assert [(one["name"], one["digest"]) for one in now] == [(a.name, a.digest) for a in steps.ALGORITHMS.values()]
    assert [[step[:3] for step in one["steps"]] for one in now] == [
        [[step.identifier, step.number, step.digest] for step in algorithm.steps]
        for algorithm in steps.ALGORITHMS.values()
    ]
