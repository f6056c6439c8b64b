"""Prefix sums along an axis.

If rows are interleaved in memory, each invocation scans a row. Otherwise the invocations of a workgroup share a row:
each scans some adjacent elements, then the workgroup scans their sums. If there are too few rows, they are split into
pieces: a first pass sums the pieces, their sums are scanned, and a last pass scans each piece from there.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import WORKGROUP, power_of_two
from webnn_py.devices.wgpu.codegen.reduction.combiners import Combiner
from webnn_py.devices.wgpu.codegen.reduction.operands import StoreTarget, TensorOperand
from webnn_py.devices.wgpu.codegen.reduction.pointwise import emit_pointwise
from webnn_py.devices.wgpu.codegen.reduction.reduce import INVOCATIONS, ReductionPass, ReductionTiling
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows, VectorAxis, choose_vector, is_interleaved
from webnn_py.devices.wgpu.codegen.reduction.workgroup import ReductionWorkgroup
from webnn_py.devices.wgpu.codegen.reduction.writer import KernelWriter
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering

PIECE: Final = {True: 32, False: 1024}
"""The granularity of the lengths of pieces, by whether rows are interleaved."""

SHORTEST_PIECES: Final = 4
"""The least length of a piece, in units of :data:`PIECE`."""

MOST_UNITS: Final = 4
"""The most adjacent vec4s that an invocation scans at once."""

UNROLLED: Final = 8
"""The elements of its row that an invocation loads before it adds them."""

COLUMNS: Final = 64
"""The invocations of a workgroup for interleaved rows."""


def emit_scan(
    lowering: Lowering,
    label: str,
    operand: TensorOperand,
    rows: ReductionRows,
    total: Combiner,
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
        total: the combiner for whole sums.
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
    writer = ScanWriter(lowering, label, operand, rows, vector, written, exclusive=exclusive)
    if target.element.per_one == 1 or vector != "none":
        writer.write(total, target)
        return
    between = StoreTarget.between(lowering, target.element.compute, rows.outputs * rows.count)
    writer.write(total, between)
    whole = between.operand(rows.shape)
    emit_pointwise(lowering, f"{label} (rounding)", [whole], rows.shape, lambda value: value, target)


def _flip(layout: Layout, axis: int) -> Layout:
    starts = [size - 1 if number == axis else 0 for number, size in enumerate(layout.shape)]
    return layout.window(starts, layout.shape, [-1 if number == axis else 1 for number in range(len(layout.shape))])


class ScanWriter:
    """Writes the last kernel of a prefix sum, and emits those before it."""

    def __init__(
        self,
        lowering: Lowering,
        label: str,
        operand: TensorOperand,
        rows: ReductionRows,
        vector: VectorAxis,
        written: Layout,
        *,
        exclusive: bool,
    ) -> None:
        self._lowering = lowering
        self._label = label
        self._operand = operand
        self._rows = rows
        self._vector = vector
        self._exclusive = exclusive
        self._view = rows.view(operand.layout)
        self._written = rows.view(written)
        self._interleaved = is_interleaved(self._written)
        self._kind = operand.element.compute
        self._writer = KernelWriter(lowering, label)
        self._carries: TensorOperand | None = None
        self._length = rows.count

    def write(self, total: Combiner, target: StoreTarget) -> None:
        pieces = self._pieces()
        if pieces > 1:
            self._carries = self._sum_pieces(total, pieces)
        if self._interleaved:
            self._write_columns(target, pieces)
        else:
            self._write_rows(target, pieces)

    # --- pieces ----------------------------------------------------------------------------------------------

    def _pieces(self) -> int:
        """Return the number of pieces per row, and set the length of a piece."""
        grain = PIECE[self._interleaved]
        invocations = self._rows.units(self._vector)[0]
        if not self._interleaved:
            invocations *= min(WORKGROUP, power_of_two(self._rows.count / WIDTH))
        most = self._rows.count // (grain * SHORTEST_PIECES)
        pieces = min(most, -(-INVOCATIONS // invocations))
        if pieces <= 1:
            return 1
        self._length = -(-self._rows.count // (pieces * grain)) * grain
        return -(-self._rows.count // self._length)

    def _sum_pieces(self, total: Combiner, pieces: int) -> TensorOperand:
        """Emit the scan of the pieces' sums; return the carry-in of each piece."""
        lowering, outputs = self._lowering, self._rows.outputs
        vector = choose_vector(self._view)
        if is_interleaved(self._view):
            workgroup = ReductionWorkgroup(WORKGROUP // WIDTH, WIDTH, along_first=False)
        else:
            across = min(WIDTH, power_of_two(outputs))
            workgroup = ReductionWorkgroup(across, WORKGROUP // across, along_first=True)
        length = self._length // WIDTH if vector == "along" else self._length
        sums = StoreTarget.between(lowering, self._kind, pieces * outputs)
        tiling = ReductionTiling(vector, workgroup, length, pieces)
        label = f"{self._label} (pieces)"
        ReductionPass(lowering, label, [self._operand], self._rows, total.without_finish(), tiling).emit([sums])
        begins = StoreTarget.between(lowering, self._kind, pieces * outputs)
        rows = ReductionRows((pieces, outputs), (0,))
        carries = sums.operand(rows.shape)
        emit_scan(lowering, label, carries, rows, total, begins, exclusive=True, reversed=False)
        return begins.operand(rows.shape)

    def _begin(self, outputs: list[str]) -> list[str]:
        """Return variables with the carry-in for each of the invocation's outputs."""
        writer = self._writer
        if self._carries is None:
            return [writer.var(f"{self._kind}(0)", "carry") for _ in outputs]
        buffer = writer.reads.name(self._carries.buffer, self._kind)
        return [writer.var(f"{buffer}[depth * {self._rows.outputs}u + {output}]", "carry") for output in outputs]

    # --- interleaved rows -----------------------------------------------------------------------------------

    def _write_columns(self, target: StoreTarget, pieces: int) -> None:
        writer, count = self._writer, self._rows.count
        outputs = self._rows.units(self._vector)[0]
        writer.add(f"let output = group * {COLUMNS}u + t;", f"if (output >= {outputs}u) {{ return; }}")
        numbers = (
            [f"output * {WIDTH}u + {component}u" for component in range(WIDTH)]
            if self._vector == "across"
            else ["output"]
        )
        carries = self._begin(numbers)
        writer.add(f"var place = depth * {self._length}u;" if pieces > 1 else "var place = 0u;")
        end = writer.let(f"min(place + {self._length}u, {count}u)", "end") if pieces > 1 else f"{count}u"
        writer.add(f"for (; place + {UNROLLED - 1}u < {end}; place += {UNROLLED}u) {{")
        self._step(target, carries, ["place", *(f"(place + {step}u)" for step in range(1, UNROLLED))])
        writer.add("}", f"for (; place < {end}; place++) {{")
        self._step(target, carries, ["place"])
        writer.add("}")
        writer.emit(COLUMNS, -(-outputs // COLUMNS), pieces)

    def _step(self, target: StoreTarget, carries: list[str], places: list[str]) -> None:
        writer = self._writer
        loaded = [writer.load(self._operand, self._view, self._vector, "output", place) for place in places]
        for place, values in zip(places, loaded, strict=True):
            before = [writer.let(carry) for carry in carries] if self._exclusive else carries
            writer.add(*(f"{carry} = {carry} + {value};" for carry, value in zip(carries, values, strict=True)))
            writer.store(target, self._written, self._vector, "output", place, before)

    # --- contiguous rows ------------------------------------------------------------------------------------

    def _write_rows(self, target: StoreTarget, pieces: int) -> None:
        writer, rows = self._writer, self._rows
        vec4s = -(-self._length // WIDTH)
        along = min(WORKGROUP, power_of_two(vec4s))
        units = min(MOST_UNITS, power_of_two(vec4s / along))
        workgroup = ReductionWorkgroup(WORKGROUP // along, along, along_first=True)
        tiles = -(-vec4s // (along * units))
        workgroup.place(writer, rows.outputs)
        (carry,) = self._begin(["output"])
        if pieces > 1:
            writer.add(f"let begin = depth * {vec4s}u;")
            end = writer.let(f"min(begin + {vec4s}u, {-(-rows.count // WIDTH)}u)", "end")
        else:
            writer.add("let begin = 0u;")
            end = f"{vec4s}u"
        if tiles > 1:
            writer.add(f"for (var tile = 0u; tile < {tiles}u; tile++) {{")
        writer.add(f"let first = begin + ({f'tile * {along}u + ' if tiles > 1 else ''}y) * {units}u;")
        numbers = [writer.let(f"first + {number}u", "unit") for number in range(units)]
        running = self._running_sums([value for number in numbers for value in self._load(number, end)])
        before, total = workgroup.scan(writer, self._kind, running[-1])
        base = writer.let(f"{carry} + {before}")
        sums = [base, *(f"({base} + {value})" for value in running)]
        sums = sums[:-1] if self._exclusive else sums[1:]
        for index, number in enumerate(numbers):
            self._store(target, number, end, sums[index * WIDTH : (index + 1) * WIDTH])
        if tiles > 1:
            writer.add(f"{carry} = {carry} + {total};", "workgroupBarrier();", "}")
        writer.emit(workgroup.size, -(-rows.outputs // workgroup.across), pieces)

    def _load(self, number: str, end: str) -> list[str]:
        """Load the four elements of a unit, zero-padded beyond the end."""
        writer = self._writer
        zero = f"{self._kind}(0)"
        if self._vector == "along":
            unit = writer.let(f"min({number}, {end} - 1u)", "unit")
            values = writer.load(self._operand, self._view, "along", "output", unit)
            return [writer.let(f"select({zero}, {value}, {number} < {end})") for value in values]
        last = self._rows.count - 1
        loaded = []
        for component in range(WIDTH):
            place = writer.let(f"{number} * {WIDTH}u + {component}u", "at")
            (value,) = writer.load(
                self._operand, self._view, "none", "output", writer.let(f"min({place}, {last}u)", "at")
            )
            loaded.append(writer.let(f"select({zero}, {value}, {number} < {end} && {place} <= {last}u)"))
        return loaded

    def _running_sums(self, values: list[str]) -> list[str]:
        sums = values[:1]
        for value in values[1:]:
            sums.append(self._writer.let(f"{sums[-1]} + {value}"))
        return sums

    def _store(self, target: StoreTarget, number: str, end: str, values: list[str]) -> None:
        writer = self._writer
        there = f"{number} < {end} && place < {self._rows.outputs}u"
        if self._vector == "along":
            writer.add(f"if ({there}) {{")
            writer.store(target, self._written, "along", "output", number, values)
            writer.add("}")
            return
        for component, value in enumerate(values):
            place = writer.let(f"{number} * {WIDTH}u + {component}u", "at")
            writer.add(f"if ({there} && {place} < {self._rows.count}u) {{")
            writer.store(target, self._written, "none", "output", place, [value])
            writer.add("}")
