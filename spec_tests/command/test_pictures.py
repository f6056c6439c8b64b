"""Pictures as inputs: how they are fitted, laid out and scaled."""

import argparse

import numpy as np
import pytest
from PIL import Image

from spec_tests.support.onnx_programs import program
from webnn_py.command.declared import DeclaredInput
from webnn_py.command.failures import BadInputError
from webnn_py.command.pictures import read_picture

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def read(path, shape, kind="float32", **given):
    options = {**dict.fromkeys(("scale", "mean", "std")), **given}
    array, said = read_picture(path, DeclaredInput("x", kind, shape), shape, argparse.Namespace(**options))
    return array, said


@pytest.fixture
def stripes(tmp_path):
    """Eight columns and four rows: two columns each of red, green, green and blue."""
    pixels = np.zeros((4, 8, 3), np.uint8)
    for column, colour in enumerate((RED, GREEN, GREEN, BLUE)):
        pixels[:, 2 * column : 2 * column + 2] = colour
    path = tmp_path / "stripes.png"
    Image.fromarray(pixels).save(path)
    return path


def test_the_layout_follows_from_where_the_channels_are(stripes):
    first, _ = read(stripes, (1, 3, 4, 8), "uint8")
    last, _ = read(stripes, (1, 4, 8, 3), "uint8")
    assert first.shape == (1, 3, 4, 8)
    np.testing.assert_array_equal(first.transpose(0, 2, 3, 1), last)
    assert last[0, 0, [0, 3, 7]].tolist() == [list(RED), list(GREEN), list(BLUE)]
    assert last.flags.c_contiguous


def test_a_layout_that_is_not_clear_is_asked_for(stripes):
    shape = ("batch", "a", "b", "c")
    with pytest.raises(BadInputError, match="needs 1, 3 or 4 channels: give its --shape"):
        read(stripes, shape)


def test_open_sizes_are_the_pictures_own(stripes):
    assert read(stripes, ("batch", 3, "height", "width"))[0].shape == (1, 3, 4, 8)
    assert read(stripes, (3, "height", "width"))[0].shape == (3, 4, 8)
    assert read(stripes, (2, 3, "height", "width"))[0].shape == (2, 3, 4, 8)


def test_a_picture_of_another_form_is_cropped_in_its_middle(stripes):
    array, said = read(stripes, (1, 4, 4, 3), "uint8")
    assert array.tolist() == [[[list(GREEN)] * 4] * 4]
    assert "8 × 4, resized and cropped to 4 × 4, rgb, 0 to 255" in said
    smaller, said = read(stripes, (1, 2, 4, 3), "uint8")
    assert np.argmax(smaller[0, 0], axis=-1).tolist() == [0, 1, 1, 2]
    assert "resized and cropped to 4 × 2" in said


@pytest.mark.parametrize(
    ("options", "white", "black"),
    [
        ({}, (1, 1, 1), (0, 0, 0)),
        ({"scale": 1.0}, (255, 255, 255), (0, 0, 0)),
        ({"scale": 1.0, "mean": (127.5,), "std": (127.5,)}, (1, 1, 1), (-1, -1, -1)),
        ({"mean": (0.5, 0.0, 0.25)}, (0.5, 1, 0.75), (-0.5, 0, -0.25)),
        ({"mean": (0.5,), "std": (0.5, 0.25, 1.0)}, (1, 2, 0.5), (-1, -2, -0.5)),
    ],
    ids=str,
)
def test_pixels_are_scaled_as_asked(options, white, black, tmp_path):
    Image.fromarray(np.uint8([[[255] * 3, [0] * 3]])).save(tmp_path / "x.png")
    array, said = read(tmp_path / "x.png", (1, 1, 2, 3), **options)
    assert said.endswith("rgb, normalized" if options else "rgb, 0 to 1")
    np.testing.assert_allclose(array[0, 0], [white, black], rtol=1e-6, atol=1e-7)
    assert array.dtype == np.float32


def test_one_channel_is_grey_and_four_have_transparency(stripes):
    assert read(stripes, (1, 1, 4, 8), "uint8")[0][0, 0, 0, 0] == 76
    assert read(stripes, (1, 4, 4, 8), "uint8")[0][0, :, 0, 0].tolist() == [255, 0, 0, 255]


def test_a_photograph_that_lies_on_its_side_is_turned(tmp_path):
    picture = Image.new("RGB", (8, 4), RED)
    exif = picture.getexif()
    exif[0x0112] = 6  # the orientation: to be turned by a quarter
    picture.save(tmp_path / "x.jpg", exif=exif)
    assert read(tmp_path / "x.jpg", (1, 3, "h", "w"))[0].shape == (1, 3, 8, 4)


@pytest.mark.parametrize(
    ("shape", "kind", "options", "text"),
    [
        ((1, 10), "float32", {}, "a picture needs three or four dimensions"),
        (None, "float32", {}, "a picture needs three or four dimensions"),
        ((1, 5, 4, 8), "float32", {}, "needs 1, 3 or 4 channels"),
        ((1, 3, 4, 8), "uint8", {"mean": (0.5,)}, "can only stay as they are"),
        ((1, 3, 4, 8), "float32", {"mean": (1.0, 2.0)}, "--mean has 2 numbers; input 'x' is float32"),
        ((1, 3, 4, 8), "float32", {"std": (0.0,)}, "--std has a 0"),
    ],
)
def test_what_cannot_be_is_told(shape, kind, options, text, stripes):
    with pytest.raises(BadInputError, match=text):
        read(stripes, shape, kind, **options)


def test_the_command_runs_a_model_on_a_picture(command, model, stripes):
    kind = ("float32", ["batch", 3, "height", "width"])
    nodes = [("GlobalAveragePool", ["x"], ["mean"], {}), ("Flatten", ["mean"], ["colours"], {})]
    path = model(program(nodes, {"x": kind}, {"colours": ("float32", ["batch", 3])}))
    ended = command("run", path, "--input", stripes, "--backend", "numpy").succeeded()
    assert "x  float32  [1, 3, 4, 8] 384 bytes" in ended.out
    assert "min 0.25, mean 0.3333, max 0.5" in ended.out
