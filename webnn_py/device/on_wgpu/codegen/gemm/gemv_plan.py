"""How products of a matrix and a few vectors are shared out among invocations."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_tables import table_of
from webnn_py.device.on_wgpu.codegen.gemm.wide_loader import HALVES, WideMatrixLoader, widened
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.variants import Variant

MOST_VECTORS: Final = 8
THREADS: Final = 256
MOST_THREADS: Final = 1024
BUSY_THREADS: Final = 2 * THREADS
"""Invocations that keep a processor busy."""

ADDED_AT_ONCE: Final = 4
"""Vectors whose vec4s of sums have room in a workgroup's memory."""

SHORT: Final = 512
"""Vec4s of an inner axis that larger workgroups read as soon as two kernels read halves and add them."""

LINE: Final = 32
"""Elements on the outer axis that a workgroup reads side by side at least: a line of the cache, or half of one."""

WIDE_SHARE: Final = 0.75
"""The share of the usual number of workgroups that keep a GPU busy, where each load fetches eight elements."""

MOST_ADDED: Final = 16
"""Sums that one invocation adds up, where a workgroup has more than :data:`THREADS` invocations."""


def share_along(matrix: MatrixLoader, batch: int, units: int) -> int:
    """How many invocations to give a place on the outer axis of a matrix with its inner axis side by side."""
    sharers = 16
    while (
        sharers < THREADS
        and sharers * WIDTH <= matrix.inner // WIDTH
        and matrix.outer * batch * sharers < BUSY_THREADS * units
    ):
        sharers *= 2
    return sharers


def read_at_once(matrix: MatrixLoader) -> int:
    """Places on the outer axis that an invocation reads at once, where they lie side by side."""
    if isinstance(matrix, WideMatrixLoader):
        return HALVES
    return WIDTH if matrix.pattern == "direct" else 1


def share_across(matrix: MatrixLoader, batch: int, units: int) -> int:
    """How many invocations to give a place on the outer axis of a matrix with its outer axis side by side."""
    places = matrix.outer // read_at_once(matrix) * batch
    side = LINE // max(WIDTH, read_at_once(matrix))
    enough = int(units * WIDE_SHARE) if isinstance(matrix, WideMatrixLoader) else units
    while side < THREADS and (places >= enough * 2 * side or THREADS // side > matrix.inner // WIDTH):
        side *= 2
    return THREADS // side


@attrs.frozen
class GemvPlan:
    """How the work is shared out.

    Attributes:
        product: the product.
        matrix: the long side.
        vectors: the short side.
        vectors_are_rows: whether the short side is the left one.
        sharers: invocations that share a place on the outer axis.
        places: places on the outer axis of an invocation, where vec4s do not lie along it.
        splits: into how many parts the inner axis is cut, each for other workgroups.
        threads: invocations of a workgroup.
        unrolled: steps along the inner axis whose elements an invocation reads before it multiplies.
    """

    product: GemmProblem
    matrix: MatrixLoader
    vectors: MatrixLoader
    vectors_are_rows: bool
    sharers: int
    places: int
    splits: int
    threads: int = THREADS
    unrolled: int = 1

    @classmethod
    def of(cls, product: GemmProblem, features: Features) -> GemvPlan:
        """Share out a product."""
        units = table_of(features).units
        left, right = product.left, product.right
        assert isinstance(left, MatrixLoader)  # noqa: S101 - is_gemv says so
        assert isinstance(right, MatrixLoader)  # noqa: S101
        vectors_are_rows = left.outer <= right.outer
        vectors, matrix = (left, right) if vectors_are_rows else (right, left)
        vectors = attrs.evolve(vectors, forced="transposed" if vectors.can_transpose else "scalar")
        sharers, places = share_along(matrix, product.batch, units), 1
        if not matrix.follows_inner:
            matrix = widened(matrix)
            sharers = share_across(matrix, product.batch, units)
        elif (
            vectors.outer <= MOST_VECTORS // WIDTH
            and matrix.outer * product.batch * sharers > BUSY_THREADS * units * WIDTH
        ):
            places = WIDTH if Variant.GEMV_PLACES.is_on else 1
        plan = cls(product, matrix, vectors, vectors_are_rows, sharers, places, splits=1)
        groups = -(-matrix.outer // plan.per_group) * product.batch
        splits = max(1, min(units // groups, plan.steps // (sharers * WIDTH)))
        if 3 * groups > units and plan.steps <= SHORT and not plan.is_along:
            splits = 1
        if splits > 1 and not Variant.GEMV_SPLIT.is_on:
            splits = 1
        plan = attrs.evolve(plan, splits=splits)
        return plan if plan.is_along or not Variant.GEMV_LARGE_WORKGROUPS.is_on else plan.hurried(groups, features)

    def hurried(self, groups: int, features: Features) -> GemvPlan:
        """The same with more to read at once, where a processor has but a workgroup or two."""
        plan, units = self, table_of(features).units
        each = self.steps // self.splits
        is_wide = isinstance(self.matrix, WideMatrixLoader)
        while (
            plan.threads < min(MOST_THREADS // 2 if is_wide else MOST_THREADS, features.max_invocations)
            and groups * self.splits * plan.threads < BUSY_THREADS * units * 2
            and each >= 4 * plan.sharers
        ):
            plan = attrs.evolve(plan, threads=2 * plan.threads, sharers=2 * plan.sharers)
        most = 1 if self.vectors.outer > 2 else 2 if is_wide else 4
        while plan.unrolled < most and each >= 4 * plan.unrolled * plan.sharers:
            plan = attrs.evolve(plan, unrolled=2 * plan.unrolled)
        return plan

    @property
    def is_along(self) -> bool:
        """Whether neighbouring invocations have neighbours on the inner axis."""
        return self.matrix.follows_inner

    @property
    def unit(self) -> int:
        """Places on the outer axis that an invocation reads at once, where they lie side by side."""
        return read_at_once(self.matrix)

    @property
    def parts(self) -> int:
        """Variables for the sums of an invocation and a vector: its vec4s, or one for a single element."""
        return max(1, self.unit // WIDTH)

    @property
    def side(self) -> int:
        """Invocations of a workgroup at different places on the outer axis."""
        return self.threads // self.sharers

    @property
    def added_at_once(self) -> int:
        """Variables of sums, of each invocation, that have room in a workgroup's memory."""
        return max(1, ADDED_AT_ONCE * THREADS // self.threads)

    @property
    def per_group(self) -> int:
        """Places on the outer axis of a workgroup."""
        return self.side * (self.places if self.is_along else self.unit)

    @property
    def steps(self) -> int:
        """Vec4s of the inner axis."""
        return -(-self.matrix.inner // WIDTH)

    @property
    def stores_vec4s(self) -> bool:
        """Whether whole vec4s of the output are stored."""
        side_by_side = self.per_group % WIDTH == 0 if self.is_along else self.unit % WIDTH == 0
        return self.vectors_are_rows and self.product.vec4s and side_by_side
