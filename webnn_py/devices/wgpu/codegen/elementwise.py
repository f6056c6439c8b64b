"""Fused element-wise nodes: the WGSL function that computes one of their elements, and the kernel that applies it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs

from webnn_py.core.graph import Node, Output, Value
from webnn_py.devices.wgpu.codegen.bound_operands import BoundOperands
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.devices.wgpu.codegen.module import bound_kernel
from webnn_py.devices.wgpu.records.graph_queries import nodes_within
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import entry_of

ROUND_LATER: Final = {"abs", "clamp", "identity", "neg", "relu"}
"""Operators that commute with rounding, as they are monotonic or reflect at 0: only their result need be rounded."""


@attrs.frozen(eq=False)
class ElementwiseFunction:
    """The WGSL function of a node and the nodes that are fused into it.

    Attributes:
        result: the value that it computes.
        leaves: the values that it reads, in the order of its parameters.
        label: the operators; those that read no other node's result with their data type.
        rounds_first: whether the first parameter need not be rounded to float16, as a later result is.
    """

    result: Value
    leaves: tuple[Value, ...]
    label: str
    rounds_first: bool
    _text: str

    @classmethod
    def ending_at(
        cls,
        lowering: Lowering,
        last: Node,
        first: Value | None = None,
        *,
        is_stored: bool = True,
        rounds: bool = True,
    ) -> ElementwiseFunction:
        """Write the function.

        Args:
            lowering: the lowering, which knows the fused nodes.
            last: the node that computes the result.
            first: the value of the first parameter.
            is_stored: whether the result is only stored, which rounds it to float16.
            rounds: whether values of float16 are rounded to it; otherwise they stay float32.
        """
        nodes = nodes_within([last], lowering.is_inlined)
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
            if not rounds and element.data_type == "float16":
                element = lowering.features.element("float32")
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
        return f"fn {name}{self._text}"


def _is_rounded_later(value: Value, nodes: Collection[Node]) -> bool:
    """Return whether all nodes of a kernel that read a value commute with rounding it to float16."""
    readers = [node for node in nodes if value in node.inputs]
    return all(node.operator.spec_name in ROUND_LATER for node in readers)


def _label(lowering: Lowering, nodes: list[Node]) -> str:
    words = []
    for node in nodes:
        is_first = not any(lowering.is_inlined(value) for value in node.inputs)
        data_type = f" {node.outputs[0].data_type}" if is_first else ""
        words.append(f"{node.operator.spec_name}{data_type}")
    return " ".join(words)


def emit_elementwise(lowering: Lowering, node: Node) -> None:
    """Emit the kernel of an element-wise node and the nodes that are fused into it."""
    fused = ElementwiseFunction.ending_at(lowering, node)
    descriptor = fused.result.descriptor
    output = lowering.element(fused.result)
    operands = BoundOperands(lowering)
    loads = [operands.load(leaf, descriptor.shape, vec4_indices(descriptor.element_count)) for leaf in fused.leaves]
    calls = [f"compute({', '.join(elements)})" for elements in zip(*loads, strict=True)]
    target = lowering.target(fused.result)
    statements = [*operands.statements, f"o[four] = {output.pack(calls)};"]
    main, workgroups = vec4_entry_point(descriptor.element_count, statements)
    writes = [(target, "o", output.vec4)]
    parts = [fused.function("compute"), main]
    lowering.emit(bound_kernel(fused.label, operands.bindings, writes, parts, workgroups))
