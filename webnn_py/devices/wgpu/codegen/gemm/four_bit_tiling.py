"""The distribution of a GEMV of a matrix of four bits among invocations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.graph import Constant, Value
from webnn_py.core.operators import conversion
from webnn_py.devices.rewriting.reshapes import origin_of
from webnn_py.devices.wgpu.codegen.entry_point import power_of_two
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue
from webnn_py.devices.wgpu.codegen.gemm.computed_loader import ComputedLoader
from webnn_py.devices.wgpu.codegen.gemm.gemv_tiling import MOST_VECTORS
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.measured_tiles import table_of
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant

WORD: Final = 8
"""The elements of a word."""

FLOAT_BYTES: Final = 4

LEAST_SUMS: Final = 4
"""The sums of each invocation for which workgroup memory is kept when vectors are staged."""

MOST_SUM_BYTES: Final = 16384
"""The workgroup memory that sums take at once: more would leave room for fewer workgroups."""

LANES_GRAIN: Final = 32
"""More lanes than these are a multiple of them."""


@attrs.frozen
class FourBitTuning:
    """How a product is distributed, as far as its shape and the adapter's limits allow.

    Attributes:
        threads: the invocations of a workgroup.
        lanes: the most invocations that share a row of the matrix.
        rows: the most rows of the matrix of an invocation, which share what it loads of the vectors.
        words: the most words of a row that an invocation loads at once: 1, 2 or 4.
        ahead: the most loads of each row that an invocation makes before it multiplies.
        is_staged: whether a workgroup copies the vectors into its memory, part by part; else lanes have their part of
            the vectors in registers.
        least_groups: the fewest workgroups per processor for which invocations get more rows.
    """

    threads: int = 256
    lanes: int = 32
    rows: int = 4
    words: int = 4
    ahead: int = 1
    is_staged: bool = True
    least_groups: float = 1


TUNINGS: Final[Mapping[int, FourBitTuning]] = {
    1: FourBitTuning(threads=128, lanes=128, words=2, ahead=2, is_staged=False),
    2: FourBitTuning(lanes=256, words=1, is_staged=False),
    8: FourBitTuning(),
}
"""The tuning for up to so many vectors, as measured on an H200."""


def tuning_of(vectors: int) -> FourBitTuning:
    """Return the tuning for a number of vectors."""
    return TUNINGS[min(most for most in TUNINGS if most >= vectors)]


@attrs.frozen
class FourBitTiling:
    """The distribution of a product.

    Attributes:
        product: the product.
        vectors: its left side.
        matrix: its right side.
        places: the values of the matrix: the elements, their scales and their zero points.
        tuning: the distribution, within what the shape and the adapter's limits allow.
    """

    product: GemmProblem
    vectors: MatrixLoader
    matrix: ComputedLoader
    places: tuple[Value, Value, Value]
    tuning: FourBitTuning

    @classmethod
    def for_product(cls, lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> FourBitTiling | None:
        """Return the distribution of a product; None if the kernel is not for it."""
        vectors, matrix = product.left, product.right
        if not (KernelVariant.GEMV_FOUR_BITS.is_on and epilogue.stores_single_elements and product.batch == 1):
            return None
        if not isinstance(vectors, MatrixLoader) or not isinstance(matrix, ComputedLoader):
            return None
        if vectors.outer > MOST_VECTORS or not vectors.can_transpose or vectors.element.one != "f32":
            return None
        places = _in_blocks(lowering, matrix)
        if places is None:
            return None
        tiling = cls(product, attrs.evolve(vectors, forced="transposed"), matrix, places, tuning_of(vectors.outer))
        return tiling._fitted(lowering.features)

    def _fitted(self, features: Features) -> FourBitTiling:
        """Return the tiling with the largest tuning that the shape and the limits allow."""
        tiling, tuning = self, self.tuning
        words = tuning.words
        while any(length // WORD % words for length in (self.matrix.inner, self.matrix.outer_stride, self.block)):
            words //= 2
        loads = self.matrix.inner // WORD // words
        threads = min(tuning.threads, features.max_invocations)
        lanes = _lanes(loads, min(tuning.lanes, threads))
        threads = threads // lanes * lanes
        tiling = tiling._with(words=words, threads=threads, lanes=lanes)
        tiling = tiling._with(ahead=min(tuning.ahead, -(-tiling.loads // lanes)))
        while tiling.room_for_sums(features) < LEAST_SUMS and tiling.tuning.ahead > 1:
            tiling = tiling._with(ahead=tiling.tuning.ahead // 2)
        if tiling.room_for_sums(features) < LEAST_SUMS:
            tiling = tiling._with(is_staged=False)
        enough = tuning.least_groups * table_of(features).units
        while tiling.tuning.rows > 1 and tiling.groups < enough:
            tiling = tiling._with(rows=tiling.tuning.rows // 2)
        return tiling

    def _with(self, **changes: Any) -> FourBitTiling:
        return attrs.evolve(self, tuning=attrs.evolve(self.tuning, **changes))

    @property
    def block(self) -> int:
        """The elements of a row that have a scale in common."""
        return self.places[0].descriptor.shape[-1]

    @property
    def unit(self) -> int:
        """The elements of a row that an invocation loads at once."""
        return self.tuning.words * WORD

    @property
    def loads(self) -> int:
        """The loads of a row."""
        return self.matrix.inner // self.unit

    @property
    def side(self) -> int:
        """The rows that a workgroup computes at once."""
        return self.tuning.threads // self.tuning.lanes

    @property
    def per_group(self) -> int:
        """The rows of a workgroup."""
        return self.side * self.tuning.rows

    @property
    def groups(self) -> int:
        """The workgroups."""
        return -(-self.matrix.outer // self.per_group)

    @property
    def pitch(self) -> int:
        """The vec4s from one to the next of a lane, where vectors are staged; one more keeps stores apart."""
        return self.tuning.lanes + 1

    @property
    def staged(self) -> int:
        """The vec4s of the vectors in workgroup memory."""
        vec4s = self.vectors.outer * self.tuning.ahead * self.unit // WIDTH
        return vec4s * self.pitch if self.tuning.is_staged else 0

    def room_for_sums(self, features: Features) -> int:
        """Return how many sums of each invocation fit into workgroup memory at once."""
        row = self.tuning.threads * FLOAT_BYTES
        room = features.max_workgroup_storage - self.staged * WIDTH * FLOAT_BYTES - row
        return min(room, max(MOST_SUM_BYTES, row)) // row

    @property
    def common_point(self) -> int | None:
        """The zero point of all blocks, where it is known and the same; as it is stored, without a sign."""
        value = self.places[2]
        points = origin_of(value)
        if not isinstance(points, Constant) or not isinstance(points.data, np.ndarray):
            return None
        packed = points.data.reshape(-1).view(np.uint8)
        first = int(packed[0]) & 15
        whole = packed[: points.descriptor.element_count // 2]
        return first if (whole == first * 17).all() and (packed[-1] & 15) == first else None


def _lanes(loads: int, most: int) -> int:
    """Return the invocations that share a row of so many loads, evenly, as far as whole subgroups allow."""
    fewest = -(-loads // -(-loads // most))
    if fewest <= LANES_GRAIN:
        return min(most, power_of_two(fewest))
    return min(most, -(-fewest // LANES_GRAIN) * LANES_GRAIN)


def _in_blocks(lowering: Lowering, matrix: ComputedLoader) -> tuple[Value, Value, Value] | None:
    """Return the values of a matrix of four bits whose rows are dense and consist of blocks of whole words."""
    node = matrix.node
    if node.operator is not conversion.dequantize_linear:
        return None
    elements, scale, point = (node.value(name) for name in ("input", "scale", "zero_point"))
    shape, row = elements.descriptor.shape, matrix.outer_stride
    blocks = (*shape[:-1], 1)
    if not shape or scale.descriptor.shape != blocks or point.descriptor.shape != blocks or row % shape[-1]:
        return None
    lies = shape[-1] % WORD == 0 and matrix.inner % WORD == 0 and matrix.inner <= row
    is_along = matrix.inner_axis.merged().strides == (1,) and not matrix.batches.offset
    are_dense = all(lowering.place(value).layout.is_dense for value in (elements, scale, point))
    are_floats = scale.descriptor.data_type == "float32" and point.descriptor.data_type == elements.descriptor.data_type
    return (elements, scale, point) if lies and is_along and are_dense and are_floats else None
