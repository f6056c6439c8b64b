"""All shares together compute every case on the GPU, and the chosen cases reach all that all cases do."""

import json
import subprocess
import sys

import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.choosing import (
    CHOSEN,
    COSTLY,
    LEAST_CHOSEN,
    PARTS_OF_CHOSEN,
    Choice,
)
from spec_tests.support.backends import needs_adapter
from spec_tests.support.depth import amount, is_full, share

OPERATORS = [file.operator for file in load_all()]
CHOSEN_CASES = json.loads(CHOSEN.read_text(encoding="utf-8"))
CHECKED_PARTS = 46
"""Measuring takes seconds for each operator: a full run measures one in so many, a thorough one all."""


@needs_adapter
def test_the_chosen_cases_take_every_branch_that_all_cases_take(pytestconfig):
    if not is_full(pytestconfig):
        pytest.skip("at full depth only")
    names = sorted(share(pytestconfig, OPERATORS, amount(pytestconfig, quick=1, full=CHECKED_PARTS, thorough=1)))
    # In a process of its own, where nothing else measures coverage.
    command = [sys.executable, "-m", "spec_tests.operators.choose_cases", "--check", *names]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    advice = "python -m spec_tests.operators.choose_cases chooses anew"
    assert run.returncode == 0, f"{run.stdout}{run.stderr}; {advice}"


class Config:
    """The part of pytest's configuration that sets the depth of testing."""

    def __init__(self, depth, seed=0, case=None):
        self.option = type("Options", (), {"depth": depth, "seed": seed, "case": case})


def test_numpy_computes_every_case():
    assert all(Choice(Config("quick")).cases("numpy", file, "as_written") == file.cases for file in load_all())


def test_each_share_has_the_chosen_cases_of_every_operator_but_of_the_costly_some():
    choices = [Choice(Config("quick", seed)) for seed in range(PARTS_OF_CHOSEN)]
    for file in load_all():
        chosen = _chosen(file, "as_written")
        shares = [chosen & _names(choice, file, "as_written") for choice in choices]
        assert min(map(len, shares)) >= (LEAST_CHOSEN if file.operator in COSTLY else len(chosen)), file.operator
        assert set().union(*shares) == chosen, file.operator


def _chosen(file, way):
    return set(CHOSEN_CASES[file.operator].get(way, []))


def _names(choice, file, way):
    return {case.name for case in choice.cases("wgpu", file, way)}


def test_one_case_can_be_asked_for():
    file = load_all()[0]
    name = file.cases[-1].name
    cases = Choice(Config("quick", case=name)).cases("wgpu", file, "as_part")
    assert name in {case.name for case in cases}
    assert all(name in case.name for case in cases)
