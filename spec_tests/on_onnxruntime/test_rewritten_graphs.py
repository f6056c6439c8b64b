"""Graphs that are written otherwise than they were drawn: with fewer reshapes, and with products of integers."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, assert_same, assert_written, on_both

pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import Random

RANDOM = Random(17)
RNG, integers = RANDOM.rng, RANDOM.integers
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)


# --- outputs -------------------------------------------------------------------------------------------------------


def one_of_two_names(builder, x):
    y = builder.neg(x)
    return {"a": y, "b": y, "c": builder.abs(y)}


def an_input_as_it_is(builder, x):
    return {"a": builder.cast(x, "float32"), "x0": builder.neg(x)}


def a_constant_as_it_is(builder, x):
    constant = builder.constant(np.arange(5, dtype=np.float32))
    return {"a": builder.cast(constant, "float32"), "b": builder.cast(constant, "float32"), "c": builder.neg(x)}


@pytest.mark.parametrize("draw", [one_of_two_names, an_input_as_it_is, a_constant_as_it_is])
async def test_an_output_may_be_what_no_operator_makes_for_it_alone(contexts, draw):
    assert_same(*await on_both(contexts, draw, X))


# --- reshapes ------------------------------------------------------------------------------------------------------


def gated(b, x):
    y = b.reshape(b.softmax(x, 2), [6, 4])
    return b.mul(b.mul(y, b.sigmoid(y)), b.constant(np.float32(2)))


def part(b, y, starts, sizes, strides=None):
    return b.slice(y, starts, sizes, strides=strides)


def parts(b, x):
    """Two rows of each matrix, which got an axis more, and lose it."""
    y = b.neg(b.reshape(b.softmax(x, 2), [2, 3, 1, 4]))
    rows = (part(b, y, [0, 0, 0, 0], [2, 1, 1, 4]), part(b, y, [0, 1, 0, 0], [2, 2, 1, 4], [1, 2, 1, 1]))
    return b.reshape(b.mul(b.exp(rows[0]), rows[1]), [2, 1, 4])


def at(b, x, place, *, axis=1):
    return b.gather(x, b.constant(np.array(place, np.int64)), axis=axis)


def one_of_each(b, x):
    return [b.reshape(part(b, x, [0, row, 0], [1, 1, 1]), shape) for row, shape in ((0, [1]), (1, [1, 1]))]


RESHAPED = {
    "before slices": (parts, {"Reshape": 0, "Slice": 2}),
    "of other lengths before slices": (
        lambda b, x: b.neg(part(b, b.reshape(b.exp(x), [6, 4]), [1, 0], [3, 4])),
        {"Reshape": 1, "Slice": 1},
    ),
    "of a number before slices": (
        lambda b, x: b.neg(part(b, b.reshape(b.reduce_sum(b.abs(b.relu(b.neg(x)))), [1, 1]), [0, 0], [1, 1])),
        {"Reshape": 1, "Slice": 0},
    ),
    "of a number before slices and transposes": (
        lambda b, x: b.transpose(part(b, b.reshape(b.reduce_sum(b.relu(x)), [1, 1]), [0, 0], [1, 1])),
        {"Reshape": 1, "Slice": 0, "Transpose": 0},
    ),
    "before slices that leave out nothing": (
        lambda b, x: b.neg(part(b, b.reshape(b.exp(x), [2, 1, 3, 4]), [0] * 4, [2, 1, 3, 4])),
        {"Reshape": 1, "Slice": 0},
    ),
    "before slices that are outputs": (
        lambda b, x: part(b, b.reshape(b.exp(x), [2, 1, 3, 4]), [0] * 4, [2, 1, 1, 4]),
        {"Reshape": 1, "Slice": 1},
    ),
    "before slices that other operators read, too": (
        lambda b, x: b.softmax(part(b, b.reshape(b.exp(x), [2, 1, 3, 4]), [0] * 4, [2, 1, 1, 4]), 3),
        {"Reshape": 1, "Slice": 1},
    ),
    "before what is one element": (
        lambda b, x: b.reshape(b.sigmoid(one_of_each(b, x)[0]), [1, 1, 1]),
        {"Reshape": 0, "Slice": 1},
    ),
    "before what is one element of two": (lambda b, x: b.add(*one_of_each(b, x)), {"Reshape": 1, "Slice": 2}),
    "of what is gathered from one place": (
        lambda b, x: b.add(b.reshape(at(b, x, -2), [2, 1, 4]), b.reshape(at(b, x, [9]), [2, 1, 4])),
        {"Reshape": 0, "Gather": 0, "Slice": 2},
    ),
    "of what is gathered from before the first place": (
        lambda b, x: b.reshape(at(b, x, -9, axis=2), [6]),
        {"Reshape": 1, "Gather": 0, "Slice": 1},
    ),
    "of what is gathered from several places": (
        lambda b, x: b.reshape(at(b, x, [0, 2]), [16]),
        {"Reshape": 1, "Gather": 1},
    ),
    "of what is gathered from where the graph computes": (
        lambda b, x: b.reshape(b.gather(x, b.cast(b.tanh(b.reduce_sum(x)), "int32"), axis=1), [8]),
        {"Reshape": 1, "Gather": 1},
    ),
    "of what others read, too, gathered from one place": (
        lambda b, x: b.add(b.reshape(y := at(b, x, 1), [1, 8]), b.reduce_max(b.softmax(y, 1))),
        {"Gather": 1, "Slice": 0},
    ),
    "transposes of axes of one element": (
        lambda b, x: b.reshape(b.exp(b.transpose(b.reshape(x, [2, 1, 12]), permutation=[1, 0, 2])), [3, 8]),
        {"Transpose": 0, "Reshape": 1},
    ),
    "transposes back, where one axis is longer": (
        lambda b, x: b.softmax(b.transpose(b.reshape(x, [1, 24, 1])), 1),
        {"Transpose": 0, "Reshape": 1},
    ),
    "transposes of longer axes": (
        lambda b, x: b.reshape(b.transpose(b.reshape(x, [2, 1, 12]), permutation=[1, 2, 0]), [24]),
        {"Transpose": 1, "Reshape": 2},
    ),
    "a transpose that is the output": (
        lambda b, x: b.transpose(b.reshape(b.exp(x), [1, 6, 4]), permutation=[1, 0, 2]),
        {"Transpose": 0, "Reshape": 1},
    ),
    "there and back": (
        lambda b, x: b.softmax(b.reshape(b.reshape(b.softmax(x, 2), [24]), [2, 3, 4]), 2),
        {"Reshape": 0},
    ),
    "in vain": (lambda b, x: b.reshape(x, [2, 3, 4]), {"Reshape": 0, "Identity": 1}),
    "means and extremes of one element each": (
        lambda b, x: b.softmax(b.reduce_max(b.reduce_mean(b.reshape(x, [24, 1, 1]), axes=[1]), axes=[1]), 0),
        {"Reshape": 1, "ReduceMean": 0, "ReduceMax": 0, "Sum": 0},
    ),
    "means of several": (
        lambda b, x: b.reshape(b.reduce_mean(b.reshape(x, [6, 4]), axes=[1]), [2, 3]),
        {"Reshape": 2, "ReduceMean": 1},
    ),
    "one after the other": (lambda b, x: b.reshape(b.reshape(x, [24]), [4, 6]), {"Reshape": 1}),
    "before what reads them twice": (gated, {"Reshape": 1}),
    "before what other operators read, too": (
        lambda b, x: b.add(b.matmul(y := b.reshape(b.neg(x), [6, 4]), b.constant(np.eye(4, dtype="f4"))), b.exp(y)),
        {"Reshape": 1},
    ),
    "of another shape each": (
        lambda b, x: b.add(b.reshape(b.exp(x), [6, 4]), b.reshape(b.transpose(x), [6, 4])),
        {"Reshape": 2},
    ),
    "that are broadcast": (
        lambda b, x: b.add(b.reshape(b.exp(x), [2, 1, 12]), b.reshape(b.neg(x), [1, 2, 12])),
        {"Reshape": 2},
    ),
    "with a number of more axes": (
        lambda b, x: b.add(b.reshape(b.exp(x), [1, 2, 3, 4]), b.constant(np.ones([1, 1, 1, 1], np.float32))),
        {"Reshape": 1},
    ),
    "of numbers": (
        lambda b, x: b.mul(b.reshape(b.slice(x, [0] * 3, [1] * 3), [1]), b.reshape(b.neg(x), [24])),
        {"Reshape": 2},
    ),
    "whose result is quantized by each row": (
        lambda b, x: b.cast(
            b.quantize_linear(
                b.reshape(b.exp(x), [6, 4]),
                b.constant(np.full([6, 1], 0.1, np.float32)),
                b.constant(np.full([6, 1], 3, np.uint8)),
            ),
            "float32",
        ),
        {"Reshape": 1},
    ),
    "of a constant that is an output": (
        lambda b, _x: b.reshape(b.constant(np.arange(6, dtype=np.float32)), [2, 3]),
        {"Reshape": 1},
    ),
}


@pytest.mark.parametrize("case", RESHAPED)
async def test_reshapes_are_joined_and_moved_behind_what_takes_any_shape(contexts, written, case):
    draw, counts = RESHAPED[case]
    await assert_both(contexts, draw, X, atol=2e-6)
    assert_written(written, **counts)


# --- convolutions of one window ------------------------------------------------------------------------------------


def window(b, x, filters, *, shape=(2, 3, 1, 4), **options):
    """Draw a convolution that spans each matrix as a whole."""
    given = b.constant(filters) if isinstance(filters, np.ndarray) else filters
    return b.softmax(b.reshape(b.conv2d(b.reshape(b.relu(x), shape), given, **options), [2, 6]), 1)


FILTERS = RNG.normal(size=(6, 3, 1, 4)).astype(np.float32)


def biased(b, x):
    return window(b, x, FILTERS, bias=b.constant(np.arange(6, dtype=np.float32)))


WINDOWS = {
    "of few filters": (lambda b, x: window(b, x, FILTERS), True),
    "with a bias": (biased, True),
    "of filters that fill a block": (
        lambda b, x: b.conv2d(b.reshape(x, [2, 3, 1, 4]), b.constant(np.concatenate([FILTERS, FILTERS]))),
        False,
    ),
    "of several windows": (lambda b, x: b.conv2d(b.reshape(x, [2, 3, 1, 4]), b.constant(FILTERS[..., :2])), False),
    "with padding": (lambda b, x: window(b, x, FILTERS, strides=[1, 4], padding=[0, 0, 0, 2]), False),
    "in groups": (lambda b, x: window(b, x, FILTERS[:, :1], groups=3), False),
    "of channels last": (
        lambda b, x: window(
            b, x, FILTERS.transpose(0, 2, 3, 1), shape=(2, 1, 4, 3), input_layout="nhwc", filter_layout="ohwi"
        ),
        False,
    ),
    "of filters that are no constant": (lambda b, x: window(b, x, b.relu(b.constant(FILTERS))), False),
    "of images": (lambda b, x: b.conv2d(x, b.constant(FILTERS)), False),
    "of float16": (
        lambda b, x: b.cast(window(b, b.cast(x, "float16"), FILTERS.astype(np.float16)), "float32"),
        False,
    ),
}


@pytest.mark.parametrize("case", WINDOWS)
async def test_a_convolution_of_one_window_with_few_filters_is_a_product(contexts, written, case):
    draw, is_product = WINDOWS[case]
    x = X.reshape(2, 3, 1, 4) if case == "of images" else X
    await assert_both(contexts, draw, x, atol=1e-3 if case == "of float16" else 2e-6)
    assert (written["Gemm"], written["Conv"]) == ((1, 0) if is_product else (0, 1))


# --- convolutions of channels that are no multiple of four ---------------------------------------------------------


def narrow(channels, size, **options):
    """Draw a convolution of small images of this many channels, reshaped from the matrices."""

    def draw(b, x):
        images = b.expand(b.reshape(x, [2, 1, 3, 4]), [2, channels, 3, 4])
        filters = np.random.default_rng(3).normal(size=(16, channels // options.get("groups", 1), size, size))
        return b.softmax(b.conv2d(images, b.constant(filters.astype(np.float32)), **options), 1)

    return draw


NARROW = {
    "that fill a block": (narrow(9, 1), 1),
    "that fill several": (narrow(18, 3, padding=[1, 1, 1, 1]), 1),
    "that are a multiple": (narrow(12, 1), 0),
    "that do not fill one": (narrow(7, 1), 0),
    "of images that are not small": (narrow(9, 1, padding=[1, 1, 1, 1]), 0),
    "in groups": (narrow(18, 1, groups=2), 0),
}


@pytest.mark.parametrize("case", NARROW)
async def test_small_images_get_channels_of_zeros_which_change_nothing(contexts, written, case):
    draw, count = NARROW[case]
    await assert_both(contexts, draw, X, atol=2e-6)
    assert_written(written, Pad=count, Conv=1)


async def test_what_is_not_finite_in_an_image_passes_channels_of_zeros(contexts, written):
    x = np.where(np.eye(3, 4, dtype=bool), np.inf, X).astype(np.float32)
    x[1, 2, 3] = np.nan
    builder = narrow(9, 1)
    got, expected = await on_both(contexts, lambda b, y: b.sign(builder(b, y)), x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    assert written["Pad"] == 1


# --- products of integers ------------------------------------------------------------------------------------------


def product(b, x, zero_point, matrix, of_matrix, *, result="int32"):
    """A quantized product as importers draw it; None for zero points of 0."""
    shifted = []
    for factor, zero in ((x, zero_point), (matrix, of_matrix)):
        y = b.cast(b.constant(factor) if isinstance(factor, np.ndarray) else factor, "float32")
        if zero is not None:
            y = b.sub(y, b.cast(b.constant(zero) if isinstance(zero, np.ndarray) else zero, "float32"))
        shifted.append(y)
    return b.cast(b.matmul(*shifted), result)


UNSIGNED, SIGNED = integers("uint8", 2, 7, 64), integers("int8", 64, 5)
EXTREME = np.full((2, 64), 255, np.uint8), np.where(np.arange(320).reshape(64, 5) % 2, 127, -128).astype(np.int8)
LONG = np.full((1, 600), 255, np.uint8), np.full((600, 2), -128, np.int8)
THIN = np.full((1, 600), 255, np.uint8), np.where(np.arange(1200).reshape(600, 2) % 3, 1, -128).astype(np.int8)


def number(value, data_type="int8", shape=()):
    return np.full(shape, value, data_type)


AS_INTEGERS = {
    "by zero points of numbers": (UNSIGNED, number(3, "uint8"), SIGNED, number(-7)),
    "by none": (UNSIGNED, None, SIGNED, None),
    "by one for each column": (UNSIGNED, number(200, "uint8", [1, 1]), SIGNED, integers("int8", 5)),
    "by one for each column, as a row": (UNSIGNED, None, integers("uint8", 64, 5), integers("uint8", 1, 5)),
    "of extremes": (EXTREME[0], number(0, "uint8"), EXTREME[1], number(0)),
    "whose sums are small as the matrix is": (THIN[0], None, THIN[1], None),
}
AS_FLOATS = {
    "whose first factor is int8": (integers("int8", 3, 64), None, SIGNED, None),
    "whose sums may be rounded": (LONG[0], None, LONG[1], None),
    "with a zero point for each row": (UNSIGNED, integers("uint8", 7, 1), SIGNED, None),
    "of several matrices": (UNSIGNED, None, integers("int8", 2, 64, 5), None),
    "with a zero point of more axes": (UNSIGNED, number(3, "uint8", [1, 1, 1, 1]), SIGNED, None),
    "with zero points of another type": (UNSIGNED, number(3), SIGNED, None),
}


@pytest.mark.parametrize("case", AS_INTEGERS)
async def test_a_product_of_bytes_is_one_of_integers_and_the_same(contexts, written, case):
    x, *others = AS_INTEGERS[case]
    for result in ("int32", "float32"):
        await assert_both(contexts, lambda b, x, result=result: product(b, x, *others, result=result), x)
    assert_written(written, MatMulInteger=2, MatMul=0)


async def test_products_may_share_their_constants(contexts, written):
    def draw(b, x, y):
        return b.add(*(product(b, operand, None, SIGNED, number(0)) for operand in (x, y)))

    await assert_both(contexts, draw, UNSIGNED, UNSIGNED[::-1].copy())
    assert written["MatMulInteger"] == 2


@pytest.mark.parametrize("case", AS_FLOATS)
async def test_a_product_that_is_not_known_to_be_exact_in_float32_stays_one_of_floats(contexts, written, case):
    x, *others = AS_FLOATS[case]
    await assert_both(contexts, lambda b, x: product(b, x, *others), x)
    assert_written(written, MatMulInteger=0, MatMul=1)


async def test_a_matrix_that_is_not_constant_stays_one_of_floats(contexts, written):
    await assert_both(contexts, lambda b, x, y: product(b, x, None, y, None), UNSIGNED, SIGNED)
    assert written["MatMulInteger"] == 0
