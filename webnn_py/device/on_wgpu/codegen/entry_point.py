"""The entry point of kernels whose invocations compute four neighbouring elements each."""

from __future__ import annotations

from webnn_py.device.on_wgpu.records.element import WIDTH


def _main(count: int, body: str) -> tuple[str, tuple[int, int, int]]:
    """The entry point that runs ``body`` for every four of ``count`` elements: ``four`` and ``i``."""
    fours = -(-count // WIDTH)
    workgroups = grid(-(-fours // WORKGROUP))
    text = f"""
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let four = id.x + id.y * {workgroups[0] * WORKGROUP}u;
  if (four >= {fours}u) {{ return; }}
  let i = four * {WIDTH}u;
{body}
}}
"""
    return text, workgroups


def _lanes(count: int) -> list[str]:
    """The numbers of the four elements; beyond the last one, the last one, so that no index leaves its tensor."""
    numbers = ["i", *(f"i + {lane}u" for lane in range(1, WIDTH))]
    return numbers if count % WIDTH == 0 else [f"min({number}, {count - 1}u)" for number in numbers]


WORKGROUP = 256
MAX_WORKGROUPS = 65535


def grid(groups: int) -> tuple[int, int, int]:
    """At least ``groups`` workgroups, spread over x and y where x alone has not enough."""
    rows = -(-groups // MAX_WORKGROUPS)
    return -(-groups // rows), rows, 1
