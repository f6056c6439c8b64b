"""The loop over the tiles along the inner axis: prefetch one while the one before is multiplied."""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.gemm.tiling import GemmTiling
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH


def tile_loop(tiling: GemmTiling) -> list[str]:
    """Return the loop, after which the sums of the workgroup are complete.

    The registers ``p`` hold the prefetched vec4s of the next tile until they are staged.
    """
    if not tiling.steps:
        return []
    if tiling.split_k > 1:
        each = -(-tiling.steps // tiling.split_k)
        bounds = [f"var step = part * {each}u;", f"let end = min(step + {each}u, {tiling.steps}u);"]
    else:
        bounds = ["var step = 0u;", f"let end = {tiling.steps}u;"]
    body = [
        "workgroupBarrier();",
        *_put(tiling),
        "workgroupBarrier();",
        "step += 1u;",
        "if (step < end) {",
        *_fetch(tiling),
        "}",
        *_multiply(tiling),
    ]
    return [*bounds, "if (step < end) {", *_fetch(tiling), "}", "while (step < end) {", *body, "}"]


def _fetch(tiling: GemmTiling) -> list[str]:
    """Load the tile ``step`` into the registers ``p``."""
    lines = [f"let first = step * {tiling.tile.depth}u;"]
    full = tiling.problem.left.inner // tiling.tile.depth
    if full == tiling.steps:
        return [*lines, *_fetch_sides(tiling, tail=False)]
    if full == 0:
        return [*lines, *_fetch_sides(tiling, tail=True)]
    plain, tail = _fetch_sides(tiling, tail=False), _fetch_sides(tiling, tail=True)
    return [*lines, f"if (step < {full}u) {{", *plain, "} else {", *tail, "}"]


def _fetch_sides(tiling: GemmTiling, *, tail: bool) -> list[str]:
    if tiling.is_shared_out:
        left, right = tiling.left.fetch(0, tail=tail), tiling.right.fetch(0, tail=tail)
        return [f"if (thread < {tiling.left.threads}u) {{", *left, "} else {", *right, "}"]
    return tiling.left.fetch(0, tail=tail) + tiling.right.fetch(tiling.left.vec4s, tail=tail)


def _put(tiling: GemmTiling) -> list[str]:
    """Store the registers ``p`` in workgroup memory."""
    if tiling.is_shared_out:
        left, right = tiling.left.put(0), tiling.right.put(0)
        return [f"if (thread < {tiling.left.threads}u) {{", *left, "} else {", *right, "}"]
    return tiling.left.put(0) + tiling.right.put(tiling.left.vec4s)


def _multiply(tiling: GemmTiling) -> list[str]:
    tile = tiling.tile
    lines = []
    for k in range(tile.inner):
        lines.append("{")
        lines += tiling.left.take("a", k, tile.thread_rows)
        lines += tiling.right.take("b", k, tile.thread_columns)
        for row in range(tile.thread_rows):
            factor = f"{tiling.left.vector}(a{row // WIDTH}.{COMPONENTS[row % WIDTH]})"
            for group in range(tile.thread_columns // WIDTH):
                lines.append(f"  c{row}_{group} = fma({factor}, b{group}, c{row}_{group});")
        lines.append("}")
    return lines
