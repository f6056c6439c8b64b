"""What kernel writers may ask of the walk over a graph that lowers it to kernels."""

from __future__ import annotations

from typing import Protocol, TypeGuard

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_wgpu.records.buffer import Buffer, Place
from webnn_py.device.on_wgpu.records.computed_side import ComputedSide
from webnn_py.device.on_wgpu.records.element import Element
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.partial_sums import PartialSums
from webnn_py.graph import Node, Output, Value


class Lowering(Protocol):
    """Turns nodes into kernels, one after the other.

    Attributes:
        features: what the adapter has.
    """

    features: Features

    def place(self, value: Value) -> Place:
        """Where an operand lies, as a view of any layout."""
        ...

    def dense(self, value: Value) -> Buffer:
        """A buffer in which an operand lies dense, copied there when it is a view."""
        ...

    def near(self, value: Value) -> Place:
        """Where an operand lies for kernels that read it element by element.

        A large view whose neighbours lie far apart is copied first: each of its elements would cost a whole sector.
        """
        ...

    def target(self, value: Value) -> Buffer:
        """The buffer that a kernel is to write a value into, dense."""
        ...

    def transposed_target(self, value: Value) -> Place:
        """Likewise for a kernel that can write whole vec4s anywhere: transposed, where that saves a copy.

        It does where only a transposition reads the value, and what that returns has to lie dense.
        """
        ...

    def scratch(self, descriptor: MLOperandDescriptor) -> Buffer:
        """Memory for between two kernels of one operator."""
        ...

    def emit(self, kernel: Kernel) -> None:
        """Add a kernel behind the others; what writes constants runs once, when the graph is built."""
        ...

    def element(self, value: Value) -> Element:
        """How a value's data type is stored."""
        ...

    def repacked(self, value: Value, layout: Layout) -> Buffer:
        """A dense copy of another view of an operand; of a constant it is made once, when the graph is built."""
        ...

    def derived(self, source: Buffer, byte_length: int) -> Buffer:
        """Memory for what a kernel makes of ``source`` alone: a constant, made once, where the source is one."""
        ...

    def epilogue(self, value: Value, spare_buffers: int) -> Node | None:
        """The last of the element-wise nodes that a value's kernel may compute as well, or None.

        These nodes alone read the value, have its shape, and all that they read besides lies ready, in at most
        ``spare_buffers``. The caller writes the node's result instead of the value, and the walk passes over the nodes.
        """
        ...

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Whether an element-wise node returns a value that is computed by the element-wise kernel that reads it."""
        ...

    def computed_side(self, value: Value) -> ComputedSide | None:
        """How the kernel of the product that reads a value computes it; None where the value lies somewhere."""
        ...

    def deferred(self, value: Value) -> Node | None:
        """The element-wise node whose result only one kernel reads, which may compute it, too; None if there is none.

        That kernel's writer either does so, or asks where the value lies: then the node gets a kernel of its own.
        """
        ...

    def leave(self, value: Output, sums: PartialSums) -> bool:
        """Leave it to the kernel that alone reads a value to add up the product behind which it is computed.

        That kernel's writer either does so, or asks where the value lies: then a kernel of their own adds the parts up.
        Returns whether there is such a kernel; otherwise nothing is left.
        """
        ...

    def left(self, value: Value) -> PartialSums | None:
        """The parts that make a value and were left to the kernel that reads it; None where it lies somewhere."""
        ...
