"""A test of cells checks each of them, and its failure names every cell that failed, with its error and place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spec_tests.support.cells import Cells, cells

ROOT = Path(__file__).parents[2]


def run(test, request):
    """Run a test of cells as pytest does, and return the text of its failure."""
    with pytest.raises(AssertionError) as caught:
        test(request=request)
    return str(caught.value)


async def test_each_failing_cell_of_a_product_is_named_with_its_error_and_place(request):
    seen = []

    @cells("x", [1, 2, 3])
    @cells(("name", "y"), [("a", 1), ("b", 2)])
    async def product(x, name, y):
        seen.append((x, name, y))
        assert x != y, f"both are {x}"

    with pytest.raises(AssertionError) as caught:
        await product(request=request)
    head, first, *_, second = [line for line in str(caught.value).splitlines() if line[0] != " "]
    assert head == "2 of 6 cells failed:"
    assert first.startswith("[1, a, 1] AssertionError at test_cells.py:")
    assert first.endswith(": both are 1")
    assert second.startswith("[2, b, 2] ")
    assert seen == [(x, *row) for x in (1, 2, 3) for row in (("a", 1), ("b", 2))]


def test_fixtures_are_given_to_every_cell(request):
    seen = []

    @cells("x", range(3), ids=lambda x: f"number {x}")
    def test(tmp_path, x):
        seen.append((tmp_path, x))
        assert x < 2

    with pytest.raises(AssertionError, match=r"1 of 3 cells failed:\n\[number 2\] "):
        test(request=request, tmp_path="folder")
    assert seen == [("folder", x) for x in range(3)]


def test_objects_have_the_same_names_in_every_process(request):
    @cells("x", [object(), object()])
    def test(x):
        raise ValueError

    assert run(test, request).count("[<object object>] ValueError") == 2


def test_a_test_without_cells_fails(request):
    @cells("x", [])
    def test(x):
        raise NotImplementedError

    assert run(test, request) == "no cell was checked"


PROGRAM = """
import pytest
import trio
from spec_tests.support.cells import Cells

def test_some():
    with Cells() as cells:
        for number in range(5):
            with cells.cell(number):
                if number in (1, 3):
                    pytest.skip("odd")
                if number == 4:
                    pytest.importorskip("webnn_py.none_such", reason="not there")

def test_every():
    with Cells() as cells:
        for number in range(3):
            with cells.cell(number):
                pytest.skip(f"no {number}")

def test_one_fails():
    with Cells() as cells:
        with cells.cell("a"):
            pytest.skip("not this")
        with cells.cell("b"):
            raise ValueError

async def test_in_nurseries():
    async with trio.open_nursery(), trio.open_nursery():
        pytest.skip("in a nursery")
"""


def test_what_is_skipped_is_reported_with_its_reason(tmp_path):
    (tmp_path / "test_cells_of_this_file.py").write_text(PROGRAM, encoding="utf-8")
    options = [
        "-ra",
        "-p",
        "spec_tests.support.skips",
        "-p",
        "no:cacheprovider",
        "-o",
        "trio_mode=true",
        "-c",
        os.devnull,
        "-n1",
    ]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)]
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    run = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    *_, end = run.stdout.splitlines()
    assert "1 failed, 1 passed, 8 skipped" in end, run.stdout + run.stderr
    skipped = re.findall(r"^SKIPPED \[(\d)\] \S*test_cells_of_this_file\.py:\d+: (.*)$", run.stdout, re.MULTILINE)
    once = ("no 0", "no 1", "no 2", "not there", "not this", "in a nursery")
    reasons = {**dict.fromkeys(once, "1"), "odd": "2"}
    assert {reason: count for count, reason in skipped} == reasons


def test_what_pytest_raises_is_a_failure_of_its_cell():
    run = Cells()
    with run.cell("a"), pytest.raises(TypeError):
        pass
    with run.cell("b", 2):
        pass
    with run.cell("c", 3):
        raise ValueError("no")
    with pytest.raises(AssertionError, match=r"2 of 3 cells failed:\n\[a\] .*DID NOT RAISE(.|\n)*\[c, 3\] ") as caught:
        run.report()
    assert isinstance(caught.value.__cause__, pytest.fail.Exception)
