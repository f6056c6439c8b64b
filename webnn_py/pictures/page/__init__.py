"""The page of a graph: pan, zoom, search, attributes, statistics of weights, what the device fused."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.message_text import shortened, visible
from webnn_py.devices.compiled_plan import CompiledPlan
from webnn_py.html_page import PageAssets
from webnn_py.pictures.constants import Array, ConstantStatistics
from webnn_py.pictures.description import DrawnOperator, DrawnValue, GraphDescription
from webnn_py.pictures.layers import Piece
from webnn_py.pictures.scene import Fates, Scene
from webnn_py.pictures.svg import Card, PlacedScene

SCRIPTS: Final = ("graph", "view", "drawing", "details", "search", "input", "page")
"""In the order in which they stand in the page."""

LONGEST_TEXT: Final = 1000
"""Characters of a label, a name or an attribute's value that the page has."""

WITHOUT: Final = "not known: its elements were not at hand when the page was made"
"""The text in place of statistics that are not available."""


def page_of(
    graph: GraphDescription,
    plan: CompiledPlan | None,
    constants: Mapping[int, Array],
    summary: Sequence[str],
    title: str,
) -> str:
    """Return a whole HTML page that shows a graph, and asks nothing of any network.

    Args:
        graph: the graph.
        plan: what a device has made of it, if that is known.
        constants: the elements of constants, by the index of the value.
        summary: lines about the whole graph.
        title: of the page.
    """
    scene = Scene.from_graph(graph, plan)
    fates = Fates.from_graph(graph, plan)
    layout = PlacedScene.from_scene(scene)
    places = {box.key: place for place, box in enumerate(scene.boxes)}
    frames = [
        {
            **_rectangle(x, y, cluster.size.width, cluster.size.height),
            "title": cluster.frame.title,
            "members": [places[key] for key in cluster.frame.members],
            "kernels": sorted({kernel for key in cluster.frame.members for kernel in fates.kernels[int(key[1:])]}),
        }
        for cluster, x, y in layout.frames
    ]
    document = {
        "summary": list(summary),
        "width": round(layout.size.width),
        "height": round(layout.size.height),
        "without": WITHOUT,
        "boxes": [_box(graph, card, *layout.places[key]) for key, card in layout.cards.items()],
        "frames": frames,
        "ways": [_way(way, layout.cards) for way in layout.ways],
        "operators": [_operator(graph, fates, index) for index in range(len(graph.operators))],
        "values": [_value(value, constants.get(index)) for index, value in enumerate(graph.values)],
        "kernels": _kernels(graph, plan),
    }
    return PageAssets(__name__, SCRIPTS).filled(document, title)


def _rectangle(x: float, y: float, width: float, height: float) -> dict[str, float]:
    return {"x": round(x, 1), "y": round(y, 1), "width": round(width, 1), "height": round(height, 1)}


def _box(graph: GraphDescription, card: Card, x: float, y: float) -> dict[str, Any]:
    """Return a box with what stands in it; ``marks`` has, for each line, the constant that it shows, or -1."""
    box = card.box
    of_operator, of_value, marks = -1, -1, []
    number = int(box.key[1:])
    if box.kind == "input":
        of_value = number
    elif box.kind == "output":
        of_value = graph.outputs[number][1]
    else:
        of_operator = number
        marks = [index for _, index in graph.operators[number].operands if graph.values[index].kind == "constant"]
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


def _operator(graph: GraphDescription, fates: Fates, index: int) -> dict[str, Any]:
    operator = graph.operators[index]
    return {
        "name": operator.operator.spec_name,
        "label": _short(operator.label),
        "operands": operator.operands,
        "options": _options(operator),
        "results": operator.results,
        "fate": _fate(fates, index),
        "kernels": fates.kernels.get(index, ()),
    }


def _options(operator: DrawnOperator) -> list[tuple[str, str, int]]:
    """Return the name of each argument that is no operand, its value as text, and whether it is the default."""
    options = []
    for name, value in operator.options.items():
        text = "none" if value is None else str(list(value)) if isinstance(value, tuple) else str(value)
        options.append((name, _short(text), int(operator.has_default(name))))
    return options


def _fate(fates: Fates, index: int) -> str:
    """Return in words how the device runs an operator; nothing where no device has compiled it."""
    if fates.plan is None:
        return ""
    kind = fates.kind(index)
    if kind == "folded":
        return "computed at build"
    if kind == "view":
        return "no kernel: a view"
    numbers = fates.kernels[index]
    return f"kernel {numbers[0] + 1}" if len(numbers) == 1 else f"{len(numbers)} kernels from {numbers[0] + 1}"


def _value(value: DrawnValue, elements: Array | None) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": value.kind, "type": str(value.descriptor)}
    if value.kind == "result":
        described["source"] = value.source
    elif value.kind == "constant":
        described |= {
            "elements": value.descriptor.element_count,
            "bytes": value.descriptor.byte_length,
            "statistics": None if elements is None else _statistics(elements, value.descriptor),
        }
    return described


def _statistics(elements: Array, descriptor: MLOperandDescriptor) -> dict[str, Any]:
    """Statistics for the page: numbers as text in six digits, integers whole."""
    found = attrs.asdict(ConstantStatistics.from_data(elements, descriptor))
    for name in ("min", "max", "mean", "std"):
        number = found[name]
        found[name] = None if number is None else str(number) if isinstance(number, int) else f"{number:.6g}"
    return found


def _kernels(graph: GraphDescription, plan: CompiledPlan | None) -> list[dict[str, Any]]:
    if plan is None:
        return []
    indices = {operator.place: index for index, operator in enumerate(graph.operators)}
    return [
        {"name": _short(kernel.name), "operators": [indices[place] for place in kernel.operators if place in indices]}
        for kernel in plan.kernels
    ]


def _short(text: str) -> str:
    return visible(shortened(text, LONGEST_TEXT))
