"""Nodes of the device's own in place of several: the same bits, in fewer calls."""

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing, operators_of, results
from webnn_py.device.on_numpy.passes import dynamic_quantization, widened_constants
from webnn_py.device.on_numpy.passes.simplification import simplified
from webnn_py.graph import Constant

rng = np.random.default_rng(18)


def check_bits(graph, arrays):
    """Both ways of running a graph, with its nodes and with the device's own, give the same bits, NaN apart."""
    expected, given = results(graph, arrays), results(simplified(graph), arrays)
    for name, array in expected.items():
        np.testing.assert_array_equal(given[name], array, err_msg=name)
        signs = [np.signbit(item) & ~np.isnan(item) for item in (given[name], array)]
        np.testing.assert_array_equal(*signs, err_msg=f"signs of {name}")


def quantized_by_range(b, x, *, uses=1, highest=255):
    """What ONNX's DynamicQuantizeLinear is read as, and the differences that products are made of."""
    zero, one, most = (b.constant(number, data_type="float32") for number in (0, 1, highest))
    lowest = b.min(b.reduce_min(x), zero)
    span = b.sub(b.max(b.reduce_max(x), zero), lowest)
    scale = b.where(b.equal(span, zero), one, b.div(span, most))
    point = b.clamp(b.round_even(b.div(b.neg(lowest), scale)), min_value=0, max_value=255)
    zero_point = b.cast(point, "uint8")
    ones = [1] * len(x.shape)
    quantized = b.quantize_linear(x, b.reshape(scale, ones), b.reshape(zero_point, ones))
    differences = [b.sub(b.cast(quantized, "float32"), b.cast(zero_point, "float32")) for _ in range(uses)]
    return quantized, scale, differences


RANGES = {
    "both signs": lambda x: x,
    "positive": lambda x: np.abs(x) + 1,
    "negative": lambda x: -np.abs(x) - 1,
    "ties": lambda x: np.rint(4 * x) / 2,
    "zeros": lambda x: -0 * x,
    "NaN": lambda x: np.where(x > 2, np.nan, x),
    "only NaN": lambda x: np.nan * x,
    "infinities": lambda x: np.where(np.abs(x) > 2, np.inf * x, x),
    "the smallest": lambda x: np.where(x > 0, 1e-45, 0),
    "the largest": lambda x: np.where(x > 0, 3e38, -3e38),
}


@pytest.mark.parametrize("change", RANGES.values(), ids=RANGES)
def test_quantization_by_the_range_is_one_step_with_the_same_bits(change, monkeypatch):
    monkeypatch.setattr(dynamic_quantization, "PIECE", 64)
    with np.errstate(all="ignore"):
        array = change(rng.normal(size=(3, 50))).astype(np.float32)
    b = Drawing()
    quantized, scale, (one, other) = quantized_by_range(b, b.given("x", array), uses=2)
    graph = b.graph(one=one, other=other, scaled=b.mul(one, scale))
    del quantized
    assert sorted(operators_of(simplified(graph))) == ["dynamic_differences", "mul"]
    check_bits(graph, {"x": array})


def test_what_else_reads_the_integers_still_gets_them():
    array = rng.normal(size=(2, 9)).astype(np.float32)
    b = Drawing()
    quantized, scale, (differences,) = quantized_by_range(b, b.given("x", array))
    graph = b.graph(quantized=quantized, scale=scale, differences=differences)
    assert "dynamic_differences" in operators_of(simplified(graph))
    check_bits(graph, {"x": array})


def test_a_quantization_of_another_range_stays():
    array = rng.normal(size=(2, 9)).astype(np.float32)
    b = Drawing()
    _, _, (differences,) = quantized_by_range(b, b.given("x", array), highest=127)
    graph = b.graph(differences=differences)
    assert operators_of(simplified(graph)) == operators_of(graph)


def test_integers_less_another_zero_point_stay_integers():
    array = rng.normal(size=(2, 9)).astype(np.float32)
    b = Drawing()
    quantized, _, _ = quantized_by_range(b, b.given("x", array))
    _, _, (differences,) = quantized_by_range(b, b.given("z", 3 * array + 1))
    zero_point = b.value(differences).node.operands["b"]
    graph = b.graph(mixed=b.sub(b.cast(quantized, "float32"), b.operand(zero_point)))
    assert operators_of(simplified(graph)) == operators_of(graph)
    check_bits(graph, {"x": array, "z": 3 * array + 1})


def product_of_integers(a, weights, *, zero_point):
    b = Drawing()
    x = b.given("a", a)
    _, _, (left,) = quantized_by_range(b, x)
    right = b.sub(b.cast(b.known(weights), "float32"), b.cast(b.known(zero_point), "float32"))
    sums = b.matmul(left, right)
    return b.graph(sums=b.cast(b.cast(sums, "int32"), "float32"))


def test_sums_of_integers_are_not_cast_to_such_and_back():
    weights = rng.integers(0, 255, (70, 40), np.uint8, endpoint=True)
    array = rng.normal(size=(5, 70)).astype(np.float32)
    array[1] = 0
    graph = product_of_integers(array, weights, zero_point=np.array(130, np.uint8))
    assert sorted(operators_of(simplified(graph))) == ["cast", "cast", "dynamic_differences", "matmul", "sub"]
    check_bits(graph, {"a": array})


def test_sums_of_what_need_not_be_integers_are_cast():
    b = Drawing()
    array = rng.normal(size=(5, 7)).astype(np.float32)
    _, scale, (left,) = quantized_by_range(b, b.given("a", array))
    sums = b.matmul(b.mul(left, scale), b.cast(b.known(np.full((7, 2), 3, np.int8)), "float32"))
    graph = b.graph(sums=b.cast(b.cast(sums, "int32"), "float32"))
    assert operators_of(simplified(graph)).count("cast") == 3
    check_bits(graph, {"a": array})


def test_sums_that_int32_may_not_hold_are_cast():
    length = 2**30 // (255 * 128) + 1
    b = Drawing()
    a = b.given("a", np.zeros((1, length), np.uint8))
    sums = b.matmul(b.cast(a, "float32"), b.cast(b.given("b", np.zeros((length, 1), np.int8)), "float32"))
    parts = b.split(b.given("c", np.zeros(4, np.float32)), 2)
    graph = b.graph(sums=b.cast(b.cast(sums, "int32"), "float32"), part=parts[0])
    assert operators_of(simplified(graph)).count("cast") == 4


def cell_in_operators(b, gates, cell, order):
    parts = b.split(gates, 4, axis=1)
    input_, output, forget, candidate = (parts[place] for place in order)
    following = b.add(b.mul(b.sigmoid(forget), cell), b.mul(b.sigmoid(input_), b.tanh(candidate)))
    return b.mul(b.sigmoid(output), b.tanh(following)), following


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0)], ids=str)
def test_a_cell_in_single_operators_is_one_step_with_the_same_bits(order):
    first = rng.normal(size=(2, 24)).astype(np.float32) * 3
    first[0, ::5] = -89, 89, -104, np.inf, -np.inf
    first[1, :3] = np.nan
    second, state = rng.normal(size=(2, 24)).astype(np.float32), rng.normal(size=(2, 6)).astype(np.float32)
    b = Drawing()
    shown, cell = cell_in_operators(b, b.given("first", first), b.given("state", state), order)
    hidden, following = cell_in_operators(b, b.given("second", second), cell, order)
    graph = b.graph(shown=shown, cell=cell, hidden=hidden, following=following)
    assert operators_of(simplified(graph)) == ["gated_cell"] * 2
    check_bits(graph, {"first": first, "second": second, "state": state})


def test_gates_of_two_splits_are_no_cell():
    b = Drawing()
    array = np.zeros((1, 8), np.float32)
    parts = [*b.split(b.given("x", array), 4, axis=1)[:2], *b.split(b.given("y", array), 4, axis=1)[2:]]
    input_, output, forget, candidate = parts
    following = b.add(b.mul(b.sigmoid(forget), candidate), b.mul(b.sigmoid(input_), b.tanh(candidate)))
    graph = b.graph(hidden=b.mul(b.sigmoid(output), b.tanh(following)))
    assert "gated_cell" not in operators_of(simplified(graph))


@pytest.mark.parametrize("data_type", ["int8", "uint8"])
@pytest.mark.parametrize("blocks", [(1, 1), (3, 1), (3, 5)], ids=str)
def test_quantizing_and_taking_back_is_one_step_with_the_same_bits(data_type, blocks):
    array = (rng.normal(size=(3, 50)) * 9).astype(np.float32)
    array[:, :6] = np.nan, np.inf, -np.inf, -0.0, 1e6, -3e8
    array[:, 20:] = np.rint(array[:, 20:] * 32) / 32
    limits = np.iinfo(data_type)
    scale = rng.uniform(0.05, 0.1, blocks).astype(np.float32)
    scale[0, 0] = 1 / 16  # half of the numbers lie between two integers
    point = rng.integers(limits.min, limits.max, blocks, data_type, endpoint=True)
    b = Drawing()
    # The same numbers in the same shape, by reshapes of their own, as ONNX's are read.
    known = [b.known(item) for item in (scale, point)]
    pairs = [[b.reshape(item, list(blocks)) for item in known] for _ in range(2)]
    x = b.given("x", array)
    graph = b.graph(y=b.dequantize_linear(b.quantize_linear(x, *pairs[0]), *pairs[1]))
    assert operators_of(simplified(graph)).count("requantized") == 1
    check_bits(graph, {"x": array})


def test_integers_that_are_read_or_taken_back_otherwise_are_made():
    array = rng.normal(size=(4, 6)).astype(np.float32)
    one, other = (np.full((1, 1), number, np.float32) for number in (0.1, 0.2))
    b = Drawing()
    point = b.known(np.full((1, 1), 3, np.uint8))
    quantized, another = (b.quantize_linear(b.given("x", array), b.known(one), point) for _ in range(2))
    graph = b.graph(
        quantized=quantized,
        first=b.dequantize_linear(quantized, b.known(one), point),
        second=b.dequantize_linear(another, b.known(other), point),
    )
    assert "requantized" not in operators_of(simplified(graph))


def halves(*shape):
    return (np.rint(64 * rng.normal(size=shape)) / 64).astype(np.float16)


def times_constant(b, a, constant, *, is_gemm):
    if not is_gemm:
        return b.matmul(a, constant)
    return b.gemm(a, constant, c=b.known(halves(40)), alpha=0.3, beta=0.7, b_transpose=True)


@pytest.mark.parametrize("is_gemm", [False, True], ids=["matmul", "gemm"])
def test_a_constant_of_float16_that_few_rows_are_multiplied_by_is_kept_in_float32(is_gemm):
    array, matrix = halves(8, 300), halves(40, 300) if is_gemm else halves(300, 40)
    b = Drawing()
    x, constant = b.given("x", array), b.known(matrix)
    graph = b.graph(y=times_constant(b, x, constant, is_gemm=is_gemm))
    changed = simplified(graph)
    assert operators_of(changed).count("cast") == len(list(graph.nodes[0].inputs)) + 1
    given, plain = results(changed, {"x": array})["y"], results(graph, {"x": array})["y"]
    # Sums of float32 in another order: the least place of float16 may be rounded to the other side.
    np.testing.assert_array_max_ulp(given, plain, maxulp=1)


@pytest.mark.parametrize(
    ("rows", "bound", "widened"), [(8, 2**20, True), (9, 2**20, False), (8, 4 * 300 * 40 - 1, False)], ids=str
)
def test_constants_are_kept_in_float32_for_few_rows_and_up_to_a_bound(monkeypatch, rows, bound, widened):
    monkeypatch.setattr(widened_constants, "MOST_BYTES", bound)
    b = Drawing()
    x, constant = b.given("x", halves(rows, 300)), b.known(halves(300, 40))
    graph = b.graph(y=b.matmul(x, constant), z=b.matmul(b.neg(x), constant))
    changed = simplified(graph)
    assert ("cast" in operators_of(changed)) == widened
    casts = [
        node for node in changed.nodes if node.operator.name == "cast" and isinstance(node.operands["input"], Constant)
    ]
    assert len(casts) == widened, "a matrix of two products is widened once"


def depthwise(b, x, window=(3, 3), *, bias=None, **options):
    channels = x.shape[1]
    filters = rng.normal(size=(channels, 1, *window)).astype(np.float32)
    given = {} if bias is None else {"bias": bias}
    return b.conv2d(x, b.known(filters), groups=channels, **given, **options)


def halved(b, x, **options):
    return b.max_pool2d(x, **{"window_dimensions": [2, 2], "strides": [2, 2], **options})


POOLED = {
    "even sizes": ((1, 3, 30, 46), (3, 3), {"padding": [1, 1, 1, 1]}),
    "odd sizes": ((2, 3, 31, 47), (3, 3), {"padding": [1, 1, 1, 1]}),
    "tiles of rows": ((1, 2, 211, 402), (3, 3), {"padding": [1, 1, 1, 1]}),
    "tiles of channels": ((2, 70, 41, 38), (5, 5), {"padding": [2, 2, 2, 2]}),
    "strides": ((1, 3, 62, 95), (3, 3), {"padding": [0, 2, 1, 0], "strides": [2, 2]}),
    "no padding, dilated columns": ((1, 4, 40, 60), (4, 3), {"dilations": [1, 3]}),
}


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("has_relu", [True, False])
@pytest.mark.parametrize("case", POOLED)
def test_a_depthwise_convolution_is_pooled_in_its_tiles_with_the_same_bits(case, has_relu, has_bias):
    shape, window, options = POOLED[case]
    array = rng.normal(size=shape).astype(np.float32)
    array[0, 0, 5, 3:25:6] = np.nan, np.inf, -np.inf, 3e38
    array[0, -1, -2:] = -np.inf
    b = Drawing()
    bias = b.known(rng.normal(size=shape[1]).astype(np.float32)) if has_bias else None
    convolved = depthwise(b, b.given("x", array), window, bias=bias, **options)
    graph = b.graph(y=halved(b, b.relu(convolved) if has_relu else convolved))
    assert operators_of(simplified(graph)) == ["pooled_convolution"] + ["relu"] * has_relu
    check_bits(graph, {"x": array})


def test_what_a_pooled_convolution_is_made_of_is_told():
    b = Drawing(drawn=(4,))
    graph = b.graph(y=halved(b, depthwise(b, b.given("x", np.zeros((1, 2, 30, 30), np.float32)))))
    assert [node.drawn for node in simplified(graph).nodes] == [(4,)]


def read_twice(b, x):
    images = b.relu(depthwise(b, x))
    return b.sub(halved(b, images), halved(b, b.neg(images)))


STAY = {
    "infinite bias": lambda b, x: halved(b, depthwise(b, x, bias=b.known(np.array([1, np.inf], np.float32)))),
    "bias that is no constant": lambda b, x: halved(
        b, depthwise(b, x, bias=b.reshape(b.reduce_max(x, axes=[0, 2, 3]), [2]))
    ),
    "larger windows": lambda b, x: halved(b, depthwise(b, x), window_dimensions=[3, 3]),
    "padding": lambda b, x: halved(b, depthwise(b, x), padding=[1, 0, 0, 1]),
    "windows in part": lambda b, x: halved(b, depthwise(b, x), output_shape_rounding="ceil"),
    "several outputs": lambda b, x: halved(b, b.conv2d(x, b.known(np.ones((4, 1, 3, 3), np.float32)), groups=2)),
    "no convolution": lambda b, x: halved(b, b.neg(x)),
    "relu that is read twice": read_twice,
    "windows of padding": lambda b, x: halved(b, b.relu(x), padding=[2, 0, 0, 0]),
}


@pytest.mark.parametrize("drawing", STAY)
def test_other_pooling_stays_where_it_is(drawing):
    array = rng.normal(size=(1, 2, 31, 45)).astype(np.float32)
    array[0, 1, 7, 30:33] = -np.inf
    b = Drawing()
    graph = b.graph(y=STAY[drawing](b, b.given("x", array)))
    assert operators_of(simplified(graph)) == operators_of(graph)
    check_bits(graph, {"x": array})


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_a_relu_comes_behind_the_pooling(layout, data_type):
    array = rng.normal(size=(2, 9, 11, 4)).astype(data_type)
    array[0, 3, 2:8, 1] = np.nan, np.inf, -np.inf, -3, np.nan, -1
    b = Drawing()
    options = {"window_dimensions": [3, 2], "padding": [1, 1, 1, 0], "layout": layout}
    graph = b.graph(y=halved(b, b.relu(b.given("x", array)), **options))
    assert operators_of(simplified(graph)) == ["max_pool2d", "relu"]
    check_bits(graph, {"x": array})


@pytest.mark.parametrize("keep_dimensions", [False, True])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_a_reduction_of_single_elements_is_these(data_type, keep_dimensions):
    draw = Drawing()
    x = np.array([[-0.0, 3, np.inf, -np.inf, np.nan, 5]], data_type)
    operand = draw.neg(draw.given("x", x))
    drawn = {
        name: getattr(draw, name)(operand, axes=[0], keep_dimensions=keep_dimensions)
        for name in ("reduce_mean", "reduce_max", "reduce_min")
    }
    graph = draw.graph(**drawn, sum=draw.reduce_sum(operand, axes=[0]))
    assert set(operators_of(simplified(graph))) <= {"neg", "reshape", "reduce_sum"}
    expected = -x if keep_dimensions else -x[0]
    for name, array in results(simplified(graph), {"x": x}).items():
        np.testing.assert_array_equal(array, expected if name in drawn else -x[0])


def test_a_mean_of_more_than_one_element_stays():
    draw = Drawing()
    graph = draw.graph(y=draw.reduce_mean(draw.given("x", np.zeros((1, 2), np.float32))))
    assert operators_of(simplified(graph)) == ["reduce_mean"]


def test_an_input_of_one_element_may_be_its_own_mean():
    draw = Drawing()
    x = np.full((1, 1), 7, np.float32)
    graph = draw.graph(y=draw.reduce_mean(draw.given("x", x), keep_dimensions=True))
    np.testing.assert_array_equal(results(simplified(graph), {"x": x})["y"], x)
