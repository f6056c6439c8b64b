"""Attention fusion: two products, a softmax and the nodes between them as one kernel.

Nothing of what lies between may be read elsewhere. Found are:

* in front of the softmax any element-wise nodes (scale, mask, cap, casts), and reshapes of batches;
* behind it casts, reshapes of batches, and zeros for rows that are masked as a whole, or NaN;
* of keys and values transpositions, and heads that are repeated for groups of queries' heads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod
from typing import Final, TypeGuard

import attrs

from webnn_py.device.on_wgpu.passes.elementwise_fusion import ElementwiseFusion
from webnn_py.device.on_wgpu.records.attention import Attention, AttentionOperand
from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.table import entry_of
from webnn_py.device.on_wgpu.records.variants import KernelVariant
from webnn_py.graph import Graph, Node, Output, Value
from webnn_py.operators import activation, conversion, logical, matrix, movement

FLOATS: Final = {"float32", "float16"}

FEW_ROWS: Final = 8
"""With so few queries, a copy of the keys takes as long as all else."""


@attrs.frozen
class _Probabilities:
    """What the second product reads, back to the softmax."""

    softmax: Node
    dead: Node | None
    is_never_nan: bool
    nodes: tuple[Node, ...]


@attrs.frozen
class _Scores:
    """What the softmax reads, back to the first product."""

    value: Value
    product: Node
    last: Node | None
    nodes: tuple[Node, ...]


class AttentionFusion:
    """Looks for attention in a graph.

    Args:
        fusion: its element-wise nodes.
        written: values that have to be written to memory, whatever reads them.
        is_worth: whether to compute this in one kernel.
    """

    def __init__(
        self, fusion: ElementwiseFusion, written: Collection[Value], is_worth: Callable[[Attention], bool]
    ) -> None:
        self._fusion = fusion
        self._written = written
        self._is_worth = is_worth
        self._nodes: Collection[Node] = ()

    def find(self, graph: Graph) -> dict[Node, Attention]:
        """All there is, by its last product."""
        self._nodes = set(graph.nodes)
        found = [self._attention(node) for node in graph.nodes if node.operator is matrix.matmul]
        return {attention.product: attention for attention in found if attention is not None}

    def _attention(self, product: Node) -> Attention | None:
        left, right = product.inputs
        behind = self._probabilities(left)
        front = None if behind is None else self._scores(behind.softmax)
        if behind is None or front is None:
            return None
        queries, keys = front.product.inputs
        batch, value_batch = front.product.outputs[0].shape[:-2], product.outputs[0].shape[:-2]
        if not prod(batch) == prod(value_batch) == prod(behind.softmax.outputs[0].shape[:-2]):
            return None
        key_operand, key_nodes = self._operand(keys, batch, is_transposed=True)
        value_operand, value_nodes = self._operand(right, value_batch, is_transposed=False)
        nodes = (front.product, *key_nodes, *value_nodes, *front.nodes, behind.softmax, *behind.nodes)
        attention = Attention(
            AttentionOperand(queries, batch, is_transposed=False),
            key_operand,
            value_operand,
            front.value,
            front.last,
            self._terms(front),
            behind.softmax,
            behind.dead,
            behind.is_never_nan,
            product,
            nodes,
        )
        is_worth = self._is_worth(attention) and self._lies_well(attention)
        return attention if is_worth and KernelVariant.ATTENTION_FUSION.is_on else None

    def _lies_well(self, attention: Attention) -> bool:
        """Whether keys and values need no copy, or are read so often that a copy is worth it."""
        is_read_often = attention.queries.size[0] > FEW_ROWS
        return is_read_often or (lies_along_rows(attention.keys) and lies_along_rows(attention.values))

    def _is_computed(self, value: Value) -> TypeGuard[Output]:
        """Whether the graph computes a value; one that depends on constants only is there before."""
        return isinstance(value, Output) and value.node in self._nodes

    def _is_own(self, value: Value) -> bool:
        """Whether one node alone reads a value."""
        return value not in self._written and len(self._fusion.nodes_reading(value)) == 1

    # --- behind the softmax ----------------------------------------------------------------------------------

    def _probabilities(self, value: Value) -> _Probabilities | None:
        nodes: list[Node] = []
        dead: Node | None = None
        is_never_nan = False
        readers: set[Node] | None = None
        while self._is_computed(value) and (self._is_own(value) if readers is None else self._is_of(value, readers)):
            node, readers = value.node, None
            if node.operator is activation.softmax:
                is_last = node.options["axis"] == len(node.outputs[0].shape) - 1
                return _Probabilities(node, dead, is_never_nan, tuple(nodes)) if is_last else None
            if node.operator is logical.where and dead is None and not is_never_nan:
                condition, zero, value = node.inputs
                if constant_scalar(zero) != 0 or value.descriptor.shape != node.outputs[0].shape:
                    return None
                if self._is_of_rows(condition, node):
                    dead = node
                elif isinstance(condition, Output) and self._is_own(condition) and tells_nan(condition.node, value):
                    is_never_nan, readers = True, {node, condition.node}
                    nodes.append(condition.node)
                else:
                    return None
            elif keeps_matrices(node) or (node.operator is conversion.cast and is_float(node)):
                (value,) = node.inputs
            else:
                return None
            nodes.append(node)
        return None

    def _is_of(self, value: Value, readers: set[Node]) -> bool:
        """Whether these nodes alone read a value."""
        return value not in self._written and set(self._fusion.nodes_reading(value)) <= readers

    def _is_of_rows(self, condition: Value, node: Node) -> bool:
        """Whether a condition says the same of all elements of a row, and lies ready."""
        shape = condition.descriptor.shape
        is_same = (not shape or shape[-1] == 1) and node.outputs[0].shape[-1] > 1
        return is_same and not self._fusion.is_inlined(condition)

    # --- in front of it --------------------------------------------------------------------------------------

    def _scores(self, softmax: Node) -> _Scores | None:
        (value,) = softmax.inputs
        if not self._is_computed(value) or not self._is_own(value):
            return None
        if value.node not in self._fusion.deferred:
            return self._first_product(value, None, {softmax})
        within = self._within(value.node)
        for leaf in dict.fromkeys(item for node in within for item in node.inputs):
            is_whole = leaf.descriptor.shape == value.descriptor.shape and leaf not in self._written
            if is_whole and not self._fusion.is_inlined(leaf) and within.issuperset(self._fusion.nodes_reading(leaf)):
                found = self._first_product(leaf, value.node, within)
                if found is not None:
                    return found
        return None

    def _within(self, last: Node) -> set[Node]:
        """An element-wise node, and those that are fused into it."""
        nodes: set[Node] = set()
        stack = [last]
        while stack:
            node = stack.pop()
            if node not in nodes:
                nodes.add(node)
                stack += [item.node for item in node.inputs if self._fusion.is_inlined(item)]
        return nodes

    def _first_product(self, value: Value, last: Node | None, readers: Collection[Node]) -> _Scores | None:
        nodes = () if last is None else (last,)
        scores = value
        while self._is_computed(value) and value not in self._written:
            node = value.node
            if node.operator is matrix.matmul:
                return _Scores(scores, node, last, nodes)
            if not keeps_matrices(node) or not set(self._fusion.nodes_reading(value)) <= set(readers):
                return None
            nodes = (node, *nodes)
            readers = {node}
            (value,) = node.inputs
            if not self._is_own(value):
                return None
        return None

    def _terms(self, scores: _Scores) -> int:
        """How many buffers the element-wise nodes read."""
        within = set() if scores.last is None else self._within(scores.last)
        read = {item for node in within for item in node.inputs if not self._fusion.is_inlined(item)}
        return sum(constant_scalar(item) is None for item in read - {scores.value})

    # --- keys and values -------------------------------------------------------------------------------------

    def _operand(
        self, value: Value, batch: tuple[int, ...], *, is_transposed: bool
    ) -> tuple[AttentionOperand, list[Node]]:
        """A side of a product; heads that are repeated for a group are read from where they lie once."""
        nodes: list[Node] = []
        current, is_turned = value, is_transposed
        while self._is_computed(current) and self._is_own(current):
            node = current.node
            operand, *others = node.inputs
            if others:
                break
            nodes.append(node)
            if repeats_matrices(node) and prod(node.outputs[0].shape[:-2]) == prod(batch):
                return AttentionOperand(operand, node.outputs[0].shape[:-2], is_turned), nodes
            if turns_matrices(node):
                is_turned = not is_turned
            elif not keeps_matrices(node):
                break
            current = operand
        return AttentionOperand(value, batch, is_transposed), []


def is_float(node: Node) -> bool:
    """Whether a node makes floats of floats."""
    return {node.outputs[0].data_type, *(value.descriptor.data_type for value in node.inputs)} <= FLOATS


def tells_nan(node: Node, value: Value) -> bool:
    """Whether a node says where a value is NaN."""
    return node.operator is logical.is_nan and next(iter(node.inputs)) is value


def keeps_matrices(node: Node) -> bool:
    """Whether a node reshapes, and not the last two axes."""
    before = next(iter(node.inputs)).descriptor.shape if node.operator is movement.reshape else ()
    return len(before) > 1 and before[-2:] == node.outputs[0].shape[-2:]


def repeats_matrices(node: Node) -> bool:
    """Whether a node repeats matrices as a whole."""
    before = next(iter(node.inputs)).descriptor.shape
    return node.operator is movement.expand and before[-2:] == node.outputs[0].shape[-2:]


def turns_matrices(node: Node) -> bool:
    """Whether a node exchanges the last two axes, and no others."""
    if node.operator is not movement.transpose:
        return False
    rank = len(node.outputs[0].shape)
    permutation = node.options["permutation"]
    permutation = tuple(reversed(range(rank)) if permutation is None else permutation)
    return rank > 1 and permutation == (*range(rank - 2), rank - 1, rank - 2)


def lies_along_rows(operand: AttentionOperand) -> bool:
    """Whether elements of a row will lie side by side, as far as the graph tells."""
    return _layout(operand.value).strides[-2 if operand.is_transposed else -1] == 1


def _layout(value: Value) -> Layout:
    """How a value lies if what it is a view of lies dense."""
    dense = Layout.dense(value.descriptor.shape)
    rule = entry_of(value.node).layout if isinstance(value, Output) else None
    if rule is None:
        return dense
    assert isinstance(value, Output)  # noqa: S101 - what has a rule has a node
    layout = rule(value.node, _layout(next(iter(value.node.inputs))))
    if layout is None:
        return dense
    return layout if isinstance(layout, Layout) else layout[value.index]
