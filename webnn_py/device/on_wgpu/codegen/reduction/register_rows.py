"""Kernels that read their rows once, keep them in registers while they are reduced, and write them once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.entry_point import MAX_WORKGROUPS, WORKGROUP
from webnn_py.device.on_wgpu.codegen.reduction.combiners import folding, tree
from webnn_py.device.on_wgpu.codegen.reduction.operands import KernelOperand, StoreTarget
from webnn_py.device.on_wgpu.codegen.reduction.reduce import SEGMENT, power_of_two
from webnn_py.device.on_wgpu.codegen.reduction.rows import ReductionRows, VectorAxis, choose_vector, lies_across
from webnn_py.device.on_wgpu.codegen.reduction.workgroup import ReductionWorkgroup
from webnn_py.device.on_wgpu.codegen.reduction.writer import KernelWriter
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import Variant

KEPT: Final = {"along": 8, "across": 8, "none": 32}
"""How many units an invocation keeps at most: more values would not fit into registers."""

LOADS: Final = {"along": 4, "across": 4, "none": 8}
"""How many units an invocation should keep."""

BUSY_INVOCATIONS: Final = 2**16
"""With fewer invocations than this, each keeps fewer units."""

NARROWEST: Final = 4
"""Where rows lie side by side, at least the inverse of this part of a segment must be read at once."""

RegisterGrid = list[list[str]]
"""Variables with the elements that an invocation keeps: for each of its units, the one or the four of them."""


@attrs.frozen
class RegisterRowsPlan:
    """How rows are shared out.

    Attributes:
        vector: which way four neighbours lie that are read and written at once.
        workgroup: how its invocations share the work.
        loads: the units of a row that an invocation keeps.
    """

    vector: VectorAxis
    workgroup: ReductionWorkgroup
    loads: int

    @classmethod
    def of(cls, rows: ReductionRows, features: Features, *, packed: bool) -> RegisterRowsPlan | None:
        """Share out rows of a dense output, or None where they are too long or lie badly.

        Args:
            rows: the rows.
            features: what the adapter has.
            packed: whether elements can only be stored four at a time.
        """
        view = rows.view(Layout.dense(rows.shape))
        vector = choose_vector(view)
        if (packed and vector == "none") or not Variant.REGISTER_ROWS.is_on:
            return None
        outputs, units = rows.units(vector)
        side_by_side = lies_across(view)
        across = min(SEGMENT[vector] if side_by_side else 1, power_of_two(outputs))
        fewest = power_of_two(units / KEPT[vector])
        while across > 1 and fewest * across > features.max_invocations:
            across //= 2
        if fewest * across > features.max_invocations or (side_by_side and across * NARROWEST < SEGMENT[vector]):
            return None
        along = power_of_two(units / LOADS[vector])
        if outputs * along < BUSY_INVOCATIONS:
            along = power_of_two(min(units, BUSY_INVOCATIONS / outputs))
        if not side_by_side:
            along = max(along, min(SEGMENT[vector], power_of_two(units)))
        along = max(fewest, min(along, max(1, WORKGROUP // across)))
        workgroup = ReductionWorkgroup(max(across, WORKGROUP // along), along, not side_by_side)
        return cls(vector, workgroup, -(-units // along))


class RegisterRows:
    """A kernel of this kind while it is written."""

    def __init__(self, lowering: Lowering, label: str, rows: ReductionRows, plan: RegisterRowsPlan) -> None:
        self.writer = KernelWriter(lowering, label)
        self._rows = rows
        self._vector = plan.vector
        self._workgroup = plan.workgroup
        self._outputs, self._units_of_row = rows.units(plan.vector)
        writer, along = self.writer, plan.workgroup.along
        plan.workgroup.place(writer)
        writer.add(
            f"let place = group * {plan.workgroup.across}u + x;", f"let output = min(place, {self._outputs - 1}u);"
        )
        self._units = ["y", *(writer.let(f"y + {number * along}u", "unit") for number in range(1, plan.loads))]
        self._last_is_sure = self._units_of_row % along == 0
        if not self._last_is_sure:
            self._beyond = self._units[-1]
            self._units[-1] = writer.let(f"min({self._beyond}, {self._units_of_row - 1}u)", "unit")

    def read(self, source: KernelOperand) -> RegisterGrid:
        """Read what an operand has beside the rows; beyond their end, their last elements once more."""
        read = self.writer.reader(source, self._rows, self._vector)
        return [read("output", unit) for unit in self._units]

    def map(self, compute: Callable[..., str], *grids: RegisterGrid, zero_beyond: bool = False) -> RegisterGrid:
        """Compute something from each element.

        Args:
            compute: makes an expression from the number of the invocation's output and variables with the elements.
            grids: the elements.
            zero_beyond: whether the result beyond the end is to be 0.
        """
        result = []
        for number, units in enumerate(zip(*grids, strict=True)):
            values = [compute(self._set(component), *items) for component, items in enumerate(zip(*units, strict=True))]
            if zero_beyond and number == len(self._units) - 1 and not self._last_is_sure:
                inside = f"{self._beyond} < {self._units_of_row}u"
                values = [f"select(0.0, {value}, {inside})" for value in values]
            result.append([self.writer.let(value) for value in values])
        return result

    def combine(self, operator: str, grid: RegisterGrid) -> list[str]:
        """Combine whole rows by "+" or "max"; the results for each of the invocation's outputs."""
        sets = WIDTH if self._vector == "across" else 1
        values = [
            [item for unit in grid for item in (unit[component : component + 1] if sets > 1 else unit)]
            for component in range(sets)
        ]
        variables = [[self.writer.var(tree(operator, names))] for names in values]
        merge = folding("f32", operator, 0).merge
        self._workgroup.combine(self.writer, ["f32"], variables, merge, everywhere=True)
        return [name for names in variables for name in names]

    def let(self, expressions: Sequence[str]) -> list[str]:
        """Name what has been computed for each of the invocation's outputs."""
        return [self.writer.let(expression) for expression in expressions]

    def write(self, grid: RegisterGrid, target: StoreTarget) -> None:
        """Write the results and finish the kernel."""
        view = self._rows.view(Layout.dense(self._rows.shape))
        writer, across = self.writer, self._workgroup.across
        groups = -(-self._outputs // across)
        # Where one dimension has not enough workgroups for all, there are some too many.
        guarded = self._outputs % across != 0 or groups > MAX_WORKGROUPS
        beside = [self.read(term) for term in target.terms]
        for number, (unit, results) in enumerate(zip(self._units, grid, strict=True)):
            values = writer.stored(target, results, [units[number] for units in beside])
            conditions = [f"place < {self._outputs}u"] if guarded else []
            if number == len(self._units) - 1 and not self._last_is_sure:
                conditions.append(f"{self._beyond} < {self._units_of_row}u")
            if conditions:
                writer.add(f"if ({' && '.join(conditions)}) {{")
            writer.store(target, view, self._vector, "output", unit, values)
            if conditions:
                writer.add("}")
        writer.emit(self._workgroup.size, groups)

    def _set(self, component: int) -> int:
        return component if self._vector == "across" else 0
