"""Where the two sides of a product come from: matrices of any layout, and windows of images.

A side has an outer axis (the rows of the left matrix, the columns of the right one) and the inner axis that is summed
over. A workgroup brings a tile of each side into its memory, four neighbours on the outer axis at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from webnn_py.device.on_wgpu.codegen.module import Binding
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.layout import Layout

LoadPattern = Literal["direct", "transposed", "scalar"]
"""How a side is read: vec4s along the outer axis; vec4s along the inner axis, transposed four by
four; or element by element."""


class OperandLoader(Protocol):
    """One side of a product, as text that reads it.

    Attributes:
        buffer: where it lies.
        element: how its data type is stored.
        outer: the length of the outer axis.
        inner: the length of the inner axis.
        pattern: how it is read.
        follows_inner: whether neighbouring invocations had better read neighbours on the inner axis.
    """

    @property
    def buffer(self) -> Buffer: ...
    @property
    def element(self) -> Element: ...
    @property
    def outer(self) -> int: ...
    @property
    def inner(self) -> int: ...
    @property
    def pattern(self) -> LoadPattern: ...
    @property
    def follows_inner(self) -> bool: ...

    def functions(self, name: str, scalar: str, array: str) -> str:
        """The functions that the other texts call, which read the binding ``array``."""

    def begin(self, name: str) -> list[str]:
        """Statements before all others; the number of the ``batch`` is known."""

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        """Statements that name, as ``tag``, what reading at four places on the outer axis needs again and again."""

    def enter(self, name: str, tag: str, depth: int) -> list[str]:
        """Statements before reading of a tile ``depth`` long that begins at ``first`` on the inner axis."""

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        """Expressions for vec4s: one along the outer axis, or when transposed, four of them along the inner one."""


@runtime_checkable
class WritesBindings(Protocol):
    """A side that reads more than one array, or another one than its elements."""

    def written(self, name: str, scalar: str) -> tuple[list[Binding], str]:
        """What is bound, and the functions that the other texts call."""


def described(loader: OperandLoader) -> Hashable:
    """All that the texts of ``main`` depend on: every attribute but the buffer, and what writes functions only."""
    kind: Any = type(loader)
    fields = (field for field in attrs.fields(kind) if field.name != "buffer" and field.eq)
    return kind, *(getattr(loader, field.name) for field in fields)


def binding_kind(loader: OperandLoader) -> str:
    """The type of the elements of the array that a source reads."""
    return loader.element.one if loader.pattern == "scalar" else loader.element.vec4


def bound(sides: Mapping[str, OperandLoader], scalar: str) -> tuple[list[Binding], list[str]]:
    """The bindings of a kernel's sides, one for those that read one buffer alike, and the functions that read them."""
    arrays: dict[tuple[Buffer, str], str] = {}
    own: list[Binding] = []
    functions = []
    for name, side in sides.items():
        if isinstance(side, WritesBindings):
            bindings, text = side.written(name, scalar)
            own += bindings
            functions.append(text)
            continue
        array = arrays.setdefault((side.buffer, binding_kind(side)), name)
        functions.append(side.functions(name, scalar, array))
    return [*((buffer, name, kind) for (buffer, kind), name in arrays.items()), *own], functions


def read_function(loader: OperandLoader, name: str, scalar: str, array: str) -> str:
    """``name_at(i)``: the element, or the vec4, number i of ``array``, computed in ``scalar``."""
    if loader.pattern == "scalar":
        value = loader.element.load(array, "i")
        value = value if scalar == "f32" else f"{scalar}({value})"
        return f"fn {name}_at(i: u32) -> {scalar} {{ return {value}; }}"
    if loader.element.one == scalar:
        return f"fn {name}_at(i: u32) -> vec4<{scalar}> {{ return {array}[i]; }}"
    values = ", ".join(loader.element.unpack("four"))
    wide = f"vec4<f32>({values})" if scalar == "f32" else f"vec4<{scalar}>(vec4<f32>({values}))"
    return f"fn {name}_at(i: u32) -> vec4<{scalar}> {{ let four = {array}[i]; return {wide}; }}"


def in_vec4s(layout: Layout) -> Layout:
    """A layout of whole vec4s, counted in vec4s."""
    return Layout(layout.shape, tuple(stride // WIDTH for stride in layout.strides), layout.offset // WIDTH)
