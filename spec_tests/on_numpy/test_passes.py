"""The passes for numpy: what each rewrites, to the same bits, and that graphs do without any of them."""

import random

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing, operators_of, results
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant
from webnn_py.devices.numpy.passes import widened_constants
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
    rows = b.reshape(images, [4, 16])
    small = np.linspace(0, 0.01, 16 * 64, dtype=np.float32).reshape(16, 64)
    small[3] = np.finfo(np.float32).smallest_normal / 2
    products = {"v": b.matmul(rows, b.known(small)), "y": b.matmul(b.cast(rows, "float16"), b.known(halves(16, 40)))}
    return b.graph(images=images, **products)


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
        for name, tolerance in {"images": 1e-5, "v": 0.02, "y": 0.02}.items():
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
