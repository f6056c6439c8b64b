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
    names = ("preprocess", "scale", "mean", "std", "layout")
    options = {"bgr": False, "fit": "crop", **dict.fromkeys(names), **given}
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
    first, _ = read(stripes, (1, 3, 4, 8), preprocess="raw")
    last, _ = read(stripes, (1, 4, 8, 3), preprocess="raw")
    assert first.shape == (1, 3, 4, 8)
    np.testing.assert_array_equal(first.transpose(0, 2, 3, 1), last)
    assert last[0, 0, [0, 3, 7]].tolist() == [list(RED), list(GREEN), list(BLUE)]
    assert last.flags.c_contiguous


def test_a_layout_that_is_not_clear_is_asked_for(stripes):
    shape = ("batch", "a", "b", "c")
    with pytest.raises(BadInputError, match="which are the channels"):
        read(stripes, shape)
    assert read(stripes, shape, layout="nchw")[0].shape == (1, 3, 4, 8)
    assert read(stripes, shape, layout="nhwc")[0].shape == (1, 4, 8, 3)


def test_open_sizes_are_the_pictures_own(stripes):
    assert read(stripes, ("batch", 3, "height", "width"))[0].shape == (1, 3, 4, 8)
    assert read(stripes, (3, "height", "width"))[0].shape == (3, 4, 8)
    assert read(stripes, (2, 3, "height", "width"))[0].shape == (2, 3, 4, 8)


@pytest.mark.parametrize(
    ("fit", "left", "top"), [("crop", GREEN, GREEN), ("stretch", RED, GREEN), ("pad", RED, (0, 0, 0))]
)
def test_a_picture_is_fitted_as_asked(fit, left, top, stripes):
    array, said = read(stripes, (1, 4, 4, 3), "uint8", fit=fit)
    assert array.shape == (1, 4, 4, 3)
    middle = array[0, 2]
    assert np.argmax(middle[0]) == np.argmax(left)
    assert np.argmax(array[0, 0, 2]) == np.argmax(top)
    assert (array[0, 0].max() == 0) == (fit == "pad")
    assert f"8 × 4, {fit} to 4 × 4, rgb, raw" in said


@pytest.mark.parametrize(
    ("options", "white", "black"),
    [
        ({}, (1, 1, 1), (0, 0, 0)),
        ({"preprocess": "raw"}, (255, 255, 255), (0, 0, 0)),
        ({"preprocess": "signed"}, (1, 1, 1), (-1, -1, -1)),
        (
            {"preprocess": "imagenet"},
            tuple((1 - mean) / std for mean, std in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))),
            tuple(-mean / std for mean, std in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))),
        ),
        ({"mean": (127.5,), "std": (127.5,)}, (1, 1, 1), (-1, -1, -1)),
        ({"scale": 1 / 255, "mean": (0.5, 0.0, 0.25)}, (0.5, 1, 0.75), (-0.5, 0, -0.25)),
        ({"preprocess": "0-1", "std": (0.5,)}, (2, 2, 2), (0, 0, 0)),
    ],
    ids=str,
)
def test_pixels_are_scaled_as_asked(options, white, black, tmp_path):
    Image.fromarray(np.uint8([[[255] * 3, [0] * 3]])).save(tmp_path / "x.png")
    array, _ = read(tmp_path / "x.png", (1, 1, 2, 3), layout="nhwc", **options)
    np.testing.assert_allclose(array[0, 0], [white, black], rtol=1e-6, atol=1e-7)
    assert array.dtype == np.float32


def test_blue_comes_first_when_asked(stripes):
    assert read(stripes, (1, 4, 8, 3), "uint8", bgr=True)[0][0, 0, 0].tolist() == [0, 0, 255]


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
        ((1, 5, 4, 8), "float32", {}, "which are the channels"),
        ((1, 5, 4, 8), "float32", {"layout": "nchw"}, "a picture has 1, 3 or 4 channels, not 5"),
        ((1, 3, 4, 8), "uint8", {"preprocess": "imagenet"}, "can only stay as they are"),
        ((1, 3, 4, 8), "float32", {"mean": (1.0, 2.0)}, "the mean has 2 numbers; input 'x' has 3 channels"),
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
