"""Attention, as it is found in a graph: products of queries and keys, softmax, and products with values."""

from __future__ import annotations

from math import prod

import attrs

from webnn_py.core.graph import Node, Value


@attrs.frozen
class AttentionOperand:
    """Queries, keys or values: a matrix for each batch, whose rows are those of the queries, keys or values.

    Attributes:
        value: where they come from.
        batch: the axes before the last two, to which those of the value are broadcast.
        is_transposed: whether the value has its last two axes the other way round.
    """

    value: Value
    batch: tuple[int, ...]
    is_transposed: bool

    @property
    def size(self) -> tuple[int, int]:
        """The rows of a matrix, and the elements of a row."""
        first, second = self.value.descriptor.shape[-2:]
        return (second, first) if self.is_transposed else (first, second)


@attrs.frozen(eq=False)
class Attention:
    """An attention that one kernel may compute.

    Attributes:
        queries: the left side of the first product.
        keys: its right side.
        values: the right side of the second product.
        scores: the first product's result, as the element-wise nodes or the softmax read it.
        last: the last of the element-wise nodes in front of the softmax; None if there are none.
        terms: how many buffers these nodes read.
        softmax: the softmax.
        dead: the choice of zeros in place of probabilities in some rows, whose condition says which; None if in no row.
        is_never_nan: whether there are zeros in place of NaN.
        product: the second product.
        nodes: all that are computed, but for those fused into ``last``, and for ``product``.
    """

    queries: AttentionOperand
    keys: AttentionOperand
    values: AttentionOperand
    scores: Value
    last: Node | None
    terms: int
    softmax: Node
    dead: Node | None
    is_never_nan: bool
    product: Node
    nodes: tuple[Node, ...]

    @property
    def batch(self) -> int:
        """The number of matrices of scores."""
        return prod(self.queries.batch)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores in front of the softmax."""
        return self.softmax.outputs[0].shape
