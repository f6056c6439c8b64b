"""Dynamic sizes in WGSL: placeholders in a kernel's source become elements of a uniform buffer."""

from __future__ import annotations

import re
from typing import Final

import attrs

from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.named_sizes.decisions import Tracing
from webnn_py.named_sizes.expressions import SymbolicSize

_MARK: Final = re.compile(r"\b99900(\d{5})(u|i|\.0)?(?![\w.])")
"""Placeholders exceed 32-bit integers, so that no other number in a source looks like one."""

_ANY_MARK: Final = re.compile(r"99900\d{5}")

_TYPES: Final = {None: "{}", "u": "{}", "i": "i32({})", ".0": "f32({})"}


class UnwritableSizeError(Exception):
    """A dynamic size is used where a kernel's source needs a constant."""


class SizeMarks:
    """The placeholders of sizes in sources, until the uniform buffer of each kernel is laid out."""

    def __init__(self) -> None:
        self._sizes: list[SymbolicSize] = []
        self._numbers: dict[object, int] = {}

    def mark(self, size: SymbolicSize) -> str:
        """Return the placeholder of a size."""
        number = self._numbers.setdefault(size.terms, len(self._sizes))
        if number == len(self._sizes):
            self._sizes.append(size)
        return f"99900{number:05d}"

    def taken(self, kernel: Kernel, tracing: Tracing) -> Kernel:
        """Return a kernel whose placeholders are replaced by elements of a uniform buffer.

        Args:
            kernel: the kernel.
            tracing: the completed tracing; sizes with only one possible value become constants.

        Raises:
            UnwritableSizeError: a placeholder is part of a larger token.
        """
        if "99900" not in kernel.source:
            return kernel
        sizes: dict[int, int] = {}

        def element(match: re.Match[str]) -> str:
            number = int(match[1])
            if number < len(self._sizes) and self._sizes[number].names <= tracing.determined:
                return f"{self._sizes[number].value(tracing.sizes)}{match[2] or ''}"
            place = sizes.setdefault(number, len(sizes))
            return _TYPES[match[2]].format(f"sizes[{place // 4}].{'xyzw'[place % 4]}")

        source = _MARK.sub(element, kernel.source)
        if _ANY_MARK.search(source) or any(number >= len(self._sizes) for number in sizes):
            raise UnwritableSizeError(f"the kernel {kernel.label!r} has a size where its text needs a number")
        if not sizes:
            return attrs.evolve(kernel, source=source)
        binding = len(kernel.reads) + len(kernel.writes)
        declared = f"@group(0) @binding({binding}) var<uniform> sizes: array<vec4<u32>, {-(-len(sizes) // 4)}>;\n"
        enable, found, rest = source.rpartition("enable f16;\n")
        return attrs.evolve(
            kernel, source=f"{enable}{found}{declared}{rest}", sizes=tuple(self._sizes[number] for number in sizes)
        )
