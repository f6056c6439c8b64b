"""``.webnn`` files: every operator there and back, hand-written ones, and what is wrong with those that are refused."""

import random

import numpy as np
import pytest

import webnn_py
from spec_tests.web_export.test_operators import chosen_cases, drawing_of
from webnn_py import MLGraphBuilder, WebnnFileError, load_webnn, save_webnn
from webnn_py.core.operators.registry import CATEGORIES

GRAPH = """
# A small classifier.
webnn_graph "small" v1 @quantized {
  inputs { x: f32[1, 3]; }
  consts {
    w: f32[3, 2] @bytes([0,0,128,63, 0,0,0,0, 0,0,0,0, 0,0,128,63, 0,0,0,0, 0,0,0,0]);
    half: f32[] @scalar(5e-1);
    one: f32[2] @scalar(1);
  }
  nodes {
    product = matmul(x, w);
    scaled = gemm(x, w, c=one, alpha=2, bTranspose=false);
    [left, right] = split(product, splits=[1, 1], axis=1, label="a \\"label\\"");
    sum = concat(left, right, half_row, axis=1);
  }
  outputs { scaled, sum; }
}
"""
GRAPH = GRAPH.replace("    [left", "    half_row = expand(half, newShape=[1, 1]);\n    [left")


@pytest.fixture
async def builder(ml):
    return MLGraphBuilder(await ml.create_context(backend="numpy"))


@pytest.fixture
async def another(ml):
    return MLGraphBuilder(await ml.create_context(backend="numpy"))


async def computed(builder, outputs, given):
    """The results of a drawing, which is built."""
    context = builder.context
    graph = await builder.build(outputs)
    buffers = {}
    for name, array in given.items():
        buffer = await context.create_buffer(data_type=array.dtype, shape=array.shape, writable=True)
        context.write_buffer(buffer, array)
        buffers[name] = buffer
    results = {}
    for name, descriptor in graph.output_descriptors.items():
        results[name] = await context.create_buffer(
            data_type=descriptor.data_type, shape=descriptor.shape, readable=True
        )
    context.dispatch(graph, buffers, results)
    read = {name: await context.read_buffer(buffer) for name, buffer in results.items()}
    context.destroy()
    return read


def plain_names(drawn):
    """A drawing of cases with names that a file can have."""

    class Renamed:
        def __init__(self, builder):
            self._builder = builder

        def __getattr__(self, name):
            return getattr(self._builder, name)

        def input(self, name, **descriptor):
            return self._builder.input(name.replace(" ", "_"), **descriptor)

    def draw(builder):
        outputs, given = drawn(Renamed(builder))
        return (
            {f"out.{name.replace(' ', '_')}": operand for name, operand in outputs.items()},
            {name.replace(" ", "_"): array for name, array in given.items()},
        )

    return draw


@pytest.mark.parametrize("category", CATEGORIES)
async def test_every_operator_is_the_same_there_and_back(tmp_path, builder, another, category):
    outputs, given = plain_names(drawing_of(chosen_cases()[category]))(builder)
    save_webnn(outputs, tmp_path / "first.webnn")
    read = load_webnn(another, tmp_path / "first.webnn")
    save_webnn(read, tmp_path / "second.webnn")
    first, second = ((tmp_path / name).read_text() for name in ("first.webnn", "second.webnn"))
    assert second == first.replace('"first"', '"second"')
    for name in ("first", "second"):
        weights = tmp_path / f"{name}.safetensors"
        assert weights.exists() == ("@weights" in first)
    expected = await computed(builder, outputs, given)
    actual = await computed(another, read, given)
    assert list(actual) == list(expected)
    for name, array in expected.items():
        assert actual[name].tobytes() == array.tobytes(), name


async def test_a_file_by_hand(tmp_path, builder):
    (tmp_path / "small.webnn").write_text(GRAPH, encoding="utf-8")
    outputs = load_webnn(builder, tmp_path / "small.webnn")
    x = np.float32([[3, 4, 5]])
    results = await computed(builder, outputs, {"x": x})
    assert results["scaled"].tolist() == [[7, 9]]
    assert results["sum"].tolist() == [[3, 4, 0.5]]


async def test_long_constants_lie_in_a_file_of_weights(tmp_path, builder, another):
    array = np.arange(400, dtype=np.float16).reshape(20, 20)
    big = array.astype(array.dtype.newbyteorder(">"))
    outputs = {"y": builder.add(builder.constant(big), builder.constant(array))}
    save_webnn(outputs, tmp_path / "model.webnn")
    assert '@weights("v0")' in (tmp_path / "model.webnn").read_text()
    (tmp_path / "model.safetensors").rename(tmp_path / "elsewhere.bin")
    with pytest.raises(WebnnFileError, match="the constant 'v0' needs a file of weights, and there is none"):
        load_webnn(another, tmp_path / "model.webnn")
    read = load_webnn(another, tmp_path / "model.webnn", weights=tmp_path / "elsewhere.bin")
    results = await computed(another, {"y": read["y"]}, {})
    assert (results["y"] == 2 * array).all()


async def test_one_value_may_be_two_outputs(tmp_path, builder, another):
    relu = builder.relu(builder.input("x", data_type="float32", shape=[2]))
    save_webnn({"a": relu, "b": relu}, tmp_path / "two.webnn")
    assert "b = identity(a);" in (tmp_path / "two.webnn").read_text()
    assert list(load_webnn(another, tmp_path / "two.webnn")) == ["a", "b"]


async def test_infinite_numbers_of_constants_are_kept_as_bytes(tmp_path, builder, another):
    values = np.float32([np.nan, np.inf, -0.0])
    save_webnn({"y": builder.identity(builder.constant(values))}, tmp_path / "odd.webnn")
    read = load_webnn(another, tmp_path / "odd.webnn")
    results = await computed(another, read, {})
    assert results["y"].tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("x", "a b"), "'a b' cannot be a name in a .webnn file"),
        (("true", "y"), "'true' cannot be a name"),
        (("x", "x"), "an input and an output are called 'x'"),
    ],
)
async def test_names_that_a_file_cannot_have_are_refused(tmp_path, builder, names, words):
    operand = builder.relu(builder.input(names[0], data_type="float32", shape=[2]))
    with pytest.raises(ValueError, match=words):
        save_webnn({names[1]: operand}, tmp_path / "none.webnn")
    assert not list(tmp_path.iterdir())


async def test_infinite_options_and_constant_buffers_are_refused(tmp_path, builder):
    operand = builder.input("x", data_type="float32", shape=[2])
    infinite = builder.pad(operand, [1], [0], value=float("inf"))
    with pytest.raises(ValueError, match="an option is inf"):
        save_webnn({"y": infinite}, tmp_path / "none.webnn")
    buffer = await builder.context.create_constant_buffer(np.zeros(2, np.float32), data_type="float32", shape=[2])
    with pytest.raises(ValueError, match="is a constant buffer, whose contents only its device has"):
        save_webnn({"y": builder.add(operand, builder.constant(buffer))}, tmp_path / "none.webnn")
    assert not list(tmp_path.iterdir())


WRONG = {
    "": "line 1: the end where webnn_graph must be",
    "webnn_graph x v1 {": "line 1: 'x' where a string must be",
    'webnn_graph "x" v3 {}': "line 1: the version must be v1 or v2",
    'webnn_graph "x" v1 { inputs { x: f32[1] } }': "where ; must be",
    'webnn_graph "x" v1 {\n inputs { x: f9[1]; } }': "line 2: the data type is 'f9'; it must be one of f32, f16",
    'webnn_graph "x" v1 { inputs { x: f32[-1]; } }': "'-1' where a number of elements must be",
    'webnn_graph "x" v1 { inputs { x: f32[2.0]; } }': "'2.0' where a number of elements must be",
    'webnn_graph "x" v1 {\n inputs { x: f9\n[1]; } }': "line 2: the data type is 'f9'",
    'webnn_graph "x" v1 { consts { k: f32[] @scalar(1e999); } }': "1e999 is too large; infinities are written",
    'webnn_graph "x" v1 { outputs { y; y; } }': "the output y is declared twice",
    'webnn_graph "x" v1 { inputs { x: f32[dyn("n", 4)]; } }': "a dimension is dynamic; only fixed sizes are read",
    'webnn_graph "x" v1 { inputs { x: f32[1]; x: f32[1]; } }': "the input x is declared twice",
    'webnn_graph "x" v1 { consts { k: f32[2] @bytes([0, 0]); } }': "the constant 'k' has 2 bytes; float32 [2] has 8",
    'webnn_graph "x" v1 { consts { k: f32[1] @bytes([256]); } }': "@bytes takes a list of numbers from 0 to 255",
    'webnn_graph "x" v1 { consts { k: u8[2000000000] @scalar(1); } }': "it may have at most 67,108,864 bytes",
    'webnn_graph "x" v1 { nodes { y = [[[[[1]]]]]; } }': "where a name must be",
    'webnn_graph "x" v1 { nodes { y = pad(x, a=[[[[[1]]]]]); } }': "lists are nested more than 4 deep",
    'webnn_graph "x" v1 { nodes { y = relu(x); } outputs { y; } }': "'x' is the name of nothing that is declared",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { y = rleu(x); } }': "there is no operator 'rleu'",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { y = relu(x, x); } }': "2 operands without names; it has 1",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { y = relu(x, b=1); } }': "relu() has no argument 'b'",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { y = relu(x, input=x); } }': "twice the argument 'input'",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { y = relu(1); } }': "1 is given to relu() as an operand",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { x = relu(x); } }': "the name 'x' is given twice",
    'webnn_graph "x" v1 { inputs { x: f32[1]; } nodes { [a, b] = relu(x); } }': "relu() has 1 results, and 2 names",
    'webnn_graph "x" v1 { outputs { y; } }': "the output 'y' is the name of nothing",
    'webnn_graph "x" v1 { } more': "'more' after the graph",
    'webnn_graph "x" v1 { ! }': "'! }' is no part of the language",
}


@pytest.mark.parametrize("text", WRONG)
async def test_what_is_wrong_is_told_with_its_line(tmp_path, builder, text):
    (tmp_path / "wrong.webnn").write_text(text, encoding="utf-8")
    with pytest.raises(WebnnFileError) as refused:
        load_webnn(builder, tmp_path / "wrong.webnn")
    assert WRONG[text] in str(refused.value)


@pytest.mark.parametrize("path", ["", "model.safetensors"])
async def test_paths_that_are_none_of_such_a_file_are_refused(builder, path):
    operand = builder.relu(builder.input("x", data_type="float32", shape=[2]))
    with pytest.raises(ValueError, match=f"path is '{path}'; it must be that of a .webnn file"):
        save_webnn({"y": operand}, path)


async def test_a_long_header_of_weights_is_refused_before_it_is_read(tmp_path, builder):
    (tmp_path / "m.webnn").write_text(GRAPH, encoding="utf-8")
    with (tmp_path / "m.safetensors").open("wb") as file:
        file.write((16 * 2**20 + 1).to_bytes(8, "little"))
        file.truncate(32 * 2**20)
    with pytest.raises(WebnnFileError, match="a header of 16,777,217 bytes; it may have at most 16,777,216"):
        load_webnn(builder, tmp_path / "m.webnn", weights=tmp_path / "m.safetensors")


async def test_what_the_builder_refuses_is_a_type_error(tmp_path, builder):
    text = 'webnn_graph "x" v1 { inputs { x: f32[2]; } nodes { y = softmax(x, axis=1); } outputs { y; } }'
    (tmp_path / "wrong.webnn").write_text(text, encoding="utf-8")
    with pytest.raises(TypeError, match=r"softmax\(\): axis is 1"):
        load_webnn(builder, tmp_path / "wrong.webnn")


async def test_damaged_files_are_refused_in_words(tmp_path, ml):
    context = await ml.create_context(backend="numpy")
    builder = MLGraphBuilder(context)
    constant = builder.constant(np.arange(300, dtype=np.float32))
    save_webnn({"y": builder.add(constant, builder.input("x", data_type="float32", shape=[300]))}, tmp_path / "m.webnn")
    text, weights = (tmp_path / "m.webnn").read_bytes(), (tmp_path / "m.safetensors").read_bytes()
    rng = random.Random(1)  # noqa: S311 - damages
    for _ in range(150):
        for name, whole in (("m.webnn", text), ("m.safetensors", weights[:120])):
            damaged = bytearray(whole)
            for _ in range(rng.randint(1, 3)):
                damaged[rng.randrange(len(damaged))] = rng.choice(b'09"[]{}@;,:= \xff\x00')
            rest = weights[120:] if name == "m.safetensors" else b""
            (tmp_path / name).write_bytes(bytes(damaged) + rest)
        another = MLGraphBuilder(context)
        try:
            load_webnn(another, tmp_path / "m.webnn")
        except (WebnnFileError, TypeError) as refused:
            assert str(refused)  # noqa: PT017 - any words
        another.destroy()
    context.destroy()


def test_names_are_public():
    assert issubclass(WebnnFileError, ValueError)
    assert {"load_webnn", "save_webnn", "WebnnFileError"} <= set(webnn_py.__all__)
