"""Matrix products in tiles: kernels that bring tiles of both sides into a workgroup's memory and multiply them there.

Every invocation keeps its sums in named variables; all loops but the one over tiles are written out.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.entry_point import grid
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue, EpilogueCode, emit_split_k_sum
from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import bound, described
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile import GemmTile
from webnn_py.device.on_wgpu.codegen.gemm.tile_loop import TileLoop
from webnn_py.device.on_wgpu.codegen.gemm.tile_plan import TilePlan
from webnn_py.device.on_wgpu.codegen.gemm.tile_search import Extent, choose_work
from webnn_py.device.on_wgpu.codegen.gemm.tile_store import TileStore, is_long
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.recently_used import RecentlyUsed, Room
from webnn_py.device.on_wgpu.records.variants import KernelVariant
from webnn_py.named_sizes.decisions import tracing_in_force

_MAINS: Final[RecentlyUsed[Hashable, str]] = RecentlyUsed(Room(count=256, byte_length=2**23))
"""Texts to be used again: layers of a model are alike, and writing a tile's takes longer than all else of a build."""


def emit_tiled_gemm(lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> None:
    """The kernels of a product: one, or one for parts of the inner axis and one that adds them up.

    A long last step of a large product is left to the second as well, whose invocations have a vec4 each; and so is one
    of single elements, which takes a compiler longest.
    """
    accumulate = "f16" if lowering.features.float16_accumulation and product.is_native_float16 else "f32"
    tile, splits = without_left_out(*choose_work(product, lowering.features, accumulate))
    extent = Extent.of(product)
    if splits == 1 and (product.vec4s or epilogue.stores_single_elements):
        finish = epilogue.write(vec4s=product.vec4s)
        if not (product.vec4s and is_long(finish) and extent.is_large):  # else few invocations would each have much
            writer = TiledGemmWriter(TilePlan(product, tile, 1, accumulate), epilogue.count, finish)
            lowering.emit(writer.kernel(epilogue.label))
            return
    is_rounded = splits == 1 and product.vec4s and epilogue.rounds_totals
    kind, byte_length = ("f16", 2) if is_rounded else ("f32", 4)
    sums = Buffer("block", splits * padded_count(epilogue) * byte_length)
    writer = TiledGemmWriter(TilePlan(product, tile, splits, accumulate), epilogue.count, sums, kind)
    lowering.emit(writer.kernel(f"{epilogue.label} (parts)"))
    emit_split_k_sum(lowering, epilogue, sums, splits, kind)


def without_left_out(tile: GemmTile, splits: int) -> tuple[GemmTile, int]:
    """Return a tile and a number of parts without the variants that are left out."""
    if tile.slices > 1 and not KernelVariant.GEMM_SLICES.is_on:
        tile = attrs.evolve(tile, slices=1)
    return tile, splits if splits > 1 and KernelVariant.GEMM_SPLIT_K.is_on else 1


def padded_count(epilogue: Epilogue) -> int:
    """The elements of the output in whole vec4s."""
    return -(-epilogue.count // WIDTH) * WIDTH


class TiledGemmWriter:
    """Writes the kernel of a product.

    Its names: ``t`` is the invocation's number in its slice, ``left`` and ``right`` are the buffers, ``tile`` is the
    workgroup's memory, ``c{r}_{g}`` are the sums of row r and the group g of four columns.
    """

    def __init__(self, plan: TilePlan, count: int, end: EpilogueCode | Buffer, kind: str = "f32") -> None:
        """Write the kernel; what it ends with, and the type of sums, is as :class:`.TileStore` has it."""
        self._plan = plan
        self._count = count
        self._end = end
        self._kind = kind

    def kernel(self, label: str) -> Kernel:
        """The kernel."""
        plan = self._plan
        product, tile = plan.problem, plan.tile
        groups = plan.row_tiles * plan.column_tiles * product.batch * plan.split_k
        workgroups = grid(groups)
        reads, functions = bound({"left": product.left, "right": product.right}, plan.fetched)
        shared = [f"var<workgroup> tile: array<{plan.left.vector}, {tile.vec4s}>;"]
        parts = [*shared, *functions]
        key = self._key() if tracing_in_force() is None else None  # what is asked of sizes is to be asked each time
        main = None if key is None else _MAINS.get(key)
        if main is None:
            main = self._main(groups, workgroups[0])
            if key is not None:
                _MAINS.put(key, main, len(main))
        if isinstance(self._end, EpilogueCode):
            return self._end.kernel(label, reads, parts, main, workgroups)
        declared = declare(reads, [(self._end, "sums", f"vec4<{self._kind}>" if product.vec4s else self._kind)])
        source = module(declared, *parts, main=main)
        return Kernel(label, source, tuple(buffer for buffer, _, _ in reads), (self._end,), workgroups)

    def _key(self) -> Hashable:
        """All that the text of ``main`` depends on."""
        plan = self._plan
        product = plan.problem
        expressions = [product.address("b", "r", "c"), product.is_there and product.is_there("b", "r", "c")]
        sides = [product.batch, product.vec4s, described(product.left), described(product.right)]
        ways = [
            plan.tile,
            plan.is_shared_out,
            plan.split_k,
            self._count,
            plan.accumulate,
            isinstance(self._end, EpilogueCode),
            is_long(self._end),
            self._kind,
        ]
        return (*expressions, *sides, *ways)

    def _main(self, groups: int, pitch: int) -> str:
        plan, tile = self._plan, self._plan.tile
        lines = [
            f"let number = group.x + group.y * {pitch}u;",
            f"if (number >= {groups}u) {{ return; }}",
            f"let column0 = number % {plan.column_tiles}u * {tile.columns}u;",
            f"let row0 = number / {plan.column_tiles}u % {plan.row_tiles}u * {tile.rows}u;",
            f"let batch = number / {plan.column_tiles * plan.row_tiles}u / {plan.split_k}u;",
            f"let part = number / {plan.column_tiles * plan.row_tiles}u % {plan.split_k}u;",
            *self._begin(),
            *TileLoop(plan).write(),
            *TileStore(plan, self._count, self._end, self._kind).write(),
        ]
        body = "\n".join(f"  {line}" for line in lines)
        return f"""
@compute @workgroup_size({tile.threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {{
{body}
}}
"""

    def _begin(self) -> list[str]:
        plan, tile = self._plan, self._plan.tile
        lines = [f"let t = thread % {tile.slice_threads}u;", f"let slice = thread / {tile.slice_threads}u;"]
        if tile.across % 8 == 0 and tile.down % 4 == 0:
            # 32 neighbours compute a block of 8 by 4: they read the fewest vec4s of both sides.
            lines.append(f"let across = t % 8u + t / 32u % {tile.across // 8}u * 8u;")
            lines.append(f"let down = t / 8u % 4u + t / {4 * tile.across}u * 4u;")
        else:
            lines += [f"let across = t % {tile.across}u;", f"let down = t / {tile.across}u;"]
        lines += plan.problem.left.begin("left") + plan.problem.right.begin("right")
        lines += plan.left.prepare() + plan.right.prepare(plan.left.threads if plan.is_shared_out else 0)
        lines += plan.left.places("down", tile.down, tile.thread_rows)
        lines += plan.right.places("across", tile.across, tile.thread_columns)
        registers = max(plan.left.vec4s, plan.right.vec4s)
        if not plan.is_shared_out:
            registers = plan.left.vec4s + plan.right.vec4s
        lines += [f"var p{index} = {plan.left.fetched}();" for index in range(registers)]
        lines += [f"var {name} = {plan.left.vector}();" for name in plan.sums()]
        return lines
