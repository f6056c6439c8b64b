"""The architecture holds: layers, the same fourteen categories on every layer, one door, no heavy imports."""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import webnn_py
from webnn_py.core.operators.methods import OperatorMethods
from webnn_py.core.operators.registry import CATEGORIES, OPERATORS

ROOT = Path(webnn_py.__file__).parent


def test_every_category_declares_operators_and_every_operator_is_in_one():
    assert {operator.category for operator in OPERATORS.values()} == set(CATEGORIES)


def test_every_operator_is_a_method_of_the_builder():
    lines = [
        f"    {operator.name} = OperatorMethod({operator.category}.{operator.function.__name__})"
        for operator in OPERATORS.values()
        if getattr(OperatorMethods, operator.name, None) is None
    ]
    assert not lines, "add to webnn_py/core/operators/methods.py:\n" + "\n".join(lines)


def test_operators_are_declared_in_the_fourteen_categories():
    assert set(CATEGORIES) <= {path.stem for path in (ROOT / "core/operators").glob("*.py")}


def test_numpy_kernels_stand_in_categories_and_beside_nothing_else():
    from webnn_py.devices.numpy.table import MODULES  # noqa: PLC0415 - not needed to collect the others

    modules = {path.stem for path in (ROOT / "devices/numpy/kernels").iterdir() if path.name != "__pycache__"}
    assert (
        modules - {"__init__"} == {name for name, module in MODULES.items() if ".kernels." in module} <= {*CATEGORIES}
    )


def test_onnx_rules_stand_in_the_fourteen_categories_and_in_others():
    assert set(CATEGORIES) < {path.stem for path in (ROOT / "onnx_models/rules").glob("*.py")}


def test_every_operator_has_a_numpy_kernel_in_the_category_that_declares_it_or_a_decomposition():
    from spec_tests.operators.decomposed import DECOMPOSITIONS  # noqa: PLC0415 - not needed to collect the others
    from webnn_py.devices.numpy.table import find  # noqa: PLC0415 - as above

    for operator in OPERATORS.values():
        if find(operator) is None:
            assert operator.name in DECOMPOSITIONS, operator.spec_name
            continue
        source = (ROOT / "devices/numpy/kernels" / operator.category).with_suffix(".py").read_text(encoding="utf-8")
        assert re.search(rf"\b{operator.category}\.{operator.name}_?\b", source), operator.spec_name


def test_layers_hold():
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"],
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


IMPORT = """
import json, sys, {0}
documented = webnn_py.core.errors.DOMException is webnn_py.DOMException
print(json.dumps([list(sys.modules), dir({0}), list(vars({0})), {0}.__name__, documented]))
"""


@cache
def imported(module):
    """Return what importing this alone brings: modules, the module's directory, names and name, and errors."""
    run = subprocess.run([sys.executable, "-c", IMPORT.format(module)], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    "absent", ["wgpu", "onnx", "onnxruntime", "webnn_py.devices.numpy.backend", "webnn_py.onnx_models"]
)
def test_importing_the_package_does_not_import(absent):
    assert absent not in imported("webnn_py")[0]


@pytest.mark.parametrize("absent", ["wgpu", "onnx", "webnn_py.onnx_models"])
def test_importing_sessions_does_not_import(absent):
    assert absent not in imported("webnn_py.runtime")[0]


def test_kernels_know_neither_trio_nor_script():
    for path in (ROOT / "devices/numpy/kernels").glob("*.py"):
        imported = {name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for name in _imported(node)}
        assert not {name for name in imported if name.startswith(("trio", "webnn_py.core.api"))}, path


def _imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


@pytest.mark.parametrize("name", webnn_py.__all__)
def test_public_names_are_documented_and_show_the_public_module(name):
    thing = getattr(webnn_py, name)
    if isinstance(thing, type):
        assert thing.__doc__
        assert thing.__module__ == "webnn_py"


def test_dir_shows_what_is_public_and_no_more():
    _, shown, there, *_ = imported("webnn_py")
    assert shown == sorted([*webnn_py.__all__, "__version__"])
    leaked = {name for name in there if name.startswith("_") and not name.endswith("__")}
    assert not leaked


@pytest.mark.parametrize("module", ["webnn_py.core.errors", "webnn_py.onnx_models"])
def test_a_module_that_is_documented_by_its_path_is_found_there(module):
    assert imported(module)[3] == module


def test_exceptions_are_found_by_the_path_of_their_module():
    assert imported("webnn_py")[4]


def test_no_public_name_is_missing_from_all():
    public = {
        name for name, thing in vars(webnn_py).items() if not name.startswith("_") and not isinstance(thing, type(sys))
    }
    assert public == set(webnn_py.__all__)


def test_every_operator_has_a_section_in_the_page_of_its_category(tmp_path):
    script = ROOT.parent / "docs" / "make_operator_pages.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    for operator in OPERATORS.values():
        page = (tmp_path / f"{operator.category}.md").read_text(encoding="utf-8")
        assert f"\n## `{operator.name}`\n" in page
        assert f"[{operator.name}]({operator.category}.md#{operator.name})" in (tmp_path / "README.md").read_text(
            "utf-8"
        )
