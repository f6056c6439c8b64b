"""Prefix sums along an axis.

If rows are interleaved in memory, each invocation scans a row. Otherwise the invocations of a workgroup share a row:
each scans some adjacent elements, then the workgroup scans their sums. If there are too few rows, they are split into
pieces: a first pass sums the pieces, their sums are scanned, and a last pass scans each piece from there.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import WORKGROUP, power_of_two
from webnn_py.devices.wgpu.codegen.reduction.combiners import fold
from webnn_py.devices.wgpu.codegen.reduction.operands import StoreTarget, TensorOperand
from webnn_py.devices.wgpu.codegen.reduction.pointwise import emit_pointwise
from webnn_py.devices.wgpu.codegen.reduction.reduce import LoopedRows
from webnn_py.devices.wgpu.codegen.reduction.rows import (
    INVOCATIONS,
    ReductionRows,
    RowsTiling,
    RowsView,
    VectorAxis,
    choose_vector,
    is_interleaved,
)
from webnn_py.devices.wgpu.codegen.reduction.writer import RowsWriter
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering

PIECE: Final = {True: 32, False: 1024}
"""The granularity of the lengths of pieces, by whether rows are interleaved."""

SHORTEST_PIECES: Final = 4
"""The least length of a piece, in units of :data:`PIECE`."""

MOST_UNITS: Final = 4
"""The most adjacent vec4s that an invocation scans at once."""

STEPS: Final = 8
"""The elements of its row that an invocation loads before it adds them."""

COLUMNS: Final = 64
"""The invocations of a workgroup for interleaved rows."""


def emit_scan(
    lowering: Lowering,
    label: str,
    operand: TensorOperand,
    rows: ReductionRows,
    target: StoreTarget,
    *,
    exclusive: bool,
    reversed: bool,
) -> None:
    """Emit the kernels of a prefix sum.

    Args:
        lowering: the lowering.
        label: the operator and its data types.
        operand: the tensor.
        rows: its rows along the axis.
        target: the output.
        exclusive: whether sums exclude the element itself.
        reversed: whether to start from the last element.
    """
    (axis,) = rows.reduced
    written = Layout.dense(rows.shape)
    if reversed:
        operand = attrs.evolve(operand, layout=_flip(operand.layout, axis))
        written = _flip(written, axis)
    view = rows.view(written)
    interleaved = is_interleaved(view)
    vector: VectorAxis = "across" if interleaved and view.vec4s("across") else "none"
    if not interleaved and view.vec4s("along"):
        vector = "along"
    stored = target
    if target.element.per_one > 1 and vector == "none":
        stored = StoreTarget.between(lowering, target.element.compute, rows.outputs * rows.count)
    length, pieces = _pieces(rows, vector, interleaved=interleaved)
    carries = _sum_pieces(lowering, f"{label} (pieces)", operand, rows, length, pieces) if pieces > 1 else None
    scan = Scan(operand, stored, view, carries, length, exclusive)
    tiling = _tiling_of_columns(vector, length, pieces) if interleaved else _tiling_of_rows(vector, length, pieces)
    writer = ScanWriter(lowering, label, rows, tiling, scan)
    writer.write_columns() if interleaved else writer.write_rows()
    if stored is not target:
        whole = stored.operand(Layout.dense(rows.shape))
        emit_pointwise(lowering, f"{label} (rounding)", [whole], rows.shape, lambda value: value, target)


def _flip(layout: Layout, axis: int) -> Layout:
    starts = [size - 1 if number == axis else 0 for number, size in enumerate(layout.shape)]
    return layout.window(starts, layout.shape, [-1 if number == axis else 1 for number in range(len(layout.shape))])


def _pieces(rows: ReductionRows, vector: VectorAxis, *, interleaved: bool) -> tuple[int, int]:
    """Return the elements of a piece, and the number of pieces per row."""
    grain = PIECE[interleaved]
    invocations = rows.units(vector)[0]
    if not interleaved:
        invocations *= min(WORKGROUP, power_of_two(rows.count / WIDTH))
    pieces = min(rows.count // (grain * SHORTEST_PIECES), -(-INVOCATIONS // invocations))
    if pieces <= 1:
        return rows.count, 1
    length = -(-rows.count // (pieces * grain)) * grain
    return length, -(-rows.count // length)


def _sum_pieces(
    lowering: Lowering, label: str, operand: TensorOperand, rows: ReductionRows, length: int, pieces: int
) -> TensorOperand:
    """Emit the scan of the pieces' sums; return the carry-in of each piece, of the shape [pieces, rows]."""
    view, kind, outputs = rows.view(operand.layout), operand.element.compute, rows.outputs
    vector = choose_vector(view)
    interleaved = is_interleaved(view)
    across = WORKGROUP // WIDTH if interleaved else min(WIDTH, power_of_two(outputs))
    units = length // WIDTH if vector == "along" else length
    tiling = RowsTiling(vector, across, WORKGROUP // across, not interleaved, units, pieces)
    sums, begins = (StoreTarget.between(lowering, kind, pieces * outputs) for _ in range(2))
    total = fold(kind, "+", 0)
    LoopedRows(lowering, label, [operand], rows, total.without_finish(), tiling).reduce_to([sums])
    of_pieces = ReductionRows((pieces, outputs), (0,))
    found = sums.operand(Layout.dense(of_pieces.shape))
    emit_scan(lowering, label, found, of_pieces, begins, exclusive=True, reversed=False)
    return begins.operand(Layout.dense(of_pieces.shape))


def _tiling_of_columns(vector: VectorAxis, length: int, pieces: int) -> RowsTiling:
    """Return the tiling in which each invocation scans a row, or four."""
    return RowsTiling(vector, COLUMNS, 1, along_first=False, length=length, pieces=pieces)


def _tiling_of_rows(vector: VectorAxis, length: int, pieces: int) -> RowsTiling:
    """Return the tiling in which invocations share a row."""
    along = min(WORKGROUP, power_of_two(-(-length // WIDTH)))
    units = length // WIDTH if vector == "along" else length
    return RowsTiling(vector, WORKGROUP // along, along, along_first=True, length=units, pieces=pieces)


@attrs.frozen
class Scan:
    """What a kernel of prefix sums reads and writes.

    Attributes:
        operand: the tensor.
        target: the output.
        written: it, as rows.
        carries: the sums before each piece, of the shape [pieces, rows]; None for a single piece.
        length: the elements of a piece.
        exclusive: whether sums exclude the element itself.
    """

    operand: TensorOperand
    target: StoreTarget
    written: RowsView
    carries: TensorOperand | None
    length: int
    exclusive: bool


class ScanWriter(RowsWriter):
    """The last kernel of a prefix sum."""

    def __init__(self, lowering: Lowering, label: str, rows: ReductionRows, tiling: RowsTiling, scan: Scan) -> None:
        super().__init__(lowering, label, rows, tiling)
        self._scan = scan
        self._kind = scan.operand.element.compute
        self._read = self.reader(scan.operand, rows, tiling.vector)

    def _begin(self, outputs: list[str]) -> list[str]:
        """Return variables with the carry-in for each of the invocation's outputs."""
        carries = self._scan.carries
        if carries is None:
            return [self.var(f"{self._kind}(0)", "carry") for _ in outputs]
        buffer = self.reads.name(carries.buffer, self._kind)
        return [self.var(f"{buffer}[depth * {self.rows.outputs}u + {output}]", "carry") for output in outputs]

    # --- interleaved rows -----------------------------------------------------------------------------------

    def write_columns(self) -> None:
        """Write the kernel in which an invocation scans a row, or four, and emit it."""
        count, length, in_pieces = self.rows.count, self._scan.length, self.tiling.pieces > 1
        self.add(f"let output = group * {COLUMNS}u + t;", f"if (output >= {self.outputs}u) {{ return; }}")
        numbers = ["output"]
        if self.tiling.vector == "across":
            numbers = [f"output * {WIDTH}u + {component}u" for component in range(WIDTH)]
        carries = self._begin(numbers)
        self.add(f"var place = depth * {length}u;" if in_pieces else "var place = 0u;")
        end = self.let(f"min(place + {length}u, {count}u)", "end") if in_pieces else f"{count}u"
        self.add(f"for (; place + {STEPS - 1}u < {end}; place += {STEPS}u) {{")
        self._step(carries, ["place", *(f"(place + {step}u)" for step in range(1, STEPS))])
        self.add("}", f"for (; place < {end}; place++) {{")
        self._step(carries, ["place"])
        self.add("}")
        self.emit()

    def _step(self, carries: list[str], places: list[str]) -> None:
        loaded = [self._read("output", place) for place in places]
        for place, values in zip(places, loaded, strict=True):
            before = [self.let(carry) for carry in carries] if self._scan.exclusive else carries
            self.add(*(f"{carry} = {carry} + {value};" for carry, value in zip(carries, values, strict=True)))
            self.store(self._scan.target, self._scan.written, "output", place, before)

    # --- contiguous rows ------------------------------------------------------------------------------------

    def write_rows(self) -> None:
        """Write the kernel in which the invocations of a workgroup share rows, and emit it."""
        along = self.tiling.along
        vec4s = -(-self._scan.length // WIDTH)
        units = min(MOST_UNITS, power_of_two(vec4s / along))
        tiles = -(-vec4s // (along * units))
        self.place()
        (carry,) = self._begin(["output"])
        if self.tiling.pieces > 1:
            self.add(f"let begin = depth * {vec4s}u;")
            end = self.let(f"min(begin + {vec4s}u, {-(-self.rows.count // WIDTH)}u)", "end")
        else:
            self.add("let begin = 0u;")
            end = f"{vec4s}u"
        if tiles > 1:
            self.add(f"for (var tile = 0u; tile < {tiles}u; tile++) {{")
        self.add(f"let first = begin + ({f'tile * {along}u + ' if tiles > 1 else ''}y) * {units}u;")
        numbers = [self.let(f"first + {number}u", "unit") for number in range(units)]
        running = self._running_sums([value for number in numbers for value in self._load_four(number, end)])
        before, total = self.scan(self._kind, running[-1])
        base = self.let(f"{carry} + {before}")
        sums = [base, *(f"({base} + {value})" for value in running)]
        sums = sums[:-1] if self._scan.exclusive else sums[1:]
        for index, number in enumerate(numbers):
            self._store_four(number, end, sums[index * WIDTH : (index + 1) * WIDTH])
        if tiles > 1:
            self.add(f"{carry} = {carry} + {total};", "workgroupBarrier();", "}")
        self.emit()

    def _load_four(self, number: str, end: str) -> list[str]:
        """Load the four elements of a unit, zero-padded beyond the end."""
        zero = f"{self._kind}(0)"
        if self.tiling.vector == "along":
            unit = self.let(f"min({number}, {end} - 1u)", "unit")
            return [self.let(f"select({zero}, {value}, {number} < {end})") for value in self._read("output", unit)]
        last = self.rows.count - 1
        loaded = []
        for component in range(WIDTH):
            place = self.let(f"{number} * {WIDTH}u + {component}u", "at")
            (value,) = self._read("output", self.let(f"min({place}, {last}u)", "at"))
            loaded.append(self.let(f"select({zero}, {value}, {number} < {end} && {place} <= {last}u)"))
        return loaded

    def _running_sums(self, values: list[str]) -> list[str]:
        sums = values[:1]
        for value in values[1:]:
            sums.append(self.let(f"{sums[-1]} + {value}"))
        return sums

    def _store_four(self, number: str, end: str, values: list[str]) -> None:
        target, written = self._scan.target, self._scan.written
        there = f"{number} < {end} && place < {self.rows.outputs}u"
        if self.tiling.vector == "along":
            self.add(f"if ({there}) {{")
            self.store(target, written, "output", number, values)
            self.add("}")
            return
        for component, value in enumerate(values):
            place = self.let(f"{number} * {WIDTH}u + {component}u", "at")
            self.add(f"if ({there} && {place} < {self.rows.count}u) {{")
            self.store(target, written, "output", place, [value])
            self.add("}")
