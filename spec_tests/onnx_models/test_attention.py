import numpy as np
import pytest

from spec_tests.onnx_models.single_node import check, each, node
from spec_tests.support.backends import BACKENDS

rng = np.random.default_rng(6)


pytestmark = pytest.mark.sampled(5)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


Q, K, V = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)
ROWS = floats(2, 3, 32), floats(2, 5, 16), floats(2, 5, 12)
PAST = floats(2, 2, 4, 8), floats(2, 2, 4, 6)
NOTHING = floats(2, 2, 0, 8), floats(2, 2, 0, 6)
MASK = np.array([[1, 1, 0, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], np.bool_)
ANY = [23, 24, 25]


def reference(operator, versions, *inputs, **attributes):
    """Onnxruntime masks rows of which all is hidden otherwise than ONNX says."""
    return node(operator, versions, *inputs, oracle="reference", **attributes)


@each(
    reference("Attention", ANY, Q, K, V),
    reference("Attention", ANY, *ROWS, q_num_heads=4, kv_num_heads=2, scale=0.5, softcap=0.7),
    reference("Attention", ANY, Q, K, V, MASK),
    reference("Attention", 24, Q, K, V, MASK[:, :3].copy()),
    reference("Attention", ANY, Q, K, V, floats(2, 1, 3, 9), *PAST, is_causal=1, outputs=3, wanted=(0, 1, 2)),
    *(
        node("Attention", 23, Q, K, V, floats(3, 5), softcap=0.9, qk_matmul_output_mode=mode, outputs=4, wanted=(0, 3))
        for mode in range(4)
    ),
    reference("Attention", [24, 25], Q, K, V, None, None, None, np.array([5, 2])),
    reference("Attention", [24, 25], Q, K, V, MASK, None, None, np.array([5, 3]), is_causal=1),
    reference("Attention", 25, Q, K, V, None, None, None, np.array([5, 4]), left_window_size=1, right_window_size=0),
    reference("Attention", 25, Q, K, V, left_window_size=1, right_window_size=1),
    reference("Attention", 24, Q, K, V, MASK, is_causal=1, qk_matmul_output_mode=2, outputs=4, wanted=(0, 3)),
    node("Attention", 23, Q, Q, Q, is_causal=1),
    reference("Attention", ANY, Q, K, V, None, *NOTHING, known=(4, 5), is_causal=1, outputs=3, wanted=(0, 1, 2)),
)
async def test_attention(context, case):
    await check(context, case)


COS, SIN = floats(7, 4), floats(7, 4)
PLACES = np.array([[0, 1, 2], [4, 5, 6]])


@each(
    node("RotaryEmbedding", 23, Q, COS, SIN, PLACES),
    node("RotaryEmbedding", 23, Q, COS, SIN, PLACES, interleaved=1),
    node("RotaryEmbedding", 23, ROWS[0], floats(2, 3, 3), floats(2, 3, 3), num_heads=4, rotary_embedding_dim=6),
)
async def test_rotary_embedding(context, case):
    await check(context, case)
