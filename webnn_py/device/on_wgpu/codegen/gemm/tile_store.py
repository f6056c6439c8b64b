"""The end of a tiled product: what the slices of a workgroup have summed up is added, and stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webnn_py.device.on_wgpu.codegen.epilogue import EpilogueCode
from webnn_py.device.on_wgpu.codegen.gemm.tile_plan import TilePlan
from webnn_py.device.on_wgpu.codegen.module import length_with_helpers
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import COMPONENTS, WIDTH

LONG_END: Final = 3000
"""An operator's last step of more characters, with all that it calls, is written once and not for each vec4 of sums.

A driver puts it in for every call. GELU's took NVIDIA's compiler 0.5 s of a kernel's 0.6 s, with 16-bit floats 1.5 s.
"""


LONG_END_IN_HALVES: Final = 1300
"""Likewise where results are rounded to float16 in between, each for itself: such text takes a compiler longer."""


AT_ONCE: Final = 8
"""Vec4s of sums whose last step is computed before any of them is stored."""


def is_long(end: EpilogueCode | Buffer) -> bool:
    """Whether an operator's last step is so long."""
    if not isinstance(end, EpilogueCode):
        return False
    longest = LONG_END_IN_HALVES if "rounded_half(" in end.text else LONG_END
    return length_with_helpers(end.text) > longest


class TileStore:
    """Writes the statements behind the loop."""

    def __init__(self, plan: TilePlan, count: int, end: EpilogueCode | Buffer, kind: str) -> None:
        """Store what has been summed up.

        Args:
            plan: the tile.
            count: the elements of the output.
            end: the operator's last step; or the buffer for parts of the sums, one behind the other.
            kind: the type of a sum in that buffer.
        """
        self._plan = plan
        self._count = count
        self._end = end
        self._kind = kind

    def write(self) -> list[str]:
        """The statements."""
        return [*self._add_slices(), *self._store()]

    def _add_slices(self) -> list[str]:
        """Hand the other slices their share of the sums, and add up one's own: those whose number is ``slice``."""
        plan, tile = self._plan, self._plan.tile
        if tile.slices == 1:
            return []
        lines = []
        sums = plan.sums()
        for first in range(0, tile.sums, tile.shared_sums):
            some = sums[first : first + tile.shared_sums]
            lines.append("workgroupBarrier();")
            lines += [f"tile[{index * tile.threads}u + thread] = {name};" for index, name in enumerate(some)]
            lines.append("workgroupBarrier();")
            for share in range(len(some) // tile.slices):
                base = f"({share * tile.slices}u + slice) * {tile.threads}u + t"
                terms = [f"tile[{base} + {other * tile.slice_threads}u]" for other in range(tile.slices)]
                lines.append(f"let total{first // tile.slices + share} = {' + '.join(terms)};")
        return lines

    def _store(self) -> list[str]:
        tile = self._plan.tile
        groups = tile.thread_columns // WIDTH
        if is_long(self._end):
            return self._store_in_a_loop(groups)
        if tile.slices > 1:
            sums = [(f"({share * tile.slices}u + slice)", f"total{share}") for share in range(tile.sums // tile.slices)]
            places = [(f"{number} / {groups}u", f"{number} % {groups}u", total) for number, total in sums]
        else:
            rows = range(tile.thread_rows)
            places = [(f"{row}u", f"{group}u", f"c{row}_{group}") for row in rows for group in range(groups)]
        at_once = AT_ONCE if isinstance(self._end, EpilogueCode) else 1
        parts = [places[first : first + at_once] for first in range(0, len(places), at_once)]
        return [line for part in parts for line in self._store_together(part)]

    def _store_together(self, places: Sequence[tuple[str, str, str]]) -> list[str]:
        """Compute what becomes of several vec4s of sums (row, group of columns, variable), then store all of it.

        Compilers leave loads behind the stores before them if both may be of the same memory, as residuals are.
        """
        product = self._plan.problem
        ends, stores = [], []
        for index, (row, group, variable) in enumerate(places):
            total = variable if self._is_float32(variable) else f"vec4<f32>({variable})"
            row_name, first = f"row_{index}", f"column_{index}"
            ends += self._place(row, group, f"_{index}")
            if product.vec4s:
                number = f"({product.address('batch', row_name, first)}) / {WIDTH}u"
                ends += self._ended(f"_{index}", number, total)
                stores += self._put(f"_{index}", row_name, first)
                continue
            for component, name in enumerate(COMPONENTS):
                tag, column = f"_{index}_{component}", f"({first} + {component}u)"
                ends += self._ended(tag, product.address("batch", row_name, column), f"{total}.{name}")
                stores += self._put(tag, row_name, column)
        return ["{", *ends, *stores, "}"]

    def _place(self, row: str, group: str, tag: str) -> list[str]:
        """Name the row and the first column of four sums of the invocation."""
        tile = self._plan.tile
        return [
            f"let row{tag} = row0 + ({row} / {WIDTH}u * {tile.down}u + down) * {WIDTH}u + {row} % {WIDTH}u;",
            f"let column{tag} = column0 + ({group} * {tile.across}u + across) * {WIDTH}u;",
        ]

    def _ended(self, tag: str, number: str, total: str) -> list[str]:
        """Name an element's or a vec4's number, and what becomes of its sums."""
        lines = [f"let at{tag} = {number};"]
        if isinstance(self._end, EpilogueCode):
            plan, product = self._plan, self._plan.problem
            is_whole = not (plan.rows % plan.tile.rows or plan.columns % plan.tile.columns or product.is_there)
            function, unit = ("ended", WIDTH) if product.vec4s else ("ended_one", 1)
            at = f"at{tag}" if is_whole else f"min(at{tag}, {self._count // unit - 1}u)"
            total = f"{function}({at}, {total})"
        elif self._kind != "f32":
            total = f"vec4<{self._kind}>({total})"
        return [*lines, f"let ending{tag} = {total};"]

    def _put(self, tag: str, row: str, column: str) -> list[str]:
        """Store it, if it is in the output."""
        plan, product = self._plan, self._plan.problem
        checks = []
        if plan.rows % plan.tile.rows:
            checks.append(f"{row} < {plan.rows}u")
        if plan.columns % plan.tile.columns:
            checks.append(f"{column} < {plan.columns}u")
        if product.is_there is not None:
            checks.append(product.is_there("batch", row, column))
        if isinstance(self._end, EpilogueCode):
            stored = f"{'put' if product.vec4s else 'put_one'}(at{tag}, ending{tag});"
        else:
            part = -(-self._count // WIDTH) * WIDTH // (WIDTH if product.vec4s else 1)
            stored = f"sums[part * {part}u + at{tag}] = ending{tag};"
        return [f"if ({' && '.join(checks)}) {{ {stored} }}"] if checks else [stored]

    def _is_float32(self, total: str) -> bool:
        return self._plan.accumulate == "f32" or total.startswith("totals[")

    def _store_in_a_loop(self, groups: int) -> list[str]:
        tile = self._plan.tile
        count = tile.sums // tile.slices
        names = self._plan.sums() if tile.slices == 1 else [f"total{share}" for share in range(count)]
        lines = [f"var totals: array<vec4<f32>, {count}>;"]
        lines += [f"totals[{index}] = vec4<f32>({name});" for index, name in enumerate(names)]
        number = "share" if tile.slices == 1 else f"(share * {tile.slices}u + slice)"
        stored = self._store_together([(f"({number} / {groups}u)", f"({number} % {groups}u)", "totals[share]")])
        # There is one layer of workgroups, which compilers do not know: they would write the loop out.
        return [*lines, f"for (var share = 0u; share < {count}u + group.z; share++) {{", *stored, "}"]
