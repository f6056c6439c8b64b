"""Windows, strides and padding much longer than images take work in proportion to the images, on every device.

With work in proportion to windows or strides, the longest here would not end.
"""

from itertools import product

import numpy as np
import pytest

from spec_tests.device.test_long_filters import spread
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.cells import cells
from spec_tests.support.computing import compute, result_of
from spec_tests.support.depth import amount
from webnn_py import MLGraphBuilder, OperationError

LONG = 2**29
RANDOM, ELSEWHERE = 40, 4
"""As in :mod:`.test_long_filters`."""


backend = on_each(DEVICES)


def part(number, size, options, axis):
    """List the places of an axis, of height or width, that a window has."""
    window, stride, dilation = (options[name][axis] for name in ("window_dimensions", "strides", "dilations"))
    first = number * stride - options["padding"][2 * axis]
    skipped = max(0, -(first // dilation))
    return [*range(first + skipped * dilation, min(size, first + window * dilation), dilation)]


def pooled(operator, images, sizes, options):
    """Pool float64 images [batch, channels, height, width], window by window."""
    result = np.empty((*images.shape[:2], *sizes))
    for row, column in product(*map(range, sizes)):
        rows, columns = (
            part(number, images.shape[2 + axis], options, axis) for axis, number in enumerate((row, column))
        )
        elements = images[:, :, rows][:, :, :, columns]
        count = len(rows) * len(columns)
        if operator == "max_pool2d":
            result[:, :, row, column] = elements.max((2, 3)) if count else -np.inf
        elif operator == "average_pool2d":
            result[:, :, row, column] = elements.sum((2, 3)) / max(count, 1)
        else:
            result[:, :, row, column] = np.sqrt((elements**2).sum((2, 3)))
    return result


NEAR = {
    "padding near the window": ([200, 200], [198, 198, 198, 198], [100, 100], [1, 1]),
    "a window at each place": ([40, 30], [39, 39, 29, 29], [1, 1], [1, 1]),
    "windows in the padding": ([2, 3], [7, 5, 9, 4], [2, 3], [1, 2]),
    "long windows": ([LONG, LONG], [LONG // 2, LONG // 2, LONG - 1, 1], [2, 2], [1, 1]),
    "long dilations": ([2, 2], [LONG, LONG, 0, LONG], [LONG // 2, LONG - 1], [LONG, LONG]),
    "long strides": ([1, 2], [LONG, LONG, LONG - 1, 1], [LONG, LONG], [1, 1]),
    "a long row": ([1, 3000], [0, 0, 2999, 2999], [1, 1000], [1, 1]),
}
"""Window dimensions, padding, strides and dilations, for images of 3 by 3."""

OPTIONS = ("window_dimensions", "padding", "strides", "dilations")


@pytest.mark.sampled(3)
@cells("layout", ["nchw", "nhwc"])
@cells("case", NEAR)
async def test_pools_with_windows_wider_than_images(context, case, layout):
    planes = np.random.default_rng(3).integers(-9, 10, (2, 4, 3, 3)).astype(np.float32)
    await check_pools(context, planes, layout, NEAR[case])


async def test_random_pools_whose_windows_reach_out_of_images(context, backend, pytestconfig):
    random = np.random.default_rng(18)
    count = RANDOM if backend == "numpy" else amount(pytestconfig, quick=1, full=ELSEWHERE, thorough=ELSEWHERE)
    for _ in range(count):
        height, width = (int(size) for size in random.integers(1, 6, 2))
        window, strides, dilations = (random.integers(1, most, 2).tolist() for most in (8, 5, 4))
        ends = [max(0, (w - 1) * d + 1 - size) for w, d, size in zip(window, dilations, (height, width), strict=True)]
        padding = [int(random.integers(0, 6)) + end * side for end in ends for side in (0, 1)]
        planes = random.integers(-9, 10, (1, 3, height, width)).astype(np.float32)
        layout = str(random.choice(["nchw", "nhwc"]))
        await check_pools(context, planes, layout, (window, padding, strides, dilations))


async def check_pools(context, planes, layout, given):
    """Compare all pools of images with the elements of each window."""
    images = planes if layout == "nchw" else np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=images.shape)
    options = dict(zip(OPTIONS, given, strict=True))
    operators = ["max_pool2d", "average_pool2d", "l2_pool2d"]
    outputs = {name: getattr(builder, name)(x, **options, layout=layout) for name in operators}
    results = await compute(context, builder, {"x": images}, outputs)
    for name, result in results.items():
        in_planes = result if layout == "nchw" else result.transpose(0, 3, 1, 2)
        expected = pooled(name, planes.astype(float), in_planes.shape[2:], options)
        np.testing.assert_allclose(in_planes, expected, rtol=1e-5, err_msg=f"{name} {options} of {planes.shape}")


SPREAD = {
    "a long stride": (1, {"strides": [1024, 1500]}),
    "long strides, cut off": (2, {"strides": [LONG, LONG - 1], "padding": [0, LONG, LONG - 1, 0]}),
    "a stride along one axis": (2, {"strides": [1, 70_000], "padding": [0, 0, 0, 69_990]}),
    "long strides with dilations": (2, {"strides": [300, 500], "dilations": [2, 3]}),
    "long dilations, cut off": (2, {"dilations": [LONG, LONG], "padding": [0, LONG, 0, LONG]}),
    "the longest stride": (1, {"strides": [2**32 - 1, 2**32 - 1]}),
}
"""The height and width of images, and options of transposed convolutions."""


@cells("case", SPREAD)
async def test_transposed_convolutions_with_long_strides(context, backend, case):
    if backend == "reference" and "cut off" in case:
        pytest.skip("a device that does not claim convTranspose2d is given all that is spread, before it is cut off")
    size, options = SPREAD[case]
    random = np.random.default_rng(5)
    image = random.integers(1, 9, (1, 2, size, size)).astype(np.float32)
    weights = random.integers(1, 9, (2, 3, 2, 2)).astype(np.float32)
    result = await result_of(context, lambda b, x: b.conv_transpose2d(x, b.constant(weights), **options), x=image)
    options = {"strides": [1, 1], "dilations": [1, 1], "padding": [0] * 4, "groups": 1, **options}
    np.testing.assert_array_equal(result[0], spread(image[0], weights, result.shape[2:], **options))


async def test_convolutions_with_long_dilations_strides_and_padding(context, backend):
    if backend == "reference":
        pytest.skip("a device that does not claim conv2d is given padded images")
    image = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=image.shape)
    weights = builder.constant(np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3))
    outputs = {
        "dilated": builder.conv2d(x, weights, padding=[LONG // 2] * 4, dilations=[LONG // 2, LONG // 2]),
        "strided": builder.conv2d(x, weights, padding=[LONG] * 4, strides=[LONG, LONG]),
    }
    results = await compute(context, builder, {"x": image}, outputs)
    np.testing.assert_array_equal(results["dilated"], 5 * image)
    expected = np.zeros((1, 1, 3, 3), np.float32)
    expected[0, 0, 1, 1] = (image**2).sum()
    np.testing.assert_array_equal(results["strided"][:, :, :2, :2], expected[:, :, :2, :2])


POOLING = {"window_dimensions": [3, 1], "padding": [2**31, 2**31, 0, 0]}
REFUSED = {
    "pools of long windows": (
        lambda b, x: b.max_pool2d(x, window_dimensions=[2**32 - 1, 1], padding=[2**31, 2**31, 0, 0]),
        r"maxPool2d\(.*\): with its padding the image has 4294967300 rows; it must be at most 2147483647",
    ),
    "pools of long dilations": (
        lambda b, x: b.average_pool2d(x, dilations=[2**31 - 1, 1], **POOLING, layout="nhwc"),
        r"averagePool2d\(.*\): with its padding the image has 4294967300 rows; it must be at most 2147483647",
    ),
    "pools of long strides": (
        lambda b, x: b.l2_pool2d(
            x,
            window_dimensions=[1, 3],
            strides=[1, 2**31 - 2],
            padding=[0, 0, 0, 2**31 - 5],
            output_shape_rounding="ceil",
        ),
        r"l2Pool2d\(.*\): the windows, one after the other, span 2147483649 columns; it must be at most 2147483647",
    ),
    "convolutions": (
        lambda b, x: b.conv2d(
            x, weights(b, 4, 4), padding=[0, 0, 2**31, 2**31], dilations=[1, 2**32 - 1], label="last"
        ),
        r"conv2d \[last\]\(.*\): with its padding the image has 4294967300 columns; it must be at most 2147483647",
    ),
    "transposed convolutions": (
        lambda b, x: b.conv_transpose2d(x, weights(b, 4, 4), strides=[2**30, 1], padding=[2**30, 2**31, 0, 0]),
        r"convTranspose2d\(.*\): what the elements of the input spread to, .*, spans 3221225474 rows;",
    ),
    "groups that do not divide channels": (
        lambda b, x: b.conv_transpose2d(x, weights(b, 4, 2), groups=3, label="last"),
        r"convTranspose2d \[last\]\(.*\): the number of groups is 3; it must be a divisor of .* input channels, 4",
    ),
    "more groups than channels": (
        lambda b, x: b.conv_transpose2d(x, weights(b, 4, 2), groups=8),
        r"the number of groups is 8; it must be a divisor of the number of input channels, 4",
    ),
}
"""Operators of images [1, 4, 4, 4] that no device computes, and the message of the refusal."""


def weights(builder, *channels):
    return builder.constant(np.ones((*channels, 2, 2), np.float32))


@cells("case", REFUSED)
async def test_build_refuses_graphs_that_no_device_computes(context, case):
    draw, words = REFUSED[case]
    for is_constant in (False, True):
        builder = MLGraphBuilder(context)
        array = np.ones((1, 4, 4, 4), np.float32)
        x = builder.constant(array) if is_constant else builder.input("x", data_type="float32", shape=array.shape)
        outputs = {"y": draw(builder, x)}
        with pytest.raises(OperationError, match=rf"^build\(\): the graph cannot be compiled: .*{words}"):
            await builder.build(outputs)
    np.testing.assert_array_equal(await result_of(context, lambda b, x: b.add(x, x), x=np.float32([1, 2])), [2, 4])
