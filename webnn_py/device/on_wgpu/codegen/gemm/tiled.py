"""Matrix products in tiles: kernels that bring tiles of both sides into a workgroup's memory and multiply them there.

Every invocation keeps its sums in named variables; all loops but the one over tiles are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.entry_point import grid
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue, Finish, emit_finish
from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import Source, bound, described
from webnn_py.device.on_wgpu.codegen.gemm.shared_tile import LANES, Staging
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import Tile, choose_splits, choose_tile
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering

MOST_MAINS: Final = 256

_MAINS: Final[dict[Hashable, str]] = {}
"""Texts to be used again: layers of a model are alike, and writing a tile's takes longer than all else of a build."""


@attrs.frozen
class Product:
    """Sums over the inner axis of a left and a right side, for every batch, row and column.

    Attributes:
        batch: the number of batches.
        left: the rows.
        right: the columns.
        address: (batch, row, column), WGSL expressions → the number of an element of the output.
        fours: whether each four columns from a multiple of four are four aligned neighbours in the output.
        row_fours: whether rows are so, if there is only one column.
        is_there: (batch, row, column) → whether the element is in the output; None where all are.
    """

    batch: int
    left: Source
    right: Source
    address: Callable[[str, str, str], str]
    fours: bool
    row_fours: bool = False
    is_there: Callable[[str, str, str], str] | None = None

    @property
    def is_native_float16(self) -> bool:
        """Whether both sides are float16 in the shader, too."""
        return self.left.element.one == self.right.element.one == "f16"

    def upright(self) -> Product:
        """The same product with rows and columns exchanged where it has a single column: that lies like a row."""
        if self.right.outer > 1 or self.left.outer == 1:
            return self

        def exchanged(of: Callable[[str, str, str], str]) -> Callable[[str, str, str], str]:
            return lambda batch, row, column: of(batch, column, row)

        return attrs.evolve(
            self,
            left=self.right,
            right=self.left,
            address=exchanged(self.address),
            fours=self.row_fours,
            is_there=None if self.is_there is None else exchanged(self.is_there),
        )


def emit_product(lowering: Lowering, product: Product, epilogue: Epilogue, tile: Tile | None = None) -> None:
    """The kernels of a product: one, or one for parts of the inner axis and one that adds them up."""
    rows, columns, inner = product.left.outer, product.right.outer, product.left.inner
    tile = tile or choose_tile(rows, columns, product.batch, lowering.features)
    accumulate = "f16" if lowering.features.float16_accumulation and product.is_native_float16 else "f32"
    groups = tile.groups(rows, columns) * product.batch
    splits = choose_splits(tile, groups, inner)
    if splits == 1 and (product.fours or epilogue.stores_single_elements):
        finish = epilogue.write(fours=product.fours)
        writer = TileWriter(product, tile, 1, epilogue.count, finish, accumulate)
        lowering.emit(writer.kernel(epilogue.label))
        return
    sums = Buffer("block", splits * padded_count(epilogue) * 4)
    writer = TileWriter(product, tile, splits, epilogue.count, sums, accumulate)
    lowering.emit(writer.kernel(f"{epilogue.label} (parts)"))
    emit_finish(lowering, epilogue, sums, splits)


def padded_count(epilogue: Epilogue) -> int:
    """The elements of the output in whole fours."""
    return -(-epilogue.count // WIDTH) * WIDTH


class TileWriter:
    """Writes the kernel of a product.

    Its names: ``t`` is the invocation's number in its slice, ``left`` and ``right`` are the buffers, ``tile`` is the
    workgroup's memory, ``c{r}_{g}`` are the sums of row r and the group g of four columns.
    """

    def __init__(
        self, product: Product, tile: Tile, splits: int, count: int, end: Finish | Buffer, accumulate: str
    ) -> None:
        """Write the kernel that sums in ``accumulate``; ``f16`` rounds every sum."""
        self._product = product
        self._tile = tile
        self._splits = splits
        self._count = count
        self._end = end
        self._rows, self._columns = product.left.outer, product.right.outer
        self._steps = -(-product.left.inner // tile.depth)
        self._row_tiles = -(-self._rows // tile.rows)
        self._column_tiles = -(-self._columns // tile.columns)
        self._accumulate = accumulate
        # float16 is widened when it is stored: sooner, an invocation would wait for memory before it computes.
        self._fetched = "f16" if product.is_native_float16 else accumulate
        vectors = {"fetched": f"vec4<{self._fetched}>", "vector": f"vec4<{accumulate}>"}
        left_threads, right_threads = self._threads_by_side()
        behind = tile.depth * tile.rows // WIDTH
        self._left = Staging("left", product.left, tile, tile.rows, "row0", left_threads, 0, **vectors)
        self._right = Staging("right", product.right, tile, tile.columns, "column0", right_threads, behind, **vectors)
        self._is_shared_out = left_threads != tile.threads

    def _threads_by_side(self) -> tuple[int, int]:
        """How many invocations bring in each side: all of them both, or, evenly by warps, some one, some the other."""
        tile = self._tile
        left = tile.threads * tile.rows // (tile.rows + tile.columns)
        if 0 < left < tile.threads and left % 32 == 0 and (tile.threads - left) % 32 == 0:
            return left, tile.threads - left
        return tile.threads, tile.threads

    # --- the whole -------------------------------------------------------------------------------------------

    def kernel(self, label: str) -> Kernel:
        """The kernel."""
        product, tile = self._product, self._tile
        groups = self._row_tiles * self._column_tiles * product.batch * self._splits
        workgroups = grid(groups)
        reads, functions = bound({"left": product.left, "right": product.right}, self._fetched)
        parts = [f"var<workgroup> tile: array<{self._left.vector}, {tile.fours}>;", *functions]
        key = self._key()
        main = _MAINS.get(key)
        if main is None:
            if len(_MAINS) >= MOST_MAINS:
                _MAINS.clear()
            main = _MAINS[key] = self._main(groups, workgroups[0])
        if isinstance(self._end, Finish):
            return self._end.kernel(label, reads, parts, main, workgroups)
        declared = declare(reads, [(self._end, "sums", "vec4<f32>" if product.fours else "f32")])
        source = module(declared, *parts, main=main)
        return Kernel(label, source, tuple(buffer for buffer, _, _ in reads), (self._end,), workgroups)

    def _key(self) -> Hashable:
        """All that the text of ``main`` depends on."""
        product = self._product
        expressions = [product.address("b", "r", "c"), product.is_there and product.is_there("b", "r", "c")]
        sides = [product.batch, product.fours, described(product.left), described(product.right)]
        ways = [self._tile, self._splits, self._count, self._accumulate, isinstance(self._end, Finish)]
        return (*expressions, *sides, *ways)

    def _main(self, groups: int, pitch: int) -> str:
        tile = self._tile
        lines = [
            f"let number = group.x + group.y * {pitch}u;",
            f"if (number >= {groups}u) {{ return; }}",
            f"let column0 = number % {self._column_tiles}u * {tile.columns}u;",
            f"let row0 = number / {self._column_tiles}u % {self._row_tiles}u * {tile.rows}u;",
            f"let batch = number / {self._column_tiles * self._row_tiles}u / {self._splits}u;",
            f"let part = number / {self._column_tiles * self._row_tiles}u % {self._splits}u;",
            *self._begin(),
            *self._loop(),
            *self._add_slices(),
            *self._store(),
        ]
        body = "\n".join(f"  {line}" for line in lines)
        return f"""
@compute @workgroup_size({tile.threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {{
{body}
}}
"""

    def _begin(self) -> list[str]:
        tile = self._tile
        lines = [f"let t = thread % {tile.slice_threads}u;", f"let slice = thread / {tile.slice_threads}u;"]
        if tile.across % 8 == 0 and tile.down % 4 == 0:
            # 32 neighbours compute a block of 8 by 4: they read the fewest fours of both sides.
            across, down = (
                ("t / 2u % 8u", "(t % 2u + t / 16u % 2u * 2u)") if tile.interleaved else ("t % 8u", "t / 8u % 4u")
            )
            lines.append(f"let across = {across} + t / 32u % {tile.across // 8}u * 8u;")
            lines.append(f"let down = {down} + t / {4 * tile.across}u * 4u;")
        else:
            lines += [f"let across = t % {tile.across}u;", f"let down = t / {tile.across}u;"]
        lines += self._product.left.begin("left") + self._product.right.begin("right")
        lines += self._left.prepare() + self._right.prepare(self._left.threads if self._is_shared_out else 0)
        lines += self._left.places("down", tile.down, tile.thread_rows)
        lines += self._right.places("across", tile.across, tile.thread_columns)
        registers = max(self._left.fours, self._right.fours)
        if not self._is_shared_out:
            registers = self._left.fours + self._right.fours
        lines += [f"var p{index} = {self._left.fetched}();" for index in range(registers)]
        lines += [f"var {name} = {self._left.vector}();" for name in self._sums()]
        return lines

    def _sums(self) -> list[str]:
        tile = self._tile
        return [f"c{row}_{group}" for row in range(tile.thread_rows) for group in range(tile.thread_columns // WIDTH)]

    # --- the loop over tiles ---------------------------------------------------------------------------------

    def _loop(self) -> list[str]:
        if not self._steps:
            return []
        if self._splits > 1:
            each = -(-self._steps // self._splits)
            bounds = [f"var step = part * {each}u;", f"let end = min(step + {each}u, {self._steps}u);"]
        else:
            bounds = ["var step = 0u;", f"let end = {self._steps}u;"]
        if self._tile.buffers == 1:
            body = [
                "workgroupBarrier();",
                *self._put("0u"),
                "workgroupBarrier();",
                "step += 1u;",
                "if (step < end) {",
                *self._fetch(),
                "}",
                *self._multiply("0u"),
            ]
            return [*bounds, "if (step < end) {", *self._fetch(), "}", "while (step < end) {", *body, "}"]
        half = self._tile.depth * (self._tile.rows + self._tile.columns) // WIDTH
        return [
            *bounds,
            "var half = 0u;",
            "if (step < end) {",
            *self._fetch(),
            *self._put("half"),
            "}",
            "workgroupBarrier();",
            "while (step < end) {",
            "step += 1u;",
            "if (step < end) {",
            *self._fetch(),
            "}",
            *self._multiply("half"),
            f"half = {half}u - half;",
            "if (step < end) {",
            *self._put("half"),
            "}",
            "workgroupBarrier();",
            "}",
        ]

    def _fetch(self) -> list[str]:
        """Read the tile number ``step`` into the variables ``p``."""
        lines = [f"let first = step * {self._tile.depth}u;"]
        full = self._product.left.inner // self._tile.depth
        if full == self._steps:
            return [*lines, *self._fetch_sides(tail=False)]
        if full == 0:
            return [*lines, *self._fetch_sides(tail=True)]
        plain, tail = self._fetch_sides(tail=False), self._fetch_sides(tail=True)
        return [*lines, f"if (step < {full}u) {{", *plain, "} else {", *tail, "}"]

    def _fetch_sides(self, *, tail: bool) -> list[str]:
        if self._is_shared_out:
            left, right = self._left.fetch(0, tail=tail), self._right.fetch(0, tail=tail)
            return [f"if (thread < {self._left.threads}u) {{", *left, "} else {", *right, "}"]
        return self._left.fetch(0, tail=tail) + self._right.fetch(self._left.fours, tail=tail)

    def _put(self, half: str) -> list[str]:
        """Store the variables ``p`` in the workgroup's memory."""
        if self._is_shared_out:
            left, right = self._left.put(0, half), self._right.put(0, half)
            return [f"if (thread < {self._left.threads}u) {{", *left, "} else {", *right, "}"]
        return self._left.put(0, half) + self._right.put(self._left.fours, half)

    def _multiply(self, half: str) -> list[str]:
        tile = self._tile
        lines = []
        for k in range(tile.inner):
            lines.append("{")
            lines += self._left.take("a", k, half, tile.thread_rows)
            lines += self._right.take("b", k, half, tile.thread_columns)
            for row in range(tile.thread_rows):
                factor = f"{self._left.vector}(a{row // WIDTH}.{LANES[row % WIDTH]})"
                for group in range(tile.thread_columns // WIDTH):
                    name = f"c{row}_{group}"
                    lines.append(f"  {name} = fma({factor}, b{group}, {name});")
            lines.append("}")
        return lines

    # --- the end ---------------------------------------------------------------------------------------------

    def _add_slices(self) -> list[str]:
        """Hand the other slices their share of the sums, and add up one's own: those whose number is ``slice``."""
        tile = self._tile
        if tile.slices == 1:
            return []
        lines = []
        sums = self._sums()
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
        tile = self._tile
        groups = tile.thread_columns // WIDTH
        lines = []
        if tile.slices > 1:
            for share in range(tile.sums // tile.slices):
                number = f"({share * tile.slices}u + slice)"
                lines += self._store_four(f"{number} / {groups}u", f"{number} % {groups}u", f"total{share}")
            return lines
        for row in range(tile.thread_rows):
            for group in range(groups):
                lines += self._store_four(f"{row}u", f"{group}u", f"c{row}_{group}")
        return lines

    def _store_four(self, row: str, group: str, total: str) -> list[str]:
        """Store four sums of a row and a group of columns of the invocation."""
        tile, product = self._tile, self._product
        total = total if self._accumulate == "f32" else f"vec4<f32>({total})"
        checks = []
        if self._rows % tile.rows:
            checks.append(f"row < {self._rows}u")
        if self._columns % tile.columns:
            checks.append(f"column < {self._columns}u")
        lines = [
            "{",
            f"let row = row0 + ({row} / {WIDTH}u * {tile.down}u + down) * {WIDTH}u + {row} % {WIDTH}u;",
            f"let column = column0 + ({group} * {tile.across}u + across) * {WIDTH}u;",
        ]
        if product.fours:
            number = f"({product.address('batch', 'row', 'column')}) / {WIDTH}u"
            stored = self._store_if_there("column", self._store_call("finish", number, total))
        else:
            stored = []
            for lane in range(WIDTH):
                column = f"(column + {lane}u)"
                number = product.address("batch", "row", column)
                call = self._store_call("finish_one", number, f"{total}.{LANES[lane]}")
                call = call if self._columns % WIDTH == 0 else f"if {column} < {self._columns}u {{ {call} }}"
                stored += self._store_if_there(column, call)
        if checks:
            stored = [f"if ({' && '.join(checks)}) {{", *stored, "}"]
        return [*lines, *stored, "}"]

    def _store_if_there(self, column: str, call: str) -> list[str]:
        is_there = self._product.is_there
        return [call] if is_there is None else [f"if ({is_there('batch', 'row', column)}) {{", call, "}"]

    def _store_call(self, function: str, number: str, total: str) -> str:
        if isinstance(self._end, Finish):
            return f"{function}({number}, {total});"
        unit = WIDTH if self._product.fours else 1
        part = -(-self._count // WIDTH) * WIDTH // unit
        return f"sums[part * {part}u + {number}] = {total};"
