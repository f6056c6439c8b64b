import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_refused, compared, node

rng = np.random.default_rng(12)
BATCH, STEPS, KEY, VALUE = 2, 3, 4, 5


def floats(*shape, dtype=np.float32):
    return rng.uniform(-1, 1, shape).astype(dtype)


def case(update_rule, *more, queries=2, heads=2, dtype=np.float32, **attributes):
    inputs = [
        floats(BATCH, STEPS, count * size, dtype=dtype)
        for count, size in zip((queries, heads, heads), (KEY, KEY, VALUE), strict=True)
    ]
    return node(
        "LinearAttention", 27, *inputs, *more, q_num_heads=queries, kv_num_heads=heads, update_rule=update_rule,
        outputs=2, wanted=(0, 1), oracle="reference", **attributes,
    )  # fmt: skip


DECAY, BETA, STATE = floats(BATCH, STEPS, 2), floats(BATCH, STEPS, 2), floats(BATCH, 2, KEY, VALUE)


test_linear_attention = compared(
    case("linear"),
    case("linear", STATE, queries=4, scale=0.25),
    case("gated", None, DECAY),
    case("gated", STATE, floats(BATCH, STEPS, 2 * KEY)),
    case("delta", STATE, None, BETA),
    case("gated_delta", None, DECAY, BETA[..., :1], queries=6, chunk_size=16),
    case("linear", dtype=np.float16, relative=1e-3),
)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (case("gated"), "whether decay and beta are given is [False, False]; it must be (True, False) where"),
        (case("delta", STATE, None, floats(BATCH, STEPS, 3)), "the width of decay or beta is 3; it must be 1 or 2"),
        (case("linear", STATE[:1]), "the shape of input past_state is [1, 2, 4, 5]; it must be [2, 2, 4, 5]"),
        (case("linear", queries=3), "attributes q_num_heads and kv_num_heads is 3 and 2; it must be at least 1"),
        (case("other"), "attribute update_rule is other; it must be linear, gated, delta or gated_delta"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
async def test_what_does_not_fit_is_refused(context, given, text):
    assert_refused(context, given[0], text)
