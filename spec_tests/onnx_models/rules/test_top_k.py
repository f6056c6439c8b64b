import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

rng = np.random.default_rng(19)
X = rng.integers(-6, 6, [3, 7, 2])
LONG = np.round(rng.uniform(-1, 1, [2, 700]), 2).astype(np.float32)


def count(k):
    return np.array([k], np.int64)


@each(
    *(node("TopK", 1, X.astype(np.float32), axis=1, k=k, outputs=2, wanted=(0, 1)) for k in (1, 3)),
    node("TopK", 10, X.astype(np.float32), count(3), known=(1,), axis=1, outputs=2, wanted=(0, 1)),
    *(
        node(
            "TopK",
            [11, 24],
            X.astype(dtype),
            count(k),
            known=(1,),
            axis=axis,
            largest=largest,
            outputs=2,
            wanted=(0, 1),
        )
        for dtype, largest in ((np.float32, 1), (np.float32, 0), (np.int64, 1), (np.int32, 0))
        for k, axis in ((1, -1), (2, -1), (7, 1), (2, 0))
    ),
    *(
        node("TopK", 11, x, count(k), known=(1,), largest=largest, outputs=2, wanted=(0, 1))
        for x in (LONG, (LONG * 50).astype(np.int32), np.where(np.abs(LONG) < 0.98, -np.inf, LONG))
        for k in (2, 40)
        for largest in (0, 1)
    ),
)
async def test_the_greatest_elements_come_in_order_and_of_equals_the_first(context, case):
    await check(context, case)
