import numpy as np
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import (
    Random,
    assert_same,
    compared,
    make_model,
    microsoft,
    node,
    run,
    run_onnxruntime,
)
from spec_tests.support.backends import BACKENDS, on_each
from webnn_py import MLGraphBuilder
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import OnnxModel

floats = Random(5).floats


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


X, GAMMA = floats(2, 3, 4), floats(4)
IMAGES, FILTERS = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
IDS = np.array([[1, 0, 3], [2, 2, 1]], np.int32)
SKIPPED, WORDS, SCALES = floats(2, 3, 4), (floats(5, 8), floats(4, 8)), (floats(8), floats(8))


test_products_with_more = compared(
    microsoft("FusedMatMul", X, floats(2, 4, 5), alpha=0.5),
    microsoft("FusedMatMul", X, floats(2, 3, 5), alpha=0.5, transA=1),
    microsoft("FusedMatMul", X, floats(5, 4), transB=1),
    microsoft("FusedMatMul", floats(3, 2, 4), floats(4, 2, 5), transBatchA=1, transBatchB=1),
    microsoft("FusedMatMul", floats(4, 2, 3), floats(5, 2, 4), transBatchA=1, transBatchB=1, transA=1, transB=1),
    microsoft("TransposeMatMul", X, floats(2, 5, 4), transB=1),
    microsoft("TransposeMatMul", floats(2, 4, 3), floats(2, 4, 5), transA=1),
    microsoft("FusedGemm", floats(4, 3), floats(4, 5), transA=1, activation="HardSigmoid", activation_alpha=0.3,
         activation_beta=0.4),
    microsoft("FusedGemm", X[0], floats(5, 4), floats(5), transB=1, alpha=0.5, beta=2.0, activation="Relu"),
    microsoft(
        "FusedGemm", X[0], floats(4, 5), activation="LeakyRelu", activation_alpha=0.3, activation_beta=0.0
    ),
    microsoft("FusedConv", floats(1, 4, 5, 5), floats(6, 2, 3, 3), activation="Relu", group=2),
    microsoft("FusedConv", IMAGES, FILTERS, floats(3), activation="Relu", pads=[1, 1, 1, 1]),
    microsoft("FusedConv", IMAGES, FILTERS, floats(3), floats(1, 3, 3, 3), activation="Tanh"),
    microsoft("FusedConv", IMAGES, FILTERS, activation="Clip", activation_params=[-0.5, 0.5]),
    microsoft("FusedConv", IMAGES, FILTERS, activation="HardSigmoid", activation_params=[0.3, 0.4]),
)  # fmt: skip


test_activations = compared(
    microsoft("Gelu", X),
    microsoft("BiasGelu", X, GAMMA),
    microsoft("FastGelu", X),
    microsoft("FastGelu", X, GAMMA),
    microsoft("QuickGelu", X),
    microsoft("QuickGelu", X, alpha=2.0),
)


test_normalization = compared(
    node("RMSNormalization", 23, X, GAMMA),
    node("RMSNormalization", 23, X, floats(3, 4), axis=1, epsilon=0.1),
    node("SimplifiedLayerNormalization", 1, X, GAMMA, axis=-1, epsilon=0.01, stash_type=1, outputs=2),
    microsoft("SkipLayerNormalization", X, SKIPPED, GAMMA, epsilon=0.01),
    microsoft("SkipLayerNormalization", X, SKIPPED, GAMMA, floats(4), floats(4), outputs=4, wanted=(0, 3)),
    microsoft("SkipLayerNormalization", X, SKIPPED, GAMMA, outputs=4, epsilon=0.01),
    microsoft("SkipSimplifiedLayerNormalization", X, SKIPPED, GAMMA),
    microsoft("SkipSimplifiedLayerNormalization", X, SKIPPED, GAMMA, floats(4), outputs=4, wanted=(0, 3)),
    microsoft("EmbedLayerNormalization", IDS, IDS // 2, *WORDS, floats(2, 8), *SCALES, np.int32(IDS > 0), outputs=3),
    microsoft("EmbedLayerNormalization", IDS, None, *WORDS, None, *SCALES, None, IDS, outputs=2),
    microsoft("EmbedLayerNormalization", IDS, None, *WORDS, floats(2, 8), *SCALES, outputs=2),
)


async def test_layer_normalization_may_stand_in_an_older_opset(context):
    nodes = [helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1, epsilon=0.01)]
    arrays = {"x": X, "scale": GAMMA, "bias": floats(4)}
    model = make_model(nodes, arrays, ["y"], opset=13)
    assert_same(await run(context, model, arrays), run_onnxruntime(model, arrays))


@pytest.mark.parametrize(("data_type", "casts"), [(np.float32, 0), (np.float16, 2)])
async def test_a_normalization_casts_only_what_is_of_another_type(ml, data_type, casts):
    x, scale = X.astype(data_type), GAMMA.astype(data_type)
    nodes = [helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["y"], axis=-1)]
    model = make_model(nodes, {"x": x, "scale": scale}, ["y"], {"scale": scale}, opset=17)
    builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
    outputs = OnnxModel.load(model).convert(builder)
    drawn = [node.operator.name for node in drawing_of("test", outputs).nodes]
    assert drawn.count("cast") == casts
