"""Convolutions by windows with far more elements than images have places, so that most of them meet padding."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from webnn_py.core.operators.windows import Slide
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.float16 import float32
from webnn_py.devices.numpy.table import Array, PreparedKernel

LONG: Final = 2**8
"""The least elements of a long window."""

LONGER: Final = 4
"""The least ratio of the elements of a window to the places of an image."""

Indices = npt.NDArray[np.intp]


def has_long_windows(conv: Convolution) -> bool:
    """Return whether most elements of windows would meet padding."""
    return conv.tap_count >= max(LONG, LONGER * prod(slide.size for slide in conv.slides))


def long_windows(conv: Convolution) -> PreparedKernel:
    """Make the kernel: each place of an image times the elements of windows that meet it, added to their results.

    Nothing is computed for padding, where infinities and NaN of the filter give NaN; these are put in afterwards.
    """
    axes = [list(_meetings(slide, count)) for slide, count in zip(conv.slides, conv.output_sizes, strict=True)]
    order = [conv.filter_layout.index(axis) for axis in ("oiwh" if conv.is_turned else "oihw")]

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        filters = float32(filter_.transpose(order))
        filters = filters.reshape(conv.groups, conv.group_outputs, *filters.shape[1:])
        strange: Array = np.logical_not(np.isfinite(filters).all(2))
        bias, output = conv.bias(rest), conv.by_group(rest[-1])
        for image, target in zip(conv.by_group(images), output, strict=True):
            total = np.zeros(target.shape, np.float32)
            for (y, rows, i), (x, columns, j) in product(*axes):
                elements = filters[..., i[:, np.newaxis], j]
                met = np.einsum("gi,goiyx->goyx", float32(image[:, :, y, x]), elements)
                total[:, :, rows[:, np.newaxis], columns] += met
            if bias is not None:
                total += bias
            if strange.any():
                total[_meets_padding(strange, axes, total.shape)] = np.nan
            np.copyto(target, total, casting="same_kind")

    return PreparedKernel(lambda *arrays: partial(run, *arrays))


Meeting = tuple[int, Indices, Indices]
"""A place of an image along an axis, the windows that reach it, and the element of each that meets it."""


def _meetings(slide: Slide, count: int) -> Iterator[Meeting]:
    for place in range(slide.size):
        offsets = place + slide.begin - np.arange(count) * slide.stride
        elements, remainders = np.divmod(offsets, slide.dilation)
        (windows,) = np.nonzero((remainders == 0) & (elements >= 0) & (elements < slide.window))
        yield place, windows, elements[windows]


def _meets_padding(strange: Array, axes: list[list[Meeting]], shape: tuple[int, ...]) -> Array:
    """Return which windows have some of the marked elements in the padding."""
    within = np.zeros(shape, np.int64)
    for (_, rows, i), (_, columns, j) in product(*axes):
        within[:, :, rows[:, np.newaxis], columns] += strange[:, :, i[:, np.newaxis], j]
    found: Array = within < strange.sum((2, 3), keepdims=True)
    return found
