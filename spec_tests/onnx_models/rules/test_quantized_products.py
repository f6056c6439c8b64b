"""Quantized products against onnxruntime: sums of integers are equal, what is quantized again within one step."""

import numpy as np
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import (
    Random,
    assert_same,
    check_steps,
    compared,
    expected,
    make_model,
    microsoft,
    node,
    run,
    scaled,
    seven_bits,
)
from spec_tests.support.backends import BACKENDS, on_each
from spec_tests.support.depth import amount
from webnn_py.onnx_models.rule_helpers.integer_products import EXACT, bounds

random = Random(3)
floats, of_type = random.floats, random.integers


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


def largest(*shape):
    """Return bytes at the end of the range that is farther from their zero points below."""
    return np.full(shape, 255, np.uint8)


ROWS, COLUMNS = of_type("uint8", 2, 3, 5), seven_bits(of_type("int8", 5, 4))
LONG, TALL = largest(2, 1000), largest(1000, 3)
IMAGES, FILTERS = of_type("uint8", 2, 4, 5, 6), of_type("uint8", 6, 2, 3, 3)
MANY, DEEP = largest(1, 80, 4, 4), largest(2, 40, 3, 3)
OF_COLUMNS = np.float32([0.1, 0.2, 0.3, 0.1])
TENTH, FIFTIETH = np.float32(0.1), np.float32(0.02)


test_sums_of_integers = compared(
    node("MatMulInteger", 10, ROWS, COLUMNS),
    node("MatMulInteger", 10, ROWS, COLUMNS, np.uint8(100), np.int8(-3), known=(1, 3)),
    node("MatMulInteger", 10, ROWS, COLUMNS, np.uint8(100), np.int8([1, -2, 3, 4]), known=(1, 2, 3)),
    node("MatMulInteger", 10, ROWS[0, 0], COLUMNS),
    node("MatMulInteger", 10, ROWS, COLUMNS[:, 0].copy()),
    node("MatMulInteger", 10, LONG, TALL, np.uint8(0), np.uint8(0)),
    node("MatMulInteger", 10, LONG, TALL, np.uint8(255), np.uint8(0), known=(1, 3)),
    node("MatMulInteger", 10, LONG, TALL, known=(1,)),
    node("ConvInteger", 10, IMAGES, FILTERS, np.uint8(7), np.uint8(200), known=(1,), group=2, pads=[1, 0, 1, 2]),
    node("ConvInteger", 10, MANY, DEEP, np.uint8(0), group=2),
    node("ConvInteger", 10, MANY, DEEP, known=(1,), group=2, strides=[2, 1]),
    node("ConvInteger", 10, IMAGES[:, :, 0].copy(), FILTERS[:, :, 0].copy(), group=2, auto_pad="SAME_LOWER"),
)


OF_FILTERS = np.uint8([1, 0, 255, 3, 4, 5])


test_zero_points_of_rows_and_filters = compared(
    node("MatMulInteger", 10, ROWS[0], COLUMNS, np.uint8([[1], [2], [250]]), oracle="reference"),
    node("ConvInteger", 10, IMAGES, FILTERS, np.uint8(7), OF_FILTERS, known=(1, 3), group=2, oracle="reference"),
)


async def test_a_list_of_zero_points_is_one_for_each_row(context):
    (case,) = node("MatMulInteger", 10, ROWS[0], COLUMNS, np.uint8([1, 2, 250]))
    product = (ROWS[0].astype(np.int32) - [[1], [2], [250]]) @ COLUMNS.astype(np.int32)
    assert_same(await run(context, case.model(), case.feeds), [product.astype(np.int32)])


def product(*scales_and_points, versions=21, **options):
    left, right, result = scales_and_points
    return node("QLinearMatMul", versions, ROWS, *left, COLUMNS, *right, *result, **options)


def convolution(*inputs, filters, known, **options):
    return node("QLinearConv", 10, IMAGES, TENTH, np.uint8(7), filters, *inputs, group=2, known=known, **options)


BIAS = np.arange(6, dtype=np.int32) * 999
PER_FILTER = np.float32([0.02, 0.1, 0.2, 0.05, 0.01, 0.3]), np.zeros(6, np.int8)
LEFT, RIGHT, RESULT = scaled([0.02], 100), scaled([0.1], -3, np.int8), scaled([0.9], 128)
HALVES = [(scale.astype(np.float16), point) for scale, point in (LEFT, RIGHT, RESULT)]
OF_THE_GEMM = FIFTIETH, np.int8(0), np.arange(4, dtype=np.int32) * 99, *scaled(0.3, 50)


test_quantized_results_are_within_one_step = compared(
    node("DynamicQuantizeLinear", 11, floats(3, 7), outputs=3),
    node("DynamicQuantizeLinear", 11, floats(3, 7) + 4, outputs=3),
    node("DynamicQuantizeLinear", 11, np.zeros([2], np.float32), outputs=3),
    product(LEFT, RIGHT, RESULT, versions=[10, 21], known=(3, 4, 5)),
    product(*HALVES, oracle="reference"),
    product(scaled(0.02, 100), (OF_COLUMNS, np.int8([1, -2, 3, 4])), scaled(0.9, 128), known=(3, 4, 5)),
    convolution(*scaled(0.02, 200), *scaled(0.5, 3), BIAS, filters=FILTERS, known=(3, 4, 5, 8), pads=[1, 1, 1, 1]),
    convolution(*PER_FILTER, *scaled(0.9, 100), filters=seven_bits(FILTERS.view(np.int8)), known=(3, 4, 5)),
    microsoft("QGemm", ROWS[0], *scaled(0.1, 7), COLUMNS, *OF_THE_GEMM, alpha=1.5),
    by=check_steps,
)


test_products_as_floats = compared(
    microsoft("MatMulIntegerToFloat", ROWS, COLUMNS, TENTH, FIFTIETH, np.uint8(100), np.int8(-3), floats(4)),
    microsoft("MatMulIntegerToFloat", ROWS, COLUMNS, TENTH, OF_COLUMNS, known=(1,)),
    microsoft("DynamicQuantizeMatMul", floats(3, 5), COLUMNS, FIFTIETH, np.int8(-3), floats(4)),
    microsoft("QGemm", ROWS[0], *scaled(0.1, 7), COLUMNS.T.copy(), OF_COLUMNS, np.zeros(4, np.int8), transB=1),
    microsoft("QGemm", ROWS[0].T.copy(), *scaled(0.1, 7), COLUMNS, FIFTIETH, np.int8(0), transA=1),
)


def few_bits(x, *inputs, **sizes):
    return microsoft("MatMulNBits", x, *inputs, N=5, K=x.shape[-1], **sizes)


BLOCKS = {"known": (1, 2, 3), "block_size": 16, "absolute": 1e-4}


test_weights_of_a_few_bits = compared(
    *(
        few_bits(
            floats(2, 3, 64), of_type("uint8", 5, 2, 32 * bits // 8), floats(5, 2), known=(1, 2), bits=bits,
            block_size=32, absolute=1e-3,
        )
        for bits in (4, 8)
    ),
    few_bits(floats(3, 48), of_type("uint8", 5, 3, 8), floats(5, 3), of_type("uint8", 5, 2), None, floats(5), **BLOCKS),
    few_bits(floats(3, 40), of_type("uint8", 5, 3, 8), floats(5, 3), floats(5, 3), **BLOCKS),
)  # fmt: skip


PRODUCTS = {"quick": 6, "full": 20, "thorough": 200}


def random_product(chosen):
    """Return two factors and their zero points."""
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


@pytest.mark.parametrize("level", [0, 4])
@pytest.mark.parametrize("bits", [4, 8])
async def test_onnxruntime_multiplies_weights_of_a_few_bits_itself(ml, bits, level):
    x, known = floats(3, 64), {"known": (1, 2, 3), "bits": bits, "block_size": 32, "accuracy_level": level}
    weights, points = of_type("uint8", 5, 2, 4 * bits), of_type("uint8", 5, bits // 4)
    (case,) = few_bits(x, weights, floats(5, 2), points, **known)
    context = await ml.create_context(backend="onnxruntime")
    (ours,), (theirs,) = await run(context, case.model(), case.feeds), expected(case)
    np.testing.assert_array_equal(ours, theirs)
