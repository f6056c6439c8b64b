"""Pooling in WGSL: each element looks through its window; whole images are reduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.graph import Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators import pooling
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.windows import Slide, image_axes, image_shape, slides
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue
from webnn_py.devices.wgpu.codegen.expressions import extreme, wrapping_literal
from webnn_py.devices.wgpu.codegen.map_kernel import MapKernel
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import composite, kernels
from webnn_py.devices.wgpu.records.variants import KernelVariant

MOST_UNROLLED: Final = 49
"""The most taps that are unrolled; larger windows are loops."""

Combine = Callable[[str, str], str]
"""(the total, an element) → the new total; or (the total, the number of elements) → the result."""


@kernels(pooling.max_pool2d)
def max_pool2d(node: Node, lowering: Lowering) -> None:
    element = lowering.element(node.results[0])
    data_type = np.dtype(element.data_type)
    lowest = element.literal(-inf if data_type.kind == "f" else int(np.iinfo(data_type).min))
    emit_pooling(node, lowering, lowest, partial(extreme, "max", element.compute), lambda total, _count: total)


@kernels(pooling.average_pool2d)
def average_pool2d(node: Node, lowering: Lowering) -> None:
    emit_pooling(node, lowering, "0.0", lambda total, x: f"{total} + {x}", lambda total, count: f"{total} / {count}")


@kernels(pooling.l2_pool2d)
def l2_pool2d(node: Node, lowering: Lowering) -> None:
    emit_pooling(
        node, lowering, "0.0", lambda total, x: f"fma({x}, {x}, {total})", lambda total, _count: f"root({total})"
    )


# --- whole images ------------------------------------------------------------------------------------------------


REDUCTIONS: Final[Mapping[Operator[..., Any], str]] = {
    pooling.max_pool2d: "reduce_max",
    pooling.average_pool2d: "reduce_mean",
    pooling.l2_pool2d: "reduce_l2",
}
"""The reductions that take the place of poolings of whole images."""


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
    reduce = getattr(builder, REDUCTIONS[node.operator])
    (value,) = node.inputs
    axes = list(image_axes(layout)[2:])
    return [builder.value(reduce(builder.operand(value), axes=axes, keep_dimensions=True))]


for operator in REDUCTIONS:
    composite(operator)(whole)


# --- window by window --------------------------------------------------------------------------------------------


def emit_pooling(node: Node, lowering: Lowering, begin: str, combine: Combine, finish: Combine) -> None:
    """Emit the kernel of a pooling.

    Args:
        node: the pooling.
        lowering: the lowering.
        begin: the initial total, the identity of ``combine``.
        combine: (the total, an element) → the new total.
        finish: (the total, the number of elements) → the result.
    """
    (value,), kernel = node.inputs, MapKernel(lowering, node)
    load = partial(kernel.load, value)
    statements = element_of(PoolingShape.from_node(node), load, begin, combine, finish)
    kernel.finish(statements, Epilogue(lowering, node, own_buffers=2))


def element_of(pool: PoolingShape, load: Callable[[str], str], begin: str, combine: Combine, finish: Combine) -> str:
    """Return the statements that compute one element, given the expression for an element of the images."""
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
    add = f"let x = {load(index)}; total = {combine('total', 'x')};"
    lines += [f"var total = {begin};", *pool.through(add), f"return {finish('total', 'count')};"]
    return "\n".join(f"  {line}" for line in lines)


@attrs.frozen
class PoolingShape:
    """The geometry of a pooling.

    Attributes:
        slides: the windows along height and width.
        sizes: channels, height and width of the output.
        nchw: whether channels come before height and width.
    """

    slides: tuple[Slide, Slide]
    sizes: tuple[int, int, int]
    nchw: bool

    @classmethod
    def from_node(cls, node: Node) -> PoolingShape:
        """Return the shape of a node."""
        layout = node.options["layout"]
        _, channels, height, width = image_shape(node.outputs[0].shape, layout)
        return cls(slides_of(node), (channels, height, width), layout == "nchw")

    @property
    def taps(self) -> int:
        """The taps of a window."""
        return self.slides[0].window * self.slides[1].window

    @property
    def is_inside(self) -> bool:
        """True if no window has taps out of bounds."""
        return all(
            not slide.begin and (size - 1) * slide.stride + slide.reach <= slide.size
            for slide, size in zip(self.slides, self.sizes[1:], strict=True)
        )

    def through(self, add: str) -> list[str]:
        """Return statements that run ``add`` for every element of the window at ``row`` and ``column``.

        In ``add``, the element is at ``h`` and ``w``. Afterwards ``count`` is the number of elements, at least 1.
        """
        vertical, horizontal = self.slides
        lines = [
            f"let h0 = row * {vertical.stride}u + {wrapping_literal(-vertical.begin)};",
            f"let w0 = column * {horizontal.stride}u + {wrapping_literal(-horizontal.begin)};",
            "var elements = 0u;",
        ]
        if self.taps <= MOST_UNROLLED:
            for tap in range(self.taps):
                v, u = divmod(tap, horizontal.window)
                lines += ["{", *self._tap(f"{v}u", f"{u}u", add), "}"]
        else:
            lines += [
                *_bounds("v", "h0", vertical),
                *_bounds("u", "w0", horizontal),
                "for (var v = v_begin; v < v_end; v++) {",
                "for (var u = u_begin; u < u_end; u++) {",
                *self._tap("v", "u", add),
                "}",
                "}",
            ]
        return [*lines, f"let count = {f'{self.taps}.0' if self.is_inside else 'f32(max(elements, 1u))'};"]

    def _tap(self, v: str, u: str, add: str) -> list[str]:
        vertical, horizontal = self.slides
        inside = f"h < {vertical.size}u && w < {horizontal.size}u"
        return [
            f"let h = h0 + {v} * {vertical.dilation}u;",
            f"let w = w0 + {u} * {horizontal.dilation}u;",
            add if self.is_inside else f"if ({inside}) {{ elements += 1u; {add} }}",
        ]


def _bounds(tap: str, first: str, slide: Slide) -> list[str]:
    """Return statements that name the range of taps in bounds: from ``begin`` up to, but without, ``end``."""
    before, left = f"0u - {first} - 1u", f"{slide.size}u - {first} - 1u"
    is_before = f"bitcast<i32>({first}) < 0i"
    is_behind = f"bitcast<i32>({first}) >= {slide.size}i"
    return [
        f"let {tap}_begin = select(0u, ({before}) / {slide.dilation}u + 1u, {is_before});",
        f"let {tap}_end = select(min({slide.window}u, ({left}) / {slide.dilation}u + 1u), 0u, {is_behind});",
    ]


def slides_of(node: Node) -> tuple[Slide, Slide]:
    """Return the windows along height and width."""
    options: Any = node.options
    _, _, *sizes = image_shape(node.operand("input").shape, options["layout"])
    window = options["window_dimensions"] or sizes
    return slides(sizes, window, options["padding"], options["strides"], options["dilations"])
