"""The tiling of a product, which all parts of its kernel share."""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.shared_tile import SharedMemoryTile
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.variants import KernelVariant


class GemmTiling:
    """The tiling of a product.

    Attributes:
        problem: the product.
        tile: the tile of a workgroup and of an invocation.
        split_k: the number of parts of the inner axis, each computed by other workgroups.
        accumulate: the type of sums; ``f16`` rounds every sum.
        fetched: the type of a number as it is loaded from a buffer.
        rows: the output rows.
        columns: the output columns.
        steps: the tiles along the inner axis.
        row_tiles: the tiles along the rows.
        column_tiles: the tiles along the columns.
        left: the left operand in workgroup memory.
        right: the right operand in workgroup memory.
        is_shared_out: whether some invocations load the left operand, and the others the right one.
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
        # float16 is widened when it is staged; to do so at the load would wait for memory before the multiplication.
        self.fetched = "f16" if problem.is_native_float16 else accumulate
        types = {"fetched": f"vec4<{self.fetched}>", "vector": f"vec4<{accumulate}>"}
        left, right = self._threads_by_side()
        right_base = tile.depth * tile.rows // WIDTH
        self.left = SharedMemoryTile("left", problem.left, tile, tile.rows, "row0", left, 0, **types)
        self.right = SharedMemoryTile("right", problem.right, tile, tile.columns, "column0", right, right_base, **types)
        self.is_shared_out = left != tile.threads

    def _threads_by_side(self) -> tuple[int, int]:
        """Return how many invocations load each operand: all of them both, or whole warps one each."""
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
        """Return the names of an invocation's sums: ``c{r}_{g}`` for row r and the vec4 g of columns."""
        groups = self.tile.thread_columns // WIDTH
        return [f"c{row}_{group}" for row in range(self.tile.thread_rows) for group in range(groups)]
