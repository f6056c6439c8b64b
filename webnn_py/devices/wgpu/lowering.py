"""Lowering of a graph to kernels: the memory of values, the nodes of each kernel, and the order of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeGuard

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Node, Output, Value
from webnn_py.core.operators import movement
from webnn_py.devices.kernel_nodes import remembered
from webnn_py.devices.rewriting.passes import GroupingPass, HasNodes, PassContext, PassManager
from webnn_py.devices.rewriting.report import AppliedRule, PassReport, RefusedRule, fused_into
from webnn_py.devices.shared_constants import Identity
from webnn_py.devices.wgpu.codegen.attention.emit import can_emit, emit_attention
from webnn_py.devices.wgpu.codegen.copies import copy_kernel, is_exchanged
from webnn_py.devices.wgpu.codegen.elementwise import emit_elementwise
from webnn_py.devices.wgpu.passes.attention_fusion import ATTENTION_FUSION, fuse_attention
from webnn_py.devices.wgpu.passes.computed_sides import COMPUTED_SIDES, compute_sides
from webnn_py.devices.wgpu.passes.elementwise_fusion import ELEMENTWISE_FUSION, fuse_elementwise
from webnn_py.devices.wgpu.passes.kernel_groups import KernelGroups
from webnn_py.devices.wgpu.records.buffer import Buffer, Place
from webnn_py.devices.wgpu.records.element import Element
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.layout import Layout, dense_strides
from webnn_py.devices.wgpu.records.left_to_readers import ComputedSide, PartialSums
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import WgslEntry, entry_of
from webnn_py.devices.wgpu.records.variants import KernelVariant


@attrs.frozen
class LoweringContext(PassContext):
    """Facts that the walk over a graph may use.

    Attributes:
        known: where values are that were computed before.
        identity_of: returns the identity of a constant.
        begin: called with each kernel that runs with the graph, which may begin to compile it.
    """

    known: Mapping[Value, Buffer] = attrs.field(factory=dict)
    identity_of: Callable[[Value], Identity | None] = lambda _value: None
    begin: Callable[[Kernel], object] = lambda _kernel: None


@attrs.frozen
class KernelSequence:
    """The kernels of a graph.

    Attributes:
        nodes: the kernels of each run, in order.
        prologue: the kernels that make other forms of constants, once; not all of these forms are needed.
    """

    nodes: Sequence[Kernel]
    prologue: Sequence[Kernel]


class GraphLowering(Lowering):
    """The walk over a graph that turns its nodes into kernels, one after the other.

    Args:
        groups: the nodes, grouped by kernel.
        context: what it may use.
    """

    def __init__(self, groups: KernelGroups, context: LoweringContext) -> None:
        self.features = groups.features
        self.kernels: list[Kernel] = []
        self.prologue: list[Kernel] = []
        self._graph = groups.graph
        self._context = context
        self._repacked: dict[Place, Buffer] = {}
        self._places: dict[Value, Place] = {}
        self._left: dict[Value, PartialSums] = {}
        self._output_buffers = groups.written
        self._elementwise = groups.elementwise.copy()
        self._attentions = groups.attentions
        self._sides = groups.sides
        self._done = set(groups.taken)
        self._fused: list[Node] = []  # into the kernels that are being written
        self._written: list[int] = []  # the numbers of these kernels
        self._turn: Node | None = None  # the node that is being lowered
        for name, graph_input in groups.graph.inputs.items():
            buffer = Buffer("input", graph_input.descriptor.byte_length, name)
            self._places[graph_input] = Place(buffer, Layout.dense(graph_input.descriptor.shape))

    # --- what kernel writers use, as the protocol says -------------------------------------------------------

    def place(self, value: Value) -> Place:
        if isinstance(value, Output) and value in self._left:
            sums = self._left.pop(value)
            with self._kernels_of(value.node):
                sums.add_up()
        if value not in self._places:
            node = self.deferred(value)
            if node is None:
                self._places[value] = Place(self._constant(value), Layout.dense(value.descriptor.shape))
            else:
                self._refuse_operand(node)
                with self._kernels_of(node):
                    emit_elementwise(self, node)
        return self._places[value]

    def _refuse_operand(self, node: Node) -> None:
        """Record that the kernel that reads a node's result does not compute it."""
        if KernelVariant.OPERAND_FUSION.is_on:
            (reader,) = self._elementwise.nodes_reading(node.results[0])
            where, reason = fused_into([node], reader), "too many buffers, or elements of four bits"
            self._context.refused.append(RefusedRule(KernelVariant.OPERAND_FUSION, where, reason))

    def dense(self, value: Value) -> Buffer:
        place = self.place(value)
        if not place.layout.is_dense:
            target = Buffer("block", value.descriptor.byte_length)
            self._copy(place, target, value, value.descriptor)
            place = Place(target, place.layout)
        # Also where nothing was copied: strides of axes of size 1 may be anything so far.
        self._places[value] = Place(place.buffer, Layout.dense(value.descriptor.shape))
        return place.buffer

    def near(self, value: Value) -> Place:
        if is_exchanged(self.place(value).layout):
            self.dense(value)
        return self.place(value)

    def target(self, value: Value) -> Buffer:
        buffer = self._output_buffers.get(value)
        if buffer is None or value in self._places:
            buffer = Buffer("block", value.descriptor.byte_length)
        self._places[value] = Place(buffer, Layout.dense(value.descriptor.shape))
        return buffer

    def transposed_target(self, value: Value) -> Place:
        found = self._transposed(value)
        if found is None:
            return Place(self.target(value), Layout.dense(value.descriptor.shape))
        layout, transposed = found
        place = self._places[value] = Place(self.target(transposed), layout)
        return place

    def _transposed(self, value: Value) -> tuple[Layout, Value] | None:
        """Return the layout of a value whose transposition is dense, and the transposition; None if it has no use."""
        readers = self._elementwise.nodes_reading(value)
        if value in self._output_buffers or len(readers) != 1 or readers[0].operator is not movement.transpose:
            return None
        permutation, transposed = readers[0].options["permutation"], readers[0].results[0]
        dense = Layout.dense(value.descriptor.shape)
        if permutation is None or not self._needs_copy(transposed, dense.permute(permutation)):
            return None
        strides = dict(zip(permutation, dense_strides(transposed.descriptor.shape), strict=True))
        layout = Layout(value.descriptor.shape, tuple(strides[axis] for axis in range(len(strides))))
        return (layout, transposed) if layout.vec4s() is not None and KernelVariant.TRANSPOSED_STORE.is_on else None

    def _needs_copy(self, value: Value, layout: Layout) -> bool:
        """Return whether a value in a layout has to be copied, as an output or for a view that no layout describes."""
        if layout.is_dense:
            return False
        views = [(node, entry_of(node).layout) for node in self._elementwise.nodes_reading(value)]
        return value in self._output_buffers or any(rule and rule(node, layout) is None for node, rule in views)

    def emit(self, kernel: Kernel) -> None:
        count = len(self.kernels)
        self._emit(kernel)
        self._written += range(count, len(self.kernels))

    def _emit(self, kernel: Kernel) -> None:
        makes_constants = all(buffer.kind == "constant" for buffer in kernel.writes)
        if makes_constants:
            self.prologue.append(kernel)  # not all of these are needed
            return
        self.kernels.append(kernel)
        self._context.begin(kernel)

    def _copy(self, place: Place, target: Buffer, value: Value, descriptor: MLOperandDescriptor) -> None:
        """Copy a value; a picture shows it as a part of what makes the value or, of an input, of what reads it."""
        made = value.node.drawn if isinstance(value, Output) else ()
        drawn = made or (() if self._turn is None else self._turn.drawn)
        self._emit(attrs.evolve(copy_kernel(place, target, descriptor), drawn=drawn))

    @contextmanager
    def _kernels_of(self, node: Node) -> Iterator[None]:
        """Record that the kernels emitted in the context, copies excepted, compute a node and those fused into it."""
        around = self._fused, self._written
        self._fused, self._written = [node], []
        yield
        fused = node.operands.get(entry_of(node).fuses or "")
        if isinstance(fused, Output) and (self.deferred(fused) or fused in self._left):
            name = KernelVariant.PARTIAL_SUMS if fused in self._left else KernelVariant.OPERAND_FUSION
            where = fused_into(self._elementwise.within(fused.node), node)
            self._context.applied.append(AppliedRule(name, where))
            self._fused.insert(0, fused.node)
        kernels = [self.kernels[index] for index in self._written]
        nodes = self._elementwise.within(*self._fused)
        for index, kernel in zip(self._written, with_nodes(kernels, nodes), strict=True):
            self.kernels[index] = kernel
        self._fused, self._written = around

    def element(self, value: Value) -> Element:
        return self.features.element(value.descriptor.data_type)

    def repacked(self, value: Value, layout: Layout) -> Buffer:
        place = Place(self.place(value).buffer, layout)
        if layout.is_dense:
            return place.buffer
        if place in self._repacked:
            return self._repacked[place]
        target = self._repacked[place] = self.derived(place.buffer, value.descriptor.byte_length)
        self._copy(place, target, value, MLOperandDescriptor(value.descriptor.data_type, layout.shape))
        return target

    def derived(self, source: Buffer, byte_length: int) -> Buffer:
        return Buffer("constant" if source.kind == "constant" else "block", byte_length)

    def epilogue(self, value: Value, spare_buffers: int) -> Node | None:
        if not isinstance(value, Output):
            return None
        node = self._elementwise.take_epilogue(value, self._context, self._is_ready, spare_buffers)
        if node is not None:
            self._done.add(node)
            self._fused.append(node)
        return node

    def _is_ready(self, value: Value) -> bool:
        return value in self._places or value in self._context.known or isinstance(value, Constant)

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        return self._elementwise.is_inlined(value)

    def computed_side(self, value: Value) -> ComputedSide | None:
        return self._sides.get(value)

    def deferred(self, value: Value) -> Node | None:
        if isinstance(value, Output) and value.node in self._elementwise.deferred and value not in self._places:
            return value.node
        return None

    def leave(self, value: Output, sums: PartialSums) -> bool:
        if value.node not in self._elementwise.deferred or not KernelVariant.PARTIAL_SUMS.is_on:
            return False
        self._left[value] = sums
        self._fused.remove(value.node)
        return True

    def left(self, value: Value) -> PartialSums | None:
        return self._left.get(value)

    # --- the walk --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Lower every node, then copy the outputs that no kernel wrote straight into place."""
        for node in self._graph.nodes:
            entry, self._turn = entry_of(node), node
            if node in self._elementwise.inlined or node in self._elementwise.deferred or node in self._done:
                continue  # it gets a kernel when its reader asks for one, if at all
            if self._lower_view(node, entry):
                continue
            with self._kernels_of(node):
                self._fused[:0] = [
                    item for value in node.inputs if value in self._sides for item in self._sides[value].nodes
                ]
                if node in self._attentions:
                    self._fused[:0] = self._attentions[node].nodes
                    emit_attention(self, self._attentions[node])
                elif entry.expression is not None:
                    emit_elementwise(self, node)
                elif entry.kernels is not None:
                    entry.kernels(node, self)
                else:
                    raise NotImplementedError(f"{node} has no WGSL kernel")
        for name, value in self._graph.outputs.items():
            place = self.place(value)
            if place.buffer.kind != "output" or place.buffer.name != name:
                descriptor = value.descriptor
                self._copy(place, Buffer("output", descriptor.byte_length, name), value, descriptor)

    def _lower_view(self, node: Node, entry: WgslEntry) -> bool:
        if entry.layout is None:
            return False
        operand = next(iter(node.inputs))
        layouts = entry.layout(node, self.place(operand).layout)
        if layouts is None:
            if entry.kernels is not None:
                return False
            self.dense(operand)
            layouts = entry.layout(node, Layout.dense(operand.descriptor.shape))
            assert layouts is not None  # noqa: S101 - every view can be said of a dense operand
        buffer = self.place(operand).buffer
        views = [layouts] if isinstance(layouts, Layout) else layouts
        for result, layout in zip(node.results, views, strict=True):
            self._places[result] = Place(buffer, layout)
        return True

    def _constant(self, value: Value) -> Buffer:
        if value in self._context.known:
            return self._context.known[value]
        if not isinstance(value, Constant):
            raise KeyError(f"no kernel has written {value}")
        return Buffer(
            "constant", value.descriptor.byte_length, data=value.data, identity=self._context.identity_of(value)
        )


def with_nodes(kernels: Sequence[Kernel], nodes: Sequence[Node]) -> list[Kernel]:
    """Return the kernels that compute some nodes, each with all of them; only the largest counts their operations."""
    records = remembered(nodes)
    other = tuple(attrs.evolve(node, flops=0) for node in records)
    largest = max(kernels, key=lambda kernel: kernel.bytes_moved, default=None)
    drawn = tuple(sorted({place for node in nodes for place in node.drawn}))
    return [attrs.evolve(kernel, nodes=records if kernel is largest else other, drawn=drawn) for kernel in kernels]


def lower(groups: KernelGroups, context: LoweringContext) -> KernelSequence:
    """Return the kernels of a graph."""
    lowering = GraphLowering(groups, context)
    lowering.run()
    return KernelSequence(lowering.kernels, lowering.prologue)


KERNEL_PASSES: Final = PassManager(
    GroupingPass(name=ELEMENTWISE_FUSION, run=fuse_elementwise),
    GroupingPass(name=ATTENTION_FUSION, run=partial(fuse_attention, can_emit=can_emit), after=(ELEMENTWISE_FUSION,)),
    GroupingPass(name=COMPUTED_SIDES, run=compute_sides, after=(ATTENTION_FUSION,)),
    GroupingPass(name="lowering", run=lower, after=(COMPUTED_SIDES,), counts="kernels", is_required=True),
    GroupingPass(name=KernelVariant.EPILOGUE_FUSION, run=lower, counts="kernels"),
    GroupingPass(name=KernelVariant.OPERAND_FUSION, run=lower, counts="kernels"),
    GroupingPass(name=KernelVariant.PARTIAL_SUMS, run=lower, counts="kernels"),
)
"""The passes that decide which nodes one kernel computes. The walk that writes kernels takes the decisions of four."""


def lowered(groups: KernelGroups, context: LoweringContext) -> tuple[KernelSequence, tuple[PassReport, ...]]:
    """Return the kernels of a graph, and a report of the passes."""
    grouping: HasNodes = groups
    kernels, reports = KERNEL_PASSES.run(grouping, context)
    assert isinstance(kernels, KernelSequence)  # noqa: S101 - the required pass makes it
    return kernels, reports
