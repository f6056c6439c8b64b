"""Chains of element-wise operators give what the operators give one by one, tile by tile or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy import backend  # noqa: F401 - fills the table of kernels
from webnn_py.device.on_numpy.executable import NumpyGraph
from webnn_py.device.on_numpy.passes import fusion
from webnn_py.graph import Graph, Input, Node
from webnn_py.operators.registry import OPERATORS

LENGTH = 1000


def node(name, *operands, **options):
    """An operator at work on values of the drawing, without a builder."""
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
    monkeypatch.setattr(fusion, "tile_length", lambda _chain, count: min(count, 128))


def both_ways(graph, arrays, monkeypatch):
    """What a graph gives as chains of small tiles, and one operator at a time."""
    monkeypatch.setattr(fusion, "WORTH_TILING", 100)
    monkeypatch.setattr(fusion, "tile_length", lambda _chain, count: min(count, 128))
    tiled = run(graph, arrays)
    monkeypatch.setattr(fusion, "WORTH_TILING", 2**40)
    return tiled, run(graph, arrays)


OPERATIONS = ("add", "mul", "sub", "max", "relu", "abs", "sigmoid", "tanh", "neg", "floor", "linear")


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_random_chains_give_the_same_bits_as_single_operators(data):
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


def test_a_chain_may_change_its_data_type(monkeypatch):
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
