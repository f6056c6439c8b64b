"""Convolutions by each special routine, whole and cut into tiles: every window has its elements."""

from itertools import product

import attrs
import numpy as np
import pytest

from spec_tests.support.computing import result_of

DEFAULTS = {"padding": [0, 0, 0, 0], "strides": [1, 1], "dilations": [1, 1]}


def convolved(x, weights, bias, groups, options):
    """Return the sums over the elements of each window, in float64, of images in nchw and a filter in oihw."""
    top, bottom, left, right = options["padding"]
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (top, bottom), (left, right)))
    down, along = options["dilations"]
    reach = [(weights.shape[2] - 1) * down + 1, (weights.shape[3] - 1) * along + 1]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    windows = windows[:, :, :: options["strides"][0], :: options["strides"][1], ::down, ::along]
    by_group = windows.reshape(len(x), groups, -1, *windows.shape[2:])
    sums = np.einsum("bgchwij,gocij->bgohw", by_group, weights.astype(float).reshape(groups, -1, *weights.shape[1:]))
    return sums.reshape(len(x), len(weights), *sums.shape[3:]) + bias.astype(float)[:, None, None]


def laid_out(array, old, new):
    return np.ascontiguousarray(array.transpose([old.index(axis) for axis in new]))


async def check(context, arrays, groups=1, layouts=("nchw", "oihw"), *, is_between=False, **given):
    """Compare a convolution of images, a filter and a bias with the sums; ``is_between`` computes before and behind."""
    options = DEFAULTS | given
    x, weights, bias = arrays
    expected = laid_out(convolved(*arrays, groups, options), "nchw", layouts[0])
    given = laid_out(-x if is_between else x, "nchw", layouts[0])

    def draw(builder, images):
        drawn = builder.conv2d(
            builder.neg(images) if is_between else images,
            builder.constant(laid_out(weights, "oihw", layouts[1])),
            bias=builder.constant(bias),
            groups=groups,
            input_layout=layouts[0],
            filter_layout=layouts[1],
            **options,
        )
        return builder.relu(drawn) if is_between else drawn

    result = await result_of(context, draw, images=given)
    expected = np.maximum(expected, 0) if is_between else expected
    np.testing.assert_array_equal(result, expected.astype(x.dtype))


def integers(shapes, data_type="float32"):
    """Return small integers, whose sums are exact: images, a filter and a bias."""
    rng = np.random.default_rng(7)
    return [rng.integers(-4, 5, shape).astype(data_type) for shape in shapes]


@attrs.frozen
class Routine:
    """A routine with what it is taken for.

    Attributes:
        counts: channels, outputs and groups.
        layouts: of the images and the filter.
        cases: the images' sizes, those of the window, and options.
    """

    counts: list
    layouts: list
    cases: dict


ROUTINES = {
    "depthwise": Routine(
        [(10, 10, 10), (10, 30, 10), (70, 70, 70), (70, 210, 70)],
        [("nchw", "oihw"), ("nchw", "hwio")],
        {
            "3×3": ((13, 23), (3, 3), {"padding": [1, 1, 1, 1]}),
            "5×5 of small planes": ((7, 6), (5, 5), {"padding": [2, 2, 2, 2]}),
            "strides": ((15, 50), (3, 3), {"padding": [0, 2, 1, 0], "strides": [2, 2]}),
            "strides that skip rows": ((17, 30), (2, 3), {"strides": [3, 1]}),
            "dilated columns": ((9, 31), (4, 3), {"padding": [3, 0, 0, 4], "dilations": [1, 3]}),
            "short rows and strides": ((23, 17), (3, 5), {"padding": [1, 0, 2, 1], "strides": [2, 3]}),
            "short rows and dilations": ((14, 18), (3, 2), {"padding": [2, 1, 3, 2], "dilations": [2, 3]}),
            "windows higher than the images": ((2, 23), (5, 5), {"padding": [2, 2, 2, 2]}),
            "strides of such windows": ((3, 21), (6, 3), {"padding": [3, 2, 0, 1], "strides": [2, 2]}),
        },
    ),
    "of long strides": Routine(
        [(4, 10, 1), (4, 10, 2)],
        [("nchw", "oihw"), ("nchw", "ohwi")],
        {
            "a long row": ((1, 90), (1, 24), {"strides": [1, 12], "padding": [0, 0, 5, 9]}),
            "both axes": ((23, 31), (5, 4), {"strides": [3, 4], "padding": [2, 1, 0, 3]}),
            "dilated": ((1, 120), (1, 11), {"strides": [1, 9], "dilations": [1, 2]}),
        },
    ),
    "of large dilations": Routine(
        [(6, 12, 1), (6, 12, 6)],
        [("nchw", "oihw"), ("nhwc", "ohwi"), ("nhwc", "oihw")],
        {
            "a long row": ((1, 70), (1, 3), {"dilations": [1, 20], "padding": [0, 0, 7, 30]}),
            "both axes": ((14, 11), (3, 2), {"dilations": [6, 5], "padding": [9, 6, 3, 4]}),
            "elements in the padding alone": ((4, 5), (3, 3), {"dilations": [4, 9], "padding": [6, 6, 11, 11]}),
        },
    ),
}


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(
    ("routine", "case"), [(name, case) for name, routine in ROUTINES.items() for case in routine.cases]
)
async def test_every_window_has_its_elements(tight_context, routine, case, data_type):
    sizes, window, options = ROUTINES[routine].cases[case]
    for (channels, outputs, groups), layouts in product(ROUTINES[routine].counts, ROUTINES[routine].layouts):
        arrays = integers([(2, channels, *sizes), (outputs, channels // groups, *window), outputs], data_type)
        await check(tight_context, arrays, groups, layouts, **options)


# --- few windows ---------------------------------------------------------------------------------------------------


FEW = {
    "padded": (6, 3, {"padding": [0, 0, 1, 1]}),
    "one window": (7, 7, {}),
    "one window over both edges": (2, 5, {"padding": [0, 0, 1, 2]}),
    "windows beside the image": (3, 2, {"padding": [0, 0, 4, 3]}),
    "strides that leave something": (9, 3, {"strides": [1, 2], "padding": [0, 0, 0, 1]}),
    "long strides": (40, 16, {"strides": [1, 8]}),
    "dilated": (9, 3, {"dilations": [1, 3], "padding": [0, 0, 1, 0]}),
    "one dilated window": (5, 3, {"dilations": [1, 2]}),
}


@pytest.mark.parametrize("is_upright", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("is_between", [False, True])
@pytest.mark.parametrize("case", FEW)
async def test_few_windows_have_their_elements(numpy_context, case, is_between, groups, is_upright):
    length, window, options = FEW[case]
    arrays = integers([(1, 4, 1, length), (10, 4 // groups, 1, window), 10])
    if is_upright:
        arrays = [arrays[0].swapaxes(2, 3), arrays[1].swapaxes(2, 3), arrays[2]]
        options = {name: [*value[-len(value) // 2 :], *value[: len(value) // 2]] for name, value in options.items()}
    await check(numpy_context, arrays, groups, is_between=is_between, **options)


async def test_a_filter_that_is_computed_may_lie_in_any_order(numpy_context):
    x, weights = integers([(1, 4, 1, 6), (3, 1, 4, 10)])

    def draw(builder, x, w):
        return builder.conv2d(x, builder.transpose(builder.neg(w), permutation=[3, 2, 1, 0]))

    result = await result_of(numpy_context, draw, x=x, w=-weights)
    expected = convolved(x, weights.transpose(3, 2, 1, 0), np.zeros(10), 1, DEFAULTS)
    np.testing.assert_array_equal(result, expected)


# --- single elements -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("byte_length", [600, 5000, None])
@pytest.mark.parametrize("layouts", [("nchw", "oihw"), ("nhwc", "ohwi")], ids=" ".join)
async def test_blocks_of_single_elements_in_float16_are_rounded_once(numpy_context, tighten, byte_length, layouts):
    tighten(byte_length)
    for stride, height in product((1, 2), (1, 14)):
        x, weights, bias = integers([(2, 12, height, 14), (20, 12, 1, 1), 20], "float16")
        arrays = x * np.float16(257 / 256), weights * 2, bias  # whose sums float16 does not hold
        await check(numpy_context, arrays, layouts=layouts, strides=[stride, stride])


# --- infinities ----------------------------------------------------------------------------------------------------


async def test_infinity_stays_in_the_depthwise_windows_that_have_it(numpy_context):
    x = np.ones((1, 2, 12, 24), np.float32)
    x[0, 1, 6, 10] = np.inf
    await check(numpy_context, (x, np.ones((2, 1, 3, 3), np.float32), np.zeros(2, np.float32)), groups=2)


async def test_infinity_in_a_depthwise_filter_counts_beyond_the_edges(numpy_context):
    weights = np.ones((2, 1, 5, 3), np.float32)
    weights[1, 0, 4, 1] = np.inf
    arrays = np.ones((1, 2, 2, 24), np.float32), weights, np.zeros(2, np.float32)
    with np.errstate(invalid="ignore"):
        await check(numpy_context, arrays, groups=2, padding=[2, 2, 1, 1])
