"""A matrix product, independent of the kernels that compute it."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from webnn_py.devices.wgpu.codegen.gemm.operand_loader import OperandLoader


@attrs.frozen
class GemmProblem:
    """A batch of matrix products.

    Attributes:
        batch: the number of products.
        left: the left operand, with the rows.
        right: the right operand, with the columns.
        address: (batch, row, column), WGSL expressions → the index of an output element.
        vec4s: whether four columns from a multiple of four are an aligned vec4 of the output.
        row_vec4s: whether four rows are, if there is only one column.
        is_there: (batch, row, column) → whether an element is in the output; None if all are.
    """

    batch: int
    left: OperandLoader
    right: OperandLoader
    address: Callable[[str, str, str], str]
    vec4s: bool
    row_vec4s: bool = False
    is_there: Callable[[str, str, str], str] | None = None

    @property
    def is_native_float16(self) -> bool:
        """True if the shader loads both operands as f16."""
        return self.left.element.one == self.right.element.one == "f16"

    def upright(self) -> GemmProblem:
        """Return the product with a single column as a row: its transposition has the same memory layout."""
        if self.right.outer > 1 or self.left.outer == 1:
            return self

        def exchanged(of: Callable[[str, str, str], str]) -> Callable[[str, str, str], str]:
            return lambda batch, row, column: of(batch, column, row)

        return attrs.evolve(
            self,
            left=self.right,
            right=self.left,
            address=exchanged(self.address),
            vec4s=self.row_vec4s,
            is_there=None if self.is_there is None else exchanged(self.is_there),
        )
