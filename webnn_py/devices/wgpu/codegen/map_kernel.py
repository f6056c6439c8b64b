"""Kernels that compute each output element independently, from any elements of the operands."""

from __future__ import annotations

from webnn_py.core.graph import Node, Value
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue
from webnn_py.devices.wgpu.codegen.module import Bindings
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.lowering import Lowering


class MapKernel:
    """A kernel whose statements load elements of the node's operands by row-major index."""

    def __init__(self, lowering: Lowering, node: Node) -> None:
        self._lowering = lowering
        self._node = node
        self._bindings = Bindings("x")
        self._accessors: dict[Value, str] = {}
        self._functions: list[str] = []
        self.output = lowering.element(node.results[0])

    def load(self, value: Value, index: str) -> str:
        """Return an expression for the element of ``value`` at a row-major index (u32)."""
        if value not in self._accessors:
            name = self._accessors[value] = f"load{len(self._accessors)}"
            element = self._lowering.element(value)
            literal = constant_scalar(value)
            if literal is not None:
                load = element.literal(literal)
            else:
                place = self._lowering.place(value)
                buffer = self._bindings.name(place.buffer, element.one)
                load = element.load(buffer, "i" if place.layout.is_dense else place.layout.index("i"))
            self._functions.append(f"fn {name}(i: u32) -> {element.compute} {{ return {load}; }}")
        return f"{self._accessors[value]}({index})"

    def finish(self, statements: str, epilogue: Epilogue | None = None) -> None:
        """Emit the kernel; the statements return the output element ``i`` (u32)."""
        if epilogue is None:
            epilogue = Epilogue(self._lowering, self._node, own_buffers=len(self._bindings) + 1)
        body = f"fn element_at(i: u32) -> {self.output.compute} {{\n{statements}\n}}"
        calls = ", ".join(f"element_at({index})" for index in vec4_indices(epilogue.count))
        main, workgroups = vec4_entry_point(epilogue.count, [f"finish(four, vec4<{self.output.compute}>({calls}));"])
        parts = [*self._functions, body]
        kernel = epilogue.write(vec4s=True).kernel(epilogue.label, self._bindings, parts, main, workgroups)
        self._lowering.emit(kernel)
