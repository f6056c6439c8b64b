"""Dynamic quantization: a composite of some twenty operators, most of them on single numbers."""

from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE
from webnn_py.devices.numpy.routines.blocks import passes
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, Kernel, kernel, scalar

HIGHEST: Final = 255
LOWEST_PLACE, HIGHEST_PLACE = scalar(0, "float32"), scalar(HIGHEST, "float32")
ZERO, ONE, MOST = (np.float32(number) for number in (0, 1, HIGHEST))
PIECE: Final = 2**16
"""The elements that are quantized at a time, which stay in the cache."""


@kernel(DYNAMIC_QUANTIZE, work=passes(4))
def dynamic_quantize(node: Node) -> Kernel:
    count = node.outputs[0].element_count
    pieces = [slice(start, start + PIECE) for start in range(0, count, PIECE)]
    quotients = scratch((min(count, PIECE),), np.float32)

    def run(x: Array, integers: Array, scale: Array, zero_point: Array) -> None:
        lowest, highest = _range(x)
        span = highest - lowest
        scale[...] = step = span / MOST if span != 0 else ONE
        point = float(np.rint(-lowest / step))
        zero_point[...] = place = np.float32(min(point, HIGHEST)) if point > 0 else ZERO  # 0 where the range is NaN
        # Division and rounding are monotonic: where the ends need not saturate, nothing between them does.
        ends = np.rint(lowest / step) + place, np.rint(highest / step) + place
        is_within = bool(ends[0] >= 0 and ends[1] <= HIGHEST)
        flat, result = x.reshape(-1), integers.reshape(-1)
        for piece in pieces:
            _quantize(flat[piece], step, place, result[piece], quotients, is_within=is_within)

    return run


def _range(x: Array) -> tuple[np.float32, np.float32]:
    """Return the lowest and the highest of the elements and 0; NaN where an element is NaN."""
    lowest, highest = np.minimum.reduce(x, axis=None), np.maximum.reduce(x, axis=None)
    return ZERO if lowest > 0 else lowest, ZERO if highest < 0 else highest


def _quantize(
    x: Array, step: np.float32, place: np.float32, integers: Array, quotients: Array, *, is_within: bool
) -> None:
    y = quotients[: len(x)]
    np.divide(x, step, out=y)
    np.rint(y, out=y)
    np.add(y, place, out=y)
    if not is_within:
        y.clip(LOWEST_PLACE, HIGHEST_PLACE, out=y)
        np.copyto(y, 0, where=np.isnan(y))
    np.copyto(integers, y, casting="unsafe")
