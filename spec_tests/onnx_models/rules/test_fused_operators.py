import numpy as np
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import (
    assert_same,
    check,
    each,
    make_model,
    node,
    run,
    run_onnxruntime,
)
from spec_tests.support.backends import BACKENDS

rng = np.random.default_rng(5)


pytestmark = pytest.mark.sampled(5)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


X, GAMMA = floats(2, 3, 4), floats(4)
IMAGES, FILTERS = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
MS = "com.microsoft."
IDS = np.array([[1, 0, 3], [2, 2, 1]], np.int32)


@each(
    node(f"{MS}FusedMatMul", 1, X, floats(2, 4, 5), alpha=0.5),
    node(f"{MS}FusedMatMul", 1, X, floats(2, 3, 5), alpha=0.5, transA=1),
    node(f"{MS}FusedMatMul", 1, X, floats(5, 4), transB=1),
    node(f"{MS}FusedMatMul", 1, floats(3, 2, 4), floats(4, 2, 5), transBatchA=1, transBatchB=1),
    node(f"{MS}FusedMatMul", 1, floats(4, 2, 3), floats(5, 2, 4), transBatchA=1, transBatchB=1, transA=1, transB=1),
    node(f"{MS}TransposeMatMul", 1, X, floats(2, 5, 4), transB=1),
    node(f"{MS}TransposeMatMul", 1, floats(2, 4, 3), floats(2, 4, 5), transA=1),
    node(f"{MS}FusedGemm", 1, floats(4, 3), floats(4, 5), transA=1, activation="HardSigmoid", activation_alpha=0.3,
         activation_beta=0.4),
    node(f"{MS}FusedGemm", 1, X[0], floats(5, 4), floats(5), transB=1, alpha=0.5, beta=2.0, activation="Relu"),
    node(
        f"{MS}FusedGemm", 1, X[0], floats(4, 5), activation="LeakyRelu", activation_alpha=0.3, activation_beta=0.0
    ),
    node(f"{MS}FusedConv", 1, floats(1, 4, 5, 5), floats(6, 2, 3, 3), activation="Relu", group=2),
    node(f"{MS}FusedConv", 1, IMAGES, FILTERS, floats(3), activation="Relu", pads=[1, 1, 1, 1]),
    node(f"{MS}FusedConv", 1, IMAGES, FILTERS, floats(3), floats(1, 3, 3, 3), activation="Tanh"),
    node(f"{MS}FusedConv", 1, IMAGES, FILTERS, activation="Clip", activation_params=[-0.5, 0.5]),
    node(f"{MS}FusedConv", 1, IMAGES, FILTERS, activation="HardSigmoid", activation_params=[0.3, 0.4]),
)  # fmt: skip
async def test_products_with_more(context, case):
    await check(context, case)


@each(
    node(f"{MS}Gelu", 1, X),
    node(f"{MS}BiasGelu", 1, X, GAMMA),
    node(f"{MS}FastGelu", 1, X),
    node(f"{MS}FastGelu", 1, X, GAMMA),
    node(f"{MS}QuickGelu", 1, X),
    node(f"{MS}QuickGelu", 1, X, alpha=2.0),
)
async def test_activations(context, case):
    await check(context, case)


@each(
    node("RMSNormalization", 23, X, GAMMA),
    node("RMSNormalization", 23, X, floats(3, 4), axis=1, epsilon=0.1),
    node("SimplifiedLayerNormalization", 1, X, GAMMA, axis=-1, epsilon=0.01, stash_type=1, outputs=2, wanted=(0, 1)),
    node(f"{MS}SkipLayerNormalization", 1, X, floats(2, 3, 4), GAMMA, epsilon=0.01),
    node(
        f"{MS}SkipLayerNormalization", 1, X, floats(2, 3, 4), GAMMA, floats(4), floats(4), outputs=4, wanted=(0, 3)
    ),
    node(
        f"{MS}SkipLayerNormalization", 1, X, floats(2, 3, 4), GAMMA, outputs=4, wanted=(0, 1, 2, 3), epsilon=0.01
    ),
    node(f"{MS}SkipSimplifiedLayerNormalization", 1, X, floats(2, 3, 4), GAMMA),
    node(
        f"{MS}SkipSimplifiedLayerNormalization", 1, X, floats(2, 3, 4), GAMMA, floats(4), outputs=4, wanted=(0, 3)
    ),
    node(
        f"{MS}EmbedLayerNormalization", 1, IDS, IDS // 2, floats(5, 8), floats(4, 8), floats(2, 8), floats(8),
        floats(8), np.array([[1, 1, 0], [1, 1, 1]], np.int32), outputs=3, wanted=(0, 1, 2),
    ),
    node(
        f"{MS}EmbedLayerNormalization", 1, IDS, None, floats(5, 8), floats(4, 8), None, floats(8), floats(8), None,
        IDS, outputs=2, wanted=(0, 1),
    ),
)  # fmt: skip
async def test_normalization(context, case):
    await check(context, case)


async def test_layer_normalization_may_stand_in_an_older_opset(context):
    nodes = [helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1, epsilon=0.01)]
    arrays = {"x": X, "scale": GAMMA, "bias": floats(4)}
    model = make_model(nodes, arrays, ["y"], opset=13)
    assert_same(await run(context, model, arrays), run_onnxruntime(model, arrays))
