"""How a workgroup computes its tile of a product: who brings in what, and what each invocation sums up."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.gemm.packed_loader import PACKED, PackedMatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.shared_tile import SharedMemoryTile
from webnn_py.device.on_wgpu.codegen.gemm.tile import GemmTile
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.variants import Variant


class TilePlan:
    """What the parts of a tiled product's kernel have in common.

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
        is_shared_out: whether some invocations bring in one side, and the others the other.
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
        is_packed = isinstance(problem.left, PackedMatrixLoader) and isinstance(problem.right, PackedMatrixLoader)
        types = {"fetched": PACKED if is_packed else f"vec4<{self.fetched}>", "vector": f"vec4<{accumulate}>"}
        left, right = self._threads_by_side()
        right_base = tile.depth * tile.rows // WIDTH
        self.left = SharedMemoryTile("left", problem.left, tile, tile.rows, "row0", left, 0, **types)
        self.right = SharedMemoryTile("right", problem.right, tile, tile.columns, "column0", right, right_base, **types)
        self.is_shared_out = left != tile.threads

    def _threads_by_side(self) -> tuple[int, int]:
        """How many invocations bring in each side: all of them both, or, evenly by warps, some one, some the other."""
        tile = self.tile
        left = tile.threads * tile.rows // (tile.rows + tile.columns)
        if (
            0 < left < tile.threads
            and left % 32 == 0
            and (tile.threads - left) % 32 == 0
            and Variant.GEMM_SHARED_LOADS.is_on
        ):
            return left, tile.threads - left
        return tile.threads, tile.threads

    def sums(self) -> list[str]:
        """The variables that hold an invocation's sums: of row r and the group g of four columns ``c{r}_{g}``."""
        groups = self.tile.thread_columns // WIDTH
        return [f"c{row}_{group}" for row in range(self.tile.thread_rows) for group in range(groups)]
