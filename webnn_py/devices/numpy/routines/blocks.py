"""Elementwise work in blocks that stay in cache.

A formula takes numpy several passes. Over a block that the cache holds, all but the first run at the cache's speed;
over a whole large array, each would go to memory, and each intermediate would be as large as the array.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from webnn_py.core.graph import Node
from webnn_py.devices.numpy.routines.float16 import NARROWING, float32, narrow
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Work, elements, prepared

Shape = tuple[int, ...]
Index = tuple[slice, ...]

BlockFunction = Callable[..., object]
"""Takes a block of each operand, the block of the output to fill, then scratch arrays of the output block's shape.

Blocks of operands broadcast to the output's; they must not be written.
"""

BLOCK_BYTES = 640 * 1024
"""The most bytes of a block's operands, output and scratch: about half of a typical second-level cache."""


def float_ufunc(node: Node, function: np.ufunc) -> Kernel:
    """Make the kernel of a numpy function, which computes float16 in float32."""
    return function if node.outputs[0].data_type == "float32" else float_blocks(node, function)


def float_blocks_with(*scratch_types: npt.DTypeLike) -> Callable[[Node, BlockFunction], Kernel]:
    """Return :func:`float_blocks` for functions that take scratch arrays of these types."""
    return lambda node, function: float_blocks(node, function, *scratch_types)


def float_blocks(node: Node, function: BlockFunction, *scratch_types: npt.DTypeLike) -> Kernel:
    """Make a kernel that runs ``function`` on blocks of float32, to and from which it converts float16.

    Args:
        node: its operands are floats and broadcast to its only output.
        function: see :data:`BlockFunction`.
        scratch_types: the data types of the scratch arrays that the function takes.
    """
    if node.outputs[0].data_type == "float32":
        return in_blocks(node, function, *scratch_types)
    count = len(node.operands)

    def in_float16(*arrays: Array) -> None:
        output, result, *temporaries = arrays[count:]
        function(*map(float32, arrays[:count]), result, *temporaries)
        narrow(result, output)

    return in_blocks(node, in_float16, np.float32, *scratch_types, allocated=4 * count + NARROWING)


def in_blocks(node: Node, function: BlockFunction, *scratch_types: npt.DTypeLike, allocated: int = 0) -> Kernel:
    """Make a kernel that runs ``function`` on blocks of the output and the matching parts of the operands.

    Args:
        node: its operands broadcast to its only output.
        function: see :data:`BlockFunction`.
        scratch_types: the data types of the scratch arrays that the function takes.
        allocated: the bytes for each element that the function allocates temporarily.
    """
    shapes = [value.descriptor.shape for value in node.inputs]
    output = node.outputs[0].shape
    if output and math.prod(output) <= block_elements(node, scratch_types, allocated):
        memories = [scratch(output, data_type) for data_type in scratch_types]
        return PreparedKernel(lambda *arrays: prepared(function, *arrays, *memories))
    return reshaped_in_blocks(node, shapes, output, function, *scratch_types, allocated=allocated)


def block_elements(node: Node, scratch_types: Sequence[npt.DTypeLike], allocated: int) -> int:
    """Return the most elements of the output that a block may have."""
    arrays = [*(value.descriptor for value in node.inputs), node.outputs[0]]
    scratch_bytes = allocated + sum(np.dtype(data_type).itemsize for data_type in scratch_types)
    limit = BLOCK_BYTES // (scratch_bytes + sum(np.dtype(array.data_type).itemsize for array in arrays))
    return min(limit, allowance(node) // scratch_bytes) if scratch_bytes else limit


def reshaped_in_blocks(
    node: Node,
    operands: Sequence[Shape],
    output: Shape,
    function: BlockFunction,
    *scratch_types: npt.DTypeLike,
    allocated: int = 0,
) -> Kernel:
    """Make the kernel for operands and outputs in other shapes of as many elements, which broadcast."""
    collapsed = collapse(*operands, output)
    limit = min(block_elements(node, scratch_types, allocated), math.prod(output))
    memories = [scratch(limit, data_type) for data_type in scratch_types]
    views: dict[Shape, list[Array]] = {}
    plan: list[tuple[list[Index], list[Array]]] = []
    for tile in tiles(collapsed[-1], limit):
        shape = tuple(len(range(size)[part]) for part, size in zip(tile, collapsed[-1], strict=True))
        if shape not in views:
            views[shape] = [memory[: math.prod(shape)].reshape(shape) for memory in memories]
        plan.append(([part_of(whole, tile) for whole in collapsed], views[shape]))

    def run_whole(*arrays: Array) -> None:
        whole = [array.reshape(shape) for array, shape in zip(arrays, collapsed, strict=True)]
        function(*whole, *plan[0][1])

    def run(*arrays: Array) -> None:
        whole = [array.reshape(shape) for array, shape in zip(arrays, collapsed, strict=True)]
        for indices, temporaries in plan:
            function(*[array[index] for array, index in zip(whole, indices, strict=True)], *temporaries)

    return run_whole if len(plan) == 1 else run


def collapse(*shapes: Shape) -> list[Shape]:
    """Return shapes that broadcast to the last of them, with as few axes as possible.

    Adjacent axes merge where the same shapes broadcast along both; axes of size 1 are dropped, but one axis is kept.
    """
    output = shapes[-1]
    padded = [(1,) * (len(output) - len(shape)) + shape for shape in shapes]
    merged: list[list[int]] = [[] for _ in shapes]
    previous: list[bool] = []
    for axis, size in enumerate(output):
        if size == 1:
            continue
        spans = [shape[axis] != 1 for shape in padded]
        for sizes, spanned in zip(merged, spans, strict=True):
            if spans == previous:
                sizes[-1] *= size if spanned else 1
            else:
                sizes.append(size if spanned else 1)
        previous = spans
    return [tuple(sizes) or (1,) for sizes in merged]


def tiles(shape: Shape, limit: int) -> Iterator[Index]:
    """Cut a shape into blocks of at most ``limit`` elements, in row-major order, contiguous where it can be."""
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] <= limit:
        inner *= shape[axis]
        axis -= 1
    length = max(1, limit // inner)
    count = -(-shape[axis] // length)
    length = -(-shape[axis] // count)
    outer = [[slice(i, i + 1) for i in range(size)] for size in shape[:axis]]
    cut = [slice(i, min(i + length, shape[axis])) for i in range(0, shape[axis], length)]
    rest = (slice(None),) * (len(shape) - axis - 1)
    for index in itertools.product(*outer, cut):
        yield *index, *rest


def part_of(shape: Shape, tile: Index) -> Index:
    """Return the part of an operand that belongs to a block of the output: all of it along axes where it broadcasts."""
    return tuple(slice(None) if size == 1 else part for size, part in zip(shape, tile, strict=True))


def passes(count: int) -> Work:
    """Return the work of an operator that takes about ``count`` operations for each element."""
    return lambda node: count * elements(node)
