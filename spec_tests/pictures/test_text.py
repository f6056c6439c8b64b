"""Graphs as text, on every device: what was drawn, and what the device has made of it."""

import re

import numpy as np
import pytest

from spec_tests.pictures.drawings import draw_residual_block
from spec_tests.support.backends import needs_adapter
from webnn_py import InvalidStateError, MLGraphBuilder
from webnn_py.pictures import picture

DRAWN = """\
graph of 9 operators, not compiled
inputs
  'x'  float32 [1, 4, 8, 8]
outputs
  'y'  float32 [16, 4]       = #9
  'z'  float32 [1, 4, 8, 8]  = #4
operators
  #1  conv2d [first](input='x', filter=constant float32 [4, 4, 3, 3], padding=[1, 1, 1, 1]) -> float32 [1, 4, 8, 8]
  #2  add(a=constant float32 [4, 1, 1], b=0.5) -> float32 [4, 1, 1]
  #3  add(a=#1, b=#2) -> float32 [1, 4, 8, 8]
  #4  relu(input=#3) -> float32 [1, 4, 8, 8]
  #5  add(a=#4, b='x') -> float32 [1, 4, 8, 8]
  #6  reshape(input=#5, new_shape=[16, 16]) -> float32 [16, 16]
  #7  matmul(a=#6, b=constant float32 [16, 8]) -> float32 [16, 8]
  #8  split [halves](input=#7, splits=2, axis=1) -> float32 [16, 4], float32 [16, 4]
  #9  softmax(input=#8.1, axis=1) -> float32 [16, 4]"""


def fates(text):
    """Return the lines on each operator, and the kernels."""
    _, _, rest = text.partition("\noperators\n")
    operators, _, kernels = rest.partition("\nkernels\n")
    columns = [re.split("  +", line.strip()) for line in operators.splitlines()]
    return [fate for _, fate, _ in columns], [line.split() for line in kernels.splitlines()]


async def test_a_drawing_is_told_and_goes_on(numpy_context):
    drawing = draw_residual_block(numpy_context)
    drawn = drawing.picture()
    assert drawn.describe() == str(drawn) == DRAWN
    assert repr(drawn) == "<GraphPicture graph of 9 operators, not compiled>"
    graph = await drawing.build()
    operators = DRAWN.partition("operators\n")[2].splitlines()
    told = picture(graph).describe()
    assert all(operator.partition("  #")[2][1:].strip() in told for operator in operators if operator)
    with pytest.raises(InvalidStateError, match=r"picture\(\): the builder has built"):
        drawing.picture()


async def test_outputs_are_checked_as_those_of_a_build(numpy_context):
    b = MLGraphBuilder(numpy_context)
    x = b.input("x", data_type="float32", shape=[2])
    for refused, words in (({}, "outputs is empty"), ({"y": x}, "is an input"), ({"y": 3}, "must be an MLOperand")):
        with pytest.raises(TypeError, match=words):
            picture(refused)


async def test_a_device_that_does_not_tell_what_it_makes_shows_what_was_drawn(context, backend):
    if backend != "onnxruntime":
        pytest.skip("this one tells")
    graph = await draw_residual_block(context).build()
    first, *lines = picture(graph).describe().splitlines()
    assert first == f"graph of 9 operators on {context.backend}"
    assert lines == DRAWN.splitlines()[1:]


async def test_what_the_device_made_of_it_is_told(context, backend):
    if backend == "onnxruntime":
        pytest.skip("it does not tell")
    graph = await draw_residual_block(context).build()
    text = picture(graph).describe()
    told, kernels = fates(text)
    assert f"graph of 9 operators on {context.backend}" in text
    if backend == "wgpu":
        assert told == [
            "kernel 1", "computed at build", "kernel 1", "kernel 1", "kernel 2", "view", "kernel 3", "view", "kernel 4"
        ]  # fmt: skip
        assert kernels[0] == ["1", "conv2d", "float32", "add", "float32", "relu", "#1", "#3", "#4"]
        assert "4 kernels; 1 operator computed at build, 2 views without a kernel" in text
    else:
        assert told == [
            "kernel 1", "computed at build", "kernel 2", "kernel 3", "kernel 4", "view",
            "kernel 5", "view", "kernel 6"
        ]  # fmt: skip
        assert [" ".join(kernel[1:]) for kernel in kernels] == [
            "conv2d #1", "add #3", "relu #4", "add #5", "matmul #7", "softmax #9"
        ]  # fmt: skip
    before = context.statistics().live_bytes
    graph.destroy()
    await context.drain()
    assert picture(graph).describe() == DRAWN, "the kernels are gone"
    memory = next(line for line in text.splitlines() if line.startswith("memory"))
    between, constants = [int(word.replace(",", "")) for word in memory.split() if word.replace(",", "").isdigit()]
    assert between + constants == before


@needs_adapter
async def test_an_input_that_a_kernel_wants_packed_otherwise_is_copied_for_its_reader(ml):
    b = MLGraphBuilder(await ml.create_context(backend="wgpu"))
    x = b.input("x", data_type="float32", shape=[1, 24, 4, 4])
    filters = b.input("filters", data_type="float32", shape=[24, 2, 1, 6])
    graph = await b.build({"y": b.conv2d(x, filters, filter_layout="ihwo")}, keep_source=True)
    _, kernels = fates(picture(graph).describe())
    assert len(kernels) == 2, kernels
    assert [kernel[-1] for kernel in kernels] == ["#1", "#1"]


async def test_products_of_one_matrix_are_one_kernel(context, backend):
    if backend != "wgpu":
        pytest.skip("only WebGPU joins products")
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[8, 4])
    parts = []
    for _ in range(3):
        product = b.matmul(x, b.constant(np.ones((4, 8), np.float32)))
        parts.append(b.add(product, b.constant(np.ones(8, np.float32))))
    graph = await b.build({"y": b.matmul(b.matmul(parts[0], b.transpose(parts[1])), parts[2])}, keep_source=True)
    told, _ = fates(picture(graph).describe())
    assert told[:4] == ["kernel 1"] * 4
    assert told.count("kernel 1") == 6
    assert sorted(set(told)) == ["kernel 1", "kernel 2", "kernel 3", "view"]


async def test_what_is_expanded_has_its_kernels(context, backend):
    if backend == "onnxruntime":
        pytest.skip("it does not tell what it makes of a graph")
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="float32", shape=[2, 1, 4])
    weights = b.constant(np.ones((1, 8, 4), np.float32)), b.constant(np.ones((1, 8, 2), np.float32))
    graph = await b.build({"h": b.lstm(x, *weights, 2, 2)[0]}, keep_source=True)
    told, kernels = fates(picture(graph).describe())
    count = len(kernels)
    assert told == ["kernel 1" if count == 1 else "kernels 1, 2"]
    assert (count > 1) == (backend == "wgpu")
    assert all(kernel[-1] == "#1" for kernel in kernels)


async def test_a_graph_without_its_source_is_refused(numpy_context):
    drawing = draw_residual_block(numpy_context)
    graph = await drawing.builder.build(drawing.outputs)
    assert graph.source is None
    with pytest.raises(InvalidStateError, match=r"picture\(\): <MLGraph .* has no source; build it with .*keep_source"):
        picture(graph)


async def test_the_label_of_a_graph_is_in_every_picture(numpy_context):
    b = MLGraphBuilder(numpy_context)
    y = b.relu(b.input("x", data_type="float32", shape=[2]))
    plain = picture({"y": y})
    labelled = picture(await b.build({"y": y}, label="a <b>, c", keep_source=True))
    assert labelled.describe().startswith("graph 'a <b>, c' of 1 operator on ")
    assert repr(labelled).startswith("<GraphPicture graph 'a <b>, c' of 1 operator on ")
    words = "graph &#x27;a &lt;b&gt;, c&#x27; of 1 operator"
    assert f"<title>{words}</title>" in labelled.to_html()
    assert f'aria-label="{words}"' in labelled.to_svg()
    assert words in labelled._repr_html_()
    assert repr(plain) == "<GraphPicture graph of 1 operator, not compiled>"
    assert "<title>graph of 1 operator</title>" in plain.to_html()
