"""Attention and rotary embedding of onnxruntime's domain."""

from collections.abc import Sequence
from typing import Any, Literal

import attrs
import numpy as np

from webnn_py.core.decompositions.common import stacked
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION, GROUPED, lowest
from webnn_py.devices.composites.cached_attention import group_query_attention as check_group_query_attention
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank, integer
from webnn_py.onnx_models.rule_helpers.integer_products import product, shifted
from webnn_py.onnx_models.rule_helpers.scaled_attention import (
    Attended,
    Window,
    appended,
    attend,
    joined_heads,
    keys_before,
    mask_bias,
    past_of,
    split_heads,
    window_bias,
)
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.attention import rotary_embedding
from webnn_py.onnx_models.rules.matrix import matmul


@attrs.frozen(kw_only=True)
class AttentionAttributes:
    """Attributes of attention: of an equal number of heads of queries, keys and values.

    Attributes:
        mask_filter_value: what is added to scores where the mask is 0.
        num_heads: the number of heads.
        scale: factor of the scores; 0 for 1 / sqrt(size).
        unidirectional: whether each query sees no later keys.
    """

    mask_filter_value: float = -10000.0
    num_heads: int
    scale: float = 0.0
    unidirectional: bool = False


@attrs.frozen(kw_only=True)
class SelfAttentionAttributes(AttentionAttributes):
    """Attributes of attention of a sequence to itself; those of rotation and of shared buffers are not supported."""

    do_rotary: Literal[0] = 0
    past_present_share_buffer: Literal[0] = 0


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
    attributes: SelfAttentionAttributes,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
) -> list[MLOperand | None]:
    """Attend from a sequence to itself; queries, keys and values are one product."""
    if past_sequence_length is not None:
        refuse("input past_sequence_length", "given", "absent: it is that of a buffer, which past is not here")
    packed = matmul(context, x, weights)
    if bias is not None:
        packed = context.add(packed, bias)
    return _of_packed(context, packed, qkv_hidden_sizes, mask_index, past, attention_bias, attributes)


def _of_packed(
    context: ConversionContext,
    packed: MLOperand,
    sizes: Sequence[int] | None,
    mask: MLOperand | None,
    past: Value | None,
    attention_bias: MLOperand | None,
    attributes: AttentionAttributes,
) -> list[MLOperand | None]:
    """Attend with queries, keys and values that are packed into one tensor."""
    past = past_of(context, past)
    check_rank("the product of queries, keys and values", packed, 3)
    sizes = tuple(sizes or (packed.shape[2] // 3,) * 3)
    if len(sizes) != 3 or sum(sizes) != packed.shape[2]:
        refuse("attribute qkv_hidden_sizes", sizes, f"three sizes, together {packed.shape[2]}")
    parts = [split_heads(context, item, attributes.num_heads) for item in context.split(packed, sizes, axis=2)]
    pasts: list[MLOperand | None] = [None, None]
    if past is not None:
        check_rank("input past", past, 5)
        pasts = [context.reshape(item, past.shape[1:]) for item in context.split(past, 2, axis=0)]
    attended, key, value = _attended(context, parts, pasts, mask, attention_bias, attributes)
    present = None
    if len(context.wanted) > 1 and context.wanted[1]:
        present = stacked(context, [key, value], 0)
    return [joined_heads(context, attended.output), present]


def _attended(
    context: ConversionContext,
    parts: Sequence[MLOperand],
    pasts: Sequence[MLOperand | None],
    mask: MLOperand | None,
    attention_bias: MLOperand | None,
    attributes: AttentionAttributes,
) -> tuple[Attended, MLOperand, MLOperand]:
    """Attend with queries, keys and values by head; return the keys and values with those of the past, too."""
    q, k, v = parts
    key, value = appended(context, pasts[0], k), appended(context, pasts[1], v)
    keys = key.shape[2]
    biases = _masks(context, mask, q, keys, attributes.mask_filter_value)
    if attention_bias is not None:
        biases.append(attention_bias)
    if attributes.unidirectional:
        if k.shape[2] != q.shape[2]:  # onnxruntime's own kernels do not agree on which then come before which
            refuse("with unidirectional, the number of new keys", k.shape[2], f"that of queries, {q.shape[2]}")
        biases.append(window_bias(context, q, keys, keys - q.shape[2], Window(lowest(q))))
    return attend(context, q, key, value, scale=attributes.scale or None, biases=biases), key, value


def _masks(
    context: ConversionContext, mask: MLOperand | None, q: MLOperand, keys: int, masked: float
) -> list[MLOperand]:
    """Return a mask as biases: the mask has ends of samples, and maybe their starts, or 0 for each hidden key."""
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
    attributes: SelfAttentionAttributes,
) -> list[MLOperand | None]:
    """Attend from a sequence to itself; queries, keys and values are one product of integers."""
    sums = product(context, shifted(context, x, input_zero_point), shifted(context, weight, weight_zero_point))
    scaled = context.mul(context.cast(sums, "float32"), context.mul(input_scale, weight_scale))
    return _of_packed(context, context.add(scaled, bias), None, mask_index, past, None, attributes)


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
    attributes: AttentionAttributes,
) -> list[MLOperand]:
    """Attend with several heads; what is packed into one tensor is taken apart."""
    if past_sequence_length is not None or cache_indirection is not None:
        refuse("inputs past_sequence_length and cache_indirection", "given", "absent: they are a buffer's")
    parts = _unpacked(context, query, key, value, bias, attributes.num_heads)
    pasts = [past_of(context, past_key), past_of(context, past_value)]
    attended, full_key, full_value = _attended(context, parts, pasts, key_padding_mask, attention_bias, attributes)
    return [joined_heads(context, attended.output), full_key, full_value, attended.scores]


def _unpacked(
    context: ConversionContext,
    query: MLOperand,
    key: MLOperand | None,
    value: MLOperand | None,
    bias: MLOperand | None,
    heads: int,
) -> list[MLOperand]:
    """Return queries, keys and values as [batch, heads, length, size]."""
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
    total_sequence_length: Value,
    cos_cache: MLOperand | None = None,
    sin_cache: MLOperand | None = None,
    position_ids: MLOperand | None = None,
    attention_bias: MLOperand | None = None,
    head_sink: MLOperand | None = None,
    *,
    causal: bool = True,
    do_rotary: bool = False,
    k_norm_epsilon: float | None = None,
    k_quant_type: Literal["NONE"] = "NONE",
    kv_cache_bit_width: Literal[0] = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: Literal[0] = 0,
    rotary_interleaved: bool = False,
    scale: float = 0.0,
    sliding_window_cache: Literal[0] = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: Literal["NONE"] = "NONE",
) -> list[MLOperand]:
    """Attend to a cache and new keys, with more heads of queries than of keys.

    A total length that is known when the graph runs alone is within the past, which is then a buffer of that capacity.
    """
    if local_window_size == 0 or local_window_size < -1:
        refuse("attribute local_window_size", local_window_size, "-1 for all keys, or at least 1")
    if not causal and local_window_size != -1:
        refuse("attribute local_window_size", local_window_size, "-1, where causal is 0")
    check_rank("input query", query, 3)
    if num_heads < 1 or kv_num_heads < 1:
        refuse("attributes num_heads and kv_num_heads", f"{num_heads} and {kv_num_heads}", "at least 1")
    pasts = [past_of(context, past) for past in (past_key, past_value)]
    for past in filter(None, pasts):
        check_rank("the past", past, 4)
    if do_rotary and (cos_cache is None or sin_cache is None):
        refuse("inputs cos_cache and sin_cache", "absent", "given, where do_rotary is 1")
    lengths = context.operand(seqlens_k)
    operands = {
        "query": query,
        "last_positions": context.reshape(lengths, [query.shape[0]]) if lengths.rank == 2 else lengths,
        "total_length": context.operand(total_sequence_length),
        "key": key,
        "value": value,
        "past_key": pasts[0],
        "past_value": pasts[1],
        "cosines": cos_cache if do_rotary else None,
        "sines": sin_cache if do_rotary else None,
        "positions": position_ids if do_rotary else None,
        "bias": attention_bias,
        "sink": head_sink,
    }
    there: dict[str, Any] = {name: item for name, item in operands.items() if item is not None}
    options: dict[str, Any] = {
        "num_heads": num_heads,
        "kv_num_heads": kv_num_heads,
        "capacity": _capacity(context.known(total_sequence_length), pasts[0], query.shape[1]),
        "scale": scale,
        "softcap": softcap,
        "window": max(0, local_window_size),
        "is_causal": causal,
        "is_interleaved": rotary_interleaved,
        "is_smooth": smooth_softmax > 0,
    }
    for name, item in there.items():
        limits = GROUPED[name]
        types = limits.data_types if limits.type_of is None else (query.data_type,)
        if item.data_type not in types:
            refuse(f"the data type of {name}", item.data_type, " or ".join(types))
        if item.rank not in limits.ranks:
            refuse(f"the rank of {name}", item.rank, str(limits.ranks))
    check_group_query_attention(**there, **options)
    return context.composite(GROUP_QUERY_ATTENTION, there, **options)


def _capacity(total: StaticValue | None, past: MLOperand | None, new: int) -> int:
    """Return the length of the caches after the run: of the past, unless this grows by what is new."""
    length = 0 if past is None else past.shape[2]
    if total is None:
        return length or new
    needed = integer("input total_sequence_length", total)
    if needed == length + new or new <= needed <= length:
        return max(needed, length)
    allowed = f"{length + new}, with what is new, or from {new} to {length}, within the past"
    return refuse("input total_sequence_length", needed, allowed)


@rule("com.microsoft.RotaryEmbedding", 1)
def rotary_embedding_at(
    context: ConversionContext,
    x: MLOperand,
    position_ids: MLOperand,
    cos_cache: MLOperand,
    sin_cache: MLOperand,
    *,
    interleaved: bool = False,
    is_packed_batching: Literal[0] = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> MLOperand:
    """Turn pairs of elements by angles; a single position is that of the first element."""
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
