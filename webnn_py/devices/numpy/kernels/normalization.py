"""Batch and layer normalization on arrays; float16 in float32, rounded once."""

import math

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import normalization
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.normalization import layer_axes
from webnn_py.devices.numpy.routines.blocks import part_of, tiles
from webnn_py.devices.numpy.routines.float16 import NARROWING, float32, narrow
from webnn_py.devices.numpy.scratch import allowance
from webnn_py.devices.numpy.table import Array, Kernel, kernel, scalar

BLOCK = 2**17
"""The most elements of a block, which stays in the cache; more where a single group of layer normalization has them."""

LONG = 2**15
"""The elements of a group up to which BLAS sums it exactly enough."""


@kernel(normalization.batch_normalization, work=lambda node: 4 * node.outputs[0].element_count)
def batch_normalization(node: Node) -> Kernel:
    """Make the kernel of a normalization that is not folded into a convolution."""
    output = node.outputs[0]
    along_axis = tuple([size if axis == node.options["axis"] else 1 for axis, size in enumerate(output.shape)])
    epsilon = scalar(cast_number(node.options["epsilon"], output.data_type), "float32")
    names = (*node.operands, "output")
    most = BLOCK if output.data_type == "float32" else min(BLOCK, allowance(node) // (8 + NARROWING))
    blocks = list(tiles(output.shape, max(1, most)))

    def run(*arrays: Array) -> None:
        given = dict(zip(names, arrays, strict=True))
        for block in blocks:
            of_block = part_of(along_axis, block)
            target = given["output"][block]
            of_features = {
                name: float32(given[name].reshape(along_axis)[of_block])
                for name in ("mean", "variance", "scale", "bias")
                if name in given
            }
            result = target if output.data_type == "float32" else np.empty(target.shape, np.float32)
            np.subtract(float32(given["input"][block]), of_features["mean"], out=result)
            factor = np.sqrt(of_features["variance"] + epsilon)
            np.divide(of_features.get("scale", 1), factor, out=factor)
            np.multiply(result, factor, out=result)
            if "bias" in of_features:
                np.add(result, of_features["bias"], out=result)
            if result is not target:
                narrow(result, target)

    return run


@kernel(normalization.layer_normalization, work=lambda node: 8 * node.outputs[0].element_count)
def layer_normalization(node: Node) -> Kernel:
    """Make the kernel, which sees its input as groups to normalize, one behind the other, whatever the axes."""
    shape, data_type = node.outputs[0].shape, node.outputs[0].data_type
    axes = layer_axes(node.options["axes"], len(shape))
    ascending = sorted(range(len(axes)), key=lambda index: axes[index])
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    permutation = [*kept, *sorted(axes)]
    size = math.prod(shape[axis] for axis in axes)
    is_in_place = data_type == "float32" and permutation == list(range(len(shape)))
    most = BLOCK if is_in_place else min(BLOCK, allowance(node) // (8 + NARROWING))
    blocks = list(tiles(tuple(shape[axis] for axis in kept), max(1, most // size))) if kept else [(...,)]
    normalize = Normalization(size, scalar(cast_number(node.options["epsilon"], data_type), "float32"))
    names = (*node.operands, "output")

    def run(*arrays: Array) -> None:
        given = dict(zip(names, arrays, strict=True))
        x, y = (given[name].transpose(permutation) for name in ("input", "output"))
        scale, bias = (
            float32(given[name]).transpose(ascending).reshape(-1) if name in given else None
            for name in ("scale", "bias")
        )
        for block in blocks:
            groups, target = float32(x[block]).reshape(-1, size), y[block]
            result = target.reshape(-1, size) if is_in_place else np.empty(groups.shape, np.float32)
            normalize(groups, result, scale, bias)
            if data_type == "float16":
                narrow(result.reshape(target.shape), target)
            elif not is_in_place:
                np.copyto(target, result.reshape(target.shape))

    return run


class Normalization:
    """Subtracts the mean of each group, and divides by its deviation.

    Args:
        size: the elements of a group.
        epsilon: is added to the variance.
    """

    def __init__(self, size: int, epsilon: Array) -> None:
        self._size = size
        self._epsilon = epsilon
        self._ones = np.ones(size if size <= LONG else 0, np.float32)

    def __call__(self, groups: Array, result: Array, scale: Array | None, bias: Array | None) -> None:
        """Fill the result, [groups, size], and multiply by the scale and add the bias of each element, if given."""
        np.subtract(groups, self._means(groups)[:, np.newaxis], out=result)
        factor = np.vecdot(result, result)
        np.divide(factor, self._size, out=factor)
        np.add(factor, self._epsilon, out=factor)
        np.sqrt(factor, out=factor)
        np.reciprocal(factor, out=factor)
        np.multiply(result, factor[:, np.newaxis], out=result)
        if scale is not None:
            np.multiply(result, scale, out=result)
        if bias is not None:
            np.add(result, bias, out=result)

    def _means(self, groups: Array) -> Array:
        """Return the mean of each group; a product with ones is faster than a reduction."""
        if self._size <= LONG:
            means: Array = np.matmul(groups, self._ones)
            return np.divide(means, self._size, out=means)
        exact: Array = groups.mean(1, dtype=np.float64)
        return exact.astype(np.float32)
