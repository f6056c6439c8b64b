"""Filter packing: a convolution's filter in the layout that BLAS takes."""

from collections.abc import Callable, Iterable

import numpy as np

from webnn_py.devices.numpy.routines.blas import for_blas
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.tiling import tile_size
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array


def filter_matrices(conv: Convolution, filter_: Array) -> Array:
    """Return the filter as [groups, output channels of a group, elements of a window]; a view if the filter is dense.

    The elements of a window are in the filter's own order.
    """
    if conv.filter_layout in ("oihw", "ohwi"):
        return filter_.reshape(conv.groups, conv.group_outputs, -1)
    return filter_.reshape(-1, conv.groups, conv.group_outputs).transpose(1, 2, 0)


FilterBlocks = Callable[[], Iterable[tuple[slice, Array]]]
"""Returns the filter as matrices, each with the range of the groups' output channels that it is for."""


class PackedFilter:
    """The filter in BLAS's layout: [groups, output channels of a group, elements of a window], in float32.

    Where the filter has another layout, it is copied; if it is large, some output channels at a time.

    Attributes:
        elements: the elements of scratch for the copy.
        count: the number of blocks.
    """

    def __init__(self, conv: Convolution, *, window_first: bool) -> None:
        """Prepare the scratch.

        Args:
            conv: the convolution.
            window_first: whether the elements of a window come in the order height, width, input channel; otherwise
                in the order input channel, height, width.
        """
        self._conv = conv
        self._order = [conv.filter_layout.index(axis) for axis in ("ohwi" if window_first else "oihw")]
        self._is_view = conv.data_type == "float32" and window_first == conv.is_window_first
        elements = conv.group_inputs * conv.tap_count
        self._step = conv.group_outputs
        if not self._is_view:
            self._step = tile_size(conv.group_outputs, conv.copied_elements / (conv.groups * elements))
        self._starts = range(0, conv.group_outputs, self._step)
        self._memory = scratch((conv.groups, 0 if self._is_view else self._step, elements))
        self.elements = self._memory.size
        self.count = len(self._starts)

    def of(self, filter_: Array) -> FilterBlocks:
        """Return the blocks of a filter."""
        conv = self._conv
        if self._is_view:
            whole = [(slice(None), for_blas(filter_matrices(conv, filter_)))]
            return lambda: whole
        parts = filter_.transpose(self._order)
        parts = parts.reshape(conv.groups, conv.group_outputs, *parts.shape[1:], copy=False)
        if self.count > 1:
            return lambda: (self._copy(parts, start) for start in self._starts)
        copied = [self._copy(parts, 0)]
        return lambda: copied

    def _copy(self, parts: Array, start: int) -> tuple[slice, Array]:
        channels = slice(start, min(start + self._step, self._conv.group_outputs))
        matrices = self._memory[:, : channels.stop - start]
        np.copyto(matrices.reshape(*matrices.shape[:2], *parts.shape[2:], copy=False), parts[:, channels])
        return channels, matrices
