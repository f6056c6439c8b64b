"""A rule that is added as ``docs/adding_a_rule.md`` says: ten lines, a test of ten, and onnxruntime's operator runs."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both
from spec_tests.support.documents import ROOT, blocks_of

pytest.importorskip("onnxruntime")

from webnn_py.core.operators import composite
from webnn_py.devices.composites import fused
from webnn_py.devices.onnxruntime import executable
from webnn_py.devices.onnxruntime.passes.pipeline import PASSES
from webnn_py.devices.rewriting.passes import PassManager

RULE, *_, TEST = (block for block in blocks_of(ROOT / "docs/adding_a_rule.md") if block.language == "python")
MOST_LINES = 10
X = np.linspace(-30, 30, 240, dtype=np.float32).reshape(4, 60)
X[0, :7] = np.inf, -np.inf, np.nan, 0, -0.0, 1e30, -1e30


@pytest.fixture
def page(monkeypatch):
    """The names that the page's rule defines, whose operator is declared for this test alone."""
    monkeypatch.delitem(composite._DECLARED, "mish", raising=False)
    names = {"__name__": "mish"}
    exec(RULE.code, names)  # noqa: S102 - the page's
    monkeypatch.setattr(executable, "PASSES", PassManager(*PASSES.passes, names["MISH_PASS"]))
    yield names
    composite._DECLARED.pop("mish")


@pytest.mark.parametrize("block", [RULE, TEST], ids=["rule", "test"])
def test_ten_lines_are_enough(block):
    lines = [line for line in block.code.splitlines() if line.strip() and not line.startswith("from ")]
    assert len(lines) <= MOST_LINES, block.code


def test_its_test_passes(page):
    exec(TEST.code, page)  # noqa: S102 - the page's


async def test_it_runs_as_one_operator_and_gives_the_same_values(page, contexts, written, monkeypatch):
    await assert_both(contexts, page["drawn"], X, rtol=1e-5, atol=1e-6)
    assert written["Mish"] == 1
    assert {"Tanh", "Softplus", "Mul"}.isdisjoint(written)


async def test_an_operator_that_onnx_lacks_is_written_as_it_is_drawn(page, contexts, written, monkeypatch):
    monkeypatch.delitem(fused.ONNX_NAMES, composite.COMPOSITES["mish"])
    await assert_both(contexts, page["drawn"], X, rtol=1e-5, atol=1e-6)
    assert not written["Mish"]
