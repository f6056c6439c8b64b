"""The entry point of kernels whose invocations compute four neighbouring elements each."""

from __future__ import annotations

from webnn_py.device.on_wgpu.records.element import WIDTH

WORKGROUP = 256
"""Invocations of a workgroup, where nothing else is better."""

MAX_WORKGROUPS = 65535
"""Workgroups that every adapter has along one dimension."""


def vec4_entry_point(count: int, body: str) -> tuple[str, tuple[int, int, int]]:
    """The entry point that runs ``body`` for every vec4 of ``count`` elements.

    The body knows the vec4's number ``four``, and that of its first element, ``i``.
    """
    vec4s = -(-count // WIDTH)
    workgroups = grid(-(-vec4s // WORKGROUP))
    text = f"""
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let four = id.x + id.y * {workgroups[0] * WORKGROUP}u;
  if (four >= {vec4s}u) {{ return; }}
  let i = four * {WIDTH}u;
{body}
}}
"""
    return text, workgroups


def vec4_indices(count: int) -> list[str]:
    """The numbers of a vec4's elements; beyond the last one, the last one, so that no index leaves its tensor."""
    numbers = ["i", *(f"i + {component}u" for component in range(1, WIDTH))]
    return numbers if count % WIDTH == 0 else [f"min({number}, {count - 1}u)" for number in numbers]


def grid(groups: int) -> tuple[int, int, int]:
    """At least ``groups`` workgroups, spread over x and y where x alone has not enough."""
    rows = -(-groups // MAX_WORKGROUPS)
    return -(-groups // rows), rows, 1
