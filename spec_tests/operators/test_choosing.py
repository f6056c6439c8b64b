"""The days of quick runs together compute every case on the GPU, and the chosen cases reach all that all cases do."""

import json
import subprocess
import sys

import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.choosing import (
    CHOSEN,
    COSTLY,
    EVERY,
    LEAST_CHOSEN,
    PARTS,
    PARTS_AT_FULL_DEPTH,
    PARTS_OF_CHOSEN,
    PARTS_OF_COSTLY,
    WAYS,
    Choice,
)
from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.depth import has_turn, is_full
from webnn_py.testing.device_cases.drawing import DRAWERS

OPERATORS = [file.operator for file in load_all()]
CHOSEN_CASES = json.loads(CHOSEN.read_text(encoding="utf-8"))
CHECKED_PARTS = 46
"""Measuring takes seconds for each operator: so many days for all of them."""


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
def test_the_chosen_cases_take_every_branch_that_all_cases_take(pytestconfig):
    if not is_full(pytestconfig):
        pytest.skip("at full depth only")
    names = [name for position, name in enumerate(OPERATORS) if has_turn(pytestconfig, position, CHECKED_PARTS)]
    # In a process of its own, where nothing else measures coverage.
    command = [sys.executable, "-m", "spec_tests.operators.choose_cases", "--check", *names]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    advice = "python -m spec_tests.operators.choose_cases chooses anew"
    assert run.returncode == 0, f"{run.stdout}{run.stderr}; {advice}"


class Config:
    """The part of pytest's configuration that sets the depth of testing."""

    def __init__(self, depth, seed=0, case=None):
        self.option = type("Options", (), {"depth": depth, "seed": seed, "case": case})


def test_the_days_together_compute_every_case():
    for file in load_all()[:5]:
        days = [
            Choice(Config("quick", 738_000 + day)).cases("wgpu", file, "as_view")
            for day in range(PARTS * EVERY * len(WAYS))
        ]
        assert {case.name for day in days for case in day} == {case.name for case in file.cases}
        assert min(len(day) for day in days if day) < len(file.cases)
        assert Choice(Config("thorough")).cases("wgpu", file, "as_view") == file.cases
        assert Choice(Config("full")).cases("wgpu", file, "as_written") == file.cases
        days = [
            Choice(Config("full", 738_000 + day)).cases("wgpu", file, "as_part") for day in range(PARTS_AT_FULL_DEPTH)
        ]
        assert {case.name for day in days for case in day} == {case.name for case in file.cases}


def test_of_costly_operators_the_days_together_compute_every_case_as_written():
    for file in load_all():
        if file.operator in COSTLY:
            days = [Choice(Config("full", day)).cases("wgpu", file, "as_written") for day in range(PARTS_OF_COSTLY)]
            assert {case.name for day in days for case in day} == {case.name for case in file.cases}
            assert max(len(day) for day in days) < len(file.cases)


def test_numpy_computes_every_case():
    assert all(Choice(Config("quick")).cases("numpy", file, "as_written") == file.cases for file in load_all())


def test_days_in_turn_draw_every_operator_in_every_way():
    drawn = set()
    for day in range(EVERY * len(WAYS)):
        choice = Choice(Config("quick", 738_000 + day))
        for file in load_all():
            ways = [way for way in WAYS if choice.cases("numpy", file, way)]
            assert len(ways) <= 1
            drawn |= {(file.operator, way) for way in ways}
    assert drawn == {(file.operator, way) for file in load_all() for way in WAYS}


def test_each_day_has_the_chosen_cases_of_every_operator_but_of_the_costly_some():
    days = [Choice(Config("quick", day)) for day in range(PARTS_OF_CHOSEN)]
    for file in load_all():
        chosen = _chosen(file, "as_written")
        of_days = [chosen & _names(day, file, "as_written") for day in days]
        assert min(map(len, of_days)) >= (LEAST_CHOSEN if file.operator in COSTLY else len(chosen)), file.operator
        assert set().union(*of_days) == chosen, file.operator


def test_a_month_has_every_chosen_case_in_every_way_and_full_depth_has_them_each_time():
    month = [Choice(Config("quick", day)) for day in range(PARTS_OF_CHOSEN * EVERY * len(WAYS))]
    full = Choice(Config("full"))
    for file in load_all()[::10]:
        for way in DRAWERS:
            chosen = _chosen(file, way)
            assert set().union(*(_names(day, file, way) for day in month)) >= chosen, f"{file.operator} {way}"
            assert _names(full, file, way) >= chosen, f"{file.operator} {way}"


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
