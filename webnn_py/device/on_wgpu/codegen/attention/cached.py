"""Attention to a cache of fixed capacity, of which only the keys that are there, and that queries see, are read.

The first kernel turns queries and keys by their angles, and writes the new keys and values into the caches. The second
computes, for some queries of a matrix and a part of their keys, an online softmax over tiles of keys. The third adds up
the parts. How many keys there are is read on the GPU: the workgroups are as many as a full cache needs, each of which
takes an equal part of the keys that are there, and ends at once where there are too few.

A score that is NaN or Infinity makes its query NaN. It is noticed by its bits: drivers compute with NaN as they like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.attention.cached_plan import KEYS, ROWS_ADDED, SLICES, THREADS, CachedPlan
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point, workgroup_entry_point
from webnn_py.device.on_wgpu.codegen.module import Binding, Bindings, bound_kernel
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import COMPONENTS, WIDTH, compute_type, literal
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
    queries = Buffer("block", plan.matrices * plan.queries * plan.size * 4)
    writer.emit_rows(queries)
    writer.emit_parts(queries)


@attrs.frozen
class _Source:
    """Where new rows of a head are: the operand, the elements of one of its rows, and the first one of all heads."""

    value: Value
    width: int
    first: int


class _Writer:
    """Writes the kernels of a node."""

    def __init__(self, lowering: Lowering, node: Node, plan: CachedPlan) -> None:
        self._lowering = lowering
        self._node = node
        self._plan = plan
        self._element = lowering.element(node.results[0])
        self._output, *self._presents = (lowering.target(value) for value in node.results)
        self._label = f"groupQueryAttention {node.outputs[0].data_type}"

    # --- what all kernels have ---------------------------------------------------------------------------------

    def _lengths(self) -> tuple[list[Binding], str]:
        """Return the bindings of lengths, and the functions of a sample that tell where its new keys begin."""
        lasts, total = (self._lowering.dense(self._node.value(name)) for name in ("last_positions", "total_length"))
        new, capacity = self._plan.new, self._plan.capacity
        is_same = lasts is total  # one element for both
        reads: list[Binding] = [(lasts, "lasts", "i32")] + ([] if is_same else [(total, "total", "i32")])
        name = "lasts" if is_same else "total"
        return (
            reads,
            f"""fn is_first() -> bool {{ return {name}[0] == {new}; }}
fn begin_of(sample: u32) -> i32 {{ return select(lasts[sample] + {1 - new}, 0, is_first()); }}
fn is_within(sample: u32) -> bool {{
  let begin = begin_of(sample);
  return begin >= 0 && max(max(lasts[sample] + 1, begin + {new}), {name}[0]) <= {capacity};
}}""",
        )

    def _scalars(self, name: str, value: Value, bindings: Bindings) -> str:
        """Return the function ``name_at`` of the row-major index of an operand's element."""
        element, place = self._lowering.element(value), self._lowering.place(value)
        load = element.load(bindings.name(place.buffer, element.one), place.layout.index("i"))
        return f"fn {name}_at(i: u32) -> {element.compute} {{ return {load}; }}"

    # --- what is before the new rows -----------------------------------------------------------------------------

    def emit_copies(self) -> None:
        """Copy what is before the new rows, unless it is there already; behind them is 0."""
        for name, present in zip(("past_key", "past_value"), self._presents, strict=True):
            past = self._node.operands.get(name)
            self._emit_copy(past if isinstance(past, Value) else None, present)

    def _emit_copy(self, past: Value | None, present: Buffer) -> None:
        plan, kind = self._plan, self._element.vec4
        reads, functions = self._lengths()
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
        jobs = list(zip(("q", "k", "v"), self._sources(), (queries, *self._presents), strict=True))
        together = self._rows_kernel(jobs)
        if len(together[0]) <= self._lowering.features.max_storage_buffers:
            self._emit_rows(jobs, *together[1:])
            return
        for job in jobs:
            self._emit_rows([job], *self._rows_kernel([job])[1:])

    def _sources(self) -> list[_Source]:
        plan, node = self._plan, self._node
        query, key, value = (node.operands.get(name) for name in ("query", "key", "value"))
        assert isinstance(query, Value)  # noqa: S101 - a required operand
        widths = [plan.heads * plan.size, plan.key_heads * plan.size, plan.key_heads * plan.size]
        if isinstance(key, Value) and isinstance(value, Value):
            return [_Source(item, width, 0) for item, width in zip((query, key, value), widths, strict=True)]
        return [_Source(query, sum(widths), sum(widths[:index])) for index in range(len(widths))]

    def _rows_kernel(
        self, jobs: Sequence[tuple[str, _Source, Buffer]]
    ) -> tuple[set[Buffer], list[Binding], list[str], list[str]]:
        """Return the buffers, what is read, the functions, and the statements for the vec4 ``four`` of all jobs."""
        plan, bindings = self._plan, Bindings("r")
        lengths, function = self._lengths()
        functions, lines, first = [function], [], 0
        turns = "cosines" in self._node.operands and any(name != "v" for name, _, _ in jobs)
        if turns:
            functions += self._angles(bindings)
        for name, source, _ in jobs:
            functions.append(self._scalars(name, source.value, bindings))
            is_turned = turns and name != "v"
            if is_turned:
                functions.append(self._turned(name))
            heads = plan.heads if name == "q" else plan.key_heads
            count = plan.batch * plan.new * heads * plan.vec4s
            lines += [
                f"{'else ' if first else ''}if (four < {first + count}u) {{",
                *(f"  {line}" for line in self._job(name, source, f"four - {first}u", heads, is_turned=is_turned)),
                "}",
            ]
            first += count
        reads = [*lengths, *bindings]
        return {*(buffer for buffer, _, _ in reads), *(target for *_, target in jobs)}, reads, functions, lines

    def _emit_rows(
        self,
        jobs: Sequence[tuple[str, _Source, Buffer]],
        reads: Iterable[Binding],
        functions: list[str],
        lines: list[str],
    ) -> None:
        plan = self._plan
        heads = sum(plan.heads if name == "q" else plan.key_heads for name, *_ in jobs)
        main, workgroups = vec4_entry_point(plan.batch * plan.new * heads * plan.size, lines)
        kinds = {"q": "vec4<f32>", "k": self._element.vec4, "v": self._element.vec4}
        writes: list[Binding] = [(target, f"{name}_rows", kinds[name]) for name, _, target in jobs]
        parts = [*functions, main]
        self._lowering.emit(bound_kernel(f"{self._label} (rows)", reads, writes, parts, workgroups))

    def _job(self, name: str, source: _Source, item: str, heads: int, *, is_turned: bool) -> list[str]:
        """Return the statements for a vec4 of the rows of queries, keys or values."""
        plan = self._plan
        base = f"(sample * {plan.new}u + i) * {source.width}u + {source.first}u + head * {plan.size}u"
        lines = [
            f"let item = {item};",
            f"let part = item % {plan.vec4s}u;",
            f"let head = item / {plan.vec4s}u % {heads}u;",
            f"let i = item / {plan.vec4s * heads}u % {plan.new}u;",
            f"let sample = item / {plan.vec4s * heads * plan.new}u;",
            f"let base = {base};",
            f"let e = part * {WIDTH}u;",
        ]
        if is_turned:
            lines.append("let angle = angle_of(sample, i);")
            values = [f"{name}_turned(base, e + {component}u, angle)" for component in range(WIDTH)]
        else:
            values = [f"{name}_at(base + e + {component}u)" for component in range(WIDTH)]
        if name == "q":
            scale = literal(self._node.options["scale"] or 1 / math.sqrt(plan.size), "f32")
            matrix = f"sample * {plan.key_heads}u + head / {plan.groups}u"
            row = f"({matrix}) * {plan.queries}u + i * {plan.groups}u + head % {plan.groups}u"
            return [*lines, f"q_rows[({row}) * {plan.vec4s}u + part] = vec4<f32>({', '.join(values)}) * {scale};"]
        row = f"(sample * {plan.key_heads}u + head) * {plan.capacity}u + u32(begin_of(sample)) + i"
        packed = self._element.pack(values)
        store = f"{name}_rows[({row}) * {plan.vec4s}u + part] = {packed};"
        return [*lines, f"if (is_within(sample)) {{ {store} }}"]

    def _angles(self, bindings: Bindings) -> list[str]:
        """Return the functions that load cosines and sines, and the one that tells where those of a position are."""
        plan, node = self._plan, self._node
        count = node.value("cosines").descriptor.shape[0]
        functions = [self._scalars(name, node.value(f"{name}s"), bindings) for name in ("cosine", "sine")]
        positions = node.operands.get("positions")
        if not isinstance(positions, Value):
            found = f"position_i32(begin_of(sample) + i32(i), {count}u)"
        else:
            functions.append(self._scalars("position", positions, bindings))
            kind = compute_type(positions.descriptor.data_type)
            own = f"position_at(sample * {plan.new}u + i)"
            found = f"position_{kind}(select({own}, position_at(0u) + {kind}(i), is_first()), {count}u)"
        functions.append(f"fn angle_of(sample: u32, i: u32) -> u32 {{ return {found}; }}")
        return functions

    def _turned(self, name: str) -> str:
        """Return the function of an element of a head after its turn."""
        half = self._node.value("cosines").descriptor.shape[1]
        if self._node.options["is_interleaved"]:
            places = "let angle = e / 2u; let is_real = e % 2u == 0u; let other = e ^ 1u;"
        else:
            places = (
                f"let angle = e % {half}u; let is_real = e < {half}u; "
                f"let other = select(e - {half}u, e + {half}u, is_real);"
            )
        return f"""fn {name}_turned(base: u32, e: u32, place: u32) -> f32 {{
  let x = {name}_at(base + e);
  if (e >= {2 * half}u) {{ return x; }}
  {places}
  let y = {name}_at(base + other) * sine_at(place * {half}u + angle);
  let turned = x * cosine_at(place * {half}u + angle);
  return select(turned + y, turned - y, is_real);
}}"""

    # --- attention -------------------------------------------------------------------------------------------------

    def emit_parts(self, queries: Buffer) -> None:
        """Emit the kernel that attends to parts of the keys, and the one that adds these up if there are several."""
        plan = self._plan
        if plan.parts == 1:
            self._emit_attention(queries, self._output, self._element.vec4)
            return
        count = plan.parts * plan.matrices * plan.queries * (plan.vec4s + 1)
        sums = Buffer("block", count * WIDTH * 4)
        self._emit_attention(queries, sums, "vec4<f32>")
        self._emit_sum(sums)

    def _emit_attention(self, queries: Buffer, target: Buffer, kind: str) -> None:
        plan, bindings = self._plan, Bindings("r")
        lengths, function = self._lengths()
        arrays = zip(("keys", "values"), self._presents, strict=True)
        own: list[Binding] = [(queries, "queries", "vec4<f32>")]
        own += [(buffer, name, self._element.vec4) for name, buffer in arrays]
        functions = [function, self._ranges(), POWER, IS_BAD, self._wide(), self._score(bindings)]
        if plan.parts == 1:
            functions += self._ended(bindings)
        shared = [
            f"var<workgroup> queries_of: array<vec4<f32>, {plan.rows * plan.vec4s}>;",
            f"var<workgroup> added: array<vec4<f32>, {min(ROWS_ADDED, plan.rows) * THREADS}>;",
            f"var<workgroup> products: array<f32, {plan.rows * THREADS}>;",
            f"var<workgroup> powers: array<f32, {plan.rows * PITCH}>;",
            *(f"var<workgroup> {name}: array<f32, {plan.rows}>;" for name in ("highest", "factors", "totals", "worst")),
        ]
        body = [*self._begin(), *self._tiles(), *self._finish()]
        main, workgroups = workgroup_entry_point(plan.matrices * plan.blocks * plan.parts, THREADS, body)
        reads = [*lengths, *own, *bindings]
        label = self._label if plan.parts == 1 else f"{self._label} (parts)"
        self._lowering.emit(bound_kernel(label, reads, [(target, "o", kind)], [*shared, *functions, main], workgroups))

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
            functions.append(self._scalars("bias", bias, bindings))
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
        query = f"min(block * {plan.rows}u + item / {plan.vec4s}u, {plan.queries - 1}u)"
        source = f"(matrix * {plan.queries}u + {query}) * {plan.vec4s}u + item % {plan.vec4s}u"
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
            f"for (var item = t; item < {plan.rows * plan.vec4s}u; item += {THREADS}u) {{",
            f"  queries_of[item] = queries[{source}];",
            "}",
            f"if (t < {plan.rows}u) {{ highest[t] = {LOWEST}; totals[t] = 0.0; worst[t] = 0.0; }}",
            f"let base = matrix * {plan.capacity * plan.vec4s}u;",
            f"let d = t % {plan.vec4s}u;",
            f"let sharer = t / {plan.vec4s}u;",
            *(f"var c{row} = vec4<f32>();" for row in range(plan.rows)),
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
                functions.append(self._scalars("sink", sink, bindings))
                share = f"sink_at({head})"
            lines += [
                f"let sink = {share};",
                "let most = max(sink, highest);",
                "let factor = power(highest - most);",
                "divisor = fma(total, factor, power(sink - most));",
                "scaled = sum * factor;",
                f"is_nan = is_nan || is_bad(sink) || !is_within(matrix / {plan.key_heads}u);",
            ]
        values = [f"result.{component}" for component in COMPONENTS]
        position = f"matrix / {plan.key_heads}u * {plan.new}u + query / {plan.groups}u"
        text = "\n  ".join(lines)
        functions.append(f"""fn finish(
  matrix: u32, query: u32, part: u32, sum: vec4<f32>, highest: f32, total: f32, is_worst: bool
) {{
  {text}
  let result = select(scaled / divisor, vec4<f32>({NOT_A_NUMBER}), is_nan || divisor <= 0.0);
  o[(({position}) * {plan.heads}u + {head}) * {plan.vec4s}u + part] = {self._element.pack(values)};
}}""")
        return functions

    def _emit_sum(self, sums: Buffer) -> None:
        """Emit the kernel that adds up parts, a workgroup for each query."""
        plan, bindings = self._plan, Bindings("r")
        lengths, function = self._lengths()
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
