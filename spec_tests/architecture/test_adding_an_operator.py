"""Adding an element-wise operator touches the files that ``docs/design.md`` names, and nothing else.

In a copy of the repository an operator is added that the specification lacks; then the copy's own tests are run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spec_tests.support.backends import BACKENDS
from spec_tests.support.depth import is_full

ROOT = Path(__file__).parents[2]
COPIED = ("webnn_py", "spec_tests", "docs", "pyproject.toml")
END = ""
"""Stands for the end of a file."""

CATEGORY_FILES = {
    "webnn_py/core/operators/unary.py": (
        END,
        'atan = _unary("atan", OF_FLOATS, "The angle in radians whose tangent is the element.")\n',
    ),
    "webnn_py/core/operators/methods.py": (
        "    tan = OperatorMethod(unary.tan)\n",
        "    tan = OperatorMethod(unary.tan)\n    atan = OperatorMethod(unary.atan)\n",
    ),
    "webnn_py/devices/numpy/kernels/unary.py": ("unary.tan: np.tan}", "unary.tan: np.tan, unary.atan: np.arctan}"),
    "webnn_py/devices/wgpu/kernels/unary.py": (
        '        unary.tan: "tan_f32({0})",\n',
        '        unary.tan: "tan_f32({0})",\n        unary.atan: "select(atan({0}), {0}, is_nan({0}))",\n',
    ),
    "webnn_py/core/reference.py": (
        '    "sin": np.sin,\n',
        '    "sin": np.sin,\n    "atan": np.arctan,\n',
    ),
    "webnn_py/onnx_models/rules/unary.py": (
        '@rule("Atan", 7, 22)\n',  # which composes it of others
        'one_to_one("Atan", unary.atan, 7, 22)\n\n\n',
    ),
    "webnn_py/onnx_export/rules/unary.py": (
        '        unary.tan: "Tan",\n',
        '        unary.tan: "Tan",\n        unary.atan: "Atan",\n',
    ),
    "spec_tests/operators/unary/make_cases.py": (
        '    "tan": (np.tan, ANGLES, BIG_ANGLES),\n}\n',
        '    "tan": (np.tan, ANGLES, BIG_ANGLES),\n    "atan": (np.arctan, ANGLES, BIG_ANGLES),\n}\n',
    ),
    "spec_tests/onnx_models/rules/test_unary.py": (
        '("Cos", "Sin", "Tan")),\n',
        '("Cos", "Sin", "Tan", "Atan")),\n',
    ),
}
"""The edits by hand for an operator of the category "unary": file → what is replaced, and by what."""

BEYOND_FILES = {
    "spec_tests/idl/differences.py": ("BEYOND: dict[str, str] = {", 'BEYOND: dict[str, str] = {"atan": "For ONNX."'),
    "docs/differences.md": (
        "a wrapped repetition is never meant. |\n",
        "a wrapped repetition is never meant. |\n| `atan` | – | the operator | For ONNX. |\n",
    ),
}
"""Further edits for an operator that the specification lacks."""

TOLERANCE = (
    '"sign"), EITHER_ZERO\n)\n',
    '"sign"), EITHER_ZERO\n) | {"atan": {"float32": {"ulp": 4096}, "float16": {"ulp": 1}}}\n',
)
"""WGSL allows drivers 4096 units in the last place for atan; the tolerance of the cases says so."""

SCRIPTS = ("spec_tests/operators/unary/make_cases.py",)
"""The program that is run then; it writes the cases."""

CHECKS = """
import numpy as np
import pytest

from webnn_py import MLGraphBuilder


async def test_the_method_checks_its_arguments(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="int32", shape=[2])
    with pytest.raises(TypeError, match=r"atan\\(\\) \\[angle\\]: the data type of input is int32"):
        builder.atan(x, label="angle")
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        builder.atan(x, axis=1)


async def test_the_limits_have_it(context):
    row = context.op_support_limits()["atan"]
    assert set(row) == {"input", "output"}
    assert row["input"]["data_types"] == ["float32", "float16"]

"""

GPU_CHECKS = """
async def test_webgpu_fuses_it(check_kernels):
    await check_kernels(lambda b, x: b.mul(b.atan(b.add(x, x)), x), 1)
"""

TESTS = (
    "spec_tests/added",
    "spec_tests/operators/test_cases.py::test_cases_compute_what_their_oracles_say",
    "spec_tests/operators/test_coverage.py",
    "spec_tests/operators/test_limits.py",
    "spec_tests/operators/test_bad_operands.py",
    "spec_tests/onnx_models/rules/test_unary.py",
    "spec_tests/onnx_models/test_table.py",
    "spec_tests/onnx_models/export/test_cases.py",
    "spec_tests/onnx_models/export/test_rules.py",
    "spec_tests/idl",
    "spec_tests/architecture/test_layers.py::test_every_operator_has_a_section_in_the_page_of_its_category",
    "spec_tests/architecture/test_layers.py::test_every_operator_is_a_method_of_the_builder",
    "spec_tests/architecture/test_layers.py::test_every_category_declares_operators_and_every_operator_is_in_one",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory, pytestconfig):
    """A copy of the repository with the operator in it; its tests take some ten seconds."""
    if not is_full(pytestconfig):
        pytest.skip("at full depth only")
    copied = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, copied / name)
    for name, (old, new) in (CATEGORY_FILES | BEYOND_FILES).items():
        replace(copied / name, old, new)
    replace(copied / SCRIPTS[0], *TOLERANCE)
    (copied / "spec_tests/added").mkdir()
    (copied / "spec_tests/added/test_added.py").write_text(CHECKS, encoding="utf-8")
    if "wgpu" in BACKENDS:
        (copied / "spec_tests/on_wgpu/test_added.py").write_text(GPU_CHECKS, encoding="utf-8")
    for script in SCRIPTS:
        run(copied, script)
    return copied


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    if old == END:
        changed = text + new
    else:
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        changed = text.replace(old, new)
    path.write_text(changed, encoding="utf-8")


def run(folder, *arguments):
    """Run Python in the copy, with the copy's package."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_added_operator_passes_the_tests_of_every_layer(copy):
    gpu = ["spec_tests/on_wgpu/test_added.py"] if "wgpu" in BACKENDS else []
    ids = "atan or Atan or test_added or listed or pages or method or category or rule"
    told = run(copy, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-k", ids, "-rN", *TESTS, *gpu)
    assert re.search(r"\d+ passed", told)
    assert "failed" not in told


def test_its_section_says_that_the_specification_lacks_it(copy, tmp_path):
    run(copy, "docs/make_operator_pages.py", str(tmp_path))
    page = (tmp_path / "unary.md").read_text(encoding="utf-8")
    section = page[page.index("## `atan`") :]
    assert "Not in the specification" in section
    assert "The angle in radians whose tangent is the element." in section


def test_type_checkers_see_the_method(copy):
    program = copy / "draw.py"
    program.write_text(
        "import webnn_py\n"
        "def draw(builder: webnn_py.MLGraphBuilder, x: webnn_py.MLOperand) -> webnn_py.MLOperand:\n"
        "    return builder.atan(x, label='angle')\n",
        encoding="utf-8",
    )
    run(copy, "-m", "mypy", "--config-file", "pyproject.toml", str(program))


def test_the_design_names_the_files():
    design = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    section = design.split("## Adding an operator\n")[1].split("\n## ")[0]
    for name in [*CATEGORY_FILES, *BEYOND_FILES]:
        assert name.replace("unary", "CATEGORY") in section, name
    for name in SCRIPTS:
        assert name.replace("unary", "CATEGORY") in section, name
