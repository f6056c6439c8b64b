"""Pooling on arrays: what is in a window is combined along its height, then along its width."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.device.on_numpy.bands import Band, inside, tile_size, tile_starts
from webnn_py.device.on_numpy.table import Array, Kernel, kernel
from webnn_py.graph import Node
from webnn_py.operators import pooling
from webnn_py.operators.windows import Slide, image_shape, slides

TILE: Final = 2**17
"""The elements of a tile's padded images: what is computed from them still fits in a core's cache."""


@attrs.frozen
class Pool:
    """What a node pools, and how.

    Attributes:
        combine: the operation that makes one element of two.
        padding: its neutral element.
        prepare: what to do with each element first; None for nothing.
        data_type: what to compute in.
    """

    batch: int
    channels: int
    slides: tuple[Slide, Slide]
    output_sizes: tuple[int, int]
    nchw: bool
    combine: np.ufunc
    padding: float
    prepare: np.ufunc | None
    data_type: str

    @classmethod
    def of(cls, node: Node, combine: np.ufunc, padding: float, prepare: np.ufunc | None = None) -> "Pool":
        """Read a node."""
        options: Any = node.options
        layout = options["layout"]
        batch, channels, *sizes = image_shape(node.operand("input").shape, layout)
        _, _, *output_sizes = image_shape(node.outputs[0].shape, layout)
        window = options["window_dimensions"] or sizes
        data_type = node.outputs[0].data_type
        return cls(
            batch,
            channels,
            slides(sizes, window, options["padding"], options["strides"], options["dilations"]),
            (output_sizes[0], output_sizes[1]),
            layout == "nchw",
            combine,
            padding,
            prepare,
            "float32" if data_type == "float16" else data_type,
        )

    @property
    def is_global(self) -> bool:
        """Whether there is one window, the whole image."""
        return all(
            slide.window == slide.size and slide.dilation == 1 and not slide.begin and output == 1
            for slide, output in zip(self.slides, self.output_sizes, strict=True)
        )

    @property
    def work(self) -> float:
        """The operations that pooling takes."""
        vertical, horizontal = self.slides
        planes = float(self.batch * self.channels)
        height, width = self.output_sizes
        return planes * (
            vertical.size * horizontal.size
            + height * horizontal.size * vertical.window
            + height * width * (horizontal.window + 1)
        )

    def counts(self) -> Array:
        """How many elements of the image each window has, at least 1; a single number where all have as many."""
        rows, columns = (
            np.array([len(range(*inside(first, slide.dilation, slide.window, slide.size))) for first in firsts])
            for slide, firsts in (
                (slide, range(-slide.begin, size * slide.stride - slide.begin, slide.stride))
                for slide, size in zip(self.slides, self.output_sizes, strict=True)
            )
        )
        counts = np.maximum(np.multiply.outer(rows, columns), 1).astype(np.float32)
        return np.array(counts[0, 0]) if (counts == counts[0, 0]).all() else counts


def pool_work(node: Node) -> float:
    """The operations that pooling takes."""
    return Pool.of(node, np.add, 0).work


@kernel(pooling.max_pool2d, work=pool_work)
def max_pool2d(node: Node) -> Kernel:
    data_type = np.dtype(node.outputs[0].data_type)
    lowest = -np.inf if data_type.kind == "f" else np.iinfo(data_type).min
    pool = Pool.of(node, np.maximum, lowest)
    return whole(pool, None) if pool.is_global else windowed(pool, None)


@kernel(pooling.average_pool2d, work=pool_work)
def average_pool2d(node: Node) -> Kernel:
    pool = Pool.of(node, np.add, 0)
    counts = pool.counts()
    if counts.ndim:
        # Windows in excess are divided by 1.
        excess = (pool.slides[1].reach - 1) // pool.slides[1].stride
        counts = np.pad(counts, ((0, 0), (0, excess)), constant_values=1)
        counts = counts if pool.nchw else counts[..., None]

    def divide(sums: Array, row: int) -> None:
        """Divide sums of windows, from one row of them on."""
        rows = sums.shape[-2] if pool.nchw else sums.shape[0]
        np.divide(sums, counts[row : row + rows] if counts.ndim else counts, out=sums)

    return whole(pool, divide) if pool.is_global else windowed(pool, divide)


@kernel(pooling.l2_pool2d, work=pool_work)
def l2_pool2d(node: Node) -> Kernel:
    pool = Pool.of(node, np.add, 0, np.square)

    def root(sums: Array, _row: int) -> None:
        np.sqrt(sums, out=sums)

    return whole(pool, root) if pool.is_global else windowed(pool, root)


Finish = Callable[[Array, int], None]
"""Changes the results in place, given the first row of windows that they belong to."""


def whole(pool: Pool, finish: Finish | None) -> Kernel:
    """Pool whole images."""
    axes = (2, 3) if pool.nchw else (1, 2)

    def run(images: Array, output: Array) -> None:
        if pool.prepare is not None:
            images = pool.prepare(images, dtype=pool.data_type)
        result = pool.combine.reduce(images, axes, dtype=pool.data_type, keepdims=True)
        if finish is not None:
            finish(result, 0)
        np.copyto(output, result, casting="same_kind")

    return run


def windowed(pool: Pool, finish: Finish | None) -> Kernel:
    """Pool window by window, in tiles that stay in cache."""
    height, width = pool.output_sizes
    row_elements = prod(slide.stride for slide in pool.slides) * width
    rows = tile_size(height, TILE / (row_elements if pool.nchw else row_elements * pool.channels))
    channels = tile_size(pool.channels, TILE / (row_elements * rows)) if pool.nchw else pool.channels
    row_starts = tile_starts(height, rows)
    tiles = list(product(range(pool.batch), tile_starts(pool.channels, channels), row_starts))
    combined = tile_pooler(pool, channels, rows, row_starts)

    def run(images: Array, output: Array) -> None:
        for image, channel, row in tiles:
            here, there = slice(channel, channel + channels), slice(row, row + rows)
            source, target = images[image], output[image]
            if pool.nchw:
                source, target = source[here], target[here]
            result = combined(source, row)
            if finish is not None:
                finish(result, row)
            if pool.nchw:
                np.copyto(target[:, there], result[..., :width], casting="same_kind")
            else:
                np.copyto(target[there], result[:, :width], casting="same_kind")

    return run


def tile_pooler(pool: Pool, channels: int, rows: int, row_starts: Sequence[int]) -> Callable[[Array, int], Array]:
    """The function of images and a first row that combines windows."""
    vertical, horizontal = pool.slides
    lead, inner = ((channels,), ()) if pool.nchw else ((), (channels,))
    band = Band(lead, inner, pool.slides, (rows, pool.output_sizes[1]), row_starts, pool.data_type, pool.padding)
    shape = (*lead, rows, band.pitch, *inner)
    phases = sorted({j * horizontal.dilation % horizontal.stride for j in range(horizontal.window)})
    # Runs of the last row go on beyond it, by less than a row.
    memory = np.full((len(phases), prod(shape) + band.pitch * prod(inner)), pool.padding, pool.data_type)
    stacks = [
        (
            [band.rows(i, phase) for i in range(vertical.window)],
            memory[index, : prod(shape)].reshape(shape),
        )
        for index, phase in enumerate(phases)
    ]
    result = np.empty(shape, pool.data_type)
    shifted = []
    for j in range(horizontal.window):
        column, phase = divmod(j * horizontal.dilation, horizontal.stride)
        begin = column * prod(inner)
        shifted.append(memory[phases.index(phase), begin : begin + prod(shape)].reshape(shape))

    def run(images: Array, row: int) -> Array:
        band.fill(images, row, pool.prepare)
        for views, target in stacks:
            combine_all(pool.combine, views, target)
        combine_all(pool.combine, shifted, result)
        return result

    return run


def combine_all(combine: np.ufunc, arrays: Sequence[Array], output: Array) -> None:
    """Combine arrays element by element."""
    first, *others = arrays
    if not others:
        np.copyto(output, first)
    for other in others:
        combine(first, other, out=output)
        first = output
