import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, node

random = Random(15, 0.5, 2)
floats = random.floats


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
