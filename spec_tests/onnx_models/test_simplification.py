"""A simplified model computes what the model did, with fewer nodes; what must stay, stays."""

import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.onnx_models.reading.foreign_models import MODELS
from spec_tests.onnx_models.reading.mutations import mutated_structure
from spec_tests.support.depth import amount
from webnn_py.onnx_models import InvalidModelError, UnsupportedModelError
from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.reading.contents import contents_of
from webnn_py.onnx_models.reading.model_file import read_model
from webnn_py.onnx_models.simplification.passes import simplify
from webnn_py.rewriting.passes import passes_left_out

LIMITS = ModelLimits(nodes=5000, bytes=32 << 20, seconds=2)
OPTIONS = onnxruntime.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def made(nodes, inputs, outputs, initializers=None, opset=17, **others):
    """A model's bytes; inputs and outputs are ``name: (element type, shape)``."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=8 if opset < 19 else 10, producer_name="tests", **others
    )
    return model.SerializeToString()


def simplified(model, shapes=None, values=None):
    result = simplify(read_model(model, ModelLimits()), shapes or {}, values or {})
    onnx.checker.check_model(result.proto, full_check=True)
    return result


def run(model, feeds):
    session = onnxruntime.InferenceSession(model, OPTIONS, providers=["CPUExecutionProvider"])
    names = {item.name for item in session.get_inputs()}
    return session.run(None, {name: value for name, value in feeds.items() if name in names})


def assert_same(model, result, feeds):
    for ours, theirs in zip(run(result.proto.SerializeToString(), feeds), run(model, feeds), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def operators(result):
    return [node.op_type for node in result.proto.graph.node]


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

FLATTEN = [
    helper.make_node("Shape", ["x"], ["shape"]),
    helper.make_node("Gather", ["shape", "zero"], ["rows"]),
    helper.make_node("Unsqueeze", ["rows", "axes"], ["rows_1d"]),
    helper.make_node("Concat", ["rows_1d", "rest"], ["new_shape"], axis=0),
    helper.make_node("Reshape", ["x", "new_shape"], ["y"]),
]
FLATTEN_VALUES = {"zero": np.int64(0), "axes": np.int64([0]), "rest": np.int64([-1])}


def test_what_is_computed_from_shapes_is_gone_when_they_are_known():
    model = made(FLATTEN, {"x": (FLOAT, ["n", 2, 3])}, {"y": (FLOAT, ["n", "m"])}, FLATTEN_VALUES)
    result = simplified(model, {"x": (4, 2, 3)})
    assert operators(result) == ["Reshape"]
    assert [item.name for item in result.proto.graph.initializer] == ["new_shape"]
    assert [item.dim_value for item in result.proto.graph.output[0].type.tensor_type.shape.dim] == [4, 6]
    assert_same(model, result, {"x": np.arange(24, dtype=np.float32).reshape(4, 2, 3)})


def test_shapes_that_stay_open_stay_computed():
    model = made(FLATTEN, {"x": (FLOAT, ["n", 2, 3])}, {"y": (FLOAT, ["n", "m"])}, FLATTEN_VALUES)
    result = simplified(model, {"x": ("n", 2, 3)})
    assert len(operators(result)) == len(FLATTEN)
    for rows in (1, 5):
        assert_same(model, result, {"x": np.ones((rows, 2, 3), np.float32)})
    assert result.intermediate_bytes is None


@pytest.mark.parametrize("opset", [11, 17])
def test_attributes_of_shape_are_honoured(opset):
    attributes = {} if opset < 15 else {"start": 1, "end": -1}
    model = made(
        [helper.make_node("Shape", ["x"], ["s"], **attributes), helper.make_node("Size", ["x"], ["n"])],
        {"x": (FLOAT, ["a", "b", "c"])},
        {"s": (INT64, None), "n": (INT64, [])},
        opset=opset,
    )
    result = simplified(model, {"x": (2, 3, 4)})
    assert operators(result) == ["Constant", "Constant"]  # outputs are no initializers
    assert_same(model, result, {"x": np.ones((2, 3, 4), np.float32)})


def branch(name, nodes, output, initializers=()):
    return helper.make_graph(
        nodes,
        name,
        [],
        [helper.make_tensor_value_info(output, FLOAT, None)],
        [numpy_helper.from_array(np.float32(value), key) for key, value in initializers],
    )


def conditional():
    """A conditional in another one's branch, which uses values from outside of both."""
    inner = helper.make_node(
        "If",
        ["flag"],
        ["out"],
        then_branch=branch("a", [helper.make_node("Add", ["t", "w1"], ["u"])], "u", [("w1", 10)]),
        else_branch=branch("b", [helper.make_node("Sub", ["t", "w2"], ["u"])], "u", [("w2", 20)]),
    )
    nodes = [helper.make_node("Mul", ["x", "w"], ["t"]), inner]
    outer = helper.make_node(
        "If",
        ["flag"],
        ["y"],
        name="choice",
        then_branch=branch("c", nodes, "out", [("w", 3)]),
        else_branch=branch("d", [helper.make_node("Neg", ["t0"], ["t"])], "t"),
    )
    nodes = [helper.make_node("Abs", ["z"], ["t0"]), outer, helper.make_node("Add", ["y", "t0"], ["sum"])]
    inputs = {"x": (FLOAT, [2]), "z": (FLOAT, [2]), "flag": (BOOL, [])}
    return inputs, nodes


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_takes_the_place_of_its_node(flag):
    inputs, nodes = conditional()
    model = made(nodes, inputs, {"sum": (FLOAT, [2])})
    result = simplified(model, {}, {"flag": np.array(flag)})
    assert operators(result) == (["Abs", "Mul", "Add", "Add"] if flag else ["Abs", "Neg", "Add"])
    assert [item.name for item in result.proto.graph.input] == ["x", "z"]
    feeds = {"x": np.float32([1, -2]), "z": np.float32([3, -4]), "flag": np.array(flag)}
    assert_same(model, result, feeds)


def test_names_of_branches_that_are_taken_are_changed():
    one, two = (
        helper.make_node(
            "If",
            ["yes"],
            [name],
            name=f"choice of {name}",
            then_branch=branch("a", [helper.make_node("Mul", ["x", "w"], ["u"])], "u", [("w", value)]),
            else_branch=branch("b", [helper.make_node("Neg", ["x"], ["u"])], "u"),
        )
        for name, value in (("y", 2), ("z", 3))
    )
    model = made([one, two], {"x": (FLOAT, [2])}, {"y": (FLOAT, [2]), "z": (FLOAT, [2])}, {"yes": np.array(True)})
    result = simplified(model)
    feeds = {"x": np.float32([1, -2])}
    y, z = run(result.proto.SerializeToString(), feeds)
    assert (y.tolist(), z.tolist()) == ([2, -4], [3, -6])


def test_each_pass_reports_the_nodes_that_it_removed():
    model = made(
        [*FLATTEN, helper.make_node("Identity", ["y"], ["unused"])],
        {"x": (FLOAT, ["n", 2, 3])},
        {"y": (FLOAT, None)},
        FLATTEN_VALUES,
    )
    known, unused = simplified(model, {"x": (4, 2, 3)}).passes
    assert (known.names, known.nodes_before, known.nodes_after) == (("known-values",), 5, 1)
    assert [(one.rule, one.where) for one in known.applied] == [
        ("known inputs", name) for name in ("Shape", "Gather", "Unsqueeze", "Concat")
    ]
    assert (unused.names, unused.is_changed) == (("unused-nodes",), False)


@pytest.mark.parametrize("names", [["known-values"], ["unused-nodes"], ["known-values", "unused-nodes"]], ids=str)
def test_any_pass_can_be_left_out(names):
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(4, 2, 3)}
    model = made(FLATTEN, {"x": (FLOAT, ["n", 2, 3])}, {"y": (FLOAT, ["n", "m"])}, FLATTEN_VALUES)
    with passes_left_out(*names):
        result = simplified(model, {"x": (4, 2, 3)})
        frozen = simplified(model, values=feeds)
    assert_same(model, result, feeds)
    np.testing.assert_array_equal(*run(model, feeds), *run(frozen.proto.SerializeToString(), {}))


def test_a_condition_that_is_not_known_keeps_its_node():
    inputs, (magnitude, choice, total) = conditional()
    magnitude.output[0] = "before"
    alias = helper.make_node("Identity", ["before"], ["t0"])  # which a branch uses
    model = made([magnitude, alias, choice, total], inputs, {"sum": (FLOAT, [2])})
    result = simplified(model)
    assert operators(result) == ["Abs", "If", "Add"]
    for flag in (True, False):
        assert_same(model, result, {"x": np.float32([1, 2]), "z": np.float32([3, 4]), "flag": np.array(flag)})


def test_other_names_of_values_are_gone_but_those_of_outputs():
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Identity", ["c"], ["y"]),
        helper.make_node("Neg", ["unneeded"], ["gone"]),
    ]
    model = made(nodes, {"x": (FLOAT, [2]), "unneeded": (FLOAT, [2])}, {"y": (FLOAT, [2])})
    result = simplified(model)
    assert operators(result) == ["Add", "Identity"]
    assert [item.name for item in result.proto.graph.input] == ["x", "unneeded"]  # callers give it
    assert_same(model, result, {"x": np.float32([1, 2]), "unneeded": np.float32([1, 2])})


@pytest.mark.parametrize("opset", [17, 21])
def test_weights_stay_quantized(opset):
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), helper.make_node("Mul", ["x", "w"], ["y"])]
    values = {"q": np.int8([1, -2]), "s": np.float32(0.5)}
    model = made(nodes, {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])}, values, opset=opset)
    result = simplified(model)
    assert operators(result) == ["DequantizeLinear", "Mul"]
    assert_same(model, result, {"x": np.float32([1, 2])})


@pytest.mark.parametrize(("rows", "kept"), [(8, False), (100_000, True)])
def test_a_large_value_of_small_ones_stays_computed(rows, kept):
    nodes = [helper.make_node("Expand", ["one", "shape"], ["w"]), helper.make_node("Mul", ["x", "w"], ["y"])]
    values = {"one": np.float32([3]), "shape": np.int64([rows])}
    model = made(nodes, {"x": (FLOAT, [rows])}, {"y": (FLOAT, [rows])}, values)
    result = simplified(model)
    assert operators(result) == (["Expand", "Mul"] if kept else ["Mul"])
    assert_same(model, result, {"x": np.ones(rows, np.float32)})


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_large_weight_is_transposed_unless_others_use_it(is_shared):
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
        helper.make_node("MatMul", ["y", "w" if is_shared else "v"], ["z"]),
    ]
    values = {"w": np.ones((200, 100), np.float32), "v": np.ones((200, 1), np.float32)}
    model = made(nodes, {"x": (FLOAT, [1, 100])}, {"z": (FLOAT, None)}, values)
    result = simplified(model)
    assert operators(result) == (["Transpose"] if is_shared else []) + ["MatMul", "MatMul"]
    assert len(result.proto.SerializeToString()) < 1.1 * len(model)


def test_a_weight_that_only_a_branch_shared_is_transposed():
    kept, gone = (
        branch(
            name, [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node(last, ["t"], ["u"])], "u"
        )
        for name, last in (("kept", "Neg"), ("gone", "Abs"))
    )
    choice = helper.make_node("If", ["yes"], ["y"], then_branch=kept, else_branch=gone)
    values = {"w": np.ones((200, 100), np.float32), "yes": np.array(True)}
    model = made([choice, helper.make_node("Mul", ["x", "y"], ["z"])], {"x": (FLOAT, [])}, {"z": (FLOAT, None)}, values)
    assert operators(simplified(model)) == ["Mul"]


def test_operators_that_nobody_knows_stay():
    nodes = [
        helper.make_node("Strange", ["x"], ["a"], domain="elsewhere", size=3),
        helper.make_node("Shape", ["a"], ["y"]),
    ]
    model = onnx.load_model_from_string(made(nodes, {"x": (FLOAT, [2])}, {"y": (INT64, [1])}))
    model.opset_import.append(helper.make_opsetid("elsewhere", 2))
    result = simplify(read_model(model.SerializeToString(), ModelLimits()), {}, {})
    assert [node.op_type for node in result.proto.graph.node] == ["Strange", "Shape"]
    assert result.proto.opset_import == model.opset_import


def test_a_split_into_billions_takes_no_time_and_stays():
    split = helper.make_node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2**31 - 1)
    model = made([split], {"x": (FLOAT, [4])}, {"a": (FLOAT, [2]), "b": (FLOAT, [2])}, opset=18)
    started = time.thread_time()
    result = simplify(read_model(model, LIMITS), {}, {})
    assert [node.op_type for node in result.proto.graph.node] == ["Split"]
    assert time.thread_time() - started < 2


def test_a_negative_size_is_none_that_onnx_is_asked_about():
    """Its inference ends the process where such an axis is sliced."""
    bounds = {name: np.array([value], np.int64) for name, value in (("starts", 0), ("ends", 1), ("axes", 0))}
    cut = helper.make_node("Slice", ["a", *bounds], ["y"])
    model = made([helper.make_node("Abs", ["x"], ["a"]), cut], {"x": (FLOAT, [-1, 2])}, {"y": (FLOAT, None)}, bounds)
    result = simplify(read_model(model, LIMITS), {}, {}, LIMITS)
    (y,) = result.proto.graph.output
    assert not y.type.tensor_type.shape.dim[0].HasField("dim_value")
    assert y.type.tensor_type.shape.dim[1].dim_value == 2


def test_what_the_file_says_of_itself_stays():
    source = onnx.load_model_from_string(
        made(FLATTEN, {"x": (FLOAT, [1, 2, 3])}, {"y": (FLOAT, [1, 6])}, FLATTEN_VALUES)
    )
    helper.set_model_props(source, {"author": "somebody"})
    source.doc_string = "what it is for"
    source.ir_version = 3  # in which initializers are inputs, too
    for item in source.graph.initializer:
        source.graph.input.append(helper.make_tensor_value_info(item.name, item.data_type, item.dims))
    result = simplified(source.SerializeToString())
    assert (result.proto.producer_name, result.proto.doc_string) == ("tests", "what it is for")
    assert contents_of(result.proto).metadata == {"author": "somebody"}
    assert result.proto.ir_version == 4
    assert [item.name for item in result.proto.graph.input] == ["x"]


def test_the_model_itself_is_not_changed():
    read = read_model(made(FLATTEN, {"x": (FLOAT, ["n", 2, 3])}, {"y": (FLOAT, None)}, FLATTEN_VALUES), ModelLimits())
    before = read.proto.SerializeToString()
    simplify(read, {"x": (4, 2, 3)}, {})
    assert read.proto.SerializeToString() == before


def test_memory_is_that_of_the_values_which_are_needed_at_once():
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Abs", ["a"], ["b"]),
        helper.make_node("Exp", ["b"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    model = made(nodes, {"x": (FLOAT, [100])}, {"y": (FLOAT, [100])})
    assert simplified(model).intermediate_bytes == 3 * 400


def test_of_values_of_a_type_that_does_not_exist_nobody_knows_the_memory():
    nodes = [helper.make_node("Strange", ["x"], ["a"], domain="elsewhere"), helper.make_node("Abs", ["x"], ["y"])]
    model = onnx.load_model_from_string(made(nodes, {"x": (FLOAT, [100])}, {"y": (FLOAT, [100])}))
    model.opset_import.append(helper.make_opsetid("elsewhere", 2))
    for kept in (model.graph.output.add(), model.graph.value_info.add()):
        kept.CopyFrom(helper.make_tensor_value_info("a", 32, [100]))
    read = read_model(model.SerializeToString(), ModelLimits())
    assert simplify(read, {}, {}).intermediate_bytes is None


def test_contents_count_inner_graphs_and_functions():
    inputs, nodes = conditional()
    contents = contents_of(onnx.load_model_from_string(made(nodes, inputs, {"sum": (FLOAT, [2])}, {"big": np.ones(7)})))
    assert contents.operators == {"If": 2, "Add": 2, "Abs": 1, "Mul": 1, "Sub": 1, "Neg": 1}
    assert (contents.nodes, contents.parameters, contents.parameter_bytes) == (8, 10, 7 * 8 + 3 * 4)
    assert (contents.opsets, contents.ir_version, contents.producer) == ({"": 17}, 8, "tests")


@pytest.mark.parametrize("name", MODELS)
def test_a_mutated_model_is_simplified_or_refused_by_a_documented_error(name, request):
    proto, seed = MODELS[name](), request.config.option.seed
    count = amount(request.config, quick=20, full=200, thorough=2000) // (10 if name == "trained" else 1)
    simplify(read_model(proto.SerializeToString(), LIMITS), {}, {}, LIMITS)
    for index in range(count):
        data = mutated_structure(proto, np.random.default_rng([seed, index])).SerializeToString()
        try:
            read = read_model(data, LIMITS)
            contents_of(read.proto)
            simplify(read, {}, {}, LIMITS)
        except (InvalidModelError, UnsupportedModelError):
            continue
        except Exception as error:
            error.add_note(f"mutation {index} of the model {name}, --seed={seed}")
            raise
