"""Attention to a cache of fixed capacity, of which only the keys that are there, and that queries see, are read.

Before the kernel of attention, queries and keys are turned by their angles, and the new keys and values are written
into the caches: by the workgroups whose part they are in, or, where these have not all queries of a matrix, by a kernel
of its own. How many keys there are is read on the GPU: the workgroups are as many as a full cache needs, each of which
takes an equal part of the keys that are there, and ends at once where there are too few.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.devices.wgpu.codegen.attention.cached_node import ROWS, CachedNode
from webnn_py.devices.wgpu.codegen.attention.cached_rows import emit_copies, emit_rows
from webnn_py.devices.wgpu.codegen.attention.emit import emit_kernels
from webnn_py.devices.wgpu.codegen.attention.kernel import NAN_MARK
from webnn_py.devices.wgpu.codegen.attention.operands import INVERSE, AttentionMatrix, AttentionOperands
from webnn_py.devices.wgpu.codegen.attention.tile import AttentionShape, AttentionTile, choose_tile
from webnn_py.devices.wgpu.codegen.epilogue import EpilogueCode
from webnn_py.devices.wgpu.codegen.module import Bindings
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH, literal
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering

MOST_SIZE: Final = 512
"""The most elements of a head, for which a tile fits every adapter."""

GROUPS_PER_PROCESSOR: Final = 2
"""The workgroups per processor up to which keys are split among more."""

INVERSE_WITH_SINK: Final = """fn inverse_with_sink(highest: f32, total: f32, sink: f32) -> f32 {
  let most = max(sink, highest);
  let scale = power(highest - most);
  let factor = scale / fma(total, scale, power(sink - most));
  return bitcast<f32>(select(bitcast<u32>(factor), 0x7fc00000u, total < 0.0 || is_bad(highest) || is_bad(sink)));
}
fn is_bad(x: f32) -> bool {
  let bits = bitcast<u32>(x);
  return bits == 0x7f800000u || (bits & 0x7fffffffu) > 0x7f800000u;
}"""
"""The factor of a row's sums where a sink takes a share: NaN if a score, or the sink, is NaN or ∞."""


def has_kernels(node: Node) -> bool:
    """Return whether the kernels are for a node: rows of caches are some whole vec4s."""
    return node.outputs[1].shape[3] % WIDTH == 0 and node.outputs[1].shape[3] <= MOST_SIZE


def emit_cached_attention(lowering: Lowering, node: Node) -> None:
    """Emit the kernels of a node for which :func:`has_kernels` holds."""
    own = CachedNode.from_node(lowering, node)
    emit_copies(own)
    tile = cached_tile(own)
    operands = CachedOperands.from_node(own, tile, None)
    if not operands.can_prepare():
        queries = Buffer("block", own.matrices * own.queries * own.size * 4)
        emit_rows(own, queries)
        operands = CachedOperands.from_node(own, tile, queries)
    emit_kernels(lowering, operands, lambda: _end(own), own.label)


def cached_tile(own: CachedNode) -> AttentionTile:
    """Return the tile of a workgroup, with keys split into as many parts as keep the GPU busy."""
    is_float16 = own.node.outputs[0].data_type == "float16"
    shape = AttentionShape(own.matrices, own.queries, own.capacity, own.size, own.size, is_float16)
    tile = choose_tile(shape, own.lowering.features)
    assert tile is not None  # noqa: S101 - there is one for each size up to MOST_SIZE
    wanted = GROUPS_PER_PROCESSOR * own.lowering.features.processors // tile.groups
    return attrs.evolve(tile, splits=max(1, min(wanted, tile.steps)))


def _end(own: CachedNode) -> EpilogueCode:
    """Return the function that stores results: heads side by side in the row of a position."""
    by_matrices = Layout.dense((own.batch, own.new, own.key_heads, own.groups, own.size)).permute((0, 2, 1, 3, 4))
    place = by_matrices.vec4s()
    assert place is not None  # noqa: S101 - heads are whole vec4s
    text = f"fn finish(four: u32, sums: vec4<f32>) {{ o[{place.index('four')}] = {own.packed('sums')}; }}"
    return EpilogueCode([(own.output, "o", own.element.vec4)], [], text)


@attrs.frozen
class CachedOperands(AttentionOperands):
    """The operands of attention to a cache.

    Attributes:
        own: the node.
    """

    own: CachedNode

    @classmethod
    def from_node(cls, own: CachedNode, tile: AttentionTile, queries: Buffer | None) -> CachedOperands:
        """Return the operands, with queries that are turned and scaled already; without them new rows are written."""
        names = ("keys", "values")
        lengths, _ = own.lengths()
        shape = (own.matrices, own.capacity, own.size)
        arrays = ("", "") if queries is not None else names
        keys, values = (
            AttentionMatrix.dense(buffer, own.element, shape, array)
            for buffer, array in zip(own.presents, arrays, strict=True)
        )
        if queries is None:
            writes = [(buffer, name, own.element.vec4) for buffer, name in zip(own.presents, names, strict=True)]
            return cls(tile, None, keys, values, False, lengths, writes, own)
        floats = own.lowering.features.element("float32")
        rows = AttentionMatrix.dense(queries, floats, (own.matrices, own.queries, own.size))
        return cls(tile, rows, keys, values, False, lengths, (), own)

    def can_prepare(self) -> bool:
        """Return whether a workgroup has all queries of a matrix, which see all new keys, and can bind all that."""
        own, tile, bindings = self.own, self.tile, Bindings("r")
        self.score_functions(bindings)
        written = 1 if tile.splits == 1 else 2
        if tile.splits == 1:
            self.end_functions(bindings)
        has_all = tile.blocks == 1 and own.queries * own.vec4s <= tile.staged
        return has_all and own.node.options["is_causal"] and own.fits(bindings, len(own.presents) + written)

    @property
    def bound(self) -> str:
        """The end of the part's keys."""
        return "end"

    def range_functions(self) -> list[str]:
        """Return the functions that tell the keys of a block of queries: their range, and the length of a part."""
        own, tile = self.own, self.tile
        _, lengths = own.lengths()
        last = f"(min(block * {tile.rows}u + {tile.rows}u, {own.queries}u) - 1u) / {own.groups}u"
        stop, start = "lasts[sample] + 1", "0"
        if own.node.options["is_causal"]:
            stop = f"begin_of(sample) + i32({last}) + 1"
            window = own.node.options["window"]
            first = f"begin_of(sample) + i32(block * {tile.rows}u / {own.groups}u)"
            start = f"max(0, {first} + {1 - window})" if window else "0"
        each = f"(max(stop - start, 1) + {tile.splits - 1}) / {tile.splits}"
        return [
            lengths,
            f"""fn start_of(sample: u32, block: u32) -> i32 {{ return {start}; }}
fn stop_of(sample: u32, block: u32) -> i32 {{ return select(0, {stop}, is_within(sample)); }}
fn length_of(start: i32, stop: i32) -> i32 {{ return ({each} + {tile.keys - 1}) / {tile.keys} * {tile.keys}; }}""",
        ]

    def score_functions(self, bindings: Bindings) -> list[str]:
        """Return the function of scores; and those of queries, and of new keys and values, that are not prepared."""
        own, functions, lines = self.own, [], []
        options, bias = own.node.options, own.node.operands.get("bias")
        if options["softcap"]:
            cap = literal(options["softcap"], "f32")
            lines.append(f"s = tanh_f32(s / {cap}) * {cap};")
        if isinstance(bias, Value):
            functions.append(own.scalars("bias", bias, bindings))
            length = bias.descriptor.shape[3]
            row = f"{self._bias_matrix(bias)} * {own.new}u + query / {own.groups}u"
            lines.append(f"if (key < {length}u) {{ s += bias_at(({row}) * {length}u + key); }}")
        is_seen = "true"
        if options["is_causal"]:
            lines.append(f"let last = begin + query / {own.groups}u;")
            is_seen = f"key <= last && key + {options['window']}u > last" if options["window"] else "key <= last"
        text = "\n  ".join(lines)
        functions.append(f"""var<workgroup> range: array<vec4<i32>, 1>;
fn score(batch: u32, query: u32, key: u32, begin: u32, product: f32) -> f32 {{
  var s = product;
  {text}
  return select(lowest(), s, {is_seen});
}}""")
        return [*functions, *(own.functions(ROWS, bindings) if self.queries is None else [])]

    def _bias_matrix(self, bias: Value) -> str:
        """Return the number of a query's matrix of biases, which samples or heads may share."""
        outer, inner, *_ = bias.descriptor.shape
        sample = f"batch / {self.own.key_heads}u"
        if inner == 1:
            return sample if outer > 1 else "0u"
        return f"({sample} * {inner}u + {self._head()})" if outer > 1 else f"({self._head()})"

    def _head(self) -> str:
        """Return the head of a query."""
        own = self.own
        return f"batch % {own.key_heads}u * {own.groups}u + query % {own.groups}u"

    def begin(self) -> list[str]:
        """Return the range of keys of a part, of which there may be none; and write new rows."""
        # Loops with barriers end by these: in a buffer that is bound for writing, they may differ for compilers.
        found = "vec4<i32>(begin_of(sample), start_of(sample, block), stop_of(sample, block), 0)"
        return [
            f"let sample = batch / {self.own.key_heads}u;",
            f"if (t == 0u) {{ range[0] = {found}; }}",
            "let range_of = workgroupUniformLoad(&range[0]);",
            "let begin = u32(range_of.x);",
            "let length = u32(length_of(range_of.y, range_of.z));",
            "let start = u32(range_of.y) + part * length;",
            "let end = min(start + length, u32(range_of.z));",
            *(["if (start >= end) { return; }"] if self.tile.splits > 1 else []),
            *(self._prepare() if self.queries is None else []),
        ]

    def _prepare(self) -> list[str]:
        """Turn the queries, all of which a workgroup has, and write those new rows that are in its part."""
        own, threads = self.own, self.tile.threads
        key_head = f"batch % {own.key_heads}u"
        return [
            f"for (var item = t; item < {own.queries * own.vec4s}u; item += {threads}u) {{",
            f"  let query = item / {own.vec4s}u;",
            f"  brought[item] = q_row(sample, query / {own.groups}u, {self._head()}, item % {own.vec4s}u);",
            "}",
            f"for (var item = t; item < {own.new * own.vec4s}u; item += {threads}u) {{",
            f"  let place = begin + item / {own.vec4s}u;",
            "  if (place >= start && place < end) {",
            f"    let at = k_base + place * {own.vec4s}u + item % {own.vec4s}u;",
            *(
                f"    let {name} = {name}_row(sample, item / {own.vec4s}u, {key_head}, item % {own.vec4s}u);"
                for name in ("k", "v")
            ),
            f"    keys[at] = {own.packed('k')};",
            f"    values[at] = {own.packed('v')};",
            "  }",
            "}",
            "storageBarrier();",
            "workgroupBarrier();",
        ]

    def count(self) -> tuple[list[str], str]:
        """Return the number of parts with keys that a query may see."""
        lines = [
            f"let sample = batch / {self.own.key_heads}u;",
            f"let start = start_of(sample, row / {self.tile.rows}u);",
            f"let stop = stop_of(sample, row / {self.tile.rows}u);",
            "let length = length_of(start, stop);",
            "let count = u32((max(stop - start, 0) + length - 1) / length);",
        ]
        return lines, "count"

    def score(self, product: str, row: str, key: str, terms: list[str]) -> str:
        """Return a score, -∞ for keys that the query does not see."""
        return f"score(batch, {row}, {key}, begin, {product})"

    @property
    def _has_sink(self) -> bool:
        """True if something besides the keys takes a share of the probability."""
        return "sink" in self.own.node.operands or self.own.node.options["is_smooth"]

    def end_functions(self, bindings: Bindings) -> list[str]:
        """Return the function of the factor of a row, and of its sink."""
        if not self._has_sink:
            return [INVERSE]
        sink = self.own.node.operands.get("sink")
        return [*([self.own.scalars("sink", sink, bindings)] if isinstance(sink, Value) else []), INVERSE_WITH_SINK]

    def factor(self, bindings: Bindings, row: str, highest: str, total: str) -> list[str]:
        """Return the inverse of the total, to which a sink is added; NaN for a sample that the cache cannot hold."""
        if not self._has_sink:
            return [f"let factor = inverse_of({highest}, {total});"]
        has_own = isinstance(self.own.node.operands.get("sink"), Value)
        found = f"select({NAN_MARK}, {total}, is_within(batch / {self.own.key_heads}u))"
        sink = f"sink_at({self._head()})" if has_own else "0.0"
        return [f"let query = {row};", f"let factor = inverse_with_sink({highest}, {found}, {sink});"]
