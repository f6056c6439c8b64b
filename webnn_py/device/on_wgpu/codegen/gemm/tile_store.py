"""The end of a tiled product: what the slices of a workgroup have summed up is added, and stored."""

from __future__ import annotations

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


LONG_END_IN_HALVES: Final = 1500
"""Likewise where results are rounded to float16 in between, each for itself: such text takes a compiler longer."""


def is_long(end: EpilogueCode | Buffer) -> bool:
    """Whether an operator's last step is so long."""
    if not isinstance(end, EpilogueCode):
        return False
    longest = LONG_END_IN_HALVES if "rounded_half(" in end.text else LONG_END
    return length_with_helpers(end.text) > longest


class TileStore:
    """Writes the statements behind the loop."""

    def __init__(self, plan: TilePlan, count: int, end: EpilogueCode | Buffer) -> None:
        """Store what has been summed up.

        Args:
            plan: the tile.
            count: the elements of the output.
            end: the operator's last step; or the buffer for parts of the sums, one behind the other.
        """
        self._plan = plan
        self._count = count
        self._end = end

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
        lines = []
        if is_long(self._end):
            return self._store_in_a_loop(groups)
        if tile.slices > 1:
            for share in range(tile.sums // tile.slices):
                number = f"({share * tile.slices}u + slice)"
                lines += self._store_vec4(f"{number} / {groups}u", f"{number} % {groups}u", f"total{share}")
            return lines
        for row in range(tile.thread_rows):
            for group in range(groups):
                lines += self._store_vec4(f"{row}u", f"{group}u", f"c{row}_{group}")
        return lines

    def _store_in_a_loop(self, groups: int) -> list[str]:
        tile = self._plan.tile
        count = tile.sums // tile.slices
        names = self._plan.sums() if tile.slices == 1 else [f"total{share}" for share in range(count)]
        lines = [f"var totals: array<vec4<f32>, {count}>;"]
        lines += [f"totals[{index}] = vec4<f32>({name});" for index, name in enumerate(names)]
        number = "share" if tile.slices == 1 else f"(share * {tile.slices}u + slice)"
        stored = self._store_vec4(f"({number} / {groups}u)", f"({number} % {groups}u)", "totals[share]")
        # There is one layer of workgroups, which compilers do not know: they would write the loop out.
        return [*lines, f"for (var share = 0u; share < {count}u + group.z; share++) {{", *stored, "}"]

    def _store_vec4(self, row: str, group: str, total: str) -> list[str]:
        """Store four sums of a row and a group of columns of the invocation."""
        plan = self._plan
        tile, product = plan.tile, plan.problem
        total = total if plan.accumulate == "f32" or total.startswith("totals[") else f"vec4<f32>({total})"
        checks = []
        if plan.rows % tile.rows:
            checks.append(f"row < {plan.rows}u")
        if plan.columns % tile.columns:
            checks.append(f"column < {plan.columns}u")
        lines = [
            "{",
            f"let row = row0 + ({row} / {WIDTH}u * {tile.down}u + down) * {WIDTH}u + {row} % {WIDTH}u;",
            f"let column = column0 + ({group} * {tile.across}u + across) * {WIDTH}u;",
        ]
        if product.vec4s:
            number = f"({product.address('batch', 'row', 'column')}) / {WIDTH}u"
            stored = self._store_if_there("column", self._store_call("finish", number, total))
        else:
            stored = []
            for component in range(WIDTH):
                column = f"(column + {component}u)"
                number = product.address("batch", "row", column)
                call = self._store_call("finish_one", number, f"{total}.{COMPONENTS[component]}")
                call = call if plan.columns % WIDTH == 0 else f"if {column} < {plan.columns}u {{ {call} }}"
                stored += self._store_if_there(column, call)
        if checks:
            stored = [f"if ({' && '.join(checks)}) {{", *stored, "}"]
        return [*lines, *stored, "}"]

    def _store_if_there(self, column: str, call: str) -> list[str]:
        is_there = self._plan.problem.is_there
        return [call] if is_there is None else [f"if ({is_there('batch', 'row', column)}) {{", call, "}"]

    def _store_call(self, function: str, number: str, total: str) -> str:
        if isinstance(self._end, EpilogueCode):
            return f"{function}({number}, {total});"
        unit = WIDTH if self._plan.problem.vec4s else 1
        part = -(-self._count // WIDTH) * WIDTH // unit
        return f"sums[part * {part}u + {number}] = {total};"
