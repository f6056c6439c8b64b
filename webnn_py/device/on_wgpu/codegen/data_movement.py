"""Kernels that fill their output with elements from elsewhere, and change none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webnn_py.device.on_wgpu.codegen.copies import bits_of
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer, Place
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.graph import Value


class MovementKernel:
    """One such kernel: operands are asked for by the numbers of their units, which are elements or whole vec4s.

    Attributes:
        width: the elements of a unit.
    """

    def __init__(self, lowering: Lowering, like: Value, moved: Sequence[Place], run: int) -> None:
        """Choose the unit.

        Args:
            lowering: where the kernel goes.
            like: a value of the data type that is moved.
            moved: where the operands lie whose elements are moved.
            run: so many elements stay together, in the output and in every operand, at multiples of their number.
        """
        self._lowering = lowering
        self._data_type = like.descriptor.data_type
        self._bits = bits_of(self._data_type)
        together = run % WIDTH == 0 and all(place.layout.vec4s() is not None for place in moved)
        self.width = WIDTH if together else 1
        self._bindings: dict[tuple[Buffer, str], str] = {}
        self._accessors: dict[tuple[Place, bool], str] = {}
        self._functions: list[str] = []

    @property
    def unit(self) -> str:
        """The WGSL type of a unit."""
        return self._bits.compute if self.width == 1 else self._bits.vec4

    def literal(self, bits: int) -> str:
        """A unit whose elements all have these bits."""
        return self._bits.literal(bits) if self.width == 1 else self._bits.pack([self._bits.literal(bits)] * WIDTH)

    def load(self, place: Place, index: str) -> str:
        """An expression for the unit number ``index`` (u32), in row-major order, of an operand that is moved."""
        layout, kind = place.layout, self._bits.one
        if self.width == WIDTH:
            vec4s = layout.vec4s()
            assert vec4s is not None  # noqa: S101 - else the units were elements
            layout, kind = vec4s, self._bits.vec4
        buffer = self._bind(place.buffer, kind)
        at = layout.index("i")
        value = f"{buffer}[{at}]" if self.width == WIDTH else self._bits.load(buffer, at)
        return f"{self._accessor((place, True), self.unit, value)}({index})"

    def number(self, value: Value, index: str) -> str:
        """An expression for the element number ``index`` (u32) of an operand that is not moved but looked at."""
        element, place = self._lowering.element(value), self._lowering.place(value)
        load = element.load(self._bind(place.buffer, element.one), place.layout.index("i"))
        return f"{self._accessor((place, False), element.compute, load)}({index})"

    def word(self, buffer: Buffer, index: str) -> str:
        """An expression for a word of a buffer."""
        return f"{self._bind(buffer, 'u32')}[{index}]"

    def define(self, function: str) -> None:
        """Add a WGSL function."""
        self._functions.append(function)

    def _bind(self, buffer: Buffer, kind: str) -> str:
        return self._bindings.setdefault((buffer, kind), f"b{len(self._bindings)}")

    def _accessor(self, key: tuple[Place, bool], kind: str, value: str) -> str:
        if key not in self._accessors:
            name = self._accessors[key] = f"load{len(self._accessors)}"
            self.define(f"fn {name}(i: u32) -> {kind} {{ return {value}; }}")
        return self._accessors[key]

    def emit(self, operator: str, count: int, target: Buffer, statements: str) -> None:
        """Add the kernel that writes every unit of the output.

        Args:
            operator: for the label.
            count: how many elements the output has.
            target: where it goes.
            statements: WGSL statements that return the unit number ``i`` (u32) of the output.
        """
        if self.width == WIDTH:
            main, workgroups = vec4_entry_point(count, "  o[four] = moved(four);")
        else:
            calls = [f"moved({index})" for index in vec4_indices(count)]
            main, workgroups = vec4_entry_point(count, f"  o[four] = {self._bits.pack(calls)};")
        self.define(f"fn moved(i: u32) -> {self.unit} {{\n{statements}\n}}")
        self.finish(operator, main, workgroups, {"o": target}, self._bits.vec4)

    def finish(
        self, operator: str, main: str, workgroups: tuple[int, int, int], targets: Mapping[str, Buffer], kind: str
    ) -> None:
        """Add the kernel with an entry point that writes arrays of ``kind``, given by their names."""
        reads = [(buffer, name, read) for (buffer, read), name in self._bindings.items()]
        writes = [(buffer, name, kind) for name, buffer in targets.items()]
        source = module(declare(reads, writes), *self._functions, main)
        buffers = tuple(buffer for buffer, _ in self._bindings)
        label = f"{operator} {self._data_type}"
        self._lowering.emit(Kernel(label, source, buffers, tuple(targets.values()), workgroups))
