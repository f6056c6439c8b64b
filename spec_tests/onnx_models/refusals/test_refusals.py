import numpy as np
from onnx import TensorProto

from spec_tests.onnx_models.single_node import assert_refused, node
from spec_tests.support.cells import cells

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.ones([1, 2, 4, 4], np.float32)
FILTER = np.ones([2, 2, 3, 3], np.float32)
MANY = np.ones([300, 300], np.int32)
BYTES = np.ones([3, 4], np.uint8)
STEPS = np.ones([2, 1, 3], np.float32)
WEIGHTS = np.ones([1, 16, 3], np.float32), np.ones([1, 16, 4], np.float32)


def given(*values):
    return np.array(values, np.int64)


def case(*arguments, **attributes):
    return node(*arguments, **attributes)[0]


REFUSALS = [
    # what is missing altogether
    (case("NonZero", 13, X), "the operator is not supported, unless all its inputs are known while building"),
    (case("SpaceToDepth", 28, IMAGE, blocksize=2, mode="ABC"), "attribute mode is ABC; it must be DCR or CRD"),
    # attributes
    (case("Conv", 11, IMAGE, FILTER, auto_pad="SOME"), "attribute auto_pad is SOME; it must be NOTSET, VALID, SAME_"),
    (case("Conv", 11, IMAGE, FILTER, pads=[1, 1, -1, 1]), "attribute pads is [1, 1, -1, 1]; it must be at least 0"),
    (case("Conv", 11, IMAGE, FILTER, pads=[1, 1]), "attribute pads is [1, 1]; it must be of length 4"),
    (
        case("Conv", 11, IMAGE, FILTER, pads=[1, 1, 1, 1], auto_pad="SAME_UPPER"),
        "attribute pads is [1, 1, 1, 1]; it must be absent when auto_pad is SAME_UPPER",
    ),
    (case("Conv", 11, IMAGE, FILTER, kernel_shape=[3, 2]), "attribute kernel_shape is [3, 2]; it must be that of inp"),
    (case("Conv", 11, IMAGE, FILTER, strides=[1, 1, 1]), "attribute strides is [1, 1, 1]; it must be of length 2"),
    (case("ConvTranspose", 11, IMAGE, FILTER, output_shape=[9, 9]), "the output's shape is [9, 9]; it must be at most"),
    (case("ConvTranspose", 11, IMAGE, FILTER, output_shape=[9]), "attribute output_shape is [9]; it must be of length"),
    (case("LpPool", 11, IMAGE, kernel_shape=[2, 2], p=0), "attribute p is 0; it must be at least 1"),
    (case("GlobalLpPool", 2, IMAGE, p=0), "attribute p is 0; it must be at least 1"),
    (case("LpNormalization", 1, X, p=3), "attribute p is 3; it must be 1 or 2"),
    (case("MaxPool", 12, IMAGE, kernel_shape=[2, 2], spare=1), "attribute spare is 1; the operator has no such attrib"),
    (
        case("BatchNormalization", 7, IMAGE, *[np.ones(2, np.float32)] * 4, spatial=0),
        "attribute spatial is 0; only its",
    ),
    (case("LayerNormalization", 17, X, X[0, 0], stash_type=10), "attribute stash_type is 10; it must be 1"),
    (
        case("GroupNormalization", 21, IMAGE, FILTER[0, 0, 0, :2], FILTER[0, 0, 0, :2], num_groups=3),
        "attribute num_groups",
    ),
    (case("GroupNormalization", 21, IMAGE, X, X, num_groups=1, stash_type=10), "attribute stash_type is 10; it must"),
    (
        case("GatherND", 12, X, given([[0]]), batch_dims=1),
        "the first dimensions of the indices is [1, 1, 1]; it must be those of the input [2, 3, 4]",
    ),
    (case("ReduceMean", 13, X, axes=[3]), "axes [3]: 3 is 3; it must be from -3 to 2"),
    (case("ReduceMean", 13, X, axes=[1, -2]), "axes is [1, -2]; it must be without duplicates"),
    (case("Concat", 13, X, X, axis=5), "axis is 5; it must be from -3 to 2"),
    (case("Gelu", 20, X, approximate="more"), "attribute approximate is more; it must be none or tanh"),
    (case("Celu", 12, X, alpha=-1.0), "attribute alpha is -1.0; it must be greater than 0"),
    (case("DepthToSpace", 13, X, blocksize=2), "the rank of the input is 3; it must be 4"),
    (case("DepthToSpace", 13, IMAGE, blocksize=0), "attribute blocksize is 0; it must be at least 1"),
    (case("DepthToSpace", 13, IMAGE, blocksize=2, mode="ABC"), "attribute mode is ABC; it must be DCR or CRD"),
    (case("Cast", 13, X, to=TensorProto.DOUBLE), "attribute to is float64; it must be bool or one of float32, "),
    (case("Cast", 13, X, to=TensorProto.STRING), "attribute to is string; WebNN has no tensors of strings"),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, hidden_size=4, outputs=3, clip=-1.0),
        "attribute clip is -1.0; it must be greater than 0",
    ),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, hidden_size=4, outputs=3, layout=2),
        "attribute layout is 2; it must be 0 or 1",
    ),
    (
        case(
            "GRU",
            14,
            STEPS,
            WEIGHTS[0][:, :12],
            WEIGHTS[1][:, :12],
            None,
            np.array([3], np.int32),
            known=[4],
            hidden_size=4,
        ),
        "input sequence_lens is [3]; it must be 1 numbers from 0 to 2, the number of steps",
    ),
    (case("LSTM", 14, STEPS, *WEIGHTS, outputs=3), "attribute hidden_size is missing; it is needed"),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, hidden_size=4, direction="up"),
        "attribute direction is up; it must be forward, ",
    ),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, hidden_size=4, activations=["Elu", "Tanh"]),
        "attribute activations is ['Elu', 'Tanh']; it must be 3, 3 for each direction",
    ),
    (
        case("Resize", 13, IMAGE, None, None, given(1, 2, 8, 8), known=[3], mode="best"),
        "attribute mode is best; it must be nearest, linear or cubic",
    ),
    (
        case("Resize", 18, IMAGE, None, None, given(8, 6), known=[3], axes=[2, 3], keep_aspect_ratio_policy="kept"),
        "attribute keep_aspect_ratio_policy is kept; it must be stretch, not_larger or not_smaller",
    ),
    (
        case(
            "Resize",
            13,
            IMAGE,
            FILTER[0, 0, 0],
            None,
            given(1, 2, 8, 8),
            known=[1, 3],
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        "the length of input roi [1.0, 1.0, 1.0] is 3; it must be 8",
    ),
    (
        case("Resize", 13, IMAGE, None, None, given(1, 2, 8, 8), known=[3], coordinate_transformation_mode="shifted"),
        "attribute coordinate_transformation_mode is shifted; it must be align_corners, asymmetric, half",
    ),
    (
        case(
            "Resize",
            13,
            IMAGE,
            None,
            None,
            given(1, 2, 8, 8),
            known=[3],
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        "input roi is absent, or computed when the graph runs; it must be known while building",
    ),
    (
        case("Resize", 13, IMAGE, None, None, given(1, 2, 8, 8), known=[3], nearest_mode="best"),
        "attribute nearest_mode is best; it must be ceil, floor, round_prefer_ceil",
    ),
    (
        case("Resize", 13, IMAGE.astype(np.uint8), None, None, given(1, 2, 8, 8), known=[3], mode="linear"),
        "the data type of",
    ),
    (case("Resize", 13, IMAGE), "scales and sizes is absent; it must be given, one of them"),
    (case("Upsample", 7, IMAGE, scales=[1.0, 1.0, 0.5, 0.5]), "scales is [1.0, 1.0, 0.5, 0.5]; it must be at least 1"),
    # inputs
    (
        case("Compress", 11, X, np.array([[True, False]]), known=[1]),
        "the shape of input condition is [1, 2]; it must be that of a list of at most 24",
    ),
    (case("Compress", 11, X, np.zeros(3, np.bool_), known=[1], axis=1), "input condition is false everywhere; it"),
    (
        case("Reshape", 14, X, given(6, 4)),
        "input shape is computed when the graph runs; it must be known while building",
    ),
    (case("Slice", 13, X, given(0), given(1), given(0), known=[1, 2]), "input axes is computed when the graph runs"),
    (
        case("Pad", 13, X, given(*[0] * 6)),
        "input pads is computed when the graph runs; it must be known while building",
    ),
    (case("Conv", 11, IMAGE), "input W is missing; it is needed"),
    (case("Dropout", 13, X, None, np.array(True), known=[2]), "input training_mode is True; it must be False"),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, None, np.array([3], np.int32), hidden_size=4, known=[4]),
        "input sequence_lens is [3]; it must be 1 numbers from 0 to 2, the number of steps",
    ),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, *[None] * 4, np.ones([1, 9], np.float32), hidden_size=4, known=[7]),
        "the shape of input P is [1, 9]; it must be [1, 12]",
    ),
    (
        case("Slice", 13, X, given(0), given(2), given(0), given(0), known=[1, 2, 3, 4]),
        "steps is [0]; it must be not 0",
    ),
    (
        case("Slice", 13, X, given(0, 0), given(2), known=[1, 2]),
        "starts, ends, axes and steps is 2, 1, 2 and 2; it must be as",
    ),
    (
        case("Reshape", 14, X, given(5, 5), known=[1]),
        "input shape is [5, 5]; it must be of as many elements as the input [2, 3",
    ),
    (case("Reshape", 14, X, given(-1, -1), known=[1]), "input shape is [-1, -1]; it must be positive, but for one -1"),
    (
        case("Reshape", 14, X, given(2, 3, 4, 0), known=[1]),
        "input shape [2, 3, 4, 0]: the 0 is 3; it must be where the input",
    ),
    (
        case("Reshape", 14, X, given(0, -1), known=[1], allowzero=1),
        "input shape is [0, -1]; it must be of as many elements",
    ),
    (case("Reshape", 14, X, X[0], known=[1]), "input shape is float32 [3, 4]; it must be a list of integers"),
    (case("Squeeze", 13, X, given(1), known=[1]), "axes is [1]; it must be axes of size 1 of [2, 3, 4]"),
    (
        case("Split", 18, X, axis=2, num_outputs=3, outputs=3),
        "attribute num_outputs is 3; it must be such that 4 elements fill as many",
    ),
    (case("Pad", 13, X, given(*[-1] * 6), known=[1], mode="reflect"), "it must be at least 0 in the mode refl"),
    (case("Pad", 13, X, given(*[-9] * 6), known=[1]), "it must be such that something of [2, 3, 4] is left"),
    (case("Pad", 13, X, given(1, 1), known=[1]), "pads is [1, 1]; it must be two for each axis of [2, 3, 4]"),
    (
        case("Pad", 18, X, given(1), None, given(0), known=[1, 3]),
        "input pads is [1]; it must be two for each of the axes",
    ),
    (
        case("Pad", 19, X, given(*[1] * 6), known=[1], mode="mirror"),
        "attribute mode is mirror; it must be constant, edge, reflect or wrap",
    ),
    (case("Pow", 15, given(2), np.array(1e30, np.float32), known=[1]), "input Y is an exponent that is no integer"),
    (
        case("DequantizeLinear", 13, given(1, 2).astype(np.int8), X[0]),
        "the shape of the scale is [3, 4]; it must be a single",
    ),
    (case("DequantizeLinear", 13, X[0].astype(np.int8), X[0, 0, :3]), "the length of the scale is 3; it must be 4"),
    (
        case("DequantizeLinear", 21, X[0].astype(np.int8), X[0], block_size=2),
        "attribute block_size is 2; it must be such",
    ),
    (case("InstanceNormalization", 6, X[0], X[0, 0], X[0, 0]), "the rank of the input is 2; it must be at least 3"),
    (case("Relu", 14, X, X), "input X is given; it is not supported"),
    (case("Trilu", 14, X, given(1, 2), known=[1]), "input k is int64 [2]; it must be a single integer"),
    (
        case("Resize", 13, IMAGE, None, given(1, 1, 2, 2), known=[2]),
        "input scales is int64 [4]; it must be a list of n",
    ),
    (case("Resize", 13, IMAGE, None, -X[0, 0], known=[2]), "scales is [-0.0, -1.0, -2.0, -3.0]; it must be greater"),
    (case("Cast", 13, X, to=99), "attribute to is type 99; it must be bool or one of float32, "),
    # ranks, types and shapes that WebNN refuses
    (
        case("Conv", 11, np.ones([1] * 6, np.float32), np.ones([1] * 6, np.float32)),
        "it must be from 3 to 5",
    ),
    (
        case("ReduceLogSum", 13, X.astype(np.int32)),
        "reduce_log_sum() [the node]: the data type of input is int32; it must be float32 or",
    ),
    (
        case("Gemm", 13, X[0].astype(np.int32), X[0].T.astype(np.int32)),
        "gemm() [the node]: the data type of a is int32",
    ),
    (case("MatMul", 13, MANY, MANY), "the number of products of integers is 27000000; it must be at most 16777216"),
    (case("Det", 22, X), "the shape of the input is [2, 3, 4]; it must be [..., n, n], n from 1 to 8"),
    (case("Det", 22, np.ones([9, 9], np.float32)), "the shape of the input is [9, 9]; it must be"),
    (case("BitShift", 28, MANY, MANY, direction="LEFT"), "the data type of input X is int32; it must be one of unsig"),
    (case("BitShift", 11, BYTES, BYTES, direction="UP"), "attribute direction is UP; it must be LEFT or RIGHT"),
    (
        case("BitwiseAnd", 18, np.ones([2**21 + 1], np.int32), np.ones([1], np.int32)),
        "the number of bits is 67108896; it must be at most",
    ),
    (
        case("QuantizeLinear", 21, X, np.float32(1).reshape([]), BYTES[0, 0].reshape([]), output_dtype=3),
        "attribute output_dtype is int8; it must be uint8, that of the zero point, or absent",
    ),
    (case("ai.onnx.ml.Scaler", 1, X, scale=[1.0, 2.0]), "the length of attribute scale is 2; it must be 1 or 4"),
    (case("ai.onnx.ml.Normalizer", 1, X, norm="L1"), "the rank of the input is 3; it must be 1 or 2"),
    (case("ai.onnx.ml.Normalizer", 1, X[0], norm="L3"), "attribute norm is L3; it must be MAX, L1 or L2"),
    (
        case("ai.onnx.ml.LinearRegressor", 1, X[0], coefficients=[1.0, 2.0], targets=1),
        "the coefficients is 2; it must be 1 times the features of the input [3, 4]",
    ),
    (
        case("ai.onnx.ml.LinearRegressor", 1, X[0], coefficients=[1.0] * 4, intercepts=[1.0, 2.0]),
        "the length of attribute intercepts is 2; it must be 1",
    ),
    (
        case("ai.onnx.ml.LinearRegressor", 1, X[0], coefficients=[1.0] * 4, post_transform="PROBIT"),
        "attribute post_transform is PROBIT; it must be NONE",
    ),
    (
        case("Add", 14, X, X[0, 0].astype(np.float64), known=[1]),
        "the data type of a value is float64; it must be bool or one of",
    ),
    (
        case("Add", 14, X, np.ones([0], np.float32), known=[1]),
        "a value of the shape [0] is needed as a tensor; WebNN has no empty",
    ),
    # quantization and attention
    (
        case("MatMulInteger", 10, X[0].astype(np.uint8), X[0].T.astype(np.uint8), np.array(1, np.int8)),
        "the data type of a zero point is int8; it must be uint8",
    ),
    (
        case("MatMulInteger", 10, X[0].astype(np.uint8), X[0].T.astype(np.uint8), np.ones(2, np.uint8)),
        "the shape of a zero point is [2, 1]; it must be such that it broadcasts to [3, 4]",
    ),
    (
        case("ConvInteger", 10, IMAGE.astype(np.uint8), np.ones([2, 1, 3, 3], np.uint8)),
        "the shape of input x is [1, 2, 4, 4]; it must be such that filters [2, 1, 3, 3] in 1 groups slide over it",
    ),
    (
        case("ConvInteger", 10, np.ones([1, 1, 20, 20], np.uint8), np.ones([1, 1, 20, 20], np.uint8)),
        "the sum of the products of one channel is of terms up to 26010000; it must be at most 16777216",
    ),
    (
        case("DequantizeLinear", 23, X.astype(np.int8), X[0, 0, 0], output_dtype=TensorProto.UINT8),
        "attribute output_dtype is uint8; it must be a type of floats",
    ),
    (case("ReduceSum", 11, X, keepdims=2), "attribute keepdims is 2; it must be 0 or 1"),
    (case("Gemm", 13, X[0], X[0], transB=-1), "attribute transB is -1; it must be 0 or 1"),
    (case("Attention", 23, X, X, X, q_num_heads=3, kv_num_heads=2), "the number of heads is 3; it must be a divisor"),
    (
        case("com.microsoft.MatMulNBits", 1, X, np.ones([2, 1, 8], np.uint8), X[0, 0, :2], K=4, N=2, block_size=16),
        "input b is computed when the graph runs; it must be known while building",
    ),
    (
        case(
            "com.microsoft.GroupQueryAttention",
            1,
            *[X] * 3,
            None,
            None,
            given(2),
            given(3),
            num_heads=2,
            kv_num_heads=2,
        ),
        "input total_sequence_length is computed when the graph runs; it must be known while building",
    ),
    (
        case("com.microsoft.FusedGemm", 1, X[0], X[0].T, activation="Erf"),
        "attribute activation is Erf []; it must be Rel",
    ),
    (case("com.microsoft.BiasAdd", 1, X, X[0, 0], X), "the operator is not supported; of its domain only some are"),
    # outputs
    (
        case("BatchNormalization", 9, IMAGE, *[np.ones(2, np.float32)] * 4, outputs=2, wanted=(0, 1)),
        "its output 'y1' is used; this output of the",
    ),
    (
        case("Dropout", 10, X, outputs=2, wanted=(0, 1)),
        "its output 'y1' is used; this output of the operator is not supported",
    ),
]


@cells(("case", "text"), REFUSALS, ids=[f"{case.operator}: {text}"[:80] for case, text in REFUSALS])
async def test_a_refusal_names_node_operator_opset_and_what_is_wrong(context, case, text):
    assert_refused(context, case, text)
