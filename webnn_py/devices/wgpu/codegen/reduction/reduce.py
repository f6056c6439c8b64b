"""Reductions: one kernel if there are enough outputs, otherwise two, the first of which reduces pieces of rows.

Sums are accumulated in many short chains, of at most a few hundred elements, which are then added in a tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from webnn_py.devices.wgpu.codegen.reduction.combiners import Combiner, Item
from webnn_py.devices.wgpu.codegen.reduction.operands import FusedOperand, StoreTarget, TensorOperand
from webnn_py.devices.wgpu.codegen.reduction.rows import UNROLLED, ReductionRows, RowsTiling, VectorAxis
from webnn_py.devices.wgpu.codegen.reduction.writer import RowsWriter
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering


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
    tiling = RowsTiling.of_loop(rows, rows.view(operands[0].layout), packed=packed)
    if tiling.pieces == 1:
        LoopedRows(lowering, label, operands, rows, reduction, tiling).reduce_to(targets)
        return
    shape = (tiling.pieces, rows.outputs)
    partial = [StoreTarget.between(lowering, kind, tiling.pieces * rows.outputs) for kind in reduction.kinds]
    LoopedRows(lowering, f"{label} (pieces)", operands, rows, reduction.without_finish(), tiling).reduce_to(partial)
    results = [target.operand(Layout.dense(shape)) for target in partial]
    emit_reduction(lowering, label, results, ReductionRows(shape, (0,)), reduction.of_partial_results(), targets)


class LoopedRows(RowsWriter):
    """A kernel that reduces pieces of rows in a loop; its results have the layout [pieces, outputs]."""

    def __init__(
        self,
        lowering: Lowering,
        label: str,
        operands: Sequence[TensorOperand | FusedOperand],
        rows: ReductionRows,
        reduction: Combiner,
        tiling: RowsTiling,
    ) -> None:
        super().__init__(lowering, label, rows, tiling)
        self.place()
        self._readers = [self.reader(operand, rows, tiling.vector) for operand in operands]
        self._reduction = reduction
        sets = WIDTH if tiling.vector == "across" else 1
        self._sets = [[self.var(start) for start in reduction.start] for _ in range(sets)]

    def reduce_to(self, targets: Sequence[StoreTarget]) -> None:
        """Write the kernel, and emit it."""
        self._absorb_all()
        self.combine(self._reduction.kinds, self._sets, self._reduction.merge, everywhere=False)
        self._store_results([self._reduction.finish(variables) for variables in self._sets], targets)
        self.emit()

    # --- reading ---------------------------------------------------------------------------------------------

    def _absorb_all(self) -> None:
        tiling, units = self.tiling, self.units
        stride, unrolled = tiling.along, UNROLLED[tiling.vector]
        if tiling.pieces == 1 and tiling.loads <= 2 * unrolled:
            self.add("let unit = y;")
            self._absorb_rest(tiling.loads, f"{units}u", sure=units // stride)
            return
        if tiling.pieces == 1:
            self.add("var unit = y;")
            end = f"{units}u"
        else:
            self.add(f"var unit = depth * {tiling.length}u + y;")
            end = self.let(f"min((depth + 1u) * {tiling.length}u, {units}u)", "end")
        self.add(f"for (; unit + {(unrolled - 1) * stride}u < {end}; unit += {unrolled * stride}u) {{")
        self._absorb([self._load_unit(self._unit(number)) for number in range(unrolled)])
        self.add("}")
        if units % (unrolled * stride) or (tiling.pieces > 1 and tiling.length % (unrolled * stride)):
            self._absorb_rest(unrolled - 1, end, sure=0)

    def _absorb_rest(self, loads: int, end: str, sure: int) -> None:
        """Absorb up to ``loads`` units, of which only the first ``sure`` are known to be in bounds; load all first."""
        units = [self._unit(number) for number in range(loads)]
        loaded = [
            self._load_unit(unit if number < sure else self.let(f"min({unit}, {end} - 1u)", "unit"))
            for number, unit in enumerate(units)
        ]
        self._absorb(loaded[:sure])
        for unit, load in zip(units[sure:], loaded[sure:], strict=True):
            self.add(f"if ({unit} < {end}) {{")
            self._absorb([load])
            self.add("}")

    def _unit(self, number: int) -> str:
        return self.let(f"unit + {number * self.tiling.along}u", "unit") if number else "unit"

    def _load_unit(self, unit: str) -> tuple[list[Item], list[str]]:
        """Return the elements of a unit, and their indices in the row."""
        columns = [read("output", unit) for read in self._readers]
        if self.tiling.vector == "along":
            positions = [f"({unit} * {WIDTH}u + {component}u)" for component in range(WIDTH)]
        else:
            positions = [unit] * len(columns[0])
        return list(zip(*columns, strict=True)), positions

    def _absorb(self, loaded: Sequence[tuple[list[Item], list[str]]]) -> None:
        if not loaded:
            return
        for number, variables in enumerate(self._sets):
            own = slice(number, number + 1) if self.tiling.vector == "across" else slice(None)
            items = [item for units, _ in loaded for item in units[own]]
            positions = [position for _, units in loaded for position in units[own]]
            self.add(*self._reduction.absorb(variables, items, positions))

    # --- writing ---------------------------------------------------------------------------------------------

    def _store_results(self, results: Sequence[Sequence[str]], targets: Sequence[StoreTarget]) -> None:
        if self.tiling.vector != "across" and any(target.element.per_one > 1 for target in targets):
            self._store_packed(results[0], targets)
            return
        self.add(f"if (y == 0u && place < {self.outputs}u) {{")
        at = f"depth * {self.outputs}u + place" if self.tiling.pieces > 1 else "place"
        for number, target in enumerate(targets):
            values = [result[number] for result in results]
            self.store_at(target, at, self.stored(target, values, self._terms(target, ["place"])))
        self.add("}")

    def _terms(self, target: StoreTarget, places: Sequence[str]) -> list[list[str]]:
        """Load the elements of the epilogue's operands for these outputs, or vec4s of outputs."""
        if target.epilogue is None:
            return []
        vector: VectorAxis = "across" if self.tiling.vector == "across" else "none"
        shape = target.epilogue.fused.result.descriptor.shape
        return [self.read_flat(term, shape, vector, places) for term in target.epilogue.terms]

    def _store_packed(self, results: Sequence[str], targets: Sequence[StoreTarget]) -> None:
        """Pass the workgroup's outputs to invocations that pack four each, with indices clamped to the last output."""
        across = self.tiling.across
        for number, (result, target) in enumerate(zip(results, targets, strict=True)):
            kind = (target.element if target.epilogue is None else target.epilogue.computed).compute
            array = self.shared(kind, len(self._reduction.kinds) + number, across)
            self.add(f"if (y == 0u) {{ {array}[x] = {result}; }}", "workgroupBarrier();")
            self.add(f"let four = group * {across // WIDTH}u + t;")
            vec4s = -(-self.outputs // WIDTH)
            self.add(f"if (t < {across // WIDTH}u && four < {vec4s}u) {{")
            places = [f"min(four * {WIDTH}u + {component}u, {self.outputs - 1}u)" for component in range(WIDTH)]
            values = [f"{array}[t * {WIDTH}u + {component}u]" for component in range(WIDTH)]
            self.store_at(target, "four", self.stored(target, values, self._terms(target, places)))
            self.add("}")
