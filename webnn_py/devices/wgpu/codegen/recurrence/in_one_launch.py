"""Persistent kernels that run all steps of a recurrent network in one launch.

A workgroup computes one row of the batch in one direction. It keeps the states in workgroup memory, and the recurrent
weight in registers if it fits. Workgroups are independent, so that workgroup barriers synchronize the steps.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import MAX_WORKGROUPS, indented
from webnn_py.devices.wgpu.codegen.recurrence.cells import Cell
from webnn_py.devices.wgpu.codegen.recurrence.problem import (
    BYTES,
    Recurrence,
    RecurrenceBuffers,
    kernel_of,
)
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant

REGISTERS: Final = 16
"""The most vec4s of the weight that an invocation keeps in registers."""

KEPT: Final = 2**16
"""The most elements of the weight that a workgroup keeps: those that fit into a large GPU's register file."""

READ: Final = 2**16
"""The most elements of a direction's weight that a single workgroup loads in every step."""

ROWS: Final = 16
MOST_TIMES: Final = 4
"""The limit :data:`READ` grows with each multiple of ``ROWS`` rows of the batch, up to ``MOST_TIMES`` times."""

READ_IN_PHASES: Final = 2**17
"""The limit in place of :data:`READ` for GRUs that reset before the product; larger ones are decomposed."""

MOST_INVOCATIONS: Final = 1024


def can_run_in_one_launch(hidden: int, batch: int, cell: Cell) -> bool:
    """Return whether one workgroup per row can run all steps without loading too much in each."""
    many = min(max(1, batch // ROWS), MOST_TIMES)
    most = READ * many if len(cell.phases) == 1 else READ_IN_PHASES
    fits = len(cell.layout) * hidden * hidden <= most and batch <= MAX_WORKGROUPS
    return fits and KernelVariant.RECURRENCE_ONE_LAUNCH.is_on


@attrs.frozen
class OneLaunch:
    """The distribution of the rows of the weight among the invocations of a workgroup.

    Attributes:
        parts: the pieces of a row, each for another invocation; a divisor of its vec4s.
        turns: the pieces of an invocation.
        invocations: the invocations of the workgroup.
        is_kept: whether the weight stays in registers.
    """

    parts: int
    turns: int
    invocations: int
    is_kept: bool

    @classmethod
    def for_network(cls, network: Recurrence, features: Features) -> OneLaunch | None:
        """Return the best tiling; None if a workgroup has too little memory or too much work."""
        most = min(features.max_invocations, MOST_INVOCATIONS)
        rows, vec4s = network.rows, network.vec4s
        fitting = [parts for parts in range(1, vec4s + 1) if vec4s % parts == 0 and parts * rows <= most]
        parts = max((parts for parts in fitting if 2 * parts <= max(vec4s, 2)), default=1)
        turns = -(-rows * parts // most)
        invocations = -(-rows * parts // turns)
        storage = BYTES * (2 * WIDTH * vec4s + parts * rows)
        fits = storage <= features.max_workgroup_storage and network.hidden <= invocations
        if not fits or not can_run_in_one_launch(network.hidden, network.batch, network.cell):
            return None
        is_kept = turns * vec4s // parts <= REGISTERS and rows * vec4s * WIDTH <= KEPT
        return cls(parts, turns, invocations, is_kept)


def emit_in_one_launch(lowering: Lowering, network: Recurrence, buffers: RecurrenceBuffers, tiling: OneLaunch) -> None:
    """Emit the kernel; a weight that is not kept has the layout [directions, vec4s, gates · hidden, 4]."""
    states = network.cell.states
    reads = [
        (buffers.shares, "shares", "f32"),
        (buffers.weight, "weight", "vec4<f32>"),
        (buffers.extra, "extra", "f32"),
        *((buffer, f"initial_{name}", "f32") for name, buffer in zip(states, buffers.initial, strict=True)),
    ]
    writes = [
        *((buffer, f"last_{name}", "f32") for name, buffer in zip(states, buffers.last, strict=True)),
        (buffers.sequence, "sequence", "f32"),
    ]
    workgroups = network.batch, network.directions, 1
    lowering.emit(kernel_of(network.label, reads, writes, _text(network, buffers, tiling), workgroups))


def _text(network: Recurrence, buffers: RecurrenceBuffers, tiling: OneLaunch) -> str:
    hidden, rows = network.hidden, network.rows
    # Arrays of scalars, since a store to a component of a vector may store the whole vector.
    names = ["hidden", "gated"][: len(network.cell.phases)]
    states = [f"var<workgroup> {name}_state: array<f32, {network.vec4s * WIDTH}>;" for name in names]
    takes = [
        f"fn {name}_at(k: u32) -> vec4<f32> {{ return vec4<f32>({', '.join(places)}); }}"
        for name in names
        for places in [[f"{name}_state[{WIDTH}u * k + {place}u]" for place in range(WIDTH)]]
    ]
    return f"""
// Beyond the ends of states there are zeros.
{indented(states, 0)}
{indented(takes, 0)}
var<workgroup> sums: array<f32, {tiling.parts * rows}>;

@compute @workgroup_size({tiling.invocations})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
  let row = group.x;
  let direction = group.y;
  let is_unit = lane < {hidden}u;
  let unit = min(lane, {hidden - 1}u);
  let state = (direction * {network.batch}u + row) * {hidden}u + unit;
{indented(_before(network, buffers, tiling), 2)}
  for (var step = 0u; step < {network.steps}u; step++) {{
    let time = {network.time("step", "direction")};
    let share = {network.share("time", "row", "direction")} + unit;
{indented(_step(network, buffers, tiling), 4)}
  }}
  if (is_unit) {{
{indented([f"last_{name}[state] = {name};" for name in network.cell.states], 4)}
  }}
}}
"""


def _before(network: Recurrence, buffers: RecurrenceBuffers, tiling: OneLaunch) -> list[str]:
    """Return the statements before the first step, which load the states and the weight."""
    lines = [
        f"var {name} = " + ("0.0;" if buffer is None else f"initial_{name}[state];")
        for name, buffer in zip(network.cell.states, buffers.initial, strict=True)
    ]
    if len(network.cell.phases) > 1:
        lines.append("var update = 0.0;")
    lines.append("if (is_unit) { hidden_state[unit] = hidden; }")
    beyond = range(network.hidden, network.vec4s * WIDTH)
    if beyond:  # WGSL zero-initializes workgroup memory, but Mesa's software Vulkan does not
        names = ["hidden", "gated"][: len(network.cell.phases)]
        zeros = [f"{name}_state[{place}] = 0.0;" for name in names for place in beyond]
        lines.append(f"if (lane == 0u) {{ {' '.join(zeros)} }}")
    lines += [
        f"let e_{gate} = extra[direction * {network.extra_size}u + {place * network.hidden}u + unit];"
        for gate, place in network.cell.extras.items()
    ]
    pieces = tiling.parts * network.rows
    each = network.vec4s // tiling.parts
    for turn in range(tiling.turns):
        piece = f"lane + {turn * tiling.invocations}u" if turn else "lane"
        if tiling.turns * tiling.invocations > pieces:
            piece = f"min({piece}, {pieces - 1}u)"  # clamped to the last piece
        lines += [
            f"let piece{turn} = {piece};",
            f"let row{turn} = piece{turn} % {network.rows}u;",
            f"let first{turn} = piece{turn} / {network.rows}u * {each}u;",
        ]
        if tiling.is_kept:
            start = f"(direction * {network.rows}u + row{turn}) * {network.vec4s}u + first{turn}"
            lines.append(f"let at{turn} = {start};")
            lines += [f"let w{turn}_{place} = weight[at{turn} + {place}u];" for place in range(each)]
    return lines


def _step(network: Recurrence, buffers: RecurrenceBuffers, tiling: OneLaunch) -> list[str]:
    """Return the statements of a step: the sums of each phase, then the cell for each element of the state."""
    cell = network.cell
    lines = [f"var x_{gate} = 0.0;" for gate in cell.layout]
    lines.append("if (is_unit) {")
    lines += [f"  x_{gate} = shares[share + {place * network.hidden}u];" for place, gate in enumerate(cell.layout)]
    lines.append("}")
    for phase, gates in enumerate(cell.phases):
        is_last = phase == len(cell.phases) - 1
        lines += ["workgroupBarrier();", *_sums(network, tiling, phase, gates), "workgroupBarrier();", "if (is_unit) {"]
        for gate in gates:
            first = cell.layout.index(gate) * network.hidden
            terms = [f"sums[unit + {first + part * network.rows}u]" for part in range(tiling.parts)]
            lines.append(f"  let s_{gate} = {' + '.join(terms)};")
        lines += [f"  {line}" for line in cell.statements(phase)]
        lines.append("  hidden_state[unit] = hidden;" if is_last else "  gated_state[unit] = gated;")
        if is_last and buffers.sequence is not None:
            place = f"(time * {network.directions}u + direction) * {network.batch}u + row"
            lines.append(f"  sequence[({place}) * {network.hidden}u + unit] = hidden;")
        lines.append("}")
    return lines


def _sums(network: Recurrence, tiling: OneLaunch, phase: int, gates: str) -> list[str]:
    """Return statements that compute the partial dot products of the invocations for the gates of a phase."""
    state = "gated_at" if phase else "hidden_at"
    each = network.vec4s // tiling.parts
    lines: list[str] = []
    for turn in range(tiling.turns):
        if tiling.is_kept:
            terms = [f"w{turn}_{place} * {state}(first{turn} + {place}u)" for place in range(each)]
            products = [f"var products = {terms[0]};", *(f"products += {term};" for term in terms[1:])]
        else:
            at = f"(direction * {network.vec4s}u + k) * {network.rows}u + row{turn}"
            products = [
                "var products = vec4<f32>();",
                f"for (var k = first{turn}; k < first{turn} + {each}u; k++) {{",
                f"  products += weight[{at}] * {state}(k);",
                "}",
            ]
        products.append(f"sums[piece{turn}] = products.x + products.y + products.z + products.w;")
        lines += _of_rows(network, turn, phase, gates, products)
    return lines


def _of_rows(network: Recurrence, turn: int, phase: int, gates: str, lines: list[str]) -> list[str]:
    """Guard statements so that they run for the rows of a phase's gates, the first or the last ones."""
    if len(gates) == len(network.cell.layout):
        return ["{", *(f"  {line}" for line in lines), "}"]
    edge = 2 * network.hidden
    condition = f"row{turn} < {edge}u" if phase == 0 else f"row{turn} >= {edge}u"
    return [f"if ({condition}) {{", *(f"  {line}" for line in lines), "}"]
