import numpy as np
import pytest

from spec_tests.onnx_models.single_node import (
    Random,
    assert_same,
    compared,
    node,
    parsed,
    refused,
    run,
    run_onnxruntime,
)
from spec_tests.support.backends import BACKENDS, on_each
from spec_tests.support.cells import cells

random = Random(6)
floats = random.floats


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


Q, K, V = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)
ROWS = floats(2, 3, 32), floats(2, 5, 16), floats(2, 5, 12)
PAST = floats(2, 2, 4, 8), floats(2, 2, 4, 6)
NOTHING = floats(2, 2, 0, 8), floats(2, 2, 0, 6)
MASK = np.array([[1, 1, 0, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], np.bool_)
ANY = [23, 24, 25]


def reference(operator, versions, *inputs, **attributes):
    """Return cases for ONNX's reference: onnxruntime masks rows without a visible key in another way."""
    return node(operator, versions, *inputs, oracle="reference", **attributes)


test_attention = compared(
    reference("Attention", ANY, Q, K, V),
    reference("Attention", ANY, *ROWS, q_num_heads=4, kv_num_heads=2, scale=0.5, softcap=0.7),
    reference("Attention", ANY, Q, K, V, MASK),
    reference("Attention", 24, Q, K, V, MASK[:, :3].copy()),
    reference("Attention", ANY, *ROWS, q_num_heads=4, kv_num_heads=2, scale=0.0),
    *(
        node("Attention", 23, Q, K, V, random.rng.integers(0, 3, [3, 5]).astype(kind), known=known)
        for kind in ("uint8", "int8", "int32", "int64", "float16")
        for known in ((), (3,))
    ),
    node("Attention", 23, Q, K, V, MASK[:2].repeat([2, 1], 0), known=(3,)),
    *(node("Attention", 23, Q, K, V, softmax_precision=kind) for kind in (1, 10, 11)),
    node("Attention", 23, Q, K, V, floats(3, 5), is_causal=1),
    reference("Attention", ANY, Q, K, V, floats(2, 1, 3, 9), *PAST, is_causal=1, outputs=3),
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
    reference("Attention", ANY, Q, K, V, None, *NOTHING, known=(4, 5), is_causal=1, outputs=3),
    reference("Attention", ANY, Q, K, V, Q[0, 0, :, :1].copy()),
)


COS, SIN = floats(7, 4), floats(7, 4)
PLACES = np.array([[0, 1, 2], [4, 5, 6]])


test_rotary_embedding = compared(
    node("RotaryEmbedding", 23, Q, COS, SIN, PLACES),
    node("RotaryEmbedding", 23, Q, COS, SIN, PLACES, interleaved=1),
    node("RotaryEmbedding", 23, ROWS[0], floats(2, 3, 3), floats(2, 3, 3), num_heads=4, rotary_embedding_dim=6),
)


KNOWN = "int32 zero = {0}, uint8[1, 5] c = {2, 2, 2, 2, 2}, int64[2] from = {0, 0}, int64[2] to = {3, 5}"


@cells(
    ("kind", "nodes"),
    [
        (np.int32, "b = Greater (m, zero)"),
        (np.int32, "c1 = Cast <to = 9> (m) d = Transpose (c1) e = Transpose (d) b = Not (e)"),
        (
            np.int32,
            "g = Greater (m, zero) i = Not (g) j = And (g, i) h = Concat <axis = 0> (g, j) b = Slice (h, from, to)",
        ),
        (np.bool_, "t = Transpose (m) b = Transpose (t)"),
        (np.int32, "b = Cast <to = 2> (m)"),
        (np.uint8, "h = Concat <axis = 0> (m, c) b = Slice (h, from, to)"),
    ],
)
async def test_computed_booleans_are_masks_and_computed_numbers_are_added(context, kind, nodes):
    text = f"(float[2, 4, 3, 6] y) <{KNOWN}> {{ {nodes} y = Attention (q, k, v, b) }}"
    shapes = ", ".join(f"float{list(item.shape)} {name}" for name, item in {"q": Q, "k": K, "v": V}.items())
    mask = random.rng.integers(0, 2, [3, 5]).astype(kind)
    model = parsed(text, inputs=f"{shapes}, {mask.dtype.name}[3, 5] m", opset=23)
    feeds = {"q": Q, "k": K, "v": V, "m": mask}
    assert_same(await run(context, model, feeds), run_onnxruntime(model, feeds))


test_a_softmax_is_of_floats = refused(
    (node("Attention", 23, Q, K, V, softmax_precision=6), "attribute softmax_precision is int32; it must be a type of")
)
