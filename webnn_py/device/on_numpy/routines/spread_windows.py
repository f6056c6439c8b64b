"""The windows of convolutions with large dilations, copied directly from the images, element by element.

An im2col tile has all rows that its windows span. Where windows span far more rows than they read, that is more than
the windows: at a dilation of thousands a tile of one row of windows would not fit into the scratch.
"""

from itertools import product

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.tiling import inside
from webnn_py.device.on_numpy.table import Array
from webnn_py.operators.windows import Slide


@attrs.frozen
class SpreadWindows:
    """Copies the windows of some rows, with zeros in place of padding.

    Attributes:
        slides: the slides of windows along height and width, in steps of 1.
        windows: the target, a view (lead..., height and width of a window, rows, columns, inner...).
        lead: the number of axes before the windows' height.
    """

    slides: tuple[Slide, Slide]
    windows: Array
    lead: int

    def fill(self, images: Array, row_start: int) -> None:
        """Copy the windows of the rows from ``row_start``.

        Args:
            images: (lead..., height, width, inner...).
            row_start: the first row of windows.
        """
        vertical, horizontal = self.slides
        every = (slice(None),) * self.lead
        rows, columns = self.windows.shape[self.lead + 2 : self.lead + 4]
        for i, j in product(range(vertical.window), range(horizontal.window)):
            top = row_start + i * vertical.dilation - vertical.begin
            left = j * horizontal.dilation - horizontal.begin
            (first, last), (begin, end) = inside(top, 1, rows, vertical.size), inside(left, 1, columns, horizontal.size)
            target: Array = self.windows[(*every, slice(i, i + 1), slice(j, j + 1))].squeeze((self.lead, self.lead + 1))
            if (last - first) * (end - begin) < rows * columns:
                target.fill(0)
            if first < last and begin < end:
                source = images[(*every, slice(top + first, top + last), slice(left + begin, left + end))]
                np.copyto(target[(*every, slice(first, last), slice(begin, end))], source)
