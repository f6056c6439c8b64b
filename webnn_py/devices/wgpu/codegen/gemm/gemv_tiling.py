"""The distribution of GEMV among invocations."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.measured_tiles import table_of
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.variants import KernelVariant

MOST_VECTORS: Final = 8
THREADS: Final = 256
MOST_THREADS: Final = 1024
BUSY_THREADS: Final = 2 * THREADS
"""The invocations that keep a processor busy."""

ADDED_AT_ONCE: Final = 4
"""The vectors whose vec4s of sums fit into workgroup memory at once."""

LINE: Final = 32
"""The fewest adjacent elements of the outer axis that a workgroup loads: a cache line, or half of one."""

MOST_ADDED: Final = 16
"""The most sums that one invocation reduces in workgroups of more than :data:`THREADS` invocations."""


def share_along(matrix: MatrixLoader, batch: int, units: int) -> int:
    """Return how many invocations share an outer index of a matrix whose inner axis is contiguous."""
    sharers = 16
    while (
        sharers < THREADS
        and sharers * WIDTH <= matrix.inner // WIDTH
        and matrix.outer * batch * sharers < BUSY_THREADS * units
    ):
        sharers *= 2
    return sharers


def read_at_once(matrix: MatrixLoader) -> int:
    """Return how many elements of a contiguous outer axis an invocation loads at once."""
    return WIDTH if matrix.pattern == "direct" else 1


def share_across(matrix: MatrixLoader, batch: int, units: int) -> int:
    """Return how many invocations share an outer index of a matrix whose outer axis is contiguous."""
    places = matrix.outer // read_at_once(matrix) * batch
    side = LINE // WIDTH
    while side < THREADS and (places >= units * 2 * side or THREADS // side > matrix.inner // WIDTH):
        side *= 2
    return THREADS // side


@attrs.frozen
class GemvTiling:
    """The distribution of a product.

    Attributes:
        product: the product.
        matrix: the operand with the long outer axis.
        vectors: the operand with the short outer axis.
        vectors_are_rows: whether the vectors are the left operand.
        sharers: the invocations that share an outer index.
        threads: the invocations of a workgroup.
        unrolled: the steps along the inner axis that an invocation loads before it multiplies.
    """

    product: GemmProblem
    matrix: MatrixLoader
    vectors: MatrixLoader
    vectors_are_rows: bool
    sharers: int
    threads: int = THREADS
    unrolled: int = 1

    @classmethod
    def for_product(cls, product: GemmProblem, features: Features) -> GemvTiling:
        """Choose the distribution of a product."""
        units = table_of(features).units
        left, right = product.left, product.right
        assert isinstance(left, MatrixLoader)  # noqa: S101 - is_gemv says so
        assert isinstance(right, MatrixLoader)  # noqa: S101
        vectors_are_rows = left.outer <= right.outer
        vectors, matrix = (left, right) if vectors_are_rows else (right, left)
        vectors = attrs.evolve(vectors, forced="transposed" if vectors.can_transpose else "scalar")
        sharers = (share_along if matrix.follows_inner else share_across)(matrix, product.batch, units)
        tiling = cls(product, matrix, vectors, vectors_are_rows, sharers)
        return tiling if tiling.is_along or not KernelVariant.GEMV_LARGE_WORKGROUPS.is_on else tiling.enlarged(features)

    def enlarged(self, features: Features) -> GemvTiling:
        """Return the tiling with larger workgroups and more loads at once, if few workgroups run on a processor."""
        tiling, enough = self, 2 * BUSY_THREADS * table_of(features).units
        groups = -(-self.matrix.outer // self.per_group) * self.product.batch
        most = min(MOST_THREADS, features.max_invocations)
        while tiling.threads < most and groups * tiling.threads < enough and self.steps >= 4 * tiling.sharers:
            tiling = attrs.evolve(tiling, threads=2 * tiling.threads, sharers=2 * tiling.sharers)
        most = 1 if self.vectors.outer > 2 else 4
        while tiling.unrolled < most and self.steps >= 4 * tiling.unrolled * tiling.sharers:
            tiling = attrs.evolve(tiling, unrolled=2 * tiling.unrolled)
        return tiling

    @property
    def is_along(self) -> bool:
        """True if adjacent invocations have adjacent inner indices."""
        return self.matrix.follows_inner

    @property
    def unit(self) -> int:
        """The outer indices that an invocation loads at once."""
        return read_at_once(self.matrix)

    @property
    def side(self) -> int:
        """The invocations of a workgroup that differ in their outer index."""
        return self.threads // self.sharers

    @property
    def added_at_once(self) -> int:
        """The sums of each invocation that fit into workgroup memory at once."""
        return max(1, ADDED_AT_ONCE * THREADS // self.threads)

    @property
    def per_group(self) -> int:
        """The outer indices of a workgroup."""
        return self.side * (1 if self.is_along else self.unit)

    @property
    def steps(self) -> int:
        """The vec4s of the inner axis."""
        return -(-self.matrix.inner // WIDTH)

    @property
    def stores_vec4s(self) -> bool:
        """True if the output is stored by whole vec4s."""
        are_adjacent = self.per_group % WIDTH == 0 if self.is_along else self.unit % WIDTH == 0
        return self.vectors_are_rows and self.product.vec4s and are_adjacent
