"""Kernels that compute each element of their output by itself, from any elements of the operands."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.graph import Node, Value


class MapKernel:
    """One such kernel; its statements may use the elements of the node's operands, by their row-major numbers."""

    def __init__(self, lowering: Lowering, node: Node) -> None:
        self._lowering = lowering
        self._node = node
        self._bindings: dict[tuple[Buffer, str], str] = {}
        self._accessors: dict[Value, str] = {}
        self._functions: list[str] = []
        self.output = lowering.element(node.results[0])

    def load(self, value: Value, index: str) -> str:
        """An expression for the element of ``value`` whose row-major number is ``index`` (u32)."""
        return f"{self._accessor(value)}({index})"

    def _accessor(self, value: Value) -> str:
        if value not in self._accessors:
            name = self._accessors[value] = f"load{len(self._accessors)}"
            element = self._lowering.element(value)
            literal = constant_scalar(value)
            if literal is not None:
                load = element.literal(literal)
            else:
                place = self._lowering.place(value)
                buffer = self._bindings.setdefault((place.buffer, element.one), f"x{len(self._bindings)}")
                load = element.load(buffer, "i" if place.layout.is_dense else place.layout.index("i"))
            self._functions.append(f"fn {name}(i: u32) -> {element.compute} {{ return {load}; }}")
        return self._accessors[value]

    def finish(self, statements: str, epilogue: Epilogue | None = None) -> None:
        """Emit the kernel whose statements return the element number ``i`` (u32), with an epilogue if there is one."""
        reads = [(buffer, name, kind) for (buffer, kind), name in self._bindings.items()]
        if epilogue is None:
            epilogue = Epilogue(self._lowering, self._node, own_buffers=len(reads) + 1)
        body = f"fn element_at(i: u32) -> {self.output.compute} {{\n{statements}\n}}"
        calls = ", ".join(f"element_at({index})" for index in vec4_indices(epilogue.count))
        main, workgroups = vec4_entry_point(epilogue.count, f"  finish(four, vec4<{self.output.compute}>({calls}));")
        parts = [*self._functions, body]
        self._lowering.emit(epilogue.write(vec4s=True).kernel(epilogue.label, reads, parts, main, workgroups))
