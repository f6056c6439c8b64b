"""Every block of code in the documents runs, and prints what the document says; or it says why it is not run."""

import re
import shlex

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.cells import Cells
from spec_tests.support.documents import PAGES, ROOT, agree, blocks_of, make_models, run_page
from spec_tests.support.node import path_with_own_node
from webnn_py import cli
from webnn_py.core.api.experiments import known

BLOCKS = {path.relative_to(ROOT).as_posix(): blocks_of(path) for path in PAGES}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
RUN_ELSEWHERE = {
    "docs/adding_a_device.md": "spec_tests/operators/test_adding_a_device.py: the pieces of a package",
    "docs/composites.md": "spec_tests/operators/test_composites.py: in a process of its own, whose device it is",
}
PYTHON = {
    page: [block for block in blocks if block.language == "python" and block.not_run is None]
    for page, blocks in BLOCKS.items()
    if page not in RUN_ELSEWHERE
}
JAVASCRIPT = [block for block in ALL if block.language == "js" and block.not_run is None]
COMMANDS = [block for block in ALL if block.language in {"sh", "console"}]
NOTHING_TO_RUN = {"text", "toml", "json", "html", "mermaid", "dot", "dockerfile", "yaml"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the models that documents name, to run in."""
    make_models(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [page for page, blocks in PYTHON.items() if blocks])
def test_what_python_prints_is_what_the_page_says(page):
    here = [block for block in PYTHON[page] if HAS_ADAPTER or not block.needs_adapter]
    with Cells() as cells:
        for block, printed in run_page(here):
            with cells.cell(block.place):
                expected = block.printed()
                assert expected is None or agree(printed, expected), printed
        for block in PYTHON[page]:
            if block not in here:
                with cells.cell(block.place):
                    pytest.skip(NO_ADAPTER)


@pytest.mark.parametrize("block", JAVASCRIPT, ids=lambda block: block.place)
def test_what_javascript_prints_is_what_the_page_says(block, folder, capfd, monkeypatch):
    monkeypatch.setenv("PATH", path_with_own_node())
    program = folder / "program.mjs"
    program.write_text(block.code, encoding="utf-8")
    proposal = re.match(r"docs/proposals/(\w+)\.md", block.place)
    name = proposal[1].replace("_", "-") if proposal else ""
    options = ["--experimental", name] if name in known() else []
    status = cli.main(["node", "--backend", "numpy", *options, str(program)])
    printed, errors = capfd.readouterr()
    assert (status, errors) == (0, ""), block.place
    expected = block.printed("//")
    assert expected is None or agree(printed.splitlines(), expected), (block.place, printed)


def command_lines(block):
    """The commands of a block, whole; what they print is left out."""
    lines = block.code.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [part.strip() for line in lines for part in line.split("&&") if not line.startswith("#")]


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.place)
def test_commands_name_files_extras_and_options_that_exist(block):
    for line in command_lines(block):
        words = shlex.split(line, comments=True)
        if "webnn-py" in words[:1]:
            end = words.index(">") if ">" in words else len(words)
            cli._parser().parse_args(words[1:end])
        for word in words:
            if re.fullmatch(r"(examples|docs|spec_tests|\.ci)/\S+", word):
                assert (ROOT / word.partition("::")[0]).exists(), (block.place, word)
            for extras in re.findall(r"(?:webnn_py|\.)\[([\w,]+)\]", word):
                assert set(extras.split(",")) <= extras_of_the_package(), (block.place, word)


def extras_of_the_package():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return set(re.findall(r"^(\w+) = \[", section, re.MULTILINE))


def test_every_language_is_one_that_is_looked_at():
    known = {"python", "js", "sh", "console", *NOTHING_TO_RUN}
    assert [block.place for block in ALL if not block.language.startswith("{") and block.language not in known] == []


def test_a_reason_for_not_running_says_what_is_missing():
    reasons = {block.not_run for block in ALL} - {None}
    assert [reason for reason in reasons if not re.match(r"needs |takes |ends ", reason)] == []


def test_pages_whose_code_is_tested_elsewhere_are_there():
    assert set(RUN_ELSEWHERE) <= set(BLOCKS)
