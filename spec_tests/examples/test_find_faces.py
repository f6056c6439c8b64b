"""Faces are found where they are put, none where there are none, and what the model says is what onnxruntime says."""

import find_faces
import numpy as np
import pytest
import real_models
from PIL import Image, ImageOps

from spec_tests.examples.onnxruntime_peer import assert_near, open_peer, run_peer
from spec_tests.support.stand_ins import noted
from webnn_py.runtime.blocking import Environment

FACE = (178, 63, 268, 176)
"""Where it is in the picture of the astronaut."""


@pytest.fixture
def astronaut(files_of):
    files_of("find_faces")
    with Image.open(real_models.get("astronaut")) as picture:
        return picture.convert("RGB")


@pytest.fixture
def env():
    with Environment("numpy") as environment:
        yield environment


def test_two_faces_beside_each_other_are_two(env, astronaut, monkeypatch):
    outputs = noted(monkeypatch, find_faces, "candidates", lambda found: found)
    width, height = astronaut.size
    both = Image.new("RGB", (2 * width, height))
    both.paste(astronaut)
    both.paste(ImageOps.mirror(astronaut), (width, 0))
    faces = find_faces.detect(env, both)
    left, right = sorted((face.box for face in faces), key=lambda box: box[0])
    np.testing.assert_allclose(left, FACE, atol=6)
    mirrored = [2 * width - FACE[2], FACE[1], 2 * width - FACE[0], FACE[3]]
    np.testing.assert_allclose(right, mirrored, atol=6)
    points, _ = find_faces.points_of(both)
    expected = run_peer(open_peer(real_models.get("face_detection")), {"input": points})
    assert outputs[0].keys() == expected.keys()
    for name, value in expected.items():
        assert_near(outputs[0][name], value[0], name)


def test_there_is_no_face_in_a_picture_without_one(env, astronaut):
    assert find_faces.detect(env, astronaut.crop((280, 200, 512, 512))) == []


def test_boxes_and_marks_are_drawn(env, astronaut):
    (face,) = find_faces.detect(env, astronaut)
    shown = np.asarray(find_faces.drawn(astronaut, [face]))
    left, top, _, _ = face.box.round().astype(int)
    assert tuple(shown[top + 40, left]) == (0, 255, 0)
    right_eye, left_eye, nose, *mouth = face.marks.round().astype(int)
    for x, y in (right_eye, left_eye, nose, *mouth):
        assert tuple(shown[y, x]) == (255, 0, 0)
    assert right_eye[0] < nose[0] < left_eye[0]
    assert right_eye[1] < nose[1] < mouth[0][1]


def test_of_boxes_that_cover_each_other_the_surest_stays():
    box = np.array([0, 0, 10, 10], np.float32)
    none = np.zeros((5, 2), np.float32)
    faces = [find_faces.Face(score, box + shift, none) for score, shift in ((0.9, 0), (0.8, 3), (0.75, 6))]
    assert [face.score for face in find_faces.distinct(faces)] == [0.9, 0.75]
    assert find_faces.shared(box, box + 5) == pytest.approx(25 / 175)
