"""``webnn-py docs``, the pages that wheels have, and how extras are installed."""

import pickle
import posixpath
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spec_tests.documents.test_pages import LINK
from spec_tests.support.documents import FENCE
from webnn_py.core import distribution
from webnn_py.core.distribution import page
from webnn_py.extras import install_command
from webnn_py.testing.device_cases import files

ROOT = Path(__file__).parents[2]


def test_pages_are_listed_with_their_titles(command):
    ended = command("docs")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(f"{ROOT / 'docs'}\n")
    assert re.search(r"^  tutorial +Tutorial: ", ended.out, re.MULTILINE)
    listed = command("docs", "--json").report()
    assert listed["folder"] == str(ROOT / "docs")
    assert listed["pages"]["pictures_of_graphs"] == "Pictures of graphs"


@pytest.mark.parametrize("name", ["sessions", "sessions.md", "docs/sessions.md", "proposals/int4"])
def test_the_path_of_a_page_is_printed(command, name):
    ended = command("docs", name)
    assert ended.status == 0
    assert Path(ended.out.strip()).is_file()
    assert command("docs", name, "--json").report()["path"] == ended.out.strip()


@pytest.fixture
def package_in(monkeypatch):
    """A function that lets the package lie in another folder."""
    return lambda folder: monkeypatch.setattr(distribution, "PACKAGE", folder / "webnn_py")


@pytest.fixture
def checkout(tmp_path, package_in):
    """A checkout without what builds write."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("operators", "steps"))
    package_in(tmp_path)
    return tmp_path


def test_the_pages_of_operators_are_written_in_a_checkout(command, checkout):
    assert command("docs", "operators/unary").out == f"{checkout / 'docs/operators/unary.md'}\n"
    assert "\n## `relu`\n" in (checkout / "docs/operators/activation.md").read_text(encoding="utf-8")
    (checkout / "docs/operators/activation.md").write_text("# Old\n", encoding="utf-8")
    assert command("docs", "--json").report()["pages"]["operators/activation"] == "Activation"


def test_where_the_pages_of_operators_cannot_be_written_the_command_says_so(command, checkout):
    (checkout / "docs/operators").write_text("", encoding="utf-8")
    command("docs").assert_refused("the pages of operators cannot be written", 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sesions", "no page 'sesions'; webnn-py docs lists them; did you mean 'sessions'?"),
        ("../README", "webnn-py docs lists them"),
    ],
)
def test_a_page_that_is_not_there_is_refused(command, name, words):
    command("docs", name).assert_refused(words)


def test_without_documentation_the_command_says_so(command, tmp_path, package_in):
    package_in(tmp_path)
    command("docs", "sessions").assert_refused(f"there is no documentation in {tmp_path / 'docs'}", 1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder with what a wheel of this checkout installs."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_a_wheel_has_the_pages(installed, package_in):
    package_in(installed)
    for name in ("blocking", "tutorial", "changelog", "security", "operators/README", "operators/arithmetic"):
        path = Path(page(name))
        assert path.is_relative_to(installed)
        assert "{include}" not in path.read_text(encoding="utf-8")
    for name in ("contributing.md", "drift.md", "proposed_tests.md", "steps"):  # of use in a checkout only
        assert not (installed / "webnn_py/docs" / name).exists()
    for assets in ("html_page/assets/page.html", "pictures/page/assets/picture.html"):
        assert (installed / "webnn_py" / assets).is_file()


def test_a_wheel_has_all_cases_in_one_file(installed):
    here = {(file.category, file.operator): file for file in files.load_all()}
    code = (
        "import pickle, sys; from webnn_py.testing.device_cases import files;"
        " pickle.dump(files.load_all(), sys.stdout.buffer)"
    )
    written = subprocess.run([sys.executable, "-c", code], cwd=installed, capture_output=True, check=True).stdout
    there = {(file.category, file.operator): file for file in pickle.loads(written)}  # noqa: S301 - our own
    assert list(there) == list(here)
    for key, file in there.items():
        assert file.oracle == here[key].oracle
        assert [case.raw for case in file.cases] == [case.raw for case in here[key].cases], key
    assert not list((installed / "webnn_py/testing").rglob("*.json"))


def test_links_of_the_pages_in_a_wheel_lead_to_files_in_it(installed):
    pages = sorted((installed / "webnn_py/docs").rglob("*.md"))
    assert len(pages) > 50
    seen = 0
    for path in pages:
        for target, _ in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
            there = Path(posixpath.normpath(path.parent / target)) if target else path
            assert there.is_file(), (path.name, target)
            seen += 1
    assert seen > 200


DECLARED = """Requires-Dist: attrs>=23.2
Requires-Dist: onnx>=1.20; extra == 'cli'
Requires-Dist: shtab>=1.7 ; extra == "cli"
Requires-Dist: h11; extra == 'serve'
"""


@pytest.mark.parametrize(
    ("requires", "words"),
    [(DECLARED, "pip install 'onnx>=1.20' 'shtab>=1.7'"), ("", "pip install '.[cli]' in its checkout")],
    ids=["declared", "none declared"],
)
def test_an_extra_is_installed_by_the_requirements_of_the_metadata(monkeypatch, tmp_path, requires, words):
    info = tmp_path / "webnn_py-9.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: webnn-py\nVersion: 9\n{requires}"
    (info / "METADATA").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("cli") == words


def test_an_extra_of_a_package_without_metadata_is_installed_in_its_checkout():
    program = (
        "import importlib.metadata, sys, webnn_py.extras as it; sys.path.clear(); print(it.install_command('cli'))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "pip install '.[cli]' in its checkout\n"
