import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, int64s, node

random = Random(5, 0.5, 2)
X = random.floats(2, 3, 4)
INTEGERS = random.rng.integers(-5, 5, [2, 3, 4]).astype(np.int32)
AT_13 = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSumSquare")
EXTREMES = ("ReduceMax", "ReduceMin")
BY_ATTRIBUTE = {
    **dict.fromkeys(AT_13, (1, 11, 13)),
    **dict.fromkeys(EXTREMES, (1, 11, 12, 13)),
    "ReduceSum": (1, 11),
}
BY_INPUT = {**dict.fromkeys(AT_13, (18,)), **dict.fromkeys(EXTREMES, (18, 20)), "ReduceSum": (13,)}
NOTHING = np.array([], np.int64)


test_axes_as_an_attribute = compared(
    *(
        node(operator, versions, X, **attributes)
        for operator, versions in BY_ATTRIBUTE.items()
        for attributes in ({}, {"axes": []}, {"keepdims": 0}, {"axes": [1], "keepdims": 0}, {"axes": [0, 2]})
    ),
    *(node(operator, versions[1:], X, axes=[-1]) for operator, versions in BY_ATTRIBUTE.items()),
)


test_axes_as_an_input = compared(
    *(node(operator, versions, X, keepdims=0) for operator, versions in BY_INPUT.items()),
    *(
        node(operator, versions, X, given, known=(1,), keepdims=keepdims)
        for operator, versions in BY_INPUT.items()
        for given, keepdims in ((int64s(1), 0), (int64s(0, -1), 1), (NOTHING, 1))
    ),
    *(
        node(operator, BY_INPUT[operator], X, NOTHING, known=(1,), noop_with_empty_axes=1)
        for operator in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
    ),
    *(
        node(operator, 18, X - 1, NOTHING, known=(1,), noop_with_empty_axes=1, oracle=[computed(X - 1)])
        for operator, computed in (("ReduceL1", np.abs), ("ReduceL2", np.abs), ("ReduceSumSquare", np.square))
    ),
    node("ReduceLogSum", 18, X, NOTHING, known=(1,), noop_with_empty_axes=1, oracle=[np.log(X)]),
    node("ReduceSum", 13, X, int64s(1), known=(1,), noop_with_empty_axes=1),
    *(
        node(operator, 18, INTEGERS, int64s(1), known=(1,))
        for operator in (*EXTREMES, "ReduceProd", "ReduceMean", "ReduceL2")
    ),
    *(node(operator, 20, INTEGERS > 0, int64s(1), known=(1,)) for operator in EXTREMES),
    node("ReduceSum", 13, INTEGERS.astype(np.int64), int64s(1), known=(1,)),
    *(
        node(operator, 28, X, int64s(0, -1), known=(1,), oracle="reference")
        for operator in ("ReduceLogSum", "ReduceLogSumExp")
    ),
)


TIES = np.array([[1, 3, 3, 0], [5, 5, 0, 0]], np.float32)


test_index_of_an_extreme = compared(
    *(
        node(operator, versions, TIES, **attributes)
        for operator in ("ArgMax", "ArgMin")
        for versions, attributes in (
            ([1, 11, 12, 13], {}),
            ([1, 11, 12, 13], {"axis": 1, "keepdims": 0}),
            ([11, 12, 13], {"axis": -1}),
            ([12, 13], {"axis": 1, "select_last_index": 1}),
            ([12, 13], {"axis": 0, "keepdims": 0, "select_last_index": 1}),
        )
    ),
)


test_cumulative_sum = compared(
    *(
        node("CumSum", [11, 14], data, np.array(axis, np.int64), known=(1,), exclusive=exclusive, reverse=reverse)
        for data, axis in ((X, 0), (X, -1), (INTEGERS, 1))
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
)


test_cumulative_products = compared(
    *(
        node("CumProd", 26, x, np.array(axis), known=(1,), exclusive=exclusive, reverse=reverse, oracle="reference")
        for x, axis in ((X, 2), (X, -2), (INTEGERS, 0))
        for exclusive in (0, 1)
        for reverse in (0, 1)
    )
)
