"""Attention and rotary embedding as onnxruntime has them."""

from collections.abc import Sequence

import attrs
import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank, integer
from webnn_py.onnx_models.rule_helpers.integer_products import product, shifted
from webnn_py.onnx_models.rule_helpers.scaled_attention import (
    Window,
    appended,
    attend,
    joined_heads,
    keys_before,
    lowest,
    mask_bias,
    past_of,
    rotated,
    split_heads,
    window_bias,
)
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.attention import rotary_embedding
from webnn_py.onnx_models.rules.matrix import matmul
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("com.microsoft.Attention", 1)
def packed_attention(
    context: ConversionContext,
    x: MLOperand,
    weights: MLOperand,
    bias: MLOperand | None = None,
    mask_index: MLOperand | None = None,
    past: Value | None = None,
    attention_bias: MLOperand | None = None,
    past_sequence_length: Value | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> list[MLOperand | None]:
    """Attention of a sequence to itself; queries, keys and values are one product."""
    if do_rotary or past_present_share_buffer:
        given = f"{do_rotary} and {past_present_share_buffer}"
        refuse("attributes do_rotary and past_present_share_buffer", given, "0")
    if past_sequence_length is not None:
        refuse("input past_sequence_length", "given", "absent: it is that of a buffer, which past is not here")
    packed = matmul(context, x, weights)
    if bias is not None:
        packed = context.add(packed, bias)
    return _of_packed(
        context,
        packed,
        num_heads,
        sizes=qkv_hidden_sizes,
        mask=_Mask(mask_index, mask_filter_value),
        past=past_of(context, past),
        attention_bias=attention_bias,
        scale=scale,
        unidirectional=unidirectional,
    )


@attrs.frozen
class _Mask:
    """A mask, and what is added where it is 0."""

    operand: MLOperand | None
    masked: float


def _of_packed(
    context: ConversionContext,
    packed: MLOperand,
    heads: int,
    *,
    sizes: Sequence[int] | None,
    mask: _Mask,
    past: MLOperand | None,
    attention_bias: MLOperand | None,
    scale: float,
    unidirectional: int,
) -> list[MLOperand | None]:
    """Attention of queries, keys and values that stand beside each other."""
    check_rank("the product of queries, keys and values", packed, 3)
    sizes = tuple(sizes or (packed.shape[2] // 3,) * 3)
    if len(sizes) != 3 or sum(sizes) != packed.shape[2]:
        refuse("attribute qkv_hidden_sizes", sizes, f"three sizes, together {packed.shape[2]}")
    q, k, v = (split_heads(context, item, heads) for item in context.split(packed, sizes, axis=2))
    past_key, past_value = (None, None) if past is None else _unstacked(context, past)
    key, value = appended(context, past_key, k), appended(context, past_value, v)
    masks = _masks(context, mask.operand, q, key.shape[2], mask.masked)
    if attention_bias is not None:
        masks.append(attention_bias)
    if unidirectional:
        masks.append(window_bias(context, q, key.shape[2], key.shape[2] - q.shape[2], Window(lowest(q))))
    y = attend(context, q, key, value, scale=scale or None, biases=masks).output
    present = _stacked(context, key, value) if len(context.wanted) > 1 and context.wanted[1] else None
    return [joined_heads(context, y), present]


def _unstacked(context: ConversionContext, both: MLOperand) -> list[MLOperand]:
    check_rank("input past", both, 5)
    return [context.reshape(item, both.shape[1:]) for item in context.split(both, 2, axis=0)]


def _stacked(context: ConversionContext, key: MLOperand, value: MLOperand) -> MLOperand:
    return context.concat([context.reshape(item, [1, *item.shape]) for item in (key, value)], 0)


def _masks(
    context: ConversionContext, mask: MLOperand | None, q: MLOperand, keys: int, masked: float
) -> list[MLOperand]:
    """The bias that a mask comes to: ends of samples, and their starts behind these, or 0 for each key not seen."""
    if mask is None:
        return []
    batch, queries = q.shape[0], q.shape[2]
    match mask.shape:
        case (size,) if size == batch:
            return [mask_bias(context, keys_before(context, mask, keys), q, masked)]
        case (size,) if size == 2 * batch:
            ends, starts = context.split(mask, 2, axis=0)
            is_behind = context.logical_not(keys_before(context, starts, keys))
            return [mask_bias(context, context.logical_and(keys_before(context, ends, keys), is_behind), q, masked)]
        case (size, length) if (size, length) == (batch, keys):
            return [mask_bias(context, context.reshape(mask, [batch, 1, 1, keys]), q, masked)]
        case (size, rows, length) if (size, rows, length) == (batch, queries, keys):
            return [mask_bias(context, context.reshape(mask, [batch, 1, queries, keys]), q, masked)]
    allowed = f"[{batch}], [{2 * batch}], [{batch}, {keys}] or [{batch}, {queries}, {keys}]"
    return refuse("the shape of the mask", mask.shape, allowed)


@rule("com.microsoft.QAttention", 1)
def quantized_attention(
    context: ConversionContext,
    x: Value,
    weight: Value,
    bias: MLOperand,
    input_scale: MLOperand,
    weight_scale: MLOperand,
    mask_index: MLOperand | None = None,
    input_zero_point: Value | None = None,
    weight_zero_point: Value | None = None,
    past: Value | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> list[MLOperand | None]:
    """Likewise, of a product of integers."""
    if do_rotary or past_present_share_buffer:
        given = f"{do_rotary} and {past_present_share_buffer}"
        refuse("attributes do_rotary and past_present_share_buffer", given, "0")
    sums = product(context, shifted(context, x, input_zero_point), shifted(context, weight, weight_zero_point))
    packed = context.mul(context.cast(sums, "float32"), context.mul(input_scale, weight_scale))
    return _of_packed(
        context,
        context.add(packed, bias),
        num_heads,
        sizes=None,
        mask=_Mask(mask_index, mask_filter_value),
        past=past_of(context, past),
        attention_bias=None,
        scale=scale,
        unidirectional=unidirectional,
    )


@rule("com.microsoft.MultiHeadAttention", 1)
def multi_head_attention(
    context: ConversionContext,
    query: MLOperand,
    key: MLOperand | None = None,
    value: MLOperand | None = None,
    bias: MLOperand | None = None,
    key_padding_mask: MLOperand | None = None,
    attention_bias: MLOperand | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_sequence_length: Value | None = None,
    cache_indirection: Value | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> list[MLOperand]:
    """Attention of several heads; what is packed into one tensor is taken apart."""
    if past_sequence_length is not None or cache_indirection is not None:
        refuse("inputs past_sequence_length and cache_indirection", "given", "absent: they are a buffer's")
    q, k, v = _unpacked(context, query, key, value, bias, num_heads)
    full_key = appended(context, past_of(context, past_key), k)
    full_value = appended(context, past_of(context, past_value), v)
    keys = full_key.shape[2]
    biases = _masks(context, key_padding_mask, q, keys, mask_filter_value)
    if attention_bias is not None:
        biases.append(attention_bias)
    if unidirectional:
        if k.shape[2] != q.shape[2]:  # onnxruntime's own kernels do not agree on which then come before which
            refuse("with unidirectional, the number of new keys", k.shape[2], f"that of queries, {q.shape[2]}")
        biases.append(window_bias(context, q, keys, keys - q.shape[2], Window(lowest(q))))
    attended = attend(context, q, full_key, full_value, scale=scale or None, biases=biases)
    return [joined_heads(context, attended.output), full_key, full_value, attended.scores]


def _unpacked(
    context: ConversionContext,
    query: MLOperand,
    key: MLOperand | None,
    value: MLOperand | None,
    bias: MLOperand | None,
    heads: int,
) -> list[MLOperand]:
    """Queries, keys and values as [batch, heads, length, size]."""
    if key is not None and key.rank == 4:
        if bias is not None or value is None:
            refuse("inputs bias and value", "not both right", "absent and given, where the key is split into heads")
        check_rank("input value", value, 4)
        return [split_heads(context, query, heads), key, value]
    if key is None:  # [batch, length, heads, 3, size]
        parts = _taken_apart(context, query, 3)
    elif value is None:  # [batch, length, heads, 2, size]
        parts = [query, *_taken_apart(context, key, 2)]
    else:
        parts = [query, key, value]
    for item in parts:
        check_rank("query, key or value", item, 3)
    if bias is not None:
        parts = list(map(context.add, parts, context.split(bias, [item.shape[2] for item in parts], axis=0)))
    return [split_heads(context, item, heads) for item in parts]


def _taken_apart(context: ConversionContext, packed: MLOperand, count: int) -> list[MLOperand]:
    if packed.rank != 5 or packed.shape[3] != count:
        refuse("the shape of a packed input", packed.shape, f"[batch, length, heads, {count}, size]")
    batch, length, heads, _, size = packed.shape
    return [context.reshape(item, [batch, length, heads * size]) for item in context.split(packed, count, axis=3)]


@rule("com.microsoft.GroupQueryAttention", 1)
def group_query_attention(
    context: ConversionContext,
    query: MLOperand,
    key: MLOperand | None,
    value: MLOperand | None,
    past_key: Value | None,
    past_value: Value | None,
    seqlens_k: Value,
    total_sequence_length: StaticValue,
    cos_cache: MLOperand | None = None,
    sin_cache: MLOperand | None = None,
    position_ids: MLOperand | None = None,
    attention_bias: MLOperand | None = None,
    head_sink: MLOperand | None = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_norm_epsilon: float | None = None,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> list[MLOperand]:
    """Attention to what came before, of more heads of queries than of keys."""
    if qk_output or sliding_window_cache or kv_cache_bit_width or {k_quant_type, v_quant_type} != {"NONE"}:
        given = f"{qk_output}, {sliding_window_cache}, {kv_cache_bit_width}, {k_quant_type} and {v_quant_type}"
        named = "attributes qk_output, sliding_window_cache, kv_cache_bit_width, k_quant_type and v_quant_type"
        refuse(named, given, "0, 0, 0, NONE and NONE")
    if local_window_size == 0 or local_window_size < -1:
        refuse("attribute local_window_size", local_window_size, "-1 for all keys, or at least 1")
    check_rank("input query", query, 3)
    if num_heads < 1 or kv_num_heads < 1:
        refuse("attributes num_heads and kv_num_heads", f"{num_heads} and {kv_num_heads}", "at least 1")
    if key is None or value is None:
        query, key, value = _split_groups(context, query, num_heads, kv_num_heads)
    total, new = integer("input total_sequence_length", total_sequence_length), query.shape[1]
    pasts = [_checked_past(context, past) for past in (past_key, past_value)]
    _check_lengths(context, seqlens_k, total)
    q, k, v = (
        split_heads(context, item, heads)
        for item, heads in ((query, num_heads), (key, kv_num_heads), (value, kv_num_heads))
    )
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            refuse("inputs cos_cache and sin_cache", "absent", "given, where do_rotary is 1")
        cos, sin = (_of_positions(context, item, position_ids, total - new, new) for item in (cos_cache, sin_cache))
        q, k = (rotated(context, item, cos, sin, interleaved=bool(rotary_interleaved)) for item in (q, k))
    present = [_into_buffer(context, past, item, total) for past, item in zip(pasts, (k, v), strict=True)]
    seen = [_first(context, item, total) for item in present]
    window = Window(lowest(q), local_window_size - 1 if local_window_size > 0 else -1, 0 if causal else -1)
    biases = [window_bias(context, q, total, total - new, window)]
    if attention_bias is not None:
        biases.append(attention_bias)
    sink = None if head_sink is None else context.reshape(head_sink, [1, num_heads, 1, 1])
    if sink is None and smooth_softmax > 0:
        sink = context.constant(np.zeros([1, 1, 1, 1], q.data_type))
    attended = attend(context, q, *seen, scale=scale or None, biases=biases, softcap=softcap, sink=sink)
    return [joined_heads(context, attended.output), *present]


def _split_groups(context: ConversionContext, packed: MLOperand, heads: int, key_heads: int) -> list[MLOperand]:
    """Return queries, keys and values of a tensor that has them beside each other."""
    size = packed.shape[2] // (heads + 2 * key_heads)
    return context.split(packed, [heads * size, key_heads * size, key_heads * size], axis=2)


def _checked_past(context: ConversionContext, past: Value | None) -> MLOperand | None:
    operand = past_of(context, past)
    if operand is not None:
        check_rank("the past", operand, 4)
    return operand


def _check_lengths(context: ConversionContext, seqlens_k: Value, total: int) -> None:
    """Refuse samples that have fewer keys than the total length, or lengths that only the run tells."""
    known = context.required("input seqlens_k", seqlens_k)
    if np.any(known != total - 1):
        refuse("input seqlens_k", known.tolist(), f"{total - 1} everywhere, the total length less 1")


def _of_positions(
    context: ConversionContext, cache: MLOperand, positions: MLOperand | None, start: int, count: int
) -> MLOperand:
    """The cosines or sines of positions, [batch or 1, length, half]."""
    check_rank("a cache", cache, 2)
    if positions is not None:
        return context.gather(cache, positions, axis=0)
    return context.reshape(context.slice(cache, [start, 0], [count, cache.shape[1]]), [1, count, cache.shape[1]])


def _into_buffer(context: ConversionContext, past: MLOperand | None, x: MLOperand, total: int) -> MLOperand:
    """The past with what is new at the end of ``total``; a longer past keeps its length."""
    before = total - x.shape[2]
    length = 0 if past is None else past.shape[2]
    if not 0 <= before <= length:
        refuse("the length of the past", length, f"at least {before}, the total length less what is new")
    parts = [x]
    if past is not None and before:
        parts.insert(0, _first(context, past, before))
    if past is not None and length > total:
        parts.append(_rest(context, past, total))
    return context.concat(parts, 2) if len(parts) > 1 else x


def _first(context: ConversionContext, x: MLOperand, length: int) -> MLOperand:
    return x if x.shape[2] == length else context.slice(x, [0] * 4, [*x.shape[:2], length, x.shape[3]])


def _rest(context: ConversionContext, x: MLOperand, start: int) -> MLOperand:
    return context.slice(x, [0, 0, start, 0], [*x.shape[:2], x.shape[2] - start, x.shape[3]])


@rule("com.microsoft.RotaryEmbedding", 1)
def rotary_embedding_at(
    context: ConversionContext,
    x: MLOperand,
    position_ids: MLOperand,
    cos_cache: MLOperand,
    sin_cache: MLOperand,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> MLOperand:
    """Likewise; a single position is that of the first element."""
    if is_packed_batching:
        refuse("attribute is_packed_batching", is_packed_batching, "0")
    check_rank("input input", x, 3, 4)
    check_rank("input cos_cache", cos_cache, 2)
    check_rank("input position_ids", position_ids, 1, 2)
    length = x.shape[-2]
    heads = num_heads if rotary_embedding_dim else x.shape[-1] // (2 * cos_cache.shape[-1])
    if position_ids.rank == 1:
        steps = context.constant(np.arange(length).astype(position_ids.data_type))
        position_ids = context.reshape(context.add(steps, position_ids), [1, length])
    return rotary_embedding(
        context,
        x,
        cos_cache,
        sin_cache,
        position_ids,
        interleaved=interleaved,
        num_heads=heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )
