import attrs
import numpy as np
import pytest
from onnx import helper

from spec_tests.labs.real_models.comparison import session_of
from spec_tests.labs.real_models.meanings import answered
from spec_tests.support.onnx_programs import make_model


def written(weight=0.5):
    """Return a model that adds up what it is asked, and says whether that is more than a half."""
    nodes = [
        helper.make_node("Mul", ["x", "weight"], ["m"]),
        helper.make_node("Add", ["m", "state"], ["stateN"]),
        helper.make_node("Sigmoid", ["stateN"], ["y"]),
    ]
    weights = {"weight": np.array([weight, -weight, 0, 1], np.float32)}
    given = dict.fromkeys(("x", "state"), np.zeros([1, 4], np.float32))
    return make_model(nodes, {**given, **weights}, ["y", "stateN"], weights, opset=18)


@pytest.fixture
def model(model):
    inputs = {"x": "noise 1 4", "state": "noise 1 4"}
    return attrs.evolve(model, inputs=inputs, meaning="decisions", asked={"x": "letters 1 4"})


@pytest.fixture
def other_weight(monkeypatch):
    other = session_of(written(-0.5))
    monkeypatch.setattr("spec_tests.labs.real_models.meanings.session_of", lambda _: other)


async def test_the_same_answers_are_counted_and_shown(model, path, tmp_path):
    told = await answered(model, path, "numpy", tmp_path)
    assert (told.asked, told.same, told.shown[:8]) == (6, 6, "[0, 3], ")


@pytest.mark.usefixtures("other_weight")
async def test_other_answers_are_seen(model, path, tmp_path):
    told = await answered(model, path, "numpy", tmp_path)
    assert (told.asked, told.same, told.shown[:8]) == (6, 0, "[1, 3], ")
