import argparse

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.labs.real_models.__main__ import outcome
from spec_tests.labs.real_models.comparison import Result, all_values, session_of
from spec_tests.labs.real_models.listed import Model, Package
from spec_tests.labs.real_models.meanings import MEANINGS
from spec_tests.labs.real_models.sensitivity import moved_model, moves_by, moving_answers

LEVELS = np.array([0, 255, 3, 7.5, 100.25, 17], np.float32)
"""What is quantized in steps of 1, an element in the middle between two."""


def rounding(levels, weight=1.0):
    """A model of one product, which is quantized by its range; the sum of what that says, and the product."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "levels"], ["product"]),
            helper.make_node("DynamicQuantizeLinear", ["product"], ["quantized", "scale", "point"]),
            helper.make_node("DequantizeLinear", ["quantized", "scale", "point"], ["floats"]),
            helper.make_node("Mul", ["floats", "weight"], ["y"]),
        ],
        "rounding",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(levels[np.newaxis], "levels"), numpy_helper.from_array(np.float32(weight), "weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(rounding(LEVELS), path)
    return path


@pytest.fixture
def model():
    return Model(
        package=Package("pypi", "no-such-package", "1.0", "MIT"),
        file="model.onnx",
        sha256="0" * 64,
        inputs={"x": "ones 1 1"},
        rounds="one element is in the middle",
        meaning="whole",
        asked={"x": "letters 1 1"},
    )


@pytest.fixture(autouse=True)
def meaning(monkeypatch):
    monkeypatch.setitem(
        MEANINGS, "whole", lambda outputs, _: (outputs["y"] / outputs["y"].max() * 255).round().tolist()
    )


def test_what_is_in_the_middle_of_two_steps_moves_by_one(model, path):
    assert moves_by(model, path, 6) == pytest.approx(1 / 255, rel=1e-6)
    onnx.save(rounding(np.delete(LEVELS, 3)), path)
    assert moves_by(model, path, 6) < 1e-6


def test_answers_that_hang_on_it_are_counted(model, path, tmp_path):
    assert moving_answers(model, path, tmp_path, 6) == 6
    onnx.save(rounding(np.delete(LEVELS, 3)), path)
    assert moving_answers(model, path, tmp_path, 6) == 0


def test_a_moved_result_is_its_neighbour_or_itself(model, path):
    proto = onnx.load(path)
    values, _ = all_values(proto, model)
    moved = moved_model(proto, values, np.random.default_rng(1))
    assert [node.op_type for node in moved.graph.node][:2] == ["MatMul", "Add"]
    assert len(moved.graph.node) == 5
    moved.graph.output.append(onnx.ValueInfoProto(name="product"))
    _, product = session_of(moved.SerializeToString()).run(None, {"x": values["x"]})
    units = (product - values["product"]) / np.spacing(values["product"])
    assert set(units.flat) == {-1, 0, 1}
    assert units[values["product"] == 0] == 0


@pytest.mark.parametrize("steps", [0, 1, 1.1])
def test_a_quantized_model_may_be_as_far_as_onnxruntime_moves_but_no_farther(model, path, monkeypatch, steps):
    async def compared(*_):
        return Result(4, 0.0, steps / 255, not steps)

    monkeypatch.setattr("spec_tests.labs.real_models.__main__.compared", compared)
    line, good, are_bits = outcome(model, path, argparse.Namespace(backend="numpy", folder=path.parent, apart=False))
    assert (good, are_bits) == (steps <= 1, not steps), line
