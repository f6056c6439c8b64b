"""Attention and rotary embedding, ONNX's and onnxruntime's."""

import math
from typing import Final, Literal

from onnx import TensorProto

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.cached_attention import rotated
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.reading.element_types import type_name
from webnn_py.onnx_models.rule_helpers.axes import check_rank
from webnn_py.onnx_models.rule_helpers.scaled_attention import (
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

FLOATS: Final = (None, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
"""The types in which a softmax may be asked to be computed; WebNN computes it in float32."""


@rule("Attention", 23, 24, 25)
def attention(
    context: ConversionContext,
    q: MLOperand,
    k: MLOperand,
    v: MLOperand,
    attn_mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    nonpad_kv_seqlen: MLOperand | None = None,
    *,
    is_causal: bool,
    kv_num_heads: int = 0,
    left_window_size: int = -1,
    q_num_heads: int = 0,
    qk_matmul_output_mode: Literal[0, 1, 2, 3],
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float,
    softmax_precision: int | None = None,
) -> list[MLOperand]:
    """Attend; each sample may have its own number of keys, and each query may see only the keys around it.

    The softmax is computed in float32, whatever ``softmax_precision`` asks for. ONNX's body would scale queries and
    keys apart, and look for rows that are masked whole even where there is no mask.
    """
    if softmax_precision not in FLOATS:
        refuse("attribute softmax_precision", type_name(softmax_precision or 0), "a type of floats")
    in_rows = q.rank == 3
    for name, item in (("Q", q), ("K", k), ("V", v)):
        check_rank(f"input {name}", item, 3 if in_rows else 4)
    if in_rows:
        q, k, v = (
            split_heads(context, item, heads)
            for item, heads in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
        )
    before, values_before = past_of(context, past_key), past_of(context, past_value)
    key, value = appended(context, before, k), appended(context, values_before, v)
    keys = key.shape[2]
    biases = [] if attn_mask is None else [_given_bias(context, attn_mask, keys, q)]
    if nonpad_kv_seqlen is not None:
        biases.append(mask_bias(context, keys_before(context, nonpad_kv_seqlen, keys), q, -math.inf))
    window = Window(-math.inf, left_window_size, 0 if is_causal else right_window_size)
    if max(window.before, window.after) >= 0:
        offset: int | MLOperand = 0 if before is None else before.shape[2]  # the number of keys before the first query
        if before is None and nonpad_kv_seqlen is not None:
            offset = context.sub(nonpad_kv_seqlen, context.number(q.shape[2], nonpad_kv_seqlen))
        biases.append(window_bias(context, q, keys, offset, window))
    attended = attend(context, q, key, value, scale=scale, biases=biases, softcap=softcap, dead_rows=True)
    stages = (attended.scores, attended.capped, attended.biased, attended.probabilities)
    y = joined_heads(context, attended.output) if in_rows else attended.output
    return [y, key, value, stages[qk_matmul_output_mode]]


def _given_bias(context: ConversionContext, given: Value, keys: int, like: MLOperand) -> MLOperand:
    """Return a mask as a bias: booleans say what is seen, numbers are added to scores; keys beyond its end are hidden.

    What is not of the scores' data type is converted to it.
    """
    mask = context.operand(given)
    check_rank("input attn_mask", mask, 1, 2, 3, 4)
    if context.is_boolean(given):
        mask = mask_bias(context, mask, like, -math.inf)
    elif mask.data_type != like.data_type:
        mask = context.cast(mask, like.data_type)
    missing = keys - mask.shape[-1]
    if missing > 0:
        ends = [0] * (mask.rank - 1) + [missing]
        mask = context.pad(mask, [0] * mask.rank, ends, mode="constant", value=-math.inf)
    return mask


@rule("RotaryEmbedding", 23)
def rotary_embedding(
    context: ConversionContext,
    x: MLOperand,
    cos_cache: MLOperand,
    sin_cache: MLOperand,
    position_ids: MLOperand | None = None,
    *,
    interleaved: bool,
    num_heads: int = 0,
    rotary_embedding_dim: int,
) -> MLOperand:
    """Turn pairs of elements by angles; without positions, the caches have those of each sample.

    ONNX's body would transpose the heads there and back.
    """
    check_rank("input X", x, 3, 4)
    check_rank("input cos_cache", cos_cache, 3 if position_ids is None else 2)
    check_rank("input sin_cache", sin_cache, cos_cache.rank)
    by_head = split_heads(context, x, num_heads) if x.rank == 3 else x
    if position_ids is not None:
        cos_cache, sin_cache = (context.gather(item, position_ids, axis=0) for item in (cos_cache, sin_cache))
    if rotary_embedding_dim and cos_cache.shape[-1] * 2 != rotary_embedding_dim:
        refuse("attribute rotary_embedding_dim", rotary_embedding_dim, f"{cos_cache.shape[-1] * 2}, as the caches say")
    check_rank("what turns", by_head, 4)
    check_rank("the cosines", cos_cache, 3)
    if cos_cache.shape != sin_cache.shape or 2 * cos_cache.shape[2] > by_head.shape[3]:
        refuse(
            "the shape of the cosines", cos_cache.shape, f"that of the sines, and at most {by_head.shape[3] // 2} long"
        )
    turned = rotated(context, by_head, cos_cache, sin_cache, interleaved=interleaved)
    return joined_heads(context, turned) if x.rank == 3 else turned
