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
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.attention.cached_plan import KEYS, ROWS_ADDED, SLICES, THREADS, CachedPlan
from webnn_py.device.on_wgpu.codegen.attention.cached_rows import ROWS, NewRows
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point, workgroup_entry_point
from webnn_py.device.on_wgpu.codegen.module import Binding, Bindings, bound_kernel
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import COMPONENTS, WIDTH, literal
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.graph import Node, Value

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

PREFETCHED: Final = 8
"""The most vec4s of values that an invocation loads before scores are known."""


def emit_cached_attention(lowering: Lowering, node: Node) -> None:
    """Emit the kernels of a node for which :func:`.has_kernels` holds."""
    plan = CachedPlan.of(node, lowering.features)
    writer = _Writer(lowering, node, plan)
    writer.emit_copies()
    writer.emit_attention()


class _Writer:
    """Writes the kernels of a node."""

    def __init__(self, lowering: Lowering, node: Node, plan: CachedPlan) -> None:
        self._lowering = lowering
        self._node = node
        self._plan = plan
        self._element = lowering.element(node.results[0])
        self._output, *self._presents = (lowering.target(value) for value in node.results)
        self._rows = NewRows(lowering, node, plan)
        self._label = f"groupQueryAttention {node.outputs[0].data_type}"

    # --- what is before the new rows -----------------------------------------------------------------------------

    def emit_copies(self) -> None:
        """Copy what is before the new rows, unless it is there already; behind them is 0."""
        for name, present in zip(("past_key", "past_value"), self._presents, strict=True):
            past = self._node.operands.get(name)
            self._emit_copy(past if isinstance(past, Value) else None, present)

    def _emit_copy(self, past: Value | None, present: Buffer) -> None:
        plan, kind = self._plan, self._element.vec4
        reads, functions = self._rows.lengths()
        lines = [f"let row = four / {plan.vec4s}u;", f"let place = row % {plan.capacity}u;", f"var x = {kind}();"]
        is_in_place = False
        if past is not None:
            source, length = self._lowering.dense(past), past.descriptor.shape[2]
            at = f"(row / {plan.capacity}u * {length}u + place) * {plan.vec4s}u + four % {plan.vec4s}u"
            is_there = f"i32(place) < min(begin_of(row / {plan.key_heads * plan.capacity}u), {length})"
            lines.append(f"if ({is_there}) {{ x = past[{at}]; }}")
            reads.insert(0, (source, "past", kind))
            is_in_place = length == plan.capacity and source.kind == "input" and present.kind == "output"
        count = plan.matrices * plan.capacity * plan.size
        main, workgroups = vec4_entry_point(count, [*lines, "o[four] = x;"])
        kernel = bound_kernel(f"{self._label} (copy)", reads, [(present, "o", kind)], [functions], workgroups, main)
        self._lowering.emit(attrs.evolve(kernel, copies=is_in_place))

    # --- new rows ------------------------------------------------------------------------------------------------

    def emit_rows(self, queries: Buffer) -> None:
        """Turn queries and new keys by their angles, scale the queries, and write the others into the caches."""
        targets = dict(zip(ROWS, (queries, *self._presents), strict=True))
        bindings = Bindings("r")
        self._rows.functions(ROWS, bindings)
        if self._fits(bindings, targets.values()):
            self._emit_rows(targets)
            return
        for name, target in targets.items():
            self._emit_rows({name: target})

    def _fits(self, bindings: Bindings, others: Iterable[Buffer]) -> bool:
        """Return whether a kernel can bind these and the lengths."""
        lengths, _ = self._rows.lengths()
        buffers = {*(buffer for buffer, *_ in (*lengths, *bindings)), *others}
        return len(buffers) <= self._lowering.features.max_storage_buffers

    def _emit_rows(self, targets: Mapping[str, Buffer]) -> None:
        plan, bindings = self._plan, Bindings("r")
        lengths, function = self._rows.lengths()
        functions, lines, first = [function, *self._rows.functions([*targets], bindings)], [], 0
        for name in targets:
            heads = self._rows.heads(name)
            count = plan.batch * plan.new * heads * plan.vec4s
            lines += [
                f"{'else ' if first else ''}if (four < {first + count}u) {{",
                f"  let item = four - {first}u;",
                f"  let part = item % {plan.vec4s}u;",
                f"  let head = item / {plan.vec4s}u % {heads}u;",
                f"  let i = item / {plan.vec4s * heads}u % {plan.new}u;",
                f"  let sample = item / {plan.vec4s * heads * plan.new}u;",
                f"  let x = {name}_row(sample, i, head, part);",
                f"  {self._store_row(name)}",
                "}",
            ]
            first += count
        main, workgroups = vec4_entry_point(first * WIDTH, lines)
        kinds = {"q": "vec4<f32>", "k": self._element.vec4, "v": self._element.vec4}
        writes: list[Binding] = [(target, f"{name}_rows", kinds[name]) for name, target in targets.items()]
        reads = [*lengths, *bindings]
        self._lowering.emit(bound_kernel(f"{self._label} (rows)", reads, writes, [*functions, main], workgroups))

    def _store_row(self, name: str) -> str:
        """Return the statement that stores a vec4, ``x``."""
        plan = self._plan
        if name == "q":
            matrix = f"sample * {plan.key_heads}u + head / {plan.groups}u"
            row = f"({matrix}) * {plan.queries}u + i * {plan.groups}u + head % {plan.groups}u"
            return f"q_rows[({row}) * {plan.vec4s}u + part] = x;"
        row = f"(sample * {plan.key_heads}u + head) * {plan.capacity}u + u32(begin_of(sample)) + i"
        return f"if (is_within(sample)) {{ {name}_rows[({row}) * {plan.vec4s}u + part] = {self._packed('x')}; }}"

    def _packed(self, name: str) -> str:
        """Return a vec4 of floats as it is stored."""
        return self._element.pack([f"{name}.{component}" for component in COMPONENTS])

    # --- attention -------------------------------------------------------------------------------------------------

    def emit_attention(self) -> None:
        """Emit the kernels that compute the output and write new rows.

        The one that attends to parts of the keys writes these itself, each to its part, if it has all queries of a
        matrix and can bind everything. If there are several parts, another one adds them up.
        """
        plan, kind = self._plan, self._element.vec4
        target = self._output
        if plan.parts > 1:
            count = plan.parts * plan.matrices * plan.queries * (plan.vec4s + 1)
            target, kind = Buffer("block", count * WIDTH * 4), "vec4<f32>"
        bindings = Bindings("r")
        score = self._score(bindings)
        functions = [score, *(self._ended(bindings) if plan.parts == 1 else []), *self._rows.functions(ROWS, bindings)]
        if plan.blocks == 1 and plan.is_causal and self._fits(bindings, (target, *self._presents)):
            self._emit_attention(functions, [*bindings], (target, kind))
        else:
            queries = Buffer("block", plan.matrices * plan.queries * plan.size * 4)
            self.emit_rows(queries)
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
        lengths, function = self._rows.lengths()
        caches: list[Binding] = [
            (buffer, name, self._element.vec4) for name, buffer in zip(("keys", "values"), self._presents, strict=True)
        ]
        writes: list[Binding] = [(target[0], "o", target[1])]
        if queries is None:
            writes = [*caches, *writes]
        else:
            lengths = [*lengths, (queries, "queries", "vec4<f32>"), *caches]
        shared = [
            f"var<workgroup> queries_of: array<vec4<f32>, {plan.rows * plan.vec4s}>;",
            f"var<workgroup> added: array<vec4<f32>, {min(ROWS_ADDED, plan.rows) * THREADS}>;",
            f"var<workgroup> products: array<f32, {plan.rows * THREADS}>;",
            f"var<workgroup> powers: array<f32, {plan.rows * PITCH}>;",
            *(f"var<workgroup> {name}: array<f32, {plan.rows}>;" for name in ("highest", "factors", "totals", "worst")),
        ]
        body = [
            *self._begin(),
            *(self._prepare() if queries is None else self._stage()),
            *self._tiles(),
            *self._finish(),
        ]
        main, workgroups = workgroup_entry_point(plan.matrices * plan.blocks * plan.parts, THREADS, body)
        label = self._label if plan.parts == 1 else f"{self._label} (parts)"
        parts = [*shared, function, self._ranges(), POWER, IS_BAD, self._wide(), *functions, main]
        self._lowering.emit(bound_kernel(label, [*lengths, *reads], writes, parts, workgroups))

    def _wide(self) -> str:
        values = ", ".join(self._element.unpack("x"))
        return f"fn wide(x: {self._element.vec4}) -> vec4<f32> {{ return vec4<f32>({values}); }}"

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
        plan, node = self._plan, self._node
        lines = []
        if node.options["softcap"]:
            cap = literal(node.options["softcap"], "f32")
            lines.append(f"s = tanh_f32(s / {cap}) * {cap};")
        functions = []
        bias = node.operands.get("bias")
        if isinstance(bias, Value):
            functions.append(self._rows.scalars("bias", bias, bindings))
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
            "let begin = begin_of(sample);",
            "let start = start_of(sample, block);",
            "let stop = stop_of(sample, block);",
            "let length = length_of(start, stop);",
            "let first = start + i32(part) * length;",
            "let end = min(first + length, stop);",
        ]
        if plan.parts > 1:
            lines.append("if (first >= end) { return; }")
        return [
            *lines,
            f"if (t < {plan.rows}u) {{ highest[t] = {LOWEST}; totals[t] = 0.0; worst[t] = 0.0; }}",
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
            f"    keys[at] = {self._packed('k')};",
            f"    values[at] = {self._packed('v')};",
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
        lines = [
            *self._products(),
            *(values if is_early else []),
            *(f"products[{row * THREADS}u + t] = s{row};" for row in rows),
            "workgroupBarrier();",
            items,
            *(f"  {line}" for line in self._masked()),
            "}",
            "workgroupBarrier();",
            f"if (t < {plan.rows}u) {{",
            "  var most = highest[t];",
            f"  for (var i = 0u; i < {KEYS}u; i++) {{",
            f"    let s = powers[t * {PITCH}u + i];",
            "    if (is_bad(s)) { worst[t] = 1.0; } else { most = max(most, s); }",
            "  }",
            "  factors[t] = power(highest[t] - most);",
            "  highest[t] = most;",
            "}",
            "workgroupBarrier();",
            items,
            f"  let at = item / {KEYS}u * {PITCH}u + item % {KEYS}u;",
            f"  powers[at] = power(powers[at] - highest[item / {KEYS}u]);",
            "}",
            "workgroupBarrier();",
            f"if (t < {plan.rows}u) {{",
            "  var sum = 0.0;",
            f"  for (var i = 0u; i < {KEYS}u; i++) {{ sum += powers[t * {PITCH}u + i]; }}",
            "  totals[t] = fma(totals[t], factors[t], sum);",
            "}",
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
                f"  o[{self._place('part')} + {plan.vec4s}u] = vec4<f32>(highest[t], totals[t], worst[t], 0.0);",
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
        return f"finish(matrix, query, part_of, sum, highest[{row}], totals[{row}], worst[{row}] > 0.0);"

    def _ended(self, bindings: Bindings) -> list[str]:
        """Return the functions that divide sums by the total of powers, and store them."""
        plan, node = self._plan, self._node
        head = f"matrix % {plan.key_heads}u * {plan.groups}u + query % {plan.groups}u"
        sink, functions = node.operands.get("sink"), []
        lines = ["var scaled = sum;", "var divisor = total;", "var is_nan = is_worst;"]
        if isinstance(sink, Value) or node.options["is_smooth"]:
            share = "0.0"
            if isinstance(sink, Value):
                functions.append(self._rows.scalars("sink", sink, bindings))
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
  o[(({position}) * {plan.heads}u + {head}) * {plan.vec4s}u + part] = {self._packed("result")};
}}""")
        return functions

    def _emit_sum(self, sums: Buffer) -> None:
        """Emit the kernel that adds up parts, a workgroup for each query."""
        plan, bindings = self._plan, Bindings("r")
        lengths, function = self._rows.lengths()
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
        writes: list[Binding] = [(self._output, "o", self._element.vec4)]
        parts = [*shared, *functions, main]
        self._lowering.emit(bound_kernel(f"{self._label} (sum)", reads, writes, parts, workgroups))
