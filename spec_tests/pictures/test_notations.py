"""Mermaid's and Graphviz' notation, read back by strict readers."""

import pytest

from spec_tests.pictures.drawings import HOSTILE, draw_relu, draw_residual_block
from spec_tests.pictures.notation_readers import read_dot, read_mermaid
from webnn_py import pictures
from webnn_py.core.message_text import visible

READERS = {"mermaid": ("to_mermaid", read_mermaid), "dot": ("to_dot", read_dot)}


@pytest.fixture(params=READERS)
def read(request):
    """A writer of pictures in a notation, and its reader."""
    write, reader = READERS[request.param]
    return lambda picture: reader(getattr(picture, write)())


async def test_what_is_drawn_is_read_back(numpy_context, read):
    found = read(draw_residual_block(numpy_context).picture())
    titles = {key: lines[0] for key, (lines, _) in found.boxes.items()}
    assert sorted(titles.values()) == sorted(
        ["x", "add", "conv2d [first]", "add", "relu", "add", "reshape", "matmul", "split [halves]", "softmax", "y", "z"]
    )
    edges = {(titles[source], titles[target], text) for source, target, text in found.edges}
    assert {
        ("x", "conv2d [first]", "float32 [1, 4, 8, 8]"),
        ("relu", "z", "float32 [1, 4, 8, 8]"),
        ("split [halves]", "softmax", "float32 [16, 4]"),
        ("softmax", "y", "float32 [16, 4]"),
    } <= edges
    assert len(found.edges) == 12
    assert found.boxes[next(key for key, title in titles.items() if title == "conv2d [first]")][0][1:] == [
        "filter: float32 [4, 4, 3, 3]",
        "padding [1, 1, 1, 1]",
    ]
    assert found.frames == {}


async def test_kernels_are_frames(context, backend, read):
    if backend == "onnxruntime":
        pytest.skip("it does not tell what it makes of a graph")
    found = read(await draw_residual_block(context).built_picture())
    framed = {frame: [lines[0] for lines, own in found.boxes.values() if own == frame] for frame in found.frames}
    if backend == "wgpu":
        assert ["conv2d [first]", "add", "relu"] in framed.values()
        assert "kernel: conv2d float32 add float32 relu" in found.frames.values()
    else:
        assert framed == {}, "these arrays are too small for numpy to fuse"
    known = [lines for lines, _ in found.boxes.values() if "computed at build" in lines]
    assert known == [["add", "a: float32 [4, 1, 1]", "b = 0.5", "computed at build"]]


@pytest.mark.parametrize("text", HOSTILE)
async def test_texts_mean_nothing_to_the_notation(numpy_context, read, text):
    found = read(draw_relu(numpy_context, text, text).picture())
    seen = text.replace("\n", "\\u000a").replace("\u202e", "\\u202e")
    assert [lines[0] for lines, _ in found.boxes.values()] == [seen, f"relu [{seen}]", seen]


@pytest.mark.parametrize("label", ["classifier", "", "\u202e", *HOSTILE])
async def test_the_label_of_a_graph_is_the_title(numpy_context, read, label):
    drawing = draw_relu(numpy_context)
    drawn = drawing.picture()
    found = read(pictures.picture(await drawing.build(label)))
    assert found.title == visible(label)
    assert len(found.boxes) == 3
    assert read(drawn).title == ""
