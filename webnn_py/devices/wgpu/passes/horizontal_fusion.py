"""Horizontal fusion: several linear layers of one input, such as attention's queries, keys and values, as one.

One kernel takes the place of several, each of which would leave most of a GPU idle. What these returned are parts of
what the single one returns; so it is done only where other products and what copies them anyway, as it joins them to a
cache, read them, in ways that need no copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.core.graph import Constant, Graph, Node, Output, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.operators import arithmetic, matrix, movement
from webnn_py.devices.arena import split_constant
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, place_of
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout, dense_strides, is_gemm_readable
from webnn_py.devices.wgpu.records.table import entry_of

HORIZONTAL_FUSION: Final = "horizontal-fusion"

MOST_BYTES: Final = 2**26
"""The most bytes of the single product's matrix or result: larger products fill a GPU, each by itself."""

ANYHOW: Final = frozenset({movement.concat})
"""Operators whose kernels read views of any layout."""


@attrs.frozen
class LinearLayer:
    """A linear layer: a product with a constant matrix, and the addition of a constant row, if there is one.

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
        """The properties that layers must share to be fused."""
        return self.node.operator, self.node.operands["a"], tuple(self.node.options.items()), self.bias is None

    @property
    def columns(self) -> int:
        return self.result.descriptor.shape[-1]


def fuse_horizontally(graph: Graph, context: PassContext) -> Graph:
    """Return the graph with one product in place of several of one input."""
    search = LinearLayerSearch(graph)
    families: dict[object, list[LinearLayer]] = {}
    for node in graph.nodes:
        linear = search.linear(node)
        if linear is not None:
            families.setdefault(linear.family, []).append(linear)
    fused: dict[Node, Sequence[LinearLayer]] = {}
    for family in families.values():
        chosen = search.chosen(family)
        where = ", ".join(place_of(linear.node) for linear in (family if isinstance(chosen, str) else chosen))
        if not isinstance(chosen, str):
            fused[chosen[0].node] = chosen
            context.applied.append(AppliedRule(HORIZONTAL_FUSION, where))
        elif len(family) > 1:
            context.refused.append(RefusedRule(HORIZONTAL_FUSION, where, chosen))

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        return build_fused(fused[node], current) if node in fused else None

    return rewrite(graph, replace)


def build_fused(family: Sequence[LinearLayer], product: Node) -> dict[Value, Value]:
    """Make a single product like the family's first; returns what takes the place of each result."""
    label = ", ".join(linear.node.label for linear in family if linear.node.label)
    products = [place for linear in family for place in linear.node.drawn]
    sums = [place for linear in family if isinstance(linear.result, Output) for place in linear.result.node.drawn]
    builder = RewriteBuilder(label, tuple(dict.fromkeys([*products, *sums])))
    a = builder.operand(product.value("a"))
    axis = 0 if product.options.get("b_transpose") else 1
    weight = builder.concat([builder.operand(linear.weight) for linear in family], axis)
    biases = [builder.operand(linear.bias) for linear in family if linear.bias is not None]
    bias = builder.concat(biases, 0) if biases else None
    if product.operator is matrix.gemm:
        fused = builder.gemm(a, weight, **{**product.options, "c": bias})
    else:
        fused = builder.matmul(a, weight)
        fused = fused if bias is None else builder.add(fused, bias)
    parts = builder.split(fused, [linear.columns for linear in family], axis=len(fused.shape) - 1)
    return {linear.result: builder.value(part) for linear, part in zip(family, parts, strict=True)}


def part_of(linear: LinearLayer, family: Sequence[LinearLayer]) -> Layout:
    """Return the layout of a result that is a part of the single product's, without its offset."""
    shape = linear.result.descriptor.shape
    total = sum(member.columns for member in family)
    return Layout(shape, dense_strides((*shape[:-1], total)))


class LinearLayerSearch:
    """Looks for linear layers in a graph that can be fused."""

    def __init__(self, graph: Graph) -> None:
        self._outputs = set(graph.outputs.values())
        self._constant = set(split_constant(graph)[0])
        self._nodes_reading = graph.nodes_reading

    def linear(self, node: Node) -> LinearLayer | None:
        """Return the linear layer that begins with a node, or None if it is no product with a constant matrix."""
        if node.operator not in (matrix.matmul, matrix.gemm) or node in self._constant:
            return None
        weight, bias = node.value("b"), node.operands.get("c")
        result: Value = node.results[0]
        if node.operator is matrix.matmul:
            bias, result = self._addition(result)
        columns = node.outputs[0].shape[-1]
        if columns % WIDTH or len(weight.descriptor.shape) != 2 or not self._is_own_constant(weight):
            return None
        if bias is None:
            return LinearLayer(node, weight, None, result)
        assert isinstance(bias, Value)  # noqa: S101 - for type checkers
        is_row = bias.descriptor.shape == (columns,) and self._is_own_constant(bias)
        return LinearLayer(node, weight, bias, result) if is_row else None

    def _addition(self, product: Value) -> tuple[Value | None, Value]:
        """Return the addend of a product without other readers, and the sum; None and the product if there is none."""
        readers = self._nodes_reading(product)
        if product in self._outputs or len(readers) != 1 or readers[0].operator is not arithmetic.add:
            return None, product
        (addend,) = (value for value in readers[0].inputs if value is not product)
        return addend, readers[0].results[0]

    def _is_own_constant(self, value: Value) -> bool:
        """Return whether a value is a constant that nothing else needs, and not the user's buffer."""
        if value in self._outputs or len(self._nodes_reading(value)) > 1:
            return False
        if isinstance(value, Constant):
            return isinstance(value.data, np.ndarray)
        return isinstance(value, Output) and value.node in self._constant

    def chosen(self, family: Sequence[LinearLayer]) -> Sequence[LinearLayer] | str:
        """Return those of a family that become one product; the reason if that is not done."""
        readable = [linear for linear in family if self._can_be_read(linear.result, part_of(linear, family))]
        weight = sum(linear.weight.descriptor.byte_length for linear in readable)
        result = sum(linear.result.descriptor.byte_length for linear in readable)
        if len(readable) < 2:
            return "what reads the results would have to copy them"
        return readable if max(weight, result) <= MOST_BYTES else "each fills a GPU by itself"

    def _can_be_read(self, value: Value, layout: Layout) -> bool:
        """Return whether only products read a value in this layout, or views of it, and none needs a copy."""
        if value in self._outputs:
            return False
        for node in self._nodes_reading(value):
            rule = entry_of(node).layout
            if node.operator in ANYHOW:
                continue
            if node.operator in (matrix.matmul, matrix.gemm):
                if not is_gemm_readable(layout):
                    return False
                continue
            views = None if rule is None else rule(node, layout)
            if views is None:
                return False
            views = [views] if isinstance(views, Layout) else views
            if not all(self._can_be_read(*part) for part in zip(node.results, views, strict=True)):
                return False
        return True
