import numpy as np

from spec_tests.onnx_models.single_node import assert_same, compared, each, int64s, node, run

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.arange(2 * 8 * 4 * 6, dtype=np.float32).reshape(2, 8, 4, 6)
SMALLEST, LARGEST = -(2**63), 2**63 - 1


test_concat = compared(
    node("Concat", [4, 11, 13], X, -X, axis=1),
    node("Concat", [11, 13], X, -X, X, axis=-1),
    node("Concat", 13, X, axis=0),
    node("Concat", 13, X, X[:, :0], -X, known=(1,), axis=1),
    node("Concat", 13, X > 3, X > 9, known=(1,), axis=0),
)


test_split = compared(
    node("Split", [2, 11], X, outputs=2, axis=2),
    node("Split", [2, 11], X, outputs=2, axis=1, split=[1, 2]),
    node("Split", 11, X, outputs=2, wanted=(1,), axis=-1),
    node("Split", 13, X, outputs=2, axis=2),
    node("Split", [13, 18], X, int64s(1, 2), known=(1,), outputs=2, axis=-2),
    node("Split", 18, X, outputs=2, num_outputs=2),
    node("Split", 18, X, outputs=2, axis=1, num_outputs=2),
    node("Split", 18, IMAGE, outputs=3, wanted=(0, 2), axis=1, num_outputs=3),
)


test_slice = compared(
    node("Slice", 1, X, starts=[0, 1], ends=[2, 3]),
    node("Slice", 1, X, starts=[-2], ends=[LARGEST], axes=[2]),
    *(
        node("Slice", [10, 11, 13], X, *inputs, known=range(1, len(inputs) + 1))
        for inputs in (
            (int64s(0, 1), int64s(2, 3)),
            (int64s(1), int64s(-1), int64s(2)),
            (int64s(-1000), int64s(1000), int64s(1)),
            (int64s(SMALLEST), int64s(LARGEST), int64s(0)),
            (int64s(0, 1), int64s(2, LARGEST), int64s(0, 2), int64s(1, 2)),
            (int64s(-1), int64s(SMALLEST), int64s(2), int64s(-1)),
            (int64s(LARGEST), int64s(SMALLEST), int64s(2), int64s(-3)),
            (int64s(2, 3), int64s(0, 0), int64s(1, 2), int64s(-1, -2)),
            (int64s(-1, 1), int64s(-1000, 3), int64s(1, 2), int64s(-2, 1)),
        )
    ),
    node("Slice", [11, 13], X, int64s(1), int64s(3), int64s(-1), known=(1, 2, 3)),
    node("Slice", 13, X, *(np.array([value], np.int32) for value in (3, -9, 2, -1)), known=(1, 2, 3, 4)),
)


test_transpose = compared(
    node("Transpose", [1, 13, 21, 23, 24, 25], X),
    node("Transpose", [1, 13, 21, 23, 24, 25], X, perm=[1, 2, 0]),
)


test_reshape = compared(
    *(
        node("Reshape", [5, 13, 14, 19, 21, 23, 24, 25], X, int64s(*shape), known=(1,))
        for shape in ([6, 4], [0, -1], [-1], [0, 0, 2, -1], [2, 3, 4])
    ),
    node("Reshape", [14, 19, 21, 23, 24, 25], X, int64s(-1, 8), known=(1,), allowzero=1),
    node("Reshape", 13, X[:1, :1, :1], int64s(), known=(1,)),
    *(node("Flatten", [1, 9, 11, 13, 21, 23, 24, 25], X, axis=axis) for axis in (0, 1, 2, 3)),
    node("Flatten", [11, 13, 21], X, axis=-1),
    node("Flatten", 13, X),
)


ONES = X[:, np.newaxis, :, np.newaxis]


test_axes_of_size_1 = compared(
    node("Squeeze", [1, 11], ONES),
    node("Squeeze", [1, 11], ONES, axes=[3]),
    node("Squeeze", 11, ONES, axes=[-4]),
    node("Squeeze", [1, 11], ONES, axes=[]),
    node("Squeeze", [13, 21, 23, 24, 25], ONES),
    node("Squeeze", [13, 21, 23, 24, 25], ONES, int64s(-2, 1), known=(1,)),
    node("Squeeze", [13, 21, 23, 24, 25], ONES, int64s(), known=(1,), oracle="reference"),
    node("Unsqueeze", [1, 11], X, axes=[0, 4]),
    node("Unsqueeze", [1, 11], X, axes=[]),
    node("Unsqueeze", 11, X, axes=[-1]),
    node("Unsqueeze", [13, 21, 23, 24, 25], X, int64s(-1, 1), known=(1,)),
    node("Unsqueeze", 13, np.array(5, np.float32), int64s(0), known=(1,)),
)


test_repetition = compared(
    node("Expand", [8, 13], X[:, :1], int64s(2, 3, 4), known=(1,)),
    node("Expand", [8, 13], X, int64s(3, 1), known=(1,)),
    node("Expand", [8, 13], X[:, :1], int64s(5, 1, 3, 1), known=(1,)),
    node("Tile", [6, 13], X, int64s(1, 2, 3), known=(1,)),
)


test_triangles = compared(
    node("Trilu", 14, X),
    node("Trilu", 14, X, upper=0),
    node("Trilu", 14, X, np.array(-1, np.int64), known=(1,)),
    node("Trilu", 14, X, np.array(2, np.int64), known=(1,), upper=0),
)


test_shapes_are_known = compared(
    node("Shape", [1, 13, 15, 19, 21, 23, 24, 25], X),
    node("Shape", [15, 19, 21, 23, 24, 25], X, start=1),
    node("Shape", [15, 19, 21, 23, 24, 25], X, start=-2, end=-1),
    node("Shape", 15, X, start=-10, end=10),
    node("Size", [1, 13, 19, 21, 23, 24, 25], X),
)


test_blocks_of_pixels = compared(
    node("DepthToSpace", [1, 11, 13], IMAGE, blocksize=2),
    node("DepthToSpace", [11, 13], IMAGE, blocksize=2, mode="CRD"),
    node("DepthToSpace", 28, IMAGE, blocksize=2, mode="CRD", oracle="reference"),
    node("SpaceToDepth", [1, 13], IMAGE, blocksize=2),
    *(node("SpaceToDepth", 28, IMAGE, blocksize=2, mode=mode, oracle="reference") for mode in ("DCR", "CRD")),
)


FIVE = np.array(5, np.float32)
PADS = int64s(0, 1, 2, 1, 0, 3)


test_pad = compared(
    *(node("Pad", 2, X, pads=[0, 1, 2, 0, 0, 1], mode=mode) for mode in ("constant", "edge", "reflect")),
    node("Pad", 2, X, pads=PADS.tolist(), value=5.0),
    *(node("Pad", [11, 13, 18, 19, 21, 23, 24, 25], X, PADS, known=(1,), mode=mode) for mode in ("constant", "edge")),
    node("Pad", [11, 13, 18, 19, 21, 23, 24, 25], X, PADS, FIVE, known=(1, 2)),
    node("Pad", [11, 13, 18, 19], X, int64s(1, 2, 3, 0, 1, 2), known=(1,), mode="reflect"),
    node("Pad", [11, 13, 18, 25], X, int64s(0, 1, 2, 1, -1, 3), FIVE, known=(1,)),
    node("Pad", 18, X, PADS, FIVE, known=(1,), mode="edge"),
    node("Pad", [11, 13, 18], X, int64s(0, -1, 2, -1, 0, -3), FIVE, known=(1, 2)),
    node("Pad", 13, X, int64s(0, -1, 0, -1, 0, -2), known=(1,)),
    node("Pad", [18, 21], X, int64s(0, -1, 2, -1, 0, 1), known=(1,), mode="edge"),
    node("Pad", [19, 23], X, int64s(1, 4, 2, 0, 1, 9), known=(1,), mode="wrap"),
    node("Pad", 24, X, int64s(0, 0, 3, 1, 0, 0), known=(1,), mode="wrap"),
    node("Pad", [18, 19, 21, 23], X, int64s(1, -1, 2, 0), None, int64s(2, 0), known=(1, 3)),
    node("Pad", [18, 19], X, int64s(2, 1), FIVE, int64s(-1), known=(1, 2, 3)),
    node("Pad", 13, X.astype(np.int32), int64s(1, 0, 0, 0, 0, 1), np.array(7, np.int32), known=(1, 2)),
)


@each(
    *(
        node("Slice", 13, X[0, 0], int64s(start), int64s(end), int64s(0), int64s(step), known=(1, 2, 3, 4))
        for step in (-3, -2, -1, 1, 2, 3)
        for start in (-9, -4, -1, 0, 2, 4)
        for end in (-9, -4, -1, 0, 2, 4)
        if X[0, 0, start:end:step].size
    ),
)
async def test_slices_agree_with_python(context, case):
    actual = await run(context, case.model(), case.feeds)
    start, end, _, step = (int(item[0]) for item in case.inputs[1:])
    assert_same(actual, [X[0, 0, start:end:step]])
