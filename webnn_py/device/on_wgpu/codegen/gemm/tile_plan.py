"""The plan of a tiled product: what a workgroup fetches, and what each invocation sums up."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.shared_tile import SharedMemoryTile
from webnn_py.device.on_wgpu.codegen.gemm.tile import GemmTile
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.variants import KernelVariant


class TilePlan:
    """Facts that all parts of a tiled product's kernel share.

    Attributes:
        problem: the product.
        tile: what a workgroup and an invocation compute of it.
        split_k: into how many parts the inner axis is cut, each for other workgroups.
        accumulate: the type in which sums are kept; ``f16`` rounds every sum.
        fetched: the type of a number as it is read from a buffer.
        rows: of the output.
        columns: of the output.
        steps: the tiles along the inner axis.
        row_tiles: the tiles along the rows.
        column_tiles: the tiles along the columns.
        left: the left side in the workgroup's memory.
        right: the right side in the workgroup's memory.
        is_shared_out: whether some invocations fetch one side, and the others the other.
    """

    def __init__(self, problem: GemmProblem, tile: GemmTile, split_k: int, accumulate: str) -> None:
        self.problem = problem
        self.tile = tile
        self.split_k = split_k
        self.accumulate = accumulate
        self.rows, self.columns = problem.left.outer, problem.right.outer
        self.steps = -(-problem.left.inner // tile.depth)
        self.row_tiles = -(-self.rows // tile.rows)
        self.column_tiles = -(-self.columns // tile.columns)
        # float16 is widened when it is stored: sooner, an invocation would wait for memory before it computes.
        self.fetched = "f16" if problem.is_native_float16 else accumulate
        types = {"fetched": f"vec4<{self.fetched}>", "vector": f"vec4<{accumulate}>"}
        left, right = self._threads_by_side()
        right_base = tile.depth * tile.rows // WIDTH
        self.left = SharedMemoryTile("left", problem.left, tile, tile.rows, "row0", left, 0, **types)
        self.right = SharedMemoryTile("right", problem.right, tile, tile.columns, "column0", right, right_base, **types)
        self.is_shared_out = left != tile.threads

    def _threads_by_side(self) -> tuple[int, int]:
        """Return how many invocations fetch each side: all of them both, or whole warps one side each."""
        tile = self.tile
        left = tile.threads * tile.rows // (tile.rows + tile.columns)
        if (
            0 < left < tile.threads
            and left % 32 == 0
            and (tile.threads - left) % 32 == 0
            and KernelVariant.GEMM_SHARED_LOADS.is_on
        ):
            return left, tile.threads - left
        return tile.threads, tile.threads

    def sums(self) -> list[str]:
        """The variables that hold an invocation's sums: of row r and the group g of four columns ``c{r}_{g}``."""
        groups = self.tile.thread_columns // WIDTH
        return [f"c{row}_{group}" for row in range(self.tile.thread_rows) for group in range(groups)]
