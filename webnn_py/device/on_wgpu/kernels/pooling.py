"""Pooling in WGSL: each element looks through its window; whole images are reduced."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import numpy as np

from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.codegen.expressions import extreme, wrapping_literal
from webnn_py.device.on_wgpu.codegen.map_kernel import MapKernel
from webnn_py.device.on_wgpu.codegen.pooling.columns import emit_columns, reads_columns
from webnn_py.device.on_wgpu.codegen.pooling.shape import PoolingShape, slides_of
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.table import composite, kernels
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.graph import Node, Value
from webnn_py.operators import pooling
from webnn_py.operators.windows import image_axes, image_shape
from webnn_py.rewriting.builder import RewriteBuilder


@kernels(pooling.max_pool2d)
def max_pool2d(node: Node, lowering: Lowering) -> None:
    element = lowering.element(node.results[0])
    data_type = np.dtype(element.data_type)
    lowest = -inf if data_type.kind == "f" else int(np.iinfo(data_type).min)
    pool = PoolingShape.of(
        node, element.literal(lowest), partial(extreme, "max", element.compute), lambda total, _count: total
    )
    emit_pooling(node, lowering, pool)


@kernels(pooling.average_pool2d)
def average_pool2d(node: Node, lowering: Lowering) -> None:
    pool = PoolingShape.of(node, "0.0", lambda total, x: f"{total} + {x}", lambda total, count: f"{total} / {count}")
    emit_pooling(node, lowering, pool)


@kernels(pooling.l2_pool2d)
def l2_pool2d(node: Node, lowering: Lowering) -> None:
    pool = PoolingShape.of(
        node,
        "0.0",
        lambda total, x: f"fma({x}, {x}, {total})",
        lambda total, _count: f"root({total})",
        lambda total, other: f"{total} + {other}",
    )
    emit_pooling(node, lowering, pool)


# --- whole images ------------------------------------------------------------------------------------------------


def whole(node: Node, builder: RewriteBuilder) -> list[Value] | None:
    """Make pooling with one window, the whole image, a reduction."""
    layout: Any = node.options["layout"]
    _, _, *outputs = image_shape(node.outputs[0].shape, layout)
    is_whole = all(
        slide.window == slide.size and not slide.begin and (slide.dilation == 1 or slide.size == 1)
        for slide in slides_of(node)
    )
    if outputs != [1, 1] or not is_whole or not Variant.GLOBAL_POOLING.is_on:
        return None
    reduce = {
        "max_pool2d": builder.reduce_max,
        "average_pool2d": builder.reduce_mean,
        "l2_pool2d": builder.reduce_l2,
    }[node.operator.name]
    (value,) = node.inputs
    axes = list(image_axes(layout)[2:])
    return [builder.value(reduce(builder.operand(value), axes=axes, keep_dimensions=True))]


composite(pooling.max_pool2d)(whole)


composite(pooling.average_pool2d)(whole)


composite(pooling.l2_pool2d)(whole)


# --- window by window --------------------------------------------------------------------------------------------


def emit_pooling(node: Node, lowering: Lowering, pool: PoolingShape) -> None:
    """The kernel of any pooling."""
    (value,) = node.inputs
    is_in_vec4s = not pool.nchw and pool.sizes[0] % WIDTH == 0 and lowering.place(value).layout.vec4s() is not None
    if is_in_vec4s and Variant.POOLING_CHANNELS.is_on:
        emit_channels(node, lowering, pool)
        return
    epilogue = Epilogue(lowering, node, own_buffers=2)
    if reads_columns(lowering, value, epilogue, pool):
        emit_columns(lowering, node, epilogue, pool)
    else:
        kernel = MapKernel(lowering, node)
        kernel.finish(element_of(value, kernel, pool), epilogue)


def element_of(value: Value, kernel: MapKernel, pool: PoolingShape) -> str:
    """The statements that compute one element."""
    channels, height, width = pool.sizes
    vertical, horizontal = pool.slides
    if pool.nchw:
        lines = [f"let column = i % {width}u;", f"let row = i / {width}u % {height}u;"]
        lines.append(f"let plane = i / {width * height}u * {vertical.size}u;")
        index = f"(plane + h) * {horizontal.size}u + w"
    else:
        lines = [f"let column = i / {channels}u % {width}u;", f"let row = i / {channels * width}u % {height}u;"]
        lines.append(f"let image = i / {channels * width * height}u * {vertical.size}u;")
        index = f"((image + h) * {horizontal.size}u + w) * {channels}u + i % {channels}u"
    add = f"let x = {kernel.load(value, index)}; total = {pool.combine('total', 'x')};"
    lines += [f"var total = {pool.begin};", *pool.through(add), f"return {pool.finish('total', 'count')};"]
    return "\n".join(f"  {line}" for line in lines)


def emit_channels(node: Node, lowering: Lowering, pool: PoolingShape) -> None:
    """Each invocation pools four channels of a place, which lie side by side."""
    (value,) = node.inputs
    place = lowering.place(value)
    element = lowering.element(value)
    channels, height, width = pool.sizes
    vec4s = channels // WIDTH
    totals = [f"total{component}" for component in range(WIDTH)]
    add = f"let x = images[{_vec4_of(place.layout)}];"
    for component, (total, part) in enumerate(zip(totals, element.unpack("x"), strict=True)):
        add += f" let x{component} = {part}; {total} = {pool.combine(total, f'x{component}')};"
    results = ", ".join(pool.finish(total, "count") for total in totals)
    lines = [
        f"let channel = four % {vec4s}u;",
        f"let column = four / {vec4s}u % {width}u;",
        f"let row = four / {vec4s * width}u % {height}u;",
        f"let image = four / {vec4s * width * height}u;",
        *(f"var {total} = {pool.begin};" for total in totals),
        *pool.through(add),
        f"finish(four, vec4<{element.compute}>({results}));",
    ]
    epilogue = Epilogue(lowering, node, own_buffers=2)
    main, workgroups = vec4_entry_point(epilogue.count, "\n".join(f"  {line}" for line in lines))
    reads = [(place.buffer, "images", element.vec4)]
    lowering.emit(epilogue.write(vec4s=True).kernel(epilogue.label, reads, [main], "", workgroups))


def _vec4_of(layout: Layout) -> str:
    """The number of a vec4 of channels."""
    image, height, width = (wrapping_literal(stride // WIDTH) for stride in layout.strides[:3])
    return f"{layout.offset // WIDTH}u + image * {image} + h * {height} + w * {width} + channel"
