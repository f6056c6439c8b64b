"""Constants with a key are on a device once for all graphs of a context that use them, in each form."""

from hashlib import blake2b
from pkgutil import resolve_name

import numpy as np
import pytest

from spec_tests.support.computing import run_graph
from spec_tests.support.stand_ins import failing, noted
from webnn_py import MLGraphBuilder, OperationError
from webnn_py.core.device.backend import Memory
from webnn_py.devices.numpy import executable as numpy_executable
from webnn_py.devices.shared_constants import SharedConstants
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue


def key_of(array):
    return blake2b(array.tobytes()).digest()


class Drawing:
    """A builder, and constants that have keys or none."""

    def __init__(self, context, *, is_keyed=True):
        self.builder = MLGraphBuilder(context)
        self.is_keyed = is_keyed

    def weight(self, *shape, seed=1, data_type="float32", key=None):
        array = np.random.default_rng(seed).integers(-8, 8, shape).astype(data_type) / np.array(8, data_type)
        array = array.astype(data_type)
        if not self.is_keyed:
            return self.builder.constant(array)
        array.flags.writeable = False
        return self.builder.constant_shared(array, key_of(array) if key is None else key)

    def x(self, *shape):
        return self.builder.input("x", data_type="float32", shape=shape)

    def number(self, value):
        return self.builder.constant(value, data_type="float32")


async def computed(context, graph):
    """Return the output of a graph for the numbers from 0, in eighths."""
    descriptor = graph.input_descriptors["x"]
    numbers = np.arange(descriptor.element_count, dtype=np.float32).reshape(descriptor.shape) % 16 / 8
    results = await run_graph(context, graph, {"x": numbers})
    await context.drain()
    return results["y"]


def linear(draw, size):
    b = draw.builder
    return b.add(b.matmul(draw.x(size, 64), draw.weight(64, 96)), draw.weight(96, seed=2))


def folded(draw, size):
    """Scale, transpose and cast a weight, of which only the result is kept."""
    b = draw.builder
    weight = b.mul(b.cast(draw.weight(96, 64, data_type="float16"), "float32"), draw.number(0.5))
    return b.matmul(draw.x(size, 64), b.transpose(weight))


def split(draw, size):
    """Use two parts of one weight."""
    b = draw.builder
    first, second = b.split(b.add(draw.weight(64, 192), draw.number(1)), 2, axis=1)
    x = draw.x(size, 64)
    return b.sub(b.matmul(x, first), b.matmul(x, second))


def attention(draw, size):
    """Compute three products of one input, which WebGPU joins."""
    b = draw.builder
    x = draw.x(size, 64)
    q, k, v = [b.matmul(x, draw.weight(64, 64, seed=seed)) for seed in range(3)]
    return b.matmul(b.softmax(b.matmul(q, b.transpose(k)), 1), v)


def convolution(draw, size):
    """Use a filter that WebGPU stores in another layout."""
    return draw.builder.conv2d(draw.x(1, 5, size, 9), draw.weight(6, 5, 3, 3))


def transposed_convolution(draw, size):
    return draw.builder.conv_transpose2d(draw.x(1, 4, size, 5), draw.weight(4, 8, 3, 3), strides=[2, 2])


def recurrent(draw, size):
    """Use an operator that WebGPU unrolls, so that parts of the weights are folded."""
    b = draw.builder
    weights = draw.weight(1, 32, 8), draw.weight(1, 32, 8, seed=2)
    states = {f"initial_{name}_state": draw.weight(1, 2, 8, seed=3) for name in ("hidden", "cell")}
    return b.lstm(draw.x(size, 2, 8), *weights, size, 8, bias=draw.weight(1, 32, seed=4), **states)[0]


def twice(draw, size):
    """Use one key for two constants of a graph."""
    b = draw.builder
    product = b.matmul(draw.x(size, 64), draw.weight(64, 64))
    return b.matmul(b.tanh(product), draw.weight(64, 64))


DRAWINGS = [linear, folded, split, attention, convolution, transposed_convolution, recurrent, twice]


async def build(context, drawing, size, *, is_keyed=True):
    draw = Drawing(context, is_keyed=is_keyed)
    return await draw.builder.build({"y": drawing(draw, size)})


@pytest.fixture
def made(monkeypatch, backend):
    """Record the uploads and computations of a build for its constants."""
    done = []
    steps = {"wgpu": ((ContextQueue, "fill"), (ContextQueue, "run")), "numpy": ((numpy_executable, "run_node"),)}
    for owner, name in steps.get(backend, ()):
        noted(monkeypatch, owner, name, lambda *_, name=name: done.append(name))
    return done


def live_bytes(context):
    return context.statistics().live_bytes


async def destroy(context, *graphs):
    """Destroy the last graphs of a context, and check that nothing of them lives."""
    for graph in graphs:
        graph.destroy()
    await context.drain()
    assert live_bytes(context) == 0


@pytest.mark.parametrize("drawing", DRAWINGS)
async def test_a_second_graph_of_the_same_weights_makes_none_and_takes_no_memory_for_them(context, made, drawing):
    alone = await build(context, drawing, 5, is_keyed=False)
    expected = await computed(context, alone)
    alone_bytes = live_bytes(context)
    await destroy(context, alone)

    first = await build(context, drawing, 5)
    first_bytes = live_bytes(context)
    assert first_bytes <= alone_bytes
    made.clear()
    second = await build(context, drawing, 5)
    assert made == [], "made again, though another graph has it"
    assert live_bytes(context) == first_bytes + own_bytes([second])
    assert first.handle.compiled.shared, "nothing is shared"
    for graph in (first, second):
        np.testing.assert_array_equal(await computed(context, graph), expected)

    first.destroy()
    await context.drain()
    assert live_bytes(context) == first_bytes, "of what one graph still uses, nothing may go"
    np.testing.assert_array_equal(await computed(context, second), expected)
    await destroy(context, second)
    third = await build(context, drawing, 5)
    np.testing.assert_array_equal(await computed(context, third), expected)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("drawing", DRAWINGS)
async def test_graphs_of_other_shapes_have_the_weights_in_common(context, drawing):
    """A form of a weight that only one graph needs belongs to that graph."""
    sizes = (4, 7, 33)
    expected, alone_bytes = {}, {}
    for size in sizes:
        graph = await build(context, drawing, size, is_keyed=False)
        expected[size] = await computed(context, graph)
        alone_bytes[size] = live_bytes(context)
        await destroy(context, graph)
    graphs = {size: await build(context, drawing, size) for size in sizes}
    assert live_bytes(context) < sum(alone_bytes.values()), "nothing is in common"
    held = {memory for graph in graphs.values() for memory in graph.handle.compiled.shared}
    assert live_bytes(context) == own_bytes(graphs.values()) + sum(memory.byte_length for memory in held)
    for size, graph in graphs.items():
        np.testing.assert_allclose(await computed(context, graph), expected[size], rtol=1e-6, atol=1e-6)
    await destroy(context, *graphs.values())


def own_bytes(graphs):
    """Return the bytes that graphs do not share: their intermediates."""
    return sum(graph.handle.compiled.byte_length for graph in graphs)


WEIGHTS = 4 * (64 * 96 + 96)
"""The bytes of what ``linear`` has in common."""


async def test_weights_are_counted_once(context):
    graphs = [await build(context, linear, size) for size in range(16, 26)]
    assert live_bytes(context) == WEIGHTS + own_bytes(graphs)
    await destroy(context, *graphs)


@pytest.mark.parametrize(
    "other",
    [{"key": b"another"}, {"data_type": "int32"}, {"shape": (32, 32)}],
    ids=["another key", "another data type", "another shape"],
)
async def test_constants_that_differ_in_key_data_type_or_shape_are_not_shared(context, other):
    """All are zeros, and have the same key except in one case."""
    plain = {"key": b"zeros", "data_type": "float32", "shape": (16, 64)}
    sizes = []
    for options in (plain, plain | other):
        builder = MLGraphBuilder(context)
        zeros = np.zeros(options["shape"], options["data_type"])
        zeros.flags.writeable = False
        x = builder.input("x", data_type=options["data_type"], shape=options["shape"])
        graph = await builder.build({"y": builder.add(x, builder.constant_shared(zeros, options["key"]))})
        sizes.append((graph, live_bytes(context)))
    assert sizes[1][1] == 2 * sizes[0][1] == 8192


async def test_folded_values_differ_by_options_and_order_of_operands(context):
    expected = {}
    for name, fold in {
        "a - b": lambda b, one, two: b.sub(one, two),
        "b - a": lambda b, one, two: b.sub(two, one),
        "columns": lambda b, one, _: b.softmax(one, 0),
        "rows": lambda b, one, _: b.softmax(one, 1),
        "half": lambda b, one, _: b.mul(one, b.constant(0.5, data_type="float32")),
        "double": lambda b, one, _: b.mul(one, b.constant(2, data_type="float32")),
        "joined": lambda b, one, two: b.slice(b.concat([one, two], 0), [4, 0], [8, 8]),
        "joined otherwise": lambda b, one, two: b.slice(b.concat([two, one], 0), [4, 0], [8, 8]),
    }.items():
        for is_keyed in (False, True):
            draw = Drawing(context, is_keyed=is_keyed)
            value = fold(draw.builder, draw.weight(8, 8), draw.weight(8, 8, seed=2))
            graph = await draw.builder.build({"y": draw.builder.add(draw.x(8, 8), value)})
            expected[name, is_keyed] = graph, await computed(context, graph)
        np.testing.assert_array_equal(expected[name, True][1], expected[name, False][1], err_msg=name)
    assert len({result.tobytes() for _, result in expected.values()}) == len(expected) / 2


@pytest.mark.parametrize("elements", [1024, 1025], ids=["4096 bytes", "more"])
async def test_a_small_constant_without_a_key_is_identified_by_its_bytes_and_a_large_one_not(context, made, elements):
    """A value is folded of a constant with a key and another one without."""
    if context.backend.name == "onnxruntime":
        pytest.skip("it folds constants itself")
    table = np.arange(elements, dtype=np.float32)

    async def build_with(addend):
        draw = Drawing(context)
        value = draw.builder.add(draw.weight(elements), draw.builder.constant(addend))
        return await draw.builder.build({"y": draw.builder.mul(draw.x(elements), value)})

    graphs = [await build_with(table)]
    made.clear()
    graphs.append(await build_with(table))
    assert bool(made) == (elements > 1024)
    made.clear()
    graphs.append(await build_with(table + 1))
    assert made, "the contents differ"
    one, same, other = [await computed(context, graph) for graph in graphs]
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


async def test_a_build_that_fails_leaves_no_shared_constant(device, context, monkeypatch):
    owner, name = {
        "wgpu": ("webnn_py.devices.wgpu.runtime.executable", "KernelLaunch"),
        "onnxruntime": ("webnn_py.devices.onnxruntime.engine:EngineOptions", "session"),
    }.get(context.backend.name, ("webnn_py.devices.numpy.executable:NumpyGraph", "_make_kernels"))
    with monkeypatch.context() as patched:
        noted(patched, resolve_name(owner), name, failing(ZeroDivisionError("division by zero")))
        with pytest.raises(OperationError, match="division by zero"):
            await build(context, linear, 3)
    graph = await build(context, linear, 3)
    expected = await build(context, linear, 3, is_keyed=False)
    results = [await computed(context, one) for one in (graph, expected)]
    np.testing.assert_array_equal(*results)


async def test_contexts_count_shared_constants_each_for_itself(ml, options):
    first, second = [await ml.create_context(**options) for _ in range(2)]
    graphs = [await build(context, linear, 16) for context in (first, second)]
    assert live_bytes(first) == live_bytes(second) == WEIGHTS + own_bytes(graphs[:1])
    expected = await computed(second, graphs[1])
    first.destroy()
    await first.drain()
    assert (live_bytes(first), live_bytes(second)) == (0, WEIGHTS + own_bytes(graphs[1:]))
    np.testing.assert_array_equal(await computed(second, graphs[1]), expected)


async def test_a_graph_built_while_the_last_holder_is_released_has_weights_of_its_own(context):
    first = await build(context, linear, 3)
    expected = await computed(context, first)
    context.device_timeline.pause()
    first.destroy()
    draw = Drawing(context)
    building = draw.builder.build({"y": linear(draw, 3)})
    context.device_timeline.resume()
    second = await building
    np.testing.assert_array_equal(await computed(context, second), expected)
    assert live_bytes(context) == WEIGHTS + own_bytes([second])


def test_memory_that_is_being_freed_is_not_found():
    """The next build may begin while a GPU frees memory."""
    constants, memory = SharedConstants(), Memory(object(), 8)
    constants.enter({b"identity": memory})
    assert constants.find(b"identity") is memory
    assert constants.find(b"another") is constants.find(None) is None
    memory.data = None
    assert constants.find(b"identity") is None
