"""float16 matrices whose rows are read eight elements at a time: the most bytes that one load brings."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.records.element import COMPONENTS
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.variants import Variant

HALVES: Final = 8
"""float16 elements of a load."""


@attrs.frozen(slots=False)
class WideMatrixLoader(MatrixLoader):
    """A side that is read as ``vec4<u32>`` along the outer axis, for :func:`halves`."""

    def functions(self, name: str, scalar: str, array: str) -> str:
        return f"fn {name}_at(i: u32) -> vec4<u32> {{ return {array}[i]; }}"

    def begin(self, name: str) -> list[str]:
        return [f"let {name}_base = {_in_eights(self.batches).index('batch')};"]

    def along(self, inner: str) -> str:
        return _in_eights(self.inner_axis).index(f"({inner})")


def widened(matrix: MatrixLoader) -> MatrixLoader:
    """The same matrix read eight elements at a time, where it may be.

    What the graph computes itself is read as it is written: no kernel may bind it in two ways.
    """
    numbers = [matrix.outer, *matrix.batches.merged().strides, matrix.batches.offset]
    numbers += [*matrix.inner_axis.merged().strides, matrix.inner_axis.offset]
    is_half = matrix.pattern == "direct" and matrix.element.data_type == "float16"
    if not is_half or matrix.buffer.kind == "block" or any(number % HALVES for number in numbers):
        return matrix
    if not Variant.GEMV_WIDE_LOADS.is_on:
        return matrix
    fields = {field.name: getattr(matrix, field.name) for field in attrs.fields(MatrixLoader)}
    return WideMatrixLoader(**{**fields, "element": attrs.evolve(matrix.element, vec4="vec4<u32>"), "forced": "direct"})


def halves(words: str) -> list[str]:
    """The eight elements of a ``vec4<u32>``, as two ``vec4<f32>``."""
    pairs = [f"unpack2x16float({words}.{component})" for component in COMPONENTS]
    return [f"vec4<f32>({pairs[0]}, {pairs[1]})", f"vec4<f32>({pairs[2]}, {pairs[3]})"]


def _in_eights(layout: Layout) -> Layout:
    strides = tuple(stride // HALVES for stride in layout.strides)
    return Layout(layout.shape, strides, layout.offset // HALVES)
