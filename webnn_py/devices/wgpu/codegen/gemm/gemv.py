"""GEMV kernels: products of a matrix and a few vectors, limited by the bandwidth at which the matrix is read.

The matrix is the operand with the long outer axis; the other has at most :data:`MOST_VECTORS` vectors. Where the outer
axis of the matrix is contiguous ("across"), an invocation computes a vec4 of that axis over a part of the inner axis.
Where the inner axis is contiguous ("along"), adjacent invocations share an index of the outer axis. In both cases, the
workgroup reduces the sums at the end.
"""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue, EpilogueCode, emit_split_k_sum
from webnn_py.devices.wgpu.codegen.gemm.gemv_tiling import MOST_ADDED, THREADS, GemvTiling
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.operand_loader import bound
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.lowering import Lowering


def emit_gemv(lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> None:
    """Emit the kernels of a product for which :func:`.is_gemv` holds."""
    tiling = GemvTiling.for_product(product, lowering.features)
    stores = tiling.stores_vec4s or epilogue.stores_single_elements
    if stores:
        end = epilogue.write(vec4s=tiling.stores_vec4s)
        lowering.emit(_kernel(tiling, end, epilogue.label))
        return
    sums = Buffer("block", epilogue.padded_count * 4)
    end = EpilogueCode([(sums, "sums", "vec4<f32>" if tiling.stores_vec4s else "f32")])
    lowering.emit(_kernel(tiling, end, f"{epilogue.label} (sums)"))
    emit_split_k_sum(lowering, epilogue, sums, 1)


def _kernel(tiling: GemvTiling, end: EpilogueCode, label: str) -> Kernel:
    """Return the kernel; ``m`` are elements of the matrix, ``v`` those of the vectors, and ``c`` the sums."""
    tiles = -(-tiling.matrix.outer // tiling.per_group)
    lines = [
        f"let outer0 = number % {tiles}u * {tiling.per_group}u;",
        f"let batch = number / {tiles}u;",
        *tiling.matrix.begin("matrix"),
        *tiling.vectors.begin("vectors"),
        *(_along(tiling, end) if tiling.is_along else _across(tiling, end)),
    ]
    vector = "f32" if tiling.is_along or tiling.unit == 1 else "vec4<f32>"
    room = tiling.vectors.outer
    room = room if tiling.is_along else min(room, tiling.added_at_once)
    reads, functions = bound({"matrix": tiling.matrix, "vectors": tiling.vectors}, "f32")
    parts = [f"var<workgroup> sums_of: array<{vector}, {room * tiling.threads}>;", *functions]
    main, workgroups = workgroup_entry_point(tiles * tiling.product.batch, tiling.threads, lines)
    return end.kernel(label, reads, parts, main, workgroups)


def _vectors(tiling: GemvTiling, step: str, tag: str = "") -> list[str]:
    """Load the vec4 ``step`` of every vector as ``v``, zero-padded beyond the end."""
    vectors = tiling.vectors
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


def _across(tiling: GemvTiling, end: EpilogueCode) -> list[str]:
    kind = "f32" if tiling.unit == 1 else "vec4<f32>"
    last = tiling.matrix.outer - tiling.unit
    place = f"o * {tiling.matrix.outer_stride}u" if tiling.unit == 1 else f"o / {tiling.unit}u"
    lines = [
        f"let mine = t % {tiling.side}u;",
        f"let o = min(outer0 + mine * {tiling.unit}u, {last}u);",
        f"let place = matrix_base + {place};",
        *(f"var {name} = {kind}();" for name in _sums_across(tiling)),
    ]
    first = f"t / {tiling.side}u"
    if tiling.unrolled == 1:
        lines.append(f"for (var step = {first}; step < {tiling.steps}u; step += {tiling.sharers}u) {{")
    else:
        lines += [f"var step = {first};", *_across_unrolled(tiling, kind)]
        lines.append(f"for (; step < {tiling.steps}u; step += {tiling.sharers}u) {{")
    return [
        *lines,
        *_read_across(tiling, kind, "step"),
        *_multiply_across(tiling, kind),
        "}",
        *_add_across(tiling, end),
    ]


def _across_unrolled(tiling: GemvTiling, kind: str) -> list[str]:
    """Return the unrolled loop, which loads several steps before it multiplies any."""
    tags = [f"{'abcd'[turn]}_" for turn in range(tiling.unrolled)]
    reach = (tiling.unrolled - 1) * tiling.sharers
    lines = [f"for (; step + {reach}u < {tiling.steps}u; step += {tiling.unrolled * tiling.sharers}u) {{"]
    for turn, tag in enumerate(tags):
        lines += [
            f"  let step_{tag} = step + {turn * tiling.sharers}u;",
            *_read_across(tiling, kind, f"step_{tag}", tag),
        ]
    for tag in tags:
        lines += _multiply_across(tiling, kind, tag)
    return [*lines, "}"]


def _read_across(tiling: GemvTiling, kind: str, step: str, tag: str = "") -> list[str]:
    """Load a step of the matrix and of the vectors."""
    lines = [f"  {line}" for line in _vectors(tiling, step, tag)]
    for component in range(WIDTH):
        inner = f"min({step} * {WIDTH}u + {component}u, {tiling.matrix.inner - 1}u)"
        inner = f"{step} * {WIDTH}u + {component}u" if tiling.matrix.inner % WIDTH == 0 else inner
        value = f"matrix_at(place + {tiling.matrix.along(inner)})"
        if tiling.matrix.inner % WIDTH:
            value = f"select({kind}(), {value}, {step} * {WIDTH}u + {component}u < {tiling.matrix.inner}u)"
        lines.append(f"  let m{tag}{component} = {value};")
    return lines


def _multiply_across(tiling: GemvTiling, kind: str, tag: str = "") -> list[str]:
    lines = []
    for index, name in enumerate(_sums_across(tiling)):
        for component in range(WIDTH):
            factor = f"{kind}(v{tag}{index}.{COMPONENTS[component]})"
            lines.append(f"  {name} = fma(m{tag}{component}, {factor}, {name});")
    return lines


def _sums_across(tiling: GemvTiling) -> list[str]:
    return [f"c{index}" for index in range(tiling.vectors.outer)]


def _add_across(tiling: GemvTiling, end: EpilogueCode) -> list[str]:
    lines = []
    names = _sums_across(tiling)
    for first in range(0, len(names), tiling.added_at_once):
        some = names[first : first + tiling.added_at_once]
        if first:
            lines.append("workgroupBarrier();")
        lines += [f"sums_of[{number * tiling.threads}u + t] = {name};" for number, name in enumerate(some)]
        lanes = tiling.sharers
        while tiling.threads > THREADS and lanes > MOST_ADDED:
            lanes //= 2
            lines += ["workgroupBarrier();", f"if (t < {lanes * tiling.side}u) {{"]
            for number in range(len(some)):
                at = f"{number * tiling.threads}u + t"
                lines.append(f"  sums_of[{at}] += sums_of[{at} + {lanes * tiling.side}u];")
            lines.append("}")
        lines += [
            "workgroupBarrier();",
            f"for (var item = t; item < {len(some) * tiling.side}u; item += {tiling.threads}u) {{",
            f"  let first = item / {tiling.side}u * {tiling.threads}u + item % {tiling.side}u;",
            "  var total = sums_of[first];",
            f"  for (var lane = 1u; lane < {lanes}u; lane++) {{",
            f"    total += sums_of[first + lane * {tiling.side}u];",
            "  }",
            f"  let v = {first}u + item / {tiling.side}u;",
            f"  let o = outer0 + item % {tiling.side}u * {tiling.unit}u;",
            f"  if (o < {tiling.matrix.outer}u) {{",
        ]
        if tiling.stores_vec4s:
            lines.append("    " + _store(tiling, end, "finish", "v", "o", "total", WIDTH))
        elif tiling.unit > 1:
            for component in range(WIDTH):
                lines.append(
                    "    "
                    + _store(tiling, end, "finish_one", "v", f"(o + {component}u)", f"total.{COMPONENTS[component]}", 1)
                )
        else:
            lines.append("    " + _store(tiling, end, "finish_one", "v", "o", "total", 1))
        lines += ["  }", "}"]
    return lines


# --- the inner axis is contiguous ----------------------------------------------------------------------------


def _along(tiling: GemvTiling, end: EpilogueCode) -> list[str]:
    unit = WIDTH if tiling.matrix.pattern == "transposed" else 1
    stride = tiling.matrix.outer_stride // unit
    sums = range(tiling.vectors.outer)
    outer = f"min(outer0 + t / {tiling.sharers}u, {tiling.matrix.outer - 1}u)"
    lines = [
        f"let lane = t % {tiling.sharers}u;",
        f"let place = matrix_base + {outer} * {stride}u;",
        *(f"var c{index} = vec4<f32>();" for index in sums),
        f"for (var step = lane; step < {tiling.steps}u; step += {tiling.sharers}u) {{",
        *(f"  {line}" for line in _vectors(tiling, "step")),
    ]
    if unit == WIDTH:
        value = f"matrix_at(place + {tiling.matrix.along(f'step * {WIDTH}u')})"
    else:
        read = "matrix_at(place + {})"
        value = ", ".join(_checked(read, tiling.matrix, "step", component) for component in range(WIDTH))
        value = f"vec4<f32>({value})"
    lines.append(f"  let m = {value};")
    lines += [f"  c{index} = fma(m, v{index}, c{index});" for index in sums]
    return [*lines, "}", *_add_along(tiling, end)]


def _add_along(tiling: GemvTiling, end: EpilogueCode) -> list[str]:
    """Reduce the sums by halving; those of an index of the outer axis end up with its first lane."""
    count = tiling.vectors.outer
    lines = [f"sums_of[{index * THREADS}u + t] = dot(c{index}, vec4<f32>(1.0));" for index in range(count)]
    half = tiling.sharers // 2
    while half:
        lines += ["workgroupBarrier();", f"if (lane < {half}u) {{"]
        for number in range(count):
            at = f"{number * THREADS}u + t"
            lines.append(f"  sums_of[{at}] += sums_of[{at} + {half}u];")
        lines.append("}")
        half //= 2
    outputs = tiling.vectors.outer * tiling.per_group
    unit = WIDTH if tiling.stores_vec4s else 1
    lines += [
        "workgroupBarrier();",
        f"for (var item = t; item < {outputs // unit}u; item += {THREADS}u) {{",
        f"  let v = item / {tiling.per_group // unit}u;",
        f"  let place = item % {tiling.per_group // unit}u * {unit}u;",
        "  let o = outer0 + place;",
        f"  if (o < {tiling.matrix.outer}u) {{",
    ]

    def total(place: str) -> str:
        return f"sums_of[v * {THREADS}u + ({place}) * {tiling.sharers}u]"

    if unit == WIDTH:
        totals = ", ".join(total(f"place + {component}u") for component in range(WIDTH))
        lines.append("    " + _store(tiling, end, "finish", "v", "o", f"vec4<f32>({totals})", WIDTH))
    else:
        lines.append("    " + _store(tiling, end, "finish_one", "v", "o", total("place"), 1))
    return [*lines, "  }", "}"]


def _store(tiling: GemvTiling, end: EpilogueCode, function: str, vector: str, outer: str, total: str, unit: int) -> str:
    place = (vector, outer) if tiling.vectors_are_rows else (outer, vector)
    number = f"({tiling.product.address('batch', *place)})"
    number = number if unit == 1 else f"{number} / {WIDTH}u"
    return f"sums[{number}] = {total};" if end.is_partial else f"{function}({number}, {total});"
