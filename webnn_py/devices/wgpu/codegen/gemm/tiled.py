"""Tiled matrix products: kernels that stage tiles of both operands in workgroup memory and multiply them there.

Every invocation accumulates in named variables; all loops except the one over tiles are unrolled.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import Dispatch, workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue, EpilogueCode, emit_split_k_sum
from webnn_py.devices.wgpu.codegen.gemm.operand_loader import bound, described
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.codegen.gemm.tile_choice import Extent, choose_work
from webnn_py.devices.wgpu.codegen.gemm.tile_loop import tile_loop
from webnn_py.devices.wgpu.codegen.gemm.tile_store import TileStore, is_long
from webnn_py.devices.wgpu.codegen.gemm.tiling import GemmTiling
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.recently_used import RecentlyUsed, Room
from webnn_py.devices.wgpu.records.variants import KernelVariant

_MAINS: Final[RecentlyUsed[Hashable, tuple[str, Dispatch]]] = RecentlyUsed(Room(count=256, byte_length=2**23))
"""Entry points that were written: layers of a model share them, and writing them dominates the time of a build."""


def emit_tiled_gemm(lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> None:
    """Emit the kernels of a product: one, or a split-K kernel and one that adds up the parts.

    The second kernel, whose invocations store one vec4 each, also applies long epilogues of large products, and
    epilogues of single elements, which compile slowest.
    """
    accumulate = "f16" if lowering.features.float16_accumulation and product.is_native_float16 else "f32"
    tile, splits = without_left_out(*choose_work(product, lowering.features, accumulate))
    extent = Extent.from_product(product)
    if splits == 1 and (product.vec4s or epilogue.stores_single_elements):
        finish = epilogue.write(vec4s=product.vec4s)
        if not (product.vec4s and is_long(finish) and extent.is_large):  # few invocations would do much work each
            tiling = GemmTiling(product, tile, 1, accumulate)
            lowering.emit(tiled_kernel(tiling, epilogue.count, finish, epilogue.label))
            return
    is_rounded = splits == 1 and product.vec4s and epilogue.rounds_totals
    kind, byte_length = ("f16", 2) if is_rounded else ("f32", 4)
    sums = Buffer("block", splits * epilogue.padded_count * byte_length)
    end = EpilogueCode([(sums, "sums", f"vec4<{kind}>" if product.vec4s else kind)])
    tiling = GemmTiling(product, tile, splits, accumulate)
    lowering.emit(tiled_kernel(tiling, epilogue.count, end, f"{epilogue.label} (parts)"))
    emit_split_k_sum(lowering, epilogue, sums, splits, kind)


def without_left_out(tile: GemmTile, splits: int) -> tuple[GemmTile, int]:
    """Return a tile and a number of split-K parts without the optional variants that are turned off."""
    if tile.slices > 1 and not KernelVariant.GEMM_SLICES.is_on:
        tile = attrs.evolve(tile, slices=1)
    return tile, splits if splits > 1 and KernelVariant.GEMM_SPLIT_K.is_on else 1


def tiled_kernel(tiling: GemmTiling, count: int, end: EpilogueCode, label: str) -> Kernel:
    """Return the kernel of a product.

    In it, ``t`` is the index of the invocation in its slice, ``left`` and ``right`` are the operands, ``tile`` is the
    workgroup memory, and ``c{r}_{g}`` are the sums of row r and the vec4 g of columns.

    Args:
        tiling: the tile.
        count: the number of output elements.
        end: the epilogue, or the buffer of partial sums, one array after the other.
        label: the kernel's label.
    """
    product, tile = tiling.problem, tiling.tile
    reads, functions = bound({"left": product.left, "right": product.right}, tiling.fetched)
    shared = [f"var<workgroup> tile: array<{tiling.left.vector}, {tile.vec4s}>;"]
    parts = [*shared, *functions]
    key = _key(tiling, count, end)
    main = _MAINS.get(key)
    if main is None:
        main = _main(tiling, count, end)
        _MAINS.put(key, main, len(main[0]))
    return end.kernel(label, reads, parts, *main)


def _key(tiling: GemmTiling, count: int, end: EpilogueCode) -> Hashable:
    """Return everything that the text of the entry point depends on."""
    product = tiling.problem
    expressions = [product.address("b", "r", "c"), product.is_there and product.is_there("b", "r", "c")]
    sides = [product.batch, product.vec4s, described(product.left), described(product.right)]
    ways = [
        tiling.tile,
        tiling.is_shared_out,
        tiling.split_k,
        count,
        tiling.accumulate,
        end.writes[0][2] if end.is_partial else is_long(end),
    ]
    return (*expressions, *sides, *ways)


def _main(tiling: GemmTiling, count: int, end: EpilogueCode) -> tuple[str, Dispatch]:
    tile = tiling.tile
    lines = [
        f"let column0 = number % {tiling.column_tiles}u * {tile.columns}u;",
        f"let row0 = number / {tiling.column_tiles}u % {tiling.row_tiles}u * {tile.rows}u;",
        f"let batch = number / {tiling.column_tiles * tiling.row_tiles}u / {tiling.split_k}u;",
        f"let part = number / {tiling.column_tiles * tiling.row_tiles}u % {tiling.split_k}u;",
        *_begin(tiling),
        *tile_loop(tiling),
        *TileStore(tiling, count, end).write(),
    ]
    groups = tiling.row_tiles * tiling.column_tiles * tiling.problem.batch * tiling.split_k
    return workgroup_entry_point(groups, tile.threads, lines, "@builtin(local_invocation_index) thread: u32")


def _begin(tiling: GemmTiling) -> list[str]:
    tile = tiling.tile
    lines = [f"let t = thread % {tile.slice_threads}u;", f"let slice = thread / {tile.slice_threads}u;"]
    if tile.across % 8 == 0 and tile.down % 4 == 0:
        # 32 adjacent invocations compute a block of 8 × 4, for which they load the fewest vec4s of both operands.
        lines.append(f"let across = t % 8u + t / 32u % {tile.across // 8}u * 8u;")
        lines.append(f"let down = t / 8u % 4u + t / {4 * tile.across}u * 4u;")
    else:
        lines += [f"let across = t % {tile.across}u;", f"let down = t / {tile.across}u;"]
    lines += tiling.problem.left.begin("left") + tiling.problem.right.begin("right")
    lines += tiling.left.prepare() + tiling.right.prepare(tiling.left.threads if tiling.is_shared_out else 0)
    lines += tiling.left.places("down", tile.down, tile.thread_rows)
    lines += tiling.right.places("across", tile.across, tile.thread_columns)
    registers = max(tiling.left.vec4s, tiling.right.vec4s)
    if not tiling.is_shared_out:
        registers = tiling.left.vec4s + tiling.right.vec4s
    lines += [f"var p{index} = {tiling.left.fetched}();" for index in range(registers)]
    lines += [f"var {name} = {tiling.left.vector}();" for name in tiling.sums()]
    return lines
