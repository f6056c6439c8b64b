"""From a drawing to kernels: which values lie where, which chains become one kernel, and in what order they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeGuard

import attrs

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.device.backend import HostArray, Storage
from webnn_py.device.on_wgpu.fusing import Fusion
from webnn_py.device.on_wgpu.layout import Layout, dense_strides
from webnn_py.device.on_wgpu.table import Entry, entry_of
from webnn_py.device.on_wgpu.wgsl import Element, element
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import movement

WORKGROUP = 256
MAX_WORKGROUPS = 65535


@attrs.frozen
class Features:
    """What an adapter has, as far as kernels care, and what the user allows.

    Attributes:
        float16_accumulation: whether products of float16 matrices may be summed in float16.
    """

    shader_f16: bool = False
    shader_int64: bool = False
    subgroups: bool = False
    least_subgroup: int = 4
    max_storage_buffers: int = 8
    max_workgroup_storage: int = 16384
    max_invocations: int = 256
    float16_accumulation: bool = False

    def element(self, data_type: MLOperandDataType) -> Element:
        """How a data type is stored here."""
        return element(data_type, shader_f16=self.shader_f16)


@attrs.frozen(eq=False)
class Buffer:
    """A piece of memory that kernels read or write.

    Attributes:
        kind: an input or output of the dispatch, a constant, or a block: memory of the graph's, given later.
        byte_length: its size.
        name: of an input or output.
        data: of a constant: the host's bytes, the storage of a constant buffer, or a GPU buffer computed at build.
    """

    kind: Literal["input", "output", "constant", "block"]
    byte_length: int
    name: str = ""
    data: HostArray | Storage | object = None


@attrs.frozen
class Place:
    """Where a value lies."""

    buffer: Buffer
    layout: Layout


@attrs.frozen(eq=False)
class Kernel:
    """One compute shader and what it is run on.

    Attributes:
        label: operator and data types, for messages and profilers.
        source: a WGSL module with the entry point ``main`` and, in group 0, a binding for each of ``reads`` and then
            for each of ``writes``, as :func:`declare` says them.
        reads: what it reads.
        writes: what it writes.
        workgroups: in x, y and z.
    """

    label: str
    source: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    workgroups: tuple[int, int, int]

    @property
    def writable(self) -> tuple[bool, ...]:
        """For each binding, whether it is declared for writing."""
        return writable(self.reads, self.writes)

    @property
    def writes_apart(self) -> bool:
        """Whether the blocks that it writes have to lie in other buffers than those that it reads."""
        return reads_twice(self.reads)


def writable(reads: Sequence[Buffer], writes: Sequence[Buffer]) -> tuple[bool, ...]:
    """For each binding, whether it is declared for writing: what is written, and the blocks read beside such a block.

    All blocks may lie in one GPU buffer, and WebGPU lets a dispatch use a buffer for reading or for writing. Ranges
    that are bound for writing must not overlap, so a kernel that reads one block twice binds it for reading.
    """
    shares = any(buffer.kind == "block" for buffer in writes) and not reads_twice(reads)
    return (*(shares and buffer.kind == "block" for buffer in reads), *(True for _ in writes))


def reads_twice(reads: Sequence[Buffer]) -> bool:
    """Whether a block is bound more than once: as elements and as fours."""
    blocks = [buffer for buffer in reads if buffer.kind == "block"]
    return len(set(blocks)) < len(blocks)


class Lowering:
    """Turns nodes into kernels, one after the other; kernel writers call its public methods."""

    def __init__(self, graph: Graph, features: Features, known: Mapping[Value, Buffer]) -> None:
        self.features = features
        self.kernels: list[Kernel] = []
        self.prologue: list[Kernel] = []
        self._graph = graph
        self._repacked: dict[Place, Buffer] = {}
        self._places: dict[Value, Place] = {}
        self._output_buffers: dict[Value, Buffer] = {}
        self._known = known
        self._done: set[Node] = set()
        for name, graph_input in graph.inputs.items():
            buffer = Buffer("input", graph_input.descriptor.byte_length, name)
            self._places[graph_input] = Place(buffer, Layout.dense(graph_input.descriptor.shape))
        for name, value in graph.outputs.items():
            self._output_buffers.setdefault(value, Buffer("output", value.descriptor.byte_length, name))
        for value, buffer in list(self._output_buffers.items()):
            for reshaped in reshaped_from(value):
                self._output_buffers.setdefault(reshaped, buffer)
        self._fusion = Fusion(graph, self._output_buffers, features.max_storage_buffers)

    # --- what kernel writers use -----------------------------------------------------------------------------

    def place(self, value: Value) -> Place:
        """Where an operand lies, as a view of any layout."""
        if value not in self._places:
            node = self.deferred(value)
            if node is None:
                self._places[value] = Place(self._constant(value), Layout.dense(value.descriptor.shape))
            else:
                self._emit_expression(node)
        return self._places[value]

    def dense(self, value: Value) -> Buffer:
        """A buffer in which an operand lies dense, copied there when it is a view."""
        from webnn_py.device.on_wgpu.copying import emit_copy  # noqa: PLC0415 - it uses this module

        place = self.place(value)
        if not place.layout.is_dense:
            target = Buffer("block", value.descriptor.byte_length)
            emit_copy(self, place, target, value.descriptor)
            place = Place(target, place.layout)
        # Also where nothing was copied: strides of axes of size 1 may be anything so far.
        self._places[value] = Place(place.buffer, Layout.dense(value.descriptor.shape))
        return place.buffer

    def near(self, value: Value) -> Place:
        """Where an operand lies for kernels that read it element by element.

        A large view whose neighbours lie far apart is copied first: each of its elements would cost a whole sector.
        """
        from webnn_py.device.on_wgpu.copying import is_exchanged  # noqa: PLC0415 - it uses this module

        if is_exchanged(self.place(value).layout):
            self.dense(value)
        return self.place(value)

    def target(self, value: Value) -> Buffer:
        """The buffer that a kernel is to write a value into, dense."""
        buffer = self._output_buffers.get(value)
        if buffer is None or value in self._places:
            buffer = Buffer("block", value.descriptor.byte_length)
        self._places[value] = Place(buffer, Layout.dense(value.descriptor.shape))
        return buffer

    def transposed_target(self, value: Value) -> Place:
        """Likewise for a kernel that can write whole fours anywhere: transposed, where that saves a copy.

        It does where only a transposition reads the value, and what that returns has to lie dense.
        """
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
        return None if layout.fours() is None else (layout, transposed)

    def _needs_copy(self, value: Value, layout: Layout) -> bool:
        """Whether a value that lies so has to be copied, as an output or for a view of it that no layout can say."""
        if layout.is_dense:
            return False
        views = [(node, entry_of(node).layout) for node in self._fusion.readers.get(value, ())]
        return value in self._output_buffers or any(rule and rule(node, layout) is None for node, rule in views)

    def scratch(self, descriptor: MLOperandDescriptor) -> Buffer:
        """Memory for between two kernels of one operator."""
        return Buffer("block", descriptor.byte_length)

    def emit(self, kernel: Kernel) -> None:
        """Add a kernel behind the others; what writes constants runs once, when the graph is built."""
        makes_constants = all(buffer.kind == "constant" for buffer in kernel.writes)
        (self.prologue if makes_constants else self.kernels).append(kernel)

    def element(self, value: Value) -> Element:
        """How a value's data type is stored."""
        return self.features.element(value.descriptor.data_type)

    def repacked(self, value: Value, layout: Layout) -> Buffer:
        """A dense copy of another view of an operand; of a constant it is made once, when the graph is built."""
        from webnn_py.device.on_wgpu.copying import emit_copy  # noqa: PLC0415 - it uses this module

        place = Place(self.place(value).buffer, layout)
        if layout.is_dense:
            return place.buffer
        if place in self._repacked:
            return self._repacked[place]
        target = self._repacked[place] = self.derived(place.buffer, value.descriptor.byte_length)
        emit_copy(self, place, target, MLOperandDescriptor(value.descriptor.data_type, layout.shape))
        return target

    def derived(self, source: Buffer, byte_length: int) -> Buffer:
        """Memory for what a kernel makes of ``source`` alone: a constant, made once, where the source is one."""
        return Buffer("constant" if source.kind == "constant" else "block", byte_length)

    def epilogue(self, value: Value, spare_buffers: int) -> Node | None:
        """The last of the element-wise nodes that a value's kernel may compute as well, or None.

        These nodes alone read the value, have its shape, and all that they read besides lies ready, in at most
        ``spare_buffers``. The caller writes the node's result instead of the value (:mod:`.epilogue` does); the walk
        then passes over the nodes.
        """
        node = self._fusion.take_behind(value, self._is_ready, spare_buffers)
        if node is not None:
            self._done.add(node)
        return node

    def _is_ready(self, value: Value) -> bool:
        return value in self._places or value in self._known or isinstance(value, Constant)

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Whether an element-wise node returns a value that is computed by the element-wise kernel that reads it."""
        return self._fusion.is_inlined(value)

    def deferred(self, value: Value) -> Node | None:
        """The element-wise node whose result only one kernel reads, which may compute it, too; None if there is none.

        That kernel's writer either does so, or asks where the value lies: then the node gets a kernel of its own.
        """
        if isinstance(value, Output) and value.node in self._fusion.deferred and value not in self._places:
            return value.node
        return None

    # --- the walk --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Lower every node, then copy the outputs that no kernel wrote straight into place."""
        from webnn_py.device.on_wgpu.copying import emit_copy  # noqa: PLC0415 - it uses this module

        for node in self._graph.nodes:
            entry = entry_of(node)
            if not self._fusion.has_own_kernel(node) or node in self._done or self._lower_view(node, entry):
                continue
            if entry.expression is not None:
                self._emit_expression(node)
            elif entry.kernels is not None:
                entry.kernels(node, self)
            else:
                raise NotImplementedError(f"{node} has no WGSL kernel")
        for name, value in self._graph.outputs.items():
            place = self.place(value)
            if place.buffer.kind != "output" or place.buffer.name != name:
                descriptor = value.descriptor
                emit_copy(self, place, Buffer("output", descriptor.byte_length, name), descriptor)

    def _emit_expression(self, node: Node) -> None:
        from webnn_py.device.on_wgpu.elements import emit_expression  # noqa: PLC0415 - it uses this module

        emit_expression(self, node)

    def _lower_view(self, node: Node, entry: Entry) -> bool:
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
        return Buffer("constant", value.descriptor.byte_length, data=value.data)


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


def grid(groups: int) -> tuple[int, int, int]:
    """At least ``groups`` workgroups, spread over x and y where x alone has not enough."""
    rows = -(-groups // MAX_WORKGROUPS)
    return -(-groups // rows), rows, 1


Binding = tuple[Buffer, str, str]
"""A buffer, its name in a module, and the WGSL type of the elements of the array that it is there."""


def declare(reads: Sequence[Binding], writes: Sequence[Binding]) -> str:
    """The bindings of a module: what is read, then what is written."""
    access = writable([buffer for buffer, _, _ in reads], [buffer for buffer, _, _ in writes])
    lines = [
        f"@group(0) @binding({index}) var<storage, {'read_write' if written else 'read'}> {name}: array<{kind}>;"
        for index, ((_, name, kind), written) in enumerate(zip((*reads, *writes), access, strict=True))
    ]
    return "\n".join(lines) + "\n"
