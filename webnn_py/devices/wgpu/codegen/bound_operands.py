"""Loads of element-wise operands: each buffer is bound once per element type."""

from __future__ import annotations

from webnn_py.core.graph import Value
from webnn_py.devices.wgpu.codegen.module import Bindings
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH, Element
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering


class BoundOperands:
    """The buffers that the loads of a kernel read, and the statements of the loads.

    Attributes:
        bindings: the buffers.
        statements: those that come before the expressions of :meth:`load`, each once.
    """

    def __init__(self, lowering: Lowering, prefix: str = "b") -> None:
        self._lowering = lowering
        self.bindings = Bindings(prefix)
        self.statements: dict[str, None] = {}
        self._loads = 0

    def load(self, value: Value, shape: tuple[int, ...], indices: list[str], layout: Layout | None = None) -> list[str]:
        """Return expressions for elements of a value that is broadcast to ``shape``.

        Args:
            value: the value.
            shape: the broadcast shape.
            indices: the row-major indices of the elements; four are those of the vec4 ``four``.
            layout: the view to read the value by, if not its own layout.
        """
        element = self._lowering.element(value)
        literal = constant_scalar(value)
        if literal is not None:
            return [element.literal(literal)] * len(indices)
        self._loads += 1
        place = self._lowering.near(value) if layout is None else self._lowering.place(value)
        layout = (layout or place.layout).broadcast(shape)
        if len(indices) != WIDTH:
            name = self.bindings.name(place.buffer, element.one)
            return [element.load(name, layout.index(f"({index})")) for index in indices]
        return self._vec4(place.buffer, element, layout, indices)

    def _vec4(self, buffer: Buffer, element: Element, layout: Layout, indices: list[str]) -> list[str]:
        """Load the vec4 ``four``, by the widest loads that its layout allows."""
        if layout.is_dense:
            name = self.bindings.name(buffer, element.vec4)
            return element.unpack(self._let(f"{name}_four", element.four(name, "four")))
        vec4s, repeats = layout.vec4s(), layout.repeats()
        variable = f"four_{self._loads}"
        if vec4s is not None:
            name = self.bindings.name(buffer, element.vec4)
            return element.unpack(self._let(variable, element.four(name, vec4s.index("four"))))
        name = self.bindings.name(buffer, element.one)
        if repeats is not None and not layout.is_single:
            return [self._let(variable, element.load(name, repeats.index("four")))] * WIDTH
        if layout.is_single:
            return [self._let(f"{name}_at_{layout.offset}", element.load(name, f"{layout.offset}u"))] * WIDTH
        at = layout.spaced("four") or [layout.index(f"({index})") for index in indices]
        return [element.load(name, index) for index in at]

    def _let(self, variable: str, value: str) -> str:
        self.statements[f"let {variable} = {value};"] = None
        return variable
