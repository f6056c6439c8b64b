"""Recurrent networks with a launch per step, for weights that are too large for a single workgroup.

The states are double-buffered and the index of the step is read from a buffer, so that two kernels serve all steps.
"""

from __future__ import annotations

from typing import Final

from webnn_py.devices.wgpu.codegen.entry_point import MAX_WORKGROUPS, indented, vec4_entry_point
from webnn_py.devices.wgpu.codegen.recurrence.problem import Recurrence, RecurrenceBuffers, kernel_of
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.lowering import Lowering

LANES: Final = 32
"""The invocations that share a row of the weight."""

APART: Final = LANES + 1
"""The row pitch of their sums in workgroup memory; odd, to avoid bank conflicts."""

ADDED: Final = 8
"""The sums that an invocation reduces in the first of two steps."""

UNITS: Final = 2
"""The elements of the state that a workgroup computes."""

BATCH: Final = 8
"""The most rows of the batch that a workgroup computes."""


def can_run_step_by_step(hidden: int, batch: int) -> bool:
    """Return whether a dispatch is within the limits of every adapter."""
    return max(-(-hidden // UNITS), -(-batch // BATCH)) <= MAX_WORKGROUPS


def emit_step_by_step(lowering: Lowering, network: Recurrence, buffers: RecurrenceBuffers) -> None:
    """Emit the launches; the weight is row-major."""
    states = [Buffer("block", len(network.cell.states) * _size(network) * 4) for _ in range(2)]
    numbers = [Buffer("block", 4) for _ in range(2)]
    lowering.emit(_initial_kernel(network, buffers, states[0], numbers[0]))
    steps = [
        _step_kernel(network, buffers, (states[turn], numbers[turn]), (states[1 - turn], numbers[1 - turn]))
        for turn in range(2)
    ]
    for number in range(network.steps):
        lowering.emit(steps[number % 2])
    lowering.emit(_last_kernel(network, buffers, states[network.steps % 2]))


def _width(network: Recurrence) -> int:
    """Return the padded length of a row of a state."""
    return network.vec4s * WIDTH


def _size(network: Recurrence) -> int:
    """Return the number of elements of a state."""
    return network.directions * network.batch * _width(network)


def _initial_kernel(network: Recurrence, buffers: RecurrenceBuffers, states: Buffer, number: Buffer) -> Kernel:
    """Return the kernel that copies the initial states, zero-padded, and resets the index of the step."""
    reads = [
        (buffer, f"initial_{name}", "f32") for name, buffer in zip(network.cell.states, buffers.initial, strict=True)
    ]
    lines = ["if (i == 0u) { number[0] = 0u; }"]
    width, hidden = _width(network), network.hidden
    for index, (buffer, name, _) in enumerate(reads):
        value = "0.0"
        if buffer is not None:
            place = f"j / {width}u * {hidden}u + min(j % {width}u, {hidden - 1}u)"
            value = f"select(0.0, {name}[{place}], j % {width}u < {hidden}u)"
        at = f"{index * _size(network)}u + j"
        lines.append(f"for (var j = i; j < i + {WIDTH}u; j++) {{ states[{at}] = {value}; }}")
    main, workgroups = vec4_entry_point(_size(network), lines)
    writes = [(states, "states", "f32"), (number, "number", "u32")]
    return kernel_of(f"{network.label} (beginning)", reads, writes, main, workgroups)


def _last_kernel(network: Recurrence, buffers: RecurrenceBuffers, states: Buffer) -> Kernel:
    """Return the kernel that copies the states after the last step to the outputs."""
    hidden, count = network.hidden, network.directions * network.batch * network.hidden
    writes = [(buffer, f"last_{name}", "f32") for name, buffer in zip(network.cell.states, buffers.last, strict=True)]
    lines = []
    for index, (_, name, _) in enumerate(writes):
        at = f"{index * _size(network)}u + j / {hidden}u * {_width(network)}u + j % {hidden}u"
        lines.append(f"for (var j = i; j < min(i + {WIDTH}u, {count}u); j++) {{ {name}[j] = states[{at}]; }}")
    main, workgroups = vec4_entry_point(count, lines)
    return kernel_of(f"{network.label} (end)", [(states, "states", "f32")], writes, main, workgroups)


def _step_kernel(
    network: Recurrence, buffers: RecurrenceBuffers, before: tuple[Buffer, Buffer], after: tuple[Buffer, Buffer]
) -> Kernel:
    reads = [
        (buffers.shares, "shares", "f32"),
        (buffers.weight, "weight", "vec4<f32>"),
        (buffers.extra, "extra", "f32"),
        (before[0], "states", "vec4<f32>"),
        (before[1], "number", "u32"),
    ]
    writes = [
        (after[0], "next_states", "f32"),
        (after[1], "next_number", "u32"),
        (buffers.sequence, "sequence", "f32"),
    ]
    groups = -(-network.hidden // UNITS), network.directions, -(-network.batch // BATCH)
    return kernel_of(network.label, reads, writes, _text(network, buffers), groups)


def _finishing(network: Recurrence, buffers: RecurrenceBuffers) -> list[str]:
    """Return the statements after the sums, for one element of the state."""
    cell, hidden = network.cell, network.hidden
    lines = [f"let s_{gate} = total({place * UNITS}u + inner, b);" for place, gate in enumerate(cell.layout)]
    lines += [
        f"let e_{gate} = extra[group.y * {network.extra_size}u + {place * hidden}u + unit];"
        for gate, place in cell.extras.items()
    ]
    places = ["at", f"({_size(network)}u + at)"][: len(cell.states)]
    for name, place in zip(cell.states, places, strict=True):
        lines.append(f"var {name} = states[{place} >> 2u][{place} & 3u];")
    lines += cell.statements()
    lines += [f"next_states[{place}] = {name};" for name, place in zip(cell.states, places, strict=True)]
    if buffers.sequence is not None:
        place = f"(time * {network.directions}u + group.y) * {network.batch}u + row"
        lines.append(f"sequence[({place}) * {hidden}u + unit] = hidden;")
    return lines


def _text(network: Recurrence, buffers: RecurrenceBuffers) -> str:
    """Return the kernel of a step: partial dot products, their reduction in two steps, and the cell."""
    hidden, batch, rows = network.hidden, min(network.batch, BATCH), len(network.cell.layout) * UNITS
    invocations = LANES * rows
    last = network.batch - 1
    starts = [
        f"let state_row{b} = (group.y * {network.batch}u + min(first_row + {b}u, {last}u)) * {network.vec4s}u;"
        for b in range(batch)
    ]
    sums = [
        f"sums[(place + {b * rows}u) * {APART}u + lane % {LANES}u] = {products};"
        for b in range(batch)
        for products in [" + ".join(f"products{b}.{component}" for component in COMPONENTS)]
    ]
    pieces = LANES // ADDED
    total = " + ".join(f"pieces[item + {piece}u]" for piece in range(pieces))
    shares = [f"x_{gate} = shares[share + {place * hidden}u];" for place, gate in enumerate(network.cell.layout)]
    return f"""
var<workgroup> sums: array<f32, {rows * batch * APART}>;
var<workgroup> pieces: array<f32, {rows * batch * pieces}>;

// Of a row of the workgroup and a row of the batch.
fn total(row: u32, b: u32) -> f32 {{
  let item = (b * {rows}u + row) * {pieces}u;
  return {total};
}}

@compute @workgroup_size({invocations})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
  let step = number[0];
  let place = lane / {LANES}u;  // of the row in the workgroup
  let first_unit = group.x * {UNITS}u;
  let row_unit = min(first_unit + place % {UNITS}u, {hidden - 1}u);
  let weight_row = (group.y * {network.rows}u + place / {UNITS}u * {hidden}u + row_unit) * {network.vec4s}u;
  let first_row = group.z * {batch}u;
  let inner = lane % {UNITS}u;
  let b = lane / {UNITS}u;
  let unit = first_unit + inner;
  let row = first_row + b;
  let is_unit = b < {batch}u && unit < {hidden}u && row < {network.batch}u;
  let time = {network.time("step", "group.y")};
  let share = {network.share("time", "row", "group.y")} + unit;
{indented((f"var x_{gate} = 0.0;" for gate in network.cell.layout), 2)}
  if (is_unit) {{
{indented(shares, 4)}
  }}
{indented(starts, 2)}
{indented((f"var products{b} = vec4<f32>();" for b in range(batch)), 2)}
  for (var k = lane % {LANES}u; k < {network.vec4s}u; k += {LANES}u) {{
    let weights = weight[weight_row + k];
{indented((f"products{b} += weights * states[state_row{b} + k];" for b in range(batch)), 4)}
  }}
{indented(sums, 2)}
  workgroupBarrier();
  if (lane < {rows * batch * pieces}u) {{
    let first = lane / {pieces}u * {APART}u + lane % {pieces}u * {ADDED}u;
    var piece = 0.0;
    for (var index = first; index < first + {ADDED}u; index++) {{ piece += sums[index]; }}
    pieces[lane] = piece;
  }}
  workgroupBarrier();
  if (is_unit) {{
    let at = (group.y * {network.batch}u + row) * {_width(network)}u + unit;
{indented(_finishing(network, buffers), 4)}
  }}
  if (lane == 0u && group.x == 0u && group.y == 0u && group.z == 0u) {{ next_number[0] = step + 1u; }}
}}
"""
