"""Attention in WebNN's operators: heads, biases, softmax."""

import math
from collections.abc import Sequence
from functools import reduce

import attrs
import numpy as np

from webnn_py.core.decompositions.common import cut
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.cached_attention import lowest, repeated
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank


@attrs.frozen
class Attended:
    """The results of attention, step by step.

    Attributes:
        output: [batch, heads, queries, value size].
        scores: the products of queries and keys, scaled, [batch, heads, queries, keys].
        capped: after the soft cap.
        biased: after the biases.
        probabilities: after the softmax.
    """

    output: MLOperand
    scores: MLOperand
    capped: MLOperand
    biased: MLOperand
    probabilities: MLOperand


def attend(  # noqa: PLR0913 - as many as attention has
    context: ConversionContext,
    q: MLOperand,
    k: MLOperand,
    v: MLOperand,
    *,
    scale: float | None,
    biases: Sequence[MLOperand] = (),
    softcap: float = 0.0,
    sink: MLOperand | None = None,
    dead_rows: bool = False,
) -> Attended:
    """Attend to values where queries fit keys.

    Args:
        context: what to build with.
        q: the queries, [batch, heads, queries, size].
        k: the keys, [batch, key heads, keys, size]; each head serves for a group of the queries' heads.
        v: the values, [batch, key heads, keys, value size].
        scale: factor of the scores; None for 1 / sqrt(size).
        biases: what is added to the scores, broadcasting.
        softcap: limit of the scores, by tanh; 0 for none.
        sink: scores that take a share of the probability, and give nothing; broadcasts to [batch, heads, queries, 1].
        dead_rows: whether a query all of whose keys are masked by infinity gives 0.
    """
    for name, item in (("the queries", q), ("the keys", k), ("the values", v)):
        check_rank(name, item, 4)
    rank = max((item.rank for item in biases), default=0)
    if rank > 4:
        refuse("the rank of what is added to the scores", rank, "at most 4")
    groups = q.shape[1] // k.shape[1]
    if groups * k.shape[1] != q.shape[1]:
        refuse("the number of heads", q.shape[1], f"a multiple of {k.shape[1]}, that of the keys")
    k, v = repeated(context, k, groups), repeated(context, v, groups)
    factor = context.number(1 / math.sqrt(q.shape[3]) if scale is None else scale, q)
    scores = context.matmul(context.mul(q, factor), context.transpose(k, permutation=[0, 1, 3, 2]))
    capped = scores
    if softcap:
        cap = context.number(softcap, scores)
        capped = context.mul(context.tanh(context.div(scores, cap)), cap)
    bias = reduce(context.add, biases) if biases else None
    biased = capped if bias is None else context.add(capped, bias)
    if sink is None:
        probabilities = context.softmax(biased, 3)
    else:
        column = context.expand(sink, [*biased.shape[:3], 1])
        probabilities = cut(context, context.softmax(context.concat([biased, column], 3), 3), 3, 0, k.shape[2])
    if dead_rows and bias is not None:
        highest = context.reduce_max(bias, axes=[bias.rank - 1], keep_dimensions=True)
        dead = context.equal(highest, context.number(-math.inf, q))
        probabilities = context.where(dead, context.number(0, q), probabilities)
    return Attended(context.matmul(probabilities, v), scores, capped, biased, probabilities)


def split_heads(context: ConversionContext, x: MLOperand, heads: int) -> MLOperand:
    """Return [batch, length, heads · size] as [batch, heads, length, size]."""
    if heads < 1 or x.rank != 3 or x.shape[2] % heads:
        refuse("the number of heads", heads, f"a divisor of the last dimension of {list(x.shape)}")
    by_head = context.reshape(x, [*x.shape[:2], heads, x.shape[2] // heads])
    return context.transpose(by_head, permutation=[0, 2, 1, 3])


def joined_heads(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the reverse of ``split_heads``."""
    batch, heads, length, size = x.shape
    return context.reshape(context.transpose(x, permutation=[0, 2, 1, 3]), [batch, length, heads * size])


def past_of(context: ConversionContext, past: Value | None) -> MLOperand | None:
    """Return past keys or values; None where there are none, which models also express by a past without elements."""
    return None if past is None or 0 in past.shape else context.operand(past)


def appended(context: ConversionContext, past: MLOperand | None, x: MLOperand) -> MLOperand:
    """Return past keys or values followed by new ones, along the axis of length."""
    check_rank("keys or values", x, 4)
    if past is not None:
        check_rank("the past", past, 4)
    return x if past is None else context.concat([past, x], 2)


@attrs.frozen
class Window:
    """The keys that a query sees.

    Attributes:
        masked: what hides a key.
        before: how many before its own are seen; -1 for all.
        after: how many after it; -1 for all.
    """

    masked: float
    before: int = -1
    after: int = 0


def window_bias(
    context: ConversionContext, q: MLOperand, keys: int, offset: int | MLOperand, window: Window
) -> MLOperand:
    """Return a bias that masks the keys outside each query's window.

    Args:
        context: what to build with.
        q: the queries, [batch, heads, queries, size].
        keys: how many there are.
        offset: the number of keys before the first query, for all samples or for each, [batch].
        window: what each query sees.

    Returns:
        [queries, keys]; or [batch, 1, queries, keys].
    """
    lowest(q)  # refuses integers
    queries = q.shape[2]
    context.reserve(queries * keys * 8)
    distance = np.arange(keys) - np.arange(queries)[:, None]
    if isinstance(offset, int):
        distance -= offset
        hidden = np.zeros(distance.shape, np.bool_)
        if window.before >= 0:
            hidden |= distance < -window.before
        if window.after >= 0:
            hidden |= distance > window.after
        return context.constant(np.where(hidden, window.masked, 0).astype(q.data_type))
    check_rank("the offsets", offset, 1)
    offsets = context.reshape(offset, [offset.shape[0], 1, 1, 1])
    moved = context.sub(context.constant(distance.astype(offset.data_type)), offsets)
    seen = context.number(0, q)
    if window.before >= 0:
        too_early = context.lesser(moved, context.number(-window.before, moved))
        seen = context.where(too_early, context.number(window.masked, q), seen)
    if window.after >= 0:
        too_late = context.greater(moved, context.number(window.after, moved))
        seen = context.where(too_late, context.number(window.masked, q), seen)
    return seen


def mask_bias(context: ConversionContext, mask: MLOperand, like: MLOperand, masked: float) -> MLOperand:
    """Return a bias that is ``masked`` where a mask is 0."""
    hidden = context.equal(mask, context.number(0, mask))
    return context.where(hidden, context.number(masked, like), context.number(0, like))


def keys_before(context: ConversionContext, ends: MLOperand, keys: int) -> MLOperand:
    """Return [batch, 1, 1, keys]: 1 for each key before the end of its sample, [batch]."""
    check_rank("the lengths", ends, 1)
    positions = context.constant(np.arange(keys, dtype=ends.data_type))
    return context.lesser(positions, context.reshape(ends, [ends.shape[0], 1, 1, 1]))
