"""Pooling in WGSL: each element looks through its window; whole images are reduced."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import numpy as np

from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.codegen.expressions import extreme
from webnn_py.device.on_wgpu.codegen.map_kernel import MapKernel
from webnn_py.device.on_wgpu.codegen.pooling.shape import PoolingShape, slides_of
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.table import composite, kernels
from webnn_py.device.on_wgpu.records.variants import KernelVariant
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
    if outputs != [1, 1] or not is_whole or not KernelVariant.GLOBAL_POOLING.is_on:
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
    kernel = MapKernel(lowering, node)
    kernel.finish(element_of(value, kernel, pool), Epilogue(lowering, node, own_buffers=2))


def element_of(value: Value, kernel: MapKernel, pool: PoolingShape) -> str:
    """Return the statements that compute one element."""
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
