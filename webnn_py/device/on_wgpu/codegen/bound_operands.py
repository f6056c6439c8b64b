"""What an element-wise kernel reads: buffers, bound once for each way of reading them, and expressions of elements."""

from __future__ import annotations

from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.graph import Value


class BoundOperands:
    """The buffers that a kernel reads, each bound once for each way of reading it."""

    def __init__(self, lowering: Lowering, prefix: str = "b") -> None:
        self._lowering = lowering
        self._prefix = prefix
        self.bindings: dict[tuple[Buffer, str], str] = {}
        self._loads = 0

    def bind(self, buffer: Buffer, kind: str) -> str:
        return self.bindings.setdefault((buffer, kind), f"{self._prefix}{len(self.bindings)}")

    def scalars(
        self, value: Value, shape: tuple[int, ...], indices: list[str], layout: Layout | None = None
    ) -> tuple[str, list[str]]:
        """Statements that prepare, and expressions for four elements of a value that is broadcast to ``shape``.

        Args:
            value: what to read.
            shape: the shape to broadcast to.
            indices: the numbers of the elements: of the four, or of any others when they are not four.
            layout: how to look at the value, when not as it lies.
        """
        element = self._lowering.element(value)
        literal = constant_scalar(value)
        if literal is not None:
            return "", [element.literal(literal)] * len(indices)
        self._loads += 1
        place = self._lowering.near(value) if layout is None else self._lowering.place(value)
        layout = (layout or place.layout).broadcast(shape)
        if len(indices) != WIDTH:
            name = self.bind(place.buffer, element.one)
            return "", [element.load(name, layout.index(f"({index})")) for index in indices]
        return self._vec4(place.buffer, element, layout, indices)

    def _vec4(self, buffer: Buffer, element: Element, layout: Layout, indices: list[str]) -> tuple[str, list[str]]:
        """The same for the four elements number ``four``, in the way that their layout allows."""
        if layout.is_dense:
            name = self.bind(buffer, element.vec4)
            return f"  let {name}_four = {element.four(name, 'four')};\n", element.unpack(f"{name}_four")
        vec4s, repeats = layout.vec4s(), layout.repeats()
        variable = f"four_{self._loads}"
        if vec4s is not None:
            name = self.bind(buffer, element.vec4)
            return f"  let {variable} = {element.four(name, vec4s.index('four'))};\n", element.unpack(variable)
        name = self.bind(buffer, element.one)
        if repeats is not None and not layout.is_single:
            load = element.load(name, repeats.index("four"))
            return f"  let {variable} = {load};\n", [variable] * WIDTH
        if layout.is_single:
            variable = f"{name}_at_{layout.offset}"
            load = element.load(name, f"{layout.offset}u")
            return f"  let {variable} = {load};\n", [variable] * WIDTH
        at = layout.spaced("four") or [layout.index(f"({index})") for index in indices]
        return "", [element.load(name, index) for index in at]
