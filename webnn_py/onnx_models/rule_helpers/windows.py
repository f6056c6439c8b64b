"""Windows of convolutions and pooling, as ONNX writes them.

WebNN's windows slide over two axes. Along a single axis they do, too, when a height of 1 is put before it; over three
and more, the rules take apart what the operator does.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.frozen import frozen
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.core.operators.windows import Slide
from webnn_py.onnx_models.conversion.context import ConversionContext

MAX_SPATIAL_AXES = 2
"""Of WebNN's operators."""
MAX_TAKEN_APART = 3
"""Of volumes."""


AutoPad = Literal["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]


@frozen(kw_only=True)
class WindowAttributes:
    """Attributes of nodes whose windows slide over the spatial axes.

    Attributes:
        dilations: for each axis, by default 1.
        pads: the padding before each axis, then that after each; by default 0.
        strides: for each axis, by default 1.
    """

    dilations: Sequence[int] | None = None
    pads: Sequence[int] | None = None
    strides: Sequence[int] | None = None


@frozen(kw_only=True)
class PoolingAttributes(WindowAttributes):
    """Attributes of pooling.

    Attributes:
        auto_pad: how the padding follows from the input's size, if it does.
    """

    auto_pad: AutoPad = "NOTSET"


@frozen(kw_only=True)
class ConvolutionAttributes(PoolingAttributes):
    """Attributes of convolutions.

    Attributes:
        group: the number of groups of channels.
        kernel_shape: the size of the filters again.
    """

    group: int = 1
    kernel_shape: Sequence[int] | None = None

    def check_kernel(self, w: MLOperand) -> None:
        """Refuse filters of another size than ``kernel_shape``.

        Raises:
            Refused: they have another size.
        """
        if self.kernel_shape is not None and tuple(self.kernel_shape) != w.shape[2:]:
            refuse("attribute kernel_shape", tuple(self.kernel_shape), f"that of input W, {list(w.shape[2:])}")


def windows(x: MLOperand, kernel: Sequence[int], given: WindowAttributes, auto_pad: AutoPad = "NOTSET") -> list[Slide]:
    """Return the windows that a node's attributes describe.

    Raises:
        Refused: they do not fit the input, or slide over more than three axes.
    """
    if not 1 <= x.rank - 2 <= MAX_TAKEN_APART:
        refuse(f"the rank of the input {list(x.shape)}", x.rank, f"from 3 to {MAX_TAKEN_APART + 2}")
    sizes = x.shape[2:]
    strides = _for_each_axis("strides", given.strides, 1, len(sizes))
    dilations = _for_each_axis("dilations", given.dilations, 1, len(sizes))
    kernel = _for_each_axis("kernel_shape", kernel, 1, len(sizes))
    if min(*strides, *dilations, *kernel) < 1:
        shown = f"{list(strides)}, {list(dilations)} and {list(kernel)}"
        refuse("strides, dilations and kernel shape", shown, "at least 1 everywhere")
    begins, ends = given_padding(auto_pad, given.pads, len(sizes))
    if auto_pad.startswith("SAME"):
        totals = [
            max(0, (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size)
            for size, stride, window, dilation in zip(sizes, strides, kernel, dilations, strict=True)
        ]
        begins, ends = shared(totals, more_at_end=auto_pad == "SAME_UPPER")
    return list(map(Slide, sizes, kernel, begins, ends, strides, dilations))


def counts(slid: Iterable[Slide]) -> tuple[int, ...]:
    """Return the number of windows along each axis."""
    return tuple([(item.begin + item.size + item.end - item.reach) // item.stride + 1 for item in slid])


def places_of(slide: Slide, count: int) -> NDArray[np.int64]:
    """Return the indices along an axis of each window's elements, [windows, elements]; some may be in the padding."""
    starts = np.arange(count)[:, np.newaxis] * slide.stride - slide.begin
    return starts + np.arange(slide.window) * slide.dilation


def rounded_up(slid: Iterable[Slide]) -> list[Slide]:
    """Return windows with padding at the end for those that start before it, as ONNX rounds sizes up."""
    rounded = []
    for item in slid:
        before_end = item.begin + item.size
        count = -(-(before_end + item.end - item.reach) // item.stride) + 1
        if (count - 1) * item.stride >= before_end:
            count -= 1
        rounded.append(attrs.evolve(item, end=item.needed_end(count)))
    return rounded


def over_padded(slid: Iterable[Slide], padded: Iterable[Slide]) -> list[Slide]:
    """Return windows over an input that was padded as ``padded`` says; more padding at the end remains."""
    return [
        attrs.evolve(item, size=done.begin + done.size + done.end, begin=0, end=item.end - done.end)
        for item, done in zip(slid, padded, strict=True)
    ]


_HEIGHT_OF_ONE: Final = Slide(1, 1, 0, 0, 1, 1)


def window(slid: Sequence[Slide]) -> tuple[int, ...]:
    """Return the window's height and width."""
    return tuple([item.window for item in _images(slid)])


def sliding(slid: Sequence[Slide]) -> dict[str, Any]:
    """Return the padding, strides and dilations along height and width, as WebNN's operators take them."""
    images = _images(slid)
    return {
        "padding": tuple([end for item in images for end in (item.begin, item.end)]),
        "strides": tuple([item.stride for item in images]),
        "dilations": tuple([item.dilation for item in images]),
    }


def _images(slid: Sequence[Slide]) -> Sequence[Slide]:
    """Return windows over two axes: of a single one, with a height of 1 before it."""
    return [_HEIGHT_OF_ONE, *slid][-MAX_SPATIAL_AXES:]


def given_padding(auto_pad: AutoPad, pads: Sequence[int] | None, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding that is given: before and after each axis; none where ``auto_pad`` is to choose.

    Raises:
        Refused: padding is given both ways, or negative.
    """
    pads = _for_each_axis("pads", pads, 0, 2 * axes)
    if auto_pad != "NOTSET" and any(pads):
        refuse("attribute pads", pads, f"absent when auto_pad is {auto_pad}")
    if min(pads) < 0:
        refuse("attribute pads", pads, "at least 0")
    return pads[:axes], pads[axes:]


def shared(totals: Sequence[int], *, more_at_end: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Share padding between both sides; of an odd number one side has one more."""
    less = tuple(total // 2 for total in totals)
    more = tuple(total - half for total, half in zip(totals, less, strict=True))
    return (less, more) if more_at_end else (more, less)


def as_images(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return a tensor, which gets a height of 1 if it has a single spatial axis."""
    return context.reshape(x, [*x.shape[:2], 1, *x.shape[2:]]) if x.rank == MAX_SPATIAL_AXES + 1 else x


def like(context: ConversionContext, y: MLOperand, x: MLOperand) -> MLOperand:
    """Return an output without the height of 1, where ``x`` had none."""
    return context.reshape(y, [*y.shape[:2], *y.shape[3:]]) if x.rank == MAX_SPATIAL_AXES + 1 else y


def _for_each_axis(name: str, values: Sequence[int] | None, default: int, count: int) -> tuple[int, ...]:
    if values is None:
        return (default,) * count
    if len(values) != count:
        refuse(f"attribute {name}", tuple(values), f"of length {count}")
    return tuple(values)
