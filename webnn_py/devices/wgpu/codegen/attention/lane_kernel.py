"""The attention kernel with subgroups, whose lanes share rows.

In the kernel, ``lane`` is the index of the lane among those that share rows; ``q{r}_{j}`` and ``c{r}_{j}`` are the
lane's j-th vec4 of the queries and sums of row r. Rows are numbered per lane, permuted by ``own``, so that a lane's
first rows are those whose scores it receives, and its last those whose partial scores it sends. For its own rows it has
the scores ``x``, the running maximum ``m``, the sum of powers ``l``, and in ``worst`` the bits of the score of the
largest magnitude, NaN included.
"""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.attention.kernel import (
    LOWEST,
    NAN_MARK,
    AttentionWriter,
    inverse,
    normalization_factor,
    rounded_if_large,
)
from webnn_py.devices.wgpu.codegen.attention.lanes import LaneAttention
from webnn_py.devices.wgpu.codegen.attention.operands import AttentionMatrix, AttentionOperands
from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import EpilogueCode
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH
from webnn_py.devices.wgpu.records.kernel import Kernel

SLACK = "4.0"
"""How far a score may exceed the subtracted maximum: powers are at most 55, and sums are rarely rescaled."""


class LaneWriter(AttentionWriter):
    """Writes the kernel."""

    def __init__(self, plan: LaneAttention, operands: AttentionOperands, end: EpilogueCode) -> None:
        super().__init__(operands, end, is_whole=plan.shape.keys % plan.keys == 0)
        self._plan = plan

    def kernel(self, label: str) -> Kernel:
        plan = self._plan
        parts = [
            *self._functions(),
            f"var<workgroup> brought: array<vec4<f32>, {plan.staged}>;",
            f"var<workgroup> totals: array<vec2<f32>, {plan.slices * plan.rows}>;",
        ]
        builtins = """@builtin(local_invocation_index) t: u32,
  @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) invocation: u32"""
        main, workgroups = workgroup_entry_point(plan.groups * plan.splits, plan.threads, self._body(), builtins)
        return self._end.kernel(label, self._bindings, parts, main, workgroups)

    # --- the body of the kernel ------------------------------------------------------------------------------

    def _body(self) -> list[str]:
        plan, shape = self._plan, self._plan.shape
        row_tiles = -(-shape.rows // plan.rows)
        each = -(-plan.steps // plan.splits)
        return [
            f"let batch = number / {row_tiles}u % {shape.batch}u;",
            f"let part = number / {row_tiles * shape.batch}u;",
            f"let lane = invocation % {plan.lanes}u;",
            f"let place = subgroup * (size / {plan.lanes}u) + invocation / {plan.lanes}u;",
            f"let slice = place / {plan.places}u;",
            f"let tile_row = place % {plan.places}u * {plan.each}u;",
            f"let first_row = number % {row_tiles}u * {plan.rows}u + tile_row;",
            f"let own = {self._own()};",
            *(f"let row_of{row} = first_row + ({row}u ^ own);" for row in range(plan.each)),
            *(f"let row{index} = {self._bounded(f'row_of{index}')};" for index in range(plan.own)),
            self._operands.queries.begin("q"),
            self._operands.keys.begin("k"),
            self._operands.values.begin("v"),
            *self._queries(),
            f"let end = min((part + 1u) * {each}u, {plan.steps}u);",
            *(f"var m{index} = {LOWEST};" for index in range(plan.own)),
            *(f"var l{index} = 0.0;" for index in range(plan.own)),
            *(f"var {name} = vec4<f32>();" for name in self._sums()),
            *(f"var worst{index} = 0u;" for index in range(plan.own)),
            *self._begin_tiles(each),
            f"for (var step = part * {each}u; step < end; step++) {{",
            f"  let first = step * {plan.keys}u;",
            *(f"  {line}" for line in ([] if plan.is_direct else self._stage())),
            f"  for (var of_slice = 0u; of_slice < {plan.keys // plan.slices}u; of_slice += {plan.at_once}u) {{",
            f"    let at = slice * {plan.keys // plan.slices}u + of_slice;",
            "    let key = first + at;",
            *(f"    {line}" for line in self._some_keys()),
            "  }",
            "}",
            *(f"let total{index} = {self._total(index)};" for index in range(plan.own)),
            *(self._store() if plan.slices == 1 else [*self._merge(), *self._store_merged()]),
        ]

    def _some_keys(self) -> list[str]:
        loads, terms = self._terms()
        return [*loads, *self._scores(), *self._masked(terms), *self._powers(), *self._add_values()]

    def _total(self, index: int) -> str:
        """Return the total of a row's powers; negative if a score is NaN."""
        return f"select(l{index}, {NAN_MARK}, worst{index} > 0x7f800000u)"

    def _bounded(self, row: str) -> str:
        shape = self._plan.shape
        return row if shape.rows % self._plan.rows == 0 else f"min({row}, {shape.rows - 1}u)"

    def _halvings(self) -> list[tuple[int, int]]:
        """Return, for each exchange, the distance of the lanes and the number of rows that a lane keeps."""
        steps, count, distance = [], self._plan.each, self._plan.lanes // 2
        while distance:
            count = count // 2 if count > 1 else 0
            steps.append((distance, count))
            count = max(count, 1)
            distance //= 2
        return steps

    def _own(self) -> str:
        """Return the permutation (XOR) of a lane's rows."""
        terms = [f"(lane / {distance}u % 2u) * {kept}u" for distance, kept in self._halvings() if kept]
        return " + ".join(terms) or "0u"

    def _of_owner(self, name: str, row: int) -> str:
        """Read a variable of the lane that owns the scores of a row."""
        distance = 0
        for step, kept in self._halvings():
            if kept and row >= kept:
                distance, row = distance + step, row - kept
        return f"subgroupShuffleXor({name}{row}, {distance}u)" if distance else f"{name}{row}"

    def _sums(self) -> list[str]:
        return [f"c{row}_{part}" for row in range(self._plan.each) for part in range(self._plan.each_columns)]

    def _queries(self) -> list[str]:
        plan, lines = self._plan, []
        for row in range(plan.each):
            place = self._operands.queries.row(self._bounded(f"row_of{row}"))
            lines.append(f"let q_place{row} = q_base + {place} + lane;")
            lines += [
                f"let q{row}_{part} = q_wide(q_at(q_place{row} + {part * plan.lanes}u));"
                for part in range(plan.each_depth)
            ]
        return lines

    # --- staging of tiles of keys and values in workgroup memory ----------------------------------------------

    def _sides(self) -> dict[str, tuple[int, AttentionMatrix, int]]:
        """Return, for keys and values by name: offset in workgroup memory, operand, and vec4s per row."""
        plan, operands = self._plan, self._operands
        return {"k": (0, operands.keys, plan.depth), "v": (plan.keys * plan.depth, operands.values, plan.columns)}

    def _items(self) -> list[str]:
        """Declare the indices of an invocation's vec4s of a tile, and their registers."""
        plan, lines = self._plan, []
        for name, (_, side, size) in self._sides().items():
            count = plan.keys * size
            for turn in range(-(-count // plan.threads)):
                lines.append(f"let {name}_item{turn} = min(t + {turn * plan.threads}u, {count - 1}u);")
                lines.append(f"var {name}_next{turn}: {side.element.vec4};")
        return lines

    def _load_tile(self, step: str) -> list[str]:
        """Load a tile of keys and values into registers."""
        plan, lines = self._plan, []
        for name, (_, side, size) in self._sides().items():
            for turn in range(-(-plan.keys * size // plan.threads)):
                item = f"{name}_item{turn}"
                row = f"{step} * {plan.keys}u + {item} / {size}u"
                bounded = row if self._is_whole else f"min({row}, {plan.shape.keys - 1}u)"
                place = f"{name}_base + {side.row(bounded)} + {item} % {size}u"
                lines.append(f"{name}_next{turn} = {name}_at({place});")
        return lines

    def _begin_tiles(self, each: int) -> list[str]:
        """Return the statements before the loop over the tiles of a part."""
        if self._plan.is_direct:
            return []
        if not self._plan.is_ahead:
            return self._items()
        first = f"part * {each}u"
        return [*self._items(), f"if ({first} < end) {{", *self._load_tile(f"({first})"), "}"]

    def _store_tile(self) -> list[str]:
        """Store the loaded tile in workgroup memory."""
        plan, lines = self._plan, []
        for name, (base, _, size) in self._sides().items():
            for turn in range(-(-plan.keys * size // plan.threads)):
                item, value = f"{name}_item{turn}", f"{name}_wide({name}_next{turn})"
                if name == "v" and not self._is_whole:
                    value = f"select(vec4<f32>(), {value}, first + {item} / {size}u < {plan.shape.keys}u)"
                lines.append(f"brought[{base}u + {item}] = {value};")
        return lines

    def _stage(self) -> list[str]:
        """Stage a tile of keys and values, and prefetch the next one if the plan says so."""
        begin = ["workgroupBarrier();", *self._store_tile(), "workgroupBarrier();"]
        if not self._plan.is_ahead:
            return [*self._load_tile("step"), *begin]
        return [*begin, "if (step + 1u < end) {", *self._load_tile("(step + 1u)"), "}"]

    # --- scores ----------------------------------------------------------------------------------------------

    def _scores(self) -> list[str]:
        """Compute ``x{row}_{key}``, the scores of some keys with the lane's own rows.

        All buffer loads come first, as drivers do not move them before shuffles.
        """
        plan, lines = self._plan, []
        if plan.is_direct:
            lines = [line for name in "kv" for key in range(plan.at_once) for line in self._fetch(name, key)]
        for key in range(plan.at_once):
            lines += self._read("k", key)
            for row in range(plan.each):
                total = ""
                for part in range(plan.each_depth):
                    for component in COMPONENTS:
                        factors = f"q{row}_{part}.{component}", f"k{key}_{part}.{component}"
                        total = f"fma({', '.join(factors)}, {total})" if total else " * ".join(factors)
                lines.append(f"let s{row}_{key} = {total};")
        return [*lines, *self._exchange()]

    def _fetch(self, name: str, key: int) -> list[str]:
        """Load the lane's vec4s of a key or value from its buffer."""
        plan, (_, side, size) = self._plan, self._sides()[name]
        row = f"key + {key}u" if self._is_whole else f"min(key + {key}u, {plan.shape.keys - 1}u)"
        lines = [f"let {name}_place{key} = {name}_base + {side.row(row)} + lane;"]
        lines += [
            f"let {name}_next{key}_{part} = {name}_at({name}_place{key} + {part * plan.lanes}u);"
            for part in range(size // plan.lanes)
        ]
        return lines

    def _read(self, name: str, key: int) -> list[str]:
        """Name the lane's vec4s of a key or value."""
        plan, lines = self._plan, []
        base, _, size = self._sides()[name]
        for part in range(size // plan.lanes):
            value = f"brought[{base}u + (at + {key}u) * {size}u + lane + {part * plan.lanes}u]"
            if plan.is_direct:
                value = f"{name}_wide({name}_next{key}_{part})"
                if name == "v" and not self._is_whole:
                    value = f"select(vec4<f32>(), {value}, key + {key}u < {plan.shape.keys}u)"
            lines.append(f"let {name}{key}_{part} = {value};")
        return lines

    def _exchange(self) -> list[str]:
        """Reduce the partial scores across lanes: in each exchange, a lane sends the rows that it does not keep."""
        lines = []
        names = [[f"s{row}_{key}" for row in range(self._plan.each)] for key in range(self._plan.at_once)]
        for level, (distance, kept) in enumerate(self._halvings()):
            for key, of_key in enumerate(names):
                sums = []
                for index, (name, other) in enumerate(zip(of_key[: kept or 1], of_key[kept:], strict=True)):
                    sums.append(f"e{level}_{index}_{key}")
                    lines.append(f"let {sums[-1]} = {name} + subgroupShuffleXor({other}, {distance}u);")
                names[key] = sums
        for key, of_key in enumerate(names):
            lines += [f"var x{index}_{key} = {name};" for index, name in enumerate(of_key)]
        return lines

    def _terms(self) -> tuple[list[str], list[list[list[str]]]]:
        """Return the loads of the score terms, and their values by own row, term and key."""
        lines: list[str] = []
        rows: list[list[list[str]]] = []
        for index in range(self._plan.own):
            rows.append([])
            for number, term in enumerate(self._operands.terms):
                if isinstance(term, str):
                    rows[-1].append([term] * self._plan.at_once)
                    continue
                array = self._bindings.name(term.buffer, term.kind)
                rows[-1].append([])
                for four in range(0, self._plan.at_once, WIDTH):
                    loads, values = term.loads(array, f"t{number}_{index}_{four}", f"row{index}", f"(key + {four}u)")
                    lines += loads
                    rows[-1][-1] += values
        return lines, rows

    def _masked(self, terms: list[list[list[str]]]) -> list[str]:
        """Apply the fused element-wise nodes to the scores."""
        lines = [
            line
            for index, of_row in enumerate(terms)
            for key in range(self._plan.at_once)
            for line in self._masked_one(f"x{index}_{key}", index, key, [values[key] for values in of_row])
        ]
        if self._operands.is_rounded:
            names = [f"x{index}_{key}" for index in range(self._plan.own) for key in range(self._plan.at_once)]
            lines += rounded_if_large(names, [f"worst{index}" for index in range(self._plan.own)])
        return lines

    def _powers(self) -> list[str]:
        """Exponentiate the scores relative to the maximum; if that has grown much, rescale the sums so far."""
        plan, lines = self._plan, []
        for index in range(plan.own):
            x = [f"x{index}_{key}" for key in range(plan.at_once)]
            while len(x) > 1:
                x = [f"max({one}, {other})" for one, other in zip(x[::2], x[1::2], strict=True)]
            lines.append(f"let n{index} = max(m{index}, {x[0]});")
        grown = " || ".join(f"n{index} > m{index} + {SLACK}" for index in range(plan.own))
        lines.append(f"if (subgroupAny({grown})) {{")
        for index in range(plan.own):
            lines += [
                f"  let scale{index} = power(m{index} - finite_or_zero(n{index}));",
                f"  l{index} *= scale{index};",
                f"  m{index} = n{index};",
            ]
        for row in range(plan.each):
            lines.append(f"  let scale_of{row} = {self._of_owner('scale', row)};")
            lines += [f"  c{row}_{part} *= scale_of{row};" for part in range(plan.each_columns)]
        lines.append("}")
        for index in range(plan.own):
            lines.append(f"let top{index} = finite_or_zero(m{index});")
            for key in range(plan.at_once):
                lines.append(f"let p{key}_{index} = power(x{index}_{key} - top{index});")
            lines.append(f"l{index} += {' + '.join(f'p{key}_{index}' for key in range(plan.at_once))};")
        return lines

    def _add_values(self) -> list[str]:
        plan, lines = self._plan, []
        for key in range(plan.at_once):
            lines += [f"let w{row}_{key} = {self._of_owner(f'p{key}_', row)};" for row in range(plan.each)]
        for key in range(plan.at_once):
            lines += self._read("v", key)
            for row in range(plan.each):
                for part in range(plan.each_columns):
                    total = f"c{row}_{part}"
                    lines.append(f"{total} = fma(vec4<f32>(w{row}_{key}), v{key}_{part}, {total});")
        return lines

    # --- the end ---------------------------------------------------------------------------------------------

    def _store(self) -> list[str]:
        plan, lines = self._plan, []
        is_final = not self._end.is_partial
        for index in range(plan.own):
            if is_final:
                lines += self._factor(f"m{index}", f"total{index}", f"row{index}", f"factor{index}")
            else:
                lines.append(self._store_totals(f"row_of{index}", f"m{index}", f"total{index}"))
        for row in range(plan.each):
            factor = ""
            if is_final:
                lines.append(f"let factor_of{row} = {self._of_owner('factor', row)};")
                factor = f" * factor_of{row}"
            for part in range(plan.each_columns):
                column = f"lane + {part * plan.lanes}u"
                lines.append(self._store_vec4(f"row_of{row}", column, f"c{row}_{part}{factor}"))
        return lines

    def _factor(self, highest: str, total: str, row: str, name: str) -> list[str]:
        """Name the factor by which the sums of a row are multiplied."""
        factor = normalization_factor(self._operands, self._bindings, row)
        return [
            f"var {name} = 0.0;",
            "{",
            f"let inverse = {inverse(highest, total)};",
            *factor,
            f"{name} = factor;",
            "}",
        ]

    def _store_totals(self, row: str, highest: str, total: str) -> str:
        shape = self._plan.shape
        place = f"part * {shape.batch * shape.rows}u + batch * {shape.rows}u + {row}"
        return f"if ({row} < {shape.rows}u) {{ totals_of[{place}] = vec2<f32>({highest}, {total}); }}"

    def _store_vec4(self, row: str, column: str, value: str) -> str:
        plan, shape = self._plan, self._plan.shape
        place = f"(batch * {shape.rows}u + {row}) * {plan.columns}u + {column}"
        if not self._end.is_partial:
            return f"if ({row} < {shape.rows}u) {{ finish({place}, {value}); }}"
        place = f"part * {shape.batch * shape.rows * plan.columns}u + {place}"
        return f"if ({row} < {shape.rows}u) {{ sums[{place}] = {value}; }}"

    # --- slices ----------------------------------------------------------------------------------------------

    def _merge(self) -> list[str]:
        """Store the slices' sums in workgroup memory."""
        plan = self._plan
        lines = ["workgroupBarrier();"]
        for index in range(plan.own):
            place = f"slice * {plan.rows}u + tile_row + ({index}u ^ own)"
            lines.append(f"totals[{place}] = vec2<f32>(m{index}, total{index});")
        for row in range(plan.each):
            place = f"(slice * {plan.rows}u + tile_row + ({row}u ^ own)) * {plan.columns}u + lane"
            lines += [f"brought[{place} + {part * plan.lanes}u] = c{row}_{part};" for part in range(plan.each_columns)]
        return [*lines, "workgroupBarrier();"]

    def _store_merged(self) -> list[str]:
        """Merge the slices, each rescaled to the overall maximum, and store the results."""
        plan = self._plan
        row_tiles = -(-plan.shape.rows // plan.rows)
        is_final = not self._end.is_partial
        lines = [
            f"for (var item = t; item < {plan.rows * plan.columns}u; item += {plan.threads}u) {{",
            f"let tile_place = item / {plan.columns}u;",
            f"let column = item % {plan.columns}u;",
            f"let row = number % {row_tiles}u * {plan.rows}u + tile_place;",
            "var highest = totals[tile_place].x;",
            f"for (var other = 1u; other < {plan.slices}u; other++) {{",
            f"  highest = max(highest, totals[other * {plan.rows}u + tile_place].x);",
            "}",
            "let top = finite_or_zero(highest);",
            "var total = 0.0;",
            "var sum = vec4<f32>();",
            f"for (var other = 0u; other < {plan.slices}u; other++) {{",
            f"  let of_slice = totals[other * {plan.rows}u + tile_place];",
            "  let scale = power(of_slice.x - top);",
            "  total += select(of_slice.y * scale, of_slice.y, of_slice.y < 0.0);",
            f"  sum += brought[other * {plan.rows * plan.columns}u + item] * scale;",
            "}",
        ]
        if is_final:
            lines += self._factor("highest", "total", self._bounded("row"), "factor_of_row")
            lines.append(self._store_vec4("row", "column", "sum * factor_of_row"))
        else:
            lines += ["if (column == 0u) {", self._store_totals("row", "highest", "total"), "}"]
            lines.append(self._store_vec4("row", "column", "sum"))
        return [*lines, "}"]
