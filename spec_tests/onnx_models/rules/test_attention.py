import numpy as np
import pytest

from spec_tests.onnx_models.single_node import (
    assert_refused,
    assert_same,
    check,
    each,
    node,
    parsed,
    run,
    run_onnxruntime,
)
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
    reference("Attention", ANY, *ROWS, q_num_heads=4, kv_num_heads=2, scale=0.0),
    *(
        node("Attention", 23, Q, K, V, rng.integers(0, 3, [3, 5]).astype(kind), known=known)
        for kind in ("uint8", "int8", "int32", "int64", "float16")
        for known in ((), (3,))
    ),
    node("Attention", 23, Q, K, V, MASK[:2].repeat([2, 1], 0), known=(3,)),
    *(node("Attention", 23, Q, K, V, softmax_precision=kind) for kind in (1, 10, 11)),
    node("Attention", 23, Q, K, V, floats(3, 5), is_causal=1),
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
    reference("Attention", 25, Q, K, V, MASK, is_causal=1, qk_matmul_output_mode=2, outputs=4, wanted=(0, 3)),
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


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        ("b = Greater (m, zero)", "int32[3, 5] m"),
        ("c = Cast <to = 9> (m) d = Transpose <perm = [1, 0]> (c) e = Transpose <perm = [1, 0]> (d) b = Not (e)",
         "int32[3, 5] m"),
        ("g = Greater (m, zero) i = Not (g) j = And (g, i) h = Concat <axis = 0> (g, j) b = Slice (h, from, to)",
         "int32[3, 5] m"),
        ("t = Transpose <perm = [1, 0]> (m) b = Transpose <perm = [1, 0]> (t)", "bool[3, 5] m"),
    ],
)  # fmt: skip
async def test_computed_booleans_say_what_is_seen(context, nodes, inputs):
    text = (
        f"(float[2, 4, 3, 6] y) <int32 zero = {{0}}, int64[2] from = {{0, 0}}, int64[2] to = {{3, 5}}> "
        f"{{ {nodes} y = Attention (q, k, v, b) }}"
    )
    shapes = f"float{list(Q.shape)} q, float{list(K.shape)} k, float{list(V.shape)} v, {inputs}"
    mask = rng.integers(0, 2, [3, 5]).astype(np.bool_ if "bool" in inputs else np.int32)
    model, feeds = parsed(text, inputs=shapes, opset=23), {"q": Q, "k": K, "v": V, "m": mask}
    assert_same(await run(context, model, feeds), run_onnxruntime(model, feeds))


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        ("b = Cast <to = 2> (m)", "int32[3, 5] m"),
        ("h = Concat <axis = 0> (m, c) b = Slice (h, from, to)", "uint8[3, 5] m"),
    ],
)
async def test_computed_numbers_of_uint8_are_added(context, nodes, inputs):
    text = (
        "(float[2, 4, 3, 6] y) <uint8[1, 5] c = {2, 2, 2, 2, 2}, int64[2] from = {0, 0}, int64[2] to = {3, 5}> "
        f"{{ {nodes} y = Attention (q, k, v, b) }}"
    )
    shapes = f"float{list(Q.shape)} q, float{list(K.shape)} k, float{list(V.shape)} v, {inputs}"
    mask = rng.integers(0, 2, [3, 5]).astype(np.uint8 if "uint8" in inputs else np.int32)
    model, feeds = parsed(text, inputs=shapes, opset=23), {"q": Q, "k": K, "v": V, "m": mask}
    assert_same(await run(context, model, feeds), run_onnxruntime(model, feeds))


async def test_a_softmax_is_of_floats(context):
    (case,) = node("Attention", 23, Q, K, V, softmax_precision=6)
    assert_refused(context, case, "attribute softmax_precision is int32; it must be a type of floats")
