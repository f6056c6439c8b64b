"""Quantized products against onnxruntime: sums of integers are equal, what is quantized again within one step."""

import numpy as np
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import (
    assert_same,
    check,
    check_steps,
    each,
    make_model,
    node,
    run,
    seven_bits,
)
from spec_tests.support.backends import BACKENDS
from spec_tests.support.depth import amount
from webnn_py.onnx_models.rule_helpers.integer_products import EXACT, bounds

rng = np.random.default_rng(3)


pytestmark = pytest.mark.sampled(5)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def of_bytes(data_type, *shape):
    limits = np.iinfo(data_type)
    return rng.integers(limits.min, limits.max, shape, data_type, endpoint=True)


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def scale(*values):
    return np.array(values, np.float32)


def step(value):
    return np.array(value, np.float32)


def point(value, data_type="uint8"):
    return np.array(value, data_type)


def largest(data_type, *shape):
    """All at the end of the range that lies farther from their zero points below."""
    return np.full(shape, np.iinfo(data_type).max, data_type)


ROWS, COLUMNS = of_bytes("uint8", 2, 3, 5), seven_bits(of_bytes("int8", 5, 4))
LONG, TALL = largest("uint8", 2, 1000), largest("uint8", 1000, 3)
IMAGES, FILTERS = of_bytes("uint8", 2, 4, 5, 6), of_bytes("uint8", 6, 2, 3, 3)
MANY, DEEP = largest("uint8", 1, 80, 4, 4), largest("uint8", 2, 40, 3, 3)


@each(
    node("MatMulInteger", 10, ROWS, COLUMNS),
    node("MatMulInteger", 10, ROWS, COLUMNS, point(100), point(-3, "int8"), known=(1, 3)),
    node("MatMulInteger", 10, ROWS, COLUMNS, point(100), np.array([1, -2, 3, 4], np.int8), known=(1, 2, 3)),
    node("MatMulInteger", 10, ROWS[0, 0], COLUMNS),
    node("MatMulInteger", 10, ROWS, COLUMNS[:, 0].copy()),
    node("MatMulInteger", 10, LONG, TALL, point(0), point(0)),
    node("MatMulInteger", 10, LONG, TALL, point(255), point(0), known=(1, 3)),
    node("MatMulInteger", 10, LONG, TALL, known=(1,)),
    node("ConvInteger", 10, IMAGES, FILTERS, point(7), point(200), known=(1,), group=2, pads=[1, 0, 1, 2]),
    node("ConvInteger", 10, MANY, DEEP, point(0), group=2),
    node("ConvInteger", 10, MANY, DEEP, known=(1,), group=2, strides=[2, 1]),
    node("ConvInteger", 10, IMAGES[:, :, 0].copy(), FILTERS[:, :, 0].copy(), group=2, auto_pad="SAME_LOWER"),
)
async def test_sums_of_integers(context, case):
    await check(context, case)


@each(
    node("MatMulInteger", 10, ROWS[0], COLUMNS, np.array([[1], [2], [250]], np.uint8), oracle="reference"),
    node(
        "ConvInteger",
        10,
        IMAGES,
        FILTERS,
        point(7),
        np.array([1, 0, 255, 3, 4, 5], np.uint8),
        known=(1, 3),
        group=2,
        oracle="reference",
    ),
)
async def test_zero_points_of_rows_and_filters(context, case):
    await check(context, case)


async def test_a_list_of_zero_points_is_one_for_each_row(context):
    (case,) = node("MatMulInteger", 10, ROWS[0], COLUMNS, np.array([1, 2, 250], np.uint8))
    product = (ROWS[0].astype(np.int32) - [[1], [2], [250]]) @ COLUMNS.astype(np.int32)
    assert_same(await run(context, case.model(), case.feeds), [product.astype(np.int32)])


@each(
    node("DynamicQuantizeLinear", 11, floats(3, 7), outputs=3, wanted=(0, 1, 2)),
    node("DynamicQuantizeLinear", 11, floats(3, 7) + 4, outputs=3, wanted=(0, 1, 2)),
    node("DynamicQuantizeLinear", 11, np.zeros([2], np.float32), outputs=3, wanted=(0, 1, 2)),
    node(
        "QLinearMatMul", [10, 21], ROWS, scale(0.02), point(100), COLUMNS, scale(0.1), point(-3, "int8"), scale(0.9),
        point(128), known=(3, 4, 5),
    ),
    node(
        "QLinearMatMul", 21, ROWS, scale(0.02).astype(np.float16), point(100), COLUMNS, scale(0.1).astype(np.float16),
        point(-3, "int8"), scale(0.9).astype(np.float16), point(128), oracle="reference",
    ),
    node(
        "QLinearMatMul", 21, ROWS, step(0.02), point(100), COLUMNS, scale(0.1, 0.2, 0.3, 0.1),
        np.array([1, -2, 3, 4], np.int8), step(0.9), point(128), known=(3, 4, 5),
    ),
    node(
        "QLinearConv", 10, IMAGES, step(0.1), point(7), FILTERS, step(0.02), point(200), step(0.5),
        point(3), np.arange(6, dtype=np.int32) * 999, known=(3, 4, 5, 8), group=2, pads=[1, 1, 1, 1],
    ),
    node(
        "QLinearConv", 10, IMAGES, step(0.1), point(7), seven_bits(FILTERS.view(np.int8)),
        scale(0.02, 0.1, 0.2, 0.05, 0.01, 0.3), np.zeros(6, np.int8), step(0.9), point(100), group=2,
        known=(3, 4, 5),
    ),
    node(
        "com.microsoft.QGemm", 1, ROWS[0], step(0.1), point(7), COLUMNS, step(0.02), point(0, "int8"),
        np.arange(4, dtype=np.int32) * 99, step(0.3), point(50), alpha=1.5,
    ),
)  # fmt: skip
async def test_what_is_quantized_is_within_one_step(context, case):
    await check_steps(context, case)


@each(
    node(
        "com.microsoft.MatMulIntegerToFloat", 1, ROWS, COLUMNS, step(0.1), step(0.02), point(100),
        point(-3, "int8"), floats(4),
    ),
    node(
        "com.microsoft.MatMulIntegerToFloat", 1, ROWS, COLUMNS, step(0.1), scale(0.1, 0.2, 0.3, 0.1), known=(1,)
    ),
    node(
        "com.microsoft.DynamicQuantizeMatMul", 1, floats(3, 5), COLUMNS, step(0.02), point(-3, "int8"), floats(4)
    ),
    node(
        "com.microsoft.QGemm", 1, ROWS[0], step(0.1), point(7), COLUMNS.T.copy(), scale(0.1, 0.2, 0.3, 0.1),
        np.zeros(4, np.int8), transB=1,
    ),
    node(
        "com.microsoft.QGemm", 1, ROWS[0].T.copy(), step(0.1), point(7), COLUMNS, step(0.02), point(0, "int8"),
        transA=1,
    ),
)  # fmt: skip
async def test_products_as_floats(context, case):
    await check(context, case)


def packed(bits, *shape):
    return rng.integers(0, 256, shape, np.uint8)


@each(
    *(
        node(
            "com.microsoft.MatMulNBits", 1, floats(2, 3, 64), packed(bits, 5, 2, 32 * bits // 8), floats(5, 2),
            known=(1, 2), K=64, N=5, bits=bits, block_size=32, absolute=1e-3,
        )
        for bits in (4, 8)
    ),
    node(
        "com.microsoft.MatMulNBits", 1, floats(3, 48), packed(4, 5, 3, 8), floats(5, 3), packed(4, 5, 2), None,
        floats(5), known=(1, 2, 3), K=48, N=5, block_size=16, absolute=1e-4,
    ),
    node(
        "com.microsoft.MatMulNBits", 1, floats(3, 40), packed(4, 5, 3, 8), floats(5, 3),
        floats(5, 3), known=(1, 2, 3), K=40, N=5, block_size=16, absolute=1e-4,
    ),
)  # fmt: skip
async def test_weights_of_a_few_bits(context, case):
    await check(context, case)


PRODUCTS = {"quick": 6, "full": 20, "thorough": 200}


def random_product(chosen):
    """Two factors with their zero points, anything of which may be known."""
    kinds = chosen.choice(["int8", "uint8"], 2)
    rows, inner, columns = int(chosen.integers(1, 5)), int(chosen.integers(1, 1200)), int(chosen.integers(1, 5))
    limits = [np.iinfo(kind) for kind in kinds]
    low = [int(chosen.choice([item.min, item.max])) if chosen.random() < 0.4 else item.min for item in limits]
    a, b = (
        chosen.integers(start, item.max, shape, kind, endpoint=True)
        for start, item, shape, kind in zip(low, limits, ([rows, inner], [inner, columns]), kinds, strict=True)
    )
    points = [chosen.integers(item.min, item.max, [], kind) for item, kind in zip(limits, kinds, strict=True)]
    return a, b, *(np.asarray(point, kind) for point, kind in zip(points, kinds, strict=True))


async def test_integer_products_are_exact(context, request):
    chosen = np.random.default_rng(request.config.option.seed)
    nodes, arrays, known, expected = [], {}, {}, []
    for index in range(amount(request.config, **PRODUCTS)):
        factors = random_product(chosen)
        names = [f"{letter}{index}" for letter in "abpq"]
        given = dict(zip(names, factors, strict=True))
        arrays.update(given)
        known.update((name, item) for name, item in given.items() if chosen.random() < 0.5 and name[0] != "a")
        nodes.append(helper.make_node("MatMulInteger", names, [f"y{index}"]))
        a, b, p, q = (item.astype(np.int64) for item in factors)
        expected.append(((a - p) @ (b - q)).astype(np.int32))
    model = make_model(nodes, arrays, [f"y{index}" for index in range(len(nodes))], known, opset=15)
    assert_same(await run(context, model, arrays), expected)


@pytest.mark.parametrize("length", [1, 2, 257, 258, 259, 1000])
def test_parts_of_sums_are_exact_and_complete(length):
    parts = bounds(length, 255 * 255, None)
    assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])]
    assert parts[-1][1] == length
    assert all((end - begin) * 255 * 255 <= EXACT for begin, end in parts)
    assert bounds(length, 255 * 255, lambda _: EXACT) == [(0, length)]
