"""The proposal "dynamic shapes": dimensions with names, the shapes of results, and the shapes of a dispatch."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.computing import run_graph
from spec_tests.support.dynamic_decoder import draw, feeds
from webnn_py import MLDynamicDimension, MLGraphBuilder, NotSupportedError, save_js

SEQ = MLDynamicDimension("seq", 12)


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"dynamic-shapes"}) as opened:
        yield opened


@pytest.fixture
def builder(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    yield builder
    builder.destroy()


def operand(builder, shape, name="x"):
    return builder.input(name, data_type="float32", shape=shape)


# --- enabling it -------------------------------------------------------------------------------------------------


async def test_named_dimensions_are_refused_without_the_proposal():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        for dimension in (SEQ, "seq"):
            with pytest.raises(TypeError, match=r"input\(\): shape\[1\] is .*; it must be an integer"):
                operand(builder, [2, dimension])
        x = operand(builder, [2])
        with pytest.raises(TypeError, match=r"reshape\(\): new_shape\[0\] is 'seq'; it must be an integer"):
            builder.reshape(x, ["seq"])
        graph = await builder.build({"y": builder.neg(x)})
        with pytest.raises(NotSupportedError, match="proposal that open_ml"):
            graph.compute_shapes({"x": [2]})
        graph.destroy()


@pytest.mark.parametrize("given", ["dynamic-shapes", {"dynamic-shape"}, [1], 5])
def test_only_known_proposals_can_be_asked_for(given):
    with pytest.raises(TypeError, match=r"open_ml\(\): experimental"):
        webnn_py.open_ml(experimental=given)


# --- dimensions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", 4), "name is ''"),
        ((7, 4), "name is 7"),
        (("n", 0), "sizes are from 1 to 0"),
        (("n", 4, 5), "sizes are from 5 to 4"),
        (("n", 4, 0), "sizes are from 0 to 4"),
        (("n", 2**31), "from 1 to 2147483648"),
        (("n", -1), "a size is -1"),
        (("n", 2.5), "a size is 2.5"),
    ],
)
def test_wrong_dimensions_are_refused(arguments, words):
    with pytest.raises(TypeError, match=words):
        MLDynamicDimension(*arguments)


async def test_equal_names_are_one_size(builder):
    x, y = operand(builder, [SEQ, 3]), operand(builder, ["seq", 3], "y")
    assert str(x.shape) == str(y.shape) == "(seq, 3)"
    assert x.shape == y.shape
    assert builder.add(x, y).shape == x.shape
    with pytest.raises(TypeError, match=r"another input says from 1 to 12; equal names are one size"):
        operand(builder, [MLDynamicDimension("seq", 13)], "z")
    with pytest.raises(TypeError, match=r"shape\[0\] is 'other', which no input has declared"):
        operand(builder, ["other"], "z")
    builder.concat([x, operand(builder, [1, 3], "one")], 0)
    with pytest.raises(TypeError, match=r"shape\[0\] is 'seq \+ 1', which no input has declared"):
        operand(builder, ["seq + 1"], "z")


async def test_a_dimension_of_one_size_is_a_number(builder):
    assert operand(builder, [MLDynamicDimension("n", 3, 3)]).shape == (3,)


async def test_constants_and_buffers_have_no_named_dimensions(builder, numpy_context):
    operand(builder, [SEQ])
    with pytest.raises(TypeError, match="shape\\[0\\] is 'seq'; it must be an integer"):
        builder.constant(np.zeros(3, np.float32), data_type="float32", shape=["seq"])
    with pytest.raises(TypeError, match="it must be an integer"):
        await numpy_context.create_buffer(data_type="float32", shape=[SEQ])


# --- shapes of results -------------------------------------------------------------------------------------------


FOLLOWING = {
    "concat": (lambda b, x: b.concat([x, x, b.constant(np.zeros((1, 4), np.float32))], 0), "(2 * seq + 1, 4)"),
    "pad": (lambda b, x: b.pad(x, [2, 0], [0, 1]), "(seq + 2, 5)"),
    "tile": (lambda b, x: b.tile(x, [3, 1]), "(3 * seq, 4)"),
    "reshape": (lambda b, x: b.reshape(x, ["seq", 2, 2]), "(seq, 2, 2)"),
    "flat": (lambda b, x: b.reshape(b.reshape(x, [4 * x.shape[0]]), [x.shape[0], 4]), "(seq, 4)"),
    "expand": (lambda b, x: b.expand(b.reshape(x, [1, "seq", 4]), [3, "seq", 4]), "(3, seq, 4)"),
    "transpose": (lambda b, x: b.transpose(x), "(4, seq)"),
    "matmul": (lambda b, x: b.matmul(x, b.transpose(x)), "(seq, seq)"),
    "slice": (lambda b, x: b.slice(x, [1, 0], [x.shape[0] - 1, 4], strides=[2, 1]), r"(-((-seq + 1) // 2), 4)"),
    "reduce": (lambda b, x: b.reduce_sum(x, axes=[1]), "(seq,)"),
    "to a multiple": (lambda b, x: b.pad(x, [0, 0], [-x.shape[0] % 8, 0]), "(seq + ((-seq) % 8), 4)"),
    "gather": (lambda b, x: b.gather(x, b.constant(np.zeros((2, 5), np.int32))), "(2, 5, 4)"),
    "split": (lambda b, x: b.split(b.transpose(x), 3, axis=1)[2], "(4, (seq // 3))"),
    "greater": (lambda b, x: b.greater(x, b.constant(0, data_type="float32")), "(seq, 4)"),
}


@pytest.mark.parametrize("name", FOLLOWING)
async def test_the_shape_of_a_result_follows_by_name(builder, name):
    function, shape = FOLLOWING[name]
    assert str(function(builder, operand(builder, [SEQ, 4])).shape) == shape


IMAGES = [
    (
        lambda b, x: b.conv2d(b.pad(x, [0] * 4, [0, 0, 2, 2]), b.constant(np.zeros((3, 2, 3, 3), np.float32))),
        "seq, width",
    ),
    (
        lambda b, x: b.max_pool2d(x, window_dimensions=[1, 1], strides=[2, 2]),
        "((seq + 1) // 2), ((width + 1) // 2)",
    ),
    (lambda b, x: b.resample2d(x, scales=[1.5, 2.0]), "(floor(seq * 1.5)), (floor(width * 2.0))"),
]


async def test_the_shapes_of_images_follow_by_name(builder):
    x = operand(builder, [1, 2, SEQ, MLDynamicDimension("width", 9)])
    for function, sizes in IMAGES:
        assert str(function(builder, x).shape[2:]) == f"({sizes})"


REFUSED = {
    "a size that is unknown before the dispatch": (
        lambda b: b.gather_nd(
            operand(b, [4, 4]), b.input("i", data_type="int32", shape=[SEQ, MLDynamicDimension("k", 2)]), label="where"
        ),
        r"gather_nd\(\) \[where\]: a size is k, which is known at dispatch only; .*; give it operands of fixed sizes",
    ),
    "a wrong number of elements": (
        lambda b: b.reshape(operand(b, [SEQ, 4]), ["seq", 5], label="r"),
        r"reshape\(\) \[r\]: the number of elements of new_shape \[seq, 5\] is 5 \* seq; .*has, 4 \* seq",
    ),
    "an unknown name": (
        lambda b: b.reshape(operand(b, [SEQ, 4]), ["sequence", 4]),
        "new_shape has 'sequence'; it must be a number or a dimension so far: seq",
    ),
    "more than the largest": (
        lambda b: b.slice(operand(b, [SEQ]), [0], [13]),
        r"slice\(\): the end of the window, starts\[0\] \+ sizes\[0\] is 13; it must be at most seq",
    ),
    "too large at the largest": (
        lambda b: b.tile(operand(b, [MLDynamicDimension("n", 2**28)]), [4]),
        r"tile\(\): float32 \[1073741824\] takes 4294967296 bytes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_an_operator_refuses_wrong_sizes(builder, case):
    function, words = REFUSED[case]
    with pytest.raises(TypeError, match=words):
        function(builder)


# --- dispatches --------------------------------------------------------------------------------------------------


@pytest.fixture
async def added(builder):
    """Build the sum of two inputs that have a name in common, joined with one more row."""
    x, y = operand(builder, [SEQ, 2]), operand(builder, ["seq", MLDynamicDimension("one", 2)], "y")
    last = builder.constant(np.ones((1, 2), np.float32))
    graph = await builder.build({"z": builder.concat([builder.add(x, y), last], 0)})
    yield graph
    graph.destroy()


WRONG = {
    "too large": ({"x": [13, 2], "y": [13, 2]}, r"\['x'\] is \[13, 2\]; dimension 0, seq, must be from 1 to 12"),
    "a fixed one": ({"x": [3, 3], "y": [3, 2]}, r"\['x'\] is \[3, 3\]; dimension 1 must be 2"),
    "unequal": (
        {"x": [3, 2], "y": [4, 2]},
        r"\['y'\] is \[4, 2\], in which seq is 4; in .*\['x'\] it is 3, and equal names are one size",
    ),
    "rank": ({"x": [3, 2], "y": [3]}, r"\['y'\] is \[3\]; it must be \[seq, one\]"),
    "names": ({"x": [3, 2]}, r" are \['x'\]; the graph's are \['x', 'y'\]"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_shapes_that_do_not_fit_are_refused(added, numpy_context, case):
    shapes, words = WRONG[case]
    with pytest.raises(
        TypeError, match=r"compute_shapes\(\): input_shapes" + words.replace("in .*", "in input_shapes")
    ):
        added.compute_shapes(shapes)
    inputs = {
        name: await numpy_context.create_buffer(data_type="float32", shape=shape) for name, shape in shapes.items()
    }
    z = await numpy_context.create_buffer(data_type="float32", shape=[4, 2])
    with pytest.raises(TypeError, match=r"dispatch\(\): inputs" + words.replace("in .*", "in inputs")):
        numpy_context.dispatch(added, inputs, {"z": z})


async def test_outputs_must_have_the_computed_shapes(added, numpy_context):
    assert added.compute_shapes({"x": [3, 2], "y": (3, 1)}) == {"z": (4, 2)}  # [seq, one] broadcasts where one is 1
    x, y, z = [
        await numpy_context.create_buffer(data_type="float32", shape=shape, readable=True)
        for shape in ([3, 2], [3, 1], [3, 2])
    ]
    with pytest.raises(TypeError, match=r"outputs\['z'\] is float32 \[3, 2\]; it must be float32 \[4, 2\]"):
        numpy_context.dispatch(added, {"x": x, "y": y}, {"z": z})


async def test_sizes_that_an_operator_refuses_name_the_operator(builder):
    x = operand(builder, [SEQ])
    pieces = builder.split(x, 3, label="thirds")
    graph = await builder.build({"y": builder.identity(pieces[0])})
    assert graph.compute_shapes({"x": [9]}) == {"y": (3,)}
    with pytest.raises(
        TypeError,
        match=r"the graph is none where seq = 7: split\(\) \[thirds\]: splits is 3; it must be a divisor of 7",
    ):
        graph.compute_shapes({"x": [7]})
    graph.destroy()


async def test_a_graph_of_fixed_sizes_computes_its_shapes_too(builder):
    x = operand(builder, [2, 3])
    graph = await builder.build({"y": builder.transpose(x)})
    assert graph._dynamic is None
    assert graph.compute_shapes({"x": [2, 3]}) == {"y": (3, 2)}
    with pytest.raises(TypeError, match="they must be those of"):
        graph.compute_shapes({"x": [3, 2]})
    graph.destroy()


async def test_a_destroyed_graph_computes_no_shapes(added):
    added.destroy()
    with pytest.raises(webnn_py.InvalidStateError, match="destroy"):
        added.compute_shapes({"x": [3, 2], "y": [3, 2]})


# --- devices -----------------------------------------------------------------------------------------------------


async def test_a_device_without_dynamic_shapes_refuses_to_build(ml):
    context = await ml.create_context(backend="reference")
    builder, outputs = draw(context, SEQ)
    with pytest.raises(NotSupportedError, match=r"build\(\): small .* cannot compile graphs with named dimensions"):
        await builder.build(outputs)
    assert context.statistics().live_bytes == 0


async def test_methods_that_need_fixed_sizes_refuse_named_dimensions(ml, numpy_context, tmp_path):
    builder, outputs = draw(numpy_context, SEQ)
    with pytest.raises(NotSupportedError, match=r"save_js\(\): an input is float32 \[2, seq, 4\]"):
        save_js(outputs, tmp_path)
    with pytest.raises(NotSupportedError, match=r"check_finite\(\): an input"):
        await builder.check_finite(outputs, {})
    assert "float32 [2, seq + 1, 4]" in builder.picture(outputs).to_mermaid()
    graph = await builder.build(outputs)
    with pytest.raises(NotSupportedError, match=r"profile\(\): an input"):
        await graph.profile({})
    graph.destroy()


@pytest.mark.parametrize("backend", ["numpy", "wgpu"], indirect=False)
async def test_a_dynamic_graph_computes_what_a_graph_for_each_size_computes(request, ml, backend):
    options = {"gpu_device": request.getfixturevalue("shared_gpu")} if backend == "wgpu" else {"backend": backend}
    context = await ml.create_context(**options)
    before = context.statistics()
    builder, outputs = draw(context, MLDynamicDimension("past", 12))
    dynamic = await builder.build(outputs)
    for length in (3, 4, 12, 1, 3):
        arrays = feeds(length)
        shapes = dynamic.compute_shapes({name: array.shape for name, array in arrays.items()})
        other, other_outputs = draw(context, length)
        fixed = await other.build(other_outputs)
        got = await run_graph(context, dynamic, arrays, shapes)
        wanted = await run_graph(context, fixed, arrays, {name: o.shape for name, o in other_outputs.items()})
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name], array, err_msg=f"{name} of {length}")
        fixed.destroy()
    dynamic.destroy()
    await context.drain()
    assert (context.statistics().live_bytes, context.statistics().live_buffers) == (0, before.live_buffers)
