"""Operators without a rule, which are converted by the function that ONNX defines them by."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import Random, compared, int64s, node, parsed, refused, run
from webnn_py import MLGraphBuilder
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import ModelLimits, OnnxModel, UnsupportedModelError

random = Random(15, 0.5, 2)
floats = random.floats
X = Random(3, -4, 4).floats(2, 3, 4)

CASES = [
    (floats(3, 5), random.rng.integers(0, 5, [3])),
    (floats(3, 5, 2, 4), random.rng.integers(0, 5, [3, 2, 4]).astype(np.int32)),
]
WEIGHTS = floats(5)
MANNERS = [
    {"reduction": reduction, **more} for reduction in ("none", "sum", "mean") for more in ({}, {"ignore_index": 2})
]


test_losses_of_probabilities = compared(
    *(
        node("NegativeLogLikelihoodLoss", versions, scores, labels, *weights, oracle=oracle, **manner)
        for versions, oracle in (([12, 13], "onnxruntime"), (22, 13))
        for scores, labels in CASES
        for weights in ((), (WEIGHTS,))
        for manner in MANNERS
    ),
)


test_losses_of_scores = compared(
    *(
        node("SoftmaxCrossEntropyLoss", [12, 13], scores, labels, *weights, outputs=2, **manner)
        for scores, labels in CASES
        for weights in ((), (WEIGHTS,))
        for manner in MANNERS
    ),
    node("SoftmaxCrossEntropyLoss", 13, floats(2, 3), np.array([-1, 2]), ignore_index=-1),
)


test_activations = compared(
    node("Mish", [18, 22], X),
    node("SwiGLU", 28, X, X[::-1].copy(), oracle="reference"),
    node("SwiGLU", 28, X, X[::-1].copy(), alpha=0.5, oracle="reference"),
)


test_cuts_and_pads_around_the_center = compared(
    node("CenterCropPad", 18, X, int64s(5, 2, 4), known=(1,), oracle="reference"),
    node("CenterCropPad", 18, X, int64s(7, 1), known=(1,), axes=[-1, 1], oracle="reference"),
)


def with_state(*inputs, **options):
    sequence = floats(2, 4, 11)
    return node("CausalConvWithState", 27, sequence, *inputs, outputs=2, oracle="reference", **options)


test_convolutions_with_a_state = compared(
    *(
        with_state(floats(4, 1, 3), *more, activation=activation)
        for activation in ("none", "silu")
        for more in ((), (floats(4), floats(2, 4, 2)))
    ),
    with_state(floats(4, 1, 1), wanted=(0,)),
)


BATCH, STEPS, KEY, VALUE = 2, 3, 4, 5


def linear(update_rule, *more, queries=2, dtype=np.float32, **attributes):
    sizes = zip((queries, 2, 2), (KEY, KEY, VALUE), strict=True)
    inputs = [Random(12 + size).floats(BATCH, STEPS, count * size, dtype=dtype) for count, size in sizes]
    return node(
        "LinearAttention", 27, *inputs, *more, q_num_heads=queries, kv_num_heads=2, update_rule=update_rule,
        outputs=2, oracle="reference", **attributes,
    )  # fmt: skip


unit = Random(12).floats
DECAY, BETA, STATE = unit(BATCH, STEPS, 2), unit(BATCH, STEPS, 2), unit(BATCH, 2, KEY, VALUE)


test_linear_attention = compared(
    linear("linear"),
    linear("linear", STATE, queries=4, scale=0.25),
    linear("gated", None, DECAY),
    linear("gated", STATE, unit(BATCH, STEPS, 2 * KEY)),
    linear("delta", STATE, None, BETA),
    linear("gated_delta", None, DECAY, BETA[..., :1], queries=6, chunk_size=16),
    linear("linear", dtype=np.float16, relative=1e-3),
)


test_nodes_that_do_not_fit_the_declaration_are_refused = refused(
    (linear("gated"), "it does not fit the declaration of the operator: [TypeInferenceError] update_rule 'gated' req"),
    (linear("linear", STATE[:1]), "[ShapeInferenceError] Dimension mismatch in unification between 1 and 2"),
    (linear("linear", queries=3), "q_num_heads (3) must be a multiple of kv_num_heads (2)"),
    (linear("other"), "update_rule must be one of: 'linear', 'gated', 'delta', 'gated_delta'"),
    (with_state(floats(4, 1, 3), activation="tanh"), "unsupported activation value 'tanh'"),
    (node("NegativeLogLikelihoodLoss", 13, X, int64s(1)), "Target rank must be 1 less than the input rank"),
    (node("CenterCropPad", 18, X, int64s(1), known=[1]), "Number of elements of input 'shape' (1) does not match the"),
    (node("Mish", 22, X, X), "has input size 2 not in range [min=1, max=1]"),
    (node("Mish", 22, X, alpha=1.0), "Unrecognized attribute: alpha for operator Mish"),
    (node("Mish", 22, X.astype(np.int32)), "X typestr: T, has unsupported type: tensor(int32)"),
    (node("Mish", 22, X.astype(np.float64), known=(0,)), "the data type of an input is float64; it must be"),
)


async def test_float64_of_weights_is_narrowed_as_that_of_inputs_is(context):
    scores, labels = CASES[0]
    (case,) = node("NegativeLogLikelihoodLoss", 13, scores.astype(float), labels, WEIGHTS.astype(float), known=(2,))
    model = OnnxModel.load(case.model(), narrow_float64=True)
    (loss,) = await run(context, model, case.feeds)
    picked = scores[range(len(labels)), labels]
    np.testing.assert_allclose(loss, -np.average(picked, weights=WEIGHTS[labels]), rtol=1e-5)


async def test_bodies_know_no_functions_of_the_model(context):
    swish = '<domain: "", opset_import: ["": 28]> Swish (a) => (b) { b = SwiGLU (a, a) }'
    data = parsed("(float[2,3,4] y) { y = Swish (x) }", swish, inputs="float[2,3,4] x", opset=28)
    (y,) = await run(context, data, {"x": X})
    np.testing.assert_allclose(y, X * X / (1 + np.exp(-X)), rtol=1e-5)


async def test_bodies_are_converted_in_functions_and_loops_of_the_model(context):
    loop = """Twice <s> (a) => (b) {
      n = Constant <value = int64 {2}> ()  c = Constant <value = bool {1}> ()
      b = Loop (n, c, a) <body = g (int64 i, bool on, float[2,3,4] p) => (bool on_, float[2,3,4] q) {
        on_ = Identity (on)  m = SwiGLU <alpha: float = @s> (p, a)  q = Mish (m)
      }>
    }"""
    data = parsed("(float[2,3,4] y) { y = own.Twice <s = 0.5> (x) }", loop, inputs="float[2,3,4] x", opset=28)
    (y,) = await run(context, data, {"x": X})
    wanted = X.astype(np.float64)
    for _ in range(2):
        wanted = wanted / (1 + np.exp(-wanted / 2)) * X
        wanted = wanted * np.tanh(np.log1p(np.exp(wanted)))
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


async def test_the_nodes_of_bodies_have_the_node_s_name_and_count(context):
    data = parsed("(float[2,3,4] y) { [mild] y = Mish (x) }", inputs="float[2,3,4] x", opset=22)
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(data, limits=ModelLimits(nodes=4)).convert(builder)
    assert [node.label.partition("/")[0] for node in drawing_of("a test", outputs).nodes] == ["mild"] * 3
    with pytest.raises(UnsupportedModelError, match=r"the model has more nodes than limits\.nodes allows, 3"):
        OnnxModel.load(data, limits=ModelLimits(nodes=3)).convert(MLGraphBuilder(context))


async def test_an_operator_that_a_body_needs_is_named_where_it_is_not_supported(context):
    data = parsed("(float[2,3,4] y) { [coin] y = Bernoulli (x) }", inputs="float[2,3,4] x", opset=22)
    with pytest.raises(UnsupportedModelError, match=r"node 'coin/.*' \(RandomUniformLike, opset 22\): the operator is"):
        OnnxModel.load(data).convert(MLGraphBuilder(context))
