"""A compute shader and what it is run on."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from webnn_py.core.device.backend import KernelNode
from webnn_py.devices.wgpu.records.buffer import Buffer


@attrs.frozen(eq=False)
class Kernel:
    """One compute shader and what it is run on.

    Attributes:
        label: operator and data types, for messages and profilers.
        source: a WGSL module with the entry point ``main`` and, in group 0, a binding for each of ``reads`` and then
            for each of ``writes``, as :func:`~webnn_py.devices.wgpu.codegen.module.declare` says them.
        reads: what it reads.
        writes: what it writes.
        workgroups: in x, y and z.
        nodes: those that it computes, alone or with other kernels; none when it only copies.
        drawn: the places in the drawing of the operators that it has a part in.
        copies: whether it only makes an output of an input, which is not needed where both are in one buffer.
    """

    label: str
    source: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    workgroups: tuple[int, int, int]
    nodes: tuple[KernelNode, ...] = ()
    drawn: tuple[int, ...] = ()
    copies: bool = False

    @property
    def bytes_moved(self) -> int:
        """The bytes of all that it reads and writes, each buffer once and whole."""
        return sum(buffer.byte_length for buffer in {*self.reads, *self.writes})

    @property
    def writable(self) -> tuple[bool, ...]:
        """For each binding, whether it is declared for writing."""
        return writable(self.reads, self.writes)


def writable(reads: Sequence[Buffer], writes: Sequence[Buffer]) -> tuple[bool, ...]:
    """Return for each binding whether it is for writing: written buffers, and blocks read with a written block.

    All blocks may lie in one GPU buffer, and WebGPU lets a dispatch use a buffer for reading or for writing. Ranges
    that are bound for writing must not overlap, so a kernel that reads one block twice binds it for reading.
    """
    shares = any(buffer.kind == "block" for buffer in writes) and not reads_twice(reads)
    return (*(shares and buffer.kind == "block" for buffer in reads), *(True for _ in writes))


def reads_twice(reads: Sequence[Buffer]) -> bool:
    """Return whether a block is bound more than once: as elements and as vec4s."""
    blocks = [buffer for buffer in reads if buffer.kind == "block"]
    return len(set(blocks)) < len(blocks)
