"""The loop over the tiles along the inner axis: prefetch one while the one before is multiplied."""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.gemm.tile_plan import TilePlan
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH


def tile_loop(plan: TilePlan) -> list[str]:
    """Return the loop, after which the sums of the workgroup are complete.

    The registers ``p`` hold the prefetched vec4s of the next tile until they are staged.
    """
    if not plan.steps:
        return []
    if plan.split_k > 1:
        each = -(-plan.steps // plan.split_k)
        bounds = [f"var step = part * {each}u;", f"let end = min(step + {each}u, {plan.steps}u);"]
    else:
        bounds = ["var step = 0u;", f"let end = {plan.steps}u;"]
    body = [
        "workgroupBarrier();",
        *_put(plan),
        "workgroupBarrier();",
        "step += 1u;",
        "if (step < end) {",
        *_fetch(plan),
        "}",
        *_multiply(plan),
    ]
    return [*bounds, "if (step < end) {", *_fetch(plan), "}", "while (step < end) {", *body, "}"]


def _fetch(plan: TilePlan) -> list[str]:
    """Load the tile ``step`` into the registers ``p``."""
    lines = [f"let first = step * {plan.tile.depth}u;"]
    full = plan.problem.left.inner // plan.tile.depth
    if full == plan.steps:
        return [*lines, *_fetch_sides(plan, tail=False)]
    if full == 0:
        return [*lines, *_fetch_sides(plan, tail=True)]
    plain, tail = _fetch_sides(plan, tail=False), _fetch_sides(plan, tail=True)
    return [*lines, f"if (step < {full}u) {{", *plain, "} else {", *tail, "}"]


def _fetch_sides(plan: TilePlan, *, tail: bool) -> list[str]:
    if plan.is_shared_out:
        left, right = plan.left.fetch(0, tail=tail), plan.right.fetch(0, tail=tail)
        return [f"if (thread < {plan.left.threads}u) {{", *left, "} else {", *right, "}"]
    return plan.left.fetch(0, tail=tail) + plan.right.fetch(plan.left.vec4s, tail=tail)


def _put(plan: TilePlan) -> list[str]:
    """Store the registers ``p`` in workgroup memory."""
    if plan.is_shared_out:
        left, right = plan.left.put(0), plan.right.put(0)
        return [f"if (thread < {plan.left.threads}u) {{", *left, "} else {", *right, "}"]
    return plan.left.put(0) + plan.right.put(plan.left.vec4s)


def _multiply(plan: TilePlan) -> list[str]:
    tile = plan.tile
    lines = []
    for k in range(tile.inner):
        lines.append("{")
        lines += plan.left.take("a", k, tile.thread_rows)
        lines += plan.right.take("b", k, tile.thread_columns)
        for row in range(tile.thread_rows):
            factor = f"{plan.left.vector}(a{row // WIDTH}.{COMPONENTS[row % WIDTH]})"
            for group in range(tile.thread_columns // WIDTH):
                lines.append(f"  c{row}_{group} = fma({factor}, b{group}, c{row}_{group});")
        lines.append("}")
    return lines
