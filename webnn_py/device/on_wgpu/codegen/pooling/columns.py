"""Pooling of images whose channels come first, down columns.

An invocation computes a few neighbours of a column, and combines each row of their windows once; neighbouring
invocations read neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.codegen.expressions import wrapping_literal
from webnn_py.device.on_wgpu.codegen.pooling.shape import MOST_UNROLLED, PoolingShape
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.graph import Node, Value

ROWS: Final = 4
"""Results of an invocation."""

MOST_READ: Final = 96
"""Elements that an invocation reads, all of which are written out."""


def reads_columns(lowering: Lowering, value: Value, epilogue: Epilogue, pool: PoolingShape) -> bool:
    """Whether a pooling can be read so."""
    if not pool.nchw or pool.taps > MOST_UNROLLED or not lowering.place(value).layout.is_dense:
        return False
    is_single = lowering.element(value).per_one == 1 and epilogue.stores_single_elements
    is_read = is_single and len(_offsets(pool)) * pool.slides[1].window <= MOST_READ
    return is_read and Variant.POOLING_COLUMNS.is_on


def emit_columns(lowering: Lowering, node: Node, epilogue: Epilogue, pool: PoolingShape) -> None:
    """The kernel of a pooling of which :func:`reads_columns` is true."""
    (value,) = node.inputs
    buffer, element = lowering.place(value).buffer, lowering.element(value)
    channels, height, width = pool.sizes
    vertical, horizontal = pool.slides
    rows = min(ROWS, height)
    strips = -(-height // rows)
    lines = [
        f"let column = four % {width}u;",
        f"let row = four / {width}u % {strips}u * {rows}u;",
        f"let plane = four / {width * strips}u;",
        f"let top = row * {vertical.stride}u + {wrapping_literal(-vertical.begin)};",
        f"let left = column * {horizontal.stride}u + {wrapping_literal(-horizontal.begin)};",
    ]
    for u in range(horizontal.window):
        lines.append(f"let w{u} = left + {u * horizontal.dilation}u;")
        lines.append(f"let is_column{u} = w{u} < {horizontal.size}u;")
    for offset in _offsets(pool):
        lines += _read_row(pool, offset, element)
    if not pool.is_inside:
        lines.append(f"let columns = {_counted(f'is_column{u}' for u in range(horizontal.window))};")
    for place in range(rows):
        lines += _result(pool, place)
    count = node.outputs[0].shape[0] * channels * strips * width
    main, workgroups = vec4_entry_point(count * WIDTH, "\n".join(f"  {line}" for line in lines))
    reads = [(buffer, "images", element.one)]
    lowering.emit(epilogue.write(vec4s=False).kernel(epilogue.label, reads, [main], "", workgroups))


def _offsets(pool: PoolingShape) -> list[int]:
    """Rows that an invocation reads, from the first one on."""
    return sorted({offset for place in range(min(ROWS, pool.sizes[1])) for offset in _window(pool, place)})


def _window(pool: PoolingShape, place: int) -> list[int]:
    """Rows of the window of a result."""
    vertical = pool.slides[0]
    return [place * vertical.stride + v * vertical.dilation for v in range(vertical.window)]


def _read_row(pool: PoolingShape, offset: int, element: Element) -> list[str]:
    """Combine a row of the window: ``total{offset}``; nothing outside of the image."""
    vertical, horizontal = pool.slides
    lines = [
        f"let h{offset} = top + {offset}u;",
        f"let is_row{offset} = h{offset} < {vertical.size}u;",
        f"let begin{offset} = (plane * {vertical.size}u + h{offset}) * {horizontal.size}u;",
        f"var total{offset} = {pool.begin};",
    ]
    for u in range(horizontal.window):
        inside = f"is_row{offset} && is_column{u}"
        load = element.load("images", f"select(0u, begin{offset} + w{u}, {inside})")
        value = f"x{offset}_{u}"
        lines.append(f"let {value} = select({pool.begin}, {load}, {inside});")
        lines.append(f"total{offset} = {pool.combine(f'total{offset}', value)};")
    return lines


def _result(pool: PoolingShape, place: int) -> list[str]:
    """Store a result."""
    _, height, width = pool.sizes
    offsets = _window(pool, place)
    total = f"total{offsets[0]}"
    lines = []
    for offset in offsets[1:]:
        name = f"all{place}_{offset}"
        lines.append(f"let {name} = {pool.merge(total, f'total{offset}')};")
        total = name
    count = f"{pool.taps}.0"
    if not pool.is_inside:
        count = f"count{place}"
        inside = _counted(f"is_row{offset}" for offset in offsets)
        lines.append(f"let {count} = f32(max(columns * ({inside}), 1u));")
    number = f"(plane * {height}u + row + {place}u) * {width}u + column"
    stored = f"finish_one({number}, {pool.finish(total, count)});"
    is_there = height % min(ROWS, height) == 0
    return [*lines, stored if is_there else f"if (row + {place}u < {height}u) {{ {stored} }}"]


def _counted(conditions: Iterable[str]) -> str:
    """How many are true."""
    return " + ".join(f"select(0u, 1u, {condition})" for condition in conditions)
