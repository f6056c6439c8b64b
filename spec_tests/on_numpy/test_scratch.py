"""The memory of a dispatch on the numpy device: little beyond inputs, outputs and intermediates."""

import gc
import itertools
import tracemalloc
import weakref

import attrs
import numpy as np
import pytest
import trio

from spec_tests.support.stand_ins import noted, returned
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant
from webnn_py.devices.numpy import executable
from webnn_py.devices.numpy.backend import NumpyBackend
from webnn_py.devices.numpy.executable import NumpyGraph
from webnn_py.devices.numpy.scratch import ScratchPool, scratch

MOST = 1.3
"""How many times the inputs, outputs, constants and largest two intermediates a dispatch may take."""


@pytest.fixture
def compile_for(numpy_context, monkeypatch):
    """Give a drawing to the device as a script would; return what the device is given."""
    given = noted(monkeypatch, NumpyBackend, "compile", lambda _backend, graph: graph)

    async def build(draw):
        builder = MLGraphBuilder(numpy_context)
        outputs = draw(builder)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        await builder.build({f"y{index}": output for index, output in enumerate(outputs)})
        return given[-1]

    return build


@pytest.fixture
def pools(monkeypatch):
    """The scratch of every graph that is compiled."""
    return returned(monkeypatch, executable, "ScratchPool")


def arrays_for(values, data=None):
    """Arrays for the inputs or outputs of a graph."""
    rng = np.random.default_rng(716)
    arrays = {}
    for name, value in values.items():
        d = value.descriptor
        numbers = rng.uniform(0.1, 1, d.shape) if np.dtype(d.data_type).kind == "f" else rng.integers(-99, 99, d.shape)
        arrays[name] = numbers.astype(d.data_type) if data is None else np.full(d.shape, data, d.data_type)
    return arrays


def run(graph, compiled_graph):
    """The outputs of a dispatch."""
    outputs = arrays_for(graph.outputs, 77)
    compiled_graph.run(arrays_for(graph.inputs), outputs)
    return outputs


def bytes_needed(graph):
    """Return the bytes of inputs, outputs, constants, and the largest two intermediates."""
    outside = {*graph.inputs.values(), *graph.outputs.values()}
    outside |= {value for node in graph.nodes for value in node.inputs if isinstance(value, Constant)}
    between = {value for node in graph.nodes for value in node.results} - outside
    largest = sorted(value.descriptor.byte_length for value in between)[-2:]
    return sum(value.descriptor.byte_length for value in outside) + sum(largest)


def most_bytes(graph):
    """The most memory that compiling and a dispatch take at a time, with all that the graph reads and writes."""
    inputs, outputs = arrays_for(graph.inputs), arrays_for(graph.outputs, 77)
    constants = {value for node in graph.nodes for value in node.inputs if isinstance(value, Constant)}
    outside = sum(array.nbytes for array in (*inputs.values(), *outputs.values()))
    outside += sum(value.descriptor.byte_length for value in constants)
    gc.collect()
    tracemalloc.start()
    try:
        NumpyGraph(graph).run(inputs, outputs)
        return outside + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bytes_of(graph):
    """Return what a dispatch takes and what it needs, as numbers: the text of a large graph takes pytest minutes."""
    return most_bytes(graph), bytes_needed(graph)


def image(b, *shape, name="x", data_type="float32"):
    return b.input(name, data_type=data_type, shape=shape)


def weights(b, *shape, data_type="float32"):
    return b.constant(np.random.default_rng(7).uniform(0.01, 0.1, shape).astype(data_type))


def residual_network(b):
    value = image(b, 1, 48, 64, 64)
    for _ in range(5):
        value = b.relu(b.conv2d(value, weights(b, 48, 48, 3, 3), padding=[1, 1, 1, 1]))
    return value


def separable_network(b):
    value = image(b, 1, 64, 64, 48)
    for _ in range(3):
        options = {"padding": [1, 1, 1, 1], "input_layout": "nhwc"}
        value = b.conv2d(value, weights(b, 1, 3, 3, 48), groups=48, filter_layout="ihwo", **options)
        value = b.conv2d(b.clamp(value, min_value=0, max_value=6), weights(b, 48, 48, 1, 1), input_layout="nhwc")
    return b.average_pool2d(value, layout="nhwc", window_dimensions=[2, 2], strides=[2, 2])


def transformer_block(b):
    x = image(b, 512, 256)
    normalized = b.layer_normalization(x, axes=[1], scale=weights(b, 256), bias=weights(b, 256))
    query, key, value = (b.matmul(normalized, weights(b, 256, 256)) for _ in range(3))
    attention = b.softmax(b.matmul(query, b.transpose(key)), 1)
    return b.add(x, b.gelu(b.matmul(attention, value)))


def recurrent_network(b):
    x = image(b, 64, 16, 128)
    last, _, sequence = b.lstm(
        x, weights(b, 2, 512, 128), weights(b, 2, 512, 128), 64, 128, direction="both", return_sequence=True
    )
    return [last, b.reduce_l2(sequence, axes=[0])]


def decoder_in_float16(b):
    x = image(b, 1, 64, 48, 48, data_type="float16")
    options = {"strides": [2, 2], "padding": [1, 1, 1, 1]}
    wide = b.conv_transpose2d(x, weights(b, 64, 32, 4, 4, data_type="float16"), **options)
    wide = b.instance_normalization(b.conv2d(wide, weights(b, 32, 32, 3, 3, data_type="float16"), padding=[1] * 4))
    return b.resample2d(b.sigmoid(wide), sizes=[200, 200])


NETWORKS = (residual_network, separable_network, transformer_block, recurrent_network, decoder_in_float16)

OPERATORS = {
    "conv2d": lambda b: b.conv2d(image(b, 1, 64, 64, 64), weights(b, 64, 64, 3, 3), padding=[1] * 4),
    "conv2d, strided": lambda b: b.conv2d(image(b, 1, 64, 96, 96), weights(b, 64, 64, 3, 3), strides=[2, 2]),
    "conv2d, nhwc": lambda b: b.conv2d(image(b, 1, 64, 64, 64), weights(b, 64, 64, 3, 3), input_layout="nhwc"),
    "conv2d, groups": lambda b: b.conv2d(image(b, 1, 64, 64, 64), weights(b, 64, 16, 3, 3), groups=4),
    "conv2d, float16": lambda b: b.conv2d(
        image(b, 1, 64, 96, 96, data_type="float16"), weights(b, 64, 64, 3, 3, data_type="float16")
    ),
    "conv2d, float16, pointwise": lambda b: b.conv2d(
        image(b, 1, 64, 96, 96, data_type="float16"), weights(b, 64, 64, 1, 1, data_type="float16")
    ),
    "conv2d, float16, pointwise, nhwc": lambda b: b.conv2d(
        image(b, 1, 96, 96, 64, data_type="float16"), weights(b, 64, 1, 1, 64, data_type="float16"),
        input_layout="nhwc", filter_layout="ohwi",
    ),
    "conv2d, large filter": lambda b: b.conv2d(image(b, 1, 256, 7, 7), weights(b, 256, 256, 3, 3), padding=[1] * 4),
    "conv2d, large dilation": lambda b: b.conv2d(
        image(b, 1, 32, 1, 9000), weights(b, 32, 32, 1, 3), dilations=[1, 4096], padding=[0, 0, 4096, 4096]
    ),
    "conv2d, long stride": lambda b: b.conv2d(
        image(b, 1, 16, 3, 100_000), weights(b, 16, 16, 3, 3), strides=[1, 50_000], padding=[1] * 4
    ),
    "depthwise": lambda b: b.conv2d(image(b, 1, 64, 64, 64), weights(b, 64, 1, 3, 3), padding=[1] * 4, groups=64),
    "conv_transpose2d": lambda b: b.conv_transpose2d(image(b, 1, 64, 48, 48), weights(b, 64, 64, 2, 2), strides=[2, 2]),
    "max_pool2d": lambda b: b.max_pool2d(image(b, 1, 96, 64, 64), window_dimensions=[3, 3], strides=[2, 2]),
    "l2_pool2d": lambda b: b.l2_pool2d(image(b, 4, 128, 32, 32)),
    "batch_normalization": lambda b: b.batch_normalization(
        image(b, 300_000), *(image(b, 300_000, name=name) for name in "mv"), axis=0
    ),
    "layer_normalization, all": lambda b: b.layer_normalization(image(b, 512, 600)),
    "layer_normalization, first": lambda b: b.layer_normalization(image(b, 512, 600), axes=[0]),
    "layer_normalization, outer": lambda b: b.layer_normalization(image(b, 64, 150, 32), axes=[0, 2]),
    "instance_normalization": lambda b: b.instance_normalization(image(b, 1, 96, 96, 32), layout="nhwc"),
    "softmax": lambda b: b.softmax(image(b, 600, 1000, data_type="float16"), 1),
    "reduce_l2": lambda b: b.reduce_l2(image(b, 900, 2, 256), axes=[1]),
    "reduce_log_sum_exp": lambda b: b.reduce_log_sum_exp(image(b, 64, 100, 96), axes=[0, 2]),
    "arg_max": lambda b: b.arg_max(image(b, 600, 1000), 0),
    "cumulative_sum": lambda b: b.cumulative_sum(image(b, 600_000), 0),
    "resample2d": lambda b: b.resample2d(image(b, 1, 64, 100, 80), sizes=[70, 75], mode="linear"),
    "lstm_cell": lambda b: b.lstm_cell(
        image(b, 512, 64), weights(b, 1024, 64), weights(b, 1024, 256), image(b, 512, 256, name="h"),
        image(b, 512, 256, name="c"), 256,
    ),
    "gemm, float16": lambda b: b.gemm(
        image(b, 1600, 1600, data_type="float16"),
        image(b, 1600, 1600, name="b", data_type="float16"),
        b_transpose=True,
    ),
    "matmul, float16": lambda b: b.matmul(
        image(b, 30, 300, 200, data_type="float16"), image(b, 30, 200, 300, name="b", data_type="float16")
    ),
    "gather": lambda b: b.gather(image(b, 1000), image(b, 400_000, name="i", data_type="int32")),
    "div, integers": lambda b: b.div(*(image(b, 400_000, name=name, data_type="int32") for name in "ab")),
    "cast": lambda b: b.cast(image(b, 900_000, data_type="float16"), "int8"),
    "erf": lambda b: b.erf(image(b, 400_000)),
}  # fmt: skip


@pytest.mark.parametrize("draw", NETWORKS, ids=lambda draw: draw.__name__)
async def test_a_dispatch_takes_little_more_than_what_it_reads_writes_and_keeps(compile_for, draw):
    taken, needed = bytes_of(await compile_for(draw))
    assert taken <= MOST * needed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("draw", OPERATORS.values(), ids=OPERATORS)
async def test_a_single_operator_takes_little_more_than_what_it_reads_and_writes(compile_for, draw):
    taken, needed = bytes_of(await compile_for(draw))
    assert needed > 1.5 * 2**20
    assert taken <= MOST * needed


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "draw", [*NETWORKS, *OPERATORS.values()], ids=[draw.__name__ for draw in NETWORKS] + [*OPERATORS]
)
async def test_nothing_in_the_scratch_outlives_a_kernel(compile_for, pools, draw):
    graph = await compile_for(draw)
    compiled_graph = NumpyGraph(graph)
    expected = run(graph, compiled_graph)
    steps = compiled_graph._calls
    for byte in (0xFF, 0x7F):

        def spoil(kernel, byte=byte):
            return lambda *arrays: pools[-1].memory.fill(byte) or kernel(*arrays)

        compiled_graph._calls = [
            attrs.evolve(step, kernel=spoil(step.kernel), run=step.run and spoil(step.run)) for step in steps
        ]
        for name, array in run(graph, compiled_graph).items():
            np.testing.assert_array_equal(array, expected[name])


def chain_of_convolutions(channels):
    def draw(b):
        value = image(b, 1, channels[0], 40, 40)
        for before, after in itertools.pairwise(channels):
            value = b.conv2d(value, weights(b, after, before, 3, 3), padding=[1, 1, 1, 1])
        return value

    return draw


@pytest.mark.parametrize("order", [1, -1], ids=["growing", "shrinking"])
async def test_nodes_share_the_scratch_of_the_one_that_needs_most(compile_for, pools, order):
    channels = [4, 16, 64, 128][::order]
    for pair in itertools.pairwise(channels):
        await compile_for(chain_of_convolutions(pair))
    await compile_for(chain_of_convolutions(channels))
    *alone, together = (pool.memory.nbytes for pool in pools)
    assert min(alone) > 0
    assert together == max(alone)


async def test_two_graphs_never_share_scratch(compile_for, pools):
    graphs = [await compile_for(chain_of_convolutions([8, channels, 8])) for channels in (16, 24)]
    first, second = (NumpyGraph(graph) for graph in graphs)
    expected = run(graphs[0], first), run(graphs[1], second)
    memories = [pool.memory for pool in pools]
    assert len(memories) == 4
    assert not any(np.shares_memory(one, other) for one in memories for other in memories if one is not other)
    memories[3].fill(0xFF)
    for name, array in run(graphs[0], first).items():
        np.testing.assert_array_equal(array, expected[0][name])
    for name, array in run(graphs[1], second).items():
        np.testing.assert_array_equal(array, expected[1][name])


async def test_graphs_built_in_threads_at_the_same_time_have_scratch_of_their_own(compile_for, pools):
    graph = await compile_for(chain_of_convolutions([8, 16, 8]))
    alone = pools[0].memory.nbytes
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(trio.to_thread.run_sync, NumpyGraph, graph)
    memories = [pool.memory for pool in pools]
    assert [memory.nbytes for memory in memories] == [alone] * 5
    assert not any(np.shares_memory(one, other) for one in memories for other in memories if one is not other)


async def test_scratch_counts_as_live_until_the_graph_is_destroyed(numpy_context, pools):
    builder = MLGraphBuilder(numpy_context)
    graph = await builder.build({"y": chain_of_convolutions([8, 16])(builder)})
    filter_bytes = 16 * 8 * 9 * 4
    assert numpy_context.statistics().live_bytes == pools[0].memory.nbytes + filter_bytes
    memory = weakref.ref(pools.pop().memory)
    graph.destroy()
    await numpy_context.drain()
    gc.collect()
    assert numpy_context.statistics().live_bytes == 0
    assert memory() is None


class Maker:
    """Makes kernels that do nothing, and remembers the scratch that it was given last."""

    def __init__(self, *sizes):
        self.sizes = sizes
        self.calls = 0

    def __call__(self):
        self.calls += 1
        self.given = [scratch(size, np.uint8) for size in self.sizes]
        return lambda *_arrays: None


@pytest.mark.parametrize("sizes", [[(640, 64), (128,), ()], [(), (64,), (128, 64), (640, 64)]], ids=["fit", "grow"])
def test_makers_get_scratch_from_the_start_of_the_same_memory_in_any_order(sizes):
    makers = {index: Maker(*pieces) for index, pieces in enumerate(sizes)}
    pool = ScratchPool()
    assert pool.make(makers).keys() == makers.keys()
    assert pool.memory.nbytes == 704
    for maker in makers.values():
        assert all(np.shares_memory(array, pool.memory) for array in maker.given)
        assert not any(np.shares_memory(a, b) for a in maker.given for b in maker.given if a is not b)
        assert maker.calls <= len(sizes)


def test_a_maker_whose_scratch_is_there_is_called_once():
    makers = {"large": Maker(1000), "small": Maker(10), "none": Maker()}
    ScratchPool().make(makers)
    assert {name: maker.calls for name, maker in makers.items()} == {"large": 2, "small": 1, "none": 1}


def test_outside_of_a_build_scratch_is_allocated():
    first = scratch(100)
    assert not np.shares_memory(first, scratch(100))
    assert first.dtype == np.float32


def test_a_maker_that_fails_leaves_nothing_behind():
    def fail():
        scratch(10)
        raise ValueError("no kernel")

    with pytest.raises(ValueError, match="no kernel"):
        ScratchPool().make({0: fail})
    assert not np.shares_memory(scratch(10), scratch(10))
