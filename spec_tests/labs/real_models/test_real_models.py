import re

import magika
import numpy as np
import pytest
from onnx import TensorProto, helper

from spec_tests.labs.real_models.comparison import compared, difference, session_of
from spec_tests.labs.real_models.contents import KINDS
from spec_tests.labs.real_models.listed import listed
from spec_tests.labs.real_models.meanings import MEANINGS
from spec_tests.labs.real_models.packages import NotHadError, path_of
from spec_tests.labs.real_models.questions import QUESTIONS
from spec_tests.support.onnx_programs import make_model


def written(scale=0.5):
    """Return a model that quantizes by its own range, multiplies integers and scales by a number."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["m"]),
        helper.make_node("Mul", ["m", "scale"], ["y"]),
    ]
    weights = {"w": np.random.default_rng(4).integers(-9, 9, [8, 4]).astype(np.int8), "scale": np.array(scale, "f4")}
    return make_model(nodes, {"x": np.zeros([3, 8], np.float32), **weights}, ["y"], weights, opset=18)


def test_each_listed_model_is_there_once_with_a_licence_and_inputs():
    models = listed()
    assert len({model.sha256 for model in models}) == len(models) >= 139
    for model in models:
        assert re.fullmatch(r"[0-9a-f]{64}", model.sha256), model.name
        assert model.package.registry in {"pypi", "npm", "git"}, model.name
        assert model.package.licence, model.name
        assert not re.search(r"AGPL|\bNC\b", model.package.licence), model.name
        kinds = {text.split()[0] for text in model.inputs.values()}
        assert kinds, model.name
        assert kinds <= {*KINDS, "known", "value"}, model.name
        assert bool(model.meaning) == bool(model.asked), model.name
        assert not model.meaning or model.meaning in MEANINGS, model.name
        assert {text.split()[0] for text in model.asked.values()} <= {*QUESTIONS}, model.name
        assert {*model.asked} <= {*model.inputs}, model.name


def test_at_least_126_are_listed_to_agree():
    assert sum(not model.refused for model in listed()) >= 126


async def test_a_listed_model_agrees():
    (model,) = (item for item in listed() if item.package.name.endswith("/magika") and "v3_3" in item.file)
    path = f"{magika.__path__[0]}/models/standard_v3_3/model.onnx"
    result = await compared(model, path, "numpy")
    assert result.nodes == 95
    assert result.difference <= model.bound


async def test_another_result_is_seen(model, path, monkeypatch):
    assert (await compared(model, path, "numpy")).difference < 1e-6
    other = session_of(written(0.5 / 1.01))
    monkeypatch.setattr("spec_tests.labs.real_models.comparison.session_of", lambda _: other)
    assert (await compared(model, path, "numpy")).difference == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    ("ours", "theirs", "apart"),
    [([1, 2], [1, 4], 0.5), ([0, 0], [0, 0], 0), ([1, np.nan], [1, 2], np.inf), ([[1]], [1], np.inf)],
)
def test_differences_are_relative_to_the_largest_value(ours, theirs, apart):
    assert difference(np.array(ours), np.array(theirs)) == apart


def test_another_file_than_the_listed_one_is_refused(model, path, tmp_path):
    root = tmp_path / model.package.folder
    root.mkdir()
    path.rename(root / "model.onnx")
    with pytest.raises(NotHadError, match=r"has the SHA-256 [0-9a-f]{64}; it must be 0000"):
        path_of(model, tmp_path)
