"""The implementations of WebGPU are behind one door: only the engines' own files know them."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "webnn_py"
ENGINES = PACKAGE / "devices" / "wgpu" / "engines"
BEHIND_THE_DOOR = ("cffi", "wgpu.backends", "wgpudawn")
PRIVATE = ("_internal", "_api", "_helpers", "_ffi", "_release")
"""Private names of wgpu-py that the package needs."""
MOST_LINES = 300

OTHERS = [path for path in PACKAGE.rglob("*.py") if path.parent != ENGINES]


def imported(tree):
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (item.name for item in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from (f"{module}.{item.name}" for item in names)


def test_nothing_else_imports_an_implementation():
    assert ENGINES.is_dir()
    found = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in OTHERS
        for name in imported(ast.parse(path.read_text("utf-8")))
        if any(f"{name}.".startswith(f"{module}.") for module in BEHIND_THE_DOOR)
    }
    assert found == set()


def test_nothing_else_of_the_device_uses_private_names_of_wgpu_py():
    attributes = {
        f"{path.relative_to(PACKAGE)} uses {node.attr}"
        for path in OTHERS
        if path.is_relative_to(ENGINES.parent)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE
    }
    assert attributes == set()


@pytest.mark.parametrize(
    "name", [path.stem for path in ENGINES.glob("*.py") if path.stem not in ("__init__", "engine")]
)
def test_an_engine_is_one_short_file(name):
    assert len((ENGINES / f"{name}.py").read_text("utf-8").splitlines()) <= MOST_LINES
