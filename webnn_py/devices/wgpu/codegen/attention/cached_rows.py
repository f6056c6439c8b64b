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
    plan, kind = own.plan, own.element.vec4
    reads, functions = own.lengths()
    lines = [f"let row = four / {plan.vec4s}u;", f"let place = row % {plan.capacity}u;", f"var x = {kind}();"]
    is_in_place = False
    if past is not None:
        source, length = own.lowering.dense(past), past.descriptor.shape[2]
        at = f"(row / {plan.capacity}u * {length}u + place) * {plan.vec4s}u + four % {plan.vec4s}u"
        is_there = f"i32(place) < min(begin_of(row / {plan.key_heads * plan.capacity}u), {length})"
        lines.append(f"if ({is_there}) {{ x = past[{at}]; }}")
        reads.insert(0, (source, "past", kind))
        is_in_place = length == plan.capacity and source.kind == "input" and present.kind == "output"
    count = plan.matrices * plan.capacity * plan.size
    main, workgroups = vec4_entry_point(count, [*lines, "o[four] = x;"])
    kernel = bound_kernel(f"{own.label} (copy)", reads, [(present, "o", kind)], [functions], workgroups, main)
    own.lowering.emit(attrs.evolve(kernel, copies=is_in_place))


def emit_rows(own: CachedNode, queries: Buffer) -> None:
    """Turn queries and new keys by their angles, scale the queries, and write the others into the caches."""
    targets = dict(zip(ROWS, (queries, *own.presents), strict=True))
    bindings = Bindings("r")
    own.functions(ROWS, bindings)
    if own.fits(bindings, targets.values()):
        _emit_rows(own, targets)
        return
    for name, target in targets.items():
        _emit_rows(own, {name: target})


def _emit_rows(own: CachedNode, targets: Mapping[str, Buffer]) -> None:
    plan, bindings = own.plan, Bindings("r")
    lengths, function = own.lengths()
    functions, lines, first = [function, *own.functions([*targets], bindings)], [], 0
    for name in targets:
        heads = own.heads(name)
        count = plan.batch * plan.new * heads * plan.vec4s
        lines += [
            f"{'else ' if first else ''}if (four < {first + count}u) {{",
            f"  let item = four - {first}u;",
            f"  let part = item % {plan.vec4s}u;",
            f"  let head = item / {plan.vec4s}u % {heads}u;",
            f"  let i = item / {plan.vec4s * heads}u % {plan.new}u;",
            f"  let sample = item / {plan.vec4s * heads * plan.new}u;",
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
    plan = own.plan
    if name == "q":
        matrix = f"sample * {plan.key_heads}u + head / {plan.groups}u"
        row = f"({matrix}) * {plan.queries}u + i * {plan.groups}u + head % {plan.groups}u"
        return f"q_rows[({row}) * {plan.vec4s}u + part] = x;"
    row = f"(sample * {plan.key_heads}u + head) * {plan.capacity}u + u32(begin_of(sample)) + i"
    return f"if (is_within(sample)) {{ {name}_rows[({row}) * {plan.vec4s}u + part] = {own.packed('x')}; }}"
