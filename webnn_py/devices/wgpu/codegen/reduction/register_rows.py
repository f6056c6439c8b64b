"""Kernels that load rows once, keep them in registers while they reduce and transform them, and store them once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import MAX_WORKGROUPS, WORKGROUP, power_of_two
from webnn_py.devices.wgpu.codegen.reduction.combiners import fold, tree
from webnn_py.devices.wgpu.codegen.reduction.operands import KernelOperand, StoreTarget
from webnn_py.devices.wgpu.codegen.reduction.reduce import SEGMENT
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows, VectorAxis, choose_vector, is_interleaved
from webnn_py.devices.wgpu.codegen.reduction.workgroup import ReductionWorkgroup
from webnn_py.devices.wgpu.codegen.reduction.writer import KernelWriter
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant

KEPT: Final = {"along": 8, "across": 8, "none": 32}
"""The most units that an invocation keeps in registers."""

LOADS: Final = {"along": 4, "across": 4, "none": 8}
"""The preferred number of units of an invocation."""

BUSY_INVOCATIONS: Final = 2**16
"""The invocations below which each keeps fewer units."""

NARROWEST: Final = 4
"""The divisor of a segment that gives the least adjacent units to load at once, if rows are interleaved."""

RegisterGrid = list[list[str]]
"""The variables of the elements that an invocation keeps: for each of its units, one or four."""


@attrs.frozen
class RegisterTiling:
    """The distribution of rows among invocations.

    Attributes:
        vector: the axis of the vec4s that are loaded and stored.
        workgroup: the arrangement of a workgroup's invocations.
        loads: the units of a row that an invocation keeps.
    """

    vector: VectorAxis
    workgroup: ReductionWorkgroup
    loads: int

    @classmethod
    def for_rows(cls, rows: ReductionRows, features: Features, *, packed: bool) -> RegisterTiling | None:
        """Choose the distribution of the rows of a dense output; None if they are too long or too interleaved.

        Args:
            rows: the rows.
            features: the adapter's features and limits.
            packed: whether elements can only be stored four at a time.
        """
        view = rows.view(Layout.dense(rows.shape))
        vector = choose_vector(view)
        if (packed and vector == "none") or not KernelVariant.REGISTER_ROWS.is_on:
            return None
        outputs, units = rows.units(vector)
        interleaved = is_interleaved(view)
        across = min(SEGMENT[vector] if interleaved else 1, power_of_two(outputs))
        fewest = power_of_two(units / KEPT[vector])
        while across > 1 and fewest * across > features.max_invocations:
            across //= 2
        if fewest * across > features.max_invocations or (interleaved and across * NARROWEST < SEGMENT[vector]):
            return None
        along = power_of_two(units / LOADS[vector])
        if outputs * along < BUSY_INVOCATIONS:
            along = power_of_two(min(units, BUSY_INVOCATIONS / outputs))
        if not interleaved:
            along = max(along, min(SEGMENT[vector], power_of_two(units)))
        along = max(fewest, min(along, max(1, WORKGROUP // across)))
        workgroup = ReductionWorkgroup(max(across, WORKGROUP // along), along, not interleaved)
        return cls(vector, workgroup, -(-units // along))


class RegisterRows:
    """Writes such a kernel."""

    def __init__(self, lowering: Lowering, label: str, rows: ReductionRows, tiling: RegisterTiling) -> None:
        self.writer = KernelWriter(lowering, label)
        self._rows = rows
        self._vector = tiling.vector
        self._workgroup = tiling.workgroup
        self._outputs, self._units_of_row = rows.units(tiling.vector)
        writer, along = self.writer, tiling.workgroup.along
        tiling.workgroup.place(writer, self._outputs)
        self._units = ["y", *(writer.let(f"y + {number * along}u", "unit") for number in range(1, tiling.loads))]
        self._last_is_sure = self._units_of_row % along == 0
        if not self._last_is_sure:
            self._beyond = self._units[-1]
            self._units[-1] = writer.let(f"min({self._beyond}, {self._units_of_row - 1}u)", "unit")

    def read(self, source: KernelOperand) -> RegisterGrid:
        """Load the units of an operand; indices beyond the end of a row are clamped."""
        read = self.writer.reader(source, self._rows, self._vector)
        return [read("output", unit) for unit in self._units]

    def map(self, compute: Callable[..., str], *grids: RegisterGrid, zero_beyond: bool = False) -> RegisterGrid:
        """Apply a function to each element.

        Args:
            compute: (the index of the invocation's output, a variable of each grid) → an expression.
            grids: the elements.
            zero_beyond: whether results beyond the end of a row become 0.
        """
        result = []
        for number, units in enumerate(zip(*grids, strict=True)):
            components = enumerate(zip(*units, strict=True))
            values = [compute(index if self._vector == "across" else 0, *items) for index, items in components]
            if zero_beyond and number == len(self._units) - 1 and not self._last_is_sure:
                inside = f"{self._beyond} < {self._units_of_row}u"
                values = [f"select(0.0, {value}, {inside})" for value in values]
            result.append([self.writer.let(value) for value in values])
        return result

    def combine(self, operator: str, grid: RegisterGrid) -> list[str]:
        """Reduce whole rows by "+" or "max"; return the results for each of the invocation's outputs."""
        sets = WIDTH if self._vector == "across" else 1
        values = [
            [item for unit in grid for item in (unit[component : component + 1] if sets > 1 else unit)]
            for component in range(sets)
        ]
        variables = [[self.writer.var(tree(operator, names))] for names in values]
        merge = fold("f32", operator, 0).merge
        self._workgroup.combine(self.writer, ["f32"], variables, merge, everywhere=True)
        return [name for names in variables for name in names]

    def let(self, expressions: Sequence[str]) -> list[str]:
        """Name an expression for each of the invocation's outputs."""
        return [self.writer.let(expression) for expression in expressions]

    def write(self, grid: RegisterGrid, target: StoreTarget) -> None:
        """Store the results and emit the kernel."""
        view = self._rows.view(Layout.dense(self._rows.shape))
        writer, across = self.writer, self._workgroup.across
        groups = -(-self._outputs // across)
        # A dispatch of two dimensions may have excess workgroups.
        guarded = self._outputs % across != 0 or groups > MAX_WORKGROUPS
        terms = [self.read(term) for term in target.terms]
        for number, (unit, results) in enumerate(zip(self._units, grid, strict=True)):
            values = writer.stored(target, results, [units[number] for units in terms])
            conditions = [f"place < {self._outputs}u"] if guarded else []
            if number == len(self._units) - 1 and not self._last_is_sure:
                conditions.append(f"{self._beyond} < {self._units_of_row}u")
            if conditions:
                writer.add(f"if ({' && '.join(conditions)}) {{")
            writer.store(target, view, self._vector, "output", unit, values)
            if conditions:
                writer.add("}")
        writer.emit(self._workgroup.size, groups)
