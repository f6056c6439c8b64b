"""Text that the test draws is found, turned and read, and what each model says is what onnxruntime says."""

import numpy as np
import pytest
import read_text
import real_models
from PIL import Image, ImageDraw, ImageFont

from spec_tests.examples.onnxruntime_peer import assert_near, open_peer, run_peer
from spec_tests.support.stand_ins import returned
from webnn_py.runtime.blocking import Environment

TEXTS = ["Nothing is lost: 42%", "what stands on its head", "(see also page 7)"]


def draw(texts):
    """Lines one under the other; the second stands on its head."""
    picture = Image.new("RGB", (480, 224), "white")
    font = ImageFont.load_default(30)
    for row, text in enumerate(texts):
        line = Image.new("RGB", (int(font.getlength(text)) + 8, 44), "white")
        ImageDraw.Draw(line).text((4, 2), text, font=font, fill=(0, 0, 40 * row))
        picture.paste(line.rotate(180) if row == 1 else line, (20, 20 + 68 * row))
    return picture


def test_drawn_lines_are_read_as_onnxruntime_reads_them(files_of, monkeypatch):
    files_of("read_text")
    calls = returned(monkeypatch, read_text, "only", lambda found, session, x: (session, x, found))
    with Environment("numpy") as env:
        reader = read_text.Reader(env)
        lines = reader.read(draw(TEXTS))
    assert [line.text for line in lines] == TEXTS
    assert all(line.score > 0.9 for line in lines)
    assert [call[0] for call in calls] == [reader._detection, *[reader._direction, reader._recognition] * 3]
    names = ["text_detection", *["text_direction", "text_recognition"] * 3]
    peers = {name: open_peer(real_models.get(name)) for name in set(names)}
    for name, (session, x, found) in zip(names, calls, strict=True):
        (expected,) = run_peer(peers[name], {session.input_names[0]: x}).values()
        assert_near(found, expected, name)
        if name == "text_recognition":
            assert (found.argmax(-1) == expected.argmax(-1)).all()


def test_boxes_lie_round_the_lines(files_of):
    files_of("read_text")
    with Environment("numpy") as env:
        picture = draw(TEXTS[:1])
        ((_, _, box),) = read_text.Reader(env).read(picture)
    ink = np.argwhere(np.asarray(picture.convert("L")) < 128)
    (top, left), (bottom, right) = ink.min(0), ink.max(0)
    assert box[0] <= left
    assert box[1] <= top
    assert box[2] > right
    assert box[3] > bottom
    assert (box[2] - box[0]) * (box[3] - box[1]) < 2.5 * (right - left) * (bottom - top)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["....", "...."], 0),
        (["#.#.", ".#.#"], 4),
        (["##.#", "#..#", "####"], 1),
        (["#####", "....#", "###.#", "#...#", "#####"], 1),
        (["#...#", "#.#.#", "#.#.#", "###.#"], 2),
    ],
)
def test_points_that_touch_by_an_edge_hang_together(rows, expected):
    mask = np.array([[letter == "#" for letter in row] for row in rows])
    labels = read_text.labelled(mask)
    assert (labels >= 0).tolist() == mask.tolist()
    assert len(np.unique(labels[mask])) == expected


def test_a_letter_that_is_said_again_after_none_is_two():
    said = np.eye(3, dtype=np.float32)[[0, 1, 1, 0, 1, 2, 2, 0]]
    assert read_text.letters_in(said, ["", "a", "b"]) == ("aab", 1)
    assert read_text.letters_in(said[:1], ["", "a", "b"]) == ("", 0)
