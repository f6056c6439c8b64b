"""The attention kernel: an online softmax over tiles of keys, for some rows and a part of the keys.

Lanes share rows, and groups of lanes may have other slices of each tile's keys. In the kernel, ``lane`` is the index of
a lane in its group; ``q{r}_{j}`` and ``c{r}_{j}`` are its j-th vec4 of the queries and sums of row r. Rows are numbered
as :class:`.Lanes` says. For its own rows a lane has the scores ``x``, the running maximum ``m``, the sum of powers
``l``, and in ``worst`` the bits of the score of the largest magnitude, NaN included. When a later score is higher, the
sums so far are scaled down. All sums are float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from webnn_py.devices.wgpu.codegen.attention.lanes import Lanes
from webnn_py.devices.wgpu.codegen.attention.operands import AttentionMatrix, AttentionOperands
from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import EpilogueCode
from webnn_py.devices.wgpu.codegen.module import Bindings
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH, literal
from webnn_py.devices.wgpu.records.kernel import Kernel

LOWEST = "lowest()"

NAN_MARK = "-1e30"
"""The total of powers that stands for NaN; other totals are never negative."""

SLACK = "4.0"
"""How far a score may exceed the subtracted maximum: powers are at most 55, and sums are rarely rescaled."""

MERGED_AT_ONCE = 16
"""The most slices or parts whose sums an invocation loads at once."""

POWER = f"""fn power(x: f32) -> f32 {{ return select(0.0, exp2(x * 1.442695), x > -87.0); }}
fn finite_or_zero(x: f32) -> f32 {{ return select(x, 0.0, bitcast<u32>(x) == 0xff800000u); }}
fn lowest() -> f32 {{ return {literal(-float("inf"), "f32")}; }}"""

ROUNDED = """fn rounded(x: f32) -> f32 {
  if (abs(x) < 2048.0) { return x; }
  return unpack2x16float(half_bits(x)).x;
}"""
"""Float16 masks are its lowest number: in rows that are fully masked, rounding makes all scores equal."""

LEAST_ROUNDED = "0x45000000u"
"""The bits of 2048: smaller scores are not rounded."""


class AttentionWriter:
    """Writes the kernel.

    Args:
        operands: the operands, and the tile of a workgroup.
        end: the epilogue; or, for a part of the keys, the buffers of the sums, and of maximum scores and totals.
    """

    def __init__(self, operands: AttentionOperands, end: EpilogueCode) -> None:
        self._tile = operands.tile
        self._lanes = Lanes(operands.tile)
        self._operands = operands
        self._end = attrs.evolve(end, writes=[*operands.writes, *end.writes])
        self._bindings = Bindings("r")
        self._bound = operands.bound

    def kernel(self, label: str) -> Kernel:
        """Return the kernel."""
        tile, operands, body = self._tile, self._operands, self._body()
        parts = [
            *self._functions(),
            f"var<workgroup> brought: array<vec4<f32>, {tile.staged}>;",
            *([f"var<workgroup> totals: array<vec2<f32>, {tile.slices * tile.rows}>;"] if tile.slices > 1 else []),
            *self._lanes.memory,
        ]
        main, workgroups = workgroup_entry_point(tile.groups * tile.splits, tile.threads, body, self._lanes.builtins)
        return self._end.kernel(label, [*operands.reads, *self._bindings], parts, main, workgroups)

    def _functions(self) -> list[str]:
        operands = self._operands
        matrices = {"q": operands.queries, "k": operands.keys, "v": operands.values}
        loads = [
            line for name, side in matrices.items() if side is not None for line in side.functions(name, self._bindings)
        ]
        ends = [] if self._end.is_partial else operands.end_functions(self._bindings)
        rounded = [ROUNDED] if operands.is_rounded else []
        return [*loads, *operands.range_functions(), *operands.score_functions(self._bindings), *rounded, *ends, POWER]

    def _body(self) -> list[str]:
        tile, shape, own = self._tile, self._tile.shape, range(self._tile.own)
        return [
            f"let block = number % {tile.blocks}u;",
            f"let batch = number / {tile.blocks}u % {shape.batch}u;",
            f"let part = number / {tile.groups}u;",
            *self._lanes.begin(),
            f"let slice = place / {tile.places}u;",
            f"let tile_row = place % {tile.places}u * {tile.each}u;",
            f"let first_row = block * {tile.rows}u + tile_row;",
            *(f"let row_of{row} = first_row + ({row}u ^ own);" for row in range(tile.each)),
            *(f"let row{index} = {self._bounded_row(f'row_of{index}')};" for index in own),
            self._operands.keys.begin("k"),
            self._operands.values.begin("v"),
            *self._operands.begin(),
            *self._queries(),
            *(f"var m{index} = {LOWEST};" for index in own),
            *(f"var l{index} = 0.0;" for index in own),
            *(f"var {name} = vec4<f32>();" for row in range(tile.each) for name in self._sums(row)),
            *(f"var worst{index} = 0u;" for index in own),
            *self._begin_tiles(),
            f"for (var first = start; first < end; first += {tile.keys}u) {{",
            *(f"  {line}" for line in self._stage()),
            f"  for (var of_slice = 0u; of_slice < {tile.keys // tile.slices}u; of_slice += {tile.at_once}u) {{",
            f"    let at = slice * {tile.keys // tile.slices}u + of_slice;",
            "    let key = first + at;",
            *(f"    {line}" for line in self._some_keys()),
            "  }",
            "}",
            *(f"let total{index} = select(l{index}, {NAN_MARK}, worst{index} > 0x7f800000u);" for index in own),
            *(self._store() if tile.slices == 1 else [*self._put_slices(), *self._store_merged()]),
        ]

    def _some_keys(self) -> list[str]:
        """Return the statements for the keys that a lane computes at once.

        All loads from buffers come first, as drivers do not move them before shuffles.
        """
        tile = self._tile
        loads, terms = self._terms()
        if tile.is_direct:
            loads += [line for name in "kv" for key in range(tile.at_once) for line in self._fetch(name, key)]
        return [*loads, *self._scores(), *self._masked(terms), *self._powers(), *self._add_values()]

    def _bounded_row(self, row: str) -> str:
        shape = self._tile.shape
        return row if shape.rows % self._tile.rows == 0 else f"min({row}, {shape.rows - 1}u)"

    def _bounded_key(self, key: str) -> str:
        return f"min({key}, {self._bound} - 1u)" if self._bound else key

    def _sums(self, row: int) -> list[str]:
        return [f"c{row}_{part}" for part in range(self._tile.each_columns)]

    def _parts(self, size: int) -> list[tuple[str, str]]:
        """Return, for each of a lane's vec4s of a row, its place, and the condition by which the row has it."""
        lanes, parts = self._tile.lanes, []
        for part in range(-(-size // lanes)):
            place = f"lane + {part * lanes}u" if part else "lane"
            is_in_row = f"{place} < {size}u" if (part + 1) * lanes > size else ""
            parts.append((f"min({place}, {size - 1}u)" if is_in_row else place, is_in_row))
        return parts

    def _queries(self) -> list[str]:
        tile, side = self._tile, self._operands.queries
        lines = [] if side is None else [side.begin("q")]
        for row in range(tile.each):
            number = self._bounded_row(f"row_of{row}")
            start = f"{number} * {tile.depth}u" if side is None else f"q_base + {side.row(number)}"
            load = f"brought[q_place{row} + {{}}]" if side is None else f"q_wide(q_at(q_place{row} + {{}}))"
            lines.append(f"let q_place{row} = {start};")
            for part, (place, is_in_row) in enumerate(self._parts(tile.depth)):
                lines.append(f"let q{row}_{part} = {_or_zero(load.format(place), is_in_row)};")
        return lines

    # --- staging of tiles of keys and values in workgroup memory ----------------------------------------------

    def _sides(self) -> dict[str, tuple[int, AttentionMatrix, int]]:
        """Return, for keys and values by name: offset in workgroup memory, operand, and vec4s per row."""
        tile, operands = self._tile, self._operands
        return {"k": (0, operands.keys, tile.depth), "v": (tile.keys * tile.depth, operands.values, tile.columns)}

    def _begin_tiles(self) -> list[str]:
        """Declare the indices and registers of an invocation's vec4s of a tile, and prefetch the first tile."""
        tile, lines = self._tile, []
        if tile.is_direct:
            return []
        for name, (_, side, size) in self._sides().items():
            count = tile.keys * size
            for turn in range(-(-count // tile.threads)):
                lines.append(f"let {name}_item{turn} = min(t + {turn * tile.threads}u, {count - 1}u);")
                lines.append(f"var {name}_next{turn}: {side.element.vec4};")
        return [*lines, "if (start < end) {", *self._load_tile("start"), "}"] if tile.is_ahead else lines

    def _load_tile(self, first: str) -> list[str]:
        """Load a tile of keys and values into registers."""
        tile, lines = self._tile, []
        for name, (_, side, size) in self._sides().items():
            for turn in range(-(-tile.keys * size // tile.threads)):
                item = f"{name}_item{turn}"
                row = self._bounded_key(f"{first} + {item} / {size}u")
                lines.append(f"{name}_next{turn} = {name}_at({name}_base + {side.row(row)} + {item} % {size}u);")
        return lines

    def _stage(self) -> list[str]:
        """Store a tile of keys and values in workgroup memory, and prefetch the next one if the tile says so."""
        tile, lines = self._tile, []
        if tile.is_direct:
            return []
        for name, (base, _, size) in self._sides().items():
            for turn in range(-(-tile.keys * size // tile.threads)):
                item, value = f"{name}_item{turn}", f"{name}_wide({name}_next{turn})"
                if name == "v" and self._bound:
                    value = _or_zero(value, f"first + {item} / {size}u < {self._bound}")
                lines.append(f"brought[{base}u + {item}] = {value};")
        begin = ["workgroupBarrier();", *lines, "workgroupBarrier();"]
        if not tile.is_ahead:
            return [*self._load_tile("first"), *begin]
        following = f"first + {tile.keys}u"
        return [*begin, f"if ({following} < end) {{", *self._load_tile(following), "}"]

    # --- scores ----------------------------------------------------------------------------------------------

    def _fetch(self, name: str, key: int) -> list[str]:
        """Load the lane's vec4s of a key or value from its buffer."""
        _, side, size = self._sides()[name]
        lines = [f"let {name}_place{key} = {name}_base + {side.row(self._bounded_key(f'key + {key}u'))};"]
        for part, (place, _) in enumerate(self._parts(size)):
            lines.append(f"let {name}_next{key}_{part} = {name}_at({name}_place{key} + {place});")
        return lines

    def _read(self, name: str, key: int) -> list[str]:
        """Name the lane's vec4s of a key or value."""
        lines = []
        base, _, size = self._sides()[name]
        for part, (place, is_in_row) in enumerate(self._parts(size)):
            value = f"brought[{base}u + (at + {key}u) * {size}u + {place}]"
            if self._tile.is_direct:
                value = f"{name}_wide({name}_next{key}_{part})"
                if name == "v" and self._bound:
                    value = _or_zero(value, f"key + {key}u < {self._bound}")
            lines.append(f"let {name}{key}_{part} = {_or_zero(value, is_in_row)};")
        return lines

    def _scores(self) -> list[str]:
        """Compute ``x{row}_{key}``, the scores of some keys with the lane's own rows."""
        tile, lines = self._tile, []
        names = [[f"s{row}_{key}" for row in range(tile.each)] for key in range(tile.at_once)]
        for key, of_key in enumerate(names):
            lines += self._read("k", key)
            for row, name in enumerate(of_key):
                total = ""
                for part in range(tile.each_depth):
                    for component in COMPONENTS:
                        factors = f"q{row}_{part}.{component}", f"k{key}_{part}.{component}"
                        total = f"fma({', '.join(factors)}, {total})" if total else " * ".join(factors)
                lines.append(f"let {name} = {total};")
        return [*lines, *self._lanes.add_up(names)]

    def _terms(self) -> tuple[list[str], list[list[list[str]]]]:
        """Return the loads of the other terms of scores, and their values by own row and key."""
        lines: list[str] = []
        rows: list[list[list[str]]] = []
        for index in range(self._tile.own):
            rows.append([])
            for four in range(0, self._tile.at_once, WIDTH):
                loads, values = self._operands.terms(
                    self._bindings, f"t{index}_{four}", f"row{index}", f"(key + {four}u)"
                )
                lines += loads
                rows[-1] += values
        return lines, rows

    def _masked(self, terms: list[list[list[str]]]) -> list[str]:
        """Mask the scores; those of keys that are not there become -∞."""
        lines = []
        for index, of_row in enumerate(terms):
            for key, values in enumerate(of_row):
                name = f"x{index}_{key}"
                score = self._operands.score(name, f"row{index}", f"key + {key}u", values)
                score = f"select({LOWEST}, {score}, key + {key}u < {self._bound})" if self._bound else score
                lines += [f"{name} = {score};"] if score != name else []
                lines.append(f"worst{index} = max(worst{index}, bitcast<u32>({name}) & 0x7fffffffu);")
        if self._operands.is_rounded:  # if any is large, which is rare
            worst = _highest([f"worst{index}" for index in range(self._tile.own)])
            names = [f"x{index}_{key}" for index in range(self._tile.own) for key in range(self._tile.at_once)]
            rounded = [f"  {name} = rounded({name});" for name in names]
            lines += [f"if ({worst} >= {LEAST_ROUNDED}) {{", *rounded, "}"]
        return lines

    def _powers(self) -> list[str]:
        """Exponentiate the scores relative to the maximum, as ``w{key}_{row}`` of all rows.

        If that has grown much, the sums so far are rescaled; where lanes exchange through memory, always.
        """
        tile, own, keys = self._tile, range(self._tile.own), range(self._tile.at_once)
        lines, rescale, powers = [], [], []
        for index in own:
            highest = _highest([f"x{index}_{key}" for key in keys])
            lines.append(f"let n{index} = max(m{index}, {highest});")
            rescale += [
                f"let scale{index} = power(m{index} - finite_or_zero(n{index}));",
                f"l{index} *= scale{index};",
                f"m{index} = n{index};",
            ]
            powers.append(f"let top{index} = finite_or_zero(m{index});")
            powers += [f"let p{key}_{index} = power(x{index}_{key} - top{index});" for key in keys]
            powers.append(f"l{index} += {' + '.join(f'p{key}_{index}' for key in keys)};")
        sums = [f"{name} *= scale_of{row};" for row in range(tile.each) for name in self._sums(row)]
        scales, weights = {"scale_of": "scale"}, {f"w{key}_": f"p{key}_" for key in keys}
        if tile.exchanged:
            lines += [*rescale, *powers, *self._lanes.of_all_rows(weights | scales), *sums]
        else:
            grown = " || ".join(f"n{index} > m{index} + {SLACK}" for index in own)
            grown = f"subgroupAny({grown})" if tile.shuffles else grown
            lines += [f"if ({grown}) {{", *rescale, *self._lanes.of_all_rows(scales), *sums, "}"]
            lines += [*powers, *self._lanes.of_all_rows(weights)]
        return lines

    def _add_values(self) -> list[str]:
        """Add up values by the powers of their keys."""
        lines = []
        for key in range(self._tile.at_once):
            lines += self._read("v", key)
            for row in range(self._tile.each):
                for part, total in enumerate(self._sums(row)):
                    lines.append(f"{total} = fma(vec4<f32>(w{key}_{row}), v{key}_{part}, {total});")
        return lines

    # --- the end ---------------------------------------------------------------------------------------------

    def _store(self) -> list[str]:
        """Store the results, or the sums that are merged with those of other parts."""
        tile, lines = self._tile, []
        for index in range(tile.own):
            lines += self._factor(f"row_of{index}", f"row{index}", f"m{index}", f"total{index}", f"factor{index}")
        if not self._end.is_partial:
            lines += [*self._lanes.fence, *self._lanes.of_all_rows({"factor_of": "factor"})]
        for row in range(tile.each):
            for (place, is_in_row), total in zip(self._parts(tile.columns), self._sums(row), strict=True):
                value = total if self._end.is_partial else f"{total} * factor_of{row}"
                lines.append(self._store_vec4(f"row_of{row}", place, value, is_in_row))
        return lines

    def _factor(self, row: str, bounded: str, highest: str, total: str, name: str) -> list[str]:
        """Name the factor by which the sums of a row are multiplied; of a part, store its maximum and total instead."""
        shape = self._tile.shape
        if self._end.is_partial:
            place = f"(part * {shape.batch}u + batch) * {shape.rows}u + {row}"
            return [f"if ({row} < {shape.rows}u) {{ totals_of[{place}] = vec2<f32>({highest}, {total}); }}"]
        factor = self._operands.factor(self._bindings, bounded, highest, total)
        return [f"var {name} = 0.0;", "{", *factor, f"{name} = factor;", "}"]

    def _store_vec4(self, row: str, column: str, value: str, is_in_row: str = "") -> str:
        tile, shape = self._tile, self._tile.shape
        place = f"(batch * {shape.rows}u + {row}) * {tile.columns}u + {column}"
        store = f"finish({place}, {value});"
        if self._end.is_partial:
            store = f"sums[part * {shape.batch * shape.rows * tile.columns}u + {place}] = {value};"
        return f"if ({row} < {shape.rows}u{f' && {is_in_row}' if is_in_row else ''}) {{ {store} }}"

    # --- slices ----------------------------------------------------------------------------------------------

    def _put_slices(self) -> list[str]:
        """Store the slices' sums in workgroup memory."""
        tile = self._tile
        lines = ["workgroupBarrier();"]
        for row in range(tile.each):
            lines.append(f"let slice_row{row} = slice * {tile.rows}u + tile_row + ({row}u ^ own);")
            for (column, is_in_row), total in zip(self._parts(tile.columns), self._sums(row), strict=True):
                line = f"brought[slice_row{row} * {tile.columns}u + {column}] = {total};"
                lines.append(f"if ({is_in_row}) {{ {line} }}" if is_in_row else line)
        lines += [f"totals[slice_row{index}] = vec2<f32>(m{index}, total{index});" for index in range(tile.own)]
        return [*lines, "workgroupBarrier();"]

    def _store_merged(self) -> list[str]:
        """Merge the slices, and store the results."""
        tile = self._tile
        of_slice = f"totals[{{}} * {tile.rows}u + tile_place]"
        sums = f"brought[{{}} * {tile.rows * tile.columns}u + item]"
        bounded = self._bounded_row("row")
        factor = self._factor("row", bounded, "highest", "total", "factor_of_row")
        if self._end.is_partial:
            factor = ["if (column == 0u) {", *factor, "}"]
        value = "sum" if self._end.is_partial else "sum * factor_of_row"
        return [
            f"for (var item = t; item < {tile.rows * tile.columns}u; item += {tile.threads}u) {{",
            f"let tile_place = item / {tile.columns}u;",
            f"let column = item % {tile.columns}u;",
            f"let row = block * {tile.rows}u + tile_place;",
            *merged(of_slice, sums, f"{tile.slices}u", tile.slices),
            *factor,
            self._store_vec4("row", "column", value),
            "}",
        ]


def merged(totals: str, sums: str, count: str, most: int) -> list[str]:
    """Return statements that merge sums, each relative to its own maximum: into ``highest``, ``total`` and ``sum``.

    Args:
        totals: the place of the maximum and the total of number {}.
        sums: the place of its sum.
        count: how many there are.
        most: the most that there may be.
    """
    at_once = min(most, MERGED_AT_ONCE)
    lines = [
        f"var highest = {LOWEST};",
        "var total = 0.0;",
        "var sum = vec4<f32>();",
        f"for (var next = 0u; next < {-(-most // at_once) * at_once}u; next += {at_once}u) {{",
        *([f"  if (next >= {count}) {{ break; }}"] if most > at_once else []),
    ]
    for number in range(at_once):
        place = f"next + {number}u"
        at = f"min({place}, {most - 1}u)" if most % at_once else f"({place})"
        total, sum_of = totals.format(at), sums.format(at)
        if most % at_once or count != f"{most}u":  # loads need not wait until the count is known
            total = f"select(vec2<f32>({LOWEST}, 0.0), {total}, {place} < {count})"
            sum_of = _or_zero(sum_of, f"{place} < {count}")
        lines += [f"  let of{number} = {total};", f"  let sum{number} = {sum_of};"]
    lines += [
        f"  let higher = max(highest, {_highest([f'of{number}.x' for number in range(at_once)])});",
        "  let top = finite_or_zero(higher);",
        "  let scale = power(highest - top);",
        "  highest = higher;",
        "  total = select(total * scale, total, total < 0.0);",
        "  sum *= scale;",
    ]
    for number in range(at_once):
        lines += [
            f"  let scale{number} = power(of{number}.x - top);",
            f"  total += select(of{number}.y * scale{number}, of{number}.y, of{number}.y < 0.0);",
            f"  sum += sum{number} * scale{number};",
        ]
    return [*lines, "}"]


def _or_zero(value: str, condition: str) -> str:
    """Return a vec4, or zeros where a condition is false."""
    return f"select(vec4<f32>(), {value}, {condition})" if condition else value


def _highest(values: Sequence[str]) -> str:
    """Return the largest of some values."""
    values = [*values]
    while len(values) > 1:
        values = [
            f"max({', '.join(pair)})" if len(pair) > 1 else pair[0]
            for pair in (values[at : at + 2] for at in range(0, len(values), 2))
        ]
    return values[0]
