"""Composites: the program of ``docs/composites.md``, and what is refused of them."""

import subprocess
import sys

import numpy as np
import pytest

from spec_tests.support.computing import compute
from spec_tests.support.documents import ROOT, blocks_of
from webnn_py import MLGraphBuilder, OperationError
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import FLOATS, limit
from webnn_py.core.operators.operand import MLOperand

PROGRAM, PRINTED = blocks_of(ROOT / "docs/composites.md")
MOST_LINES = 40


def test_the_program_of_the_page_prints_what_the_page_says(tmp_path):
    file = tmp_path / "swish.py"
    file.write_text(PROGRAM.code, encoding="utf-8")
    ran = subprocess.run([sys.executable, str(file)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (PRINTED.code, "")


def test_the_program_of_the_page_is_short():
    lines = [line for line in PROGRAM.code.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(lines) < MOST_LINES


def scaled_by_table(input: MLOperand, table: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Scale by the sum of a table."""
    return MLOperandDescriptor(input.data_type, input.shape)


def by_its_sum(builder, input, *, table):
    return builder.mul(input, builder.constant(float(table.sum()), data_type="float32"))


ROWS = {"input": limit(("float32",)), "table": limit(("float32",)), "output": limit(FLOATS)}
SCALED = Composite(scaled_by_table, "scaledByTable", ROWS, by_its_sum, tables=("table",))


async def test_a_decomposition_is_given_the_elements_of_a_table(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2])
    y = builder.append(SCALED, x, builder.constant(np.float32([1, 2, 4])))
    result = await compute(context, builder, {"x": np.float32([1, -2])}, {"y": y})
    np.testing.assert_array_equal(result["y"], np.float32([7, -14]))


async def test_a_table_that_is_no_constant_fails_the_build_by_name(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2])
    y = builder.append(SCALED, x, builder.relu(x), label="mine")
    with pytest.raises(OperationError, match=r"scaledByTable \[mine\].*table is no constant with known elements"):
        await builder.build({"y": y})


@pytest.mark.parametrize("name", ["relu", "scaled_by_table"])
def test_a_name_that_an_operator_has_is_refused(name):
    def function(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
        """Do nothing."""

    function.__name__ = name
    with pytest.raises(ValueError, match=f"an operator called '{name}' is declared already; choose another name"):
        Composite(function, name, {}, by_its_sum)
