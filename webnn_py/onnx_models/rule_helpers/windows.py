"""Windows of convolutions and pooling, as ONNX writes them.

WebNN's windows slide over two axes. Along a single axis they do, too, when a height of 1 is put before it; over three
and more, the rules take apart what the operator does.
"""

from collections.abc import Sequence

import attrs

from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

MAX_SPATIAL_AXES = 2
"""Of WebNN's operators."""
MAX_TAKEN_APART = 3
"""Of volumes."""


@attrs.frozen
class SlidingWindows:
    """How windows slide over the spatial axes: one number for each axis.

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
        """What a window spans."""
        return tuple(_reach(*item) for item in zip(self.kernel, self.dilations, strict=True))

    @property
    def padding(self) -> tuple[int, ...]:
        """The padding as WebNN has it: before and after the height, before and after the width."""
        pairs = [pair for axis in zip(self.begins, self.ends, strict=True) for pair in axis]
        return lifted(pairs, [0, 0])

    @property
    def window(self) -> tuple[int, ...]:
        """The window's height and width."""
        return lifted(self.kernel, [1])

    @property
    def two_strides(self) -> tuple[int, ...]:
        """The strides along height and width."""
        return lifted(self.strides, [1])

    @property
    def two_dilations(self) -> tuple[int, ...]:
        """The dilations along height and width."""
        return lifted(self.dilations, [1])

    def along(self, first: int, end: int) -> "SlidingWindows":
        """The same over some of the axes."""
        parts = (self.sizes, self.kernel, self.strides, self.dilations, self.begins, self.ends)
        return SlidingWindows(*(part[first:end] for part in parts))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many windows there are."""
        return tuple(
            (begin + size + end - reach) // stride + 1
            for size, reach, stride, begin, end in zip(
                self.sizes, self.reaches, self.strides, self.begins, self.ends, strict=True
            )
        )

    def rounded_up(self) -> "SlidingWindows":
        """SlidingWindows with so much padding at the end that none is left out that starts before it.

        So ONNX rounds output sizes up: the last window may reach beyond the padding, but must not start there.
        """
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


def windows(  # noqa: PLR0913 - as many parameters as ONNX gives the operators
    x: MLOperand,
    kernel: Sequence[int],
    *,
    auto_pad: str,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
) -> SlidingWindows:
    """The windows that a node's attributes say.

    Raises:
        Refused: they do not fit the input, or slide over more than three axes.
    """
    sizes = spatial_sizes(x)
    strides = _for_each_axis("strides", strides, 1, len(sizes))
    dilations = _for_each_axis("dilations", dilations, 1, len(sizes))
    kernel = _for_each_axis("kernel_shape", kernel, 1, len(sizes))
    if min(*strides, *dilations, *kernel) < 1:
        given = f"{list(strides)}, {list(dilations)} and {list(kernel)}"
        refuse("strides, dilations and kernel shape", given, "at least 1 everywhere")
    begins, ends = given_padding(auto_pad, pads, len(sizes))
    if auto_pad.startswith("SAME"):
        totals = [
            max(0, (-(-size // stride) - 1) * stride + _reach(window, dilation) - size)
            for size, window, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
        ]
        begins, ends = shared(totals, more_at_end=auto_pad == "SAME_UPPER")
    return SlidingWindows(sizes, tuple(kernel), strides, dilations, begins, ends)


def spatial_sizes(x: MLOperand) -> tuple[int, ...]:
    """The lengths of the spatial axes, which come after batch and channels.

    Raises:
        Refused: there are none, or more than any rule takes apart.
    """
    if not 1 <= x.rank - 2 <= MAX_TAKEN_APART:
        refuse(f"the rank of the input {list(x.shape)}", x.rank, f"from 3 to {MAX_TAKEN_APART + 2}")
    return x.shape[2:]


def given_padding(auto_pad: str, pads: Sequence[int] | None, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding that is given: before and after each axis; none where ``auto_pad`` is to choose.

    Raises:
        Refused: padding is given both ways, or negative.
    """
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        refuse("attribute auto_pad", auto_pad, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
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
