"""GEMV of a matrix of four bits: a few vectors times rows whose blocks have a scale and a zero point.

Lanes share a row. Each loads a word of several rows, 8 elements of each, and multiplies them with the same elements of
the vectors. Neighbouring lanes read neighbouring words, and neighbouring elements of the vectors, so that a load of all
lanes takes few transactions.

A number of four bits becomes a float where it is in its word: its bits are or-ed into those of 2²³, which is subtracted
again, exactly, together with the zero point. The power of 16 by which the number's place in the word then multiplies it
is divided out of the vectors, exactly but for numbers below 2⁻¹¹⁴.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.descriptors import INT4
from webnn_py.device.on_wgpu.codegen.entry_point import power_of_two, workgroup_entry_point
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue, EpilogueCode
from webnn_py.device.on_wgpu.codegen.gemm.computed_loader import ComputedLoader
from webnn_py.device.on_wgpu.codegen.gemm.gemv_plan import MOST_VECTORS, THREADS
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import bound
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_tables import table_of
from webnn_py.device.on_wgpu.codegen.module import Binding
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import KernelVariant
from webnn_py.graph import Value
from webnn_py.operators import conversion

UNIT: Final = 8
"""The elements of a row that a lane loads at once: a word."""

MOST_LANES: Final = 32

MOST_SUMS: Final = 16
"""The most sums of an invocation: those of 256 just fit into the workgroup memory that every adapter has."""

MOST_ROWS: Final = 4
"""The most rows of an invocation, which share what it loads of the vectors."""

GROUPS_PER_UNIT: Final = 4
"""The fewest workgroups per processor for which invocations get more rows."""


@attrs.frozen
class FourBitPlan:
    """The distribution of a product.

    Attributes:
        product: the product.
        vectors: its left side.
        matrix: its right side.
        places: the values of the matrix: the elements, their scales and their zero points.
        lanes: the invocations that share a row.
        rows: the rows of an invocation.
    """

    product: GemmProblem
    vectors: MatrixLoader
    matrix: ComputedLoader
    places: tuple[Value, Value, Value]
    lanes: int
    rows: int

    @classmethod
    def of(cls, lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> FourBitPlan | None:
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
        lanes = min(MOST_LANES, power_of_two(matrix.inner // UNIT))
        rows = min(MOST_ROWS, power_of_two(MOST_SUMS // vectors.outer + 1) // 2)
        enough = GROUPS_PER_UNIT * table_of(lowering.features).units
        while rows > 1 and matrix.outer * lanes < enough * rows * THREADS:
            rows //= 2
        return cls(product, attrs.evolve(vectors, forced="transposed"), matrix, places, lanes, rows)

    @property
    def side(self) -> int:
        """The rows that a workgroup computes at once."""
        return THREADS // self.lanes

    @property
    def per_group(self) -> int:
        """The rows of a workgroup."""
        return self.side * self.rows


def _in_blocks(lowering: Lowering, matrix: ComputedLoader) -> tuple[Value, Value, Value] | None:
    """Return the values of a matrix of four bits whose rows are dense and consist of blocks of whole units."""
    node = matrix.node
    if node.operator is not conversion.dequantize_linear:
        return None
    elements, scale, point = (node.value(name) for name in ("input", "scale", "zero_point"))
    shape, row = elements.descriptor.shape, matrix.outer_stride
    blocks = (*shape[:-1], 1)
    if not shape or scale.descriptor.shape != blocks or point.descriptor.shape != blocks or row % shape[-1]:
        return None
    lies = shape[-1] % UNIT == 0 and matrix.inner % UNIT == 0 and matrix.inner <= row
    is_along = matrix.inner_axis.merged().strides == (1,) and not matrix.batches.offset
    are_dense = all(lowering.place(value).layout.is_dense for value in (elements, scale, point))
    are_floats = scale.descriptor.data_type == "float32" and point.descriptor.data_type == elements.descriptor.data_type
    return (elements, scale, point) if lies and is_along and are_dense and are_floats else None


def emit_four_bit_gemv(lowering: Lowering, plan: FourBitPlan, epilogue: Epilogue) -> None:
    """Emit the kernel of a product."""
    lowering.emit(_kernel(lowering, plan, epilogue.write(vec4s=False), epilogue.label))


def _kernel(lowering: Lowering, plan: FourBitPlan, end: EpilogueCode, label: str) -> Kernel:
    tiles = -(-plan.matrix.outer // plan.per_group)
    reads, functions = bound({"vectors": plan.vectors}, "f32")
    kinds = ("u32", "f32", "u32")
    names = ("elements", "scales", "points")
    own: list[Binding] = [
        (lowering.place(value).buffer, name, kind) for value, name, kind in zip(plan.places, names, kinds, strict=True)
    ]
    parts = [
        f"var<workgroup> sums_of: array<f32, {plan.rows * plan.vectors.outer * THREADS}>;",
        *functions,
        _AS_FLOATS,
    ]
    main, workgroups = workgroup_entry_point(tiles, THREADS, [*_multiply(plan), *_add_up(plan)])
    return end.kernel(label, [*reads, *own], parts, main, workgroups)


_AS_FLOATS: Final = """fn as_floats(word: u32, base: vec4<f32>) -> vec4<f32> {
  let bits = (vec4<u32>(word) & vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u)) | vec4<u32>(0x4b000000u);
  return bitcast<vec4<f32>>(bits) - base;
}"""


def _multiply(plan: FourBitPlan) -> list[str]:
    """Return the loop over the units of a lane; ``c0_1`` is the sum of the first row and the second vector."""
    matrix, vectors = plan.matrix, plan.vectors
    units, rows, counts = matrix.inner // UNIT, range(plan.rows), range(vectors.outer)
    size = plan.places[0].descriptor.shape[-1]
    row_units = matrix.outer_stride // UNIT
    sign = " ^ 0x88888888u" if plan.places[0].descriptor.data_type == INT4 else ""
    lines = [
        f"let outer0 = number * {plan.per_group}u;",
        "let batch = 0u;",
        *vectors.begin("vectors"),
        f"let lane = t % {plan.lanes}u;",
        *(f"let o{row} = min(outer0 + t / {plan.lanes}u + {row * plan.side}u, {matrix.outer - 1}u);" for row in rows),
        *(f"var c{row}_{count} = 0.0;" for row in rows for count in counts),
        f"for (var unit = lane; unit < {units}u; unit += {plan.lanes}u) {{",
    ]
    for row in rows:
        lines += [
            f"  let w{row} = elements[o{row} * {row_units}u + unit]{sign};",
            f"  let at{row} = o{row} * {matrix.outer_stride // size}u + unit / {size // UNIT}u;",
            f"  let point{row} = f32(((points[at{row} >> 3u]{sign}) >> ((at{row} & 7u) << 2u)) & 15u);",
            f"  let base{row} = vec4<f32>(8388608.0) + point{row} * vec4<f32>(1.0, 16.0, 256.0, 4096.0);",
            *(f"  var p{row}_{count} = 0.0;" for count in counts),
        ]
    for four in range(UNIT // WIDTH):
        for count in counts:
            base = f"vectors_base + {count * vectors.outer_stride // WIDTH}u"
            value = f"vectors_at({base} + {vectors.along(f'unit * {UNIT}u + {four * WIDTH}u')})"
            lines.append(f"  let v{four}_{count} = {value} * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);")
        for row in rows:
            lines.append(f"  let m{four}_{row} = as_floats(w{row}{' >> 16u' * four}, base{row});")
            lines += [f"  p{row}_{count} += dot(m{four}_{row}, v{four}_{count});" for count in counts]
    for row in rows:
        lines.append(f"  let scale{row} = scales[at{row}];")
        lines += [f"  c{row}_{count} = fma(p{row}_{count}, scale{row}, c{row}_{count});" for count in counts]
    return [*lines, "}"]


def _add_up(plan: FourBitPlan) -> list[str]:
    """Return the reduction by halving, and the stores: each sum ends up with the first lane of its row."""
    counts = range(plan.vectors.outer)
    sums = [f"c{row}_{count}" for row in range(plan.rows) for count in counts]
    lines = [f"sums_of[{index * THREADS}u + t] = {name};" for index, name in enumerate(sums)]
    half = plan.lanes // 2
    while half:
        lines += ["workgroupBarrier();", f"if (lane < {half}u) {{"]
        for index in range(len(sums)):
            at = f"{index * THREADS}u + t"
            lines.append(f"  sums_of[{at}] += sums_of[{at} + {half}u];")
        lines.append("}")
        half //= 2
    outputs = plan.per_group * plan.vectors.outer
    address = plan.product.address("batch", "v", "o")
    return [
        *lines,
        "workgroupBarrier();",
        f"for (var item = t; item < {outputs}u; item += {THREADS}u) {{",
        f"  let v = item / {plan.per_group}u;",
        f"  let place = item % {plan.per_group}u;",
        "  let o = outer0 + place;",
        f"  if (o < {plan.matrix.outer}u) {{",
        f"    let sum = (place / {plan.side}u * {plan.vectors.outer}u + v) * {THREADS}u;",
        f"    finish_one({address}, sums_of[sum + place % {plan.side}u * {plan.lanes}u]);",
        "  }",
        "}",
    ]
