"""Refusals of operators that WebNN lacks, which are composed of others within limits."""

import numpy as np

from spec_tests.onnx_models.single_node import int64s, microsoft, node, refused

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.ones([1, 2, 4, 4], np.float32)
STEPS = np.ones([2, 1, 3], np.float32)
BYTES, ONE, POINT = np.ones([1, 1, 1, 1], np.uint8), np.float32(1), np.uint8(1)
WEIGHTS = np.ones([1, 16, 3], np.float32), np.ones([1, 16, 4], np.float32)
ONES = np.ones([6, 6], np.float32)


def sampled(**attributes):
    return node("GridSample", 20, IMAGE, IMAGE[..., :2], **attributes)


def aligned(**attributes):
    return node("RoiAlign", 16, IMAGE, IMAGE[0, 0, :1], int64s(0), **attributes)


def rnn(activations):
    return node("RNN", 14, STEPS, *(item[:, :4] for item in WEIGHTS), hidden_size=4, activations=activations)


test_composed_operators_are_refused_with_the_reason = refused(
    (node("Einsum", 12, X, X, equation="a+b"), "attribute equation is a+b; it must be letters and at most one ... for"),
    (node("Einsum", 12, X, X, equation="abc->a"), "attribute equation is abc->a; it must be of 2 terms, as many as"),
    (
        node("Einsum", 12, X, equation="ab->a"),
        "attribute equation 'ab->a': ab is of rank 3; it must be as many letters",
    ),
    (
        node("Einsum", 12, X, equation="abc->ad"),
        "attribute equation 'abc->ad': the output is ad; it must be letters of",
    ),
    (node("Einsum", 12, X, X, equation="abc,cab->a"), "attribute equation 'abc,cab->a': c is 4 and 2; it must be the"),
    (node("TopK", 11, X, int64s(5), known=[1], outputs=2), "k is 5; it must be from 1 to 4, the length of axis 2"),
    (
        node("TopK", 11, np.ones([900, 900], np.float32), int64s(99), known=[1], outputs=2),
        "the number of comparisons is 320760000; it must be at most 67108864",
    ),
    (node("Shrink", 9, X, lambd=-1.0), "attribute lambd is -1.0; it must be at least 0"),
    *(
        (
            node("Shrink", 9, X.astype(np.int32), **{"lambd": 1.0, "bias": 1.0, name: value}),
            f"attributes lambd and bias is {words}; it must be finite numbers where elements are integers",
        )
        for name, value, words in (("lambd", np.inf, "inf, 1.0"), ("bias", np.nan, "1.0, nan"))
    ),
    (
        node("GridSample", 20, IMAGE, IMAGE),
        "the shape of the grid is [1, 2, 4, 4]; it must be [batch, places …, 2], as",
    ),
    (sampled(mode="best"), "attribute mode is best; it must be nearest, linear"),
    (sampled(padding_mode="none"), "attribute padding_mode is none; it must be"),
    (
        node("GridSample", 20, IMAGE.astype(np.int32), IMAGE[..., :2]),
        "the data type of the input is int32; it must be float32 or float16 but in the mode nearest",
    ),
    (node("AffineGrid", 20, X, int64s(2, 1, 4, 4), known=[1]), "it must be [N, C, H, W] and [N, 2, 3], or [N, C, D, H"),
    (node("DFT", 17, X), "the shape of the input and the axis is [2, 3, 4], 1; it must be [..., 1 or 2], another axis"),
    (node("DFT", 17, X[..., :1], int64s(0), known=[1]), "input dft_length is 0; it must be at least 1"),
    (
        node("STFT", 17, X[..., :1], int64s(4), X[0, 0], known=[1]),
        "frame_step and frame_length is [4, 4]; it must be at",
    ),
    (
        node("STFT", 17, X, int64s(1), known=[1]),
        "the shape of the signal is [2, 3, 4]; it must be [batch, length, 1 or",
    ),
    (
        node("STFT", 17, X[..., :1], int64s(1), X[0, 0, :2], int64s(3), known=[1, 3]),
        "the shape of the window is [2]; it must be [3], the frame_length",
    ),
    (
        node("NegativeLogLikelihoodLoss", 13, X[0], int64s(1, 2, 3), reduction="all"),
        "attribute reduction is 'all'; it must be none, sum or mean",
    ),
    (node("LRN", 13, X, size=0), "the rank of the input and attribute size is 3 and 0; it must be at least 3, and at"),
    (
        node("ScatterND", 16, X, int64s([0]), X[:1], reduction="sum"),
        "attribute reduction is sum; it must be none, add, mul, max or min",
    ),
    (
        node("ScatterND", 16, X, int64s([[0]]), X[:1], reduction="add"),
        "the shape of the updates is [1, 3, 4]; it must be as indices [1, 1, 1] into [2, 3, 4] ask",
    ),
    (
        node("ScatterElements", 16, X, int64s([[0]]), X[:1], reduction="add"),
        "the shape of the updates is [1, 3, 4]; it must be that of the indices [1, 1, 1]",
    ),
    (
        node("OneHot", 11, int64s(1), int64s(0), X[0, 0, :2], known=[1]),
        "input depth and the shape of the values is 0 and",
    ),
    (
        node("TensorScatter", 24, X, X[:1]),
        "the shape of the update is [1, 3, 4]; it must be that of the cache [2, 3, 4]",
    ),
    (node("TensorScatter", 24, X, X, mode="ring"), "attribute mode is ring; it must be linear or circular"),
    (
        node("MaxUnpool", 11, X, int64s(1), kernel_shape=[2]),
        "the shape of input I is [1]; it must be [2, 3, 4], that of",
    ),
    (
        node("MaxUnpool", 11, X, X.astype(np.int64), int64s(2, 3, 4), known=[2], kernel_shape=[2]),
        "the shape of the output is [2, 3, 4]; it must be at least [2, 3, 5], and positive",
    ),
    (
        node("DeformConv", 22, IMAGE, IMAGE, IMAGE),
        "the shape of input offset is [1, 2, 4, 4]; it must be [1, 32, 1, 1]",
    ),
    (node("DeformConv", 22, IMAGE, IMAGE, IMAGE, offset_group=3), "the groups and windows is [1, 3, 1, 1]; it must be"),
    (node("DeformConv", 22, X, X, X), "the rank of the input is 3; it must be 4"),
    (
        node("RoiAlign", 16, IMAGE, IMAGE[0, 0], int64s(0)),
        "the shapes of the inputs is [1, 2, 4, 4], [4, 4] and [1]; it",
    ),
    (aligned(), "the sampling ratio and the sizes is [0, 1, 1]; it must be at least 1; a ratio of 0 would depend on"),
    (aligned(mode="min"), "attribute mode is min; it must be avg or max"),
    (
        aligned(coordinate_transformation_mode="x"),
        "attribute coordinate_transformation_mode is x; it must be half_pixel or output_half_pixel",
    ),
    (node("EyeLike", 22, X), "the rank of the input is 3; it must be 2"),
    (node("Col2Im", 18, X, int64s(3), int64s(3), known=[1, 2]), "the number of blocks is 4; it must be [1] together"),
    (
        node("Col2Im", 18, X, int64s(3), int64s(2), known=[1, 2]),
        "the shapes of the input, images and blocks is [2, 3, 4",
    ),
    (
        node("Col2Im", 18, X, int64s(3), int64s(3), known=[1, 2], strides=[0]),
        "attributes strides and dilations is [0, 1]; it must be 1 numbers each, at least 1",
    ),
    (rnn(["Gelu"]), "attribute activations is ['Gelu']; it must be of affine, elu, "),
    (
        rnn(["ScaledTanh"]),
        "activation_alpha and activation_beta is [None, None]; it must be given for ScaledTanh, which has no defaults",
    ),
    (
        node("RNN", 14, STEPS, *WEIGHTS, hidden_size=4, outputs=2),
        "the shape of input W is [1, 16, 3]; it must be [1, 4, 3]",
    ),
    *(
        (
            node("OneHot", 11, int64s(1), np.float32(depth), X[0, 0, :2], known=known),
            f"input depth is {depth}; it must be a finite number",
        )
        for depth, known in ((np.inf, [1]), (np.nan, [0, 1, 2]))
    ),
    (node("HannWindow", 17, np.float32(np.nan), known=[0]), "input size is nan; it must be a finite number"),
    (
        microsoft(
            "Attention",
            STEPS[:, :, :2],
            np.ones([2, 6], np.float32),
            np.ones(6, np.float32),
            None,
            None,
            np.ones([1, 1, 1, 1, 1], np.float32),
            num_heads=1,
        ),
        "the rank of what is added to the scores is 5; it must be at most 4",
    ),
    (
        node("QLinearConv", 10, BYTES, ONE, POINT, BYTES, ONE, POINT, ONE, POINT, np.int32(1)),
        "the rank of input B is 0; it must be 1",
    ),
    *(
        (
            microsoft("QGemm", BYTES[0, 0], ONE, POINT, BYTES[0, 0].T, ONE, POINT, None, *given),
            "inputs y_scale and y_zero_point is incomplete; it must be whole, or absent for floats",
        )
        for given in ((ONE,), (None, POINT))
    ),
    *(
        (
            microsoft(operator, X, X[0, 0, 0], None, X, X[0, 0, 0], None, X[0, 0, 0]),
            "the data type of input A is float32; it must be a type of integers",
        )
        for operator in ("QLinearAdd", "QLinearMul")
    ),
)
