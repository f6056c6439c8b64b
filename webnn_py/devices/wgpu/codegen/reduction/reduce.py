"""Reductions: one kernel if there are enough outputs, otherwise two, the first of which reduces pieces of rows.

Sums are accumulated in many short chains, of at most a few hundred elements, which are then added in a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import WORKGROUP, power_of_two
from webnn_py.devices.wgpu.codegen.reduction.combiners import Combiner, Item
from webnn_py.devices.wgpu.codegen.reduction.operands import FusedOperand, StoreTarget, TensorOperand
from webnn_py.devices.wgpu.codegen.reduction.rows import (
    ReductionRows,
    RowsView,
    VectorAxis,
    choose_vector,
    is_interleaved,
)
from webnn_py.devices.wgpu.codegen.reduction.workgroup import ReductionWorkgroup
from webnn_py.devices.wgpu.codegen.reduction.writer import KernelWriter, store_expression
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.lowering import Lowering

INVOCATIONS: Final = 2**18
"""The invocations that keep the largest GPU busy."""

WORTH_SHARING: Final = 2**16
"""The total loads from which an invocation should have several."""

FEWEST_LOADS: Final = 4
"""The least loads of an invocation, if there are enough, so that merging is a small part of the work."""

MOST_LOADS: Final = 32
"""The loads per invocation up to which one kernel is faster than two."""

UNROLLED: Final = {"along": 4, "across": 4, "none": 8}
"""The number of loads in flight per invocation."""

SEGMENT: Final = {"along": 8, "across": 16, "none": 32}
"""The number of adjacent invocations that should load adjacent units, to use whole cache lines."""


@attrs.frozen
class ReductionTiling:
    """The distribution of a reduction.

    Attributes:
        vector: the axis of the vec4s that are loaded.
        workgroup: the arrangement of a workgroup's invocations.
        length: the units of a row that a workgroup reduces.
        pieces: the number of pieces of this length per row.
    """

    vector: VectorAxis
    workgroup: ReductionWorkgroup
    length: int
    pieces: int

    @classmethod
    def for_rows(cls, rows: ReductionRows, view: RowsView, *, packed: bool) -> ReductionTiling:
        """Choose the distribution.

        Args:
            rows: the rows.
            view: the operand as rows.
            packed: whether outputs can only be stored four at a time.
        """
        vector = choose_vector(view)
        outputs, units = rows.units(vector)
        fewest = FEWEST_LOADS if outputs * units >= WORTH_SHARING else 1
        most = power_of_two(units / fewest)
        if vector == "along":  # loads should coalesce, even with few per invocation
            most = max(most, min(SEGMENT[vector], power_of_two(units)))
        wanted = INVOCATIONS / outputs
        interleaved = is_interleaved(view)
        if interleaved:
            limit = WORKGROUP // min(SEGMENT[vector], power_of_two(outputs))
        else:
            limit = WORKGROUP
            wanted = max(wanted, min(SEGMENT[vector], power_of_two(units)))
        along = min(power_of_two(wanted), most, limit)
        pieces = max(1, min(power_of_two(wanted), most) // limit) if units > limit * MOST_LOADS else 1
        step = along * UNROLLED[vector]
        length = -(-units // (pieces * step)) * step
        if length >= units:
            length = units
            if packed and vector != "across":
                along = min(along, WORKGROUP // WIDTH)
        return cls(vector, ReductionWorkgroup(WORKGROUP // along, along, not interleaved), length, -(-units // length))


def emit_reduction(
    lowering: Lowering,
    label: str,
    operands: Sequence[TensorOperand | FusedOperand],
    rows: ReductionRows,
    reduction: Combiner,
    targets: Sequence[StoreTarget],
) -> None:
    """Emit the kernels of a reduction.

    Args:
        lowering: the lowering.
        label: the operator and its data types.
        operands: the tensor, or the accumulators of partial results; all of one layout.
        rows: the rows to reduce.
        reduction: the operation.
        targets: the outputs, one for each result of ``reduction.finish``.
    """
    packed = any(target.element.per_one > 1 for target in targets)
    tiling = ReductionTiling.for_rows(rows, rows.view(operands[0].layout), packed=packed)
    if tiling.pieces == 1:
        ReductionPass(lowering, label, operands, rows, reduction, tiling).emit(targets)
        return
    shape = (tiling.pieces, rows.outputs)
    partial = [StoreTarget.between(lowering, kind, tiling.pieces * rows.outputs) for kind in reduction.kinds]
    ReductionPass(lowering, f"{label} (pieces)", operands, rows, reduction.without_finish(), tiling).emit(partial)
    results = [target.operand(shape) for target in partial]
    emit_reduction(lowering, label, results, ReductionRows(shape, (0,)), reduction.of_partial_results(), targets)


class ReductionPass:
    """Writes one kernel, which reduces pieces of rows; its results have the layout [pieces, outputs]."""

    def __init__(
        self,
        lowering: Lowering,
        label: str,
        operands: Sequence[TensorOperand | FusedOperand],
        rows: ReductionRows,
        reduction: Combiner,
        tiling: ReductionTiling,
    ) -> None:
        self._writer = KernelWriter(lowering, label)
        self._readers = [self._writer.reader(operand, rows, tiling.vector) for operand in operands]
        self._reduction = reduction
        self._plan = tiling
        self._outputs, self._units = rows.units(tiling.vector)
        self._sets: list[list[str]] = []

    def emit(self, targets: Sequence[StoreTarget]) -> None:
        writer, workgroup, reduction = self._writer, self._plan.workgroup, self._reduction
        workgroup.place(writer, self._outputs)
        sets = WIDTH if self._plan.vector == "across" else 1
        self._sets = [[writer.var(start) for start in reduction.start] for _ in range(sets)]
        self._absorb_all()
        workgroup.combine(writer, reduction.kinds, self._sets, reduction.merge, everywhere=False)
        results = [reduction.finish(variables) for variables in self._sets]
        self._store(results, targets)
        groups = -(-self._outputs // workgroup.across)
        writer.emit(workgroup.size, groups, self._plan.pieces)

    # --- reading ---------------------------------------------------------------------------------------------

    def _absorb_all(self) -> None:
        writer, stride = self._writer, self._plan.workgroup.along
        loads = -(-self._plan.length // stride)
        unrolled = UNROLLED[self._plan.vector]
        if self._plan.pieces == 1 and loads <= 2 * unrolled:
            writer.add("let unit = y;")
            self._absorb_rest(loads, f"{self._units}u", sure=self._units // stride)
            return
        if self._plan.pieces == 1:
            writer.add("var unit = y;")
            end = f"{self._units}u"
        else:
            writer.add(f"var unit = depth * {self._plan.length}u + y;")
            end = writer.let(f"min((depth + 1u) * {self._plan.length}u, {self._units}u)", "end")
        writer.add(f"for (; unit + {(unrolled - 1) * stride}u < {end}; unit += {unrolled * stride}u) {{")
        self._absorb([self._load(self._unit(number)) for number in range(unrolled)])
        writer.add("}")
        if self._units % (unrolled * stride) or (self._plan.pieces > 1 and self._plan.length % (unrolled * stride)):
            self._absorb_rest(unrolled - 1, end, sure=0)

    def _absorb_rest(self, loads: int, end: str, sure: int) -> None:
        """Absorb up to ``loads`` units, of which only the first ``sure`` are known to be in bounds; load all first."""
        writer = self._writer
        units = [self._unit(number) for number in range(loads)]
        loaded = [
            self._load(unit if number < sure else writer.let(f"min({unit}, {end} - 1u)", "unit"))
            for number, unit in enumerate(units)
        ]
        self._absorb(loaded[:sure])
        for unit, load in zip(units[sure:], loaded[sure:], strict=True):
            writer.add(f"if ({unit} < {end}) {{")
            self._absorb([load])
            writer.add("}")

    def _unit(self, number: int) -> str:
        return self._writer.let(f"unit + {number * self._plan.workgroup.along}u", "unit") if number else "unit"

    def _load(self, unit: str) -> tuple[list[Item], list[str]]:
        """Return the elements of a unit, and their indices in the row."""
        columns = [read("output", unit) for read in self._readers]
        if self._plan.vector == "along":
            positions = [f"({unit} * {WIDTH}u + {component}u)" for component in range(WIDTH)]
        else:
            positions = [unit] * len(columns[0])
        return list(zip(*columns, strict=True)), positions

    def _absorb(self, loaded: Sequence[tuple[list[Item], list[str]]]) -> None:
        if not loaded:
            return
        for number, variables in enumerate(self._sets):
            own = slice(number, number + 1) if self._plan.vector == "across" else slice(None)
            items = [item for units, _ in loaded for item in units[own]]
            positions = [position for _, units in loaded for position in units[own]]
            self._writer.add(*self._reduction.absorb(variables, items, positions))

    # --- writing ---------------------------------------------------------------------------------------------

    def _store(self, results: Sequence[Sequence[str]], targets: Sequence[StoreTarget]) -> None:
        writer = self._writer
        if self._plan.vector != "across" and any(target.element.per_one > 1 for target in targets):
            self._store_packed(results[0], targets)
            return
        writer.add(f"if (y == 0u && place < {self._outputs}u) {{")
        at = f"depth * {self._outputs}u + place" if self._plan.pieces > 1 else "place"
        for number, target in enumerate(targets):
            values = writer.stored(target, [result[number] for result in results], self._terms(target, ["place"]))
            if self._plan.vector == "across":
                writer.add(
                    f"{writer.writes.name(target.buffer, target.element.vec4)}[{at}] = {target.element.pack(values)};"
                )
            else:
                value = store_expression(target.element, values[0])
                writer.add(f"{writer.writes.name(target.buffer, target.element.one)}[{at}] = {value};")
        writer.add("}")

    def _terms(self, target: StoreTarget, places: Sequence[str]) -> list[list[str]]:
        """Load the elements of the epilogue's operands for these outputs, or vec4s of outputs."""
        if target.epilogue is None:
            return []
        vector: VectorAxis = "across" if self._plan.vector == "across" else "none"
        shape = target.epilogue.fused.result.descriptor.shape
        return [self._writer.read_flat(term, shape, vector, places) for term in target.terms]

    def _store_packed(self, results: Sequence[str], targets: Sequence[StoreTarget]) -> None:
        """Pass the workgroup's outputs to invocations that pack four each, with indices clamped to the last output."""
        writer, across = self._writer, self._plan.workgroup.across
        for number, (result, target) in enumerate(zip(results, targets, strict=True)):
            kind = (target.element if target.epilogue is None else target.epilogue.computed).compute
            array = writer.shared(kind, len(self._reduction.kinds) + number, across)
            writer.add(f"if (y == 0u) {{ {array}[x] = {result}; }}", "workgroupBarrier();")
            writer.add(f"let four = group * {across // WIDTH}u + t;")
            vec4s = -(-self._outputs // WIDTH)
            writer.add(f"if (t < {across // WIDTH}u && four < {vec4s}u) {{")
            places = [f"min(four * {WIDTH}u + {component}u, {self._outputs - 1}u)" for component in range(WIDTH)]
            values = [f"{array}[t * {WIDTH}u + {component}u]" for component in range(WIDTH)]
            values = writer.stored(target, values, self._terms(target, places))
            writer.add(
                f"{writer.writes.name(target.buffer, target.element.vec4)}[four] = {target.element.pack(values)};", "}"
            )
