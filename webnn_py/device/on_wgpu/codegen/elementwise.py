"""Element-wise nodes that one kernel computes, as one WGSL function of the elements that they read, and that kernel."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol, TypeGuard

import attrs

from webnn_py.device.on_wgpu.codegen.bound_operands import BoundOperands
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.table import entry_of
from webnn_py.graph import Node, Output, Value

ROUND_LATER: Final = {"abs", "clamp", "identity", "neg", "relu"}
"""Operators whose operand need not be rounded if their result is: they keep the order of numbers, or mirror it at 0."""


class ElementwiseWalk(Protocol):
    """What an element-wise function asks of the walk over a graph."""

    def element(self, value: Value) -> Element:
        """How a value's data type is stored, and rounded."""
        ...

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Whether an element-wise node returns a value that is computed by the element-wise kernel that reads it."""
        ...


@attrs.frozen(eq=False)
class ElementwiseFunction:
    """A node and the nodes that are fused into it.

    Attributes:
        result: what comes out.
        leaves: what goes in, in the order of the function's parameters.
        label: the operators, with the data type of those that read nothing of the others.
        rounds_first: whether the first parameter need not be rounded, since what becomes of it is.
    """

    result: Value
    leaves: tuple[Value, ...]
    label: str
    rounds_first: bool
    _text: str

    @classmethod
    def of(
        cls, lowering: ElementwiseWalk, last: Node, first: Value | None = None, *, is_stored: bool = True
    ) -> ElementwiseFunction:
        """Write the function.

        Args:
            lowering: the walk, which knows what is fused.
            last: the node whose result comes out.
            first: what the first parameter is to be.
            is_stored: whether the result is stored and not read before, so that it need not be rounded here.
        """
        nodes = _nodes(lowering, last)
        leaves = {} if first is None else {first: "a0"}
        computed: dict[Node, str] = {}
        lines: list[str] = []
        for node in nodes:
            names = []
            for value in node.inputs:
                if isinstance(value, Output) and value.node in computed:
                    names.append(computed[value.node])
                else:
                    names.append(leaves.setdefault(value, f"a{len(leaves)}"))
            expression = entry_of(node).expression
            assert expression is not None  # noqa: S101 - only element-wise nodes are fused
            computed[node] = f"v{len(lines)}"
            element = lowering.element(node.results[0])
            is_rounded_later = is_stored if node is last else _is_rounded_later(node.results[0], nodes)
            value_of_node = element.narrow(expression(node, *names), is_stored=is_rounded_later)
            lines.append(f"  let {computed[node]} = {value_of_node};\n")
        result = last.results[0]
        parameters = ", ".join(f"{name}: {lowering.element(leaf).compute}" for leaf, name in leaves.items())
        lines.append(f"  return {computed[last]};\n}}")
        text = f"({parameters}) -> {lowering.element(result).compute} {{\n{''.join(lines)}"
        rounds_first = first is not None and _is_rounded_later(first, nodes)
        return cls(result, tuple(leaves), _label(lowering, nodes), rounds_first, text)

    def function(self, name: str) -> str:
        """The text of the function."""
        return f"fn {name}{self._text}"


def _is_rounded_later(value: Value, nodes: Collection[Node]) -> bool:
    """Whether all nodes of a kernel that read a value make the same of it before it is rounded to float16."""
    readers = [node for node in nodes if value in node.inputs]
    return all(node.operator.spec_name in ROUND_LATER for node in readers)


def _nodes(lowering: ElementwiseWalk, last: Node) -> list[Node]:
    """All that a node's kernel computes, each node behind those that it reads, once."""
    nodes: dict[Node, None] = {}
    stack = [(last, False)]
    while stack:
        node, has_operands = stack.pop()
        if has_operands:
            nodes[node] = None
        elif node not in nodes:
            stack.append((node, True))
            stack += [(value.node, False) for value in reversed([*node.inputs]) if lowering.is_inlined(value)]
    return list(nodes)


def _label(lowering: ElementwiseWalk, nodes: list[Node]) -> str:
    words = []
    for node in nodes:
        is_first = not any(lowering.is_inlined(value) for value in node.inputs)
        data_type = f" {node.outputs[0].data_type}" if is_first else ""
        words.append(f"{node.operator.spec_name}{data_type}")
    return " ".join(words)


def emit_elementwise(lowering: Lowering, node: Node) -> None:
    """One kernel for an element-wise node and the element-wise nodes fused into it."""
    fused = ElementwiseFunction.of(lowering, node)
    descriptor = fused.result.descriptor
    output = lowering.element(fused.result)
    indices = vec4_indices(descriptor.element_count)
    operands = BoundOperands(lowering)
    loads = [operands.scalars(leaf, descriptor.shape, indices) for leaf in fused.leaves]
    calls = [f"compute({', '.join(scalars[component] for _, scalars in loads)})" for component in range(WIDTH)]
    target = lowering.target(fused.result)
    prepare = "".join(dict.fromkeys(text for text, _ in loads))
    main, workgroups = vec4_entry_point(descriptor.element_count, f"{prepare}  o[four] = {output.pack(calls)};")
    source = module(
        declare(
            [(buffer, name, kind) for (buffer, kind), name in operands.bindings.items()], [(target, "o", output.vec4)]
        ),
        fused.function("compute"),
        main,
    )
    reads = tuple(buffer for buffer, _ in operands.bindings)
    lowering.emit(Kernel(fused.label, source, reads, (target,), workgroups))
