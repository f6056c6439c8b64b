"""The passes for numpy: what each rewrites, to the same bits, and that graphs do without any of them."""

import random

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing, operators_of, results
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant
from webnn_py.devices.numpy.passes import widened_constants
from webnn_py.devices.numpy.passes.dynamic_quantization import PIECE
from webnn_py.devices.numpy.passes.pipeline import PASSES, rewritten
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.pictures import picture

rng = np.random.default_rng(18)


def check_bits(graph, arrays):
    """A graph gives the same bits before and after the passes, NaN apart."""
    expected, given = results(graph, arrays), results(rewritten(graph)[0], arrays)
    for name, array in expected.items():
        np.testing.assert_array_equal(given[name], array, err_msg=name)
        signs = [np.signbit(item) & ~np.isnan(item) for item in (given[name], array)]
        np.testing.assert_array_equal(*signs, err_msg=f"signs of {name}")


def quantized_by_range(b, x, *, uses=1, highest=255):
    """Draw ONNX's DynamicQuantizeLinear, and the differences that products are made of."""
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
def test_quantization_by_the_range_is_one_step_with_the_same_bits(change):
    with np.errstate(all="ignore"):
        array = change(rng.normal(size=(3, PIECE // 2))).astype(np.float32)
    b = Drawing()
    quantized, scale, (one, other) = quantized_by_range(b, b.given("x", array), uses=2)
    graph = b.graph(one=one, other=other, scaled=b.mul(one, scale))
    del quantized
    assert sorted(operators_of(rewritten(graph)[0])) == ["dynamic_differences", "mul"]
    check_bits(graph, {"x": array})


def test_what_else_reads_the_integers_still_gets_them():
    array = rng.normal(size=(2, 9)).astype(np.float32)
    b = Drawing()
    quantized, scale, (differences,) = quantized_by_range(b, b.given("x", array))
    graph = b.graph(quantized=quantized, scale=scale, differences=differences)
    assert "dynamic_differences" in operators_of(rewritten(graph)[0])
    check_bits(graph, {"x": array})


def test_a_quantization_of_another_range_stays():
    array = rng.normal(size=(2, 9)).astype(np.float32)
    b = Drawing()
    _, _, (differences,) = quantized_by_range(b, b.given("x", array), highest=127)
    graph = b.graph(differences=differences)
    assert operators_of(rewritten(graph)[0]) == operators_of(graph)


def test_integers_less_another_zero_point_stay_integers():
    array = rng.normal(size=(2, 9)).astype(np.float32)
    b = Drawing()
    quantized, _, _ = quantized_by_range(b, b.given("x", array))
    _, _, (differences,) = quantized_by_range(b, b.given("z", 3 * array + 1))
    zero_point = b.value(differences).node.operands["b"]
    graph = b.graph(mixed=b.sub(b.cast(quantized, "float32"), b.operand(zero_point)))
    assert operators_of(rewritten(graph)[0]) == operators_of(graph)
    check_bits(graph, {"x": array, "z": 3 * array + 1})


def halves(*shape):
    return (np.rint(64 * rng.normal(size=shape)) / 64).astype(np.float16)


def test_a_constant_of_float16_that_few_rows_are_multiplied_by_is_kept_in_float32():
    array, matrix = halves(8, 300), halves(300, 40)
    b = Drawing()
    graph = b.graph(y=b.matmul(b.given("x", array), b.known(matrix)))
    changed = rewritten(graph)[0]
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
    changed = rewritten(graph)[0]
    assert ("cast" in operators_of(changed)) == widened
    casts = [
        node for node in changed.nodes if node.operator.name == "cast" and isinstance(node.operands["input"], Constant)
    ]
    assert len(casts) == widened, "a matrix of two products is widened once"


X = rng.normal(size=(1, 4, 6, 6)).astype(np.float32)


def something_for_every_pass(b):
    filters = b.known((rng.normal(size=(4, 4, 3, 3)) / 6).astype(np.float32))
    mean, variance = (b.known(np.linspace(0.5, 1.5, 4, dtype=np.float32)) for _ in range(2))
    images = b.batch_normalization(b.conv2d(b.given("x", X), filters), mean, variance)
    _, scale, (differences,) = quantized_by_range(b, images)
    rows = b.reshape(b.mul(differences, scale), [4, 16])
    small = np.linspace(0, 0.01, 16 * 64, dtype=np.float32).reshape(16, 64)
    small[3] = np.finfo(np.float32).smallest_normal / 2
    products = {"v": b.matmul(rows, b.known(small)), "y": b.matmul(b.cast(rows, "float16"), b.known(halves(16, 40)))}
    return b.graph(images=images, **products, z=differences)


def test_any_subset_of_the_passes_gives_the_same():
    graph = something_for_every_pass(Drawing())
    assert all(report.is_changed for report in rewritten(graph)[1])
    expected = results(graph, {"x": X})
    chooser = random.Random(31)  # noqa: S311 - for tests
    subsets = [(), PASSES.optional, *((name,) for name in PASSES.optional)]
    subsets += [tuple(chooser.sample(PASSES.optional, 2)) for _ in range(3)]
    for names in subsets:
        with passes_left_out(*names):
            changed, reports = rewritten(graph)
        assert not set(names).intersection(name for report in reports for name in report.names)
        got = results(changed, {"x": X})
        for name, tolerance in {"images": 1e-5, "v": 0.02, "y": 0.02, "z": 1}.items():  # one step of the quantization
            apart = np.abs(got[name].astype(np.float64) - expected[name]).max()
            assert apart <= tolerance, f"{name} without {names} is off by {apart}"


async def head(context):
    """A graph of a product that is computed in float32."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float16", shape=[1, 300])
    return await builder.build(
        {"y": builder.matmul(x, builder.constant(halves(300, 40)), label="head")}, keep_source=True
    )


async def test_a_graph_describes_what_each_pass_did(numpy_context):
    assert "    widened-constants: matmul [head]" in picture(await head(numpy_context)).describe(passes=True)
    with passes_left_out("widened-constants"):
        assert "widened-constants" not in picture(await head(numpy_context)).describe(passes=True)
