"""A matrix product, independent of the kernels that compute it."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import OperandLoader


@attrs.frozen
class GemmProblem:
    """Sums over the inner axis of a left and a right side, for every batch, row and column.

    Attributes:
        batch: the number of batches.
        left: the rows.
        right: the columns.
        address: (batch, row, column), WGSL expressions → the number of an element of the output.
        vec4s: whether each four columns from a multiple of four are four aligned neighbours in the output.
        row_vec4s: whether rows are so, if there is only one column.
        is_there: (batch, row, column) → whether the element is in the output; None where all are.
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
        """Whether both sides are float16 in the shader, too."""
        return self.left.element.one == self.right.element.one == "f16"

    def upright(self) -> GemmProblem:
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
            vec4s=self.row_vec4s,
            is_there=None if self.is_there is None else exchanged(self.is_there),
        )
