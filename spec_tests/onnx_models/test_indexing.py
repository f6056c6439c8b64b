import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def indices(values, dtype=np.int64):
    return np.array(values, dtype)


@each(
    node("Gather", [1, 11, 13], X, indices([[0, 1], [1, 0]])),
    node("Gather", [1, 11, 13], X, indices([2, 0], np.int32), known=(1,), axis=1),
    node("Gather", [11, 13], X, indices(-1), known=(1,), axis=-1),
    node("Gather", 13, X, indices([3, 1]), known=(0,), axis=2),
    node("GatherElements", [11, 13], X, indices([[[1, 0, 1, 0]] * 3] * 2)),
    node("GatherElements", [11, 13], X, indices([[[3, -1]] * 3] * 2), axis=2),
    node("GatherElements", [11, 13], X, indices([[[3, 1]] * 2]), axis=-1),
    node("GatherElements", 13, X, indices([[[2, 1]], [[0, 0]]]), known=(1,), axis=1),
    node("GatherND", [11, 12, 13], X, indices([[0, 1], [1, 2]])),
    node("GatherND", [11, 12, 13], X, indices([[[1, -1, 0]]]), known=(1,)),
)
async def test_gathering(context, case):
    await check(context, case)


@each(
    node("ScatterElements", [11, 13, 16, 18], X[0], indices([[2, 0, 1, 2], [0, 1, 2, 1]]), -X[0, :2]),
    node("ScatterElements", [11, 13, 16, 18], X[0], indices([[1], [-1], [0]]), -X[0, :, :1], axis=1),
    node("ScatterND", [11, 13, 16, 18], X, indices([[1, 2], [0, 0]]), -X[0, :2]),
    node("ScatterND", [11, 13, 16, 18], X, indices([[1]]), -X[:1], known=(1,)),
)
async def test_scattering(context, case):
    await check(context, case)


LENGTHS = indices([2, 3])


@each(
    node("ReverseSequence", [10, 28], X, LENGTHS, batch_axis=0, time_axis=1, oracle=10),
    node("ReverseSequence", [10, 28], X, indices([1, 2, 0]), known=(1,), oracle=10),
    node("ReverseSequence", 10, X[0], indices([3, 1, 2, 0]), known=(0,)),
    node("ReverseSequence", 10, X.astype(np.int64), LENGTHS, known=(1,), batch_axis=0, time_axis=1),
)
async def test_reversing_sequences(context, case):
    await check(context, case)
