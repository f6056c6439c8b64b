"""Dynamic shapes: a dispatch of new sizes computes what a graph of these sizes does, or says what does not fit."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.computing import compute_graph
from webnn_py import InvalidStateError, MLGraphBuilder, NotSupportedError, UnknownError
from webnn_py.extensions.dynamic_shapes import Dimension, DynamicShapes, Figures, compute_shapes, figures
from webnn_py.extensions.subgraph import build_subgraph, subgraph

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


CASES = {
    "x[::2]": (lambda b, x: b.slice(x, [0, 0], ["n", 2], strides=[2, 1]), lambda x: x[::2], (1, 2, 5, 8)),
    "x[-3:]": (lambda b, x: b.slice(x, [lambda s: s["n"] - 3, 0], [3, 2]), lambda x: x[-3:], (3, 4, 9)),
    "x[:n - 3]": (lambda b, x: b.slice(x, [0, 0], [lambda s: s["n"] - 3, 2]), lambda x: x[:-3], (4, 5, 9)),
    "pairs": (lambda b, x: b.reshape(x, [lambda s: s["n"] * 2]), lambda x: x.reshape(-1), (1, 4, 7)),
    "padded to eight": (
        lambda b, x: b.pad(x, [0, 0], [lambda s: -s["n"] % 8, 0]),
        lambda x: np.pad(x, [(0, -len(x) % 8), (0, 0)]),
        (1, 4, 8, 11),
    ),
    "repeated": (lambda b, x: b.tile(x, ["n", 1]), lambda x: np.tile(x, (len(x), 1)), (1, 3, 4)),
    "halves": (lambda b, x: b.concat(b.split(x, 2)[::-1], 0), lambda x: np.roll(x, len(x) // 2, 0), (2, 4, 6)),
    "every row": (lambda b, x: b.concat(b.split(x, [1, lambda s: s["n"] - 1]), 0), lambda x: x, (2, 4, 5)),
    "expanded": (
        lambda b, x: b.expand(b.reduce_sum(x, axes=[0], keep_dimensions=True), ["n", 2]),
        lambda x: np.tile(x.sum(0), (len(x), 1)),
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
        ("x[::2]", 65, r"inputs\['x'\] is \[65, 2\]; dimension 0, 'n', must be from 1 to 64"),
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


async def test_equal_names_are_equal_sizes_and_names_stand_for_them_later(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    other = builder.input("other", data_type="float32", shape=["n", 2])
    one = builder.input("one", data_type="float32", shape=[1])
    graph = await builder.build({"y": builder.mul(builder.add(x, other), one)})
    np.testing.assert_array_equal(
        (await run(on_numpy, graph, x=rows(6), other=rows(6), one=np.ones(1, np.float32)))["y"], 2 * rows(6)
    )
    with pytest.raises(TypeError, match=r"inputs\['other'\] is \[5, 2\]; dimension 0, 'n', must be 6"):
        compute_shapes(graph, {"x": [6, 2], "other": [5, 2], "one": [1]})
    for others, words in (
        ({"other": [6, 3], "one": [1]}, r"inputs\['other'\] is \[6, 3\]; dimension 1 must be 2"),
        ({"other": [6, 2], "one": [1, 1]}, r"inputs\['one'\] is \[1, 1\]; its rank must be 1"),
        ({"other": [6, 2]}, r"inputs are \['x', 'other'\]; the graph's are"),
    ):
        with pytest.raises(TypeError, match=words):
            compute_shapes(graph, {"x": [6, 2], **others})


@pytest.mark.parametrize(
    "draw",
    [
        lambda b, x: b.slice(x, [0, 0], [x.shape[0] - 1, 2]),
        lambda b, x: b.reshape(b.neg(x), [-(-b.neg(x).shape[0] // 1), 2]),
        lambda b, x: b.mul(x, b.constant(x.shape[0], data_type="float32")),
    ],
)
async def test_numbers_that_are_computed_from_the_sizes_of_the_examples_are_refused(on_numpy, draw):
    builder = MLGraphBuilder(on_numpy)
    with pytest.raises(TypeError, match=r"computed from a shape of the examples.*give a name"):
        draw(builder, of_rows(builder))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b, _: b.input("z", data_type="float32", shape=["m"]), r"input\(\): shape\[0\] is 'm'; .*\['n'\]"),
        (lambda b, _: of_rows(b, Dimension("n", 5)), "equal names are one dimension"),
        (lambda b, x: b.slice(x, [0, 0], ["m", 2]), r"slice\(\): sizes\[0\] is 'm'"),
        (lambda b, x: b.slice(x, [0, 0], [lambda s: s["m"], 2]), r"a function that fails where n = 4: KeyError\('m'\)"),
        (lambda b, _: b.constant(bytes(4), data_type="float32", shape=["n"]), "constants have no named dimensions"),
        (lambda b, _: b.input("z", data_type="float32", shape=[Dimension("", 1)]), "name is ''"),
        (lambda b, _: b.input("z", data_type="float32", shape=[Dimension("k", 3, 4)]), "'k': min_size, example"),
    ],
)
async def test_what_is_no_name_is_refused(on_numpy, call, words):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    with pytest.raises(TypeError, match=words):
        call(builder, x)
    assert await builder.build({"y": builder.neg(x)})


async def test_a_name_of_an_input_that_the_graph_does_not_read_is_refused(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    of_rows(builder)
    other = builder.input("other", data_type="float32", shape=[1, 2])
    with pytest.raises(TypeError, match=r"build\(\): the graph is none where .*expand\(\): new_shape\[0\] is 'n'"):
        await builder.build({"y": builder.expand(other, ["n", 2])})


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


async def test_a_body_of_a_sub_graph_has_no_named_dimensions_and_a_call_its_own_sizes_only(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    x = of_rows(builder)
    formal = builder.input("formal", data_type="float32", shape=["n", 2])
    named = build_subgraph(builder, {"y": builder.neg(formal)}, name="f", inputs={"formal": formal})
    with pytest.raises(NotSupportedError, match="its body has named dimensions"):
        subgraph(builder, named, {"formal": x})
    fixed = builder.input("fixed", data_type="float32", shape=[4, 2])
    definition = build_subgraph(builder, {"y": builder.neg(fixed)}, name="g", inputs={"fixed": fixed})
    graph = await builder.build(subgraph(builder, definition, {"fixed": x}))
    np.testing.assert_array_equal((await run(on_numpy, graph, x=rows(4)))["y"], -rows(4))
    with pytest.raises(TypeError, match=r"n = 5: subgraph_call\(\): the shape of 'fixed' is \[5, 2\]"):
        compute_shapes(graph, {"x": [5, 2]})


async def test_a_graph_that_cannot_be_compiled_is_reported_by_reading_its_outputs(on_numpy, monkeypatch):
    builder = MLGraphBuilder(on_numpy)
    graph = await builder.build({"y": builder.neg(of_rows(builder))})

    def fail(*_arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(on_numpy.device.backend, "compile", fail)
    with pytest.raises(UnknownError, match=r"the graph for n = 5 cannot be compiled: .*no room"):
        await run(on_numpy, graph, x=rows(5))
    monkeypatch.undo()
    np.testing.assert_array_equal((await run(on_numpy, graph, x=rows(5)))["y"], -rows(5))


@pytest.mark.parametrize("variants", [0, 1.5, True])
def test_a_number_of_variants_that_is_none_is_refused(variants):
    with pytest.raises(TypeError, match=r"variants is .*; it must be an integer of at least 1"):
        DynamicShapes(variants)
