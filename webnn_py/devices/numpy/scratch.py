"""Scratch memory for the intermediates of kernels, shared by the nodes of a graph, which run one at a time.

Kernel makers request scratch while they make their kernels. While a graph is built, all scratch is in one piece of
memory that belongs to the graph; every node gets it from the start, so that it holds garbage whenever a kernel is
called. Outside of a build, each piece is allocated separately.
"""

from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from math import prod
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from webnn_py.core.graph import Node
from webnn_py.devices.arena import ALIGNMENT
from webnn_py.devices.numpy.table import Array, Kernel

K = TypeVar("K", bound=Hashable)

SHARE: Final = 1 / 4
"""The most scratch of a node, as a share of the bytes that it reads and writes."""

LEAST: Final = 2**18
"""The bytes of scratch that every node may have: with less, calls take longer than their computations."""


def allowance(node: Node) -> int:
    """Return the bytes of scratch that a node may have, unless its kernel needs more at least."""
    operands = {id(value): value.descriptor for value in node.inputs}
    touched = sum(descriptor.byte_length for descriptor in (*operands.values(), *node.outputs))
    return max(LEAST, int(SHARE * touched))


class ScratchPool:
    """The scratch memory of a graph: as much as the node that needs most.

    Attributes:
        memory: the memory.
    """

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)
        self._taken = 0
        self._needed = 0

    def take(self, shape: tuple[int, ...], data_type: npt.DTypeLike) -> Array:
        """Return the next piece of the memory; where the memory is too small, a temporary array of its own."""
        data_type = np.dtype(data_type)
        start = self._taken
        self._taken += -(-data_type.itemsize * prod(shape) // ALIGNMENT) * ALIGNMENT
        self._needed = max(self._needed, self._taken)
        if self._taken > self.memory.size:
            return np.empty(shape, data_type)
        return np.ndarray(shape, data_type, self.memory, start)

    def make(self, makers: Mapping[K, Callable[[], Kernel]]) -> dict[K, Kernel]:
        """Make kernels that share the memory, in the order given: best the one that needs most scratch first.

        Kernels keep views of the memory. Where a later kernel needs more of it, the earlier ones are made again with
        the larger memory.
        """
        kernels: dict[K, Kernel] = {}
        made_with: dict[K, Array] = {}
        outdated = list(makers)
        while outdated:
            for key in outdated:
                kernels[key], uses_scratch = self._make(makers[key])
                if uses_scratch:
                    made_with[key] = self.memory
            outdated = [key for key, memory in made_with.items() if memory is not self.memory]
        return kernels

    def _make(self, maker: Callable[[], Kernel]) -> tuple[Kernel, bool]:
        """Make one kernel; return it, and whether it uses scratch."""
        while True:
            self._needed = 0
            token = _POOL.set(self)
            try:
                kernel = maker()
            finally:
                _POOL.reset(token)
                self._taken = 0
            if self._needed <= self.memory.size:
                return kernel, self._needed > 0
            del kernel  # and its scratch, before more is allocated
            self.memory = np.empty(self._needed, np.uint8)


_POOL: ContextVar[ScratchPool | None] = ContextVar("_POOL", default=None)


def scratch(shape: int | tuple[int, ...], data_type: npt.DTypeLike = np.float32) -> Array:
    """Return an array for a kernel that is being made; it holds garbage whenever the kernel is called."""
    pool = _POOL.get()
    shape = (shape,) if isinstance(shape, int) else shape
    return np.empty(shape, data_type) if pool is None else pool.take(shape, data_type)
