import numpy as np

from spec_tests.onnx_models.single_node import compared, node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OTHERS = np.arange(40, dtype=np.float32).reshape(2, 5, 4) % 7 * 5
GRAPH = np.arange(128 * 64, dtype=np.int64).reshape(128, 64) * 7 % 61
"""Which of 64 nodes each of 128 edges leads to, in each of 64 features."""


def indices(values, dtype=np.int64):
    return np.array(values, dtype)


test_gathering = compared(
    node("Gather", [1, 11, 13], X, indices([[0, 1], [1, 0]])),
    node("Gather", [1, 11, 13], X, indices([2, 0], np.int32), known=(1,), axis=1),
    node("Gather", [11, 13], X, indices(-1), known=(1,), axis=-1),
    node("Gather", 13, X, indices([3, 1]), known=(0,), axis=2),
    node("Compress", [9, 11], X, np.array([True, False, True]), known=(1,), axis=-2),
    node("Compress", [9, 11], X, np.array([False, True]), known=(1,), axis=2),
    node("Compress", 11, X, np.arange(9) % 2 > 0, known=(1,)),
    node("Compress", 28, X, np.arange(9) % 2 > 0, known=(1,), oracle="reference"),
    node("GatherElements", [11, 13], X, indices([[[1, 0, 1, 0]] * 3] * 2)),
    node("GatherElements", [11, 13], X, indices([[[3, -1]] * 3] * 2), axis=2),
    node("GatherElements", [11, 13], X, indices([[[3, 1]] * 2]), axis=-1),
    node("GatherElements", 13, X, indices([[[2, 1]], [[0, 0]]]), known=(1,), axis=1),
    node("GatherND", [11, 12, 13], X, indices([[0, 1], [1, 2]])),
    node("GatherND", [11, 12, 13], X, indices([[[1, -1, 0]]]), known=(1,)),
    node("GatherND", [12, 13], X, indices([[1], [2]]), batch_dims=1),
    node("GatherND", 13, X, indices([[[[3], [-1]]] * 3] * 2), batch_dims=2),
)


test_scattering = compared(
    node("ScatterElements", [11, 13, 16, 18], X[0], indices([[2, 0, 1, 2], [0, 1, 2, 1]]), -X[0, :2]),
    node("ScatterElements", [11, 13, 16, 18], X[0], indices([[1], [-1], [0]]), -X[0, :, :1], axis=1),
    node("ScatterElements", [11, 18], X[0], indices([[1], [-1]]), -X[0, :2, :1], axis=1),
    node("ScatterElements", 18, X, indices([[[2, 0, 1]]]), -X[:1, :1, :3], axis=1),
    node("ScatterND", [11, 13, 16, 18], X, indices([[1, 2], [0, 0]]), -X[0, :2]),
    node("ScatterND", [11, 13, 16, 18], X, indices([[1]]), -X[:1], known=(1,)),
    node("Scatter", 9, X[0], indices([[1], [2], [0]]), -X[0, :, :1], axis=1),
)


LENGTHS = indices([2, 3])


test_reversing_sequences = compared(
    node("ReverseSequence", [10, 28], X, LENGTHS, batch_axis=0, time_axis=1, oracle=10),
    node("ReverseSequence", [10, 28], X, indices([1, 2, 0]), known=(1,), oracle=10),
    node("ReverseSequence", 10, X[0], indices([3, 1, 2, 0]), known=(0,)),
    node("ReverseSequence", 10, X.astype(np.int64), LENGTHS, known=(1,), batch_axis=0, time_axis=1),
)


VERSIONS_OF_REDUCTIONS = {"add": [16, 18], "mul": [16, 18], "max": 18, "min": 18}


test_scattering_with_a_reduction = compared(
    *(
        cases
        for reduction, versions in VERSIONS_OF_REDUCTIONS.items()
        for x in (X, X.astype(np.int32))
        for cases in (
            node("ScatterElements", versions, x[0], indices([[2, 0, 1, -1]] * 2), x[0, 1:], reduction=reduction),
            node("ScatterND", versions, x, indices([[1, 2], [0, -3], [1, 2]]), x[0] + 1, reduction=reduction),
        )
    ),
    node("ScatterElements", 18, X[0], indices([[1, 1], [-1, 0]]), -X[0, :2, :2], axis=1, reduction="add"),
    *(
        node("ScatterElements", 18, X, indices(np.arange(others.size).reshape(others.shape) % size), others, **options)
        for others, size, options in (
            (OTHERS, 3, {"axis": 1, "reduction": "add"}),
            (OTHERS[:, :3, :3], 4, {"axis": -1, "reduction": "max"}),
        )
    ),
)


# Feature by feature: comparing all nodes element by element would be 64 times as many comparisons, and too many.
test_edges_are_gathered_at_nodes_feature_by_feature = compared(
    *(
        node(
            "ScatterElements", 18, np.zeros([64, 64], np.float32), GRAPH, GRAPH.astype(np.float32), reduction=reduction
        )
        for reduction in ("add", "max")
    )
)


CHOSEN = indices([[0, -1], [3, 7]]), np.array(4), np.array([2, 5], np.float32)


test_one_hot = compared(
    *(node("OneHot", [9, 11], *CHOSEN, known=(1,), **attributes) for attributes in ({}, {"axis": 0}, {"axis": -2})),
    node("OneHot", 28, indices([1, 0], np.int32), np.array(3), np.array([2, 5]), known=(1,), oracle="reference"),
)


CACHE, UPDATE = np.arange(48, dtype=np.float32).reshape(2, 1, 6, 4), -np.ones([2, 1, 3, 4], np.float32)


test_caches = compared(
    node("TensorScatter", 24, CACHE, UPDATE, oracle="reference"),
    node("TensorScatter", 24, CACHE.reshape(2, 6, 1, 4), UPDATE.reshape(2, 3, 1, 4), axis=1, oracle="reference"),
    node("TensorScatter", 24, CACHE, UPDATE, indices([3, 1]), oracle="reference"),
    node("TensorScatter", 24, CACHE, UPDATE, indices([5, 4]), mode="circular", oracle="reference"),
)
