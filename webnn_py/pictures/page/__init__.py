"""The page of a graph: pan, zoom, search, attributes, statistics of weights, what the device fused."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.graph import Constant, Node, Output, Value
from webnn_py.core.message_text import shortened, visible
from webnn_py.html_page import filled_page
from webnn_py.pictures.constants import ConstantStatistics
from webnn_py.pictures.drawn_graph import REMARKS, DrawnGraph, has_default, operands_of, without_graph
from webnn_py.pictures.layers import Piece
from webnn_py.pictures.scene import Scene
from webnn_py.pictures.svg import Card, PlacedScene

SCRIPTS: Final = ("graph", "view", "drawing", "details", "search", "input", "page")
"""In the order in which they stand in the page."""

LONGEST_TEXT: Final = 1000
"""Characters of a label, a name or an attribute's value that the page has."""

WITHOUT: Final = "not known: its elements were not at hand when the page was made"
"""The text in place of statistics that are not available."""


def page_of(drawn: DrawnGraph, summary: Sequence[str], title: str) -> str:
    """Return a whole HTML page that shows a graph, and asks nothing of any network.

    Args:
        drawn: the graph, and what a device has made of it.
        summary: lines about the whole graph.
        title: of the page.
    """
    scene = Scene.from_graph(drawn)
    layout = PlacedScene.from_scene(scene)
    places = {box.key: place for place, box in enumerate(scene.boxes)}
    numbers = _numbers(drawn)
    frames = [
        {
            **_rectangle(x, y, cluster.size.width, cluster.size.height),
            "title": cluster.frame.title,
            "members": [places[key] for key in cluster.frame.members],
            "kernels": sorted({kernel for key in cluster.frame.members for kernel in drawn.kernels[int(key[1:])]}),
        }
        for cluster, x, y in layout.frames
    ]
    document = {
        "summary": list(summary),
        "width": round(layout.size.width),
        "height": round(layout.size.height),
        "without": WITHOUT,
        "boxes": [_box(drawn, numbers, card, *layout.places[key]) for key, card in layout.cards.items()],
        "frames": frames,
        "ways": [_way(way, layout.cards) for way in layout.ways],
        "operators": [_operator(drawn, numbers, node) for node in drawn.graph.nodes],
        "values": [_value(drawn, value) for value in numbers],
        "kernels": _kernels(drawn),
    }
    return filled_page(__name__, SCRIPTS, document, title)


def _numbers(drawn: DrawnGraph) -> Mapping[Value, int]:
    """Number all values, the inputs first."""
    values: dict[Value, None] = dict.fromkeys(drawn.graph.inputs.values())
    for node in drawn.graph.nodes:
        values.update(dict.fromkeys((*node.inputs, *node.results)))
    return {value: number for number, value in enumerate(values)}


def _rectangle(x: float, y: float, width: float, height: float) -> dict[str, float]:
    return {"x": round(x, 1), "y": round(y, 1), "width": round(width, 1), "height": round(height, 1)}


def _box(drawn: DrawnGraph, numbers: Mapping[Value, int], card: Card, x: float, y: float) -> dict[str, Any]:
    """Return a box with what stands in it; ``marks`` has, for each line, the constant that it shows, or -1."""
    box = card.box
    of_operator, of_value, marks = -1, -1, []
    index = int(box.key[1:])
    if box.kind == "input":
        of_value = index
    elif box.kind == "output":
        of_value = numbers[list(drawn.graph.outputs.values())[index]]
    else:
        of_operator = index
        marks = [numbers[value] for value in drawn.graph.nodes[index].inputs if isinstance(value, Constant)]
    return {
        **_rectangle(x, y, card.size.width, card.height),
        "depth": round(card.size.height, 1),
        "kind": box.kind,
        "title": box.title,
        "lines": box.lines,
        "marks": marks + [-1] * (len(box.lines) - len(marks)),
        "operator": of_operator,
        "value": of_value,
        "outs": [[round(out, 1), card.types[port]] for port, out in card.outs.items()],
        "entries": [round(card.into(entry), 1) for entry in range(card.entries)],
    }


def _way(way: Piece, cards: Mapping[str, Card]) -> list[float]:
    """Return the points where a piece of a wire begins, turns and ends, and whether it ends at a box."""
    numbers = [round(number, 1) for number in (way.x, way.y, way.turn, way.end_x, way.end_y)]
    return [*numbers, int(way.target in cards)]


def _operator(drawn: DrawnGraph, numbers: Mapping[Value, int], node: Node) -> dict[str, Any]:
    index = drawn.indices[node]
    return {
        "name": node.operator.spec_name,
        "label": _short(node.label),
        "operands": [(name, numbers[value]) for name, value in operands_of(node)],
        "options": _options(node),
        "results": [numbers[value] for value in node.results],
        "fate": "" if drawn.plan is None else REMARKS.get(drawn.kind(index)) or drawn.kernels_of(index),
        "kernels": [] if drawn.plan is None else drawn.kernels[index],
    }


def _options(node: Node) -> list[tuple[str, str, int]]:
    """Return the name of each argument that is no operand, its value as text, and whether it is the default."""
    options = []
    for name, value in node.options.items():
        text = "none" if value is None else str(list(value) if isinstance(value, tuple) else without_graph(value))
        options.append((name, _short(text), int(has_default(node, name))))
    return options


def _value(drawn: DrawnGraph, value: Value) -> dict[str, Any]:
    descriptor = value.descriptor
    if isinstance(value, Output):
        return {"kind": "result", "type": str(descriptor), "source": drawn.indices[value.node]}
    if isinstance(value, Constant):
        return {
            "kind": "constant",
            "type": str(descriptor),
            "elements": descriptor.element_count,
            "bytes": descriptor.byte_length,
            "statistics": _statistics(value),
        }
    return {"kind": "input", "type": str(descriptor)}


def _statistics(constant: Constant) -> dict[str, Any] | None:
    """Statistics for the page: numbers as text in six digits, integers whole; None for a constant of a device."""
    if not isinstance(constant.data, np.ndarray):
        return None
    found = attrs.asdict(ConstantStatistics.from_data(constant.data, constant.descriptor))
    for name in ("min", "max", "mean", "std"):
        number = found[name]
        found[name] = None if number is None else str(number) if isinstance(number, int) else f"{number:.6g}"
    return found


def _kernels(drawn: DrawnGraph) -> list[dict[str, Any]]:
    kernels = () if drawn.plan is None else drawn.plan.kernels
    return [
        {"name": _short(kernel.name), "operators": computed}
        for kernel, computed in zip(kernels, drawn.computed, strict=True)
    ]


def _short(text: str) -> str:
    return visible(shortened(text, LONGEST_TEXT))
