"""Pictures in SVG: everything is there, nothing overlaps, wires lead down to their readers."""

import random
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from spec_tests.pictures.drawings import HOSTILE, draw_relu, draw_residual_block
from webnn_py.pictures.layers import Link, Size, arrange

SPACE = "{http://www.w3.org/2000/svg}"
BOXES = {"box input", "box output", "box operator", "box folded", "box view"}


def rectangles(svg, kinds):
    found = [item for item in ET.fromstring(svg).iter(f"{SPACE}rect") if item.get("class") in kinds]  # noqa: S314
    return [tuple(float(item.get(name)) for name in ("x", "y", "width", "height")) for item in found]


def texts(svg, kind):
    return [item.text for item in ET.fromstring(svg).iter(f"{SPACE}text") if item.get("class") == kind]  # noqa: S314


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def contains(outer, inner):
    return all(outer[i] <= inner[i] and inner[i] + inner[i + 2] <= outer[i] + outer[i + 2] for i in (0, 1))


async def test_everything_is_shown_and_nothing_overlaps(context, backend):
    svg = (await draw_residual_block(context).built_picture()).to_svg()
    boxes, frames = rectangles(svg, BOXES), rectangles(svg, {"frame"})
    assert len(boxes) == 12
    assert not any(overlap(*pair) for pair in combinations(boxes, 2))
    assert len(frames) == (1 if backend == "wgpu" else 0)
    for frame in frames:
        assert sum(contains(frame, box) for box in boxes) == 3
        assert sum(overlap(frame, box) for box in boxes) == 3, "no stranger is in a frame"
    assert sorted(texts(svg, "title")) == sorted(
        ["x", "add", "conv2d [first]", "add", "relu", "add", "reshape", "matmul", "split [halves]", "softmax", "y", "z"]
    )
    assert texts(svg, "type").count("float32 [1, 4, 8, 8]") == 5, "once for each value that is read"
    whole = ET.fromstring(svg)  # noqa: S314
    size = (0, 0, float(whole.get("width")), float(whole.get("height")))
    assert all(contains(size, box) for box in [*boxes, *frames])


@pytest.mark.parametrize("text", HOSTILE)
async def test_texts_are_texts(numpy_context, text):
    seen = text.replace("\n", "\\u000a").replace("\u202e", "\\u202e")
    picture = draw_relu(numpy_context, text, text).picture()
    assert texts(picture.to_svg(), "title") == [seen, f"relu [{seen}]", seen]
    assert "<script" not in picture._repr_html_()


async def test_it_is_complete_in_itself(numpy_context):
    svg = draw_residual_block(numpy_context).picture().to_svg()
    assert svg.count("http") == 1, "the name of the namespace"
    assert "prefers-color-scheme:dark" in svg


@pytest.mark.parametrize("seed", range(8))
def test_layers_of_random_graphs(seed):
    dice = random.Random(seed)  # noqa: S311
    boxes = {f"b{index}": Size(dice.randint(20, 200), dice.randint(10, 60)) for index in range(40)}
    links = []
    for index in range(1, 40):
        for source in {dice.randrange(max(0, index - 9), index) for _ in range(dice.randint(0, 3))}:
            width = boxes[f"b{index}"].width
            links.append(Link(f"b{source}", boxes[f"b{source}"].width / 2, f"b{index}", dice.uniform(0, width)))
    arranged = arrange(boxes, links)
    places = {key: (*place, boxes[key].width, boxes[key].height) for key, place in arranged.places.items()}
    assert not [pair for pair in combinations(places, 2) if overlap(places[pair[0]], places[pair[1]])]
    ends = {(round(piece.end_x, 6), piece.end_y) for piece in arranged.pieces}
    for link in links:
        source, target = places[link.source], places[link.target]
        assert source[1] + source[3] < target[1], "down"
        assert (round(target[0] + link.into, 6), target[1]) in ends
    for piece in arranged.pieces:
        straight = [place for place in places.values() if place[0] < piece.x < place[0] + place[2]]
        assert not any(place[1] < piece.turn and piece.y < place[1] + place[3] - 1e-6 for place in straight), (
            "no way leads through a box"
        )


async def test_a_notebook_shows_the_picture_and_the_text(numpy_context):
    built = await draw_residual_block(numpy_context).built_picture()
    html = built._repr_html_()
    assert f'<span class="pane">{built._repr_svg_()}</span>' in html
    assert [html.count(f"<summary>{title}") for title in ("inputs and outputs", "operators 1 to 9", "kernels (6)")] == [
        1, 1, 1
    ]  # fmt: skip
