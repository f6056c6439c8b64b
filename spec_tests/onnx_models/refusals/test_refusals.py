import numpy as np
from onnx import TensorProto

from spec_tests.onnx_models.single_node import int64s, microsoft, ml, node, refused

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS, COUNTS, ONES = X[0].astype(np.uint8), X[0].astype(np.int32), np.ones(2, np.float32)
IMAGE = np.ones([1, 2, 4, 4], np.float32)
FILTER = np.ones([2, 2, 3, 3], np.float32)
MANY = np.ones([300, 300], np.int32)
BYTES = np.ones([3, 4], np.uint8)
PADS = int64s(*[0] * 6)
STEPS = np.ones([2, 1, 3], np.float32)
WEIGHTS = np.ones([1, 16, 3], np.float32), np.ones([1, 16, 4], np.float32)
OF_A_GRU = [item[:, :12] for item in WEIGHTS]


def conv(**attributes):
    return node("Conv", 11, IMAGE, FILTER, **attributes)


def lstm(*more, **attributes):
    return node("LSTM", 14, STEPS, *WEIGHTS, *more, hidden_size=4, outputs=3, **attributes)


def resized(*, data=IMAGE, **attributes):
    return node("Resize", 13, data, None, None, int64s(1, 2, 8, 8), known=[3], **attributes)


test_a_refusal_names_node_operator_opset_and_reason = refused(
    # what is missing altogether
    (node("NonZero", 13, X), "the operator is not supported, unless all its inputs are known while building"),
    (node("SpaceToDepth", 28, IMAGE, blocksize=2, mode="ABC"), "attribute mode is ABC; it must be DCR or CRD"),
    # attributes
    (conv(auto_pad="SOME"), "attribute auto_pad is SOME; it must be NOTSET, VALID, SAME_"),
    (conv(pads=[1, 1, -1, 1]), "attribute pads is [1, 1, -1, 1]; it must be at least 0"),
    (conv(pads=[1, 1]), "attribute pads is [1, 1]; it must be of length 4"),
    (
        conv(pads=[1, 1, 1, 1], auto_pad="SAME_UPPER"),
        "attribute pads is [1, 1, 1, 1]; it must be absent when auto_pad is SAME_UPPER",
    ),
    (conv(kernel_shape=[3, 2]), "attribute kernel_shape is [3, 2]; it must be that of inp"),
    (conv(strides=[1, 1, 1]), "attribute strides is [1, 1, 1]; it must be of length 2"),
    (node("ConvTranspose", 11, IMAGE, FILTER, output_shape=[9, 9]), "the output's shape is [9, 9]; it must be at most"),
    (node("ConvTranspose", 11, IMAGE, FILTER, output_shape=[]), "attribute output_shape is []; it must be of length 2"),
    (
        node("ConvTranspose", 11, IMAGE, FILTER, output_padding=[]),
        "attribute output_padding is []; it must be of length",
    ),
    (node("MeanVarianceNormalization", 13, IMAGE, axes=[]), "attribute axes is []; it must be at least one axis"),
    (node("ConvTranspose", 11, IMAGE, FILTER, output_shape=[9]), "attribute output_shape is [9]; it must be of length"),
    (node("LpPool", 11, IMAGE, kernel_shape=[2, 2], p=0), "attribute p is 0; it must be at least 1"),
    (node("GlobalLpPool", 2, IMAGE, p=0), "attribute p is 0; it must be at least 1"),
    (node("LpNormalization", 1, X, p=3), "attribute p is 3; it must be 1 or 2"),
    (node("MaxPool", 12, IMAGE, kernel_shape=[2, 2], spare=1), "attribute spare is 1; the operator has no such attrib"),
    (node("BatchNormalization", 7, IMAGE, *[ONES] * 4, spatial=0), "attribute spatial is 0; only its"),
    (node("LayerNormalization", 17, X, X[0, 0], stash_type=10), "attribute stash_type is 10; it must be 1"),
    (node("GroupNormalization", 21, IMAGE, ONES, ONES, num_groups=3), "attribute num_groups"),
    (node("GroupNormalization", 21, IMAGE, X, X, num_groups=1, stash_type=10), "attribute stash_type is 10; it must"),
    (
        node("GatherND", 12, X, int64s([[0]]), batch_dims=1),
        "the first dimensions of the indices is [1, 1, 1]; it must be those of the input [2, 3, 4]",
    ),
    (node("ReduceMean", 13, X, axes=[3]), "axes [3]: 3 is 3; it must be from -3 to 2"),
    (node("ReduceMean", 13, X, axes=[1, -2]), "axes is [1, -2]; it must be without duplicates"),
    (node("Concat", 13, X, X, axis=5), "axis is 5; it must be from -3 to 2"),
    (node("Gelu", 20, X, approximate="more"), "attribute approximate is more; it must be none or tanh"),
    (node("Celu", 12, X, alpha=-1.0), "attribute alpha is -1.0; it must be greater than 0"),
    (node("DepthToSpace", 13, X, blocksize=2), "the rank of the input is 3; it must be 4"),
    (node("DepthToSpace", 13, IMAGE, blocksize=0), "attribute blocksize is 0; it must be at least 1"),
    (node("DepthToSpace", 13, IMAGE, blocksize=2, mode="ABC"), "attribute mode is ABC; it must be DCR or CRD"),
    (node("Cast", 13, X, to=TensorProto.DOUBLE), "attribute to is float64; it must be bool or one of float32, "),
    (node("Cast", 13, X, to=TensorProto.STRING), "attribute to is string; WebNN has no tensors of strings"),
    (lstm(clip=-1.0), "attribute clip is -1.0; it must be greater than 0"),
    (lstm(layout=2), "attribute layout is 2; it must be 0 or 1"),
    (
        node("GRU", 14, STEPS, *OF_A_GRU, None, np.int32([3]), known=[4], hidden_size=4),
        "input sequence_lens is [3]; it must be 1 numbers from 0 to 2, the number of steps",
    ),
    (node("LSTM", 14, STEPS, *WEIGHTS, outputs=3), "attribute hidden_size is missing; it is needed"),
    (lstm(direction="up"), "attribute direction is up; it must be forward, "),
    (lstm(activations=["Elu", "Tanh"]), "attribute activations is ['Elu', 'Tanh']; it must be 3, 3 for each direction"),
    (resized(mode="best"), "attribute mode is best; it must be nearest, linear or cubic"),
    (
        node("Resize", 18, IMAGE, None, None, int64s(8, 6), known=[3], axes=[2, 3], keep_aspect_ratio_policy="kept"),
        "attribute keep_aspect_ratio_policy is kept; it must be stretch, not_larger or not_smaller",
    ),
    (
        node(
            "Resize",
            13,
            IMAGE,
            FILTER[0, 0, 0],
            None,
            int64s(1, 2, 8, 8),
            known=[1, 3],
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        "the length of input roi [1.0, 1.0, 1.0] is 3; it must be 8",
    ),
    (
        resized(coordinate_transformation_mode="shifted"),
        "attribute coordinate_transformation_mode is shifted; it must be align_corners, asymmetric, half",
    ),
    (
        resized(coordinate_transformation_mode="tf_crop_and_resize"),
        "input roi is absent, or computed when the graph runs; it must be known while building",
    ),
    (resized(nearest_mode="best"), "attribute nearest_mode is best; it must be ceil, floor, round_prefer_ceil"),
    (resized(data=IMAGE.astype(np.uint8), mode="linear"), "the data type of"),
    (node("Resize", 13, IMAGE), "scales and sizes is absent; it must be given, one of them"),
    (node("Upsample", 7, IMAGE, scales=[1.0, 1.0, 0.5, 0.5]), "scales is [1.0, 1.0, 0.5, 0.5]; it must be at least 1"),
    # inputs
    (
        node("Compress", 11, X, np.array([[True, False]]), known=[1]),
        "the shape of input condition is [1, 2]; it must be that of a list of at most 24",
    ),
    (node("Compress", 11, X, np.zeros(3, np.bool_), known=[1], axis=1), "input condition is false everywhere; it"),
    (
        node("Reshape", 14, X, int64s(6, 4)),
        "input shape is computed when the graph runs; it must be known while building",
    ),
    (node("Slice", 13, X, int64s(0), int64s(1), int64s(0), known=[1, 2]), "input axes is computed when the graph runs"),
    (node("Pad", 13, X, PADS), "input pads is computed when the graph runs; it must be known while building"),
    (node("Conv", 11, IMAGE), "input W is missing; it is needed"),
    (node("Dropout", 13, X, None, np.array(True), known=[2]), "input training_mode is True; it must be False"),
    (
        lstm(None, np.int32([3]), known=[4]),
        "input sequence_lens is [3]; it must be 1 numbers from 0 to 2, the number of steps",
    ),
    (lstm(*[None] * 4, np.ones([1, 9], np.float32), known=[7]), "the shape of input P is [1, 9]; it must be [1, 12]"),
    (
        node("Slice", 13, X, int64s(0), int64s(2), int64s(0), int64s(0), known=[1, 2, 3, 4]),
        "steps is [0]; it must be not 0",
    ),
    (
        node("Slice", 13, X, int64s(0, 0), int64s(2), known=[1, 2]),
        "starts, ends, axes and steps is 2, 1, 2 and 2; it must be as",
    ),
    (
        node("Reshape", 14, X, int64s(5, 5), known=[1]),
        "input shape is [5, 5]; it must be of as many elements as the input [2, 3",
    ),
    (node("Reshape", 14, X, int64s(-1, -1), known=[1]), "input shape is [-1, -1]; it must be positive, but for one -1"),
    (
        node("Reshape", 14, X, int64s(2, 3, 4, 0), known=[1]),
        "input shape [2, 3, 4, 0]: the 0 is 3; it must be where the input",
    ),
    (
        node("Reshape", 14, X, int64s(0, -1), known=[1], allowzero=1),
        "input shape is [0, -1]; it must be of as many elements",
    ),
    (node("Reshape", 14, X, X[0], known=[1]), "input shape is float32 [3, 4]; it must be a list of integers"),
    (node("Squeeze", 13, X, int64s(1), known=[1]), "axes is [1]; it must be axes of size 1 of [2, 3, 4]"),
    (
        node("Split", 18, X, axis=2, num_outputs=3, outputs=3),
        "attribute num_outputs is 3; it must be such that 4 elements fill as many",
    ),
    (node("Pad", 13, X, int64s(*[-1] * 6), known=[1], mode="reflect"), "it must be at least 0 in the mode refl"),
    (node("Pad", 13, X, int64s(*[-9] * 6), known=[1]), "it must be such that something of [2, 3, 4] is left"),
    (node("Pad", 13, X, int64s(1, 1), known=[1]), "pads is [1, 1]; it must be two for each axis of [2, 3, 4]"),
    (
        node("Pad", 18, X, int64s(1), None, int64s(0), known=[1, 3]),
        "input pads is [1]; it must be two for each of the axes",
    ),
    (
        node("Pad", 19, X, int64s(*[1] * 6), known=[1], mode="mirror"),
        "attribute mode is mirror; it must be constant, edge, reflect or wrap",
    ),
    (node("Pow", 15, int64s(2), np.float32(1e30), known=[1]), "input Y is an exponent that is no integer"),
    (node("DequantizeLinear", 13, np.int8([1, 2]), X[0]), "the shape of the scale is [3, 4]; it must be a single"),
    (node("DequantizeLinear", 13, ROWS.view(np.int8), X[0, 0, :3]), "the length of the scale is 3; it must be 4"),
    (
        node("DequantizeLinear", 21, ROWS.view(np.int8), X[0], block_size=2),
        "attribute block_size is 2; it must be such",
    ),
    (node("InstanceNormalization", 6, X[0], X[0, 0], X[0, 0]), "the rank of the input is 2; it must be at least 3"),
    (node("Relu", 14, X, X), "input X is given; it is not supported"),
    (node("Trilu", 14, X, int64s(1, 2), known=[1]), "input k is int64 [2]; it must be a single integer"),
    (
        node("Resize", 13, IMAGE, None, int64s(1, 1, 2, 2), known=[2]),
        "input scales is int64 [4]; it must be a list of n",
    ),
    (node("Resize", 13, IMAGE, None, -X[0, 0], known=[2]), "scales is [-0.0, -1.0, -2.0, -3.0]; it must be greater"),
    (node("Cast", 13, X, to=99), "attribute to is type 99; it must be bool or one of float32, "),
    # ranks, types and shapes that WebNN refuses
    (node("Conv", 11, np.ones([1] * 6, np.float32), np.ones([1] * 6, np.float32)), "it must be from 3 to 5"),
    (
        node("ReduceLogSum", 13, X.astype(np.int32)),
        "reduce_log_sum() [the node]: the data type of input is int32; it must be float32 or",
    ),
    (node("Gemm", 13, COUNTS, COUNTS.T), "gemm() [the node]: the data type of a is int32"),
    (node("MatMul", 13, MANY, MANY), "the number of products of integers is 27000000; it must be at most 16777216"),
    (node("Det", 22, X), "the shape of the input is [2, 3, 4]; it must be [..., n, n], n from 1 to 8"),
    (node("Det", 22, np.ones([9, 9], np.float32)), "the shape of the input is [9, 9]; it must be"),
    (node("BitShift", 28, MANY, MANY, direction="LEFT"), "the data type of input X is int32; it must be one of unsig"),
    (node("BitShift", 11, BYTES, BYTES, direction="UP"), "attribute direction is UP; it must be LEFT or RIGHT"),
    (
        node("BitwiseAnd", 18, np.ones([2**21 + 1], np.int32), np.ones([1], np.int32)),
        "the number of bits is 67108896; it must be at most",
    ),
    (
        node("QuantizeLinear", 21, X, np.float32(1).reshape([]), BYTES[0, 0].reshape([]), output_dtype=3),
        "attribute output_dtype is int8; it must be uint8, that of the zero point, or absent",
    ),
    (ml("Scaler", X, scale=[1.0, 2.0]), "the length of attribute scale is 2; it must be 1 or 4"),
    (ml("Normalizer", X, norm="L1"), "the rank of the input is 3; it must be 1 or 2"),
    (ml("Normalizer", X[0], norm="L3"), "attribute norm is L3; it must be MAX, L1 or L2"),
    (
        ml("LinearRegressor", X[0], coefficients=[1.0, 2.0], targets=1),
        "the length of attribute coefficients is 2; it must be 4, 1 times 4 features",
    ),
    (
        ml("LinearClassifier", X[0], coefficients=[1.0] * 4, intercepts=[0.5], classlabels_ints=[7]),
        "the number of labels is 1; it must be 2 or more",
    ),
    (
        ml("LinearRegressor", X[0], coefficients=[1.0] * 4, intercepts=[1.0, 2.0]),
        "the length of attribute intercepts is 2; it must be 1",
    ),
    (
        ml("LinearRegressor", X[0], coefficients=[1.0] * 4, post_transform="PROBIT"),
        "attribute post_transform is PROBIT; it must be NONE",
    ),
    (
        node("Add", 14, X, X[0, 0].astype(np.float64), known=[1]),
        "the data type of a value is float64; it must be bool or one of",
    ),
    (
        node("Add", 14, X, np.ones([0], np.float32), known=[1]),
        "a value of the shape [0] is needed as a tensor; WebNN has no empty",
    ),
    # quantization and attention
    (node("MatMulInteger", 10, ROWS, ROWS.T, np.int8(1)), "the data type of a zero point is int8; it must be uint8"),
    (
        node("MatMulInteger", 10, ROWS, ROWS.T, np.ones(2, np.uint8)),
        "the shape of a zero point is [2, 1]; it must be such that it broadcasts to [3, 4]",
    ),
    (
        node("ConvInteger", 10, IMAGE.astype(np.uint8), np.ones([2, 1, 3, 3], np.uint8)),
        "the shape of input x is [1, 2, 4, 4]; it must be such that filters [2, 1, 3, 3] in 1 groups slide over it",
    ),
    (
        node("ConvInteger", 10, np.ones([1, 1, 20, 20], np.uint8), np.ones([1, 1, 20, 20], np.uint8)),
        "the sum of the products of one channel is of terms up to 26010000; it must be at most 16777216",
    ),
    (
        node("DequantizeLinear", 23, X.astype(np.int8), X[0, 0, 0], output_dtype=TensorProto.UINT8),
        "attribute output_dtype is uint8; it must be a type of floats",
    ),
    (node("ReduceSum", 11, X, keepdims=2), "attribute keepdims is 2; it must be 0 or 1"),
    (node("Gemm", 13, X[0], X[0], transB=-1), "attribute transB is -1; it must be 0 or 1"),
    (node("Attention", 23, X, X, X, q_num_heads=3, kv_num_heads=2), "the number of heads is 3; it must be a divisor"),
    (
        microsoft("MatMulNBits", X, np.ones([2, 1, 8], np.uint8), X[0, 0, :2], K=4, N=2, block_size=16),
        "input b is computed when the graph runs; it must be known while building",
    ),
    (microsoft("FusedGemm", X[0], X[0].T, activation="Erf"), "attribute activation is Erf []; it must be Rel"),
    (microsoft("BiasAdd", X, X[0, 0], X), "the operator is not supported; of its domain only some are"),
    # outputs
    (
        node("BatchNormalization", 9, IMAGE, *[ONES] * 4, outputs=2, wanted=(0, 1)),
        "its output 'y1' is used; this output of the",
    ),
    (
        node("Dropout", 10, X, outputs=2, wanted=(0, 1)),
        "its output 'y1' is used; this output of the operator is not supported",
    ),
)
