"""``webnn-py info --browser``: what of a model would fail in a browser."""

import numpy as np
import pytest

from spec_tests.support.onnx_programs import program
from webnn_py.browser_profiles import ALL_NAMES

CHROMIUM, CPU, DML = "chromium-153-litert", "chromium-windows-cpu", "chromium-windows-dml"


@pytest.fixture
def padded(model):
    """A model that pads the edge twice."""
    kind = ("float32", [2])
    nodes = [("Pad", [name, "pads"], [result], {"mode": "edge"}) for name, result in (("x", "a"), ("a", "y"))]
    return model(program(nodes, {"x": kind}, {"y": ("float32", [6])}, {"pads": np.array([1, 1], np.int64)}))


def test_info_tells_what_would_fail(command, padded):
    ended = command("info", padded, "--backend", "numpy", "--browser", CHROMIUM).succeeded()
    first, heading, row = ended.out.splitlines()[-3:]
    assert first == "in browsers"
    assert heading.split()[:3] == ["browser", "profile", "what"]
    assert row.split()[:6] == [CHROMIUM, "pad", "2", "at", "build(),", "NotSupportedError"]
    assert "mode must not be edge" in row


def test_info_as_json_tells_what_would_fail(command, padded):
    told = command("info", padded, "--backend", "numpy", "--browser", CHROMIUM, "--json").report()
    assert told["runs"]
    assert not told["browsers"][CHROMIUM]["runs"]
    (failing,) = told["browsers"][CHROMIUM]["failing"]
    assert (failing["what"], failing["times"], failing["when"]) == ("pad", 2, "build")
    assert len(failing["labels"]) <= 2
    assert told["browsers"][CHROMIUM]["found"] == "by table"


@pytest.fixture
def unsigned(model):
    """A model with an operator that no kernel of onnxruntime's CPU provider is for, as Chromium draws it."""
    kind = ("int32", [2])
    nodes = [("PRelu", ["x", "x"], ["a"], {}), ("Neg", ["a"], ["y"], {})]
    return model(program(nodes, {"x": kind}, {"y": kind}))


def test_info_asks_the_engines_of_all_browsers_that_have_one(command, unsigned):
    ended = command("info", unsigned, "--backend", "numpy", "--browser", "all").succeeded()
    lines = ended.out.splitlines()
    table = lines[lines.index("in browsers") + 1 :]
    rows = {words[0]: words for words in map(str.split, table[1 : table.index("  ")])}
    assert rows.keys() == set(ALL_NAMES)
    assert rows[CPU][1:6] == ["prelu", "1", "at", "build(),", "UnknownError"]
    assert "PRelu" in " ".join(rows[CPU])
    assert rows[DML][1:6] == ["all", "of", "it", "not", "known"]
    found = {line.split()[0]: line for line in table[table.index("  ") + 1 :]}
    assert found[CHROMIUM].split()[1:] == ["by", "table"]
    assert "limits by table; operators asked of CPUExecutionProvider in onnxruntime" in found[CPU]
    assert "operators not asked: onnxruntime has no DmlExecutionProvider here; pip install" in found[DML]


def test_info_as_json_has_what_the_engine_says_of_the_graph(command, unsigned):
    told = command("info", unsigned, "--backend", "numpy", "--browser", CPU, "--json").report()["browsers"][CPU]
    assert not told["runs"]
    (graph,) = told["graphs"]
    assert (graph["builds"], graph["runs_whole"], graph["provider"]) == (False, False, "CPUExecutionProvider")
    (operator,) = graph["operators"]
    assert (operator["operator"], operator["outcome"]) == ("prelu", "refused")


def test_without_the_option_there_is_nothing_about_browsers(command, padded):
    assert "browsers" not in command("info", padded, "--backend", "numpy", "--json").report()


def test_an_unknown_browser_is_refused(command, padded):
    command("info", padded, "--browser", "netscape-4").assert_refused("netscape-4")
