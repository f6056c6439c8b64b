"""Recurrent networks, independent of the kernels that run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.module import bound_kernel
from webnn_py.devices.wgpu.codegen.recurrence.cells import Cell
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.kernel import Kernel

BYTES: Final = 4
"""The bytes of a float32, in which everything is computed."""


@attrs.frozen
class Recurrence:
    """A network whose input projections have been computed.

    Attributes:
        label: the label of the kernels.
        cell: the cell.
        steps: the number of time steps.
        batch: the batch size.
        hidden: the size of the hidden state.
        backward: for each direction, whether it runs from the last step to the first.
    """

    label: str
    cell: Cell
    steps: int
    batch: int
    hidden: int
    backward: tuple[bool, ...]

    @property
    def rows(self) -> int:
        """The rows of a direction's recurrent weight: gates · hidden."""
        return len(self.cell.layout) * self.hidden

    @property
    def vec4s(self) -> int:
        """The vec4s of a row of the recurrent weight, which is zero-padded to whole vec4s."""
        return vec4s_of(self.hidden)

    @property
    def directions(self) -> int:
        return len(self.backward)

    def time(self, step: str, direction: str) -> str:
        """Return the index of the time step that a direction computes in iteration ``step``."""
        last = f"{self.steps - 1}u - {step}"
        if all(self.backward):
            return last
        return f"select({step}, {last}, {direction} == 1u)" if any(self.backward) else step

    def share(self, time: str, batch: str, direction: str) -> str:
        """Return the offset of the input projections of a row."""
        return f"(({time} * {self.batch}u + {batch}) * {self.directions}u + {direction}) * {self.rows}u"

    @property
    def extra_size(self) -> int:
        """The elements of a direction in :attr:`RecurrenceBuffers.extra`."""
        return len(self.cell.extras) * self.hidden


@attrs.frozen
class RecurrenceBuffers:
    """The dense buffers of a network's operands and outputs.

    Attributes:
        shares: the input projections, [steps, batch, directions, gates · hidden].
        weight: the recurrent weight, [directions, gates · hidden, padded hidden]; see :attr:`Recurrence.vec4s`.
        extra: the terms ``e_GATE`` of the cell, [directions, gates · hidden] or [directions, peepholes · hidden].
        initial: the states before the first step, [directions, batch, hidden]; None for zeros.
        last: the outputs for the states after the last step.
        sequence: the output for the hidden state of every step, [steps, directions, batch, hidden].
    """

    shares: Buffer
    weight: Buffer
    extra: Buffer | None
    initial: tuple[Buffer | None, ...]
    last: tuple[Buffer, ...]
    sequence: Buffer | None


def vec4s_of(hidden: int) -> int:
    """Return the number of vec4s that hold ``hidden`` elements."""
    return -(-hidden // WIDTH)


def kernel_of(
    label: str,
    reads: Sequence[tuple[Buffer | None, str, str]],
    writes: Sequence[tuple[Buffer | None, str, str]],
    text: str,
    workgroups: tuple[int, int, int],
) -> Kernel:
    """Return the kernel of a text, which binds those buffers that are not None."""
    read, written = (
        [(buffer, name, kind) for buffer, name, kind in bound if buffer is not None] for bound in (reads, writes)
    )
    return bound_kernel(label, read, written, [text], workgroups)
