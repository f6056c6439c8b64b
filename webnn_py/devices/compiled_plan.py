"""What a device has made of a graph, for pictures: kernels, folded nodes, memory. Devices fill it in."""

from collections.abc import Iterable, Sequence
from typing import Self

import attrs

from webnn_py.core.graph import Node

Places = tuple[int, ...]
"""Places of operators in the order in which they were drawn."""


@attrs.frozen
class PlannedKernel:
    """A step of a dispatch.

    Attributes:
        name: the device's, of the operators that it computes, mostly.
        operators: the places of the operators that it computes, or computes a part of.
    """

    name: str
    operators: Places


@attrs.frozen
class CompiledPlan:
    """A compiled graph.

    Attributes:
        kernels: what a dispatch runs, in this order.
        folded: the places of operators that were computed when the graph was built.
        intermediate_bytes: memory for values between kernels that are not visible outside.
        constant_bytes: memory of constants and of what follows from them.
    """

    kernels: tuple[PlannedKernel, ...]
    folded: Places
    intermediate_bytes: int
    constant_bytes: int

    @classmethod
    def from_kernels(
        cls,
        kernels: Sequence[tuple[str, Places]],
        folded: Iterable[Node],
        live: Iterable[Node],
        memory: tuple[int, int],
    ) -> Self:
        """Sum up a compilation.

        Args:
            kernels: names, and the places of what each computes.
            folded: the nodes that were computed.
            live: the others.
            memory: bytes of intermediates, and of constants.
        """
        later = {place for node in live for place in node.drawn}
        done = {place for node in folded for place in node.drawn} - later
        return cls(tuple(PlannedKernel(*kernel) for kernel in kernels), tuple(sorted(done)), *memory)
