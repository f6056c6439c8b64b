"""From a graph to kernels: which values lie where, which nodes become one kernel, and in what order they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TypeGuard

import attrs

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_wgpu.codegen.attention.emit import can_emit, emit_attention
from webnn_py.device.on_wgpu.codegen.copies import copy_kernel, is_exchanged
from webnn_py.device.on_wgpu.codegen.elementwise import emit_elementwise
from webnn_py.device.on_wgpu.passes.attention_fusion import AttentionFusion
from webnn_py.device.on_wgpu.passes.computed_sides import computed_sides
from webnn_py.device.on_wgpu.passes.elementwise_fusion import ElementwiseFusion
from webnn_py.device.on_wgpu.passes.epilogue_fusion import EpilogueFusion
from webnn_py.device.on_wgpu.passes.kernel_nodes import nodes_computed, with_nodes
from webnn_py.device.on_wgpu.records.buffer import Buffer, Place
from webnn_py.device.on_wgpu.records.computed_side import ComputedSide
from webnn_py.device.on_wgpu.records.element import Element
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.layout import Layout, dense_strides
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.partial_sums import PartialSums
from webnn_py.device.on_wgpu.records.table import WgslEntry, entry_of
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.device.shared_constants import Identity
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import movement


class GraphLowering(Lowering):
    """The walk over a graph that turns its nodes into kernels, one after the other."""

    def __init__(
        self,
        graph: Graph,
        features: Features,
        known: Mapping[Value, Buffer],
        identity_of: Callable[[Value], Identity | None],
        begin: Callable[[Sequence[Kernel]], object],
    ) -> None:
        """Look at the graph.

        Args:
            graph: what to lower.
            features: what kernels may use.
            known: where values lie that are computed elsewhere.
            identity_of: the identity of a constant.
            begin: is told of each kernel that runs with the graph, so that it may begin to compile it.
        """
        self.features = features
        self.kernels: list[Kernel] = []
        self.prologue: list[Kernel] = []
        self._graph = graph
        self._repacked: dict[Place, Buffer] = {}
        self._places: dict[Value, Place] = {}
        self._left: dict[Value, PartialSums] = {}
        self._output_buffers: dict[Value, Buffer] = {}
        self._known = known
        self._identity_of = identity_of
        self._begin = begin
        self._done: set[Node] = set()
        self._fused: list[Node] = []  # into the kernels that are being written
        self._written: list[int] = []  # which of all kernels these are
        self._turn: Node | None = None  # that is being lowered
        self._following = dict(pairwise(graph.nodes))
        for name, graph_input in graph.inputs.items():
            buffer = Buffer("input", graph_input.descriptor.byte_length, name)
            self._places[graph_input] = Place(buffer, Layout.dense(graph_input.descriptor.shape))
        for name, value in graph.outputs.items():
            self._output_buffers.setdefault(value, Buffer("output", value.descriptor.byte_length, name))
        for value, buffer in list(self._output_buffers.items()):
            for reshaped in reshaped_from(value):
                self._output_buffers.setdefault(reshaped, buffer)
        self._fusion = ElementwiseFusion(graph, self._output_buffers, features.max_storage_buffers)
        self._epilogues = EpilogueFusion(self._fusion)
        search = AttentionFusion(self._fusion, self._output_buffers, partial(can_emit, features=features))
        self._attentions = search.find(graph)
        self._done |= {node for attention in self._attentions.values() for node in attention.nodes}
        self._sides = computed_sides(graph, self._fusion, self._output_buffers, self._done | {*self._attentions})
        self._done |= {node for side in self._sides.values() for node in side.nodes}

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
                with self._kernels_of(node):
                    emit_elementwise(self, node)
        return self._places[value]

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
        """How to lay a value so that its transposition is dense, and that; None where it need not be or cannot."""
        readers = self._fusion.readers.get(value, ())
        if value in self._output_buffers or len(readers) != 1 or readers[0].operator is not movement.transpose:
            return None
        permutation, transposed = readers[0].options["permutation"], readers[0].results[0]
        dense = Layout.dense(value.descriptor.shape)
        if permutation is None or not self._needs_copy(transposed, dense.permute(permutation)):
            return None
        strides = dict(zip(permutation, dense_strides(transposed.descriptor.shape), strict=True))
        layout = Layout(value.descriptor.shape, tuple(strides[axis] for axis in range(len(strides))))
        return (layout, transposed) if layout.vec4s() is not None and Variant.TRANSPOSED_STORE.is_on else None

    def _needs_copy(self, value: Value, layout: Layout) -> bool:
        """Whether a value that lies so has to be copied, as an output or for a view of it that no layout can say."""
        if layout.is_dense:
            return False
        views = [(node, entry_of(node).layout) for node in self._fusion.readers.get(value, ())]
        return value in self._output_buffers or any(rule and rule(node, layout) is None for node, rule in views)

    def scratch(self, descriptor: MLOperandDescriptor) -> Buffer:
        return Buffer("block", descriptor.byte_length)

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
        self._begin([kernel])

    def _copy(self, place: Place, target: Buffer, value: Value, descriptor: MLOperandDescriptor) -> None:
        """Copy a value; a picture shows it as a part of what makes the value or, of an input, of what reads it."""
        made = value.node.drawn if isinstance(value, Output) else ()
        drawn = made or (() if self._turn is None else self._turn.drawn)
        self._emit(attrs.evolve(copy_kernel(place, target, descriptor), drawn=drawn))

    @contextmanager
    def _kernels_of(self, node: Node) -> Iterator[None]:
        """What is emitted meanwhile, but for mere copies, computes a node and those that are fused into it."""
        around = self._fused, self._written
        self._fused, self._written = [node], []
        yield
        fused = node.operands.get(entry_of(node).fuses or "")
        if isinstance(fused, Output) and (self.deferred(fused) or fused in self._left):
            self._fused.insert(0, fused.node)
        kernels = [self.kernels[index] for index in self._written]
        nodes = nodes_computed(self._fused, self._fusion.is_inlined)
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
        node = self._epilogues.take(value, self._is_ready, spare_buffers)
        if node is not None:
            self._done.add(node)
            self._fused.append(node)
        return node

    def twin(self, node: Node) -> Node | None:
        other = self._following.get(node)
        if other is None or other in self._done or (node.operator, node.options) != (other.operator, other.options):
            return None
        shapes = [[value.descriptor for value in each.inputs] for each in (node, other)]
        is_ready = all(map(self._is_ready, other.inputs))
        if shapes[0] != shapes[1] or not is_ready or not Variant.TWIN_CONCATS.is_on:
            return None
        self._done.add(other)
        self._fused.append(other)
        return other

    def _is_ready(self, value: Value) -> bool:
        return value in self._places or value in self._known or isinstance(value, Constant)

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        return self._fusion.is_inlined(value)

    def computed_side(self, value: Value) -> ComputedSide | None:
        return self._sides.get(value)

    def deferred(self, value: Value) -> Node | None:
        if isinstance(value, Output) and value.node in self._fusion.deferred and value not in self._places:
            return value.node
        return None

    def leave(self, value: Output, sums: PartialSums) -> bool:
        if value.node not in self._fusion.deferred or not Variant.PARTIAL_SUMS.is_on:
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
            if not self._fusion.has_own_kernel(node) or node in self._done or self._lower_view(node, entry):
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
        if value in self._known:
            return self._known[value]
        if not isinstance(value, Constant):
            raise KeyError(f"no kernel has written {value}")
        return Buffer("constant", value.descriptor.byte_length, data=value.data, identity=self._identity_of(value))


def reshaped_from(value: Value) -> Iterator[Output]:
    """The results of kernels of which a value is but another shape, nearest first."""
    while isinstance(value, Output) and len(value.node.results) == 1:
        rule, operand = entry_of(value.node).layout, next(iter(value.node.inputs), None)
        if rule is None or not isinstance(operand, Output):
            return
        layout = rule(value.node, Layout.dense(operand.descriptor.shape))
        is_whole = operand.descriptor.byte_length == value.descriptor.byte_length
        if not (is_whole and isinstance(layout, Layout) and layout.is_dense):
            return
        yield operand
        value = operand
