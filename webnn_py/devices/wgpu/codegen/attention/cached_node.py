"""The lengths of caches, and the rows of queries, keys and values that a node adds to them, as functions of WGSL."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.devices.wgpu.codegen.module import Binding, Bindings
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH, Element, compute_type, literal
from webnn_py.devices.wgpu.records.lowering import Lowering

ROWS = ("q", "k", "v")
"""The names of the functions of queries, keys and values, before ``_row``."""


@attrs.frozen
class CachedNode:
    """A node, its sizes, and the functions of WGSL that several of its kernels have.

    A matrix is the keys, or values, of a sample and a key head. Its queries are those of all heads that share them: of
    each new position those of all its heads, one behind the other.

    Attributes:
        lowering: the lowering.
        node: the node.
        output: where its output is written.
        presents: where its keys and values are written.
        batch: the number of samples.
        new: the new positions of each.
        heads: the heads of queries.
        key_heads: the heads of keys and values.
        size: the elements of a head.
        capacity: the positions of a cache.
    """

    lowering: Lowering
    node: Node
    output: Buffer
    presents: tuple[Buffer, Buffer]
    batch: int
    new: int
    heads: int
    key_heads: int
    size: int
    capacity: int

    @classmethod
    def from_node(cls, lowering: Lowering, node: Node) -> CachedNode:
        """Return a node with its targets and sizes."""
        output, key, value = (lowering.target(result) for result in node.results)
        batch, key_heads, capacity, size = node.outputs[1].shape
        new, heads = node.outputs[0].shape[1], node.options["num_heads"]
        return cls(lowering, node, output, (key, value), batch, new, heads, key_heads, size, capacity)

    @property
    def groups(self) -> int:
        """The heads of queries that share a head of keys."""
        return self.heads // self.key_heads

    @property
    def matrices(self) -> int:
        """The matrices of keys."""
        return self.batch * self.key_heads

    @property
    def queries(self) -> int:
        """The queries of a matrix."""
        return self.new * self.groups

    @property
    def vec4s(self) -> int:
        """The vec4s of a head."""
        return self.size // WIDTH

    @property
    def element(self) -> Element:
        """The storage of its floats."""
        return self.lowering.element(self.node.results[0])

    @property
    def label(self) -> str:
        """The label of its kernels."""
        return f"groupQueryAttention {self.node.outputs[0].data_type}"

    def packed(self, name: str) -> str:
        """Return a vec4 of floats as it is stored."""
        return self.element.pack([f"{name}.{component}" for component in COMPONENTS])

    def fits(self, bindings: Bindings, others: int) -> bool:
        """Return whether a kernel can bind these, the lengths, and so many other buffers."""
        lengths, _ = self.lengths()
        buffers = {buffer for buffer, *_ in (*lengths, *bindings)}
        return len(buffers) + others <= self.lowering.features.max_storage_buffers

    def lengths(self) -> tuple[list[Binding], str]:
        """Return the bindings of lengths, and the functions of a sample that tell where its new keys begin."""
        lasts, total = (self.lowering.dense(self.node.value(name)) for name in ("last_positions", "total_length"))
        new, capacity = self.new, self.capacity
        is_same = lasts is total  # one element for both
        reads: list[Binding] = [(lasts, "lasts", "i32")] + ([] if is_same else [(total, "total", "i32")])
        name = "lasts" if is_same else "total"
        text = f"""fn is_first() -> bool {{ return {name}[0] == {new}; }}
fn begin_of(sample: u32) -> i32 {{ return select(lasts[sample] + {1 - new}, 0, is_first()); }}
fn is_within(sample: u32) -> bool {{
  let begin = begin_of(sample);
  return begin >= 0 && begin <= {capacity - new} && lasts[sample] < {capacity} && {name}[0] <= {capacity};
}}"""
        return reads, text

    def scalars(self, name: str, value: Value, bindings: Bindings) -> str:
        """Return the function ``name_at`` of the row-major index of an operand's element."""
        element, place = self.lowering.element(value), self.lowering.place(value)
        load = element.load(bindings.name(place.buffer, element.one), place.layout.index("i"))
        return f"fn {name}_at(i: u32) -> {element.compute} {{ return {load}; }}"

    def heads_of(self, name: str) -> int:
        """Return the number of heads of queries, or of keys and values."""
        return self.heads if name == "q" else self.key_heads

    def functions(self, names: Sequence[str], bindings: Bindings) -> list[str]:
        """Return functions such as ``q_row(sample, i, head, part)``, which give a vec4 of a head.

        Queries are scaled, and these and keys are turned by their angles.
        """
        turns = "cosines" in self.node.operands
        functions = self._angles(bindings) if turns and {*names} != {"v"} else []
        for name in names:
            value, width, first = self._source(name)
            functions.append(self.scalars(f"new_{name}", value, bindings))
            element, prepare = f"new_{name}_at(base + e + {{}}u)", ""
            if turns and name != "v":
                functions.append(self._turned(name))
                element, prepare = f"{name}_turned(base, e + {{}}u, angle)", "\n  let angle = angle_of(sample, i);"
            scale = literal(self.node.options["scale"] or 1 / math.sqrt(self.size), "f32")
            values = ", ".join(element.format(component) for component in range(WIDTH))
            functions.append(f"""fn {name}_row(sample: u32, i: u32, head: u32, part: u32) -> vec4<f32> {{
  let base = (sample * {self.new}u + i) * {width}u + {first}u + head * {self.size}u;
  let e = part * {WIDTH}u;{prepare}
  return vec4<f32>({values}){f" * {scale}" if name == "q" else ""};
}}""")
        return functions

    def _source(self, name: str) -> tuple[Value, int, int]:
        """Return the operand with queries, keys or values, the elements of its rows, and where these begin in one."""
        widths = [self.heads_of(item) * self.size for item in ROWS]
        index = ROWS.index(name)
        if "key" in self.node.operands:
            return self.node.value(("query", "key", "value")[index]), widths[index], 0
        return self.node.value("query"), sum(widths), sum(widths[:index])

    def _angles(self, bindings: Bindings) -> list[str]:
        """Return the functions that load cosines and sines, and the one that tells where those of a position are."""
        node = self.node
        count = node.value("cosines").descriptor.shape[0]
        functions = [self.scalars(name, node.value(f"{name}s"), bindings) for name in ("cosine", "sine")]
        positions = node.operands.get("positions")
        if not isinstance(positions, Value):
            found = f"position_i32(begin_of(sample) + i32(i), {count}u)"
        else:
            functions.append(self.scalars("position", positions, bindings))
            kind = compute_type(positions.descriptor.data_type)
            own = f"position_at(sample * {self.new}u + i)"
            found = f"position_{kind}(select({own}, position_at(0u) + {kind}(i), is_first()), {count}u)"
        functions.append(f"fn angle_of(sample: u32, i: u32) -> u32 {{ return {found}; }}")
        return functions

    def _turned(self, name: str) -> str:
        """Return the function of an element of a head after its turn."""
        half = self.node.value("cosines").descriptor.shape[1]
        if self.node.options["is_interleaved"]:
            places = "let angle = e / 2u; let is_real = e % 2u == 0u; let other = e ^ 1u;"
        else:
            places = (
                f"let angle = e % {half}u; let is_real = e < {half}u; "
                f"let other = select(e - {half}u, e + {half}u, is_real);"
            )
        return f"""fn {name}_turned(base: u32, e: u32, place: u32) -> f32 {{
  let x = new_{name}_at(base + e);
  if (e >= {2 * half}u) {{ return x; }}
  {places}
  let y = new_{name}_at(base + other) * sine_at(place * {half}u + angle);
  let turned = x * cosine_at(place * {half}u + angle);
  return select(turned + y, turned - y, is_real);
}}"""
