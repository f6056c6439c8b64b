"""The operands of a matrix product: matrices of any layout, and windows or pixels of images.

An operand has an outer axis, the rows of the left matrix or the columns of the right one, and the inner axis, which is
reduced. A workgroup stages a tile of each operand in its memory, as vec4s along the outer axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import attrs

from webnn_py.devices.wgpu.codegen.module import Binding
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import Element

LoadPattern = Literal["direct", "transposed", "scalar"]
"""How an operand is loaded: by vec4s along the outer axis; by vec4s along the inner axis, transposed in 4 × 4 blocks;
or by single elements."""


@attrs.frozen(slots=False)
class OperandLoader(ABC):
    """One operand of a product, as code that loads it.

    Attributes:
        buffer: its buffer.
        element: the storage of its data type.
    """

    buffer: Buffer
    element: Element

    @property
    @abstractmethod
    def outer(self) -> int:
        """The length of the outer axis."""

    @property
    @abstractmethod
    def inner(self) -> int:
        """The length of the inner axis."""

    @property
    @abstractmethod
    def pattern(self) -> LoadPattern:
        """The way in which elements are loaded."""

    @property
    @abstractmethod
    def follows_inner(self) -> bool:
        """True if loads coalesce along the inner axis."""

    def functions(self, name: str, scalar: str, array: str) -> str:
        """Return the functions that load from the binding ``array``."""
        return read_function(self, name, scalar, array)

    def own_bindings(self, name: str, scalar: str) -> tuple[list[Binding], str] | None:
        """Return the bindings and functions of an operand that does not read its own buffer; None for others."""
        return None

    @abstractmethod
    def begin(self, name: str) -> list[str]:
        """Return the statements at the start of the kernel; ``batch`` is the index of the batch."""

    @abstractmethod
    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        """Return statements that name, by ``tag``, the loop-invariant part of loads at four outer indices."""

    def enter(self, name: str, tag: str, depth: int) -> list[str]:
        """Return the statements before the loads of a tile, ``depth`` long from the inner index ``first`` on."""
        return []

    @abstractmethod
    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        """Return expressions for vec4s: one along the outer axis; if transposed, four along the inner axis."""


def described(loader: OperandLoader) -> Hashable:
    """Return everything that entry points depend on: all attributes but the buffer and those of functions."""
    kind: Any = type(loader)
    fields = (field for field in attrs.fields(kind) if field.name != "buffer" and field.eq)
    return kind, *(getattr(loader, field.name) for field in fields)


def bound(sides: Mapping[str, OperandLoader], scalar: str) -> tuple[list[Binding], list[str]]:
    """Return the bindings of a kernel's operands, each buffer once per element type, and the functions that load."""
    arrays: dict[tuple[Buffer, str], str] = {}
    own: list[Binding] = []
    functions = []
    for name, side in sides.items():
        computed = side.own_bindings(name, scalar)
        if computed is not None:
            own += computed[0]
            functions.append(computed[1])
            continue
        kind = side.element.one if side.pattern == "scalar" else side.element.vec4
        array = arrays.setdefault((side.buffer, kind), name)
        functions.append(side.functions(name, scalar, array))
    return [*((buffer, name, kind) for (buffer, kind), name in arrays.items()), *own], functions


def read_function(loader: OperandLoader, name: str, scalar: str, array: str) -> str:
    """Return the function ``name_at(i)``, which loads the element or vec4 i of ``array`` as ``scalar``."""
    if loader.pattern == "scalar":
        value = loader.element.load(array, "i")
        value = value if scalar == "f32" else f"{scalar}({value})"
        return f"fn {name}_at(i: u32) -> {scalar} {{ return {value}; }}"
    if loader.element.one == scalar:
        return f"fn {name}_at(i: u32) -> vec4<{scalar}> {{ return {array}[i]; }}"
    values = ", ".join(loader.element.unpack("four"))
    wide = f"vec4<f32>({values})" if scalar == "f32" else f"vec4<{scalar}>(vec4<f32>({values}))"
    return f"fn {name}_at(i: u32) -> vec4<{scalar}> {{ let four = {array}[i]; return {wide}; }}"
