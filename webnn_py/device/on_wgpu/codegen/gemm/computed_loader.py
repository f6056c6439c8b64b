"""Sides of a product whose elements are computed as they are read, by an element-wise node."""

from __future__ import annotations

import attrs

from webnn_py.device.on_wgpu.codegen.bound_operands import BoundOperands
from webnn_py.device.on_wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.module import Binding
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.graph import Node


@attrs.frozen(slots=False)
class ComputedLoader(MatrixLoader):
    """A side that lies nowhere: its places are those that the node's result would have.

    Attributes:
        lowering: the walk, which knows where the node's operands lie.
        node: computes an element.
    """

    lowering: Lowering = attrs.field(kw_only=True, eq=False, repr=False)
    node: Node = attrs.field(kw_only=True, eq=False)

    def written(self, name: str, scalar: str) -> tuple[list[Binding], str]:
        """What is bound, and the functions, of which ``name_at(i)`` is called."""
        function = ElementwiseFunction.of(self.lowering, self.node, is_stored=False)
        operands = BoundOperands(self.lowering, f"{name}_b")
        shape = self.node.outputs[0].shape
        is_single = self.pattern == "scalar"
        indices = ["i"] if is_single else ["i", *(f"i + {component}u" for component in range(1, WIDTH))]
        loads = [operands.scalars(leaf, shape, indices) for leaf in function.leaves]
        prepare = "".join(dict.fromkeys(text for text, _ in loads))
        calls = [
            f"{name}_of({', '.join(scalars[component] for _, scalars in loads)})" for component in range(len(indices))
        ]
        if is_single:
            head, result, kind = "i: u32", calls[0], scalar
        else:
            head, result, kind = "four: u32", f"vec4<f32>({', '.join(calls)})", f"vec4<{scalar}>"
            prepare = f"  let i = four * {WIDTH}u;\n{prepare}"
        text = f"fn {name}_at({head}) -> {kind} {{\n{prepare}  return {kind}({result});\n}}"
        bindings = [(buffer, binding, kind) for (buffer, kind), binding in operands.bindings.items()]
        return bindings, f"{function.function(f'{name}_of')}\n{text}"
