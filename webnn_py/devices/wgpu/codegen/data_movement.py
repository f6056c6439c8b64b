"""Kernels that move elements from operands to their output without changing their bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webnn_py.core.graph import Value
from webnn_py.devices.wgpu.codegen.copies import bits_of
from webnn_py.devices.wgpu.codegen.entry_point import Dispatch, vec4_entry_point, vec4_indices
from webnn_py.devices.wgpu.codegen.module import Bindings, bound_kernel
from webnn_py.devices.wgpu.records.buffer import Buffer, Place
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.lowering import Lowering


class MovementKernel:
    """A kernel that moves units: single elements, or whole vec4s where these stay together.

    Attributes:
        width: the elements of a unit.
    """

    def __init__(self, lowering: Lowering, like: Value, moved: Sequence[Place], run: int) -> None:
        """Choose the unit.

        Args:
            lowering: where the kernel is emitted.
            like: a value of the data type that is moved.
            moved: the operands whose elements are moved.
            run: the number of elements that stay adjacent, aligned to it, in the output and in every operand.
        """
        self._lowering = lowering
        self._data_type = like.descriptor.data_type
        self._bits = bits_of(self._data_type)
        are_vec4s = run % WIDTH == 0 and all(place.layout.vec4s() is not None for place in moved)
        self.width = WIDTH if are_vec4s else 1
        self._bindings = Bindings("b")
        self._accessors: dict[tuple[Place, bool], str] = {}
        self._functions: list[str] = []

    @property
    def unit(self) -> str:
        """The WGSL type of a unit."""
        return self._bits.compute if self.width == 1 else self._bits.vec4

    def literal(self, bits: int) -> str:
        """Return a unit whose elements all have these bits."""
        return self._bits.literal(bits) if self.width == 1 else self._bits.pack([self._bits.literal(bits)] * WIDTH)

    def load(self, place: Place, index: str) -> str:
        """Return an expression for a unit of a moved operand, by its row-major index (u32)."""
        if self.width == WIDTH:
            vec4s = place.layout.vec4s()
            assert vec4s is not None  # noqa: S101 - else the units were elements
            value = f"{self._bindings.name(place.buffer, self._bits.vec4)}[{vec4s.index('i')}]"
        else:
            buffer = self._bindings.name(place.buffer, self._bits.one)
            value = self._bits.load(buffer, place.layout.index("i"))
        return f"{self._accessor((place, True), self.unit, value)}({index})"

    def number(self, value: Value, index: str) -> str:
        """Return an expression for the number at a row-major index (u32) of an operand such as indices."""
        element, place = self._lowering.element(value), self._lowering.place(value)
        load = element.load(self._bindings.name(place.buffer, element.one), place.layout.index("i"))
        return f"{self._accessor((place, False), element.compute, load)}({index})"

    def word(self, buffer: Buffer, index: str) -> str:
        """Return an expression for a 32-bit word of a buffer."""
        return f"{self._bindings.name(buffer, 'u32')}[{index}]"

    def define(self, function: str) -> None:
        """Add a WGSL function."""
        self._functions.append(function)

    def _accessor(self, key: tuple[Place, bool], kind: str, value: str) -> str:
        if key not in self._accessors:
            name = self._accessors[key] = f"load{len(self._accessors)}"
            self.define(f"fn {name}(i: u32) -> {kind} {{ return {value}; }}")
        return self._accessors[key]

    def emit(self, operator: str, count: int, target: Buffer, statements: str) -> None:
        """Emit the kernel that writes every unit of the output.

        Args:
            operator: the operator, for the label.
            count: the number of output elements.
            target: the output's buffer.
            statements: WGSL statements that return the output unit ``i`` (u32).
        """
        result = "moved(four)" if self.width == WIDTH else self._bits.pack([f"moved({i})" for i in vec4_indices(count)])
        main, workgroups = vec4_entry_point(count, [f"o[four] = {result};"])
        self.define(f"fn moved(i: u32) -> {self.unit} {{\n{statements}\n}}")
        self.finish(operator, main, workgroups, {"o": target}, self._bits.vec4)

    def finish(self, operator: str, main: str, workgroups: Dispatch, targets: Mapping[str, Buffer], kind: str) -> None:
        """Emit the kernel of an entry point that writes named arrays of ``kind``."""
        writes = [(buffer, name, kind) for name, buffer in targets.items()]
        label = f"{operator} {self._data_type}"
        self._lowering.emit(bound_kernel(label, self._bindings, writes, [*self._functions, main], workgroups))
