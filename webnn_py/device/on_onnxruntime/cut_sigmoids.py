"""Sigmoids of pieces of one value as pieces of one: each is four nodes, and gates are cut out of one product."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import attrs

from webnn_py.device.on_onnxruntime.gating import gates
from webnn_py.graph import Graph, Node, Output, Value
from webnn_py.operators import activation, arithmetic, movement
from webnn_py.rewriting.builder import RewriteBuilder
from webnn_py.rewriting.walk import rewrite

MOST_WASTED: Final = 2**11
"""Elements that no sigmoid was asked of: they take as long as the three nodes or more that are saved."""

MOST_ELEMENTS: Final = 2**14
"""Of the whole: it may have to be cut once more, which takes as long as well."""


@attrs.frozen
class _Piece:
    """A range of an axis of one value, or of the sum of two of one shape."""

    sources: tuple[Value, ...]
    axis: int
    start: int
    end: int


def cut_sigmoids(graph: Graph) -> Graph:
    """The graph with one sigmoid for several of pieces of one value, or of sums of such pieces of two values.

    Gates of quantized networks stay as they are.
    """
    sigmoids = [node for node in graph.nodes if node.operator is activation.sigmoid]
    if len(sigmoids) < 2:
        return graph
    kept = gates(graph)
    sigmoids = [node for node in sigmoids if node.results[0] not in kept]
    groups: dict[tuple[tuple[Value, ...], int], dict[Node, _Piece]] = defaultdict(dict)
    for node in sigmoids:
        piece = _piece(node.inputs[0])
        if piece is not None:
            groups[piece.sources, piece.axis][node] = piece
    whole = {next(iter(group)): group for group in groups.values() if _are_worth_it(list(group.values()))}
    if not whole:
        return graph
    return rewrite(graph, lambda node, current: _cut(whole[node], current) if node in whole else None)


def _piece(value: Value) -> _Piece | None:
    """What a value is a piece of; None if it is none."""
    if not isinstance(value, Output):
        return None
    node = value.node
    if node.operator is arithmetic.add:
        first, second = map(_piece_of_one, node.inputs)
        if first is None or second is None or attrs.evolve(first, sources=second.sources) != second:
            return None
        sources = (*first.sources, *second.sources)
        return attrs.evolve(first, sources=sources) if sources[0].descriptor == sources[1].descriptor else None
    return _piece_of_one(value)


def _piece_of_one(value: Value) -> _Piece | None:
    if not isinstance(value, Output) or value.node.operator not in {movement.split, movement.slice_}:
        return None
    node = value.node
    (source,) = node.inputs
    shape, sizes = source.descriptor.shape, value.descriptor.shape
    if node.operator is movement.split:
        axis = node.options["axis"]
        start = sum(output.shape[axis] for output in node.outputs[: value.index])
    else:
        axes = [axis for axis, size in enumerate(shape) if size != sizes[axis]]
        if len(axes) != 1 or any(step != 1 for step in node.options["strides"] or ()):
            return None
        (axis,) = axes
        start = node.options["starts"][axis]
    return _Piece((source,), axis, start, start + sizes[axis])


def _are_worth_it(pieces: Sequence[_Piece]) -> bool:
    """Whether several pieces of little lie apart, with less between them."""
    ordered = sorted(pieces, key=lambda piece: piece.start)
    if len(ordered) == 1 or any(one.end > next_.start for one, next_ in pairwise(ordered)):
        return False
    shape, axis = ordered[0].sources[0].descriptor.shape, ordered[0].axis
    wasted = shape[axis] - sum(piece.end - piece.start for piece in ordered)
    return math.prod(shape) <= MOST_ELEMENTS and wasted * math.prod(shape) // shape[axis] <= MOST_WASTED


def _cut(group: Mapping[Node, _Piece], current: Node) -> Mapping[Value, Value]:
    """The pieces of the sigmoid of the whole, of which the first one's operands are as they are by now."""
    first = next(iter(group.values()))
    piece = _piece(current.inputs[0])
    assert piece is not None  # noqa: S101 - as it was
    builder = RewriteBuilder(current.label, tuple(sorted({place for node in group for place in node.drawn})))
    operands = [builder.operand(source) for source in piece.sources]
    whole = builder.sigmoid(operands[0] if len(operands) == 1 else builder.add(*operands))
    ends = {0, first.sources[0].descriptor.shape[first.axis]}
    ends.update(end for piece in group.values() for end in (piece.start, piece.end))
    starts = sorted(ends)
    sizes = [end - start for start, end in pairwise(starts)]
    cut = dict(zip(starts, builder.split(whole, sizes, axis=first.axis), strict=False))
    return {node.results[0]: builder.value(cut[piece.start]) for node, piece in group.items()}
