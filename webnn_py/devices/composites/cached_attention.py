"""Attention to a cache of keys and values whose length is known when the graph runs.

The cache has a fixed capacity. Each sample's new keys and values are written after its previous ones, and its queries
see the keys up to their own. It is onnxruntime's GroupQueryAttention: as one node, or drawn with masks over positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from webnn_py.core.decompositions.common import along, cut, filled, number, padded
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import FLOATS, LimitsRow, limit
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_shape, output, refuse

_ROWS: Final = limit(FLOATS, rank=3, type_of="query")
_CACHE: Final = limit(FLOATS, rank=4, type_of="query")
_ANGLES: Final = limit(FLOATS, rank=2, type_of="query")

GROUPED: Final[LimitsRow] = {
    "query": limit(FLOATS, rank=3),
    "key": _ROWS,
    "value": _ROWS,
    "past_key": _CACHE,
    "past_value": _CACHE,
    "last_positions": limit(("int32",), rank=1),
    "total_length": limit(("int32",), rank=(0, 1)),
    "cosines": _ANGLES,
    "sines": _ANGLES,
    "positions": limit(("int64", "int32"), rank=2),
    "bias": _CACHE,
    "sink": limit(FLOATS, rank=1, type_of="query"),
    "output0": _ROWS,
    "output1": _CACHE,
    "output2": _CACHE,
}


def lowest(operand: MLOperand) -> float:
    """Return the lowest finite number of a float type.

    As a score it hides a key: softmax gives 0 there, and no NaN where all keys are hidden.

    Raises:
        Refused: the operand is of another type.
    """
    if operand.data_type not in FLOATS:
        refuse("the data type of queries", operand.data_type, " or ".join(FLOATS))
    return float(np.finfo(operand.data_type).min)


def group_query_attention(
    query: MLOperand,
    last_positions: MLOperand,
    total_length: MLOperand,
    *,
    key: MLOperand | None = None,
    value: MLOperand | None = None,
    past_key: MLOperand | None = None,
    past_value: MLOperand | None = None,
    cosines: MLOperand | None = None,
    sines: MLOperand | None = None,
    positions: MLOperand | None = None,
    bias: MLOperand | None = None,
    sink: MLOperand | None = None,
    num_heads: int,
    kv_num_heads: int,
    capacity: int,
    scale: float = 0.0,
    softcap: float = 0.0,
    window: int = 0,
    is_causal: bool = True,
    is_interleaved: bool = False,
    is_smooth: bool = False,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Attend to a cache and to new keys, which are written into it.

    The new keys of a sample are the last of its keys; where ``total_length`` is the number of queries, at the
    beginning of the cache. A sample whose keys, or ``total_length``, do not fit into the cache has NaN as its output.

    Args:
        query: [batch, new, heads · size]; without ``key`` and ``value`` these follow in the last axis.
        last_positions: the number of each sample's keys, with the new ones, less 1: [batch].
        total_length: the largest number of keys of all samples, one element.
        key: the new keys, [batch, new, key heads · size].
        value: the new values, of the same shape.
        past_key: the keys before, [batch, key heads, length, size]; zeros fill up a length below ``capacity``.
        past_value: the values before, of the same shape.
        cosines: of the angles by which queries and new keys turn, [positions, half of what turns].
        sines: of the angles.
        positions: the positions of the new keys in ``cosines``, [batch, new]; those in the cache when absent. Where
            ``total_length`` is the number of queries, the first one counts, from which those of all samples go on.
        bias: what is added to the scores, [batch or 1, heads or 1, new, at most capacity].
        sink: a score for each head that takes a share of the probability, [heads].
        num_heads: the number of heads of queries.
        kv_num_heads: the number of heads of keys and values.
        capacity: the length of the caches that are returned.
        scale: factor of the scores; 0 for 1 / sqrt(size).
        softcap: limit of the scores, by tanh; 0 for none.
        window: how many keys up to its own a query sees; 0 for all.
        is_causal: whether a query sees no later keys.
        is_interleaved: whether neighbours turn as a pair; else one half with the other.
        is_smooth: whether a score of 0 takes a share of the probability.
        label: the name of the node.

    Returns:
        [batch, new, heads · size]; the keys and the values of the cache, [batch, key heads, capacity, size], which are
        0 after the new ones, or, where the device writes into the past, what that has there.
    """
    batch, new, _ = query.shape
    heads = num_heads if key is not None else num_heads + 2 * kv_num_heads
    size = query.shape[2] // heads
    if size * heads != query.shape[2] or not size or num_heads % kv_num_heads:
        refuse(
            "the number of heads", f"{num_heads} for {kv_num_heads}", f"a divisor of {query.shape[2]}, and a multiple"
        )
    length = 0 if past_key is None else past_key.shape[2]
    rows, past, angles = (batch, new, kv_num_heads * size), (batch, kv_num_heads, length, size), [0, 0]
    if cosines is not None:
        angles = [cosines.shape[0], min(cosines.shape[1], size // 2)]
    _check_pairs(
        {"key": key, "value": value},
        {"past_key": past_key, "past_value": past_value},
        {"cosines": cosines, "sines": sines},
    )
    for name, item, shape in (
        ("key", key, rows),
        ("value", value, rows),
        ("past_key", past_key, past),
        ("past_value", past_value, past),
        ("last_positions", last_positions, [batch]),
        ("total_length", total_length, [1] * total_length.rank),
        ("cosines", cosines, angles),
        ("sines", sines, angles),
        ("positions", positions, [batch, new]),
        ("sink", sink, [num_heads]),
    ):
        check_shape(name, item, shape)
    if capacity < max(length, new):
        refuse("the capacity", capacity, f"at least {max(length, new)}, the lengths of the past and of what is new")
    if bias is not None and not _fits(bias.shape, (batch, num_heads), new, capacity):
        allowed = f"[{batch} or 1, {num_heads} or 1, {new}, at most {capacity}]"
        refuse("the shape of the bias", bias.shape, allowed)
    cache = output(query.data_type, (batch, kv_num_heads, capacity, size))
    return [output(query.data_type, (batch, new, num_heads * size)), cache, cache]


def _check_pairs(*pairs: Mapping[str, MLOperand | None]) -> None:
    """Refuse one of two operands without the other."""
    for pair in pairs:
        if len({item is None for item in pair.values()}) > 1:
            refuse(" and ".join(pair), "not both there", "both given, or both absent")


def _fits(shape: Sequence[int], outer: tuple[int, int], new: int, capacity: int) -> bool:
    return (
        all(item in {1, most} for item, most in zip(shape[:2], outer, strict=True))
        and shape[2] == new
        and shape[3] <= capacity
    )


Write = Callable[[Builder, MLOperand | None, MLOperand, MLOperand, int], MLOperand]
"""Writes rows into a cache, with the parameters of :func:`written`."""


def by_positions(
    builder: Builder,
    query: MLOperand,
    last_positions: MLOperand,
    total_length: MLOperand,
    *,
    key: MLOperand | None = None,
    value: MLOperand | None = None,
    past_key: MLOperand | None = None,
    past_value: MLOperand | None = None,
    cosines: MLOperand | None = None,
    sines: MLOperand | None = None,
    positions: MLOperand | None = None,
    bias: MLOperand | None = None,
    sink: MLOperand | None = None,
    num_heads: int,
    kv_num_heads: int,
    capacity: int,
    scale: float = 0.0,
    softcap: float = 0.0,
    window: int = 0,
    is_causal: bool = True,
    is_interleaved: bool = False,
    is_smooth: bool = False,
    write: Write | None = None,
) -> list[MLOperand]:
    """Draw :func:`group_query_attention`; ``write`` writes rows into a cache otherwise than :func:`written`."""
    batch, new, _ = query.shape
    if key is None or value is None:
        size = query.shape[2] // (num_heads + 2 * kv_num_heads)
        query, key, value = builder.split(query, [size * n for n in (num_heads, kv_num_heads, kv_num_heads)], axis=2)
    size = query.shape[2] // num_heads
    q, k, v = (
        builder.transpose(builder.reshape(item, [batch, new, heads, size]), permutation=[0, 2, 1, 3])
        for item, heads in ((query, num_heads), (key, kv_num_heads), (value, kv_num_heads))
    )
    ends = builder.add(last_positions, number(builder, 1, last_positions))
    is_first = builder.equal(total_length, number(builder, new, total_length))
    begins = builder.where(is_first, number(builder, 0, ends), builder.sub(ends, number(builder, new, ends)))
    if cosines is not None and sines is not None:
        places = _counted(builder, builder.reshape(begins, [batch, 1]), new)
        if positions is not None:
            first = _counted(builder, builder.slice(positions, [0, 0], [1, 1]), new)
            places = builder.where(is_first, first, positions)
        cos, sin = (builder.gather(item, places, axis=0) for item in (cosines, sines))
        q, k = (rotated(builder, item, cos, sin, interleaved=is_interleaved) for item in (q, k))
    hidden = _hidden(builder, begins, ends, new, capacity, window, is_causal=is_causal)
    # Of the operands themselves: sums with them may overflow.
    is_behind_begin = builder.greater_or_equal(last_positions, number(builder, new - 1, last_positions))
    is_within = builder.logical_and(
        builder.logical_or(is_first, is_behind_begin),
        builder.logical_and(
            builder.lesser(last_positions, number(builder, capacity, last_positions)),
            builder.lesser_or_equal(total_length, number(builder, capacity, total_length)),
        ),
    )
    is_within = builder.reshape(is_within, [batch, 1, 1, 1])
    factor = number(builder, scale or 1 / math.sqrt(size), q)
    q = builder.mul(q, builder.where(is_within, factor, number(builder, math.nan, q)))
    write = written if write is None else write
    presents = [write(builder, past, item, begins, capacity) for past, item in ((past_key, k), (past_value, v))]
    if sink is None and is_smooth:
        sink = filled(builder, 0, q.data_type, [num_heads])
    attended = _attended(builder, q, presents, builder.logical_and(hidden, is_within), bias, softcap, sink)
    joined = builder.reshape(builder.transpose(attended, permutation=[0, 2, 1, 3]), [batch, new, num_heads * size])
    return [joined, *presents]


def _counted(builder: Builder, begins: MLOperand, count: int) -> MLOperand:
    """Return the integers from each of a column on."""
    return builder.add(begins, along(builder, range(count), 1, 2, begins.data_type)) if count > 1 else begins


def _hidden(
    builder: Builder, begins: MLOperand, ends: MLOperand, new: int, capacity: int, window: int, *, is_causal: bool
) -> MLOperand:
    """Return which keys of the cache a query does not see, [batch, 1, new or 1, capacity]."""
    keys = along(builder, range(capacity), 3, 4)
    column = [begins.shape[0], 1, 1, 1]
    if not is_causal:
        return builder.greater_or_equal(keys, builder.reshape(ends, column))
    own = builder.reshape(begins, column)
    if new > 1:
        own = builder.add(own, along(builder, range(new), 2, 4))
    hidden = builder.greater(keys, own)
    if not window:
        return hidden
    return builder.logical_or(hidden, builder.lesser_or_equal(keys, builder.sub(own, number(builder, window, own))))


def _attended(
    builder: Builder,
    q: MLOperand,
    presents: Sequence[MLOperand],
    hidden: MLOperand,
    bias: MLOperand | None,
    softcap: float,
    sink: MLOperand | None,
) -> MLOperand:
    """Return [batch, heads, new, size]; of single queries those of a group are the rows of one product."""
    batch, heads, new, size = q.shape
    key, value = presents
    key_heads, keys = key.shape[1:3]
    groups = heads // key_heads
    rows = [key_heads, groups] if new == 1 else [heads, new]

    def by_row(x: MLOperand) -> MLOperand:
        """Return what has an axis of heads and one of queries, or 1, in the axes of the scores."""
        if new > 1:
            return x
        outer = rows if x.shape[1] == heads else [1, 1]
        return builder.reshape(x, [x.shape[0], *outer, x.shape[3]])

    if new > 1:
        key, value = (repeated(builder, item, groups) for item in (key, value))
    turned = builder.transpose(key, permutation=[0, 1, 3, 2])
    scores = builder.matmul(builder.reshape(q, [batch, *rows, size]), turned)
    if softcap:
        cap = number(builder, softcap, scores)
        scores = builder.mul(builder.tanh(builder.div(scores, cap)), cap)
    if bias is not None:
        scores = builder.add(scores, by_row(padded(builder, bias, 3, 0, keys - bias.shape[3], 0)))
    scores = builder.where(hidden, number(builder, lowest(q), scores), scores)
    if sink is None:
        probabilities = builder.softmax(scores, 3)
    else:
        column = builder.expand(by_row(builder.reshape(sink, [1, heads, 1, 1])), [batch, *rows, 1])
        probabilities = cut(builder, builder.softmax(builder.concat([scores, column], 3), 3), 3, 0, keys)
    return builder.reshape(builder.matmul(probabilities, value), [batch, heads, new, size])


def written(builder: Builder, past: MLOperand | None, rows: MLOperand, begins: MLOperand, capacity: int) -> MLOperand:
    """Write rows into a cache, from an index of each sample on, and zeros after them.

    Args:
        builder: draws the operators.
        past: [batch, heads, length, size], of which a length below ``capacity`` is filled up with zeros; None for
            a cache of zeros.
        rows: [batch, heads, new, size].
        begins: where the rows of each sample begin, [batch].
        capacity: the length of the result.
    """
    batch, heads, new, size = rows.shape
    past = extended(builder, past, rows, capacity)
    places = builder.sub(along(builder, range(capacity), 1, 2), builder.reshape(begins, [batch, 1]))
    if new > 1:
        flat = builder.reshape(builder.transpose(rows, permutation=[0, 2, 1, 3]), [batch * new, heads, size])
        sources = builder.clamp(places, min_value=0, max_value=new - 1)
        if batch > 1:
            sources = builder.add(sources, along(builder, range(0, batch * new, new), 0, 2))
        rows = builder.transpose(builder.gather(flat, sources, axis=0), permutation=[0, 2, 1, 3])
    column = builder.reshape(places, [batch, 1, capacity, 1])
    is_behind = builder.greater_or_equal(column, number(builder, new, column))
    rows = builder.where(is_behind, number(builder, 0, rows), rows)
    return builder.where(builder.lesser(column, number(builder, 0, column)), past, rows)


def extended(builder: Builder, past: MLOperand | None, rows: MLOperand, capacity: int) -> MLOperand:
    """Return a cache of a capacity for rows of [batch, heads, new, size], with zeros behind what the past has."""
    batch, heads, _, size = rows.shape
    if past is None:
        return filled(builder, 0, rows.data_type, [batch, heads, capacity, size])
    return padded(builder, past, 2, 0, capacity - past.shape[2], 0)


def repeated(builder: Builder, x: MLOperand, groups: int) -> MLOperand:
    """Repeat each head of [batch, heads, length, size], copies side by side."""
    if groups == 1:
        return x
    batch, heads, length, size = x.shape
    expanded = builder.expand(builder.reshape(x, [batch, heads, 1, length, size]), [batch, heads, groups, length, size])
    return builder.reshape(expanded, [batch, heads * groups, length, size])


def rotated(builder: Builder, x: MLOperand, cos: MLOperand, sin: MLOperand, *, interleaved: bool) -> MLOperand:
    """Rotary embedding: pairs of elements of each head turn by angles.

    Args:
        builder: draws the operators.
        x: [batch, heads, length, size].
        cos: of the angles, [batch or 1, length, half of what turns].
        sin: of the angles, of the same shape.
        interleaved: whether neighbours are pairs; else one half with the other.
    """
    batch, heads, length, size = x.shape
    half = cos.shape[2]
    cos, sin = (builder.reshape(item, [item.shape[0], 1, *item.shape[1:]]) for item in (cos, sin))
    turning = cut(builder, x, 3, 0, 2 * half)
    if interleaved:
        pairs = builder.reshape(turning, [batch, heads, length, half, 2])
        real, imaginary = (
            builder.reshape(item, [batch, heads, length, half]) for item in builder.split(pairs, 2, axis=4)
        )
    else:
        real, imaginary = builder.split(turning, 2, axis=3)
    turned_real = builder.sub(builder.mul(real, cos), builder.mul(imaginary, sin))
    turned_imaginary = builder.add(builder.mul(real, sin), builder.mul(imaginary, cos))
    if interleaved:
        apart = [builder.reshape(item, [batch, heads, length, half, 1]) for item in (turned_real, turned_imaginary)]
        turned = builder.reshape(builder.concat(apart, 4), [batch, heads, length, 2 * half])
    else:
        turned = builder.concat([turned_real, turned_imaginary], 3)
    if 2 * half == size:
        return turned
    return builder.concat([turned, cut(builder, x, 3, 2 * half, size)], 3)


GROUP_QUERY_ATTENTION: Final = Composite(group_query_attention, "groupQueryAttention", GROUPED, by_positions)
