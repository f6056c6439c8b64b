"""A test of cells checks each of them, and its failure names every cell that failed, with its error and place."""

import pytest

from spec_tests.support.cells import Cells, cells


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


def test_a_test_without_cells_fails(request):
    @cells("x", [])
    def test(x):
        raise NotImplementedError

    assert run(test, request) == "no cell was checked"


def test_a_test_is_skipped_only_if_every_cell_is(request):
    @cells("x", [1, 2])
    def some(x):
        if x == 1:
            pytest.skip("not here")

    @cells("x", [1, 2])
    def every(x):
        pytest.skip("nowhere")

    some(request=request)
    with pytest.raises(pytest.skip.Exception, match="nowhere"):
        every(request=request)


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
