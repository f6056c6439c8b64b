"""Attention to a cache of fixed capacity, of which only the keys that are there, and that queries see, are read.

A kernel computes, for some queries of a matrix and a part of their keys, an online softmax over tiles of keys; another
adds up the parts. Before that queries and keys are turned by their angles, and the new keys and values are written into
the caches: by the workgroups whose part they are in, or, where queries are many, by a kernel of its own. How many keys
there are is read on the GPU: the workgroups are as many as a full cache needs, each of which takes an equal part of the
keys that are there, and ends at once where there are too few.

A score that is NaN or Infinity makes its query NaN. It is noticed by its bits: drivers compute with NaN as they like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from webnn_py.core.graph import Node, Value
from webnn_py.devices.wgpu.codegen.attention.cached_attention import KEYS, ROWS_ADDED, SLICES, THREADS
from webnn_py.devices.wgpu.codegen.attention.cached_node import ROWS, CachedNode
from webnn_py.devices.wgpu.codegen.attention.cached_rows import emit_copies, emit_rows
from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.module import Binding, Bindings, bound_kernel
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH, literal
from webnn_py.devices.wgpu.records.lowering import Lowering

HIDDEN: Final = literal(-math.inf, "f32")
LOWEST: Final = "-3.4028234e38"
NOT_A_NUMBER: Final = literal(math.nan, "f32")

POWER: Final = "fn power(x: f32) -> f32 { return select(0.0, exp2(x * 1.442695), x > -87.0); }"
IS_BAD: Final = """fn is_bad(x: f32) -> bool {
  let bits = bitcast<u32>(x);
  return bits == 0x7f800000u || (bits & 0x7fffffffu) > 0x7f800000u;
}"""

PITCH: Final = KEYS + 1
"""The distance of the powers of two queries in workgroup memory, where they must not share banks."""

SHARES: Final = 4
"""The invocations that share the scores of a query in a tile, to find the highest and to add up powers."""

PREFETCHED: Final = 8
"""The most vec4s of values that an invocation loads before scores are known."""


def emit_cached_attention(lowering: Lowering, node: Node) -> None:
    """Emit the kernels of a node for which :func:`.has_kernels` holds."""
    own = CachedNode.from_node(lowering, node)
    emit_copies(own)
    _PartsWriter(own).emit()


class _PartsWriter:
    """Writes the kernels that attend to parts of the keys, and add them up."""

    def __init__(self, own: CachedNode) -> None:
        self._own = own
        self._plan = own.plan

    def emit(self) -> None:
        """Emit the kernels that compute the output and write new rows.

        The one that attends to parts of the keys writes these itself, each to its part, if it has all queries of a
        matrix and can bind everything. If there are several parts, another one adds them up.
        """
        plan, kind = self._plan, self._own.element.vec4
        target = self._own.output
        if plan.parts > 1:
            count = plan.parts * plan.matrices * plan.queries * (plan.vec4s + 1)
            target, kind = Buffer("block", count * WIDTH * 4), "vec4<f32>"
        bindings = Bindings("r")
        score = self._score(bindings)
        functions = [score, *(self._ended(bindings) if plan.parts == 1 else []), *self._own.functions(ROWS, bindings)]
        if plan.blocks == 1 and plan.is_causal and self._own.fits(bindings, (target, *self._own.presents)):
            self._emit_attention(functions, [*bindings], (target, kind))
        else:
            queries = Buffer("block", plan.matrices * plan.queries * plan.size * 4)
            emit_rows(self._own, queries)
            bindings = Bindings("r")
            functions = [self._score(bindings), *(self._ended(bindings) if plan.parts == 1 else [])]
            self._emit_attention(functions, [*bindings], (target, kind), queries)
        if plan.parts > 1:
            self._emit_sum(target)

    def _emit_attention(
        self,
        functions: Sequence[str],
        reads: Sequence[Binding],
        target: tuple[Buffer, str],
        queries: Buffer | None = None,
    ) -> None:
        """Emit the kernel that attends to parts; without queries that are prepared it writes the new rows itself."""
        plan = self._plan
        lengths, function = self._own.lengths()
        caches: list[Binding] = [
            (buffer, name, self._own.element.vec4)
            for name, buffer in zip(("keys", "values"), self._own.presents, strict=True)
        ]
        writes: list[Binding] = [(target[0], "o", target[1])]
        if queries is None:
            writes = [*caches, *writes]
        else:
            lengths = [*lengths, (queries, "queries", "vec4<f32>"), *caches]
        shared = [
            "var<workgroup> range: array<vec4<i32>, 1>;",
            f"var<workgroup> queries_of: array<vec4<f32>, {plan.rows * plan.vec4s}>;",
            f"var<workgroup> added: array<vec4<f32>, {min(ROWS_ADDED, plan.rows) * THREADS}>;",
            f"var<workgroup> products: array<f32, {plan.rows * THREADS}>;",
            f"var<workgroup> powers: array<f32, {plan.rows * PITCH}>;",
            *(f"var<workgroup> {name}: array<f32, {plan.rows}>;" for name in ("highest", "next", "factors")),
            *(f"var<workgroup> {name}: array<f32, {plan.rows * SHARES}>;" for name in ("most", "totals", "worst")),
        ]
        body = [
            *self._begin(),
            *(self._prepare() if queries is None else self._stage()),
            *self._tiles(),
            *self._finish(),
        ]
        main, workgroups = workgroup_entry_point(plan.matrices * plan.blocks * plan.parts, THREADS, body)
        label = self._own.label if plan.parts == 1 else f"{self._own.label} (parts)"
        parts = [*shared, function, self._ranges(), POWER, IS_BAD, self._wide(), *functions, main]
        self._own.lowering.emit(bound_kernel(label, [*lengths, *reads], writes, parts, workgroups))

    def _wide(self) -> str:
        values = ", ".join(self._own.element.unpack("x"))
        return f"fn wide(x: {self._own.element.vec4}) -> vec4<f32> {{ return vec4<f32>({values}); }}"

    def _ranges(self) -> str:
        """Return the functions that tell the keys of a block of queries: their range, and the length of a part."""
        plan = self._plan
        last = f"(min(block * {plan.rows}u + {plan.rows}u, {plan.queries}u) - 1u) / {plan.groups}u"
        stop = f"begin_of(sample) + i32({last}) + 1" if plan.is_causal else "lasts[sample] + 1"
        first = f"i32(block * {plan.rows}u / {plan.groups}u)"
        start = f"max(0, begin_of(sample) + {first} + {1 - plan.window})" if plan.window and plan.is_causal else "0"
        each = f"(max(stop - start, 1) + {plan.parts - 1}) / {plan.parts}"
        return f"""fn start_of(sample: u32, block: u32) -> i32 {{ return {start}; }}
fn stop_of(sample: u32, block: u32) -> i32 {{ return select(0, {stop}, is_within(sample)); }}
fn length_of(start: i32, stop: i32) -> i32 {{ return ({each} + {KEYS - 1}) / {KEYS} * {KEYS}; }}"""

    def _score(self, bindings: Bindings) -> str:
        """Return the function of a query, a key, and their product."""
        plan, node = self._plan, self._own.node
        lines = []
        if node.options["softcap"]:
            cap = literal(node.options["softcap"], "f32")
            lines.append(f"s = tanh_f32(s / {cap}) * {cap};")
        functions = []
        bias = node.operands.get("bias")
        if isinstance(bias, Value):
            functions.append(self._own.scalars("bias", bias, bindings))
            outer, inner, _, length = bias.descriptor.shape
            head = f"matrix % {plan.key_heads}u * {plan.groups}u + query % {plan.groups}u"
            outers = [*(["sample"] if outer > 1 else []), *([f"({head})"] if inner > 1 else [])]
            at = {0: "0u", 1: outers[0] if outers else "", 2: f"(sample * {inner}u + {head})"}[len(outers)]
            row = f"({at} * {plan.new}u + query / {plan.groups}u) * {length}u"
            lines += [
                f"let sample = matrix / {plan.key_heads}u;",
                f"if (key < {length}) {{ s += bias_at({row} + u32(key)); }}",
            ]
        text = "\n  ".join(lines)
        functions.append(f"""fn score(matrix: u32, query: u32, key: i32, product: f32) -> f32 {{
  var s = product;
  {text}
  return s;
}}""")
        return "\n".join(functions)

    def _begin(self) -> list[str]:
        plan = self._plan
        lines = [
            f"let block = number % {plan.blocks}u;",
            f"let part = number / {plan.blocks}u % {plan.parts}u;",
            f"let matrix = number / {plan.blocks * plan.parts}u;",
            f"let sample = matrix / {plan.key_heads}u;",
            # Loops with barriers end by these: in a buffer that is bound for writing, they may differ for compilers.
            "if (t == 0u) {",
            "  range[0] = vec4<i32>(begin_of(sample), start_of(sample, block), stop_of(sample, block), 0);",
            "}",
            "let range_of = workgroupUniformLoad(&range[0]);",
            "let begin = range_of.x;",
            "let start = range_of.y;",
            "let stop = range_of.z;",
            "let length = length_of(start, stop);",
            "let first = start + i32(part) * length;",
            "let end = min(first + length, stop);",
        ]
        if plan.parts > 1:
            lines.append("if (first >= end) { return; }")
        return [
            *lines,
            f"if (t < {plan.rows}u) {{ highest[t] = {LOWEST}; }}",
            f"if (t < {plan.rows * SHARES}u) {{ totals[t] = 0.0; worst[t] = 0.0; }}",
            f"let base = matrix * {plan.capacity * plan.vec4s}u;",
            f"let d = t % {plan.vec4s}u;",
            f"let sharer = t / {plan.vec4s}u;",
            *(f"var c{row} = vec4<f32>();" for row in range(plan.rows)),
        ]

    def _stage(self) -> list[str]:
        """Copy queries that are prepared into workgroup memory."""
        plan = self._plan
        query = f"min(block * {plan.rows}u + item / {plan.vec4s}u, {plan.queries - 1}u)"
        return [
            f"for (var item = t; item < {plan.rows * plan.vec4s}u; item += {THREADS}u) {{",
            f"  let row = (matrix * {plan.queries}u + {query}) * {plan.vec4s}u;",
            f"  queries_of[item] = queries[row + item % {plan.vec4s}u];",
            "}",
            "workgroupBarrier();",
        ]

    def _prepare(self) -> list[str]:
        """Turn the queries, all of which a workgroup has, and write those new rows that are in its part."""
        plan = self._plan
        key_head = f"matrix % {plan.key_heads}u"
        return [
            f"for (var item = t; item < {plan.rows * plan.vec4s}u; item += {THREADS}u) {{",
            f"  let query = item / {plan.vec4s}u;",
            f"  let head = {key_head} * {plan.groups}u + query % {plan.groups}u;",
            f"  queries_of[item] = q_row(sample, query / {plan.groups}u, head, item % {plan.vec4s}u);",
            "}",
            f"for (var item = t; item < {plan.new * plan.vec4s}u; item += {THREADS}u) {{",
            f"  let place = begin + i32(item / {plan.vec4s}u);",
            "  if (place >= first && place < end) {",
            f"    let at = base + u32(place) * {plan.vec4s}u + item % {plan.vec4s}u;",
            *(
                f"    let {name} = {name}_row(sample, item / {plan.vec4s}u, {key_head}, item % {plan.vec4s}u);"
                for name in ("k", "v")
            ),
            f"    keys[at] = {self._own.packed('k')};",
            f"    values[at] = {self._own.packed('v')};",
            "  }",
            "}",
            "storageBarrier();",
            "workgroupBarrier();",
        ]

    def _tiles(self) -> list[str]:
        """Return the loop over tiles of keys."""
        plan, rows = self._plan, range(self._plan.rows)
        count = -(-KEYS // plan.sharers)
        is_early = count <= PREFETCHED
        values = [line for turn in range(count) for line in self._value(turn)]
        sums = [f"c{row} = c{row} * factors[{row}];" for row in rows]
        for turn in range(count):
            place = f"sharer + {turn * plan.sharers}u"
            place = place if plan.sharers * count == KEYS else f"min({place}, {KEYS - 1}u)"
            sums += [] if is_early else self._value(turn)
            sums += [f"c{row} = fma(vec4<f32>(powers[{row * PITCH}u + {place}]), v{turn}, c{row});" for row in rows]
        items = f"for (var item = t; item < {plan.rows * KEYS}u; item += {THREADS}u) {{"
        share = f"t / {SHARES}u * {PITCH}u + t % {SHARES}u * {KEYS // SHARES}u + i"
        lines = [
            *self._products(),
            *(values if is_early else []),
            *(f"products[{row * THREADS}u + t] = s{row};" for row in rows),
            "workgroupBarrier();",
            items,
            *(f"  {line}" for line in self._masked()),
            "}",
            "workgroupBarrier();",
            f"if (t < {plan.rows * SHARES}u) {{",
            f"  var found = {LOWEST};",
            f"  for (var i = 0u; i < {KEYS // SHARES}u; i++) {{",
            f"    let s = powers[{share}];",
            "    if (is_bad(s)) { worst[t] = 1.0; } else { found = max(found, s); }",
            "  }",
            "  most[t] = found;",
            "}",
            "workgroupBarrier();",
            items,
            f"  let row = item / {KEYS}u;",
            f"  let found = max(highest[row], {self._of_shares('most', 'row', 'max')});",
            f"  let at = row * {PITCH}u + item % {KEYS}u;",
            "  powers[at] = power(powers[at] - found);",
            f"  if (item % {KEYS}u == 0u) {{ next[row] = found; factors[row] = power(highest[row] - found); }}",
            "}",
            "workgroupBarrier();",
            f"if (t < {plan.rows * SHARES}u) {{",
            "  var sum = 0.0;",
            f"  for (var i = 0u; i < {KEYS // SHARES}u; i++) {{ sum += powers[{share}]; }}",
            f"  totals[t] = fma(totals[t], factors[t / {SHARES}u], sum);",
            "}",
            f"if (t < {plan.rows}u) {{ highest[t] = next[t]; }}",
            *sums,
            "workgroupBarrier();",
        ]
        loop = f"for (var tile = first; tile < end; tile += {KEYS}) {{"
        return [loop, *(f"  {line}" for line in lines), "}"]

    def _products(self) -> list[str]:
        """Multiply a slice of a key with those of all queries, as ``s0`` and so on."""
        plan, rows = self._plan, range(self._plan.rows)
        lines = [
            f"let row = base + u32(min(tile + i32(t / {SLICES}u), end - 1)) * {plan.vec4s}u;",
            *(f"var s{row} = 0.0;" for row in rows),
            f"for (var at = t % {SLICES}u; at < {plan.vec4s}u; at += {SLICES}u) {{",
            "  let k = wide(keys[row + at]);",
        ]
        for row in rows:
            lines.append(f"  let q{row} = queries_of[{row * plan.vec4s}u + at];")
            product = f"s{row}"
            for axis in COMPONENTS:
                product = f"fma(k.{axis}, q{row}.{axis}, {product})"
            lines.append(f"  s{row} = {product};")
        return [*lines, "}"]

    def _value(self, turn: int) -> list[str]:
        """Load a vec4 of a key's values, 0 beyond the last key."""
        plan = self._plan
        place = f"sharer + {turn * plan.sharers}u"
        is_there = f"key{turn} < end"
        if plan.sharers * plan.vec4s < THREADS or KEYS % plan.sharers:
            is_there += f" && {place} < {KEYS}u && sharer < {plan.sharers}u"
        row = f"base + u32(min(key{turn}, end - 1)) * {plan.vec4s}u + d"
        return [
            f"let key{turn} = tile + i32({place});",
            f"let v{turn} = select(vec4<f32>(), wide(values[{row}]), {is_there});",
        ]

    def _masked(self) -> list[str]:
        """Add up the slices of a score, and hide keys that the query does not see."""
        plan = self._plan
        product = " + ".join(f"products[at + {turn}u]" for turn in range(SLICES))
        own = f"begin + i32(query / {plan.groups}u)"
        is_seen = "key < end"
        if plan.is_causal:
            is_seen += f" && key <= {own}"
            is_seen += f" && key > {own} - {plan.window}" if plan.window else ""
        return [
            f"let at = item / {KEYS}u * {THREADS}u + item % {KEYS}u * {SLICES}u;",
            f"let query = min(block * {plan.rows}u + item / {KEYS}u, {plan.queries - 1}u);",
            f"let key = tile + i32(item % {KEYS}u);",
            f"let s = score(matrix, query, key, {product});",
            f"powers[item / {KEYS}u * {PITCH}u + item % {KEYS}u] = select({HIDDEN}, s, {is_seen});",
        ]

    def _finish(self) -> list[str]:
        """Add up the sums of invocations with other keys, and store them."""
        plan = self._plan
        lines = []
        for first in range(0, plan.rows, ROWS_ADDED):
            some = range(first, min(first + ROWS_ADDED, plan.rows))
            added = " + ".join(f"added[from_ + {turn * plan.vec4s}u]" for turn in range(plan.sharers))
            lines += [
                *(f"added[{(row - first) * THREADS}u + t] = c{row};" for row in some),
                "workgroupBarrier();",
                f"for (var item = t; item < {len(some) * plan.vec4s}u; item += {THREADS}u) {{",
                f"  let row = {first}u + item / {plan.vec4s}u;",
                f"  let query = block * {plan.rows}u + row;",
                f"  let part_of = item % {plan.vec4s}u;",
                f"  let from_ = item / {plan.vec4s}u * {THREADS}u + part_of;",
                f"  let sum = {added};",
                f"  if (query < {plan.queries}u) {{",
                f"    {self._store('row')}",
                "  }",
                "}",
                "workgroupBarrier();",
            ]
        if plan.parts > 1:
            lines += [
                f"if (t < {plan.rows}u && block * {plan.rows}u + t < {plan.queries}u) {{",
                f"  let query = block * {plan.rows}u + t;",
                f"  let total = {self._of_shares('totals', 't')};",
                f"  let bad = {self._of_shares('worst', 't')};",
                f"  o[{self._place('part')} + {plan.vec4s}u] = vec4<f32>(highest[t], total, bad, 0.0);",
                "}",
            ]
        return lines

    def _place(self, part: str) -> str:
        """Return the place of the sums of a query and a part; behind them are its highest score and its total."""
        plan = self._plan
        row = f"({part} * {plan.matrices}u + matrix) * {plan.queries}u + query"
        return f"({row}) * {plan.vec4s + 1}u"

    def _store(self, row: str) -> str:
        if self._plan.parts > 1:
            return f"o[{self._place('part')} + part_of] = sum;"
        total, bad = self._of_shares("totals", row), self._of_shares("worst", row)
        return f"finish(matrix, query, part_of, sum, highest[{row}], {total}, {bad} > 0.0);"

    @staticmethod
    def _of_shares(name: str, row: str, function: str = "") -> str:
        """Return the sum, or the largest, of what invocations have found for a query."""
        values = [f"{name}[{row} * {SHARES}u + {share}u]" for share in range(SHARES)]
        return f"({' + '.join(values)})" if not function else reduce(lambda x, y: f"{function}({x}, {y})", values)

    def _ended(self, bindings: Bindings) -> list[str]:
        """Return the functions that divide sums by the total of powers, and store them."""
        plan, node = self._plan, self._own.node
        head = f"matrix % {plan.key_heads}u * {plan.groups}u + query % {plan.groups}u"
        sink, functions = node.operands.get("sink"), []
        lines = ["var scaled = sum;", "var divisor = total;", "var is_nan = is_worst;"]
        if isinstance(sink, Value) or node.options["is_smooth"]:
            share = "0.0"
            if isinstance(sink, Value):
                functions.append(self._own.scalars("sink", sink, bindings))
                share = f"sink_at({head})"
            lines += [
                f"let sink = {share};",
                "let most = max(sink, highest);",
                "let factor = power(highest - most);",
                "divisor = fma(total, factor, power(sink - most));",
                "scaled = sum * factor;",
                f"is_nan = is_nan || is_bad(sink) || !is_within(matrix / {plan.key_heads}u);",
            ]
        position = f"matrix / {plan.key_heads}u * {plan.new}u + query / {plan.groups}u"
        text = "\n  ".join(lines)
        functions.append(f"""fn finish(
  matrix: u32, query: u32, part: u32, sum: vec4<f32>, highest: f32, total: f32, is_worst: bool
) {{
  {text}
  let result = select(scaled / divisor, vec4<f32>({NOT_A_NUMBER}), is_nan || divisor <= 0.0);
  o[(({position}) * {plan.heads}u + {head}) * {plan.vec4s}u + part] = {self._own.packed("result")};
}}""")
        return functions

    def _emit_sum(self, sums: Buffer) -> None:
        """Emit the kernel that adds up parts, a workgroup for each query."""
        plan, bindings = self._plan, Bindings("r")
        lengths, function = self._own.lengths()
        functions = [function, self._ranges(), POWER, IS_BAD, *self._ended(bindings)]
        added = " + ".join(f"added[t + {turn * plan.vec4s}u]" for turn in range(plan.sharers))
        body = [
            f"let query = number % {plan.queries}u;",
            f"let matrix = number / {plan.queries}u;",
            f"let sample = matrix / {plan.key_heads}u;",
            f"let start = start_of(sample, query / {plan.rows}u);",
            f"let stop = stop_of(sample, query / {plan.rows}u);",
            "let length = length_of(start, stop);",
            f"let count = min(u32(max(stop - start, 0) + length - 1) / u32(length), {plan.parts}u);",
            f"for (var item = t; item < count; item += {THREADS}u) {{",
            f"  parts[item] = sums[{self._place('item')} + {plan.vec4s}u];",
            "}",
            "workgroupBarrier();",
            f"var highest = {LOWEST};",
            "for (var i = 0u; i < count; i++) { highest = max(highest, parts[i].x); }",
            "var total = 0.0;",
            "var worst = 0.0;",
            "for (var i = 0u; i < count; i++) {",
            "  total = fma(parts[i].y, power(parts[i].x - highest), total);",
            "  worst += parts[i].z;",
            "}",
            f"let part_of = t % {plan.vec4s}u;",
            "var own = vec4<f32>();",
            f"for (var i = t / {plan.vec4s}u; i < count; i += {plan.sharers}u) {{",
            f"  own = fma(sums[{self._place('i')} + part_of], vec4<f32>(power(parts[i].x - highest)), own);",
            "}",
            "added[t] = own;",
            "workgroupBarrier();",
            f"if (t < {plan.vec4s}u) {{",
            f"  finish(matrix, query, part_of, {added}, highest, total, worst > 0.0);",
            "}",
        ]
        main, workgroups = workgroup_entry_point(plan.matrices * plan.queries, THREADS, body)
        shared = [
            f"var<workgroup> parts: array<vec4<f32>, {plan.parts}>;",
            f"var<workgroup> added: array<vec4<f32>, {THREADS}>;",
        ]
        reads = [(sums, "sums", "vec4<f32>"), *lengths, *bindings]
        writes: list[Binding] = [(self._own.output, "o", self._own.element.vec4)]
        parts = [*shared, *functions, main]
        self._own.lowering.emit(bound_kernel(f"{self._own.label} (sum)", reads, writes, parts, workgroups))
