"""Operands that broadcast along rows, convolutions of short and long rows, and sums of rows."""

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing
from spec_tests.support.computing import result_of
from webnn_py.devices.numpy.kernels.reduction import MOST_ZEROS, SIDE_BY_SIDE
from webnn_py.devices.numpy.table import entry_of

rng = np.random.default_rng(5)

OPERANDS = {"conv2d": ("input", "filter", "bias")}


def node_of(operator, *arrays, **options):
    b = Drawing()
    operands = dict(zip(OPERANDS.get(operator, "ab"), map(b.known, arrays), strict=False))
    return b.value(getattr(b, operator)(**operands, **options)).node


def kernel_result(node, *arrays):
    output = np.full(node.outputs[0].shape, np.nan, np.float32)
    with np.errstate(all="ignore"):  # as in a dispatch
        entry_of(node).make(node)(*arrays, output)
    return output


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "div"])
def test_a_number_for_each_row_is_repeated_along_it(operator):
    x, factors = rng.normal(size=(2, 50, 20, 20)).astype(np.float32), rng.normal(size=(50, 1, 1)).astype(np.float32)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[operator]
    np.testing.assert_array_equal(
        kernel_result(node_of(operator, x, factors), x, factors), function(x, np.broadcast_to(factors, x.shape).copy())
    )


@pytest.mark.parametrize("width", [30, 162], ids=["short rows", "long rows"])
def test_windows_are_copied_row_by_row(width):
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((1, 4, 9, width), (6, 4, 3, 3), (6,))]
    images, filters, bias = arrays
    padded = np.pad(images.astype(float), [(0, 0), (0, 0), (1, 0), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("bchwij,ocij->bohw", windows, filters) + bias[:, None, None]
    node = node_of("conv2d", *arrays, padding=[1, 0, 1, 1])
    np.testing.assert_allclose(kernel_result(node, *arrays), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("height", [3, 40], ids=["few windows", "many windows"])
def test_the_bias_of_small_windows_stays_with_its_channel(height, layout):
    x, filters = rng.normal(size=(2, 4, height, 31)).astype(np.float32), rng.normal(size=(12, 2, 3, 3))
    x[1, 3, 1, 7], bias = np.inf, rng.normal(size=12).astype(np.float32)
    bias[2], bias[7] = np.nan, -np.inf
    padded = np.pad(x.astype(float), [(0, 0), (0, 0), (1, 1), (1, 1)]).reshape(2, 2, 2, height + 2, 33)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (3, 4))
    filters = filters.astype(np.float32)
    with np.errstate(invalid="ignore"):
        sums = np.einsum("bgchwij,gocij->bgohw", windows, filters.reshape(2, 6, 2, 3, 3).astype(float))
        expected = sums.reshape(2, 12, height, 31) + bias[:, None, None]
    if layout == "nhwc":
        x, expected = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), expected.transpose(0, 2, 3, 1)
    node = node_of("conv2d", x, filters, bias, padding=[1, 1, 1, 1], groups=2, input_layout=layout)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(kernel_result(node, x, filters, bias), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [7, 8, 4096, 4097])
async def test_sums_of_rows_keep_infinities_and_nan_to_their_row(numpy_context, length):
    x = rng.integers(-3, 4, (5, length)).astype(np.float32)
    x[1, 3], x[3, 5], x[4, :2] = np.inf, np.nan, (np.inf, -np.inf)
    sums = await result_of(numpy_context, lambda b, x: b.reduce_sum(x, axes=[1]), x=x)
    np.testing.assert_array_equal(sums, [x[0].sum(), np.inf, x[2].sum(), np.nan, np.nan])


@pytest.mark.parametrize("rows", [3, MOST_ZEROS, MOST_ZEROS + 1])
async def test_the_mean_of_large_numbers_does_not_overflow(numpy_context, rows):
    x = np.full((rows, 16), 3e38, np.float32)
    x[:-1] = 1
    x[0, 5] = -np.inf
    means = await result_of(numpy_context, lambda b, x: b.reduce_mean(x, axes=[1]), x=x)
    np.testing.assert_array_equal(means, [-np.inf, *x[1:, 0]])


@pytest.mark.parametrize(
    "options", [{}, {"exclusive": True}, {"reversed": True}, {"exclusive": True, "reversed": True}]
)
@pytest.mark.parametrize("columns", [1, SIDE_BY_SIDE - 1, SIDE_BY_SIDE, 200])
async def test_sums_up_to_an_element_are_those_of_its_column(tight_context, columns, options):
    x = rng.integers(-99, 100, (2, 300, columns)).astype(np.float32)
    step = -1 if "reversed" in options else 1
    expected = x[:, ::step].cumsum(1)[:, ::step] - (x if "exclusive" in options else 0)
    sums = await result_of(tight_context, lambda b, x: b.cumulative_sum(x, 1, **options), x=x)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
async def test_the_first_of_equal_extremes_is_found_along_any_axis(tight_context, axis):
    x = rng.integers(-3, 4, (40, 30, 20)).astype(np.float32)
    x[7, 5, 3] = x[7, 9, 3] = np.nan
    places = await result_of(tight_context, lambda b, x: b.arg_max(x, axis), x=x)
    np.testing.assert_array_equal(places, x.argmax(axis))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("layout", ["oihw", "hwio", "ihwo", "ohwi"])
def test_a_single_pixel_is_a_vector_that_the_filter_multiplies(layout, has_bias):
    x, matrix, bias = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((1, 5, 1, 1), (7, 5, 1, 1), 7))
    x[0, 2], bias[3], matrix[1] = np.inf, np.nan, 0
    filters = np.ascontiguousarray(matrix.transpose(["oihw".index(axis) for axis in layout]))
    given = (x, filters, bias) if has_bias else (x, filters)
    with np.errstate(invalid="ignore"):
        expected = matrix.reshape(7, 5) @ x.reshape(5) + (bias if has_bias else 0)
        result = kernel_result(node_of("conv2d", *given, filter_layout=layout), *given)
    assert np.isnan(result[0, 1])
    np.testing.assert_array_equal(result.reshape(7), expected)


@pytest.mark.parametrize(("index", "place"), [(0, 0), (2, 2), (-1, 3), (-4, 0), (7, 3), (-9, 0)])
@pytest.mark.parametrize("shape", [(), (1,)])
async def test_a_gather_by_one_index_clamps_it(numpy_context, index, place, shape):
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    index = np.full(shape, index, np.int32)
    taken = await result_of(numpy_context, lambda b, x, index: b.gather(x, index, axis=1), x=x, index=index)
    np.testing.assert_array_equal(taken, x[:, place].reshape(3, *shape, 5))
