"""GEMV kernels: products of a matrix and a few vectors, limited by the bandwidth at which the matrix is read.

The matrix is the operand with the long outer axis; the other has at most :data:`MOST_VECTORS` vectors. Where the outer
axis of the matrix is contiguous ("across"), an invocation computes a vec4 of that axis over a part of the inner axis.
Where the inner axis is contiguous ("along"), adjacent invocations share an index of the outer axis. In both cases, the
workgroup reduces the sums at the end.
"""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue, EpilogueCode, emit_split_k_sum
from webnn_py.devices.wgpu.codegen.gemm.gemv_plan import MOST_ADDED, THREADS, GemvPlan
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.operand_loader import bound
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.lowering import Lowering


def emit_gemv(lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> None:
    """Emit the kernels of a product for which :func:`.is_gemv` holds."""
    plan = GemvPlan.of(product, lowering.features)
    stores = plan.stores_vec4s or epilogue.stores_single_elements
    if stores:
        end = epilogue.write(vec4s=plan.stores_vec4s)
        lowering.emit(_kernel(plan, end, epilogue.label))
        return
    sums = Buffer("block", epilogue.padded_count * 4)
    end = EpilogueCode([(sums, "sums", "vec4<f32>" if plan.stores_vec4s else "f32")])
    lowering.emit(_kernel(plan, end, f"{epilogue.label} (sums)"))
    emit_split_k_sum(lowering, epilogue, sums, 1)


def _kernel(plan: GemvPlan, end: EpilogueCode, label: str) -> Kernel:
    """Return the kernel; ``m`` are elements of the matrix, ``v`` those of the vectors, and ``c`` the sums."""
    tiles = -(-plan.matrix.outer // plan.per_group)
    lines = [
        f"let outer0 = number % {tiles}u * {plan.per_group}u;",
        f"let batch = number / {tiles}u;",
        *plan.matrix.begin("matrix"),
        *plan.vectors.begin("vectors"),
        *(_along(plan, end) if plan.is_along else _across(plan, end)),
    ]
    vector = "f32" if plan.is_along or plan.unit == 1 else "vec4<f32>"
    room = plan.vectors.outer
    room = room if plan.is_along else min(room, plan.added_at_once)
    reads, functions = bound({"matrix": plan.matrix, "vectors": plan.vectors}, "f32")
    parts = [f"var<workgroup> sums_of: array<{vector}, {room * plan.threads}>;", *functions]
    main, workgroups = workgroup_entry_point(tiles * plan.product.batch, plan.threads, lines)
    return end.kernel(label, reads, parts, main, workgroups)


def _vectors(plan: GemvPlan, step: str, tag: str = "") -> list[str]:
    """Load the vec4 ``step`` of every vector as ``v``, zero-padded beyond the end."""
    vectors = plan.vectors
    lines = []
    for index in range(vectors.outer):
        base = f"vectors_base + {index * vectors.outer_stride // (WIDTH if vectors.pattern == 'transposed' else 1)}u"
        if vectors.pattern == "transposed":
            lines.append(f"let v{tag}{index} = vectors_at({base} + {vectors.along(f'{step} * {WIDTH}u')});")
            continue
        values = [_checked(f"vectors_at({base} + {{}})", vectors, step, component) for component in range(WIDTH)]
        lines.append(f"let v{tag}{index} = vec4<f32>({', '.join(values)});")
    return lines


def _checked(read: str, source: MatrixLoader, step: str, component: int) -> str:
    """Return one element of a vec4 along the inner axis; zero beyond the end."""
    inner, size = f"{step} * {WIDTH}u + {component}u", source.inner
    if size % WIDTH == 0:
        return read.format(source.along(inner))
    return f"select(0.0, {read.format(source.along(f'min({inner}, {size - 1}u)'))}, {inner} < {size}u)"


# --- the outer axis is contiguous ----------------------------------------------------------------------------


def _across(plan: GemvPlan, end: EpilogueCode) -> list[str]:
    kind = "f32" if plan.unit == 1 else "vec4<f32>"
    last = plan.matrix.outer - plan.unit
    place = f"o * {plan.matrix.outer_stride}u" if plan.unit == 1 else f"o / {plan.unit}u"
    lines = [
        f"let mine = t % {plan.side}u;",
        f"let o = min(outer0 + mine * {plan.unit}u, {last}u);",
        f"let place = matrix_base + {place};",
        *(f"var {name} = {kind}();" for name in _sums_across(plan)),
    ]
    first = f"t / {plan.side}u"
    if plan.unrolled == 1:
        lines.append(f"for (var step = {first}; step < {plan.steps}u; step += {plan.sharers}u) {{")
    else:
        lines += [f"var step = {first};", *_across_unrolled(plan, kind)]
        lines.append(f"for (; step < {plan.steps}u; step += {plan.sharers}u) {{")
    return [*lines, *_read_across(plan, kind, "step"), *_multiply_across(plan, kind), "}", *_add_across(plan, end)]


def _across_unrolled(plan: GemvPlan, kind: str) -> list[str]:
    """Return the unrolled loop, which loads several steps before it multiplies any."""
    tags = [f"{'abcd'[turn]}_" for turn in range(plan.unrolled)]
    reach = (plan.unrolled - 1) * plan.sharers
    lines = [f"for (; step + {reach}u < {plan.steps}u; step += {plan.unrolled * plan.sharers}u) {{"]
    for turn, tag in enumerate(tags):
        lines += [
            f"  let step_{tag} = step + {turn * plan.sharers}u;",
            *_read_across(plan, kind, f"step_{tag}", tag),
        ]
    for tag in tags:
        lines += _multiply_across(plan, kind, tag)
    return [*lines, "}"]


def _read_across(plan: GemvPlan, kind: str, step: str, tag: str = "") -> list[str]:
    """Load a step of the matrix and of the vectors."""
    lines = [f"  {line}" for line in _vectors(plan, step, tag)]
    for component in range(WIDTH):
        inner = f"min({step} * {WIDTH}u + {component}u, {plan.matrix.inner - 1}u)"
        inner = f"{step} * {WIDTH}u + {component}u" if plan.matrix.inner % WIDTH == 0 else inner
        value = f"matrix_at(place + {plan.matrix.along(inner)})"
        if plan.matrix.inner % WIDTH:
            value = f"select({kind}(), {value}, {step} * {WIDTH}u + {component}u < {plan.matrix.inner}u)"
        lines.append(f"  let m{tag}{component} = {value};")
    return lines


def _multiply_across(plan: GemvPlan, kind: str, tag: str = "") -> list[str]:
    lines = []
    for index, name in enumerate(_sums_across(plan)):
        for component in range(WIDTH):
            factor = f"{kind}(v{tag}{index}.{COMPONENTS[component]})"
            lines.append(f"  {name} = fma(m{tag}{component}, {factor}, {name});")
    return lines


def _sums_across(plan: GemvPlan) -> list[str]:
    return [f"c{index}" for index in range(plan.vectors.outer)]


def _add_across(plan: GemvPlan, end: EpilogueCode) -> list[str]:
    lines = []
    names = _sums_across(plan)
    for first in range(0, len(names), plan.added_at_once):
        some = names[first : first + plan.added_at_once]
        if first:
            lines.append("workgroupBarrier();")
        lines += [f"sums_of[{number * plan.threads}u + t] = {name};" for number, name in enumerate(some)]
        lanes = plan.sharers
        while plan.threads > THREADS and lanes > MOST_ADDED:
            lanes //= 2
            lines += ["workgroupBarrier();", f"if (t < {lanes * plan.side}u) {{"]
            for number in range(len(some)):
                at = f"{number * plan.threads}u + t"
                lines.append(f"  sums_of[{at}] += sums_of[{at} + {lanes * plan.side}u];")
            lines.append("}")
        lines += [
            "workgroupBarrier();",
            f"for (var item = t; item < {len(some) * plan.side}u; item += {plan.threads}u) {{",
            f"  let first = item / {plan.side}u * {plan.threads}u + item % {plan.side}u;",
            "  var total = sums_of[first];",
            f"  for (var lane = 1u; lane < {lanes}u; lane++) {{",
            f"    total += sums_of[first + lane * {plan.side}u];",
            "  }",
            f"  let v = {first}u + item / {plan.side}u;",
            f"  let o = outer0 + item % {plan.side}u * {plan.unit}u;",
            f"  if (o < {plan.matrix.outer}u) {{",
        ]
        if plan.stores_vec4s:
            lines.append("    " + _store(plan, end, "finish", "v", "o", "total", WIDTH))
        elif plan.unit > 1:
            for component in range(WIDTH):
                lines.append(
                    "    "
                    + _store(plan, end, "finish_one", "v", f"(o + {component}u)", f"total.{COMPONENTS[component]}", 1)
                )
        else:
            lines.append("    " + _store(plan, end, "finish_one", "v", "o", "total", 1))
        lines += ["  }", "}"]
    return lines


# --- the inner axis is contiguous ----------------------------------------------------------------------------


def _along(plan: GemvPlan, end: EpilogueCode) -> list[str]:
    unit = WIDTH if plan.matrix.pattern == "transposed" else 1
    stride = plan.matrix.outer_stride // unit
    sums = range(plan.vectors.outer)
    outer = f"min(outer0 + t / {plan.sharers}u, {plan.matrix.outer - 1}u)"
    lines = [
        f"let lane = t % {plan.sharers}u;",
        f"let place = matrix_base + {outer} * {stride}u;",
        *(f"var c{index} = vec4<f32>();" for index in sums),
        f"for (var step = lane; step < {plan.steps}u; step += {plan.sharers}u) {{",
        *(f"  {line}" for line in _vectors(plan, "step")),
    ]
    if unit == WIDTH:
        value = f"matrix_at(place + {plan.matrix.along(f'step * {WIDTH}u')})"
    else:
        read = "matrix_at(place + {})"
        value = ", ".join(_checked(read, plan.matrix, "step", component) for component in range(WIDTH))
        value = f"vec4<f32>({value})"
    lines.append(f"  let m = {value};")
    lines += [f"  c{index} = fma(m, v{index}, c{index});" for index in sums]
    return [*lines, "}", *_add_along(plan, end)]


def _add_along(plan: GemvPlan, end: EpilogueCode) -> list[str]:
    """Reduce the sums by halving; those of an index of the outer axis end up with its first lane."""
    count = plan.vectors.outer
    lines = [f"sums_of[{index * THREADS}u + t] = dot(c{index}, vec4<f32>(1.0));" for index in range(count)]
    half = plan.sharers // 2
    while half:
        lines += ["workgroupBarrier();", f"if (lane < {half}u) {{"]
        for number in range(count):
            at = f"{number * THREADS}u + t"
            lines.append(f"  sums_of[{at}] += sums_of[{at} + {half}u];")
        lines.append("}")
        half //= 2
    outputs = plan.vectors.outer * plan.per_group
    unit = WIDTH if plan.stores_vec4s else 1
    lines += [
        "workgroupBarrier();",
        f"for (var item = t; item < {outputs // unit}u; item += {THREADS}u) {{",
        f"  let v = item / {plan.per_group // unit}u;",
        f"  let place = item % {plan.per_group // unit}u * {unit}u;",
        "  let o = outer0 + place;",
        f"  if (o < {plan.matrix.outer}u) {{",
    ]

    def total(place: str) -> str:
        return f"sums_of[v * {THREADS}u + ({place}) * {plan.sharers}u]"

    if unit == WIDTH:
        totals = ", ".join(total(f"place + {component}u") for component in range(WIDTH))
        lines.append("    " + _store(plan, end, "finish", "v", "o", f"vec4<f32>({totals})", WIDTH))
    else:
        lines.append("    " + _store(plan, end, "finish_one", "v", "o", total("place"), 1))
    return [*lines, "  }", "}"]


def _store(plan: GemvPlan, end: EpilogueCode, function: str, vector: str, outer: str, total: str, unit: int) -> str:
    place = (vector, outer) if plan.vectors_are_rows else (outer, vector)
    number = f"({plan.product.address('batch', *place)})"
    number = number if unit == 1 else f"{number} / {WIDTH}u"
    return f"sums[{number}] = {total};" if end.is_partial else f"{function}({number}, {total});"
