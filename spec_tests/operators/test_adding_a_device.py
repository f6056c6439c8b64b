"""The package that ``docs/adding_a_device.md`` makes, and the tables of that page."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spec_tests.support.depth import is_full
from webnn_py.core.device import backend
from webnn_py.core.device.backend import Backend
from webnn_py.core.reference import KERNELS, ReferenceBackend
from webnn_py.devices import copying, lending, saved_code

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/adding_a_device.md").read_text(encoding="utf-8")
OF_THE_PACKAGE = {"webnn_lookup_device.py", "test_lookup_device.py"}
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def python_pieces():
    return [text for language, text in BLOCKS if language == "python"]


def test_the_device_of_the_document_is_short():
    module, _ = python_pieces()
    assert len(module.splitlines()) < 50


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The three files of the document in a folder, and what is installed of them in another: (folder, environment)."""
    folder, installed = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("installed")
    module, tests = python_pieces()
    (folder / "webnn_lookup_device.py").write_text(module, encoding="utf-8")
    (folder / "test_lookup_device.py").write_text(tests, encoding="utf-8")
    (project,) = (text for language, text in BLOCKS if language == "toml")
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=folder, check=True)
    (wheel,) = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    (folder / "webnn_lookup_device.py").unlink()  # what is installed is what is imported
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # of these tests
    return folder, {**environment, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])}


def test_the_package_of_the_document_is_a_device(package):
    folder, environment = package
    command = [sys.executable, "-m", "webnn_py", "devices"]
    listed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert re.search(r"^lookup ", listed.stdout, re.MULTILINE), listed.stdout


CHOSEN = ("softmax", "gather_nd", "sigmoid")
PROGRAM = f"""
import pytest
from test_lookup_device import operator_cases, test_case

passed = 0
for case in operator_cases():
    if any(name in str(case) for name in {CHOSEN}):
        for drawn in ("as_written", "as_view"):
            try:
                test_case(case, drawn)
                passed += 1
            except pytest.skip.Exception:
                pass
print(passed, "passed")
"""
"""Calls the tests as pytest does, which spends ten seconds on collecting all that are not chosen."""


def test_the_tests_of_the_document_pass_on_the_package(package, pytestconfig):
    folder, environment = package
    command = [sys.executable, "-c", PROGRAM]
    if is_full(pytestconfig):
        options = ["-q", "-p", "no:cacheprovider", "-k", " or ".join(CHOSEN)]
        command = [sys.executable, "-m", "pytest", *options, "test_lookup_device.py"]
    tested = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    passed = int(re.search(r"(\d+) passed", tested.stdout)[1])
    assert passed > 100
    assert "failed" not in tested.stdout


def members(protocol):
    return {name for name in {*vars(protocol), *protocol.__annotations__} if not name.startswith("_")}


def named_in_table(heading):
    """The members that the rows of a table name in their first column, row by row."""
    rows = DOCUMENT.partition(heading)[2].partition("\n\n")[0].splitlines()[1:]
    return [(set(re.findall(r"`(\w+)", row.split("|")[1])), row) for row in rows]


def test_the_table_of_the_backend_has_all_members():
    named = [names for names, _ in named_in_table("| member | what it is |\n")]
    assert (
        set().union(*named)
        == members(Backend)
        == {name for name in members(Backend) if hasattr(ReferenceBackend(), name)}
    )


def test_the_table_of_what_backends_may_have_has_all_protocols():
    rows = named_in_table("| members | protocol | without it |\n")
    optional = {
        thing.__name__: thing
        for module in (backend, copying, lending, saved_code)
        for thing in vars(module).values()
        if getattr(thing, "_is_runtime_protocol", False) and thing.__module__ == module.__name__
    }
    named = {re.search(r"`(\w+)", row.split("|")[2])[1]: names for names, row in rows}
    assert named == {name: members(protocol) for name, protocol in optional.items()}
    assert len(named) == 7


def test_the_commands_run_tests_that_are_there():
    text = "".join(text for language, text in BLOCKS if language == "console")
    files = re.findall(r"spec_tests/\S+\.py", text)
    assert len(files) == 3
    assert all((ROOT / file).is_file() for file in files)


def test_the_paths_in_the_document_are_there():
    paths = set(re.findall(r"`([\w/]+\.py|webnn_py/\w+|spec_tests/\w+)`", DOCUMENT)) - OF_THE_PACKAGE
    assert len(paths) > 3
    for path in paths:
        there = (ROOT / path).exists() or (ROOT / "webnn_py" / path).exists()
        assert there, path


def test_the_primitives_are_those_that_it_claims():
    (sentence,) = re.findall(r"The primitives have no decomposition. They are: (.*?)\.\n", DOCUMENT, re.DOTALL)
    listed = re.findall(r"`(\w+)`", sentence)
    assert listed == sorted(KERNELS)
