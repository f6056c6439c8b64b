"""Linear attention: a state of keys times values replaces the cache, token by token."""

from typing import Final, Literal

from webnn_py.core.decompositions.common import one_of
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.axes import check_rank
from webnn_py.onnx_models.rule_helpers.recurrent_steps import MOST_STEPS
from webnn_py.onnx_models.rule_table.declaration import rule

NEEDS: Final = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
"""By update rule, whether it has a decay, and a beta."""


@rule("LinearAttention", 27)
def linear_attention(
    context: ConversionContext,
    query: MLOperand,
    key: MLOperand,
    value: MLOperand,
    past_state: MLOperand | None = None,
    decay: MLOperand | None = None,
    beta: MLOperand | None = None,
    *,
    chunk_size: int,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float,
    update_rule: Literal["linear", "gated", "delta", "gated_delta"],
) -> list[MLOperand]:
    """Return what each token's query reads from the state, and the last state, computed in float32.

    ``chunk_size`` is a hint.
    """
    given = decay is not None, beta is not None
    if given != NEEDS[update_rule]:
        refuse("whether decay and beta are given", given, f"{NEEDS[update_rule]} where update_rule is {update_rule}")
    count = kv_num_heads
    key_size, value_size = _head_sizes(query, key, value, q_num_heads, count)
    (batch, steps, _), group = query.shape, q_num_heads // count
    q = _by_head(context, query, [count, group, key_size])
    q = context.mul(q, context.number(scale or key_size**-0.5, q))
    k = _by_head(context, key, [count, 1, key_size])
    v = _by_head(context, value, [count, 1, value_size])
    parts = [q, k, v]
    if decay is not None:
        kept = context.exp(_by_head(context, decay, [count, _width(decay, count, key_size), 1]))
        parts.append(kept)
    if beta is not None:
        parts.append(_by_head(context, beta, [_width(beta, 1, count), 1, 1]))
    shape = [batch, count, key_size, value_size]
    if past_state is None:
        state = context.expand(context.number(0, q), shape)
    else:
        state = context.cast(past_state, "float32")
        if state.shape != tuple(shape):
            refuse("the shape of input past_state", past_state.shape, f"{shape}")
    read: list[MLOperand] = []
    for step in range(steps):
        now = [one_of(context, part, 1, step) for part in parts]
        state = _next_state(context, state, now[1], now[2], now[3:], has_decay=given[0])
        seen = context.matmul(now[0], state)
        read.append(context.reshape(seen, [batch, 1, count * group * value_size]))
    output = read[0] if steps == 1 else context.concat(read, 1)
    kind = query.data_type if past_state is None else past_state.data_type
    return [context.cast(output, query.data_type), context.cast(state, kind)]


def _head_sizes(query: MLOperand, key: MLOperand, value: MLOperand, queries: int, count: int) -> tuple[int, int]:
    """Return the sizes of each key and query, and of each value."""
    for name, item in (("query", query), ("key", key), ("value", value)):
        check_rank(f"input {name}", item, 3)
    if count < 1 or queries < 1 or queries % count:
        refuse("attributes q_num_heads and kv_num_heads", f"{queries} and {count}", "at least 1, the first a multiple")
    size = key.shape[2] // count
    if query.shape[2] != queries * size or key.shape[2] != count * size or value.shape[2] % count:
        widths = [item.shape[2] for item in (query, key, value)]
        refuse("the widths of query, key and value", widths, f"of {queries}, {count} and {count} heads")
    if query.shape[1] > MOST_STEPS:
        refuse("the number of steps", query.shape[1], f"at most {MOST_STEPS}")
    return size, value.shape[2] // count


def _width(x: MLOperand, *allowed: int) -> int:
    """Return the number of a decay's numbers, or a beta's heads, at each step."""
    check_rank("inputs decay and beta", x, 3)
    first, second = allowed
    if x.shape[2] not in (first, first * second):
        refuse("the width of decay or beta", x.shape[2], f"{first} or {first * second}")
    return x.shape[2] // first


def _by_head(context: ConversionContext, x: MLOperand, sizes: list[int]) -> MLOperand:
    """Reshape [batch, steps, heads · rows · columns], as float32, to [batch, steps, heads, rows, columns]."""
    return context.reshape(context.cast(x, "float32"), [*x.shape[:2], *sizes])


def _next_state(
    context: ConversionContext,
    state: MLOperand,
    key: MLOperand,
    value: MLOperand,
    factors: list[MLOperand],
    *,
    has_decay: bool,
) -> MLOperand:
    """Return the decayed state plus a key times a value; with a beta, times the value's difference from the state."""
    if has_decay:
        decay, *factors = factors
        state = context.mul(state, decay)
    if factors:
        value = context.mul(factors[0], context.sub(value, context.matmul(key, state)))
    return context.add(state, context.matmul(context.transpose(key, permutation=[0, 1, 3, 2]), value))
