"""The writer of all kernels over rows: softmax, normalizations, reductions and prefix sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from webnn_py.core.graph import Node
from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.codegen.entry_point import MAX_WORKGROUPS, grid
from webnn_py.devices.wgpu.codegen.module import Bindings, bound_kernel
from webnn_py.devices.wgpu.codegen.reduction.combiners import Merge, fold, tree
from webnn_py.devices.wgpu.codegen.reduction.operands import (
    KernelOperand,
    StoreTarget,
    SummedOperand,
    TensorOperand,
    label_of,
    read_or_fuse,
)
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows, RowsTiling, RowsView, VectorAxis
from webnn_py.devices.wgpu.records.element import WIDTH, Element
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering

ElementReader = Callable[[str, str], list[str]]
"""(the index of a row or of a vec4 of rows, that of an element or vec4 in the row) → the names of the elements."""

RegisterGrid = list[list[str]]
"""The variables of the elements that an invocation keeps: for each of its units, one or four."""

FIRST_FRESH: Final = 100
"""The first number of arrays that are used once."""


class RowsWriter:
    """The statements of a kernel over rows, which declare bindings and workgroup memory on first use.

    Attributes:
        rows: the rows.
        tiling: their distribution among invocations.
        outputs: the number of rows, in units of the tiling's vec4s.
        units: the elements or vec4s of a row.
        reads: the bindings of the operands.
        writes: the bindings of the targets.
    """

    def __init__(self, lowering: Lowering, label: str, rows: ReductionRows, tiling: RowsTiling) -> None:
        self.rows = rows
        self.tiling = tiling
        self.outputs, self.units = rows.units(tiling.vector)
        self.reads = Bindings("in")
        self.writes = Bindings("out")
        self._lowering = lowering
        self._label = label
        self._shared: dict[str, tuple[str, int]] = {}
        self._functions: dict[ElementwiseFunction, str] = {}
        self._names = 0
        self._lines: list[str] = []

    # --- statements ------------------------------------------------------------------------------------------

    def add(self, *lines: str) -> None:
        """Append statements."""
        self._lines.extend(lines)

    def let(self, expression: str, stem: str = "v") -> str:
        """Declare an immutable variable."""
        return self._declare("let", expression, stem)

    def var(self, expression: str, stem: str = "a") -> str:
        """Declare a mutable variable."""
        return self._declare("var", expression, stem)

    def _declare(self, how: str, expression: str, stem: str) -> str:
        self._names += 1
        self.add(f"{how} {stem}{self._names} = {expression};")
        return f"{stem}{self._names}"

    def place(self) -> None:
        """Name the invocation's coordinates, ``x`` across and ``y`` along, its ``place`` and clamped ``output``."""
        tiling = self.tiling
        fast, slow, width = ("y", "x", tiling.along) if tiling.along_first else ("x", "y", tiling.across)
        self.add(f"let {fast} = t % {width}u;", f"let {slow} = t / {width}u;")
        self.add(f"let place = group * {tiling.across}u + x;", f"let output = min(place, {self.outputs - 1}u);")

    def shared(self, kind: str, number: int, size: int) -> str:
        """Return the name of an array in workgroup memory; repeated calls share it and enlarge it as needed."""
        name = f"shared_{kind}_{number}"
        self._shared[name] = kind, max(size, self._shared.get(name, (kind, 0))[1])
        return name

    @property
    def groups(self) -> int:
        """The workgroups that the rows need, for each piece."""
        return -(-self.outputs // self.tiling.across)

    def emit(self) -> None:
        """Emit the kernel with at least as many workgroups as the rows and their pieces need.

        In the statements, ``group`` and ``depth`` are the indices of the workgroup, and ``t`` that of the invocation.
        """
        columns, rows, _ = grid(self.groups)
        parameters = "@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) t: u32"
        main = "\n  ".join(
            [
                f"@compute @workgroup_size({self.tiling.size})\nfn main({parameters}) {{",
                f"let group = group_id.x + group_id.y * {columns}u;" if rows > 1 else "let group = group_id.x;",
                "let depth = group_id.z;",
                *self._lines,
            ]
        )
        shared = [f"var<workgroup> {name}: array<{kind}, {size}>;" for name, (kind, size) in self._shared.items()]
        functions = [fused.function(name) for fused, name in self._functions.items()]
        parts = [*shared, *functions, f"{main}\n}}\n"]
        workgroups = columns, rows, self.tiling.pieces
        self._lowering.emit(bound_kernel(self._label, self.reads, self.writes, parts, workgroups))

    # --- loads and stores ------------------------------------------------------------------------------------

    def reader(self, source: KernelOperand, rows: ReductionRows, vector: VectorAxis) -> ElementReader:
        """Return the function that loads or computes the elements of units of an operand.

        Args:
            source: the operand.
            rows: its rows.
            vector: the axis of the vec4s, whatever the operand's layout.
        """
        if isinstance(source, TensorOperand):
            view = rows.view(source.layout)
            return lambda output, position: self._load(source, view, vector, output, position)
        if isinstance(source, str):
            return lambda _output, _position: [source] * (1 if vector == "none" else WIDTH)
        if isinstance(source, SummedOperand):
            parts = [self.reader(part, rows, vector) for part in source.parts]
            return lambda *at: self._add_up(source.element, [read(*at) for read in parts])
        readers = [self.reader(term, rows, vector) for term in source.terms]
        return lambda *at: self._call(source.fused, [read(*at) for read in readers])

    def read_flat(
        self, source: KernelOperand, shape: tuple[int, ...], vector: VectorAxis, places: Sequence[str]
    ) -> list[str]:
        """Load the elements or vec4s of an operand at these row-major indices."""
        read = self.reader(source, ReductionRows(shape, ()), vector)
        return [name for place in places for name in read(place, "0u")]

    def stored(self, target: StoreTarget, values: Sequence[str], terms: Sequence[Sequence[str]]) -> list[str]:
        """Return the values to store for computed elements, after the target's epilogue.

        Args:
            target: the target.
            values: expressions for the elements.
            terms: for each operand of the epilogue, the corresponding elements.
        """
        if target.epilogue is None:
            return list(values)
        narrowed = [self.let(target.epilogue.computed.narrow(value)) for value in values]
        return self._call(target.epilogue.fused, [narrowed, *terms])

    def _add_up(self, element: Element, parts: Sequence[Sequence[str]]) -> list[str]:
        """Add up the partial sums of each element."""
        return [self.let(element.narrow(" + ".join(items))) for items in zip(*parts, strict=True)]

    def _call(self, fused: ElementwiseFunction, columns: Sequence[Sequence[str]]) -> list[str]:
        """Apply fused nodes to each of some elements, given a column of elements for each parameter."""
        name = self._functions.setdefault(fused, f"chain{len(self._functions)}")
        return [self.let(f"{name}({', '.join(items)})") for items in zip(*columns, strict=True)]

    def _load(
        self, operand: TensorOperand, view: RowsView, vector: VectorAxis, output: str, position: str
    ) -> list[str]:
        """Load the elements of a unit: a single element, or a vec4 along ``vector``.

        Args:
            operand: the operand.
            view: its rows.
            vector: the axis of the vec4s, whatever the operand's layout.
            output: the index of the row, or of a vec4 of rows.
            position: the index of the element or vec4 in its row.
        """
        element = operand.element
        if vector == "none" or view.is_one(vector):
            places = [output, position]
            if vector != "none":
                places[vector == "along"] = f"({places[vector == 'along']} * {WIDTH}u)"
            load = element.load(self.reads.name(operand.buffer, element.one), view.index(*places))
            return [self.let(load)] * (1 if vector == "none" else WIDTH)
        vec4s = view.vec4s(vector)
        if vec4s is not None:
            buffer = self.reads.name(operand.buffer, element.vec4)
            vec4 = self.let(f"{buffer}[{vec4s.index(output, position)}]", "four")
            names = [self.let(value) for value in element.unpack(vec4)]
            return names[::-1] if vec4s.backwards else names
        buffer = self.reads.name(operand.buffer, element.one)
        places_of_vec4 = self._places_of_vec4(vector, output, position)
        return [self.let(element.load(buffer, view.index(*place))) for place in places_of_vec4]

    def _places_of_vec4(self, vector: VectorAxis, output: str, position: str) -> list[tuple[str, str]]:
        if vector == "along":
            return [(output, self.let(f"{position} * {WIDTH}u + {component}u", "at")) for component in range(WIDTH)]
        return [(self.let(f"{output} * {WIDTH}u + {component}u", "at"), position) for component in range(WIDTH)]

    def store(self, target: StoreTarget, view: RowsView, output: str, position: str, values: Sequence[str]) -> None:
        """Store a unit: a single element, or a whole vec4 along the tiling's axis."""
        vec4s = view.vec4s(self.tiling.vector)
        if vec4s is not None:
            values = values[::-1] if vec4s.backwards else values
        self.store_at(target, (view if vec4s is None else vec4s).index(output, position), values)

    def store_at(self, target: StoreTarget, place: str, values: Sequence[str]) -> None:
        """Store one element, or the four of a vec4, in this place of the target's buffer."""
        element = target.element
        if len(values) == 1:
            value = f"f16({values[0]})" if element.one == "f16" else values[0]
            self.add(f"{self.writes.name(target.buffer, element.one)}[{place}] = {value};")
        else:
            self.add(f"{self.writes.name(target.buffer, element.vec4)}[{place}] = {element.pack(list(values))};")

    # --- across the workgroup --------------------------------------------------------------------------------

    def combine(self, kinds: Sequence[str], sets: Sequence[Sequence[str]], merge: Merge, *, everywhere: bool) -> None:
        """Merge the accumulators of the invocations that share outputs.

        Args:
            kinds: the types of the accumulators of an output.
            sets: for each output of an invocation, its accumulators.
            merge: merges those of two invocations; commutative.
            everywhere: whether all these invocations need the result, not only the one whose ``y`` is 0.
        """
        along = self.tiling.along
        reach = min(along, self._shuffled(kinds))
        for step in range(reach.bit_length() - 1):
            for variables in sets:
                self._shuffle(variables, merge, 1 << step)
        if reach == along:
            return
        if reach > 1:
            self._combine_groups(kinds, sets, merge, reach)
        else:
            self._combine_in_memory(kinds, sets, merge, everywhere=everywhere)

    def _shuffled(self, kinds: Sequence[str]) -> int:
        """Return how many adjacent invocations can exchange values of these types by subgroup shuffles."""
        features = self._lowering.features
        usable = features.subgroups and self.tiling.along_first and not {"i64", "u64"} & set(kinds)
        return features.least_subgroup if usable else 1

    def _shuffle(self, variables: Sequence[str], merge: Merge, distance: int) -> None:
        others = [self.let(f"subgroupShuffleXor({variable}, {distance}u)", "other") for variable in variables]
        self.add(*merge(variables, others))

    def _combine_groups(self, kinds: Sequence[str], sets: Sequence[Sequence[str]], merge: Merge, width: int) -> None:
        """Merge groups of ``width`` invocations, which each hold one result, so that all invocations get the total."""
        groups = self.tiling.along // width
        size = self.tiling.across * groups * len(sets)
        arrays = [self.shared(kind, len(self._shared) + FIRST_FRESH, size) for kind in kinds]  # need no barrier
        base = self.let(f"x * {groups * len(sets)}u", "base")
        self.add(f"if (y % {width}u == 0u) {{")
        mine = self.let(f"{base} + y / {width}u * {len(sets)}u", "mine")
        for number, variables in enumerate(sets):
            self.add(*_store(arrays, f"{mine} + {number}u", variables))
        self.add("}", "workgroupBarrier();")
        shuffled = groups <= width
        first = self.let(f"{base} + y % {groups}u * {len(sets)}u", "first") if shuffled else base
        for number, variables in enumerate(sets):
            self.add(*_fetch(arrays, f"{first} + {number}u", variables))
            if shuffled:
                for step in range(groups.bit_length() - 1):
                    self._shuffle(variables, merge, 1 << step)
                continue
            others = [f"{array}[{base} + group * {len(sets)}u + {number}u]" for array in arrays]
            self.add(f"for (var group = 1u; group < {groups}u; group++) {{", *merge(variables, others), "}")

    def _combine_in_memory(
        self, kinds: Sequence[str], sets: Sequence[Sequence[str]], merge: Merge, *, everywhere: bool
    ) -> None:
        """Reduce through workgroup memory, halving the number of invocations in each step."""
        size, along = self.tiling.size, self.tiling.along
        if any(f"shared_{kind}_{number}" in self._shared for number, kind in enumerate(kinds)):
            self.add("workgroupBarrier();")  # invocations may still be reading the arrays
        arrays = [self.shared(kind, number, size * len(sets)) for number, kind in enumerate(kinds)]
        for number, variables in enumerate(sets):
            self.add(*_store(arrays, f"t + {number * size}u", variables))
        self.add("workgroupBarrier();")
        stride = 1 if self.tiling.along_first else self.tiling.across
        half = along // 2
        while half:
            self.add(f"if (y < {half}u) {{")
            for number, variables in enumerate(sets):
                place = f"t + {number * size + half * stride}u"
                self.add(*merge(variables, [f"{array}[{place}]" for array in arrays]))
                if half > 1 or everywhere:
                    self.add(*_store(arrays, f"t + {number * size}u", variables))
            self.add("}")
            half //= 2
            if half or everywhere:
                self.add("workgroupBarrier();")
        if everywhere:
            first = f"x * {along}u" if self.tiling.along_first else "x"
            for number, variables in enumerate(sets):
                self.add(*_fetch(arrays, f"{first} + {number * size}u", variables))

    def scan(self, kind: str, value: str) -> tuple[str, str]:
        """Scan a value across the invocations that share outputs, through workgroup memory.

        Returns:
            Variables with the exclusive prefix sum, and with the total. Workgroup memory must not be reused before a
            barrier.
        """
        along = self.tiling.along
        if along == 1:
            return self.let(f"{kind}(0)"), value
        array = self.shared(kind, 0, self.tiling.size)
        running = self.var(value)
        for step in range(along.bit_length() - 1):
            self.add(f"{array}[t] = {running};", "workgroupBarrier();")
            self.add(f"if (y >= {1 << step}u) {{ {running} = {running} + {array}[t - {1 << step}u]; }}")
            self.add("workgroupBarrier();")
        self.add(f"{array}[t] = {running};", "workgroupBarrier();")
        before = self.var(f"{kind}(0)", "before")
        self.add(f"if (y > 0u) {{ {before} = {array}[t - 1u]; }}")
        return before, self.let(f"{array}[x * {along}u + {along - 1}u]", "total")


class RegisterRows(RowsWriter):
    """A kernel that loads rows once, keeps them in registers while it combines and maps them, and stores them once."""

    def __init__(self, lowering: Lowering, label: str, rows: ReductionRows, tiling: RowsTiling) -> None:
        super().__init__(lowering, label, rows, tiling)
        self.place()
        self._kept = ["y", *(self.let(f"y + {load * tiling.along}u", "unit") for load in range(1, tiling.loads))]
        self._last = ""  # a condition for the last of these units, if it may be beyond the end
        if self.units % tiling.along:
            self._last = f"{self._kept[-1]} < {self.units}u"
            self._kept[-1] = self.let(f"min({self._kept[-1]}, {self.units - 1}u)", "unit")

    @classmethod
    def of_node(
        cls, node: Node, lowering: Lowering, rows: ReductionRows, target: StoreTarget, parameters: int = 0
    ) -> tuple[RegisterRows, RegisterGrid] | None:
        """Return the writer of a node's kernel, and the elements of its input; None if rows are too long to be kept.

        Args:
            node: the node; the element-wise nodes that compute its input are fused.
            lowering: the lowering.
            rows: the rows of its input, and of the target.
            target: the output.
            parameters: the buffers that the kernel binds besides the input, the target and its epilogue.
        """
        tiling = RowsTiling.of_registers(rows, lowering.features, packed=target.element.per_one > 1)
        if tiling is None:
            return None
        spare = lowering.features.max_storage_buffers - 1 - parameters - target.epilogue_buffers
        source = read_or_fuse(lowering, node.value("input"), spare)
        kernel = cls(lowering, label_of(node, source, target), rows, tiling)
        return kernel, kernel.read(source)

    def read(self, source: KernelOperand) -> RegisterGrid:
        """Load the units of an operand; indices beyond the end of a row are clamped."""
        read = self.reader(source, self.rows, self.tiling.vector)
        return [read("output", unit) for unit in self._kept]

    def map(self, compute: Callable[..., str], *grids: RegisterGrid, zero_beyond: bool = False) -> RegisterGrid:
        """Apply a function to each element.

        Args:
            compute: (the index of the invocation's output, a variable of each grid) → an expression.
            grids: the elements.
            zero_beyond: whether results beyond the end of a row become 0.
        """
        result = []
        for number, units in enumerate(zip(*grids, strict=True), 1):
            components = enumerate(zip(*units, strict=True))
            values = [compute(index if self.tiling.vector == "across" else 0, *items) for index, items in components]
            if zero_beyond and self._last and number == len(self._kept):
                values = [f"select(0.0, {value}, {self._last})" for value in values]
            result.append(self.let_each(values))
        return result

    def let_each(self, expressions: Iterable[str]) -> list[str]:
        """Declare an immutable variable for each expression."""
        return [self.let(expression) for expression in expressions]

    def combine_rows(self, operator: str, grid: RegisterGrid) -> list[str]:
        """Reduce whole rows by "+" or "max"; return the results for each of the invocation's outputs."""
        is_across = self.tiling.vector == "across"
        values = list(zip(*grid, strict=True)) if is_across else [tuple(item for unit in grid for item in unit)]
        totals = [tree(operator, names) for names in values]
        merge = fold("f32", operator, 0).merge
        variables = [self.var(total) for total in totals]
        self.combine(["f32"], [[variable] for variable in variables], merge, everywhere=True)
        return variables

    def write(self, grid: RegisterGrid, target: StoreTarget) -> None:
        """Store the results and emit the kernel."""
        view = self.rows.view(Layout.dense(self.rows.shape))
        # A dispatch of two dimensions may have excess workgroups.
        guarded = self.outputs % self.tiling.across != 0 or self.groups > MAX_WORKGROUPS
        terms = [] if target.epilogue is None else [self.read(term) for term in target.epilogue.terms]
        for number, (unit, results) in enumerate(zip(self._kept, grid, strict=True)):
            values = self.stored(target, results, [units[number] for units in terms])
            conditions = [f"place < {self.outputs}u"] if guarded else []
            if self._last and number == len(self._kept) - 1:
                conditions.append(self._last)
            if conditions:
                self.add(f"if ({' && '.join(conditions)}) {{")
            self.store(target, view, "output", unit, values)
            if conditions:
                self.add("}")
        self.emit()


def _store(arrays: Sequence[str], place: str, variables: Sequence[str]) -> list[str]:
    return [f"{array}[{place}] = {variable};" for array, variable in zip(arrays, variables, strict=True)]


def _fetch(arrays: Sequence[str], place: str, variables: Sequence[str]) -> list[str]:
    return [f"{variable} = {array}[{place}];" for array, variable in zip(arrays, variables, strict=True)]
