"""Normalization operators on arrays.

All of them go through their data in blocks that stay in the cache between the passes. They compute in float32;
float16 is rounded once, at the end.
"""

import math
from collections.abc import Iterable

import numpy as np

from webnn_py.device.on_numpy.kernels._float16 import in_float32, narrow, widen
from webnn_py.device.on_numpy.table import Array, Kernel, kernel, product, scalar, unbuffered
from webnn_py.graph import Node
from webnn_py.operators import normalization
from webnn_py.operators.casting import cast_number
from webnn_py.operators.normalization import layer_axes
from webnn_py.operators.windows import image_axes

BLOCK = 2**17
"""The elements of a block, about."""

REPEATED_BLOCK = 2**14
"""The elements of a block beside which parameters are repeated, about."""

SHORT = 16
"""Innermost loops over fewer elements than this cost more than laying the elements out otherwise."""

KEPT_SCRATCH = 2**19
"""The elements of scratch that a node may keep between calls."""


def _work(node: Node) -> float:
    return 8 * node.outputs[0].element_count


def _epsilon(node: Node) -> Array:
    return scalar(cast_number(node.options["epsilon"], node.outputs[0].data_type), "float32")


class Scratch:
    """A float32 array for intermediate results, kept between calls unless it is large."""

    def __init__(self, *shape: int) -> None:
        self._shape = shape
        self._array = np.empty(shape, np.float32) if product(shape) <= KEPT_SCRATCH else None

    def take(self) -> Array:
        """The array, with whatever it holds."""
        return np.empty(self._shape, np.float32) if self._array is None else self._array


def _named(node: Node, arrays: tuple[Array, ...]) -> dict[str, Array]:
    """A kernel's arrays by name: the operands that are there, then ``output``."""
    return dict(zip((*node.operands, "output"), arrays, strict=True))


@kernel(normalization.batch_normalization, work=_work)
def batch_normalization(node: Node) -> Kernel:
    parameters = PerFeature(node.outputs[0].shape, node.options["axis"])
    epsilon = _epsilon(node)
    folded, step = parameters.folded, parameters.step
    is_float16 = node.outputs[0].data_type == "float16"
    scratch = Scratch(min(step, folded[0]), *folded[1:]) if is_float16 else None

    def run(*arrays: Array) -> None:
        given = _named(node, arrays)
        factor = np.sqrt(in_float32(given["variance"]) + epsilon)
        np.divide(in_float32(given["scale"]) if "scale" in given else np.float32(1), factor, out=factor)
        mean, factor = parameters.lay_out(given["mean"]), parameters.lay_out(factor)
        bias = parameters.lay_out(given["bias"]) if "bias" in given else None
        x, output = np.ascontiguousarray(given["input"]).reshape(folded), given["output"].reshape(folded)
        room = scratch.take() if scratch else None
        for first in range(0, folded[0], step):
            block = slice(first, min(first + step, folded[0]))
            beside = parameters.beside(block)
            result, source = output[block], x[block]
            if room is not None:
                source = result = room[: block.stop - first]
                widen(x[block], source)
            np.subtract(source, mean[beside], out=result)
            np.multiply(result, factor[beside], out=result)
            if bias is not None:
                np.add(result, bias[beside], out=result)
            if room is not None:
                narrow(result, output[block])

    def run_unbuffered(*arrays: Array) -> None:
        with unbuffered(folded[-1]):
            run(*arrays)

    return run_unbuffered if parameters.rows else run


class PerFeature:
    """How an array and one value for each index of an axis are laid beside each other.

    Either the array is rows that have one value each, or it is flat, beside a block of values that are repeated as
    often as the array's elements have them: that takes time to lay out, but makes the loops long.

    Attributes:
        rows: which of the two.
        folded: the shape of the array, of rows or flat.
        step: the length of a block along the first dimension.
    """

    def __init__(self, shape: tuple[int, ...], axis: int) -> None:
        self._outer, features = product(shape[:axis]), shape[axis]
        self._inner = product(shape[axis + 1 :])
        period = features * self._inner
        self.rows = self._inner > 1 and (self._outer < 4 or period > BLOCK // 2)
        self.folded: tuple[int, ...]
        if self.rows:
            self.folded, self.step = (self._outer * features, self._inner), max(1, BLOCK // self._inner)
        else:
            self._repeats = min(self._outer, max(1, REPEATED_BLOCK // period))
            self.folded, self.step = (self._outer * period,), self._repeats * period

    def lay_out(self, values: Array) -> Array:
        """The values beside the rows, or beside the elements of a block."""
        values = in_float32(values)
        if self.rows:
            return np.broadcast_to(values, (self._outer, len(values))).reshape(-1, 1)
        return np.broadcast_to(values[:, np.newaxis], (self._repeats, len(values), self._inner)).reshape(-1)

    def beside(self, block: slice) -> slice:
        """The values that lie beside a block of the array."""
        return block if self.rows else slice(block.stop - block.start)


@kernel(normalization.instance_normalization, work=_work)
def instance_normalization(node: Node) -> Kernel:
    batch, channels, height, width = image_axes(node.options["layout"])
    shape = node.outputs[0].shape
    normalizer = Normalizer(node, (height, width))

    def lay_out(parameter: Array | None) -> Array | None:
        """Lay a parameter beside the channels: they are the innermost axis, or each group has its channel."""
        if parameter is None:
            return None
        if normalizer.inner > 1:
            return in_float32(parameter).reshape(1, 1, shape[channels])
        return np.broadcast_to(in_float32(parameter), (shape[batch], shape[channels])).reshape(-1, 1)

    def run(*arrays: Array) -> None:
        given = _named(node, arrays)
        scale, bias = lay_out(given.get("scale")), lay_out(given.get("bias"))
        normalizer.run(given["input"], given["output"], group_scale=scale, bias=bias)

    return run


@kernel(normalization.layer_normalization, work=_work)
def layer_normalization(node: Node) -> Kernel:
    axes = layer_axes(node.options["axes"], node.operand("input").rank)
    ascending = sorted(range(len(axes)), key=lambda index: axes[index])
    normalizer = Normalizer(node, axes)
    places = (1, -1, 1) if normalizer.inner > 1 else (1, -1)

    def lay_out(parameter: Array | None) -> Array | None:
        """Lay a parameter along the normalized axes, which are in ascending order there."""
        return None if parameter is None else in_float32(parameter).transpose(ascending).reshape(places)

    def run(*arrays: Array) -> None:
        given = _named(node, arrays)
        scale, bias = lay_out(given.get("scale")), lay_out(given.get("bias"))
        normalizer.run(given["input"], given["output"], scale=scale, bias=bias)

    return run


class Normalizer:
    """Normalizes an array by its mean and variance over some axes.

    The array is seen as groups to normalize, one behind the other: of shape [groups, size], or, where the normalized
    axes are followed by enough others, [groups, size, inner], so that ``inner`` groups lie side by side. Other axes
    are brought into that order first.

    Attributes:
        inner: how many groups lie side by side; 1 for the shape [groups, size].
    """

    def __init__(self, node: Node, axes: Iterable[int]) -> None:
        descriptor = node.outputs[0]
        shape, reduced = descriptor.shape, sorted(axes)
        self._size = math.prod(shape[axis] for axis in reduced)
        self._epsilon = _epsilon(node)
        first, end = (reduced[0], reduced[-1] + 1) if reduced else (len(shape), len(shape))
        self.inner = product(shape[end:])
        self._permutation: list[int] | None = None
        if end - first != len(reduced) or 1 < self.inner < SHORT:
            self._permutation = [axis for axis in range(len(shape)) if axis not in reduced] + reduced
            self.inner = 1
        self._groups = product(shape) // (self._size * self.inner)
        side = () if self.inner == 1 else (self.inner,)
        self._shape = (self._groups, self._size, *side)
        self._step = math.ceil(self._groups / math.ceil(product(shape) / BLOCK))
        self._ones = np.ones(self._size, np.float32)
        self._moments = np.empty((self._step, 1, *side), np.float32)
        self._squares = Scratch(self._step, *self._shape[1:]) if side else None
        self._results = Scratch(self._step, *self._shape[1:]) if descriptor.data_type == "float16" else None

    def run(
        self,
        input: Array,
        output: Array,
        *,
        group_scale: Array | None = None,
        scale: Array | None = None,
        bias: Array | None = None,
    ) -> None:
        """Normalize ``input`` into ``output``.

        Args:
            input: what to normalize.
            output: where to.
            group_scale: what to multiply whole groups with, for each group or alike for all, as ``bias``.
            scale: what to multiply with, alike for all groups.
            bias: what to add, for each group if its first dimension is their number, or alike for all.
        """
        direct = self._permutation is None
        groups = output.reshape(self._shape) if direct else np.empty(self._shape, output.dtype)
        x = np.ascontiguousarray(input if direct else input.transpose(self._permutation)).reshape(self._shape)
        with unbuffered(self._shape[-1]):
            self._run_groups(x, groups, group_scale, scale, bias)
        if direct:
            return
        target = output.transpose(self._permutation)
        np.copyto(target, groups.reshape(target.shape))

    def _run_groups(
        self, x: Array, output: Array, group_scale: Array | None, scale: Array | None, bias: Array | None
    ) -> None:
        squares = None if self._squares is None else self._squares.take()
        results = None if self._results is None else self._results.take()
        for first in range(0, self._groups, self._step):
            block = slice(first, min(first + self._step, self._groups))
            count = block.stop - first
            result = output[block] if results is None else results[:count]
            factor = self._moments[:count]
            self._center(x[block], result, factor, squares)
            np.divide(1 if group_scale is None else _beside(group_scale, block), factor, out=factor)
            np.multiply(result, factor, out=result)
            if scale is not None:
                np.multiply(result, scale, out=result)
            if bias is not None:
                np.add(result, _beside(bias, block), out=result)
            if results is not None:
                narrow(result, output[block])

    def _center(self, x: Array, result: Array, moments: Array, squares: Array | None) -> None:
        """Subtract the mean of each group, and leave √(variance + epsilon) in ``moments``.

        The sums are products with ones: BLAS adds up faster than a reduction, and more exactly along columns.
        """
        if x.dtype != np.float32:
            widen(x, result)
            x = result
        sums = moments[:, 0]
        if squares is None:
            np.matmul(x, self._ones, out=sums)
        else:
            np.matmul(self._ones, x, out=sums)
        np.divide(moments, self._size, out=moments)
        np.subtract(x, moments, out=result)
        if squares is None:
            np.vecdot(result, result, out=sums)
        else:
            np.matmul(self._ones, np.multiply(result, result, out=squares[: len(x)]), out=sums)
        np.divide(moments, self._size, out=moments)
        np.add(moments, self._epsilon, out=moments)
        np.sqrt(moments, out=moments)


def _beside(parameter: Array, block: slice) -> Array:
    """What of a parameter lies beside a block of groups: all of it, if it is alike for all groups."""
    return parameter[block] if len(parameter) > 1 else parameter
