"""Softmax, normalizations and reductions compute the element-wise nodes before and behind them, in any layout of rows.

Data are small multiples of 1/8, so that what is summed up is exact in any order.
"""

from functools import partial

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both
from spec_tests.support.stand_ins import noted
from webnn_py.devices.wgpu.lowering import GraphLowering

pytestmark = pytest.mark.sampled(23, full=2)

ROWS = {
    "in vec4s": [(5, 64), 1],
    "no vec4s": [(5, 63), 1],
    "a single one": [(1, 24), 1],
    "of one element": [(24, 1), 1],
    "side by side": [(3, 6, 32), 1],
    "side by side, no vec4s": [(7, 33), 0],
    "apart": [(3, 5, 7), 1],
    "long": [(2, 1500), 1],
}
"""A shape, and the axis along which rows lie."""

IN_SINGLE_ELEMENTS = {"no vec4s", "side by side, no vec4s", "apart"}

TOO_LONG = {
    "in vec4s": [(2, 40000), 1],
    "no vec4s": [(2, 40001), 1],
    "side by side": [(40000, 3), 0],
}
"""Rows that two kernels share."""


def softmax(b, x, axis):
    return b.softmax(x, axis)


def layer_normalization(b, x, axis):
    scale, bias = (b.constant(eighths((x.shape[axis],), x.data_type, seed)) for seed in (3, 4))
    return b.layer_normalization(x, axes=[axis], scale=scale, bias=bias)


def reduction(method, *, keep_dimensions):
    def draw(b, x, axis):
        return getattr(b, method)(x, axes=[axis], keep_dimensions=keep_dimensions)

    draw.__name__ = method
    return draw


def arg_max(b, x, axis):
    return b.cast(b.arg_max(x, axis), x.data_type)


REDUCTIONS = [
    reduction("reduce_sum", keep_dimensions=True),
    reduction("reduce_mean", keep_dimensions=False),
    reduction("reduce_l2", keep_dimensions=False),
    reduction("reduce_log_sum_exp", keep_dimensions=True),
    reduction("reduce_max", keep_dimensions=False),
    arg_max,
]
OPERATORS = [softmax, layer_normalization, *REDUCTIONS]


def names_of(operators):
    return [draw.__name__ for draw in operators]


def eighths(shape, data_type, seed=0):
    numbers = np.random.default_rng([*shape, seed]).integers(-8, 9, shape)
    return (numbers / 8).astype(data_type)


def beside(b, operand, axis, seed=5):
    """A constant that is repeated along an axis of an operand."""
    shape = list(operand.shape)
    if shape:
        shape[axis] = 1
    return b.constant(eighths(tuple(shape), operand.data_type, seed))


def draw_both(operator, axis):
    """Half of x, and something, before; twice the result, something, and an absolute value behind."""

    def draw(b, x):
        half, two = (b.constant(number, data_type=x.data_type) for number in (0.5, 2))
        y = operator(b, b.add(b.mul(x, half), beside(b, x, axis)), axis)
        return b.abs(b.add(b.mul(y, two), beside(b, y, 0, 6)))

    return draw


@pytest.fixture
def check(ml, compiled):
    """Checks that the output of a drawing is what numpy computes, and returns how many kernels it takes."""

    async def check(draw, data):
        # Numpy's own sums of 40,000 squares are so far from exact. Of float16, what lies before a result is rounded
        # once more or less, and doubled. Mistakes are of 1/8.
        tolerance = {"float32": 1e-5, "float16": 3e-3}.get(data.dtype.name, 0)
        await check_both(ml, [data], draw, rtol=tolerance, atol=2 * tolerance, is_finite=False)
        return compiled[-1][0]

    return check


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("operator", OPERATORS, ids=names_of(OPERATORS))
async def test_one_kernel_computes_what_is_before_and_behind(check, operator, rows, data_type, adapter_features):
    shape, axis = ROWS[rows]
    # Elements that lie packed are stored by vec4s, which rows in single elements do not write.
    is_packed = data_type == "float16" and "shader_f16" in adapter_features
    in_two = is_packed and rows in IN_SINGLE_ELEMENTS and operator in (softmax, layer_normalization)
    kernels = await check(draw_both(operator, axis), eighths(shape, data_type))
    assert kernels == (3 if in_two else 1)


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("operator", OPERATORS, ids=names_of(OPERATORS))
async def test_infinities_and_nan_from_before_reach_what_they_should(check, operator, data_type):
    most = {"float32": 3e38, "float16": 60000}[data_type]
    data = np.ones((6, 8), data_type)
    data[0, 3], data[1, 4], data[2, 5] = np.inf, -np.inf, np.nan
    data[3, 0], data[4, 1] = most, -most  # infinite when doubled

    def draw(b, x):
        y = operator(b, b.mul(x, b.constant(2, data_type=data_type)), 1)
        return b.mul(y, b.constant(-1, data_type=data_type))

    assert await check(draw, data) == 1


@pytest.mark.parametrize("rows", TOO_LONG.values(), ids=TOO_LONG.keys())
@pytest.mark.parametrize("operator", [softmax, layer_normalization], ids=["softmax", "layer_normalization"])
async def test_what_is_before_lanes_that_are_read_twice_is_computed_once(check, operator, rows):
    shape, axis = rows
    data = eighths(shape, "float32")
    alone = await check(lambda b, x: operator(b, x, axis), data)
    assert alone >= 2
    assert await check(draw_both(operator, axis), data) == alone + 1


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("operator", REDUCTIONS, ids=names_of(REDUCTIONS))
async def test_a_reduction_in_two_kernels_computes_what_is_before_in_the_first_and_behind_in_the_second(
    check, operator, data_type
):
    shape = (2, 300_000)
    data = eighths(shape, data_type)
    data[:, 1::2] = 0  # or the sums of float16 would be too large
    data[:, 100:] /= 64
    assert await check(draw_both(operator, 1), data) == 2


@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("data_type", ["int8", "uint8", "float16"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
async def test_other_data_types_before_and_behind(check, rows, data_type):
    """From one that may be packed to one that is not, and back."""
    shape, axis = rows
    data = np.random.default_rng(7).integers(0, 5, shape).astype(data_type)

    def draw(b, x):
        total = b.reduce_sum(b.cast(x, "int32"), axes=[axis])
        return b.cast(b.add(total, beside(b, total, 0)), data_type)

    assert await check(draw, data) == 1


@pytest.fixture
def few_buffers(monkeypatch, change_features):
    """The fewest buffers that an adapter lets a kernel bind, and no kernel binds more."""
    most = 8
    change_features(max_storage_buffers=most)
    bound = noted(monkeypatch, GraphLowering, "emit", lambda _, kernel: len(kernel.reads) + len(kernel.writes))
    yield
    assert 0 < max(bound) <= most


def sums(b, x, count, seed):
    """Return an operand to which ``count`` others are added."""
    for number in range(count):
        x = b.add(x, b.constant(eighths(tuple(x.shape), "float32", seed + number)))
    return x


def surrounded(operator, before, behind):
    """Return a drawing that adds so many operands before an operator and behind it."""
    return lambda b, x: sums(b, operator(b, sums(b, x, before, 10), 1), behind, 20)


@pytest.mark.usefixtures("few_buffers")
@pytest.mark.parametrize(
    ("before", "behind", "kernels"), [(4, 2, 1), (5, 2, 2), (6, 0, 1), (7, 0, 2), (0, 4, 1), (0, 5, 2)]
)
async def test_more_operands_than_a_kernel_binds_take_another_kernel(check, before, behind, kernels):
    assert await check(surrounded(softmax, before, behind), eighths((8, 12), "float32")) == kernels


@pytest.mark.usefixtures("few_buffers")
async def test_more_operands_than_a_fused_kernel_binds_take_another_kernel(check):
    for count, kernels in ((6, 1), (7, 2)):
        assert await check(partial(sums, count=count, seed=10), eighths((8, 12), "float32")) == kernels


@pytest.mark.usefixtures("few_buffers")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("shape", [(8, 12), (2, 40000)], ids=["one kernel", "two kernels"])
@pytest.mark.parametrize("operator", OPERATORS, ids=names_of(OPERATORS))
async def test_no_kernel_binds_more_buffers_than_it_can(check, operator, shape, count):
    await check(surrounded(operator, count, count), eighths(shape, "float32"))


@pytest.mark.usefixtures("few_buffers")
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("count", [4, 5, 6, 7])
async def test_no_pooling_or_resampling_binds_more_buffers_than_it_can(check, layout, count):
    def draw(b, x):
        pooled = sums(b, b.max_pool2d(x, window_dimensions=[2, 2], layout=layout), count, 10)
        axes = [2, 3] if layout == "nchw" else [1, 2]
        return sums(b, b.resample2d(pooled, mode="linear", scales=[2, 2], axes=axes), count, 20)

    await check(draw, eighths((1, 8, 5, 8), "float32"))


async def test_a_large_transposed_operand_is_copied_before_its_elements_are_read_one_by_one(check):
    for size, kernels in ((256, 2), (12, 1)):
        data = eighths((size, size), "float32")
        assert await check(lambda b, x: b.softmax(b.add(x, b.transpose(x)), 1), data) == kernels


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("method", ["average_pool2d", "max_pool2d", "l2_pool2d"])
async def test_pooling_computes_what_is_behind(check, method, layout):
    def draw(b, x):
        pooled = getattr(b, method)(x, window_dimensions=[2, 2], padding=[1, 0, 0, 1], layout=layout)
        return b.relu(b.sub(pooled, beside(b, pooled, 1)))

    for channels in (8, 3):
        shape = (2, channels, 5, 6) if layout == "nchw" else (2, 5, 6, channels)
        assert await check(draw, eighths(shape, "float32")) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["average_pool2d", "max_pool2d"])
async def test_pooling_stores_bytes_a_word_at_a_time(check, method):
    """Invocations that store single bytes would lose those of others in the same word."""
    assert await check(
        lambda b, x: b.cast(b.abs(getattr(b, method)(x, window_dimensions=[2, 2], padding=[1, 0, 0, 1])), "uint8"),
        8 * eighths((2, 3, 5, 6), "float32"),
    )


def normalized_instances(b, x):
    return b.relu(b.add(b.instance_normalization(b.mul(x, b.constant(0.5, data_type="float32"))), x))


def resampled(b, x):
    return b.relu(b.resample2d(x, mode="linear", sizes=[7, 9]))


@pytest.mark.parametrize(("draw", "shape"), [(normalized_instances, (2, 3, 8, 9)), (resampled, (1, 2, 4, 5))])
async def test_other_operators_of_images_compute_what_is_around(check, draw, shape):
    assert await check(draw, eighths(shape, "float32")) == 1
