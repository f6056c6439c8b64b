"""Entry points of compute shaders, and the dispatch sizes that go with them."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from webnn_py.devices.wgpu.records.element import WIDTH

WORKGROUP = 256
"""The default number of invocations per workgroup."""

MAX_WORKGROUPS = 65535
"""The workgroups per dimension that every adapter supports."""

Dispatch = tuple[int, int, int]
"""The number of workgroups in x, y and z."""


def indented(lines: Iterable[str], by: int = 2) -> str:
    """Return statements as text, each on an indented line of its own."""
    return "\n".join(" " * by + line for line in lines)


def vec4_entry_point(count: int, body: Iterable[str]) -> tuple[str, Dispatch]:
    """Return an entry point that runs ``body`` once for each vec4 of ``count`` elements.

    In the body, ``four`` is the index of the vec4 and ``i`` that of its first element.
    """
    vec4s = -(-count // WIDTH)
    workgroups = grid(-(-vec4s // WORKGROUP))
    text = f"""
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let four = id.x + id.y * {workgroups[0] * WORKGROUP}u;
  if (four >= {vec4s}u) {{ return; }}
  let i = four * {WIDTH}u;
{indented(body)}
}}
"""
    return text, workgroups


def workgroup_entry_point(
    groups: int, invocations: int, body: Iterable[str], builtins: str = "@builtin(local_invocation_index) t: u32"
) -> tuple[str, Dispatch]:
    """Return an entry point that runs ``body`` in ``groups`` workgroups; ``number`` is the workgroup's index."""
    workgroups = grid(groups)
    start = [
        f"let number = group.x + group.y * {workgroups[0]}u;",
        f"if (number >= {groups}u) {{ return; }}",
    ]
    text = f"""
@compute @workgroup_size({invocations})
fn main(@builtin(workgroup_id) group: vec3<u32>, {builtins}) {{
{indented([*start, *body])}
}}
"""
    return text, workgroups


def vec4_indices(count: int) -> list[str]:
    """Return the indices of a vec4's elements, clamped to the last element so that none is out of bounds."""
    indices = ["i", *(f"i + {component}u" for component in range(1, WIDTH))]
    return indices if count % WIDTH == 0 else [f"min({index}, {count - 1}u)" for index in indices]


def power_of_two(number: float) -> int:
    """Return the least power of two that is not below a number."""
    return 1 << max(0, ceil(number) - 1).bit_length()


def grid(groups: int) -> Dispatch:
    """Return a dispatch of at least ``groups`` workgroups, spread over x and y if they exceed the limit of x."""
    rows = -(-groups // MAX_WORKGROUPS)
    return -(-groups // rows), rows, 1
