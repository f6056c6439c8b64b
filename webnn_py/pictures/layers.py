"""Layout of a graph's boxes: in layers from top to bottom, with few crossings of wires.

Sugiyama's method: each box is in a layer below all that it reads (longest path), wires that pass layers have a bend in
each, boxes are sorted by the mean place of their neighbours (barycentres), and moved towards them as far as they can.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

GAP: Final = 26.0
"""Between boxes of one layer."""

BEND_GAP: Final = 12.0

LAYER_GAP: Final = 34.0

SWEEPS: Final = 12


@attrs.frozen
class Size:
    """The width and the height of a box."""

    width: float
    height: float


@attrs.frozen
class Link:
    """A way from a box to another; of those from the same place of the same box, the first part is one.

    Attributes:
        source: the key of a box.
        out: where it leaves, from the box's left edge.
        target: the key of a box.
        into: where it arrives, from the box's left edge.
    """

    source: str
    out: float
    target: str
    into: float


@attrs.frozen
class Piece:
    """A part of a way: straight down, then curved to the side, then on.

    Attributes:
        x: where it begins.
        y: where it begins.
        turn: how far down it is straight.
        end_x: where it ends.
        end_y: where it ends.
        target: the key of the box there; "" at a bend.
    """

    x: float
    y: float
    turn: float
    end_x: float
    end_y: float
    target: str


@attrs.frozen
class Arrangement:
    """Positions of all boxes and wires.

    Attributes:
        places: left and top of each box.
        pieces: the ways.
        size: of all of it.
    """

    places: Mapping[str, tuple[float, float]]
    pieces: tuple[Piece, ...]
    size: Size


@attrs.define(eq=False)
class _Vertex:
    """A box or a bend in a layer."""

    size: Size
    layer: int
    key: str
    x: float = 0.0
    rank: int = 0
    above: list[_Segment] = attrs.field(factory=list, repr=False)
    below: list[_Segment] = attrs.field(factory=list, repr=False)

    @property
    def weight(self) -> float:
        """Return the weight of a straight course for this item: bends have the largest."""
        return 1.0 if self.key else 4.0


@attrs.frozen(eq=False)
class _Segment:
    """From a vertex to one in the next layer."""

    upper: _Vertex
    out: float
    lower: _Vertex
    into: float


def arrange(
    boxes: Mapping[str, Size], links: Sequence[Link], last: Iterable[str] = (), gap: float = LAYER_GAP
) -> Arrangement:
    """Arrange boxes.

    Args:
        boxes: the boxes by key, in an order in which links lead from earlier ones to later ones.
        links: the ways between them.
        last: boxes that are to be in the last layer.
        gap: between layers, where ways go from side to side.
    """
    layers = _layers(boxes, links, frozenset(last))
    vertices = {key: _Vertex(size, layers[key], key) for key, size in boxes.items()}
    rows: list[list[_Vertex]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for vertex in vertices.values():
        rows[vertex.layer].append(vertex)
    segments = _segments(vertices, links, rows)
    _sort(rows)
    _spread(rows)
    return _placed(vertices, rows, segments, gap)


def _layers(boxes: Mapping[str, Size], links: Sequence[Link], last: frozenset[str]) -> dict[str, int]:
    """Return the layer of each box: below what it reads, and boxes that read nothing just above what reads them."""
    sources: dict[str, list[str]] = {key: [] for key in boxes}
    targets: dict[str, list[str]] = {key: [] for key in boxes}
    for link in links:
        sources[link.target].append(link.source)
        targets[link.source].append(link.target)
    layers: dict[str, int] = {}
    for key in boxes:
        layers[key] = max((layers[source] + 1 for source in sources[key]), default=0)
    if last:
        bottom = max(layers.values())
        layers.update(dict.fromkeys(last, bottom))
    for key in boxes:
        if not sources[key] and targets[key] and not last:
            layers[key] = min(layers[target] for target in targets[key]) - 1
    return layers


def _segments(vertices: Mapping[str, _Vertex], links: Sequence[Link], rows: list[list[_Vertex]]) -> list[_Segment]:
    """Return the ways' parts between neighbouring layers; ways from one place have their bends in common."""
    segments: list[_Segment] = []
    chains: dict[tuple[str, float], list[_Vertex]] = {}

    def connect(upper: _Vertex, out: float, lower: _Vertex, into: float) -> None:
        segment = _Segment(upper, out, lower, into)
        upper.below.append(segment)
        lower.above.append(segment)
        segments.append(segment)

    for link in sorted(links, key=lambda link: vertices[link.target].layer):
        source, target = vertices[link.source], vertices[link.target]
        chain = chains.setdefault((link.source, link.out), [source])
        while chain[-1].layer < target.layer - 1:
            bend = _Vertex(Size(0.0, 0.0), chain[-1].layer + 1, "")
            rows[bend.layer].append(bend)
            connect(chain[-1], link.out if chain[-1] is source else 0.0, bend, 0.0)
            chain.append(bend)
        upper = chain[target.layer - 1 - source.layer]
        connect(upper, link.out if upper is source else 0.0, target, link.into)
    return segments


def _sort(rows: list[list[_Vertex]]) -> None:
    """Sort each layer so that few ways cross."""
    _rank(rows)
    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            row.sort(key=lambda vertex: _barycentre(vertex, above=down))
            for rank, vertex in enumerate(row):
                vertex.rank = rank
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best
    _rank(rows)


def _rank(rows: list[list[_Vertex]]) -> None:
    for row in rows:
        for rank, vertex in enumerate(row):
            vertex.rank = rank


def _barycentre(vertex: _Vertex, *, above: bool) -> float:
    segments = vertex.above if above else vertex.below
    if not segments:
        return vertex.rank
    if above:
        return sum(item.upper.rank + _share(item.upper, item.out) for item in segments) / len(segments)
    return sum(item.lower.rank + _share(item.lower, item.into) for item in segments) / len(segments)


def _share(vertex: _Vertex, x: float) -> float:
    """Return the horizontal position of a place in a box, from 0 to less than 1."""
    return x / (vertex.size.width + 1) if vertex.key else 0.5


def _crossings(rows: list[list[_Vertex]]) -> int:
    count = 0
    for row in rows:
        seen: list[float] = []
        for vertex in row:
            for segment in sorted(
                vertex.below, key=lambda item: (item.out, item.lower.rank + _share(item.lower, item.into))
            ):
                end = segment.lower.rank + _share(segment.lower, segment.into)
                count += len(seen) - bisect_left(seen, end + 1e-9)
                insort(seen, end)
    return count


def _spread(rows: list[list[_Vertex]]) -> None:
    """Give each vertex its left edge."""
    for row in rows:
        _settle(row, [0.0] * len(row))
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            _settle(row, [_wanted(vertex, above=down) for vertex in row])
    for _ in range(2 * SWEEPS):
        for row in rows:
            _settle(row, [(_wanted(vertex, above=True) + _wanted(vertex, above=False)) / 2 for vertex in row])
    left = min((vertex.x for row in rows for vertex in row), default=0.0)
    for row in rows:
        for vertex in row:
            vertex.x -= left


def _wanted(vertex: _Vertex, *, above: bool) -> float:
    """Return the left edge with which a vertex's ways on one side would be straight, in the mean."""
    segments = (vertex.above if above else vertex.below) or (vertex.below if above else vertex.above)
    if not segments:
        return vertex.x
    other = [
        item.upper.x + item.out - item.into if item.lower is vertex else item.lower.x + item.into - item.out
        for item in segments
    ]
    return sum(other) / len(other)


def _settle(row: list[_Vertex], wanted: list[float]) -> None:
    """Move a layer's vertices as near to where they want to be as their order and gaps allow, by least squares."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count; the means ascend
    offset, offsets = 0.0, []
    for index, vertex in enumerate(row):
        offsets.append(offset)
        block = (wanted[index] - offset, vertex.weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            mean, weight, count = blocks.pop()
            total = weight + block[1]
            block = ((mean * weight + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
        bends = not vertex.key or (index + 1 < len(row) and not row[index + 1].key)
        offset += vertex.size.width + (BEND_GAP if bends else GAP)
    means = [mean for mean, _, count in blocks for _ in range(count)]
    for vertex, mean, own in zip(row, means, offsets, strict=True):
        vertex.x = mean + own


def _placed(
    vertices: Mapping[str, _Vertex], rows: list[list[_Vertex]], segments: Sequence[_Segment], gap: float
) -> Arrangement:
    """Give each layer its height, and draw the ways."""
    tops: list[float] = []
    bottoms: list[float] = []
    y = 0.0
    for row in rows:
        tops.append(y)
        bottoms.append(y + max(vertex.size.height for vertex in row))
        y = bottoms[-1] + gap
    pieces = []
    for item in segments:
        start = tops[item.upper.layer] + item.upper.size.height
        end_x, end_y = item.lower.x + item.into, tops[item.lower.layer]
        turn = bottoms[item.upper.layer]
        pieces.append(Piece(item.upper.x + item.out, start, turn, end_x, end_y, item.lower.key))
    places = {key: (vertex.x, tops[vertex.layer]) for key, vertex in vertices.items()}
    width = max((vertex.x + vertex.size.width for row in rows for vertex in row), default=0.0)
    return Arrangement(places, tuple(pieces), Size(width, bottoms[-1] if bottoms else 0.0))
