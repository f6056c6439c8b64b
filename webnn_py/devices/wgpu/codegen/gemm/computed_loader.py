"""Operands of a matrix product that are computed by an element-wise node as they are loaded."""

from __future__ import annotations

import attrs

from webnn_py.core.graph import Node
from webnn_py.devices.wgpu.codegen.bound_operands import BoundOperands
from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.codegen.entry_point import indented, vec4_indices
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.module import Binding
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.lowering import Lowering


@attrs.frozen(slots=False)
class ComputedLoader(MatrixLoader):
    """An operand without a buffer: its indices are those that the node's result would have.

    Attributes:
        lowering: the lowering, which knows the layouts of the node's operands.
        node: the node that computes an element.
    """

    lowering: Lowering = attrs.field(kw_only=True, eq=False, repr=False)
    node: Node = attrs.field(kw_only=True, eq=False)

    def own_bindings(self, name: str, scalar: str) -> tuple[list[Binding], str]:
        """Return the bindings, and the functions, of which ``name_at(i)`` is called."""
        function = ElementwiseFunction.ending_at(self.lowering, self.node, is_stored=False)
        operands = BoundOperands(self.lowering, f"{name}_b")
        shape = self.node.outputs[0].shape
        is_single = self.pattern == "scalar"
        indices = ["i"] if is_single else vec4_indices(WIDTH)
        loads = [operands.load(leaf, shape, indices) for leaf in function.leaves]
        prepare = list(operands.statements)
        calls = [f"{name}_of({', '.join(elements)})" for elements in zip(*loads, strict=True)]
        if is_single:
            head, result, kind = "i: u32", calls[0], scalar
        else:
            head, result, kind = "four: u32", f"vec4<f32>({', '.join(calls)})", f"vec4<{scalar}>"
            prepare.insert(0, f"let i = four * {WIDTH}u;")
        text = f"fn {name}_at({head}) -> {kind} {{\n{indented([*prepare, f'return {kind}({result});'])}\n}}"
        return list(operands.bindings), f"{function.function(f'{name}_of')}\n{text}"
