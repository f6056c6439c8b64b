"""GEMV of a matrix of four bits: a few vectors times rows whose blocks have a scale and a zero point.

Lanes share a row. Each loads up to four words of several rows, 8 elements a word, and multiplies them with the same
elements of the vectors, so that a weight is read once for all vectors, and an element of a vector once for several
rows. Workgroups keep the part of the vectors that their lanes need next in their memory, in an order in which
neighbouring lanes read neighbouring vec4s.

A number of four bits becomes a float where it is in its word: its bits are or-ed into those of 2²³, which is then
multiplied by the power of 1/16 that brings the number to its place, and from which a base is subtracted that also has
the zero point, both exactly.
"""

from __future__ import annotations

from typing import Final

from webnn_py.core.descriptors import INT4
from webnn_py.devices.wgpu.codegen.entry_point import workgroup_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue, EpilogueCode
from webnn_py.devices.wgpu.codegen.gemm.four_bit_tiling import FourBitTiling
from webnn_py.devices.wgpu.codegen.gemm.operand_loader import bound
from webnn_py.devices.wgpu.codegen.module import Binding
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.lowering import Lowering

HALVES: Final = ("", " >> 16u")
"""The shifts of a word that bring each four of its elements to the lower half."""

POWERS: Final = "vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625)"

_AS_FLOATS: Final = f"""fn as_floats(word: u32, base: vec4<f32>) -> vec4<f32> {{
  let bits = (vec4<u32>(word) & vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u)) | vec4<u32>(0x4b000000u);
  return fma(bitcast<vec4<f32>>(bits), {POWERS}, -base);
}}"""

MOST_SHARES: Final = 16
"""The most invocations that add up a sum."""

BASE: Final = f"8388608.0 * {POWERS} + f32({{}})"
"""The term that is subtracted for a zero point."""


def emit_four_bit_gemv(lowering: Lowering, tiling: FourBitTiling, epilogue: Epilogue) -> None:
    """Emit the kernel of a product."""
    lowering.emit(_kernel(lowering, tiling, epilogue.write(vec4s=False), epilogue.label))


def _kernel(lowering: Lowering, tiling: FourBitTiling, end: EpilogueCode, label: str) -> Kernel:
    point, tuning = tiling.common_point, tiling.tuning
    reads, functions = bound({"vectors": tiling.vectors}, "f32")
    kinds = {"elements": _words(tiling), "scales": "f32", "points": "u32"}
    own: list[Binding] = [
        (lowering.place(value).buffer, name, kind)
        for value, (name, kind) in zip(tiling.places, kinds.items(), strict=True)
        if name != "points" or point is None
    ]
    at_once = min(tiling.room_for_sums(lowering.features), tuning.rows * tiling.vectors.outer)
    parts = [
        f"var<workgroup> sums_of: array<f32, {at_once * tuning.threads}>;",
        f"var<workgroup> shares_of: array<f32, {max(tuning.threads, at_once * tiling.side)}>;",
        *functions,
        _AS_FLOATS,
    ]
    if tuning.is_staged:
        parts.insert(0, f"var<workgroup> staged: array<vec4<f32>, {tiling.staged}>;")
    lines = [*_begin(tiling), *_multiply(tiling, point), *_add_up(tiling, at_once)]
    main, workgroups = workgroup_entry_point(tiling.groups, tuning.threads, lines)
    return end.kernel(label, [*reads, *own], parts, main, workgroups)


def _words(tiling: FourBitTiling) -> str:
    """Return the type of what is loaded of a row at once."""
    words = tiling.tuning.words
    return "u32" if words == 1 else f"vec{words}<u32>"


def _begin(tiling: FourBitTiling) -> list[str]:
    """Return the places of an invocation; ``c0_1`` is the sum of the first row and the second vector."""
    lanes, rows, last = tiling.tuning.lanes, range(tiling.tuning.rows), tiling.matrix.outer - 1
    return [
        f"let outer0 = number * {tiling.per_group}u;",
        "let batch = 0u;",
        *tiling.vectors.begin("vectors"),
        f"let lane = t % {lanes}u;",
        f"let place = t / {lanes}u;",
        *(f"let o{row} = min(outer0 + place + {row * tiling.side}u, {last}u);" for row in rows),
        *(f"var c{row}_{count} = 0.0;" for row in rows for count in range(tiling.vectors.outer)),
    ]


def _multiply(tiling: FourBitTiling, point: int | None) -> list[str]:
    """Return the loop over the loads of a lane."""
    tuning = tiling.tuning
    step = tuning.lanes * tuning.ahead
    lines = [f"for (var first = 0u; first < {tiling.loads}u; first += {step}u) {{"]
    for turn in range(tuning.ahead):
        lines += [f"  {line}" for line in _load(tiling, turn, point)]
    if tuning.is_staged:
        lines += [f"  {line}" for line in _stage(tiling)]
    is_whole = tiling.loads % step == 0
    for turn in range(tuning.ahead):
        lines.append("  {" if is_whole else f"  if (first + lane + {turn * tuning.lanes}u < {tiling.loads}u) {{")
        lines += [f"    {line}" for line in _multiply_one(tiling, turn, point)]
        lines.append("  }")
    return [*lines, "}"]


def _load(tiling: FourBitTiling, turn: int, point: int | None) -> list[str]:
    """Load the words of each row, their scale and their zero point."""
    last = tiling.loads - 1
    sign = " ^ 0x88888888u" if tiling.places[0].descriptor.data_type == INT4 else ""
    words = f" ^ {_words(tiling)}(0x88888888u)" if sign else ""
    lines = [f"let u{turn} = min(first + lane + {turn * tiling.tuning.lanes}u, {last}u);"]
    for row in range(tiling.tuning.rows):
        tag = f"{turn}_{row}"
        lines += [
            f"let w{tag} = elements[o{row} * {tiling.matrix.outer_stride // tiling.unit}u + u{turn}]{words};",
            (
                f"let at{tag} = o{row} * {tiling.matrix.outer_stride // tiling.block}u "
                f"+ u{turn} / {tiling.block // tiling.unit}u;"
            ),
            f"let scale{tag} = scales[at{tag}];",
        ]
        if point is None:
            lines.append(f"let points{tag} = points[at{tag} >> 3u]{sign};")
    return lines


def _stage(tiling: FourBitTiling) -> list[str]:
    """Copy what the workgroup needs next of the vectors, a vec4 of all lanes side by side."""
    tuning, vectors = tiling.tuning, tiling.vectors
    of_lane = tiling.unit // WIDTH
    of_turn = of_lane * tuning.lanes
    count = of_turn * tuning.ahead
    last = vectors.inner // WIDTH - 1
    value = f"vectors_at(vectors_base + v * {vectors.outer_stride // WIDTH}u + {vectors.along(f'source * {WIDTH}u')})"
    return [
        "workgroupBarrier();",
        f"for (var item = t; item < {vectors.outer * count}u; item += {tuning.threads}u) {{",
        f"  let v = item / {count}u;",
        f"  let k = item % {count}u;",
        f"  let at = ((k / {of_turn}u * {vectors.outer}u + v) * {of_lane}u + k % {of_lane}u) * {tiling.pitch}u;",
        f"  let source = min(first * {of_lane}u + k, {last}u);",
        f"  staged[at + k % {of_turn}u / {of_lane}u] = {value};",
        "}",
        "workgroupBarrier();",
    ]


def _multiply_one(tiling: FourBitTiling, turn: int, point: int | None) -> list[str]:
    """Multiply the loaded words of each row with all vectors."""
    tuning, vectors, rows = tiling.tuning, tiling.vectors, range(tiling.tuning.rows)
    counts, of_lane = range(vectors.outer), tiling.unit // WIDTH
    lines = []
    if point is not None:
        sign = 8 if tiling.places[0].descriptor.data_type == INT4 else 0
        lines.append(f"let base = {BASE.format(f'{point ^ sign}.0')};")
    for row in rows:
        if point is None:
            stored = f"(points{turn}_{row} >> ((at{turn}_{row} & 7u) << 2u)) & 15u"
            lines.append(f"let base{row} = {BASE.format(f'f32({stored})')};")
        lines += [f"var p{row}_{count} = 0.0;" for count in counts]
    loads = [[_vector(tiling, turn, count, four) for count in counts] for four in range(of_lane)]
    if tuning.is_staged:
        for four in range(of_lane):
            lines += loads[four]
            lines += [line for row in rows for line in _multiply_four(tiling, turn, row, four, point)]
    else:
        lines += [line for some in loads for line in some]
        lines += [
            line for row in rows for four in range(of_lane) for line in _multiply_four(tiling, turn, row, four, point)
        ]
    ends = [(f"c{row}_{count}", f"p{row}_{count}", f"scale{turn}_{row}") for row in rows for count in counts]
    return [*lines, *(f"{total} = fma({own}, {scale}, {total});" for total, own, scale in ends)]


def _vector(tiling: FourBitTiling, turn: int, count: int, four: int) -> str:
    """Load a vec4 of a vector."""
    vectors, of_lane = tiling.vectors, tiling.unit // WIDTH
    if tiling.tuning.is_staged:
        value = f"staged[{((turn * vectors.outer + count) * of_lane + four) * tiling.pitch}u + lane]"
    else:
        start = f"vectors_base + {count * vectors.outer_stride // WIDTH}u"
        value = f"vectors_at({start} + {vectors.along(f'u{turn} * {tiling.unit}u + {four * WIDTH}u')})"
    return f"let v{four}_{count} = {value};"


def _multiply_four(tiling: FourBitTiling, turn: int, row: int, four: int, point: int | None) -> list[str]:
    """Multiply four elements of a row with those of all vectors."""
    word, half = divmod(four, len(HALVES))
    component = "" if tiling.tuning.words == 1 else f".{COMPONENTS[word]}"
    base = f"base{row}" if point is None else "base"
    lines = [f"let m{four}_{row} = as_floats(w{turn}_{row}{component}{HALVES[half]}, {base});"]
    for count in range(tiling.vectors.outer):
        name = total = f"p{row}_{count}"
        for axis in COMPONENTS:
            total = f"fma(m{four}_{row}.{axis}, v{four}_{count}.{axis}, {total})"
        lines.append(f"{name} = {total};")
    return lines


def _add_up(tiling: FourBitTiling, at_once: int) -> list[str]:
    """Return the reduction over lanes, of as many sums as fit into workgroup memory at once, and the stores.

    Of each sum as many invocations as there are add up a share of the lanes, and one of them the shares.
    """
    tuning, vectors, side = tiling.tuning, tiling.vectors.outer, tiling.side
    sums = [f"c{row}_{vector}" for row in range(tuning.rows) for vector in range(vectors)]
    address = tiling.product.address("batch", "v", "o")
    store = f"finish_one({address}, total);"
    lines = []
    for first in range(0, len(sums), at_once):
        some = sums[first : first + at_once]
        outputs = len(some) * side
        shares = min(MOST_SHARES, tuning.lanes, 1 << (tuning.threads // outputs).bit_length() >> 1) or 1
        each = -(-tuning.lanes // shares)
        lines += ["workgroupBarrier();"] if first else []
        lines += [f"sums_of[{index * tuning.threads}u + t] = {name};" for index, name in enumerate(some)]
        turn = f"(i + item / {shares}u) % {each}u * {shares}u" if tuning.lanes % shares == 0 else f"i * {shares}u"
        lines += [
            "workgroupBarrier();",
            f"for (var item = t; item < {outputs * shares}u; item += {tuning.threads}u) {{",
            f"  let own = item / {shares}u * {tuning.lanes}u;",
            "  var total = 0.0;",
            f"  for (var i = 0u; i < {each}u; i++) {{",
            f"    let at = item % {shares}u + {turn};",
            f"    if (at < {tuning.lanes}u) {{ total += sums_of[own + at]; }}",
            "  }",
            "  shares_of[item] = total;",
            "}",
            "workgroupBarrier();",
            f"for (var item = t; item < {outputs}u; item += {tuning.threads}u) {{",
            f"  let v = ({first}u + item / {side}u) % {vectors}u;",
            f"  let o = outer0 + ({first}u + item / {side}u) / {vectors}u * {side}u + item % {side}u;",
            "  var total = 0.0;",
            f"  for (var i = 0u; i < {shares}u; i++) {{ total += shares_of[item * {shares}u + i]; }}",
            f"  if (o < {tiling.matrix.outer}u) {{ {store} }}",
            "}",
        ]
    return lines
