import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models.single_node import assert_refused, make_model, node
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.ones([1, 2, 4, 4], np.float32)
FILTER = np.ones([2, 2, 3, 3], np.float32)
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
    (case("GlobalLpPool", 2, IMAGE, p=3), "attribute p is 3; it must be 1 or 2"),
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
    (case("ReduceL1", 18, X, noop_with_empty_axes=1), "attribute noop_with_empty_axes is 1; it must be 0 without axes"),
    (case("ReduceMean", 13, X, axes=[3]), "axes [3]: 3 is 3; it must be from -3 to 2"),
    (case("ReduceMean", 13, X, axes=[1, -2]), "axes is [1, -2]; it must be without duplicates"),
    (case("Concat", 13, X, X, axis=5), "axis is 5; it must be from -3 to 2"),
    (case("Gelu", 20, X, approximate="more"), "attribute approximate is more; it must be none or tanh"),
    (case("Celu", 12, X, alpha=-1.0), "attribute alpha is -1.0; it must be greater than 0"),
    (case("DepthToSpace", 13, X, blocksize=2), "the rank of the input is 3; it must be 4"),
    (case("DepthToSpace", 13, IMAGE, blocksize=0), "attribute blocksize is 0; it must be at least 1"),
    (case("DepthToSpace", 13, IMAGE, blocksize=2, mode="ABC"), "attribute mode is ABC; it must be DCR or CRD"),
    (case("Cast", 13, X, to=TensorProto.DOUBLE), "attribute to is float64; it must be bool or one of float32, "),
    (case("Cast", 13, X, to=TensorProto.STRING), "attribute to is string; it must be bool or one of float32, "),
    (
        case("LSTM", 14, STEPS, *WEIGHTS, hidden_size=4, outputs=3, clip=1.0),
        "attribute clip is 1.0; it is not supported",
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
        case("LSTM", 14, STEPS, *WEIGHTS, hidden_size=4, activations=["Elu", "Tanh", "Tanh"]),
        "attribute activations is ['Elu', 'Tanh', 'Tanh']; it must be 3 of Relu, Sigmoid and Tanh, the same in each",
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
        case("CastLike", 19, X, np.array([True])),
        "input target_type is uint8 or bool, which look alike here; it must be",
    ),
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
        case("ReduceMean", 13, X.astype(np.int32)),
        "reduce_mean() [the node]: the data type of input is int32; it must be float32 or",
    ),
    (
        case("MatMul", 13, X.astype(np.int32), X[0].T.astype(np.int32)),
        "matmul() [the node]: the data type of a is int32",
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


@pytest.mark.parametrize(("case", "text"), REFUSALS, ids=[f"{case.operator}: {text}"[:80] for case, text in REFUSALS])
async def test_a_refusal_names_node_operator_opset_and_what_is_wrong(context, case, text):
    assert_refused(context, case, text)


async def test_versions_that_no_rule_knows_are_refused(context):
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="positive")]
    model = make_model(nodes, {"x": X}, ["y"], opset=5)
    with pytest.raises(UnsupportedModelError, match=r"version 1 of the operator .*; only those of opset 6, 13, 14 are"):
        OnnxModel.load(model).convert(MLGraphBuilder(context))


async def test_an_opset_newer_than_the_package_is_refused(context):
    proto = onnx.load_model_from_string(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"], opset=14))
    proto.opset_import[0].version = 999
    with pytest.raises(
        UnsupportedModelError, match=r"\(Relu, opset 999\): the installed onnx package knows opsets up to"
    ):
        OnnxModel.load(proto.SerializeToString()).convert(MLGraphBuilder(context))


async def test_an_operator_that_the_opset_lacks_is_refused(context):
    proto = onnx.load_model_from_string(make_model([helper.make_node("Gelu", ["x"], ["y"])], {"x": X}, ["y"], opset=20))
    proto.opset_import[0].version = 14
    with pytest.raises(UnsupportedModelError, match=r"\(Gelu, opset 14\): ONNX has no such operator in opset 14"):
        OnnxModel.load(proto.SerializeToString()).convert(MLGraphBuilder(context))


async def test_every_problem_is_told(context):
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="waits"),
        helper.make_node("FusedMatMul", ["x", "x"], ["c"], name="second", domain="com.microsoft"),
        helper.make_node("Elu", ["x"], ["d"], name="third", gamma=2.0),
        helper.make_node("Unique", ["b"], ["e"], name="perhaps known, were it not for the first"),
        helper.make_node("Det", ["b"], ["g"], name="behind the first"),
        helper.make_node("Relu", ["x"], ["f"], name="fine"),
    ]
    proto = onnx.load_model_from_string(make_model(nodes, {"x": X}, ["b", "c", "d", "e", "f", "g", "z"], opset=15))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    proto.graph.input.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, [1]))
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(proto.SerializeToString()).convert(MLGraphBuilder(context))
    assert [problem.subject for problem in caught.value.problems] == [
        "input 'z'",
        "node 'first' (NonZero, opset 15)",
        "node 'second' (com.microsoft.FusedMatMul, opset 1)",
        "node 'third' (Elu, opset 15)",
        "node 'behind the first' (Det, opset 15)",
    ]
    assert "input 'z': the data type is float64; it must be bool or one of float32" in str(caught.value)


def refusal(context, model):
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(model).convert(MLGraphBuilder(context))
    return caught.value


async def test_problems_of_one_kind_are_told_in_one_line(context):
    nodes = [
        *(helper.make_node("NonZero", ["x"], [f"a{index}"], name=f"n{index}") for index in range(107)),
        *(helper.make_node("Reshape", ["x", "s"], [f"b{index}"], name=f"r{index}") for index in range(2)),
        helper.make_node("Elu", ["x"], ["c"], name="e", gamma=2.0),
    ]
    outputs = [output for item in nodes for output in item.output]
    error = refusal(context, make_model(nodes, {"x": X, "s": given(3, 8)}, outputs, opset=14))
    assert len(error.problems) == 110
    assert (
        str(error)
        == """\
the model cannot be converted:
  107 nodes of NonZero ('n0', 'n1', 'n2', …): the operator is not supported, unless all its inputs are known while \
building
  2 nodes of Reshape ('r0', 'r1'): input shape is computed when the graph runs; it must be known while building; \
freeze input 's', by input_values
  node 'e' (Elu, opset 14): attribute gamma is 2.0; the operator has no such attribute"""
    )


async def test_of_a_large_model_a_refusal_is_short(context):
    operators = ["NonZero", "Det", "Unique", "Multinomial", "RandomNormalLike", "StringNormalizer"]
    nodes = [
        helper.make_node(operator, ["x"], [f"y{index}"], name=f"n{index}" * 30, **{f"attribute_{index % 40}": 1})
        for index, operator in enumerate(operators * 1000)
    ]
    error = refusal(context, make_model(nodes, {"x": X}, [f"y{index}" for index in range(6000)], opset=15))
    assert len(error.problems) == 6000
    lines = str(error).splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) < 1500


async def test_of_very_many_kinds_of_problem_the_text_counts_the_rest(context):
    nodes = [
        helper.make_node("Elu", ["x"], [f"y{index}"], name=f"n{index}", **{"g" * (index + 1): 1}) for index in range(33)
    ]
    error = refusal(context, make_model(nodes, {"x": X}, [f"y{index}" for index in range(33)], opset=15))
    assert str(error).splitlines()[31:] == ["  and 3 more kinds of problem, 3 in all; the error's problems has each"]


@pytest.mark.parametrize(
    ("shapes", "advice"),
    [
        ([[1], [2]], "; freeze inputs 'k0', 'k1', by input_values"),
        ([[1], [2], [3], [4]], ""),
        ([[1], [1000]], ""),
        ([[1], [1, 1]], ""),
    ],
    ids=["two", "too many", "too large", "a table"],
)
async def test_a_refusal_says_which_inputs_would_do_if_they_were_frozen(context, shapes, advice):
    small = {f"k{index}": np.zeros(shape, np.int64) for index, shape in enumerate(shapes)}
    nodes = [
        *(helper.make_node("Reshape", [name, "flat"], [f"{name}_"]) for name in small),
        helper.make_node("Concat", [f"{name}_" for name in small], ["k"], axis=0),
        helper.make_node("Neg", ["k"], ["n"]),
        helper.make_node("Expand", ["x", "n"], ["y"], name="e"),
    ]
    model = make_model(nodes, {"x": X, **small, "flat": given(-1)}, ["y"], {"flat": given(-1)}, opset=14)
    error = refusal(context, model)
    reason = "input shape is computed when the graph runs; it must be known while building"
    assert str(error.problems[0]) == f"node 'e' (Expand, opset 14): {reason}{advice}"


async def test_an_output_of_a_type_that_webnn_lacks_is_refused(context):
    nodes = [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.DOUBLE)]
    model = make_model(nodes, {"w": X}, ["y"], {"w": X}, opset=14)
    with pytest.raises(UnsupportedModelError, match=r"output 'y': the data type of a value is float64"):
        OnnxModel.load(model).convert(MLGraphBuilder(context))


async def test_an_output_without_elements_is_refused(context):
    model = case("Slice", 13, X, given(2), given(2), known=[1, 2]).model()
    text = r"output 'y0': its shape is \[0, 3, 4\]; WebNN has no tensors without elements; leave it out, by outputs"
    with pytest.raises(UnsupportedModelError, match=text):
        OnnxModel.load(model).convert(MLGraphBuilder(context))


async def test_a_sparse_initializer_is_refused(context):
    model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], opset=14)
    proto = onnx.load_model_from_string(model)
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("w places", TensorProto.INT64, [1], [2])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    with pytest.raises(UnsupportedModelError, match="initializer 'w': it is sparse; only dense ones are supported"):
        OnnxModel.load(proto.SerializeToString()).convert(MLGraphBuilder(context))
