"""What both ways of running a recurrent network are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.codegen.recurrence.cells import Cell
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.kernel import Kernel

BYTES: Final = 4
"""Of a float, as all of it is computed."""


@attrs.frozen
class Recurrence:
    """A network whose gates' share of the input is computed.

    Attributes:
        label: for the kernels.
        cell: what a step computes.
        steps: how many.
        batch: rows of the batch.
        hidden: the size of the hidden state.
        backward: for each direction, whether it goes from the last step to the first.
    """

    label: str
    cell: Cell
    steps: int
    batch: int
    hidden: int
    backward: tuple[bool, ...]

    @property
    def rows(self) -> int:
        """The rows of a direction's recurrent weight: one for each element of each gate."""
        return len(self.cell.layout) * self.hidden

    @property
    def vec4s(self) -> int:
        """The vec4s of a row of the recurrent weight, which is padded with zeros to whole ones."""
        return vec4s_of(self.hidden)

    @property
    def directions(self) -> int:
        """How many directions there are."""
        return len(self.backward)

    def time(self, step: str, direction: str) -> str:
        """The number of the time step that a direction takes in its turn ``step``."""
        last = f"{self.steps - 1}u - {step}"
        if all(self.backward):
            return last
        return f"select({step}, {last}, {direction} == 1u)" if any(self.backward) else step

    def share(self, time: str, batch: str, direction: str) -> str:
        """Where the gates' shares of a row begin."""
        return f"(({time} * {self.batch}u + {batch}) * {self.directions}u + {direction}) * {self.rows}u"

    @property
    def extra_size(self) -> int:
        """How many elements a direction has in ``extra``."""
        return len(self.cell.extras) * self.hidden


@attrs.frozen
class RecurrenceBuffers:
    """Where a network's operands and outputs lie, dense.

    Attributes:
        shares: the gates' share of the input, [steps, batch, directions, gates · hidden].
        weight: the recurrent weight, [directions, gates · hidden, padded]; see :attr:`Recurrence.vec4s`.
        extra: what the cell calls so, [directions, gates · hidden] or [directions, peepholes · hidden].
        initial: the states before the first step, [directions, batch, hidden]; None for zeros.
        last: receive the states after the last step.
        sequence: receives the hidden state of every step, [steps, directions, batch, hidden].
    """

    shares: Buffer
    weight: Buffer
    extra: Buffer | None
    initial: tuple[Buffer | None, ...]
    last: tuple[Buffer, ...]
    sequence: Buffer | None


def vec4s_of(hidden: int) -> int:
    """The vec4s that hold ``hidden`` elements."""
    return -(-hidden // WIDTH)


def kernel_of(
    label: str,
    reads: Sequence[tuple[Buffer | None, str, str]],
    writes: Sequence[tuple[Buffer | None, str, str]],
    text: str,
    workgroups: tuple[int, int, int],
) -> Kernel:
    """The kernel of a text; of what it may read and write, it binds what is there."""
    read, written = (
        [(buffer, name, kind) for buffer, name, kind in bound if buffer is not None] for bound in (reads, writes)
    )
    source = module(declare(read, written), text)
    return Kernel(label, source, tuple(item[0] for item in read), tuple(item[0] for item in written), workgroups)


def indented(lines: Iterable[str], indentation: int) -> str:
    """Lines as a part of a text."""
    return "\n".join(" " * indentation + line for line in lines)
