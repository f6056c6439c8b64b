"""Element-wise fusion: neighbours run tile by tile, so that what lies between them stays in cache.

Over a large array each operator by itself reads and writes all of memory. A group takes a tile of every operand through
all its operators before the next tile, so that memory is read once for each operand of the group and written once for
each result that somebody else needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.scratch import in_turn, scratch
from webnn_py.device.on_numpy.table import Array, DispatchError, Kernel, entry_of
from webnn_py.device.plan import lay_out, lifetimes
from webnn_py.graph import Node, Value

TILE_BYTES = 512 * 1024
"""What the arrays of one tile may take together: within a second-level cache, with room for kernels' own scratch."""

WORTH_TILING = 2**18
"""Elements below which an array fits into cache as a whole."""


@attrs.frozen(eq=False)
class FusionGroup:
    """Element-wise nodes of one output shape, in an order in which they can run.

    Attributes:
        nodes: the nodes.
        operands: the values that come from outside.
        results: the values that somebody outside reads.
    """

    nodes: tuple[Node, ...]
    operands: tuple[Value, ...]
    results: tuple[Value, ...]

    def between(self) -> Iterator[Value]:
        """The values that nobody outside reads."""
        results = set(self.results)
        return (value for node in self.nodes for value in node.results if value not in results)


Step = tuple[Node] | FusionGroup
"""What runs in one step: a node by itself, or a fusion group."""


def nodes_of(step: Step) -> tuple[Node, ...]:
    """The nodes that run in a step."""
    return step.nodes if isinstance(step, FusionGroup) else step


def steps_of(nodes: Sequence[Node], outputs: Sequence[Value], is_dense: Callable[[Value], bool]) -> list[Step]:
    """The nodes one by one, but neighbours that can be taken tile by tile as fusion groups.

    Args:
        nodes: all nodes, in the order in which they run.
        outputs: values that are read after the last node.
        is_dense: whether a value's elements lie in row-major order without gaps.
    """
    readers: dict[Value, set[Node | None]] = {}
    for node in nodes:
        for value in node.inputs:
            readers.setdefault(value, set()).add(node)
    for value in outputs:
        readers.setdefault(value, set()).add(None)
    steps: list[Step] = []
    for shape, run in groupby(nodes, lambda node: _tileable_shape(node, is_dense)):
        members = tuple(run)
        if shape is None or len(members) == 1:
            steps.extend((node,) for node in members)
        else:
            steps.append(_group(members, readers))
    return steps


def _group(members: tuple[Node, ...], readers: Mapping[Value, set[Node | None]]) -> FusionGroup:
    inside = set(members)
    made = dict.fromkeys(value for node in members for value in node.results)
    operands = dict.fromkeys(value for node in members for value in node.inputs if value not in made)
    results = tuple(value for value in made if not readers.get(value, set()) <= inside)
    return FusionGroup(members, tuple(operands), results)


def fuses(node: Node) -> bool:
    """Whether a node can be part of a group: it is element-wise, and not a mere view, which takes no step at all."""
    return node.operator.is_elementwise and entry_of(node).view is None


def _tileable_shape(node: Node, is_dense: Callable[[Value], bool]) -> tuple[int, ...] | None:
    """The shape of an element-wise node's only output, if it is large and no operand is broadcast but single ones."""
    if not fuses(node):
        return None
    output = node.outputs[0]
    fits = all(
        (value.descriptor.shape == output.shape and is_dense(value)) or value.descriptor.element_count == 1
        for value in node.inputs
    )
    return output.shape if fits and output.element_count >= WORTH_TILING else None


def fused_kernel(group: FusionGroup) -> Kernel:
    """A function of the group's operands, then results, as whole arrays."""
    count = group.nodes[0].outputs[0].element_count
    length = tile_length(group, count)
    with in_turn():
        whole = FusedTile(group, length)
    with in_turn():
        rest = FusedTile(group, count % length) if count % length else None
    single = [value.descriptor.element_count == 1 for value in group.operands]

    def run(*arrays: Array) -> None:
        flat = [array.reshape(-1) for array in arrays]
        spans = [not alone for alone in single] + [True] * len(group.results)
        for start in range(0, count, length):
            tile = whole if start + length <= count else rest
            assert tile is not None  # noqa: S101 - there is a rest where a whole tile does not fit
            end = min(start + length, count)
            tile.run([array[start:end] if span else array for array, span in zip(flat, spans, strict=True)])

    return run


def tile_length(group: FusionGroup, count: int) -> int:
    """The elements of a tile: as many as keep operands, results and what lies between them in cache."""
    spans = [value.descriptor for value in (*group.operands, *group.results) if value.descriptor.element_count > 1]
    sizes = [np.dtype(descriptor.data_type).itemsize for descriptor in spans] or [1]
    between = min(sum(1 for _ in group.between()), 3)
    return min(count, max(1024, TILE_BYTES // (sum(sizes) + max(sizes) * between)))


class FusedTile:
    """The group's kernels for tiles of one length, and their intermediates."""

    def __init__(self, group: FusionGroup, length: int) -> None:
        stand_ins: dict[Value, Value] = {}
        nodes = [_shrunk(node, length, stand_ins) for node in group.nodes]
        outside = [stand_ins[value] for value in (*group.operands, *group.results)]
        kept = set(outside)
        arena = lay_out(lifetimes([[node] for node in nodes], {}, outside, lambda value: value in kept))
        memory = scratch(arena.byte_length, np.uint8)
        slots: dict[Value, int] = {value: index for index, value in enumerate(outside)}
        self._between: list[Array] = []
        for value, offset in arena.offsets.items():
            slots[value] = len(slots)
            descriptor = value.descriptor
            self._between.append(np.ndarray(descriptor.shape, descriptor.data_type, memory, offset))
        self._steps: list[tuple[Kernel, Callable[[list[Array]], tuple[Array, ...]], Node]] = []
        for node, original in zip(nodes, group.nodes, strict=True):
            with in_turn():
                kernel = entry_of(node).make(node)
            self._steps.append((kernel, itemgetter(*_slots_of(node, slots)), original))

    def run(self, outside: list[Array]) -> None:
        """Compute one tile: ``outside`` are the operands', then the results' parts.

        Raises:
            DispatchError: a kernel raised.
        """
        arrays = outside + self._between
        for kernel, pick, node in self._steps:
            try:
                kernel(*pick(arrays))
            except Exception as error:
                raise DispatchError.of(node, error) from error


def _slots_of(node: Node, slots: Mapping[Value, int]) -> list[int]:
    return [slots[value] for value in (*node.inputs, *node.results)]


def _shrunk(node: Node, length: int, stand_ins: dict[Value, Value]) -> Node:
    """The same node on one-dimensional operands of ``length`` elements, or of one."""

    def shrink(value: Value) -> Value:
        if value not in stand_ins:
            size = 1 if value.descriptor.element_count == 1 else length
            stand_ins[value] = Value(MLOperandDescriptor(value.descriptor.data_type, (size,)))
        return stand_ins[value]

    operands = {
        name: tuple(map(shrink, value)) if isinstance(value, tuple) else shrink(value)
        for name, value in node.operands.items()
    }
    outputs = tuple(MLOperandDescriptor(output.data_type, (length,)) for output in node.outputs)
    small = Node(node.operator, operands, node.options, outputs, node.label)
    stand_ins.update(zip(node.results, small.results, strict=True))
    return small
