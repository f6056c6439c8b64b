"""The greatest and the least elements. WebNN has no sort: elements are ranked by comparing each with each."""

import math
from typing import Final

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.reading.element_types import extreme
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import Integer, rule

SHORTEST_BLOCK: Final = 128
"""The fewest elements compared with each other at once; longer axes are cut into blocks."""
MOST_COMPARISONS: Final = 2**26


@rule("TopK", 1, 10, 11, 24)
def top_k(
    context: ConversionContext, x: MLOperand, k: Integer, *, axis: int, largest: bool = True, sorted: bool = True
) -> list[MLOperand]:
    """Return the greatest or least elements along an axis, in order, and their indices; of equals, the first first.

    They are in order where ``sorted`` is 0 as well.
    """
    axis = counted(axis, x.rank)
    size = x.shape[axis]
    if not 1 <= k <= size:
        refuse("k", k, f"from 1 to {size}, the length of axis {axis} of {list(x.shape)}")
    if k == 1:
        search = context.arg_max if largest else context.arg_min
        places = search(x, axis, keep_dimensions=True, output_data_type="int64")
        return [context.gather_elements(x, places, axis=axis), places]
    order = [*(other for other in range(x.rank) if other != axis), axis]
    shape = [x.shape[other] for other in order]
    rows = context.reshape(context.transpose(x, permutation=order), [math.prod(shape[:-1]), size])
    return [
        context.transpose(
            context.reshape(item, [*shape[:-1], k]), permutation=[order.index(other) for other in range(x.rank)]
        )
        for item in _top_of_rows(context, rows, k, largest=largest)
    ]


def _top_of_rows(context: ConversionContext, rows: MLOperand, k: int, *, largest: bool) -> tuple[MLOperand, MLOperand]:
    """Return values and places, block by block as long as that makes rows much shorter."""
    count, size = rows.shape
    block = max(SHORTEST_BLOCK, 4 * k)
    if count * size * min(block, size) > MOST_COMPARISONS:
        refuse("the number of comparisons", count * size * min(block, size), f"at most {MOST_COMPARISONS}")
    if size <= 2 * block:
        return _ranked(context, rows, k, largest=largest)
    blocks = -(-size // block)
    missing = blocks * block - size
    if missing:  # come last of equals, and are never among those that are wanted
        rows = context.pad(rows, [0, 0], [0, missing], value=extreme(rows.data_type, lowest=largest))
    values, places = _ranked(context, context.reshape(rows, [count * blocks, block]), k, largest=largest)
    starts = np.tile(np.arange(blocks, dtype=np.int64) * block, count).reshape(-1, 1)
    places = context.reshape(context.add(places, context.constant(starts)), [count, blocks * k])
    best, among = _top_of_rows(context, context.reshape(values, [count, blocks * k]), k, largest=largest)
    return best, context.gather_elements(places, among, axis=1)


def _ranked(context: ConversionContext, rows: MLOperand, k: int, *, largest: bool) -> tuple[MLOperand, MLOperand]:
    """Rank each element by the number of greater elements, and of equal ones before it."""
    count, size = rows.shape
    context.reserve(2 * size * size + 4 * k)
    compare = context.greater if largest else context.lesser
    others, own = context.reshape(rows, [count, 1, size]), context.reshape(rows, [count, size, 1])
    stands_before = context.constant(np.tri(size, k=-1, dtype=np.uint8))
    is_equal_before = context.logical_and(context.equal(others, own), stands_before)
    comes_before = context.logical_or(compare(others, own), is_equal_before)
    ranks = context.reduce_sum(context.cast(comes_before, "int32"), axes=[2])
    wanted = context.constant(np.arange(k, dtype=np.int32).reshape(k, 1))
    has_rank = context.equal(context.reshape(ranks, [count, 1, size]), wanted)
    places = context.arg_max(context.cast(has_rank, "int32"), 2, output_data_type="int64")
    return context.gather_elements(rows, places, axis=1), places
