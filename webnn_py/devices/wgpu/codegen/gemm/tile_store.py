"""The end of a tiled product: adding up the sums of a workgroup's slices, and storing the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webnn_py.devices.wgpu.codegen.epilogue import EpilogueCode
from webnn_py.devices.wgpu.codegen.gemm.tiling import GemmTiling
from webnn_py.devices.wgpu.codegen.module import length_with_helpers
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH

LONG_END: Final = 3000
"""An epilogue of more characters, its helper functions included, is called in a loop, not once per vec4 of sums.

Drivers inline it at every call: of a kernel that NVIDIA's compiler built in 0.6 s, GELU took 0.5 s; 1.5 s in float16.
"""


LONG_END_IN_HALVES: Final = 1300
"""The same limit for epilogues that round intermediate results to float16, which compile more slowly."""


AT_ONCE: Final = 8
"""The vec4s of sums to which the epilogue is applied before any of them is stored."""


def is_long(end: EpilogueCode) -> bool:
    """Return whether an epilogue is called in a loop."""
    longest = LONG_END_IN_HALVES if "rounded_half(" in end.text else LONG_END
    return length_with_helpers(end.text) > longest


class TileStore:
    """Writes the statements after the loop; for arguments, see :func:`.tiled_kernel`."""

    def __init__(self, tiling: GemmTiling, count: int, end: EpilogueCode) -> None:
        self._plan = tiling
        self._count = count
        self._end = end

    def write(self) -> list[str]:
        return [*self._add_slices(), *self._store()]

    def _add_slices(self) -> list[str]:
        """Exchange the slices' sums through workgroup memory; each slice adds up its share of them."""
        tiling, tile = self._plan, self._plan.tile
        if tile.slices == 1:
            return []
        lines = []
        sums = tiling.sums()
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
        at_once = 1 if self._end.is_partial else AT_ONCE
        parts = [places[first : first + at_once] for first in range(0, len(places), at_once)]
        return [line for part in parts for line in self._store_together(part)]

    def _store_together(self, places: Sequence[tuple[str, str, str]]) -> list[str]:
        """Apply the epilogue to several vec4s of sums (row, group of columns, variable), then store them all.

        Compilers do not move the epilogue's loads, of residuals for example, before stores that may alias them.
        """
        product = self._plan.problem
        ends, stores = [], []
        for index, (row, group, variable) in enumerate(places):
            is_float32 = self._plan.accumulate == "f32" or variable.startswith("totals[")
            total = variable if is_float32 else f"vec4<f32>({variable})"
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
        """Name the row and the first column of a vec4 of sums."""
        tile = self._plan.tile
        return [
            f"let row{tag} = row0 + ({row} / {WIDTH}u * {tile.down}u + down) * {WIDTH}u + {row} % {WIDTH}u;",
            f"let column{tag} = column0 + ({group} * {tile.across}u + across) * {WIDTH}u;",
        ]

    def _ended(self, tag: str, number: str, total: str) -> list[str]:
        """Name the index of an element or vec4, and the result of the epilogue."""
        lines = [f"let at{tag} = {number};"]
        if not self._end.is_partial:
            tiling, product = self._plan, self._plan.problem
            is_whole = not (tiling.rows % tiling.tile.rows or tiling.columns % tiling.tile.columns or product.is_there)
            function, unit = ("ended", WIDTH) if product.vec4s else ("ended_one", 1)
            at = f"at{tag}" if is_whole else f"min(at{tag}, {self._count // unit - 1}u)"
            total = f"{function}({at}, {total})"
        elif self._end.writes[0][2] == "vec4<f16>":
            total = f"vec4<f16>({total})"
        return [*lines, f"let ending{tag} = {total};"]

    def _put(self, tag: str, row: str, column: str) -> list[str]:
        """Store the result unless it is out of bounds."""
        tiling, product = self._plan, self._plan.problem
        checks = []
        if tiling.rows % tiling.tile.rows:
            checks.append(f"{row} < {tiling.rows}u")
        if tiling.columns % tiling.tile.columns:
            checks.append(f"{column} < {tiling.columns}u")
        if product.is_there is not None:
            checks.append(product.is_there("batch", row, column))
        if self._end.is_partial:
            part = -(-self._count // WIDTH) * WIDTH // (WIDTH if product.vec4s else 1)
            stored = f"sums[part * {part}u + at{tag}] = ending{tag};"
        else:
            stored = f"{'put' if product.vec4s else 'put_one'}(at{tag}, ending{tag});"
        return [f"if ({' && '.join(checks)}) {{ {stored} }}"] if checks else [stored]

    def _store_in_a_loop(self, groups: int) -> list[str]:
        tile = self._plan.tile
        count = tile.sums // tile.slices
        names = self._plan.sums() if tile.slices == 1 else [f"total{share}" for share in range(count)]
        lines = [f"var totals: array<vec4<f32>, {count}>;"]
        lines += [f"totals[{index}] = vec4<f32>({name});" for index, name in enumerate(names)]
        number = "share" if tile.slices == 1 else f"(share * {tile.slices}u + slice)"
        stored = self._store_together([(f"({number} / {groups}u)", f"({number} % {groups}u)", "totals[share]")])
        # group.z is always 0, which compilers do not know; with a constant bound they would unroll the loop.
        return [*lines, f"for (var share = 0u; share < {count}u + group.z; share++) {{", *stored, "}"]
