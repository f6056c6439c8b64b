"""Attention to a cache, sample by sample: only the keys that are there are read, and only new rows are written."""

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.graph import Node
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION
from webnn_py.devices.numpy.routines.blas import for_blas, matrix_product
from webnn_py.devices.numpy.routines.float16 import float32
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, kernel

OUTPUTS: Final = 3


def multiply_adds(node: Node) -> float:
    """Return the multiply-adds with a full cache."""
    capacity = node.outputs[1].shape[2]
    return 2.0 * node.outputs[0].element_count * capacity


@kernel(GROUP_QUERY_ATTENTION, work=multiply_adds)
def group_query_attention(node: Node) -> Kernel:
    batch, new, _ = node.outputs[0].shape
    names = tuple(node.operands)
    heads, capacity = node.options["num_heads"], node.options["capacity"]
    # Of a long prompt some queries at a time: scores are as many as queries by keys.
    count = max(1, min(new, allowance(node) // (4 * heads * capacity)))
    memory = scratch((heads * count * capacity,), np.float32)

    def run(*arrays: Array) -> None:
        given = dict(zip(names, arrays, strict=False))
        output, *presents = arrays[-OUTPUTS:]
        q, k, v = _by_head(given, heads, node.options["kv_num_heads"])
        total = int(given["total_length"].reshape(()))
        ends = given["last_positions"].astype(np.int64) + 1
        begins = np.zeros_like(ends) if total == new else ends - new
        q, k = _turned(given, begins, total, (q, k), is_interleaved=node.options["is_interleaved"])
        for sample in range(batch):
            begin, end = int(begins[sample]), int(ends[sample])
            rows = slice(begin, begin + new)
            is_there = begin >= 0 and max(end, rows.stop, total) <= capacity
            for name, present, added in (("past_key", presents[0], k), ("past_value", presents[1], v)):
                _write(given.get(name), present, sample, rows if is_there else slice(0, 0), added)
            target = output[sample].reshape(new, heads, -1).transpose(1, 0, 2)
            if not is_there:
                target[...] = math.nan
                continue
            for first in range(0, new, count):
                some = slice(first, min(first + count, new))
                last = begin + some.stop if node.options["is_causal"] else end
                caches = presents[0][sample], presents[1][sample]
                own = _Queries(sample, some, q[sample][:, some], *caches, begin + first, last)
                target[:, some] = _attended(own, given, node.options, memory)

    return run


def _by_head(given: Mapping[str, Array], heads: int, key_heads: int) -> list[Array]:
    """Return queries, keys and values in float32, [batch, heads, new, size]."""
    parts, counts = [given[name] for name in ("query", "key", "value") if name in given], (heads, key_heads, key_heads)
    if len(parts) == 1:
        size = parts[0].shape[2] // sum(counts)
        parts = np.split(parts[0], [heads * size, (heads + key_heads) * size], axis=2)
    return [
        float32(part).reshape(*part.shape[:2], count, -1).transpose(0, 2, 1, 3)
        for part, count in zip(parts, counts, strict=True)
    ]


def _write(past: Array | None, present: Array, sample: int, rows: slice, added: Array) -> None:
    """Write the new rows of a sample; unless it is in place, what is before them, and 0 behind them."""
    target = present[sample]
    if past is not present:
        count = 0 if past is None else min(rows.start, past.shape[2])
        if past is not None:
            target[:, :count] = past[sample, :, :count]
        target[:, count : rows.start] = 0
        target[:, rows.stop :] = 0
    target[:, rows] = added[sample, :, : rows.stop - rows.start]


def _turned(
    given: Mapping[str, Array], begins: Array, total: int, both: tuple[Array, Array], *, is_interleaved: bool
) -> tuple[Array, ...]:
    """Return queries and keys turned by the angles of their positions."""
    if "cosines" not in given:
        return both
    new = both[0].shape[2]
    places = begins[:, None] + np.arange(new)
    if "positions" in given:
        positions = given["positions"].astype(np.int64)
        places = positions[:1, :1] + np.arange(new) if total == new else positions
    count, half = given["cosines"].shape
    places = np.where(places < 0, places + count, places).clip(0, count - 1)  # as gather's indices
    cos, sin = (float32(given[name])[places][:, None] for name in ("cosines", "sines"))
    return tuple(_rotated(item, cos, sin, half, is_interleaved=is_interleaved) for item in both)


def _rotated(x: Array, cos: Array, sin: Array, half: int, *, is_interleaved: bool) -> Array:
    turned = x.copy()
    real, imaginary = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if is_interleaved else (slice(0, half), slice(half, 2 * half))
    )
    turned[..., real] = x[..., real] * cos - x[..., imaginary] * sin
    turned[..., imaginary] = x[..., real] * sin + x[..., imaginary] * cos
    return turned


@attrs.frozen(eq=False)
class _Queries:
    """Queries of a sample, one behind the other.

    Attributes:
        sample: its place in the batch.
        places: those of the queries among the new ones.
        q: the queries, [heads, new, size].
        keys: [key heads, capacity, size].
        values: of the same shape.
        begin: the number of keys before the first query.
        end: the number of keys that any query sees.
    """

    sample: int
    places: slice
    q: Array
    keys: Array
    values: Array
    begin: int
    end: int


def _attended(queries: _Queries, given: Mapping[str, Array], options: Mapping[str, Any], memory: Array) -> Array:
    """Return [heads, new, size]."""
    heads, new, size = queries.q.shape
    key_heads = len(queries.keys)
    window: int = options["window"]
    first = max(0, queries.begin + 1 - window) if window > 0 else 0
    keys, values = (for_blas(float32(item[:, first : queries.end])) for item in (queries.keys, queries.values))
    count = queries.end - first
    factor = np.float32(options["scale"] or 1 / math.sqrt(size))
    q = np.ascontiguousarray((queries.q * factor).reshape(key_heads, -1, size))
    scores = memory[: heads * new * count].reshape(key_heads, -1, count)
    matrix_product(q, keys.transpose(0, 2, 1), scores)
    by_query = scores.reshape(heads, new, count)
    if options["softcap"]:
        cap = np.float32(options["softcap"])
        np.multiply(np.tanh(np.divide(by_query, cap, out=by_query), out=by_query), cap, out=by_query)
    if "bias" in given:
        bias = given["bias"][min(queries.sample, len(given["bias"]) - 1), :, queries.places, first : queries.end]
        by_query[..., : bias.shape[-1]] += bias
    if new > 1 and options["is_causal"]:
        own = np.arange(queries.begin, queries.begin + new)[:, None]
        places = np.arange(first, queries.end)
        hidden = places > own
        if window > 0:
            hidden |= places <= own - window
        by_query[:, hidden] = np.finfo(np.float32).min
    _softmax(by_query, _sink(given, heads, is_smooth=bool(options["is_smooth"])))
    attended = np.empty((key_heads, heads // key_heads * new, size), np.float32)
    matrix_product(scores, values, attended)
    return attended.reshape(heads, new, size)


def _sink(given: Mapping[str, Array], heads: int, *, is_smooth: bool) -> Array | None:
    if "sink" in given:
        return given["sink"].astype(np.float32).reshape(heads, 1, 1)
    return np.zeros((heads, 1, 1), np.float32) if is_smooth else None


def _softmax(scores: Array, sink: Array | None) -> None:
    """Make probabilities of scores, in place; a sink takes its share."""
    highest = scores.max(-1, keepdims=True)
    if sink is not None:
        highest = np.maximum(highest, sink)
    np.exp(np.subtract(scores, highest, out=scores), out=scores)
    total = scores.sum(-1, keepdims=True)
    if sink is not None:
        total += np.exp(sink - highest)
    scores /= total
