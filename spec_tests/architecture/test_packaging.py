"""The package's metadata: one version, requirements that hold here, distributions with all that is named."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import webnn_py

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CASES = sorted(ROOT.glob("spec_tests/operators/*/make_cases.py"))
SUFFIXES = ("wgsl", "js", "toml", "json", "html", "css")
DATA = [path for suffix in SUFFIXES for path in ROOT.glob(f"webnn_py/**/*.{suffix}")]


def requirements(names):
    return {requirement.name: requirement for requirement in map(Requirement, names)}


def test_the_version_is_said_in_the_package_alone():
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "webnn_py/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", webnn_py.__version__)


def test_the_changelog_has_the_version():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert webnn_py.__version__ in headings[0]


def test_the_wgpu_that_is_installed_is_one_whose_private_functions_are_known():
    wgpu = requirements(PROJECT["project"]["dependencies"])["wgpu"]
    assert "<" in str(wgpu.specifier)
    assert wgpu.specifier.contains(version("wgpu")), (
        f"wgpu {version('wgpu')} is installed, {wgpu} required: look at what webnn_py/devices/wgpu calls of its"
        " private functions, then move the ceiling in pyproject.toml"
    )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_what_the_cases_are_computed_with_is_required(path):
    known = requirements(PROJECT["project"]["dependencies"]) | requirements(
        [
            item
            for extra in ("cases", "onnx", "onnxruntime")
            for item in PROJECT["project"]["optional-dependencies"][extra]
        ]
    )
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    assert imported - sys.stdlib_module_names - {"spec_tests", "webnn_py"} <= known.keys()


def test_the_sdist_has_what_the_readme_names():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\((?!https?:)([^)#]+)", readme) + re.findall(r"\bpython (\S+\.py)", readme)
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    always = {"LICENSE", "pyproject.toml"}
    assert named
    for name in ("README.md", *named):
        assert (ROOT / name).exists(), name
        assert f"/{name.partition('/')[0]}" in included or name in always, name


def test_data_files_are_within_what_wheels_have():
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["webnn_py", "_webnn_py_command.py"]
    assert {path.suffix for path in DATA} == {f".{suffix}" for suffix in SUFFIXES}
    assert (ROOT / "webnn_py/py.typed").exists()
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split() if (ROOT / ".gitignore").exists() else []
    assert not {f"*{path.suffix}" for path in DATA} & set(ignored)


def test_every_extra_that_brings_onnxruntime_allows_what_the_device_does():
    """Where another one is installed, contexts run on it all the same."""
    extras = {
        name: list(map(Requirement, items)) for name, items in PROJECT["project"]["optional-dependencies"].items()
    }
    (own,) = (item for item in extras["onnxruntime"] if item.name == "onnxruntime")
    for name, items in extras.items():
        assert all(item.specifier == own.specifier for item in items if item.name == "onnxruntime"), name
        if any(item.name == "magika" for item in items):  # it needs an onnxruntime of any version
            assert any("onnxruntime" in item.extras for item in items if item.name == "webnn_py"), name


def _lowest(*extra):
    command = [sys.executable, ROOT / ".ci/lowest.py", *extra]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_the_integration_tests_the_lowest_onnxruntime_that_is_allowed():
    (allowed,) = (
        item.specifier
        for item in map(Requirement, PROJECT["project"]["optional-dependencies"]["onnxruntime"])
        if item.name == "onnxruntime"
    )
    lowest = min(minor for minor in range(100) if allowed.contains(f"1.{minor}.1"))
    assert _lowest("onnxruntime") == [f"onnxruntime==1.{lowest}.*"]


def test_the_lowest_version_of_each_dependency_is_what_the_integration_tests():
    said = _lowest()
    assert len(said) == len(PROJECT["project"]["dependencies"])
    for pinned, required in zip(said, map(Requirement, PROJECT["project"]["dependencies"]), strict=True):
        name, _, lowest = pinned.partition("==")
        assert name == required.name
        assert required.specifier.contains(lowest)
