"""The kernels that copy a cache and write new rows into it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from webnn_py.core.graph import Value
from webnn_py.devices.wgpu.codegen.attention.cached_node import ROWS, CachedNode
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.devices.wgpu.codegen.module import Binding, Bindings, bound_kernel
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH


def emit_copies(own: CachedNode) -> None:
    """Copy what is before the new rows, unless it is there already; behind them is 0."""
    for name, present in zip(("past_key", "past_value"), own.presents, strict=True):
        past = own.node.operands.get(name)
        _emit_copy(own, past if isinstance(past, Value) else None, present)


def _emit_copy(own: CachedNode, past: Value | None, present: Buffer) -> None:
    kind = own.element.vec4
    reads, functions = own.lengths()
    lines = [f"let row = four / {own.vec4s}u;", f"let place = row % {own.capacity}u;", f"var x = {kind}();"]
    is_in_place = False
    if past is not None:
        source, length = own.lowering.dense(past), past.descriptor.shape[2]
        at = f"(row / {own.capacity}u * {length}u + place) * {own.vec4s}u + four % {own.vec4s}u"
        is_there = f"i32(place) < min(begin_of(row / {own.key_heads * own.capacity}u), {length})"
        lines.append(f"if ({is_there}) {{ x = past[{at}]; }}")
        reads.insert(0, (source, "past", kind))
        is_in_place = length == own.capacity and source.kind == "input" and present.kind == "output"
    count = own.matrices * own.capacity * own.size
    main, workgroups = vec4_entry_point(count, [*lines, "o[four] = x;"])
    kernel = bound_kernel(f"{own.label} (copy)", reads, [(present, "o", kind)], [functions], workgroups, main)
    own.lowering.emit(attrs.evolve(kernel, copies=is_in_place))


def emit_rows(own: CachedNode, queries: Buffer) -> None:
    """Turn queries and new keys by their angles, scale the queries, and write the others into the caches."""
    targets = dict(zip(ROWS, (queries, *own.presents), strict=True))
    bindings = Bindings("r")
    own.functions(ROWS, bindings)
    if own.fits(bindings, len(targets)):
        _emit_rows(own, targets)
        return
    for name, target in targets.items():
        _emit_rows(own, {name: target})


def _emit_rows(own: CachedNode, targets: Mapping[str, Buffer]) -> None:
    bindings = Bindings("r")
    lengths, function = own.lengths()
    functions, lines, first = [function, *own.functions([*targets], bindings)], [], 0
    for name in targets:
        heads = own.heads_of(name)
        count = own.batch * own.new * heads * own.vec4s
        lines += [
            f"{'else ' if first else ''}if (four < {first + count}u) {{",
            f"  let item = four - {first}u;",
            f"  let part = item % {own.vec4s}u;",
            f"  let head = item / {own.vec4s}u % {heads}u;",
            f"  let i = item / {own.vec4s * heads}u % {own.new}u;",
            f"  let sample = item / {own.vec4s * heads * own.new}u;",
            f"  let x = {name}_row(sample, i, head, part);",
            f"  {_store_row(own, name)}",
            "}",
        ]
        first += count
    main, workgroups = vec4_entry_point(first * WIDTH, lines)
    kinds = {"q": "vec4<f32>", "k": own.element.vec4, "v": own.element.vec4}
    writes: list[Binding] = [(target, f"{name}_rows", kinds[name]) for name, target in targets.items()]
    reads = [*lengths, *bindings]
    own.lowering.emit(bound_kernel(f"{own.label} (rows)", reads, writes, [*functions, main], workgroups))


def _store_row(own: CachedNode, name: str) -> str:
    """Return the statement that stores a vec4, ``x``."""
    if name == "q":
        matrix = f"sample * {own.key_heads}u + head / {own.groups}u"
        row = f"({matrix}) * {own.queries}u + i * {own.groups}u + head % {own.groups}u"
        return f"q_rows[({row}) * {own.vec4s}u + part] = x;"
    row = f"(sample * {own.key_heads}u + head) * {own.capacity}u + u32(begin_of(sample)) + i"
    return f"if (is_within(sample)) {{ {name}_rows[({row}) * {own.vec4s}u + part] = {own.packed('x')}; }}"
