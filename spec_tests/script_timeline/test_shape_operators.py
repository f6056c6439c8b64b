"""The explainer on dynamic shapes as it is written: names without bounds, and shapes as operands."""

import gc
import weakref

import numpy as np
import pytest

import webnn_py
from spec_tests.support.cells import cells
from spec_tests.support.computing import compute, run_graph
from spec_tests.support.stand_ins import failing
from webnn_py import MLDynamicDimension, MLGraphBuilder, NotSupportedError, UnknownError
from webnn_py.script.dynamic_shapes import FIRST_LARGEST
from webnn_py.script.shape_operators import OPERATORS


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"dynamic-shapes-explainer"}) as opened:
        yield opened


@pytest.fixture
def builder(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    yield builder
    builder.destroy()


def numbers(builder, *values, data_type="int32"):
    return builder.constant(np.array(values, data_type))


def integers(builder, operand):
    """Return what is known of an operand when it is drawn."""
    found = builder._names.known(operand)
    return None if found is None else [str(item) for item in found.reshape(-1)]


def size_of(builder, operand, axis):
    return builder.cast(builder.slice(builder.shape(operand), [axis], [1]), "int32")


# --- one graph for all sizes ---------------------------------------------------------------------------------------


def padded_to_blocks(builder, block=32):
    """The explainer's own example, with the cast that it lacks: neg() takes no uint32."""
    x = builder.input("x", data_type="float32", shape=["seq_len", 3])
    pad = builder.modulus_floor(builder.neg(size_of(builder, x, 0)), numbers(builder, block))
    padded = builder.pad_dynamic(x, numbers(builder, 0, 0), builder.concat([pad, numbers(builder, 0)], 0))
    blocks = builder.div(size_of(builder, padded, 0), numbers(builder, block))
    parts = builder.reshape_dynamic(padded, builder.concat([blocks, numbers(builder, block, 3)], 0))
    return {
        "sums": builder.reduce_sum(parts, axes=[1]),
        "shape": builder.shape(x),
        "pad": pad,
        "evens": builder.range(numbers(builder, 0), builder.reshape(size_of(builder, x, 0), [1]), numbers(builder, 2)),
    }


@pytest.mark.parametrize("backend", ["numpy", "wgpu"])
async def test_a_graph_is_for_all_sizes(request, ml, backend):
    options = {"gpu_device": request.getfixturevalue("shared_gpu")} if backend == "wgpu" else {"backend": backend}
    context = await ml.create_context(**options)
    builder = MLGraphBuilder(context)
    graph = await builder.build(padded_to_blocks(builder))
    bounds = []
    for size in (3, 32, 128, 129, 1000, 7):
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3) % 64
        shapes = graph.compute_shapes({"x": [size, 3]})
        found = await run_graph(context, graph, {"x": x}, shapes)
        padded = np.pad(x, ((0, -size % 32), (0, 0)))
        np.testing.assert_array_equal(found["sums"], padded.reshape(-1, 32, 3).sum(1))
        np.testing.assert_array_equal(found["evens"], np.arange(0, size, 2))
        assert (found["shape"].tolist(), found["pad"].tolist()) == ([size, 3], [-size % 32])
        bounds.append(graph._dynamic.largest["seq_len"])
    assert bounds == [FIRST_LARGEST, 128, 128, 256, 1024, 1024]
    graph.destroy()
    await context.drain()
    assert context.statistics().live_bytes == 0


async def test_other_devices_refuse_to_build(ml):
    context = await ml.create_context(backend="reference")
    builder = MLGraphBuilder(context)
    with pytest.raises(NotSupportedError, match=r"build\(\): small .* cannot compile graphs with named dimensions"):
        await builder.build(padded_to_blocks(builder))


async def test_a_graph_is_drawn_where_some_sizes_make_it_right(numpy_context):
    """An implementation must not reject a graph if there exists a set of input shapes that makes the graph valid."""
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=["n", 2])
    y = builder.input("y", data_type="float32", shape=["m", 2])
    graph = await builder.build({"sum": builder.add(builder.concat([x, x], 0), y)})
    with pytest.raises(TypeError, match="the graph is none where n = 128, m = 128: add"):
        graph.compute_shapes({"x": [128, 2], "y": [128, 2]})
    for n in (3, 150):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        y = np.concatenate([x, x])
        found = await run_graph(numpy_context, graph, {"x": x, "y": y}, {"sum": y.shape})
        np.testing.assert_array_equal(found["sum"], 2 * y)
    assert graph._dynamic.largest == {"n": 256, "m": 512}
    graph.destroy()


async def test_a_graph_is_compiled_for_exact_sizes_where_powers_of_two_are_wrong(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=["n", 2])
    graph = await builder.build({"third": builder.split(x, 3)[1]})
    for n in (3, 600):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        found = await run_graph(numpy_context, graph, {"x": x}, {"third": (n // 3, 2)})
        np.testing.assert_array_equal(found["third"], np.split(x, 3)[1])
    assert graph._dynamic.largest == {"n": 600}
    graph.destroy()


SIZES = {
    "broadcast": lambda b, x: b.add(x, b.constant(np.zeros((300, 4), "float32"))),
    "a product": lambda b, x: b.matmul(b.constant(np.zeros((2, 77), "float32")), x),
    "a scalar": lambda b, x: b.reshape(x, [4]),
    "pieces": lambda b, x: b.split(x, 5)[0],
    "a scaled image": lambda b, x: b.resample2d(b.reshape(x, [1, 1, x.shape[0], 4]), scales=[0.4, 2]),
    "two": lambda b, x: b.add(x, b.input("y", data_type="float32", shape=["m", 4])),
}


@cells("case", SIZES)
async def test_an_operator_is_drawn_with_sizes_that_it_mentions(numpy_context, case):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=["n", 4])
    graph = await builder.build({"y": builder.identity(SIZES[case](builder, x))})
    graph.destroy()


async def test_a_graph_that_no_sizes_were_found_for_is_refused(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=["n", 4])
    with pytest.raises(TypeError, match=r"matmul\(\): "):
        builder.matmul(x, builder.constant(np.zeros((5, 2), "float32")))
    y = builder.add(x, builder.constant(np.zeros((300, 4), "float32")))
    z = builder.add(x, builder.constant(np.zeros((301, 4), "float32")))
    with pytest.raises(TypeError, match=r"build\(\): the graph is none where n = 301: add\(\): the shapes of a and b"):
        await builder.build({"y": y, "z": z})


async def test_a_larger_graph_that_cannot_be_compiled_is_reported_by_a_read(numpy_context, monkeypatch):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=["n"])
    graph = await builder.build({"y": builder.neg(x)})
    monkeypatch.setattr(type(numpy_context._device.backend), "compile_dynamic", failing(MemoryError("too large")))
    with pytest.raises(UnknownError, match=r"dispatch\(\) failed: too large"):
        await run_graph(numpy_context, graph, {"x": np.zeros(200, np.float32)}, {"y": [200]})
    monkeypatch.undo()
    found = await run_graph(numpy_context, graph, {"x": np.ones(300, np.float32)}, {"y": [300]})
    assert set(found["y"]) == {-1}
    graph.destroy()


async def test_bounds_may_be_given_too(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[MLDynamicDimension("n", 4), "m"])
    graph = await builder.build({"y": builder.neg(x)})
    with pytest.raises(TypeError, match="dimension 0, n, must be from 1 to 4"):
        graph.compute_shapes({"x": [5, 5]})
    assert graph.compute_shapes({"x": [4, 5000]}) == {"y": (4, 5000)}
    found = await run_graph(numpy_context, graph, {"x": np.ones((3, 200), np.float32)}, {"y": (3, 200)})
    assert set(found["y"].flat) == {-1}
    assert graph._dynamic.largest == {"n": 4, "m": 256}
    graph.destroy()


# --- shapes as data ------------------------------------------------------------------------------------------------


async def test_a_chain_is_followed_when_it_is_drawn(builder):
    x = builder.input("x", data_type="float32", shape=["n", 6, "m"])
    shape = builder.shape(x)
    assert (shape.data_type, shape.shape, integers(builder, shape)) == ("uint32", (3,), ["n", "6", "m"])
    n, m = size_of(builder, x, 0), size_of(builder, x, 2)
    one = numbers(builder, 1)
    for operand, expected in {
        builder.add(n, builder.mul(m, numbers(builder, 2))): ["2 * m + n"],
        builder.div(builder.mul(n, numbers(builder, 6)), numbers(builder, 3)): ["2 * n"],
        builder.max(n, one): ["n"],
        builder.min(n, numbers(builder, 0)): ["0"],
        builder.gather(shape, numbers(builder, 2, 0)): ["m", "n"],
        builder.reduce_product(shape): ["6 * m * n"],
        builder.where(builder.equal(n, numbers(builder, -1)), one, n): ["n"],
        builder.transpose(builder.reshape(shape, [3, 1])): ["n", "6", "m"],
        builder.split(shape, [1, 2])[1]: ["6", "m"],
        builder.expand(n, [2]): ["n", "n"],
        builder.abs(builder.neg(n)): ["n"],
        builder.modulus_truncate(n, numbers(builder, 4)): ["n - 4 * (n // 4)"],
        builder.range(one, numbers(builder, 8), numbers(builder, 3)): ["1", "4", "7"],
        builder.lesser(n, m): None,
        builder.max(n, m): None,
        builder.cast(n, "float32"): None,
        builder.sub(builder.slice(shape, [0], [1]), builder.slice(shape, [2], [1])): None,
        builder.div(builder.sub(n, m), numbers(builder, 2)): None,
        builder.modulus_floor(n, builder.sub(n, m)): None,
    }.items():
        assert integers(builder, operand) == expected, operand


async def test_a_framework_lowers_the_sizes_of_onnx(builder):
    """The explainer's steps for 0 (copy) and -1 (infer) in the shape of ONNX's Reshape."""
    x = builder.input("x", data_type="float32", shape=["n", 6, 8])
    given = numbers(builder, 0, -1, 4)
    shape = builder.cast(builder.shape(x), "int32")
    without_zero = builder.where(builder.equal(given, numbers(builder, 0)), shape, given)
    is_inferred = builder.equal(without_zero, numbers(builder, -1))
    total = builder.reduce_product(shape)
    known = builder.reduce_product(builder.where(is_inferred, numbers(builder, 1), without_zero))
    target = builder.where(is_inferred, builder.div(total, known), without_zero)
    y = builder.reshape_dynamic(x, builder.cast(target, "uint32"))
    assert str(y.shape) == "(n, 12, 4)"


async def test_remainders_have_the_sign_of_their_operand(numpy_context):
    rng = np.random.default_rng(3)
    for data_type, low in (("int32", -9), ("int8", -9), ("uint32", 0), ("float32", -9)):
        builder = MLGraphBuilder(numpy_context)
        a = rng.integers(low, 10, 40).astype(data_type)
        b = rng.choice([item for item in range(max(low, -5), 6) if item], 40).astype(data_type)
        x, y = (builder.input(name, data_type=data_type, shape=[40]) for name in "ab")
        outputs = {"floor": builder.modulus_floor(x, y), "truncate": builder.modulus_truncate(x, y)}
        found = await compute(numpy_context, builder, {"a": a, "b": b}, outputs)
        np.testing.assert_array_equal(found["floor"], np.mod(a, b))
        np.testing.assert_array_equal(found["truncate"], np.fmod(a, b))


# --- shapes as operands --------------------------------------------------------------------------------------------

MIRRORS = {
    "reshape": (lambda b, x: b.reshape(x, [3, 8]), lambda b, x: b.reshape_dynamic(x, numbers(b, 3, 8))),
    "expand": (lambda b, x: b.expand(x, [2, 4, 6]), lambda b, x: b.expand_dynamic(x, numbers(b, 2, 4, 6))),
    "slice": (
        lambda b, x: b.slice(x, [1, 0], [2, 5], strides=[1, 2]),
        lambda b, x: b.slice_dynamic(x, numbers(b, 1, 0), numbers(b, 2, 5, data_type="uint32"), strides=[1, 2]),
    ),
    "pad": (lambda b, x: b.pad(x, [1, 0], [0, 2]), lambda b, x: b.pad_dynamic(x, numbers(b, 1, 0), numbers(b, 0, 2))),
    "split": (lambda b, x: b.split(x, [1, 5], axis=1)[1], lambda b, x: b.split_dynamic(x, numbers(b, 1, 5), axis=1)[1]),
    "tile": (lambda b, x: b.tile(x, [2, 1]), lambda b, x: b.tile_dynamic(x, numbers(b, 2, 1))),
    "squeeze": (lambda b, x: b.identity(x), lambda b, x: b.squeeze(b.unsqueeze(x, [0, 3]))),
    "squeezed axes": (lambda b, x: b.reshape(x, [4, 6, 1]), lambda b, x: b.squeeze(b.unsqueeze(x, [0, 3]), axes=[0])),
    "a matrix": (lambda b, x: b.reshape(x, [1, 24]), lambda b, x: b.reshape_to2d(x, axis=0)),
    "resample2d": (
        lambda b, x: b.resample2d(b.reshape(x, [1, 1, 4, 6]), sizes=[8, 3]),
        lambda b, x: b.resample2d_dynamic(b.reshape(x, [1, 1, 4, 6]), sizes=numbers(b, 8, 3)),
    ),
}


@cells("name", MIRRORS)
async def test_an_operator_does_what_its_mirror_does(numpy_context, name):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[4, 6])
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    outputs = {str(index): builder.identity(draw(builder, x)) for index, draw in enumerate(MIRRORS[name])}
    found = await compute(numpy_context, builder, {"x": data}, outputs)
    np.testing.assert_array_equal(found["0"], found["1"])


REFUSALS = {
    "of data": (
        lambda b, x: b.reshape_dynamic(x, b.cast(b.reduce_sum(x, axes=[0]), "int32"), label="r"),
        "cannot resol",
    ),
    "of floats": (
        lambda b, x: b.tile_dynamic(x, b.constant(np.float32([1, 1]))),
        r"repetitions is float32 \[2\]; it must",
    ),
    "of a matrix": (
        lambda b, x: b.expand_dynamic(x, numbers(b, [1, 2])),
        r"new_shape is int32 \[1, 2\]; it must be integ",
    ),
    "no operand": (
        lambda b, x: b.reshape_dynamic(x, [2, 3]),
        r"reshape_dynamic\(\): new_shape is \[2, 3\]; it must be an MLOp",
    ),
    "a wrong count": (lambda b, x: b.reshape_dynamic(x, numbers(b, 5, 3)), "number of elements"),
    "an unknown rank": (
        lambda b, x: b.squeeze(x),
        r"squeeze\(\): whether n is 1 is known at dispatch only; name the axes",
    ),
    "no 1": (lambda b, x: b.squeeze(x, axes=[1]), r"dimension 1 of \[n, 4\] is 4; it must be 1"),
    "no axis": (lambda b, x: b.squeeze(x, axes=[2]), r"axes are \[2\]; they must be distinct, and less than 2"),
    "an axis twice": (lambda b, x: b.unsqueeze(x, [0, 0], label="u"), r"unsqueeze\(\) \[u\]: axes are \[0, 0\]"),
    "columns": (lambda b, x: b.reshape_to2d(x, axis=3), r"axes are \[3\]; they must be distinct, and less than 3"),
    "no range": (
        lambda b, _: b.range(numbers(b, 3), numbers(b, 3), numbers(b, 1)),
        "there is no number from 3 to 3 by 1",
    ),
    "no step": (
        lambda b, _: b.range(numbers(b, 3), numbers(b, 5), numbers(b, 0)),
        "delta must be a number other than 0",
    ),
    "no first number": (
        lambda b, _: b.range(0, numbers(b, 3), numbers(b, 1)),
        r"range\(\): start is 0; it must be an MLOp",
    ),
    "two data types": (
        lambda b, _: b.range(numbers(b, 0), numbers(b, 3, data_type="uint32"), numbers(b, 1)),
        r"start, limit and delta are int32, uint32 and int32; they must have one data type",
    ),
    "a number that wraps around": (
        lambda b, x: b.expand_dynamic(x, b.cast(b.shape(b.constant(np.zeros(200, np.float32))), "int8")),
        "cannot resolve new_shape",
    ),
    "a scalar": (lambda b, _: b.shape(b.constant(1, data_type="int32")), "input is a scalar"),
    "an image": (lambda b, x: b.resample2d_dynamic(x, sizes=numbers(b, 1, 1)), "the rank of input"),
}


@cells("case", REFUSALS)
async def test_what_cannot_be_resolved_is_refused(numpy_context, case):
    builder = MLGraphBuilder(numpy_context)
    draw, words = REFUSALS[case]
    x = builder.input("x", data_type="float32", shape=["n", 4])
    with pytest.raises(TypeError, match=words):
        draw(builder, x)
    builder.destroy()


async def test_axes_may_be_any_iterable(builder):
    x = builder.input("x", data_type="float32", shape=[4])
    assert builder.squeeze(builder.unsqueeze(x, iter([0])), axes=iter([0])).shape == (4,)


async def test_operands_of_others_and_later_calls_are_refused(numpy_context):
    builder, other = MLGraphBuilder(numpy_context), MLGraphBuilder(numpy_context)
    x, foreign = (item.input("x", data_type="float32", shape=["n", 4]) for item in (builder, other))
    for call, words in {
        lambda: builder.shape(foreign): r"shape\(\): input belongs to another builder",
        lambda: builder.modulus_floor(x, foreign, label="m"): r"modulus_floor\(\) \[m\]: b belongs to another builder",
        lambda: builder.reshape_dynamic(x): r"reshape_dynamic\(\): missing a required argument: 'new_shape'",
        lambda: builder.tile_dynamic(x, numbers(builder, 0, 1)): r"tile_dynamic\(\): tile\(\): repetitions",
    }.items():
        with pytest.raises(TypeError, match=words):
            call()
    weights = builder.constant(np.ones((4, 2), np.float32))
    alive = weakref.ref(builder._values[weights])
    graph = await builder.build({"y": builder.matmul(x, weights)})
    with pytest.raises(webnn_py.InvalidStateError, match=r"shape\(\): .*the builder has built"):
        builder.shape(x)
    graph.destroy()
    await numpy_context.drain()
    gc.collect()
    assert alive() is None, "the builder holds no constants"


async def test_nobody_has_the_operators_without_asking():
    async with webnn_py.open_ml(experimental={"dynamic-shapes"}) as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[MLDynamicDimension("n", 4), 2])
        for name in OPERATORS:
            with pytest.raises(AttributeError, match=f"'MLGraphBuilder' object has no attribute '{name}'"):
                getattr(builder, name)(x)
        with pytest.raises(TypeError, match="which no input has declared"):
            builder.input("y", data_type="float32", shape=["m"])


async def test_a_name_is_not_empty():
    async with webnn_py.open_ml(experimental={"dynamic-shapes-explainer"}) as ml:
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        with pytest.raises(TypeError, match=r"shape\[0\] is ''; a name must not be empty"):
            builder.input("x", data_type="float32", shape=["", 2])
