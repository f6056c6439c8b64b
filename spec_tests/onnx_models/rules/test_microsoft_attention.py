import numpy as np
import pytest

from spec_tests.onnx_models.single_node import (
    Random,
    assert_same,
    compared,
    expected,
    microsoft,
    refused,
    run,
    seven_bits,
)
from spec_tests.support.backends import BACKENDS, on_each

random = Random(7)
floats = random.floats


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


def attention(*more, weights=24, **options):
    """Return the case of a packed product's attention, with other inputs behind the bias."""
    return microsoft("Attention", X, floats(8, weights), floats(weights), *more, num_heads=2, **options)


def quantized_attention(seen, *rest, known=(1,), **options):
    inputs = BYTES, COLUMNS, floats(24), np.float32(0.01), np.float32(0.02), seen, np.uint8(100), *rest
    return microsoft("QAttention", *inputs, known=known, num_heads=2, relative=1e-4, **options)


X = floats(2, 3, 8)
PAST = floats(2, 2, 2, 4, 4)
SEEN = np.int32([[1, 1, 0], [1, 0, 0]])
BYTES, COLUMNS = random.integers("uint8", 2, 3, 8), seven_bits(random.integers("int8", 8, 24))


test_attention_of_a_packed_product = compared(
    attention(),
    attention(SEEN, scale=0.3),
    attention(np.int32([3, 2])),
    attention(np.int32([3, 1, 1, 2])),
    attention(np.int32([3, 1, 1, 0]), mask_filter_value=0.5),
    attention(SEEN, mask_filter_value=0.5),
    attention(mask_filter_value=0.5),
    quantized_attention(SEEN, np.int8(-3), mask_filter_value=0.5),
    attention(None, PAST[..., :0, :], known=(4,), unidirectional=1, outputs=2),
    attention(np.stack([SEEN] * 3, 1), mask_filter_value=-50.0),
    attention(None, PAST, unidirectional=1, outputs=2),
    attention(None, None, floats(1, 2, 3, 3), weights=20, qkv_hidden_sizes=[8, 8, 4]),
    quantized_attention(SEEN, np.int8(-3)),
    quantized_attention(None, np.int8(0), known=(), unidirectional=1),
    quantized_attention(None, np.int8(0), PAST, outputs=2),
)


Q, K, V = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 6)
VISIBLE = np.int32([[1, 1, 0, 1, 1], [1, 0, 0, 0, 0]])


def several_heads(*inputs, **options):
    return microsoft("MultiHeadAttention", *inputs, num_heads=2, **options)


test_attention_of_several_heads = compared(
    several_heads(Q, K, V),
    several_heads(Q, K, V, floats(22), scale=0.3),
    several_heads(Q, K, V, None, VISIBLE),
    several_heads(Q, K, V, None, VISIBLE, mask_filter_value=0.5),
    several_heads(Q, K, V, None, np.int32([5, 2]), floats(2, 2, 3, 5)),
    several_heads(Q, floats(2, 2, 5, 4), floats(2, 2, 5, 4)),
    several_heads(Q, Q, Q, None, None, None, *PAST, unidirectional=1, outputs=3),
    several_heads(Q, Q, Q, None, None, None, *PAST[:, :, :, :0], known=(6, 7), outputs=3),
)


async def test_packed_inputs_are_split(context, ml, options):
    q, k, v = floats(2, 3, 2, 4), floats(2, 3, 2, 4), floats(2, 3, 2, 4)
    (apart,) = several_heads(*(item.reshape(2, 3, 8) for item in (q, k, v)))
    (keys,) = several_heads(q.reshape(2, 3, 8), np.stack([k, v], 3))
    (together,) = several_heads(np.stack([q, k, v], 3))
    assert_same(await run(context, together.model(), together.feeds), expected(apart))
    assert_same(await run(await ml.create_context(**options), keys.model(), keys.feeds), expected(apart))


NEW = floats(1, 3, 64), floats(1, 3, 32), floats(1, 3, 32)
BEFORE, NOTHING, BUFFER = ((floats(1, 2, length, 16), floats(1, 2, length, 16)) for length in (4, 0, 9))
COS, SIN = floats(12, 8), floats(12, 8)
LONG = floats(2, 2, 4, 16), floats(2, 2, 4, 16)
TOTAL, FIRST = (np.int32([6]), np.int32(7)), (np.int32([2]), np.int32(3))


def grouped(past, total, *more, new=NEW, known=(5, 6), **options):
    """Return the case of attention with fewer heads of keys than of queries, to a past and its lengths."""
    heads = {"num_heads": 4, "kv_num_heads": 2}
    return microsoft("GroupQueryAttention", *new, *past, *total, *more, known=known, outputs=3, **heads, **options)


test_attention_to_a_past = compared(
    grouped((None, None), FIRST),
    grouped(NOTHING, FIRST, known=(3, 4, 5, 6)),
    grouped(BEFORE, TOTAL, COS, SIN, np.array([[5, 0, 2]]), wanted=(0,), do_rotary=1),
    grouped(BEFORE, TOTAL),
    grouped(BUFFER, TOTAL),
    grouped(BUFFER, TOTAL, known=()),
    grouped(BUFFER, TOTAL, known=(), causal=0),
    grouped(
        LONG, (np.int32([2, 3]), np.int32(4)), new=(floats(2, 1, 64), floats(2, 1, 32), floats(2, 1, 32)), known=()
    ),
    grouped(BEFORE, TOTAL, COS, SIN, wanted=(0, 1), do_rotary=1, softcap=0.8),
    grouped(BEFORE, TOTAL, COS, SIN, None, floats(1, 1, 3, 7), do_rotary=1, rotary_interleaved=1),
    grouped(BEFORE, TOTAL, local_window_size=2),
    grouped(BEFORE, TOTAL, smooth_softmax=1),
    grouped(BEFORE, TOTAL, None, None, None, None, floats(4)),
    grouped(LONG, (np.int32([4, 4]), np.int32(5)), new=(floats(2, 1, 128), None, None)),
)


async def test_the_past_of_the_first_step_is_an_input_without_elements(context):
    (case,) = grouped(NOTHING, FIRST)
    shapes = dict.fromkeys(["x3", "x4"], NOTHING[0].shape)
    assert_same(await run(context, case.model(), case.feeds, input_shapes=shapes), expected(case))


test_rotary_embedding = compared(
    microsoft("RotaryEmbedding", floats(2, 3, 32), np.array([[0, 1, 2], [4, 5, 6]]), COS, SIN),
    microsoft("RotaryEmbedding", floats(2, 4, 3, 16), np.array([3]), COS, SIN, interleaved=1),
    microsoft("RotaryEmbedding", floats(2, 3, 80), np.array([3]), COS, SIN, num_heads=4, rotary_embedding_dim=16),
)


OTHER_KEYS = several_heads(floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), unidirectional=1)


test_unsupported_masks_and_lengths_are_refused = refused(
    (OTHER_KEYS, "with unidirectional, the number of new keys is 5; it must be that of queries, 3"),
    (
        grouped(BUFFER, (TOTAL[0], np.int32(10))),
        "input total_sequence_length is 10; it must be 12, with what is new, or ",
    ),
    (grouped(BUFFER, TOTAL, causal=0, local_window_size=2), "attribute local_window_size is 2; it must be -1, where"),
    (grouped(BUFFER, TOTAL, local_window_size=0), "attribute local_window_size is 0; it must be -1 for all keys, or"),
    (grouped(BUFFER, TOTAL, kv_cache_bit_width=8), "attribute kv_cache_bit_width is 8; it must be 0"),
    (
        attention(None, PAST, None, np.int32(4)),
        "input past_sequence_length is given; it must be absent: it is that of a buffer",
    ),
)
