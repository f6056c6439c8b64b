import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_refused, assert_same, compared, expected, node, run, seven_bits
from spec_tests.support.backends import BACKENDS, on_each

rng = np.random.default_rng(7)
MS = "com.microsoft."


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def integers(*values):
    return np.array(values, np.int32)


def step(value):
    return np.array(value, np.float32)


X, WEIGHTS, BIAS = floats(2, 3, 8), floats(8, 24), floats(24)
PAST = floats(2, 2, 2, 4, 4)
SEEN = np.array([[1, 1, 0], [1, 0, 0]], np.int32)
BYTES, COLUMNS = rng.integers(0, 256, [2, 3, 8], np.uint8), seven_bits(rng.integers(-128, 128, [8, 24], np.int8))


test_attention_of_a_packed_product = compared(
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, num_heads=2),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, SEEN, num_heads=2, scale=0.3),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, integers(3, 2), num_heads=2),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, integers(3, 1, 1, 2), num_heads=2),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, integers(3, 1, 1, 0), num_heads=2, mask_filter_value=0.5),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, SEEN, num_heads=2, mask_filter_value=0.5),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, num_heads=2, mask_filter_value=0.5),
    node(f"{MS}QAttention", 1, BYTES, COLUMNS, BIAS, step(0.01), step(0.02), SEEN, np.array(100, np.uint8),
         np.array(-3, np.int8), known=(1,), num_heads=2, mask_filter_value=0.5, relative=1e-4),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, None, PAST[..., :0, :], known=(4,), num_heads=2, unidirectional=1,
         outputs=2, wanted=(0, 1)),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, np.stack([SEEN] * 3, 1), num_heads=2, mask_filter_value=-50.0),
    node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, None, PAST, num_heads=2, unidirectional=1, outputs=2, wanted=(0, 1)),
    node(f"{MS}Attention", 1, X, floats(8, 20), floats(20), None, None, floats(1, 2, 3, 3), num_heads=2,
         qkv_hidden_sizes=[8, 8, 4]),
    node(f"{MS}QAttention", 1, BYTES, COLUMNS, BIAS, step(0.01), step(0.02), SEEN, np.array(100, np.uint8),
         np.array(-3, np.int8), known=(1,), num_heads=2, relative=1e-4),
    node(f"{MS}QAttention", 1, BYTES, COLUMNS, BIAS, step(0.01), step(0.02), None, np.array(100, np.uint8),
         np.array(0, np.int8), num_heads=2, unidirectional=1, relative=1e-4),
    node(f"{MS}QAttention", 1, BYTES, COLUMNS, BIAS, step(0.01), step(0.02), None, np.array(100, np.uint8),
         np.array(0, np.int8), PAST, known=(1,), num_heads=2, outputs=2, wanted=(0, 1), relative=1e-4),
)  # fmt: skip


Q, K, V = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 6)


test_attention_of_several_heads = compared(
    node(f"{MS}MultiHeadAttention", 1, Q, K, V, num_heads=2),
    node(f"{MS}MultiHeadAttention", 1, Q, K, V, floats(22), num_heads=2, scale=0.3),
    node(f"{MS}MultiHeadAttention", 1, Q, K, V, None, integers([1, 1, 0, 1, 1], [1, 0, 0, 0, 0]), num_heads=2),
    node(f"{MS}MultiHeadAttention", 1, Q, K, V, None, integers([1, 1, 0, 1, 1], [1, 0, 0, 0, 0]), num_heads=2,
         mask_filter_value=0.5),
    node(f"{MS}MultiHeadAttention", 1, Q, K, V, None, integers(5, 2), floats(2, 2, 3, 5), num_heads=2),
    node(f"{MS}MultiHeadAttention", 1, Q, floats(2, 2, 5, 4), floats(2, 2, 5, 4), num_heads=2),
    node(f"{MS}MultiHeadAttention", 1, Q, Q, Q, None, None, None, PAST[0], PAST[1], num_heads=2, unidirectional=1,
         outputs=3, wanted=(0, 1, 2)),
    node(f"{MS}MultiHeadAttention", 1, Q, Q, Q, None, None, None, PAST[0, :, :, :0], PAST[1, :, :, :0], known=(6, 7),
         num_heads=2, outputs=3, wanted=(0, 1, 2)),
)  # fmt: skip


async def test_what_is_packed_is_taken_apart(context, ml, options):
    q, k, v = floats(2, 3, 2, 4), floats(2, 3, 2, 4), floats(2, 3, 2, 4)
    (apart,) = node(f"{MS}MultiHeadAttention", 1, *(item.reshape(2, 3, 8) for item in (q, k, v)), num_heads=2)
    (keys,) = node(f"{MS}MultiHeadAttention", 1, q.reshape(2, 3, 8), np.stack([k, v], 3), num_heads=2)
    (together,) = node(f"{MS}MultiHeadAttention", 1, np.stack([q, k, v], 3), num_heads=2)
    assert_same(await run(context, together.model(), together.feeds), expected(apart))
    assert_same(await run(await ml.create_context(**options), keys.model(), keys.feeds), expected(apart))


NEW = floats(1, 3, 64), floats(1, 3, 32), floats(1, 3, 32)
BEFORE = floats(1, 2, 4, 16), floats(1, 2, 4, 16)
NOTHING = floats(1, 2, 0, 16), floats(1, 2, 0, 16)
BUFFER = floats(1, 2, 9, 16), floats(1, 2, 9, 16)
COS, SIN = floats(12, 8), floats(12, 8)
HEADS = {"num_heads": 4, "kv_num_heads": 2}
TOTAL = integers(6), np.array(7, np.int32)


test_attention_to_what_came_before = compared(
    node(f"{MS}GroupQueryAttention", 1, *NEW, None, None, integers(2), np.array(3, np.int32), known=(5, 6), outputs=3,
         wanted=(0, 1, 2), **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *NOTHING, integers(2), np.array(3, np.int32), known=(3, 4, 5, 6),
         outputs=3, wanted=(0, 1, 2), **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, COS, SIN, np.array([[5, 0, 2]]), known=(5, 6),
         outputs=3, do_rotary=1, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, known=(5, 6), outputs=3, wanted=(0, 1, 2), **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BUFFER, *TOTAL, known=(5, 6), outputs=3, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, COS, SIN, known=(5, 6), outputs=3, wanted=(0, 1),
         do_rotary=1, softcap=0.8, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, COS, SIN, None, floats(1, 1, 3, 7), known=(5, 6),
         outputs=3, do_rotary=1, rotary_interleaved=1, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, known=(5, 6), outputs=3, local_window_size=2, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, known=(5, 6), outputs=3, smooth_softmax=1, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, *NEW, *BEFORE, *TOTAL, None, None, None, None, floats(4), known=(5, 6),
         outputs=3, **HEADS),
    node(f"{MS}GroupQueryAttention", 1, floats(2, 1, 128), None, None, floats(2, 2, 4, 16), floats(2, 2, 4, 16),
         integers(4, 4), np.array(5, np.int32), known=(5, 6), outputs=3, wanted=(0, 1, 2), **HEADS),
)  # fmt: skip


async def test_the_past_of_the_first_step_is_an_input_without_elements(context):
    (case,) = node(
        f"{MS}GroupQueryAttention",
        1,
        *NEW,
        *NOTHING,
        integers(2),
        np.array(3, np.int32),
        known=(5, 6),
        outputs=3,
        **HEADS,
    )
    shapes = dict.fromkeys(["x3", "x4"], NOTHING[0].shape)
    assert_same(await run(context, case.model(), case.feeds, input_shapes=shapes), expected(case))


test_rotary_embedding = compared(
    node(f"{MS}RotaryEmbedding", 1, floats(2, 3, 32), np.array([[0, 1, 2], [4, 5, 6]]), COS, SIN),
    node(f"{MS}RotaryEmbedding", 1, floats(2, 4, 3, 16), np.array([3]), COS, SIN, interleaved=1),
    node(f"{MS}RotaryEmbedding", 1, floats(2, 3, 80), np.array([3]), COS, SIN, num_heads=4, rotary_embedding_dim=16),
)


async def test_causal_attention_to_other_keys_is_refused(context):
    (case,) = node(
        f"{MS}MultiHeadAttention", 1, floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), num_heads=2, unidirectional=1
    )
    assert_refused(context, case, "with unidirectional, the number of new keys is 5; it must be that of queries, 3")


@pytest.mark.parametrize(
    ("inputs", "attributes", "text"),
    [
        # The total length says how much is in the buffer, but not how much of it belongs to a sample.
        (
            {"known": (6,)},
            {},
            "input seqlens_k is computed when the graph runs; it must be known while building; freeze",
        ),
        (
            {"known": (5,)},
            {},
            "input total_sequence_length is computed when the graph runs; it must be known while bui",
        ),
        ({"known": (5, 6), "lengths": integers(4)}, {}, "input seqlens_k is [4]; it must be 6 everywhere, the total"),
        (
            {"known": (5, 6)},
            {"local_window_size": 0},
            "attribute local_window_size is 0; it must be -1 for all keys, or",
        ),
        ({"known": (5, 6)}, {"kv_cache_bit_width": 8}, "attribute kv_cache_bit_width is 8; it must be 0"),
    ],
)
async def test_lengths_and_windows_that_are_not_supported_are_refused(context, inputs, attributes, text):
    total = inputs.get("lengths", TOTAL[0]), TOTAL[1]
    (case,) = node(
        f"{MS}GroupQueryAttention", 1, *NEW, *BUFFER, *total, known=inputs["known"], outputs=3, **HEADS, **attributes
    )
    assert_refused(context, case, text)


async def test_the_length_of_a_past_in_a_buffer_is_refused(context):
    (case,) = node(f"{MS}Attention", 1, X, WEIGHTS, BIAS, None, PAST, None, np.array(4, np.int32), num_heads=2)
    assert_refused(context, case, "input past_sequence_length is given; it must be absent: it is that of a buffer")
