"""Element-wise fusion: neighbours run tile by tile, and give what they give one by one; only the clock can tell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder, UnknownError
from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy import (
    backend,  # noqa: F401 - fills the table of kernels
    table,
)
from webnn_py.device.on_numpy.executable import NumpyGraph
from webnn_py.device.on_numpy.passes import fusion
from webnn_py.graph import Graph, Input, Node
from webnn_py.operators import arithmetic
from webnn_py.operators.registry import OPERATORS

LENGTH = 1000


def node(name, *operands, **options):
    """An operator at work on values of a graph, without a builder."""
    operator = OPERATORS[name]
    shape = max((value.descriptor.shape for value in operands), key=len)
    data_type = options.get("data_type") or operands[-1].descriptor.data_type
    if name in ("greater", "equal", "is_nan"):
        data_type = "uint8"
    parameters = [parameter for parameter in operator.parameters.values() if parameter.is_operand]
    named = dict(zip((parameter.name for parameter in parameters), operands, strict=False))
    defaults = {p.name: p.default for p in operator.parameters.values() if not p.is_operand and p.name != "label"}
    return Node(operator, named, {**defaults, **options}, (MLOperandDescriptor(data_type, shape),))


def inputs(**types):
    return {name: Input(MLOperandDescriptor(kind, shape), name) for name, (kind, shape) in types.items()}


def run(graph, arrays):
    outputs = {
        name: np.empty(value.descriptor.shape, value.descriptor.data_type) for name, value in graph.outputs.items()
    }
    NumpyGraph(graph).run(arrays, outputs)
    return outputs


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(fusion, "WORTH_TILING", 100)
    monkeypatch.setattr(fusion, "tile_length", lambda _group, count: min(count, 128))


def both_ways(graph, arrays, monkeypatch):
    """What a graph gives as fusion groups in small tiles, and one operator at a time."""
    monkeypatch.setattr(fusion, "WORTH_TILING", 100)
    monkeypatch.setattr(fusion, "tile_length", lambda _group, count: min(count, 128))
    tiled = run(graph, arrays)
    monkeypatch.setattr(fusion, "WORTH_TILING", 2**40)
    return tiled, run(graph, arrays)


OPERATIONS = ("add", "mul", "sub", "max", "relu", "abs", "sigmoid", "tanh", "neg", "floor", "linear")


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_random_groups_give_the_same_bits_as_single_operators(data):
    given_inputs = inputs(x=("float32", (LENGTH,)), k=("float32", (LENGTH,)), s=("float32", ()))
    values = list(given_inputs.values())
    made = []
    for _ in range(data.draw(st.integers(2, 12))):
        name = data.draw(st.sampled_from(OPERATIONS))
        count = 2 if name in ("add", "mul", "sub", "max") else 1
        operands = [data.draw(st.sampled_from(values)) for _ in range(count)]
        if all(value.descriptor.shape == () for value in operands):
            operands[0] = values[0]
        made.append(node(name, *operands))
        values.append(made[-1].results[0])
    wanted = data.draw(st.lists(st.sampled_from(values[3:]), min_size=1, max_size=3))
    graph = Graph.reaching({str(index): value for index, value in enumerate(wanted)})
    rng = np.random.default_rng(1)
    arrays = {"x": rng.standard_normal(LENGTH, np.float32), "k": rng.random(LENGTH, np.float32), "s": np.float32(0.7)}
    arrays = {name: np.asarray(arrays[name]) for name in graph.inputs}
    with pytest.MonkeyPatch.context() as monkeypatch:
        tiled, single = both_ways(graph, arrays, monkeypatch)
    for name in tiled:
        np.testing.assert_array_equal(tiled[name], single[name])


def test_a_group_may_change_its_data_type(monkeypatch):
    x = inputs(x=("float32", (LENGTH,)))["x"]
    doubled = node("add", x, x)
    above = node("greater", doubled.results[0], x)
    back = node("cast", above.results[0], data_type="float16")
    graph = Graph.reaching({"y": back.results[0], "z": above.results[0]})
    array = np.linspace(-1, 1, LENGTH, dtype=np.float32)
    tiled, single = both_ways(graph, {"x": array}, monkeypatch)
    np.testing.assert_array_equal(tiled["y"], (2 * array > array).astype(np.float16))
    np.testing.assert_array_equal(tiled["z"], single["z"])


def test_what_lies_between_takes_no_memory_of_the_whole(small_tiles):
    x = inputs(x=("float32", (100_000,)))["x"]
    value = x
    for _ in range(10):
        value = node("add", value, x).results[0]
    graph = NumpyGraph(Graph.reaching({"y": value}))
    assert graph.byte_length == 2 * 128 * 4, "two intermediates of a tile"
    assert len(graph._calls) == 1


def test_views_of_other_layouts_are_not_taken_tile_by_tile(monkeypatch):
    x = inputs(x=("float32", (40, 25)))["x"]
    transposed = node("transpose", x)
    transposed = Node(
        transposed.operator, transposed.operands, transposed.options, (MLOperandDescriptor("float32", (25, 40)),)
    )
    doubled = node("add", transposed.results[0], transposed.results[0])
    graph = Graph.reaching({"y": node("abs", doubled.results[0]).results[0]})
    array = np.arange(1000, dtype=np.float32).reshape(40, 25)
    tiled, single = both_ways(graph, {"x": array}, monkeypatch)
    np.testing.assert_array_equal(tiled["y"], 2 * array.T)
    np.testing.assert_array_equal(single["y"], 2 * array.T)


def test_a_result_never_overlaps_an_operand_that_a_later_tile_reads(monkeypatch):
    x = inputs(x=("float32", (LENGTH,)))["x"]
    first = node("reverse", node("add", x, x).results[0], axes=(0,))
    second = node("abs", first.results[0])
    third = node("neg", second.results[0])
    last = node("reverse", third.results[0], axes=(0,))
    graph = Graph.reaching({"y": last.results[0], "w": second.results[0]})
    array = np.arange(LENGTH, dtype=np.float32)
    tiled, _ = both_ways(graph, {"x": array}, monkeypatch)
    np.testing.assert_array_equal(tiled["y"], -2 * array)
    np.testing.assert_array_equal(tiled["w"], 2 * array[::-1])


# --- through the API -------------------------------------------------------------------------------------------------


@pytest.fixture
def _least_tiles(monkeypatch):
    """Tiles of 1024 elements, and arrays of any size worth them."""
    monkeypatch.setattr(fusion, "WORTH_TILING", 1)
    monkeypatch.setattr(fusion, "TILE_BYTES", 1)


async def run_twice(context, shape, draw, data_type="float32"):
    """Draw on inputs x and y of the shape, dispatch twice, and return the inputs and what comes out."""
    builder = MLGraphBuilder(context)
    names = ("x", "y")
    operands = [builder.input(name, data_type=data_type, shape=shape) for name in names]
    graph = await builder.build(draw(builder, *operands))
    rng = np.random.default_rng(716)
    arrays = {name: rng.integers(-9, 9, shape).astype(data_type) for name in names}
    sources = {name: await filled(context, arrays[name], data_type) for name in graph.input_descriptors}
    targets = {name: await zeroed(context, d.shape, d.data_type) for name, d in graph.output_descriptors.items()}
    for _ in range(2):
        context.dispatch(graph, sources, targets)
    for name, source in sources.items():
        np.testing.assert_array_equal(await context.read_buffer(source), arrays[name], f"the input {name}")
    return arrays["x"], arrays["y"], {name: await context.read_buffer(target) for name, target in targets.items()}


@pytest.mark.parametrize("shape", [[1], [1023], [1024], [1025], [2048], [3, 1000], [2, 3, 1024]], ids=str)
@pytest.mark.usefixtures("_least_tiles")
async def test_every_element_is_computed_whatever_the_last_tile_holds(numpy_context, shape):
    def draw(b, x, y):
        total = b.add(x, y)
        return {"z": b.mul(b.sub(total, x), total)}

    x, y, results = await run_twice(numpy_context, shape, draw)
    np.testing.assert_array_equal(results["z"], y * (x + y))


@pytest.mark.usefixtures("_least_tiles")
async def test_neighbours_are_one_step_without_memory_between_them(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2000])
    graph = await builder.build({"y": builder.mul(builder.add(builder.sub(x, x), x), x)})
    assert len(graph._handle.compiled._calls) == 1
    assert numpy_context.statistics().live_bytes < 2 * 8000, "two whole intermediates"


@pytest.mark.usefixtures("_least_tiles")
async def test_what_lies_between_may_be_an_output_and_be_read_by_others(numpy_context):
    def draw(b, x, y):
        total = b.add(x, y)
        product = b.mul(total, x)
        return {"total": total, "product": product, "z": b.sub(product, total), "rows": b.transpose(product)}

    x, y, results = await run_twice(numpy_context, [50, 60], draw)
    np.testing.assert_array_equal(results["total"], x + y)
    np.testing.assert_array_equal(results["product"], (x + y) * x)
    np.testing.assert_array_equal(results["z"], (x + y) * x - (x + y))
    np.testing.assert_array_equal(results["rows"], ((x + y) * x).T)


@pytest.mark.usefixtures("_least_tiles")
async def test_scalars_and_operands_of_another_shape_take_part(numpy_context):
    def draw(b, x, y):
        two, row = b.constant(2, data_type="float32"), b.constant(np.arange(60, dtype=np.float32))
        doubled = b.mul(b.add(x, two), b.constant(np.full((1, 1), 2, np.float32)))
        return {"z": b.sub(b.add(doubled, row), b.mul(y, two))}

    x, y, results = await run_twice(numpy_context, [50, 60], draw)
    np.testing.assert_array_equal(results["z"], (x + 2) * 2 + np.arange(60, dtype=np.float32) - 2 * y)


@pytest.mark.usefixtures("_least_tiles")
async def test_operands_that_are_views_in_another_order_are_read_in_that_order(numpy_context):
    def draw(b, x, y):
        turned = b.transpose(b.add(x, y))
        return {"z": b.mul(b.add(turned, turned), b.reverse(b.transpose(x)))}

    x, y, results = await run_twice(numpy_context, [50, 60], draw)
    np.testing.assert_array_equal(results["z"], 2 * (x + y).T * x.T[::-1, ::-1])


@pytest.mark.usefixtures("_least_tiles")
async def test_a_kernel_that_raises_in_a_tile_is_named_with_its_label(numpy_context, monkeypatch):
    def make(_node):
        def fail(*_arrays):
            raise FloatingPointError("too much")

        return fail

    monkeypatch.setitem(table._TABLE, arithmetic.add, table.NumpyEntry(make, None, table.elements))
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2000])
    graph = await builder.build({"y": builder.mul(builder.add(x, x, label="sum of rows"), x)})
    source, target = await filled(numpy_context, np.ones(2000)), await zeroed(numpy_context, [2000])

    numpy_context.dispatch(graph, {"x": source}, {"y": target})

    with pytest.raises(UnknownError, match=r"add \[sum of rows\]\(float32 \[2000\], float32 \[2000\]\): too much"):
        await numpy_context.read_buffer(target)
