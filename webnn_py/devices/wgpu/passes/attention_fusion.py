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

from webnn_py.core.graph import Node, Output, Value
from webnn_py.core.operators import activation, conversion, logical, matrix, movement
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, fused_into, place_of
from webnn_py.devices.wgpu.passes.kernel_groups import KernelGroups
from webnn_py.devices.wgpu.records.attention import Attention, AttentionOperand
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.table import entry_of

ATTENTION_FUSION: Final = "attention-fusion"

FLOATS: Final = {"float32", "float16"}

FEW_ROWS: Final = 8
"""With so few queries, a copy of the keys takes as long as all else."""


@attrs.frozen
class _Probabilities:
    """The nodes from the softmax to the second product."""

    softmax: Node
    dead: Node | None
    is_never_nan: bool
    nodes: tuple[Node, ...]


@attrs.frozen
class _Scores:
    """The nodes from the first product to the softmax."""

    value: Value
    product: Node
    last: Node | None
    nodes: tuple[Node, ...]


def fuse_attention(
    groups: KernelGroups, context: PassContext, *, can_emit: Callable[[Attention, Features], bool]
) -> KernelGroups:
    """Return the groups with each attention in the kernel of its last product.

    Args:
        groups: the groups, those of element-wise nodes fused.
        context: records what was fused.
        can_emit: returns whether there is a kernel for an attention.
    """
    search = AttentionSearch(groups)
    found: dict[Node, Attention] = {}
    for product in groups.graph.nodes:
        attention = search.attention(product) if product.operator is matrix.matmul else None
        if attention is None:
            continue
        if isinstance(attention, str):
            reason = attention
        elif not can_emit(attention, groups.features):
            reason = "no kernel is made for its sizes and operands"
        elif not _needs_no_copy(attention):
            reason = "keys or values would be copied for a few queries"
        else:
            found[product] = attention
            context.applied.append(AppliedRule(ATTENTION_FUSION, fused_into(attention.nodes, product)))
            continue
        context.refused.append(RefusedRule(ATTENTION_FUSION, place_of(product), reason))
    return attrs.evolve(groups, attentions=found) if found else groups


def _needs_no_copy(attention: Attention) -> bool:
    """Return whether keys and values need no copy, or are read so often that a copy is worth it."""
    is_read_often = attention.queries.size[0] > FEW_ROWS
    return is_read_often or (lies_along_rows(attention.keys) and lies_along_rows(attention.values))


class AttentionSearch:
    """Looks for attention in a graph.

    Args:
        groups: its nodes, those of element-wise nodes fused.
    """

    def __init__(self, groups: KernelGroups) -> None:
        self._groups = groups.elementwise
        self._written = groups.written
        self._nodes = set(groups.graph.nodes)

    def attention(self, product: Node) -> Attention | str | None:
        """Return the attention that ends in a product.

        Returns:
            The attention; the reason where a softmax is not part of one; None where no softmax is near.
        """
        left, right = product.inputs
        behind = self._probabilities(left)
        if behind is None:
            return None
        front = self._scores(behind.softmax)
        if front is None:
            return "its scores are no product that is read once"
        queries, keys = front.product.inputs
        batch, value_batch = front.product.outputs[0].shape[:-2], product.outputs[0].shape[:-2]
        if not prod(batch) == prod(value_batch) == prod(behind.softmax.outputs[0].shape[:-2]):
            return "its products have other batches"
        key_operand, key_nodes = self._operand(keys, batch, is_transposed=True)
        value_operand, value_nodes = self._operand(right, value_batch, is_transposed=False)
        return Attention(
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
            (front.product, *key_nodes, *value_nodes, *front.nodes, behind.softmax, *behind.nodes),
        )

    def _is_computed(self, value: Value) -> TypeGuard[Output]:
        """Return whether the graph computes a value; one that depends on constants only is there before."""
        return isinstance(value, Output) and value.node in self._nodes

    def _is_own(self, value: Value) -> bool:
        """Return whether one node alone reads a value."""
        return value not in self._written and len(self._groups.nodes_reading(value)) == 1

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
        """Return whether these nodes alone read a value."""
        return value not in self._written and set(self._groups.nodes_reading(value)) <= readers

    def _is_of_rows(self, condition: Value, node: Node) -> bool:
        """Return whether a condition is the same for all elements of a row, and in memory."""
        shape = condition.descriptor.shape
        is_same = (not shape or shape[-1] == 1) and node.outputs[0].shape[-1] > 1
        return is_same and not self._groups.is_inlined(condition)

    # --- in front of it --------------------------------------------------------------------------------------

    def _scores(self, softmax: Node) -> _Scores | None:
        (value,) = softmax.inputs
        if not self._is_computed(value) or not self._is_own(value):
            return None
        if value.node not in self._groups.deferred:
            return self._first_product(value, None, {softmax})
        within = set(self._groups.within(value.node))
        for leaf in dict.fromkeys(item for node in within for item in node.inputs):
            is_whole = leaf.descriptor.shape == value.descriptor.shape and leaf not in self._written
            if is_whole and not self._groups.is_inlined(leaf) and within.issuperset(self._groups.nodes_reading(leaf)):
                found = self._first_product(leaf, value.node, within)
                if found is not None:
                    return found
        return None

    def _first_product(self, value: Value, last: Node | None, readers: Collection[Node]) -> _Scores | None:
        nodes = () if last is None else (last,)
        scores = value
        while self._is_computed(value) and value not in self._written:
            node = value.node
            if node.operator is matrix.matmul:
                return _Scores(scores, node, last, nodes)
            if not keeps_matrices(node) or not set(self._groups.nodes_reading(value)) <= set(readers):
                return None
            nodes = (node, *nodes)
            readers = {node}
            (value,) = node.inputs
            if not self._is_own(value):
                return None
        return None

    def _terms(self, scores: _Scores) -> int:
        """Return the number of buffers that the element-wise nodes read."""
        within = [] if scores.last is None else self._groups.within(scores.last)
        read = {item for node in within for item in node.inputs if not self._groups.is_inlined(item)}
        return sum(constant_scalar(item) is None for item in read - {scores.value})

    # --- keys and values -------------------------------------------------------------------------------------

    def _operand(
        self, value: Value, batch: tuple[int, ...], *, is_transposed: bool
    ) -> tuple[AttentionOperand, list[Node]]:
        """Return a side of a product; heads that are repeated for a group are read from their one place."""
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
    """Return whether a node makes floats of floats."""
    return {node.outputs[0].data_type, *(value.descriptor.data_type for value in node.inputs)} <= FLOATS


def tells_nan(node: Node, value: Value) -> bool:
    """Return whether a node says where a value is NaN."""
    return node.operator is logical.is_nan and next(iter(node.inputs)) is value


def keeps_matrices(node: Node) -> bool:
    """Return whether a node reshapes, and not the last two axes."""
    before = next(iter(node.inputs)).descriptor.shape if node.operator is movement.reshape else ()
    return len(before) > 1 and before[-2:] == node.outputs[0].shape[-2:]


def repeats_matrices(node: Node) -> bool:
    """Return whether a node repeats matrices as a whole."""
    before = next(iter(node.inputs)).descriptor.shape
    return node.operator is movement.expand and before[-2:] == node.outputs[0].shape[-2:]


def turns_matrices(node: Node) -> bool:
    """Return whether a node exchanges the last two axes, and no others."""
    if node.operator is not movement.transpose:
        return False
    rank = len(node.outputs[0].shape)
    permutation = node.options["permutation"]
    permutation = tuple(reversed(range(rank)) if permutation is None else permutation)
    return rank > 1 and permutation == (*range(rank - 2), rank - 1, rank - 2)


def lies_along_rows(operand: AttentionOperand) -> bool:
    """Return whether elements of a row will be adjacent in memory, as far as the graph shows."""
    return _layout(operand.value).strides[-2 if operand.is_transposed else -1] == 1


def _layout(value: Value) -> Layout:
    """Return the layout of a value if the value that it is a view of is dense."""
    dense = Layout.dense(value.descriptor.shape)
    rule = entry_of(value.node).layout if isinstance(value, Output) else None
    if rule is None:
        return dense
    assert isinstance(value, Output)  # noqa: S101 - what has a rule has a node
    layout = rule(value.node, _layout(next(iter(value.node.inputs))))
    if layout is None:
        return dense
    return layout if isinstance(layout, Layout) else layout[value.index]
