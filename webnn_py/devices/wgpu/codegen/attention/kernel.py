"""The attention kernel without subgroups: an online softmax over tiles of keys.

The scores of a tile are in registers; their powers pass through workgroup memory to the second product. When a later
tile has a higher score, the sums so far are scaled down. All sums are float32.

In the kernel, ``a`` and ``b`` are the coordinates of an invocation, across and down; ``s{r}_{k}`` is the score of row r
and key k, ``m{r}`` the running maximum, ``l{r}`` the sum of the powers of the invocation's keys, ``c{r}_{g}`` the sums
of row r and the vec4 g of columns; and ``worst{r}`` the bits of the score of the largest magnitude, NaN included.
"""

from __future__ import annotations

from collections.abc import Sequence

from webnn_py.devices.wgpu.codegen.attention.operands import AttentionOperands, ScoreTerm
from webnn_py.devices.wgpu.codegen.attention.tile import TiledAttention
from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import EpilogueCode
from webnn_py.devices.wgpu.codegen.module import Bindings
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH, literal
from webnn_py.devices.wgpu.records.kernel import Kernel

LOWEST = "lowest()"

LOWEST_FUNCTION = f"fn lowest() -> f32 {{ return {literal(-float('inf'), 'f32')}; }}"

NAN_MARK = "-1e30"
"""The total of powers that stands for NaN; other totals are never negative."""

POWER = """fn power(x: f32) -> f32 { return select(0.0, exp2(x * 1.442695), x > -87.0); }
fn finite_or_zero(x: f32) -> f32 { return select(x, 0.0, bitcast<u32>(x) == 0xff800000u); }"""

ROUNDED = """fn rounded(x: f32) -> f32 {
  if (abs(x) < 2048.0) { return x; }
  return unpack2x16float(half_bits(x)).x;
}"""
"""Float16 masks are its lowest number: in rows that are fully masked, rounding makes all scores equal."""

LEAST_ROUNDED = "0x45000000u"
"""The bits of 2048: smaller scores are not rounded."""


def rounded_if_large(names: Sequence[str], worst: Sequence[str]) -> list[str]:
    """Return statements that round float16 scores if any is large, which is rare.

    Args:
        names: the scores.
        worst: the bits of the largest magnitudes.
    """
    highest = worst[0]
    for other in worst[1:]:
        highest = f"max({highest}, {other})"
    return [f"if ({highest} >= {LEAST_ROUNDED}) {{", *(f"  {name} = rounded({name});" for name in names), "}"]


class AttentionWriter:
    """The common part of the writers of attention kernels.

    Args:
        operands: the operands.
        end: the epilogue; or, for a part of the keys, the buffers of the sums, and of maximum scores and totals.
        is_whole: whether the tiles divide the keys.
    """

    def __init__(self, operands: AttentionOperands, end: EpilogueCode, *, is_whole: bool) -> None:
        self._operands = operands
        self._end = end
        self._bindings = Bindings("r")
        self._is_whole = is_whole

    def _functions(self) -> list[str]:
        """Return the functions that load queries, keys and values, and those that compute scores."""
        operands = self._operands
        functions = []
        for name, side in {"q": operands.queries, "k": operands.keys, "v": operands.values}.items():
            array, kind = self._bindings.name(side.buffer, side.element.vec4), side.element.vec4
            functions.append(f"fn {name}_at(i: u32) -> {kind} {{ return {array}[i]; }}")
            values = ", ".join(side.element.unpack("x"))
            functions.append(f"fn {name}_wide(x: {kind}) -> vec4<f32> {{ return vec4<f32>({values}); }}")
        functions += [] if operands.fused is None else [operands.fused.function("masked")]
        return [*functions, *([ROUNDED] if operands.is_rounded else []), POWER, LOWEST_FUNCTION]

    def _masked_one(self, name: str, row: int, key: int, terms: list[str]) -> list[str]:
        """Apply the fused nodes to a score; scores beyond the last key become -∞."""
        lines = []
        if self._operands.fused is not None:
            lines.append(f"{name} = masked({', '.join([name, *terms])});")
        if not self._is_whole:
            lines.append(f"{name} = select({LOWEST}, {name}, key + {key}u < {self._operands.shape.keys}u);")
        return [*lines, f"worst{row} = max(worst{row}, bitcast<u32>({name}) & 0x7fffffffu);"]


class TileWriter(AttentionWriter):
    """Writes the kernel without subgroups."""

    def __init__(self, plan: TiledAttention, operands: AttentionOperands, end: EpilogueCode) -> None:
        super().__init__(operands, end, is_whole=plan.shape.keys % plan.tile.keys == 0)
        self._plan = plan
        self._tile = plan.tile

    def kernel(self, label: str) -> Kernel:
        plan, tile = self._plan, self._tile
        parts = [
            *self._functions(),
            f"var<workgroup> queries: array<vec4<f32>, {tile.rows * plan.row}>;",
            f"var<workgroup> brought: array<vec4<f32>, {plan.staged}>;",
            f"var<workgroup> powers: array<vec4<f32>, {tile.rows * plan.power_row}>;",
            f"var<workgroup> shared_of: array<f32, {tile.rows * tile.across}>;",
        ]
        main, workgroups = workgroup_entry_point(plan.groups * plan.splits, tile.threads, self._body())
        return self._end.kernel(label, self._bindings, parts, main, workgroups)

    # --- the body of the kernel ------------------------------------------------------------------------------

    def _body(self) -> list[str]:
        plan, tile, shape = self._plan, self._tile, self._plan.shape
        row_tiles = -(-shape.rows // tile.rows)
        each = -(-plan.steps // plan.splits)
        lines = [
            f"let first_row = number % {row_tiles}u * {tile.rows}u;",
            f"let batch = number / {row_tiles}u % {shape.batch}u;",
            f"let part = number / {row_tiles * shape.batch}u;",
            f"let a = t % {tile.across}u;",
            f"let b = t / {tile.across}u;",
            f"let column0 = a % {plan.column_threads}u;",
            f"let slice = a / {plan.column_threads}u;",
            *(f"let row{row} = {self._row(row)};" for row in range(tile.each)),
            self._operands.queries.begin("q"),
            self._operands.keys.begin("k"),
            self._operands.values.begin("v"),
            *self._stage_queries(),
            f"let end = min((part + 1u) * {each}u, {plan.steps}u);",
            *(f"var m{row} = {LOWEST};" for row in range(tile.each)),
            *(f"var l{row} = 0.0;" for row in range(tile.each)),
            *(f"var {name} = vec4<f32>();" for name in self._sums()),
            *(f"var worst{row} = 0u;" for row in range(tile.each)),
            f"for (var step = part * {each}u; step < end; step++) {{",
            *(f"  {line}" for line in self._step()),
            "}",
        ]
        return [*lines, *self._add_up(), *self._add_slices(), *self._store()]

    def _row(self, row: int) -> str:
        """Return the index of an invocation's row, clamped to the last row."""
        number = f"first_row + b + {row * self._tile.down}u"
        shape = self._plan.shape
        return number if shape.rows % self._tile.rows == 0 else f"min({number}, {shape.rows - 1}u)"

    def _sums(self) -> list[str]:
        return [f"c{row}_{group}" for row in range(self._tile.each) for group in range(self._plan.each_columns)]

    def _stage_queries(self) -> list[str]:
        plan, tile = self._plan, self._tile
        count = tile.rows * plan.depth
        row = f"min(first_row + item / {plan.depth}u, {plan.shape.rows - 1}u)"
        place = f"q_base + {self._operands.queries.row(row)} + item % {plan.depth}u"
        return [
            f"for (var item = t; item < {count}u; item += {tile.threads}u) {{",
            f"  queries[item / {plan.depth}u * {plan.row}u + item % {plan.depth}u] = q_wide(q_at({place}));",
            "}",
        ]

    def _step(self) -> list[str]:
        """Return the statements for a tile of keys."""
        begin, stage_values = ["workgroupBarrier();"], []
        if not self._tile.is_direct:
            begin = [
                *self._load_tile("k", self._plan.depth),
                "workgroupBarrier();",
                *self._stage_tile("k", self._plan.depth),
                "workgroupBarrier();",
                *self._load_tile("v", self._plan.columns),
            ]
            stage_values = self._stage_tile("v", self._plan.columns)
        return [
            f"let first = step * {self._tile.keys}u;",
            "let key = first + a * 4u;",
            *begin,
            *self._products(),
            *self._masked(),
            *self._highest(),
            *self._powers(),
            *stage_values,
            "workgroupBarrier();",
            *self._add_values(),
        ]

    # --- staging of keys and values in workgroup memory ------------------------------------------------------

    def _load_tile(self, name: str, size: int) -> list[str]:
        """Load a tile, whose rows have ``size`` vec4s, into the registers of all invocations."""
        tile, lines = self._tile, []
        side = self._operands.keys if name == "k" else self._operands.values
        for turn in range(-(-tile.keys * size // tile.threads)):
            item = f"{name}_item{turn}"
            lines.append(f"let {item} = t + {turn * tile.threads}u;")
            row = f"first + {item} / {size}u"
            row = row if self._is_whole else f"min({row}, {self._plan.shape.keys - 1}u)"
            lines.append(f"let {name}_next{turn} = {name}_at({name}_base + {side.row(row)} + {item} % {size}u);")
        return lines

    def _stage_tile(self, name: str, size: int) -> list[str]:
        """Store the loaded tile in workgroup memory; keys are interleaved to avoid bank conflicts."""
        tile, lines = self._tile, []
        count = tile.keys * size
        for turn in range(-(-count // tile.threads)):
            item, value = f"{name}_item{turn}", f"{name}_wide({name}_next{turn})"
            row = f"{item} / {size}u"
            if name == "k":
                place = f"({row} % 4u * {tile.across}u + {row} / 4u) * {self._plan.row}u + {item} % {size}u"
            else:
                place = item
                if not self._is_whole:
                    value = f"select(vec4<f32>(), {value}, first + {row} < {self._plan.shape.keys}u)"
            line = f"brought[{place}] = {value};"
            lines.append(line if (turn + 1) * tile.threads <= count else f"if ({item} < {count}u) {{ {line} }}")
        return lines

    # --- scores ----------------------------------------------------------------------------------------------

    def _products(self) -> list[str]:
        plan, tile = self._plan, self._tile
        lines = [f"var s{row}_{key} = 0.0;" for row in range(tile.each) for key in range(WIDTH)]
        if tile.is_direct:
            keys = self._operands.keys
            for key in range(WIDTH):
                place = f"key + {key}u" if self._is_whole else f"min(key + {key}u, {plan.shape.keys - 1}u)"
                lines.append(f"let k_row{key} = k_base + {keys.row(place)};")
        lines.append(f"for (var d = 0u; d < {plan.depth}u; d++) {{")
        for key in range(WIDTH):
            place = f"brought[(a + {key * tile.across}u) * {plan.row}u + d]"
            lines.append(f"  let k{key} = {f'k_wide(k_at(k_row{key} + d))' if tile.is_direct else place};")
        for number in range(tile.each):
            lines.append(f"  let q{number} = queries[(b + {number * tile.down}u) * {plan.row}u + d];")
            for key in range(WIDTH):
                total = f"s{number}_{key}"
                for component in COMPONENTS:
                    total = f"fma(q{number}.{component}, k{key}.{component}, {total})"
                lines.append(f"  s{number}_{key} = {total};")
        return [*lines, "}"]

    def _masked(self) -> list[str]:
        """Apply the fused element-wise nodes to the scores."""
        lines: list[str] = []
        shared: dict[int, list[str]] = {}
        for index, term in enumerate(self._operands.terms):
            if isinstance(term, str):
                shared[index] = [term] * WIDTH
            elif term.rows.is_single:  # all rows of a batch share the same elements
                loads, shared[index] = term.loads(self._bindings.name(term.buffer, term.kind), f"x{index}", "0u")
                lines += loads
        for row in range(self._tile.each):
            terms = []
            for index, term in enumerate(self._operands.terms):
                if index not in shared and isinstance(term, ScoreTerm):
                    loads, values = term.loads(
                        self._bindings.name(term.buffer, term.kind), f"x{index}_{row}", f"row{row}"
                    )
                    lines += loads
                    terms.append(values)
                else:
                    terms.append(shared[index])
            for key in range(WIDTH):
                lines += self._masked_one(f"s{row}_{key}", row, key, [values[key] for values in terms])
        if self._operands.is_rounded:
            names = [f"s{row}_{key}" for row in range(self._tile.each) for key in range(WIDTH)]
            lines += rounded_if_large(names, [f"worst{row}" for row in range(self._tile.each)])
        return lines

    def _highest(self) -> list[str]:
        """Compute ``n{r}``, the new running maximum of each row."""
        tile = self._tile
        lines = []
        for row in range(tile.each):
            s = [f"s{row}_{key}" for key in range(WIDTH)]
            place = f"(b + {row * tile.down}u) * {tile.across}u"
            lines.append(f"shared_of[{place} + a] = max(max({s[0]}, {s[1]}), max({s[2]}, {s[3]}));")
        lines.append("workgroupBarrier();")
        lines += [f"var n{row} = m{row};" for row in range(tile.each)]
        if tile.across <= 16:
            for row in range(tile.each):
                place = f"(b + {row * tile.down}u) * {tile.across}u"
                lines += [f"n{row} = max(n{row}, shared_of[{place} + {lane}u]);" for lane in range(tile.across)]
            return lines
        lines.append(f"for (var lane = 0u; lane < {tile.across}u; lane++) {{")
        for row in range(tile.each):
            lines.append(f"  n{row} = max(n{row}, shared_of[(b + {row * tile.down}u) * {tile.across}u + lane]);")
        return [*lines, "}"]

    def _powers(self) -> list[str]:
        """Exponentiate the scores relative to the maximum, to which the sums so far are rescaled."""
        plan, tile = self._plan, self._tile
        lines = []
        for row in range(tile.each):
            powers = ", ".join(f"power(s{row}_{key} - top{row})" for key in range(WIDTH))
            lines += [
                f"let top{row} = finite_or_zero(n{row});",
                f"let scale{row} = power(m{row} - top{row});",
                f"let p{row} = vec4<f32>({powers});",
                f"m{row} = n{row};",
                f"l{row} = l{row} * scale{row} + (p{row}.x + p{row}.y + p{row}.z + p{row}.w);",
                f"powers[(b + {row * tile.down}u) * {plan.power_row}u + a] = p{row};",
                *(f"c{row}_{group} *= scale{row};" for group in range(plan.each_columns)),
            ]
        return lines

    # --- values ----------------------------------------------------------------------------------------------

    def _column(self, group: int) -> str:
        """Return the index of an invocation's vec4 of columns, clamped to the last."""
        plan = self._plan
        column = f"column0 + {group * plan.column_threads}u"
        is_whole = plan.column_threads * plan.each_columns == plan.columns
        return column if is_whole else f"min({column}, {plan.columns - 1}u)"

    def _add_values(self) -> list[str]:
        plan, tile = self._plan, self._tile
        each = tile.across // plan.slices
        lines = [f"for (var j = slice * {each}u; j < slice * {each}u + {each}u; j++) {{"]
        for key in range(WIDTH):
            number = f"j * 4u + {key}u"
            if tile.is_direct:
                place = f"first + {number}"
                place = place if self._is_whole else f"min({place}, {plan.shape.keys - 1}u)"
                lines.append(f"  let v_row{key} = v_base + {self._operands.values.row(place)};")
            for group in range(plan.each_columns):
                value = f"brought[({number}) * {plan.columns}u + {self._column(group)}]"
                if tile.is_direct:
                    value = f"v_wide(v_at(v_row{key} + {self._column(group)}))"
                    if not self._is_whole:
                        value = f"select(vec4<f32>(), {value}, first + {number} < {plan.shape.keys}u)"
                lines.append(f"  let v{key}_{group} = {value};")
        for row in range(tile.each):
            lines.append(f"  let w{row} = powers[(b + {row * tile.down}u) * {plan.power_row}u + j];")
            for group in range(plan.each_columns):
                total = f"c{row}_{group}"
                for key, component in enumerate(COMPONENTS):
                    total = f"fma(vec4<f32>(w{row}.{component}), v{key}_{group}, {total})"
                lines.append(f"  c{row}_{group} = {total};")
        return [*lines, "}"]

    # --- the end ---------------------------------------------------------------------------------------------

    def _add_up(self) -> list[str]:
        """Reduce ``total{r}``, the sum of the powers of a row; negative if a score is NaN."""
        tile = self._tile
        lines = ["workgroupBarrier();"]
        for row in range(tile.each):
            own = f"select(l{row}, {NAN_MARK}, worst{row} > 0x7f800000u)"
            lines.append(f"shared_of[(b + {row * tile.down}u) * {tile.across}u + a] = {own};")
        lines.append("workgroupBarrier();")
        lines += [f"var total{row} = 0.0;" for row in range(tile.each)]
        lines.append(f"for (var lane = 0u; lane < {tile.across}u; lane++) {{")
        for row in range(tile.each):
            lines.append(f"  total{row} += shared_of[(b + {row * tile.down}u) * {tile.across}u + lane];")
        return [*lines, "}"]

    def _add_slices(self) -> list[str]:
        """Reduce the sums of a workgroup's slices into the first slice."""
        plan, tile = self._plan, self._tile
        if plan.slices == 1:
            return []
        lines = []
        sums = self._sums()
        at_once = max(1, plan.staged // tile.threads)
        for first in range(0, len(sums), at_once):
            some = sums[first : first + at_once]
            lines.append("workgroupBarrier();")
            lines += [f"brought[{index * tile.threads}u + t] = {name};" for index, name in enumerate(some)]
            lines += ["workgroupBarrier();", "if (slice == 0u) {"]
            lines.append(f"  for (var other = 1u; other < {plan.slices}u; other++) {{")
            for index, name in enumerate(some):
                place = f"{index * tile.threads}u + t + other * {plan.column_threads}u"
                lines.append(f"    {name} += brought[{place}];")
            lines += ["  }", "}"]
        return lines

    def _store(self) -> list[str]:
        plan, tile, shape = self._plan, self._tile, self._plan.shape
        lines = []
        for row in range(tile.each):
            checks = [] if shape.rows % tile.rows == 0 else [f"first_row + b + {row * tile.down}u < {shape.rows}u"]
            checks += ["slice == 0u"] if plan.slices > 1 else []
            lines.append(f"if ({' && '.join(checks) or 'true'}) {{")
            number = f"(batch * {shape.rows}u + row{row})"
            if self._end.is_partial:
                number = f"(part * {shape.batch * shape.rows}u + {number[1:]}"
                lines.append(f"  if (a == 0u) {{ totals_of[{number}] = vec2<f32>(m{row}, total{row}); }}")
            else:
                lines.append(f"let inverse = {inverse(f'm{row}', f'total{row}')};")
                lines += normalization_factor(self._operands, self._bindings, f"row{row}")
            for group in range(plan.each_columns):
                column = f"column0 + {group * plan.column_threads}u"
                place, total = f"{number} * {plan.columns}u + {column}", f"c{row}_{group}"
                line = f"sums[{place}] = {total};" if self._end.is_partial else f"finish({place}, {total} * factor);"
                is_in_bounds = (group + 1) * plan.column_threads <= plan.columns
                lines.append(f"  {line}" if is_in_bounds else f"  if ({column} < {plan.columns}u) {{ {line} }}")
            lines.append("}")
        return lines


def inverse(highest: str, total: str) -> str:
    """Return the inverse of a total; NaN if a score is NaN, the maximum is infinite, or all scores are -∞."""
    is_nan = f"(bitcast<u32>({highest}) & 0x7fffffffu) >= 0x7f800000u || {total} < 0.0"
    return f"bitcast<f32>(select(bitcast<u32>(1.0 / {total}), 0x7fc00000u, {is_nan}))"


def normalization_factor(operands: AttentionOperands, bindings: Bindings, row: str) -> list[str]:
    """Return statements that name ``factor``: the ``inverse``, or zero in rows that the graph sets to zero."""
    if operands.is_never_nan:
        return ["let factor = select(inverse, 0.0, (bitcast<u32>(inverse) & 0x7fffffffu) > 0x7f800000u);"]
    dead = operands.dead
    if dead is None:
        return ["let factor = inverse;"]
    loads, values = dead.loads(bindings.name(dead.buffer, dead.kind), "is_dead", row)
    return [*loads, f"let factor = select(inverse, 0.0, {values[0]} != {literal(0, dead.element.compute)});"]
