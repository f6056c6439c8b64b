"""A graph and what a device has made of it, as all forms of its picture look it up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, Self

import attrs
import numpy as np

from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.message_text import shown
from webnn_py.devices.compiled_plan import CompiledPlan

LONGEST_OPTION: Final = 48

REMARKS: Final = {"folded": "computed at build", "view": "no kernel: a view"}
"""The remarks on operators that no kernel computes."""


@attrs.frozen(eq=False)
class DrawnGraph:
    """A graph, and the role of each operator on a device; operators and kernels are named by their indices.

    Attributes:
        graph: the graph.
        plan: the device's plan; None where nothing is known.
        indices: the index of each operator.
        computed: for each kernel, the operators that it computes.
        kernels: for each operator, the kernels that compute it.
        folded: the operators that were computed at build.
        groups: those that have kernels in common, directly or by others.
    """

    graph: Graph
    plan: CompiledPlan | None
    indices: Mapping[Node, int]
    computed: Sequence[Sequence[int]]
    kernels: Sequence[Sequence[int]]
    folded: frozenset[int]
    groups: Sequence[Sequence[int]]

    @classmethod
    def from_plan(cls, graph: Graph, plan: CompiledPlan | None) -> Self:
        """Look up what a plan says of the operators."""
        indices = {node: index for index, node in enumerate(graph.nodes)}
        if plan is None:
            return cls(graph, None, indices, (), (), frozenset(), ())
        places = {node.drawn[0]: index for node, index in indices.items() if node.drawn}
        computed = [[places[place] for place in kernel.operators if place in places] for kernel in plan.kernels]
        kernels: list[list[int]] = [[] for _ in graph.nodes]
        for number, operators in enumerate(computed):
            for index in operators:
                kernels[index].append(number)
        folded = frozenset(places[place] for place in plan.folded if place in places)
        lasting = {index: numbers for index, numbers in enumerate(kernels) if index not in folded}
        groups = [members for members in _joined(lasting) if len(members) > 1]
        return cls(graph, plan, indices, computed, kernels, folded, groups)

    def kind(self, index: int) -> Literal["operator", "folded", "view"]:
        """Return whether an operator was computed at build, or has no kernel, or neither."""
        if index in self.folded:
            return "folded"
        return "view" if self.plan is not None and not self.kernels[index] else "operator"

    def kernels_of(self, index: int) -> str:
        """Return the numbers of the kernels that compute an operator, in words."""
        numbers = [number + 1 for number in self.kernels[index]]
        if len(numbers) == 1:
            return f"kernel {numbers[0]}"
        if len(numbers) > 4:
            return f"{len(numbers)} kernels from {numbers[0]}"
        return f"kernels {', '.join(map(str, numbers))}"


def _joined(kernels: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the operators in groups that have kernels in common."""
    root = {index: index for index in kernels}

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = index = root[root[index]]
        return index

    first: dict[int, int] = {}
    for index, numbers in kernels.items():
        for number in numbers:
            root[find(index)] = find(first.setdefault(number, index))
    groups: dict[int, list[int]] = {}
    for index, numbers in kernels.items():
        if numbers:
            groups.setdefault(find(index), []).append(index)
    return list(groups.values())


def operands_of(node: Node) -> Iterator[tuple[str, Value]]:
    """Yield the parameter and the value of each operand; the parameter of a sequence for each of its values."""
    for name, operand in node.operands.items():
        for value in operand if isinstance(operand, tuple) else (operand,):
            yield name, value


def number_of(constant: Constant) -> str:
    """Return the number in a constant of one element on the host; "" for all others."""
    data = constant.data
    return f"{data.item():.6g}" if isinstance(data, np.ndarray) and data.size == 1 else ""


def has_default(node: Node, name: str) -> bool:
    """Return whether an option is absent or has its default."""
    value, default = node.options[name], node.operator.parameters[name].default
    return value is None or value == default or (isinstance(value, tuple) and list(value) == default)


def options_given(node: Node) -> Iterator[str]:
    """Yield the options that are not the defaults, as text."""
    for name, value in node.options.items():
        if has_default(node, name):
            continue
        worded = "yes" if value is True else "no" if value is False else without_graph(value)
        text = shown(list(worded)) if isinstance(worded, tuple) else str(worded)
        yield f"{name} {text if len(text) <= LONGEST_OPTION else f'{text[: LONGEST_OPTION - 3]}...'}"


def without_graph(option: object) -> object:
    """Return the value of an option; of a graph the number of its operators."""
    return f"{len(option.nodes)} operators" if isinstance(option, Graph) else option
