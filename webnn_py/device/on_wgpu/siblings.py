"""Products of one matrix with several constant ones, drawn as a single product: queries, keys and values of attention.

One kernel takes the place of several, each of which would leave most of a GPU idle. What these returned are parts of
what the single one returns; so it is done only where other products alone read them, in ways that need no copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_wgpu.fusing import readers_of
from webnn_py.device.on_wgpu.layout import Layout, dense_strides
from webnn_py.device.on_wgpu.redrawing import Redrawing, redraw
from webnn_py.device.on_wgpu.sources import is_readable
from webnn_py.device.on_wgpu.table import entry_of
from webnn_py.device.on_wgpu.wgsl import WIDTH
from webnn_py.device.plan import split_constant
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import arithmetic, matrix

MOST_BYTES: Final = 2**26
"""So many may the single product's matrix or result have: larger products fill a GPU, each by itself."""


@attrs.frozen
class Weighing:
    """A product with a constant matrix, and the addition of a constant row, if there is one.

    Attributes:
        node: the matmul or gemm.
        weight: the constant matrix.
        bias: the constant row; None if there is none.
        result: what comes out.
    """

    node: Node
    weight: Value
    bias: Value | None
    result: Value

    @property
    def family(self) -> object:
        """What siblings have in common."""
        return self.node.operator, self.node.operands["a"], tuple(self.node.options.items()), self.bias is None

    @property
    def columns(self) -> int:
        return self.result.descriptor.shape[-1]


def join_siblings(graph: Graph) -> Graph:
    """The same graph with fewer products."""
    search = Search(graph)
    families: dict[object, list[Weighing]] = {}
    for node in graph.nodes:
        weighing = search.weighing(node)
        if weighing is not None:
            families.setdefault(weighing.family, []).append(weighing)
    joinable = [search.joinable(family) for family in families.values()]
    joined = {family[0].node: family for family in joinable if family}

    def draw(node: Node, current: Node) -> Mapping[Value, Value] | None:
        return draw_joined(joined[node], current) if node in joined else None

    return redraw(graph, draw)


def draw_joined(family: Sequence[Weighing], product: Node) -> dict[Value, Value]:
    """Draw a single product like the family's first; returns what takes the place of each result."""
    drawing = Redrawing()
    a = product.operands["a"]
    assert isinstance(a, Value)  # noqa: S101 - for type checkers
    axis = 0 if product.options.get("b_transpose") else 1
    weight = drawing.concat([drawing.operand(weighing.weight) for weighing in family], axis)
    biases = [drawing.operand(weighing.bias) for weighing in family if weighing.bias is not None]
    bias = drawing.concat(biases, 0) if biases else None
    if product.operator is matrix.gemm:
        drawn = drawing.gemm(drawing.operand(a), weight, **{**product.options, "c": bias})
    else:
        drawn = drawing.matmul(drawing.operand(a), weight)
        drawn = drawn if bias is None else drawing.add(drawn, bias)
    parts = drawing.split(drawn, [weighing.columns for weighing in family], axis=len(drawn.shape) - 1)
    return {weighing.result: drawing.value(part) for weighing, part in zip(family, parts, strict=True)}


def part_of(weighing: Weighing, family: Sequence[Weighing]) -> Layout:
    """How a result lies that is a part of a single product's, but for where it begins."""
    shape = weighing.result.descriptor.shape
    total = sum(member.columns for member in family)
    return Layout(shape, dense_strides((*shape[:-1], total)))


class Search:
    """Looks for siblings in a graph."""

    def __init__(self, graph: Graph) -> None:
        self._outputs = set(graph.outputs.values())
        self._constant = set(split_constant(graph)[0])
        self._readers = readers_of(graph)

    def weighing(self, node: Node) -> Weighing | None:
        """The product that a node is, or None if it is none of a matrix with a constant one."""
        if node.operator not in (matrix.matmul, matrix.gemm) or node in self._constant:
            return None
        weight, bias = node.operands["b"], node.operands.get("c")
        result: Value = node.results[0]
        assert isinstance(weight, Value)  # noqa: S101 - for type checkers
        if node.operator is matrix.matmul:
            bias, result = self._addition(result)
        columns = node.outputs[0].shape[-1]
        if columns % WIDTH or len(weight.descriptor.shape) != 2 or not self._is_own_constant(weight):
            return None
        if bias is None:
            return Weighing(node, weight, None, result)
        assert isinstance(bias, Value)  # noqa: S101 - for type checkers
        is_row = bias.descriptor.shape == (columns,) and self._is_own_constant(bias)
        return Weighing(node, weight, bias, result) if is_row else None

    def _addition(self, product: Value) -> tuple[Value | None, Value]:
        """What alone is added to a product, and the sum; None and the product if nothing is."""
        readers = self._readers.get(product, [])
        if product in self._outputs or len(readers) != 1 or readers[0].operator is not arithmetic.add:
            return None, product
        (addend,) = (value for value in readers[0].inputs if value is not product)
        return addend, readers[0].results[0]

    def _is_own_constant(self, value: Value) -> bool:
        """Whether a value is a constant that nothing else needs, and not the user's buffer: memory is not doubled."""
        if value in self._outputs or len(self._readers[value]) > 1:
            return False
        if isinstance(value, Constant):
            return isinstance(value.data, np.ndarray)
        return isinstance(value, Output) and value.node in self._constant

    def joinable(self, family: Sequence[Weighing]) -> list[Weighing]:
        """Those of a family that a single product is to take the place of."""
        readable = [weighing for weighing in family if self._can_be_read(weighing.result, part_of(weighing, family))]
        weight = sum(weighing.weight.descriptor.byte_length for weighing in readable)
        result = sum(weighing.result.descriptor.byte_length for weighing in readable)
        return readable if len(readable) > 1 and max(weight, result) <= MOST_BYTES else []

    def _can_be_read(self, value: Value, layout: Layout) -> bool:
        """Whether only products read a value that lies so, or views of it, and none needs a copy."""
        if value in self._outputs:
            return False
        for node in self._readers.get(value, []):
            rule = entry_of(node).layout
            if node.operator in (matrix.matmul, matrix.gemm):
                if not is_readable(layout):
                    return False
                continue
            views = None if rule is None else rule(node, layout)
            if views is None:
                return False
            views = [views] if isinstance(views, Layout) else views
            if not all(self._can_be_read(*part) for part in zip(node.results, views, strict=True)):
                return False
        return True
