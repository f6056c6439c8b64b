"""Dynamic shapes: a dispatch of new sizes computes what a graph of these sizes does, or says what does not fit."""

import json
import math

import numpy as np
import pytest
from onnx import parser

import webnn_py
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.computing import compute_graph
from webnn_py import Extension, InvalidStateError, MLGraphBuilder, NotSupportedError, UnknownError
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.operators import unary
from webnn_py.extensions.dynamic_shapes import Dimension, DynamicShapes, Figures, compute_shapes, computed, figures
from webnn_py.extensions.subgraph import build_subgraph, subgraph
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

backend = on_each(DEVICES)
N = Dimension("n", 4, max_size=64)


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"dynamic-shapes", "subgraph"}) as opened:
        yield opened


@pytest.fixture
async def context(ml, backend):
    return await ml.create_context(backend=backend)


@pytest.fixture
async def on_numpy(ml):
    return await ml.create_context(backend="numpy")


async def run(context, graph, **feeds):
    """Return the outputs of a dispatch, whose shapes are those that compute_shapes() says."""
    shapes = compute_shapes(graph, {name: array.shape for name, array in feeds.items()})
    given, made = {}, {}
    for name, array in feeds.items():
        given[name] = await context.create_buffer(data_type=array.dtype, shape=array.shape, writable=True)
        context.write_buffer(given[name], array)
    for name, shape in shapes.items():
        data_type = graph.output_descriptors[name].data_type
        made[name] = await context.create_buffer(data_type=data_type, shape=shape, readable=True)
    context.dispatch(graph, given, made)
    return {name: await context.read_buffer(buffer) for name, buffer in made.items()}


def rows(size, columns=2):
    return np.arange(size * columns, dtype=np.float32).reshape(size, columns)


def of_rows(builder, dimension=N, columns=2):
    return builder.input("x", data_type="float32", shape=[dimension, columns])


def flat(builder, operand):
    return builder.reshape(operand, [math.prod(operand.shape)])


CASES = {
    "x[::2]": (lambda b, x: b.slice(x, [0, 0], x.shape, strides=[2, 1]), lambda x: x[::2], (1, 2, 5, 8)),
    "x[-3:]": (lambda b, x: b.slice(x, [N - 3, 0], [3, 2]), lambda x: x[-3:], (3, 4, 9)),
    "x[:n - 3]": (lambda b, x: b.slice(x, [0, 0], [x.shape[0] - 3, 2]), lambda x: x[:-3], (4, 5, 9)),
    "x[:min(n, 3)]": (lambda b, x: b.slice(x, [0, 0], [computed(min, N, 3), 2]), lambda x: x[:3], (1, 2, 5)),
    "pairs": (lambda b, x: flat(b, b.neg(x)), lambda x: -x.reshape(-1), (1, 4, 7)),
    "padded to eight": (
        lambda b, x: b.pad(x, [0, 0], [-N % 8, 0]),
        lambda x: np.pad(x, [(0, -len(x) % 8), (0, 0)]),
        (1, 4, 8, 11),
    ),
    "repeated": (lambda b, x: b.tile(x, [N, 1]), lambda x: np.tile(x, (len(x), 1)), (1, 3, 4)),
    "halves": (lambda b, x: b.concat(b.split(x, 2)[::-1], 0), lambda x: np.roll(x, len(x) // 2, 0), (2, 4, 6)),
    "every row": (lambda b, x: b.concat(b.split(x, [1, N - 1]), 0), lambda x: x, (2, 4, 5)),
    "expanded": (
        lambda b, x: b.add(b.expand(b.reduce_sum(x, axes=[0], keep_dimensions=True), (y := b.identity(x)).shape), y),
        lambda x: x.sum(0) + x,
        (1, 4, 6),
    ),
    "a mean": (
        lambda b, x: b.linear(b.reduce_sum(x, axes=[0]), alpha=1 / N, beta=np.int64(2) * N),
        lambda x: x.mean(0) + 2 * len(x),
        (1, 4, 6),
    ),
    "a product": (lambda b, x: b.matmul(x, b.transpose(x)), lambda x: x @ x.T, (1, 4, 5)),
}


@pytest.mark.parametrize("case", CASES)
async def test_falling_and_growing_sizes_give_what_numpy_does(context, case):
    draw, expected, sizes = CASES[case]
    builder = MLGraphBuilder(context)
    graph = await builder.build({"y": draw(builder, of_rows(builder))})
    for size in (*sizes, *sizes[::-1]):
        result = await run(context, graph, x=rows(size))
        np.testing.assert_allclose(result["y"], expected(rows(size)), rtol=1e-6)


@pytest.mark.parametrize(
    ("case", "size", "words"),
    [
        ("x[-3:]", 2, r"none where n = 2: slice\(\): starts"),
        ("x[:n - 3]", 3, r"none where n = 3: slice\(\)"),
        ("halves", 5, r"none where n = 5: split\(\)"),
        ("x[::2]", 65, r"inputs\['x'\] is \[65, 2\]; 'n' must be from 1 to 64"),
    ],
)
async def test_sizes_for_which_there_is_no_graph_are_refused_before_anything_is_enqueued(on_numpy, case, size, words):
    builder = MLGraphBuilder(on_numpy)
    graph = await builder.build({"y": CASES[case][0](builder, of_rows(builder))})
    x = await on_numpy.create_buffer(data_type="float32", shape=[size, 2])
    y = await on_numpy.create_buffer(data_type="float32", shape=[3, 2])
    with pytest.raises(TypeError, match=rf"^dispatch\(\): .*{words}"):
        on_numpy.dispatch(graph, {"x": x}, {"y": y})
    with pytest.raises(TypeError, match=words):
        compute_shapes(graph, {"x": [size, 2]})
    assert figures(graph).made == 0


async def test_outputs_must_have_the_shape_of_these_sizes(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    graph = await builder.build({"y": builder.neg(of_rows(builder))})
    x = await on_numpy.create_buffer(data_type="float32", shape=[5, 2])
    y = await on_numpy.create_buffer(data_type="float32", shape=[4, 2])
    with pytest.raises(TypeError, match=r"outputs\['y'\] is float32 \[4, 2\]; it must be float32 \[5, 2\]"):
        on_numpy.dispatch(graph, {"x": x}, {"y": y})


async def test_equal_names_are_equal_sizes(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    other = builder.input("other", data_type="float32", shape=[Dimension("n", 4), 2])
    one = builder.input("one", data_type="float32", shape=[1])
    graph = await builder.build({"y": builder.mul(builder.add(x, other), one)})
    np.testing.assert_array_equal(
        (await run(on_numpy, graph, x=rows(6), other=rows(6), one=np.ones(1, np.float32)))["y"], 2 * rows(6)
    )
    for others, words in (
        ({"other": [5, 2], "one": [1]}, r"inputs\['other'\] is \[5, 2\]; it must be \[6, 2\]"),
        ({"other": [6, 3], "one": [1]}, r"inputs\['other'\] is \[6, 3\]; it must be \[6, 2\]"),
        ({"other": [], "one": [1]}, r"inputs\['other'\] is \[\]; it must be \[6, 2\]"),
        ({"other": [6, 2], "one": [1, 1]}, r"inputs\['one'\] is \[1, 1\]; it must be \[1\]"),
        ({"other": [6, 2]}, r"inputs are \['x', 'other'\]; the graph's are"),
    ):
        with pytest.raises(TypeError, match=words):
            compute_shapes(graph, {"x": [6, 2], **others})


async def test_the_same_size_of_two_examples_is_refused_by_the_operator(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    other = builder.input("other", data_type="float32", shape=[Dimension("n", 5), 2])
    with pytest.raises(TypeError, match=r"add\(\): "):
        builder.add(of_rows(builder), other)


USES = {
    "int": int,
    "float": float,
    "math": math.sqrt,
    "an index": lambda size: [*range(9)][size],
    "range": range,
    "a branch": lambda size: 1 if size else 2,
    "a comparison": lambda size: size > 3,
    "equality": lambda size: (size, 2) == (4, 2),
    "membership": lambda size: size in (1, 2),
    "a key": lambda size: {4: "four"}[size],
    "min": lambda size: min(size, 3),
    "np.int64": np.int64,
    "np.arange": np.arange,
    "np.zeros": lambda size: np.zeros((size, 2)),
    "numpy's numbers": lambda size: np.array([size, 2], np.float32),
    "numpy's functions": lambda size: np.ceil(size / 8),
    "json": json.dumps,
}


@pytest.mark.parametrize(
    "size_of", [lambda _, x: x.shape[0], lambda b, x: b.neg(x).shape[1], lambda *_: N, lambda _, x: x.shape[0] * 2]
)
async def test_a_size_is_no_number_and_no_condition(on_numpy, size_of):
    builder = MLGraphBuilder(on_numpy)
    size = size_of(builder, of_rows(builder))
    for name, use in USES.items():
        with pytest.raises(TypeError):
            pytest.fail(f"{name}: {use(size)}")


async def test_a_refused_size_says_what_can_be_done_with_it(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    words = (
        r"n may differ from dispatch to dispatch.*compute with \+ - \* / // % \*\*, or with computed\(function, size\)"
    )
    with pytest.raises(TypeError, match=words):
        int(x.shape[0])
    with pytest.raises(TypeError, match=r"constant\(\): the value is n; it must be a number"):
        builder.constant(x.shape[0], data_type="float32")
    with pytest.raises(TypeError, match=r"constant\(\): shape\[0\] is n; it must be an integer"):
        builder.constant(bytes(16), data_type="float32", shape=x.shape)
    with pytest.raises(TypeError, match=r"input\(\): shape\[0\] is sub\(n, 1\)"):
        builder.input("z", data_type="float32", shape=[N - 1])
    assert f"{x.shape[0]}, {N - 3}, {x}" == "n, sub(n, 3), <MLOperand input 'x' float32 [n, 2]>"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _b, _x: N // 0, "division"),
        (lambda _b, _x: N + "rows", "unsupported operand"),
        (lambda b, x: b.slice(x, [0, 0], ["n", 2]), r"slice\(\): sizes\[0\] is 'n'"),
        (lambda b, _: b.input("z", data_type="float32", shape=["n"]), r"input\(\): shape\[0\] is 'n'"),
        (lambda b, _: b.input("z", data_type="float32", shape=[Dimension("", 1)]), "name is ''"),
        (lambda b, _: b.input("z", data_type="float32", shape=[Dimension("k", 3, 4)]), "'k'; min_size, example"),
    ],
)
async def test_what_is_no_size_is_refused(on_numpy, call, words):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    with pytest.raises((TypeError, ZeroDivisionError), match=words):
        call(builder, x)
    assert await builder.build({"y": builder.neg(x)})


async def test_a_size_that_cannot_be_computed_is_refused_with_the_sizes(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    graph = await builder.build({"y": builder.tile(x, [12 // (N - 3), 1])})
    with pytest.raises(TypeError, match=r"none where n = 3: tile\(\): floordiv\(12, sub\(n, 3\)\) fails: ZeroDivision"):
        compute_shapes(graph, {"x": [3, 2]})


def of_another_builder(context):
    builder = MLGraphBuilder(context)
    return builder.neg(of_rows(builder))


@pytest.mark.parametrize(
    "size_of",
    [lambda _b, _x: N, lambda b, x: b.neg(x).shape[0], lambda b, _: of_another_builder(b.context).shape[0]],
)
async def test_a_size_of_an_operand_that_the_graph_does_not_read_is_refused(on_numpy, size_of):
    builder = MLGraphBuilder(on_numpy)
    size = size_of(builder, of_rows(builder))
    other = builder.input("other", data_type="float32", shape=[1, 2])
    with pytest.raises(TypeError, match=r"build\(\): .*expand\(\): .* is of no operand that the graph needs"):
        await builder.build({"y": builder.expand(other, [size, 2])})


SUMS = """<ir_version: 8, opset_import: ["" : 17]>
    sums (float[N, 2] x) => (float[N, 2] y) { shape = Shape (x) sum = ReduceSum <keepdims = 1> (x)
    y = Expand (sum, shape) }"""

ROWS = """<ir_version: 8, opset_import: ["" : 17]>
    rows (float[N, 2] x) => (float[N, 2] y) { two = Neg (x) y = Add (x, two) }"""


async def test_an_imported_model_follows_its_operands_or_is_refused(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    graph = await builder.build(convert(ROWS, builder, x))
    np.testing.assert_array_equal((await run(on_numpy, graph, x=rows(6)))["y"], 0 * rows(6))
    builder = MLGraphBuilder(on_numpy)
    with pytest.raises(UnsupportedModelError, match=r"\(Shape, opset 17\): n may differ from dispatch"):
        convert(SUMS, builder, of_rows(builder))


def convert(text, builder, x):
    model = OnnxModel.load(parser.parse_model(text).SerializeToString())
    return model.convert(builder, input_operands={"x": x})


async def test_the_graphs_that_were_used_the_longest_ago_go():
    async with webnn_py.open_ml(extensions=[DynamicShapes(variants=2)]) as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        graph = await builder.build({"y": builder.neg(of_rows(builder))})
        assert figures(graph) == Figures(0, 0, None)
        for size, kept, made in ((4, 0, 0), (5, 1, 1), (6, 2, 2), (5, 2, 2), (7, 2, 3), (5, 2, 3), (6, 2, 4)):
            await run(context, graph, x=rows(size))
            assert (figures(graph).kept, figures(graph).made) == (kept, made)
        assert figures(graph).seconds > 0


async def test_destroying_a_graph_releases_all_of_its_memory(context):
    builder = MLGraphBuilder(context)
    weights = builder.constant(rows(2, 2048))
    graph = await builder.build({"y": builder.matmul(of_rows(builder), weights)})
    before = await run(context, graph, x=rows(3))
    await run(context, graph, x=rows(5))
    np.testing.assert_allclose(before["y"], rows(3) @ rows(2, 2048), rtol=1e-5)
    graph.destroy()
    await context.drain()
    builder = MLGraphBuilder(context)
    empty = (await builder.build({"y": builder.neg(of_rows(builder, 2))})).handle
    assert context.statistics().live_bytes < rows(2, 2048).nbytes
    assert empty.compiled is not None
    with pytest.raises(InvalidStateError, match="destroyed"):
        compute_shapes(graph, {"x": [3, 2]})


async def test_variants_share_constants(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    weights = builder.constant(rows(2, 4096))
    graph = await builder.build({"y": builder.matmul(of_rows(builder), weights)})
    alone = on_numpy.statistics().live_bytes
    for size in (3, 5):
        await run(on_numpy, graph, x=rows(size))
    buffers = sum((size * 2 + size * 4096) * 4 for size in (3, 5))
    assert on_numpy.statistics().live_bytes < alone + buffers + rows(2, 4096).nbytes


async def test_a_graph_without_names_stays_as_it_is(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    graph = await builder.build({"y": builder.neg(of_rows(builder, 3))})
    with pytest.raises(NotSupportedError, match="no named dimensions"):
        compute_shapes(graph, {"x": [3, 2]})
    np.testing.assert_array_equal((await compute_graph(on_numpy, graph, {"x": rows(3)}))["y"], -rows(3))


class DoubledNegations(Extension):
    """An extension that replaces operators by others, whose arguments are sizes."""

    def graph(self, _builder, _method, graph):
        return rewrite(graph, twice)


def twice(node, current):
    if node.operator is not unary.neg:
        return None
    builder = RewriteBuilder(current.label, current.drawn)
    x = builder.operand(current.value("input"))
    rows = builder.slice(x, [0, 0], x.shape)
    return {
        node.results[0]: builder.value(builder.mul(builder.add(rows, x), builder.constant(-1, data_type="float32")))
    }


async def test_an_extension_that_replaces_operators_sees_each_set_of_sizes():
    async with webnn_py.open_ml(extensions=[DynamicShapes(), DoubledNegations()]) as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        graph = await builder.build({"y": builder.neg(of_rows(builder))})
        for size in (4, 6, 2):
            np.testing.assert_array_equal((await run(context, graph, x=rows(size)))["y"], -2 * rows(size))


async def test_an_extension_that_replaces_operators_before_sizes_are_known_is_refused():
    async with webnn_py.open_ml(extensions=[DoubledNegations(), DynamicShapes()]) as ml:
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        with pytest.raises(TypeError, match=r"n may differ from dispatch|is n; it must be an integer"):
            await builder.build({"y": builder.neg(of_rows(builder))})


async def test_a_sub_graph_and_its_calls_have_no_named_dimensions(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    formal = builder.input("formal", data_type="float32", shape=[N, 2])
    named = build_subgraph(builder, {"y": builder.neg(formal)}, name="f", inputs={"formal": formal})
    with pytest.raises(NotSupportedError, match="its body has named dimensions"):
        subgraph(builder, named, {"formal": x})
    fixed = builder.input("fixed", data_type="float32", shape=[4, 2])
    definition = build_subgraph(builder, {"y": builder.neg(fixed)}, name="g", inputs={"fixed": fixed})
    with pytest.raises(TypeError, match="n may differ from dispatch to dispatch"):
        subgraph(builder, definition, {"fixed": x})
    called = subgraph(builder, definition, {"fixed": builder.input("plain", data_type="float32", shape=[4, 2])})
    total = builder.add(builder.reduce_sum(x), called["y"])
    result = await run(on_numpy, await builder.build({"y": total}), x=rows(6), plain=rows(4))
    np.testing.assert_array_equal(result["y"], rows(6).sum() - rows(4))


async def test_a_graph_that_cannot_be_compiled_is_reported_by_reading_its_outputs(on_numpy, monkeypatch):
    builder = MLGraphBuilder(on_numpy)
    graph = await builder.build({"y": builder.neg(of_rows(builder))})

    def fail(*_arguments):
        raise MemoryError("no room")

    on_numpy.device.backend.compile = fail
    with pytest.raises(UnknownError, match=r"the graph for n = 5 cannot be compiled: .*no room"):
        await run(on_numpy, graph, x=rows(5))
    del on_numpy.device.backend.compile
    np.testing.assert_array_equal((await run(on_numpy, graph, x=rows(5)))["y"], -rows(5))


@pytest.mark.parametrize("variants", [0, 1.5, True])
def test_a_number_of_variants_that_is_none_is_refused(variants):
    with pytest.raises(TypeError, match=r"variants is .*; it must be an integer of at least 1"):
        DynamicShapes(variants)
