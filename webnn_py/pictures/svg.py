"""A graph as SVG: boxes in layers, data types and shapes where values leave, frames around what became one kernel."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from html import escape
from string import Template
from typing import Final, Self

import attrs

from webnn_py.html_page import asset
from webnn_py.pictures.layers import Arrangement, Link, Piece, Size, arrange
from webnn_py.pictures.scene import Box, Frame, Scene, Wire

_PACKAGE: Final = "webnn_py.pictures"

CHARACTER: Final = 7.25
"""The width of a character of a title; fonts of one width have nearly the same ones."""

SMALL: Final = 6.1
LINE: Final = 15.0
PADDING: Final = 8.0
LABEL: Final = 17.0
"""The height of the data type and shape below a box."""

FRAME_PADDING: Final = 10.0
FRAME_TITLE: Final = 18.0
MARGIN: Final = 14.0

INNER_GAP: Final = 22.0
"""Between layers within a frame."""

FOLLOW: Final = (
    "if(event.target.tagName!='INPUT'){const pane=this.querySelector('.pane'),"
    "at=pane.firstElementChild.getBoundingClientRect(),"
    "x=(event.clientX-at.left)/at.width,y=(event.clientY-at.top)/at.height;"
    "requestAnimationFrame(()=>pane.scrollTo(x*pane.scrollWidth-pane.clientWidth/2,"
    "y*pane.scrollHeight-pane.clientHeight/2))}"
)
"""A click centres the page on its target. Where a notebook runs no script, the size changes all the same."""


@attrs.frozen
class Card:
    """A box with its size, and where wires leave and arrive.

    Attributes:
        box: the box.
        size: with the labels below.
        height: without them.
        outs: for each of its outputs that is read, where wires leave.
        types: data type and shape of these.
        entries: how many wires arrive.
    """

    box: Box
    size: Size
    height: float
    outs: Mapping[int, float]
    types: Mapping[int, str]
    entries: int

    @classmethod
    def from_box(cls, box: Box, leaving: Sequence[Wire], arriving: Sequence[Wire]) -> Self:
        """Measure a box."""
        types = dict(sorted({wire.port: wire.text for wire in leaving}.items()))
        widths = [_width(text, SMALL) + 14 for text in types.values()]
        lines = [_width(box.title, CHARACTER), *(_width(line, SMALL) for line in box.lines)]
        width = max(max(lines) + 2 * PADDING, sum(widths), 40.0, 12.0 * len(arriving))
        height = 2 * PADDING + LINE * (1 + len(box.lines)) - 3
        start = (width - sum(widths)) / 2
        outs = {}
        for port, own in zip(types, widths, strict=True):
            outs[port] = start + own / 2
            start += own
        return cls(box, Size(width, height + (LABEL if types else 0.0)), height, outs, types, len(arriving))

    def into(self, entry: int) -> float:
        """Return the point where a wire arrives."""
        return self.size.width * (entry + 1) / (self.entries + 1)


def _width(text: str, character: float) -> float:
    return character * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


@attrs.frozen
class Cluster:
    """A frame, arranged by itself: wires enter and leave it by ports on its edges.

    Attributes:
        frame: the frame.
        inner: the arrangement of its members and ports.
        size: with padding and title.
    """

    frame: Frame
    inner: Arrangement
    size: Size

    @classmethod
    def from_frame(cls, frame: Frame, cards: Mapping[str, Card], wires: Sequence[Wire]) -> Self:
        """Arrange a frame's members; ``wires`` are those that begin or end at one."""
        members = dict.fromkeys(frame.members)
        boxes: dict[str, Size] = {}
        links, lasts = [], []
        for wire in wires:
            if wire.target in members and wire.source not in members:
                boxes[in_port(wire)] = Size(0.0, 0.0)
        boxes.update((key, cards[key].size) for key in members)
        for wire in wires:
            within = wire.source in members, wire.target in members
            source, out = (wire.source, cards[wire.source].outs[wire.port]) if within[0] else (in_port(wire), 0.0)
            target, into = (wire.target, cards[wire.target].into(wire.entry)) if within[1] else (out_port(wire), 0.0)
            if not within[1]:
                if target in boxes:
                    continue
                boxes[target] = Size(0.0, 0.0)
                lasts.append(target)
            links.append(Link(source, out, target, into))
        inner = arrange(boxes, links, lasts, INNER_GAP)
        title = _width(frame.title, SMALL)
        width = max(inner.size.width, title) + 2 * FRAME_PADDING
        return cls(frame, inner, Size(width, inner.size.height + FRAME_TITLE + FRAME_PADDING))

    @property
    def left(self) -> float:
        """The start of the members' arrangement, from the frame's left edge."""
        return (self.size.width - self.inner.size.width) / 2

    def port(self, key: str) -> float:
        """Return the position of a port, from the frame's left edge."""
        return self.left + self.inner.places[key][0]


def in_port(wire: Wire) -> str:
    """Return the port by which a value enters a frame."""
    return f"<{wire.source}.{wire.port}"


def out_port(wire: Wire) -> str:
    """Return the port by which a value leaves a frame."""
    return f">{wire.source}.{wire.port}"


@attrs.frozen
class PlacedScene:
    """Positions of everything in a scene, from the picture's left and upper edge.

    Attributes:
        cards: the boxes, by key.
        places: left and top of each.
        frames: the frames that are drawn, with left and top.
        ways: what leads from boxes to boxes.
        size: of the picture.
    """

    cards: Mapping[str, Card]
    places: Mapping[str, tuple[float, float]]
    frames: tuple[tuple[Cluster, float, float], ...]
    ways: tuple[Piece, ...]
    size: Size

    @classmethod
    def from_scene(cls, scene: Scene) -> Self:
        """Arrange a scene."""
        leaving: dict[str, list[Wire]] = {box.key: [] for box in scene.boxes}
        arriving: dict[str, list[Wire]] = {box.key: [] for box in scene.boxes}
        for wire in scene.wires:
            leaving[wire.source].append(wire)
            arriving[wire.target].append(wire)
        cards = {box.key: Card.from_box(box, leaving[box.key], arriving[box.key]) for box in scene.boxes}
        frames, order = _whole_frames(scene)
        home = {key: frame.key for frame in frames for key in frame.members}
        touching: dict[str, list[Wire]] = {frame.key: [] for frame in frames}
        for wire in scene.wires:
            for key in {home.get(wire.source), home.get(wire.target)} - {None}:
                touching[str(key)].append(wire)
        clusters = {frame.key: Cluster.from_frame(frame, cards, touching[frame.key]) for frame in frames}
        sizes = {key: clusters[key].size if key in clusters else cards[key].size for key in order}
        links: dict[Link, None] = {}
        for wire in scene.wires:
            source, target = home.get(wire.source), home.get(wire.target)
            if source is not None and source == target:
                continue
            out = cards[wire.source].outs[wire.port] if source is None else clusters[source].port(out_port(wire))
            into = cards[wire.target].into(wire.entry) if target is None else clusters[target].port(in_port(wire))
            links[Link(source or wire.source, out, target or wire.target, into)] = None
        outer = arrange(sizes, list(links))
        return cls._placed(outer, cards, clusters)

    @classmethod
    def _placed(cls, outer: Arrangement, cards: Mapping[str, Card], clusters: Mapping[str, Cluster]) -> Self:
        places = {key: (x + MARGIN, y + MARGIN) for key, (x, y) in outer.places.items() if key in cards}
        frames: list[tuple[Cluster, float, float]] = []
        ways: list[Piece] = [*_moved(outer.pieces, MARGIN, MARGIN)]
        for key, cluster in clusters.items():
            x, y = outer.places[key][0] + MARGIN, outer.places[key][1] + MARGIN
            left, top = x + cluster.left, y + FRAME_TITLE
            frames.append((cluster, x, y))
            ways += _moved(cluster.inner.pieces, left, top)
            for inner, (inner_x, inner_y) in cluster.inner.places.items():
                if inner in cards:
                    places[inner] = left + inner_x, top + inner_y
                else:
                    begin, end = (y, top) if inner.startswith("<") else (top + inner_y, y + cluster.size.height)
                    ways.append(Piece(left + inner_x, begin, end, left + inner_x, end, ""))
        size = Size(outer.size.width + 2 * MARGIN, outer.size.height + 2 * MARGIN)
        return cls(cards, places, tuple(frames), tuple(ways), size)


def _moved(pieces: Sequence[Piece], left: float, top: float) -> Iterator[Piece]:
    for piece in pieces:
        yield Piece(
            left + piece.x, top + piece.y, top + piece.turn, left + piece.end_x, top + piece.end_y, piece.target
        )


def _whole_frames(scene: Scene) -> tuple[list[Frame], list[str]]:
    """Return the frames that can be drawn as one box each, and the keys of boxes and frames in topological order.

    What leaves a frame must not come back into it by way of others; a frame of which that is so is left out.
    """
    frames = list(scene.frames)
    while True:
        home = {key: frame.key for frame in frames for key in frame.members}
        order: TopologicalSorter[str] = TopologicalSorter()
        for box in scene.boxes:
            order.add(home.get(box.key, box.key))
        for wire in scene.wires:
            source, target = home.get(wire.source, wire.source), home.get(wire.target, wire.target)
            if source != target:
                order.add(target, source)
        try:
            return frames, list(order.static_order())
        except CycleError as error:
            cycle = set(error.args[1])
            frames.remove(next(frame for frame in reversed(frames) if frame.key in cycle))


def to_svg(scene: Scene, title: str, *, fits: bool = False) -> str:
    """Return a picture.

    Args:
        scene: what is drawn.
        title: for those who cannot see it.
        fits: whether it is HTML for a page: as wide as there is room, and by a click in its own size.
    """
    layout = PlacedScene.from_scene(scene)
    width, height = (f"{length:.0f}" for length in (layout.size.width, layout.size.height))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="webnn-graph" role="img" aria-label="{escape(title)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    )
    svg = "\n".join([head, f"<style>\n{asset(_PACKAGE, 'picture.css')}</style>", *_drawn(layout), "</svg>\n"])
    return _view(svg, int(width)) if fits else svg


def _drawn(layout: PlacedScene) -> Iterator[str]:
    for cluster, x, y in layout.frames:
        yield _rectangle("frame", x, y, cluster.size, 6)
    for way in layout.ways:
        yield from _way(way, layout.cards)
    for cluster, x, y in layout.frames:
        yield _text("name", x + FRAME_PADDING, y + 12, cluster.frame.title)
    for key, card in layout.cards.items():
        yield from _card(card, *layout.places[key])


def _way(way: Piece, cards: Mapping[str, Card]) -> Iterator[str]:
    middle = (way.turn + way.end_y) / 2
    curve = f"C{way.x:.1f} {middle:.1f} {way.end_x:.1f} {middle:.1f} {way.end_x:.1f} {way.end_y:.1f}"
    is_straight = way.turn == way.end_y  # between a frame's edge and a member
    yield f'<path class="wire" d="M{way.x:.1f} {way.y:.1f}V{way.turn:.1f}{"" if is_straight else curve}"/>'
    if way.target in cards:
        yield f'<path class="head" d="M{way.end_x:.1f} {way.end_y:.1f}l-3.5 -7h7z"/>'


def _card(card: Card, x: float, y: float) -> Iterator[str]:
    yield f"<g><title>{escape(chr(10).join([card.box.title, *card.box.lines, *card.types.values()]))}</title>"
    is_end = card.box.kind in {"input", "output"}
    yield _rectangle(f"box {card.box.kind}", x, y, Size(card.size.width, card.height), 12 if is_end else 3)
    text_y = y + PADDING + 10
    yield _text("title", x + PADDING, text_y, card.box.title)
    for number, line in enumerate(card.box.lines, 1):
        yield _text("small", x + PADDING, text_y + number * LINE, line)
    for port, out in card.outs.items():
        yield _text("type", x + out, y + card.height + 13, card.types[port])
    yield "</g>"


def _rectangle(kind: str, x: float, y: float, size: Size, radius: float) -> str:
    edges = f'x="{x:.1f}" y="{y:.1f}" width="{size.width:.1f}" height="{size.height:.1f}"'
    return f'<rect class="{kind}" {edges} rx="{radius:.0f}"/>'


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _view(svg: str, width: int) -> str:
    """Return the HTML of a picture; where its width does not fit, a check box or a click shows it unscaled."""
    style = Template(asset(_PACKAGE, "view.css")).substitute(width=width, limit=width - 1)
    return (
        f'<div class="webnn-view webnn-{width}" style="--own:{width}px"><style>\n{style}</style>'
        f'<label onclick="{FOLLOW}"><span class="size"><input type="checkbox"> in its own size, to be scrolled</span>\n'
        f'<span class="pane">{svg}</span></label></div>'
    )
