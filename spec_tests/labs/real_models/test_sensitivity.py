import argparse

import attrs
import numpy as np
import onnx
import pytest
from onnx import helper

from spec_tests.labs.real_models.__main__ import outcome
from spec_tests.labs.real_models.comparison import Result, all_values, session_of
from spec_tests.labs.real_models.meanings import MEANINGS
from spec_tests.labs.real_models.sensitivity import moved_model, moves_by, moving_answers
from spec_tests.support.onnx_programs import make_model

LEVELS = np.array([0, 255, 3, 7.5, 100.25, 17], np.float32)
"""A value quantized in steps of 1, an element in the middle between two."""


def written(levels=LEVELS):
    """Return a model of one product, which is quantized by its range."""
    nodes = [
        helper.make_node("MatMul", ["x", "levels"], ["product"]),
        helper.make_node("DynamicQuantizeLinear", ["product"], ["quantized", "scale", "point"]),
        helper.make_node("DequantizeLinear", ["quantized", "scale", "point"], ["floats"]),
        helper.make_node("Mul", ["floats", "weight"], ["y"]),
    ]
    weights = {"levels": levels[np.newaxis], "weight": np.ones((), np.float32)}
    return make_model(nodes, {"x": np.ones([1, 1], np.float32), **weights}, ["y"], weights, opset=18)


@pytest.fixture
def model(model):
    of_one = {"inputs": {"x": "ones 1 1"}, "meaning": "whole", "asked": {"x": "letters 1 1"}}
    return attrs.evolve(model, rounds="one element is in the middle", **of_one)


@pytest.fixture(autouse=True)
def meaning(monkeypatch):
    monkeypatch.setitem(
        MEANINGS, "whole", lambda outputs, _: (outputs["y"] / outputs["y"].max() * 255).round().tolist()
    )


def test_what_is_in_the_middle_of_two_steps_moves_by_one(model, path):
    assert moves_by(model, path, 6) == pytest.approx(1 / 255, rel=1e-6)
    path.write_bytes(written(np.delete(LEVELS, 3)))
    assert moves_by(model, path, 6) < 1e-6


def test_answers_that_hang_on_it_are_counted(model, path, tmp_path):
    assert moving_answers(model, path, tmp_path, 6) == 6
    path.write_bytes(written(np.delete(LEVELS, 3)))
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
