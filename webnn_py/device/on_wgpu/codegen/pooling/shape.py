"""The geometry of poolings, and the loops over their windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from webnn_py.device.on_wgpu.codegen.expressions import wrapping_literal
from webnn_py.graph import Node
from webnn_py.operators.windows import Slide, image_shape, slides

MOST_UNROLLED: Final = 49
"""The most taps that are unrolled; larger windows are loops."""


@attrs.frozen
class PoolingShape:
    """The geometry and the reduction of a pooling.

    Attributes:
        begin: the initial total, as WGSL: the identity of ``combine``.
        combine: (the total, an element) → the new total.
        finish: (the total, the number of elements) → the result.
        slides: the windows along height and width.
        sizes: channels, height and width of the output.
        nchw: whether channels come before height and width.
    """

    begin: str
    combine: Callable[[str, str], str]
    finish: Callable[[str, str], str]
    slides: tuple[Slide, Slide]
    sizes: tuple[int, int, int]
    nchw: bool

    @classmethod
    def of(
        cls,
        node: Node,
        begin: str,
        combine: Callable[[str, str], str],
        finish: Callable[[str, str], str],
    ) -> PoolingShape:
        """Return the shape of a node."""
        layout = node.options["layout"]
        _, channels, height, width = image_shape(node.outputs[0].shape, layout)
        return cls(begin, combine, finish, slides_of(node), (channels, height, width), layout == "nchw")

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
