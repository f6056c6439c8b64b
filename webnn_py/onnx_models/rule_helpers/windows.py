"""Windows of convolutions and pooling, as ONNX writes them.

WebNN's windows slide over two axes. Along a single axis they do, too, when a height of 1 is put before it; over three
and more, the rules take apart what the operator does.
"""

from collections.abc import Sequence
from typing import Any, Literal

import attrs

from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

MAX_SPATIAL_AXES = 2
"""Of WebNN's operators."""
MAX_TAKEN_APART = 3
"""Of volumes."""


AutoPad = Literal["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
class PoolingAttributes(WindowAttributes):
    """Attributes of pooling.

    Attributes:
        auto_pad: how the padding follows from the input's size, if it does.
    """

    auto_pad: AutoPad = "NOTSET"


@attrs.frozen(kw_only=True)
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


@attrs.frozen
class SlidingWindows:
    """Windows that slide over the spatial axes: one number for each axis.

    Attributes:
        sizes: the lengths of the axes.
        kernel: how many elements a window has.
        strides: from one window to the next.
        dilations: from one element of a window to the next.
        begins: the padding before the axes.
        ends: the padding after them.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def reaches(self) -> tuple[int, ...]:
        """The span of a window."""
        return tuple(_reach(*item) for item in zip(self.kernel, self.dilations, strict=True))

    @property
    def window(self) -> tuple[int, ...]:
        """The window's height and width."""
        return lifted(self.kernel, [1])

    @property
    def two_axes(self) -> dict[str, Any]:
        """The padding, strides and dilations along height and width, as WebNN's operators take them."""
        pairs = [pair for axis in zip(self.begins, self.ends, strict=True) for pair in axis]
        steps = {"strides": lifted(self.strides, [1]), "dilations": lifted(self.dilations, [1])}
        return {"padding": lifted(pairs, [0, 0]), **steps}

    def along(self, first: int, end: int) -> "SlidingWindows":
        """The same over some of the axes."""
        parts = (self.sizes, self.kernel, self.strides, self.dilations, self.begins, self.ends)
        return SlidingWindows(*(part[first:end] for part in parts))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of windows along each axis."""
        totals = zip(self.begins, self.sizes, self.ends, strict=True)
        slides = zip(totals, self.reaches, self.strides, strict=True)
        return tuple((sum(total) - reach) // stride + 1 for total, reach, stride in slides)

    def rounded_up(self) -> "SlidingWindows":
        """Return the windows with padding at the end for those that start before it, as ONNX rounds sizes up."""
        ends = []
        for size, reach, stride, begin, end in zip(
            self.sizes, self.reaches, self.strides, self.begins, self.ends, strict=True
        ):
            count = -(-(begin + size + end - reach) // stride) + 1
            if (count - 1) * stride >= begin + size:
                count -= 1
            ends.append(max(end, (count - 1) * stride + reach - begin - size))
        return attrs.evolve(self, ends=tuple(ends))

    def over_padded(self, padded: "SlidingWindows") -> "SlidingWindows":
        """These windows over an input that was padded already as ``padded`` says; more padding at the end remains."""
        sizes = tuple(map(sum, zip(padded.begins, padded.sizes, padded.ends, strict=True)))
        rest = tuple(end - done for end, done in zip(self.ends, padded.ends, strict=True))
        return attrs.evolve(self, sizes=sizes, begins=(0,) * len(sizes), ends=rest)


def windows(
    x: MLOperand, kernel: Sequence[int], given: WindowAttributes, auto_pad: AutoPad = "NOTSET"
) -> SlidingWindows:
    """Return the windows that a node's attributes describe.

    Raises:
        Refused: they do not fit the input, or slide over more than three axes.
    """
    sizes = spatial_sizes(x)
    strides = _for_each_axis("strides", given.strides, 1, len(sizes))
    dilations = _for_each_axis("dilations", given.dilations, 1, len(sizes))
    kernel = _for_each_axis("kernel_shape", kernel, 1, len(sizes))
    if min(*strides, *dilations, *kernel) < 1:
        shown = f"{list(strides)}, {list(dilations)} and {list(kernel)}"
        refuse("strides, dilations and kernel shape", shown, "at least 1 everywhere")
    begins, ends = given_padding(auto_pad, given.pads, len(sizes))
    if auto_pad.startswith("SAME"):
        totals = [
            max(0, (-(-size // stride) - 1) * stride + _reach(window, dilation) - size)
            for size, stride, window, dilation in zip(sizes, strides, kernel, dilations, strict=True)
        ]
        begins, ends = shared(totals, more_at_end=auto_pad == "SAME_UPPER")
    return SlidingWindows(sizes, kernel, strides, dilations, begins, ends)


def spatial_sizes(x: MLOperand) -> tuple[int, ...]:
    """The lengths of the spatial axes, which come after batch and channels.

    Raises:
        Refused: there are none, or more than any rule takes apart.
    """
    if not 1 <= x.rank - 2 <= MAX_TAKEN_APART:
        refuse(f"the rank of the input {list(x.shape)}", x.rank, f"from 3 to {MAX_TAKEN_APART + 2}")
    return x.shape[2:]


def given_padding(auto_pad: AutoPad, pads: Sequence[int] | None, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding that is given: before and after each axis; none where ``auto_pad`` is to choose.

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
    """Padding shared between both sides; of an odd number one side has one more."""
    less = tuple(total // 2 for total in totals)
    more = tuple(total - half for total, half in zip(totals, less, strict=True))
    return (less, more) if more_at_end else (more, less)


def as_images(context: ConversionContext, x: MLOperand) -> MLOperand:
    """A tensor with a single spatial axis gets a height of 1."""
    return context.reshape(x, [*x.shape[:2], 1, *x.shape[2:]]) if x.rank == MAX_SPATIAL_AXES + 1 else x


def like(context: ConversionContext, y: MLOperand, x: MLOperand) -> MLOperand:
    """The height of 1 is taken away again, where ``x`` had none."""
    return context.reshape(y, [*y.shape[:2], *y.shape[3:]]) if x.rank == MAX_SPATIAL_AXES + 1 else y


def lifted(values: Sequence[int], neutral: Sequence[int]) -> tuple[int, ...]:
    """Values for two axes: of a single one, with those of a height of 1 before them."""
    return tuple(values) if len(values) == MAX_SPATIAL_AXES * len(neutral) else (*neutral, *values)


def _for_each_axis(name: str, values: Sequence[int] | None, default: int, count: int) -> tuple[int, ...]:
    if values is None:
        return (default,) * count
    if len(values) != count:
        refuse(f"attribute {name}", tuple(values), f"of length {count}")
    return tuple(values)


def _reach(window: int, dilation: int) -> int:
    return (window - 1) * dilation + 1
