import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, int64s, node

random = Random(19)
X = random.rng.integers(-6, 6, [3, 7, 2])
LONG = np.round(random.floats(2, 700), 2)


def top(versions, x, k, **attributes):
    return node("TopK", versions, x, int64s(k), known=(1,), outputs=2, **attributes)


test_the_greatest_elements_come_in_order_and_of_equals_the_first = compared(
    *(node("TopK", 1, X.astype(np.float32), axis=1, k=k, outputs=2) for k in (1, 3)),
    top(10, X.astype(np.float32), 3, axis=1),
    *(
        top([11, 24], X.astype(dtype), k, axis=axis, largest=largest)
        for dtype, largest in ((np.float32, 1), (np.float32, 0), (np.int64, 1), (np.int32, 0))
        for k, axis in ((1, -1), (2, -1), (7, 1), (2, 0))
    ),
    *(
        top(11, x, k, largest=largest)
        for x in (LONG, (LONG * 50).astype(np.int32), np.where(np.abs(LONG) < 0.98, np.float32(-np.inf), LONG))
        for k in (2, 40)
        for largest in (0, 1)
    ),
)
