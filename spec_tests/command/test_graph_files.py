"""``webnn-py info --graph FILE``."""

import json

import numpy as np
import pytest

from spec_tests.pictures.notation_readers import read_dot, read_mermaid
from spec_tests.support.onnx_programs import program

BEGINS = {
    "g.svg": "<svg ",
    "g.html": "<!doctype html>",
    "g.MMD": "flowchart TD\n",
    "g.dot": "digraph webnn {\n",
    "g.txt": "graph of 2 operators on numpy (",
}


@pytest.fixture
def perceptron(model):
    nodes = [("MatMul", ["x", "w"], ["a"], {}), ("Relu", ["a"], ["y"], {})]
    kind = ("float32", ["batch", 4])
    return model(program(nodes, {"x": kind}, {"y": kind}, {"w": np.ones((4, 4), np.float32)}))


@pytest.mark.parametrize("name", BEGINS)
def test_a_graph_is_written_in_the_form_that_the_suffix_says(command, perceptron, tmp_path, name):
    path = tmp_path / name
    path.write_text("replaced")
    ended = command("info", perceptron, "--backend", "numpy", "--graph", path)
    assert (ended.status, ended.err) == (0, "")
    assert "operators   2 nodes" in ended.out
    text = path.read_text(encoding="utf-8")
    assert f"graph       written to {path}, " in ended.out
    assert text.startswith(BEGINS[name])
    if name == "g.MMD":
        assert [lines[0] for lines, _ in read_mermaid(text).boxes.values()] == [
            "x", "matmul [MatMul of a]", "relu [Relu of y]", "y"
        ]  # fmt: skip
    elif name == "g.dot":
        assert {edge[2] for edge in read_dot(text).edges} == {"float32 [1, 4]"}
    else:
        assert "matmul" in text


def test_the_page_has_the_model_for_its_title_and_statistics_of_the_weights(command, perceptron, tmp_path):
    path = tmp_path / "graph.html"
    ended = command("info", perceptron, "--backend", "numpy", "--graph", path, "--json")
    assert json.loads(ended.out)["graph"] == str(path)
    page = path.read_text(encoding="utf-8")
    assert f"<title>{perceptron.name} on numpy (" in page
    assert '"statistics":{"min":"1","max":"1","mean":"1","std":"0","zeros":0,"nan":0,"infinite":0}' in page


def test_what_cannot_be_written_is_refused_before_the_work(command, tmp_path):
    for path, words in (("g.png", "it must end in .svg, .html"), ("missing/g.svg", "is no folder")):
        ended = command("info", tmp_path / "no_model.onnx", "--graph", tmp_path / path)
        assert ended.status == 2
        assert words in ended.err


def test_a_model_that_cannot_be_imported_is_told_of_and_not_drawn(command, of_node, tmp_path):
    path = of_node("RandomUniformLike", ["x"], ("float32", [2, 2]))
    ended = command("info", path, "--backend", "numpy", "--graph", tmp_path / "g.svg")
    assert ended.status == 1
    assert "runs here   no" in ended.out
    assert "nothing is drawn" in ended.err
    assert "written" not in ended.out
    assert not (tmp_path / "g.svg").exists()


def test_the_text_has_the_passes_with_nodes_and_rules(command, perceptron, tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "g.txt"
    command("info", perceptron, "--backend", "onnxruntime", "--graph", path).succeeded()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("  loops: 2 → 2 nodes, ") for line in lines[lines.index("passes") :])
