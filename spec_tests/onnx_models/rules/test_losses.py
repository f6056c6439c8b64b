import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

rng = np.random.default_rng(15)


def floats(*shape):
    return rng.uniform(0.5, 2, shape).astype(np.float32)


CASES = [
    (floats(3, 5), rng.integers(0, 5, [3])),
    (floats(3, 5, 2, 4), rng.integers(0, 5, [3, 2, 4]).astype(np.int32)),
]
WEIGHTS = floats(5)
MANNERS = [
    {"reduction": reduction, **more} for reduction in ("none", "sum", "mean") for more in ({}, {"ignore_index": 2})
]


@each(
    *(
        node("NegativeLogLikelihoodLoss", versions, scores, labels, *weights, oracle=oracle, **manner)
        for versions, oracle in (([12, 13], "onnxruntime"), (22, 13))
        for scores, labels in CASES
        for weights in ((), (WEIGHTS,))
        for manner in MANNERS
    ),
)
async def test_losses_of_probabilities(context, case):
    await check(context, case)


@each(
    *(
        node("SoftmaxCrossEntropyLoss", [12, 13], scores, labels, *weights, outputs=2, wanted=(0, 1), **manner)
        for scores, labels in CASES
        for weights in ((), (WEIGHTS,))
        for manner in MANNERS
    ),
    node("SoftmaxCrossEntropyLoss", 13, floats(2, 3), np.array([-1, 2]), ignore_index=-1),
)
async def test_losses_of_scores(context, case):
    await check(context, case)
