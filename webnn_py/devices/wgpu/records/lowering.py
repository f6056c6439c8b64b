"""The interface of lowering that the writers of kernels use."""

from __future__ import annotations

from typing import Protocol, TypeGuard

from webnn_py.core.graph import Node, Output, Value
from webnn_py.devices.wgpu.records.buffer import Buffer, Place
from webnn_py.devices.wgpu.records.element import Element
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.left_to_readers import ComputedSide, PartialSums


class Lowering(Protocol):
    """Turns nodes into kernels, one after the other.

    Attributes:
        features: what the adapter has.
    """

    features: Features

    def place(self, value: Value) -> Place:
        """Return the place of an operand, in any layout."""
        ...

    def dense(self, value: Value) -> Buffer:
        """Return a buffer that holds an operand dense; a view is copied."""
        ...

    def near(self, value: Value) -> Place:
        """Return the place of an operand for kernels that read it element by element.

        A large view whose neighbours lie far apart is copied first: each of its elements would cost a whole sector.
        """
        ...

    def target(self, value: Value) -> Buffer:
        """Return the buffer that a kernel writes a value into, dense."""
        ...

    def transposed_target(self, value: Value) -> Place:
        """Return the place into which a kernel that can write whole vec4s anywhere writes a value.

        It is transposed where only a transposition reads the value, and its result has to be dense.
        """
        ...

    def emit(self, kernel: Kernel) -> None:
        """Add a kernel behind the others; one that writes constants runs once, when the graph is built."""
        ...

    def element(self, value: Value) -> Element:
        """Return the storage of a value's data type."""
        ...

    def repacked(self, value: Value, layout: Layout) -> Buffer:
        """Return a dense copy of another view of an operand; that of a constant is made once, at the build."""
        ...

    def derived(self, source: Buffer, byte_length: int) -> Buffer:
        """Return memory for a value computed of ``source`` alone: a constant, made once, if the source is one."""
        ...

    def epilogue(self, value: Value, spare_buffers: int) -> Node | None:
        """Return the last of the element-wise nodes that a value's kernel may compute, too; None if there is none.

        These nodes alone read the value, have its shape, and all that they read besides lies ready, in at most
        ``spare_buffers``. The caller writes the node's result instead of the value, and the walk passes over the nodes.
        """
        ...

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Return whether the element-wise kernel that reads a value computes it."""
        ...

    def computed_side(self, value: Value) -> ComputedSide | None:
        """Return how the product that reads a value computes it; None if the value is in memory."""
        ...

    def deferred(self, value: Value) -> Node | None:
        """Return the element-wise node of a value that one kernel alone reads and may compute; None otherwise.

        That kernel's writer either does so, or asks where the value lies: then the node gets a kernel of its own.
        """
        ...

    def leave(self, value: Output, sums: PartialSums) -> bool:
        """Leave the parts of the product that a value is computed of to the only kernel that reads the value.

        That kernel's writer either does so, or asks where the value lies: then a kernel of their own adds the parts up.
        Returns whether there is such a kernel; otherwise nothing is left.
        """
        ...

    def left(self, value: Value) -> PartialSums | None:
        """Return the parts of a value that were left to the kernel that reads it; None if the value is in memory."""
        ...
