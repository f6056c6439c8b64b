"""Convolutions by filters larger than images take work in proportion to images and filters, on every device."""

from itertools import product

import numpy as np
import pytest

from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.computing import result_of
from spec_tests.support.depth import amount

RANDOM, ELSEWHERE = 60, 4
"""So many are drawn for numpy, and for the other devices: of these a quick run has one."""


backend = on_each(DEVICES)


def convolved(image, filters, sizes, *, padding, strides, dilations, groups):
    """Convolve a float64 image [channels, height, width] by filters [outputs, channels of a group, height, width]."""
    outputs, channels, *window = filters.shape
    result = np.zeros((groups, outputs // groups, *sizes))
    padded = np.pad(image, [(0, 0), padding[:2], padding[2:]])
    padded = padded.reshape(groups, channels, *padded.shape[1:])
    by_group = filters.reshape(groups, -1, channels, *window)
    for v, u in product(*map(range, window)):
        rows, columns = (
            slice(tap * dilation, tap * dilation + (size - 1) * stride + 1, stride)
            for tap, dilation, size, stride in zip((v, u), dilations, sizes, strides, strict=True)
        )
        result += (by_group[:, :, :, v, u, None, None] * padded[:, None, :, rows, columns]).sum(2)
    return result.reshape(outputs, *sizes)


def spread(image, filters, sizes, *, padding, strides, dilations, groups):
    """Spread a float64 image [channels, height, width] by filters [channels, outputs of a group, height, width]."""
    channels, outputs, *window = filters.shape
    result = np.zeros((outputs * groups, *sizes))
    for row, column, v, u in product(*map(range, (*image.shape[1:], *window))):
        h = row * strides[0] + v * dilations[0] - padding[0]
        w = column * strides[1] + u * dilations[1] - padding[2]
        if 0 <= h < sizes[0] and 0 <= w < sizes[1]:
            for channel in range(channels):
                first = channel // (channels // groups) * outputs
                result[first : first + outputs, h, w] += image[channel, row, column] * filters[channel, :, v, u]
    return result


def drawn(random, operator):
    """Return a random image, filters and options, with windows that are longer than the image."""
    groups = int(random.integers(1, 4))
    channels, outputs = groups * int(random.integers(1, 3)), groups * int(random.integers(1, 3))
    sizes, window = random.integers(1, 4, 2), random.integers(12, 20, 2)
    if random.random() < 0.3:
        sizes[0], window[0], window[1] = 1, 1, random.integers(260, 300)
    image = random.integers(-4, 5, (channels, *sizes))
    shape = (outputs, channels // groups) if operator == "conv2d" else (channels, outputs // groups)
    filters = random.integers(-4, 5, (*shape, *window))
    strides, dilations = ([int(step) for step in random.integers(1, 4, 2)] for _ in range(2))
    reach = [int(element - 1) * step for element, step in zip(window, dilations, strict=True)]
    least, most = (0.5, 1.1) if operator == "conv2d" else (0, 0.4)
    padding = [int(random.uniform(least, most) * reach[axis // 2]) for axis in range(4)]
    return image, filters, {"padding": padding, "strides": strides, "dilations": dilations, "groups": groups}


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("operator", ["conv2d", "conv_transpose2d"])
async def test_filters_larger_than_images(context, backend, pytestconfig, operator, data_type):
    random = np.random.default_rng(34)
    sum_up, layouts = (
        (convolved, ["oihw", "hwio", "ohwi", "ihwo"]) if operator == "conv2d" else (spread, ["iohw", "hwoi", "ohwi"])
    )
    count = RANDOM if backend == "numpy" else amount(pytestconfig, quick=1, full=ELSEWHERE, thorough=ELSEWHERE)
    for number in range(count):
        image, filters, options = drawn(random, operator)
        layout, filter_layout = ("nchw", "nhwc")[number % 2], layouts[number % len(layouts)]
        image_there = (image if layout == "nchw" else image.transpose(1, 2, 0))[None]
        filters_there = filters.transpose([layouts[0].index(axis) for axis in filter_layout])
        outputs = filters.shape[0] if operator == "conv2d" else filters.shape[1] * options["groups"]
        bias = random.integers(-4, 5, outputs)
        how = {**options, "input_layout": layout, "filter_layout": filter_layout}

        def draw(b, x, filters_there=filters_there, bias=bias, how=how):
            weights, added = (b.constant(array.astype(data_type)) for array in (filters_there, bias))
            return getattr(b, operator)(x, weights, bias=added, **how)

        result = (await result_of(context, draw, x=image_there.astype(data_type)))[0]
        result = result if layout == "nchw" else result.transpose(2, 0, 1)
        expected = sum_up(image.astype(float), filters.astype(float), result.shape[1:], **options)
        np.testing.assert_array_equal(
            result, expected + bias[:, None, None], err_msg=f"{image.shape} {filters.shape} {how}"
        )


@pytest.mark.parametrize("strange", [np.inf, np.nan])
async def test_padding_times_infinity_or_nan_is_nan(context, backend, strange):
    if backend == "onnxruntime":
        pytest.skip("onnxruntime leaves out the padding of some convolutions")
    image = np.arange(1, 5).reshape(1, 2, 2).astype(np.float32)
    filters = np.ones((3, 1, 19, 17), np.float32)
    filters[0, 0, 9, 8] = filters[2, 0, 0, 0] = strange
    options = {"padding": [10, 9, 8, 9], "strides": [1, 2], "dilations": [1, 1], "groups": 1}
    result = (await result_of(context, lambda b, x: b.conv2d(x, b.constant(filters), **options), x=image[None]))[0]
    with np.errstate(invalid="ignore"):
        expected = convolved(image.astype(float), filters.astype(float), result.shape[1:], **options)
    np.testing.assert_array_equal(result, expected)


LONG = {
    "a filter whose middle meets the image": ("conv2d", [1500, 1500], {"padding": [750] * 4}),
    "a filter all of which meets the image": ("conv2d", [700, 700], {"padding": [699] * 4}),
    "a long stride": ("conv2d", [1000, 1000], {"padding": [999] * 4, "strides": [2, 3]}),
    "a filter that spreads an image": ("conv_transpose2d", [1500, 1500], {}),
    "a filter that is cut off": ("conv_transpose2d", [1500, 1500], {"padding": [750] * 4}),
}
"""Operator, height and width of a filter, and options, for images of 3 by 3."""


@pytest.mark.parametrize("case", LONG)
async def test_filters_of_millions_of_elements(context, backend, case):
    """With work in proportion to filters times results, this would take minutes."""
    if backend == "reference":
        pytest.skip("a device that does not claim convolutions is given an image for each element of a window")
    operator, window, options = LONG[case]
    filters, image = np.ones((1, 1, *window), np.float32), np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    result = await result_of(context, lambda b, x: getattr(b, operator)(x, b.constant(filters), **options), x=image)
    result = result[0, 0]
    middle = tuple(size // 2 for size in result.shape)
    assert result[middle] == image.sum()
