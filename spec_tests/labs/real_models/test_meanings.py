import attrs
import numpy as np
import pytest
from onnx import helper

from spec_tests.labs.real_models.comparison import session_of
from spec_tests.labs.real_models.meanings import MEANINGS, answered, are_same_faces
from spec_tests.labs.real_models.questions import QUESTIONS, question
from spec_tests.support.onnx_programs import make_model

WITHOUT_PACKAGES = {"face 1 3 24 32", "small_face 1 3 24 32", "file 1 64", "letters 2 8"}


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


async def test_a_model_is_given_what_it_remembers(model, path, tmp_path, monkeypatch):
    monkeypatch.setitem(MEANINGS, "decisions", lambda outputs, _: float(outputs["stateN"][0, 0]))
    asked = [question("letters 1 4", number, tmp_path)[0, 0] for number in range(6)]
    told = await answered(model, path, "numpy", tmp_path)
    assert told.same == 6
    assert told.shown == ", ".join(str(sum(asked[: count + 1]) * 0.5) for count in range(6))


async def test_a_model_without_any_answer_is_a_fault_of_the_question(model, path, tmp_path, monkeypatch):
    monkeypatch.setitem(MEANINGS, "faces", lambda *_: [])
    with pytest.raises(AssertionError, match="no question has an answer"):
        await answered(attrs.evolve(model, meaning="faces"), path, "numpy", tmp_path)


def test_letters_are_read_once_however_many_places_they_take():
    scores = np.eye(4)[[0, 2, 2, 0, 2, 3, 3, 1, 0]]
    assert MEANINGS["text"]({"y": scores[np.newaxis]}, ["", "a", "b", " "]) == "bb a"
    assert MEANINGS["text"]({"y": scores[:, np.newaxis]}, None) == [2, 2, 3, 1]


def test_boxes_are_of_what_hangs_together():
    likely = np.zeros([1, 1, 4, 6])
    likely[..., 0, 0:3] = likely[..., 1, 2] = likely[..., 3, 4:6] = 0.4
    assert MEANINGS["lines"]({"y": likely}, None) == [[0, 0, 2, 1], [4, 3, 5, 3]]


def test_faces_are_where_they_are_likely():
    scores, boxes = np.array([[[0.9, 0.1], [0.3, 0.7]]]), np.array([[[0, 0, 0, 0], [0.25, 0.5, 0.75, 1]]])
    assert MEANINGS["faces"]({"scores": scores, "boxes": boxes}, None) == [(1, 80, 160, 240, 320)]
    parts = {f"{name}_{size}": np.full([1, 1, 1], 0.2) for name in ("cls", "obj") for size in (8, 16, 32)}
    parts |= {f"bbox_{size}": np.array([[[0.5, 1, 2, 3]]]) for size in (8, 16, 32)}
    parts |= {"cls_16": np.full([1, 1, 1], 0.9), "obj_16": np.full([1, 1, 1], 0.4)}
    assert MEANINGS["faces"](parts, None) == [(0, 8, 16, 32, 48)]


def test_classes_are_those_of_the_greatest_scores():
    assert MEANINGS["best"]({"y": np.array([[0.1, 0.7, 0.2]]), "state": np.zeros([2])}, None) == 1
    assert MEANINGS["best"]({"y": np.array([[3, 1]])}, None) == [3, 1]


@pytest.mark.parametrize("text", sorted(WITHOUT_PACKAGES))
def test_questions_differ_and_are_the_same_each_time(text, tmp_path):
    kind, *shape = text.split()
    _, count = QUESTIONS[kind]
    asked = [question(text, number, tmp_path) for number in range(count)]
    assert {item.shape for item in asked} == {tuple(map(int, shape))}
    assert len({item.tobytes() for item in asked}) == count
    assert np.array_equal(question(text, 1, tmp_path), asked[1])


@pytest.mark.parametrize(
    ("ours", "is_same"),
    [
        ([(7, 10, 11, 12, 13)], True),
        ([(7, 10, 12, 12, 13)], True),
        ([(7, 10, 13, 12, 13)], False),
        ([(8, 10, 11, 12, 13)], False),
        ([(7, 10, 11, 12, 13), (8, 10, 11, 12, 13)], False),
        ([], False),
    ],
)
def test_boxes_may_be_a_pixel_apart(ours, is_same):
    assert are_same_faces(ours, [(7, 10, 11, 12, 13)]) == is_same
