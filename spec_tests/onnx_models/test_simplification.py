"""A simplified model computes what the model did, with fewer nodes, and keeps what it must keep."""

import time

import numpy as np
import onnx
import pytest
from onnx import helper

from spec_tests.onnx_models.reading.foreign_models import MODELS
from spec_tests.onnx_models.reading.mutations import mutated_structure
from spec_tests.onnx_models.single_node import parsed, run_onnxruntime
from spec_tests.support.depth import amount
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.onnx_models import InvalidModelError, UnsupportedModelError
from webnn_py.onnx_models.limits import ModelLimits
from webnn_py.onnx_models.reading.contents import contents_of
from webnn_py.onnx_models.reading.model_file import read_model
from webnn_py.onnx_models.simplification.passes import simplify

LIMITS = ModelLimits(nodes=5000, bytes=32 << 20, seconds=2)


def made(text, inputs="float[2] x", opset=17, **weights):
    """Return a model's bytes, from ONNX's text and arrays."""
    proto = onnx.load_model_from_string(parsed(text, inputs=inputs, opset=opset, **weights))
    proto.producer_name = "tests"
    return proto.SerializeToString()


def simplified(model, shapes=None, values=None):
    result = simplify(read_model(model, ModelLimits()), shapes or {}, values or {})
    onnx.checker.check_model(result.proto, full_check=True)
    return result


def run(model, feeds):
    names = {item.name for item in onnx.load_model_from_string(model).graph.input}
    return run_onnxruntime(model, {name: value for name, value in feeds.items() if name in names})


def assert_same(model, result, feeds):
    for ours, theirs in zip(run(result.proto.SerializeToString(), feeds), run(model, feeds), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def operators(result):
    return [node.op_type for node in result.proto.graph.node]


FLATTEN = """(float[n,m] y) <int64 zero = {0}, int64[1] axes = {0}, int64[1] rest = {-1}> {
  shape = Shape (x)
  rows = Gather (shape, zero)
  rows_1d = Unsqueeze (rows, axes)
  new_shape = Concat <axis = 0> (rows_1d, rest)
  y = Reshape (x, new_shape)
}"""
FLATTENED = made(FLATTEN, "float[n,2,3] x")
TABLES = {"x": np.arange(24, dtype=np.float32).reshape(4, 2, 3)}


def test_computations_of_shapes_are_gone_when_they_are_known():
    result = simplified(FLATTENED, {"x": (4, 2, 3)})
    assert operators(result) == ["Reshape"]
    assert [item.name for item in result.proto.graph.initializer] == ["new_shape"]
    assert [item.dim_value for item in result.proto.graph.output[0].type.tensor_type.shape.dim] == [4, 6]
    assert_same(FLATTENED, result, TABLES)


def test_shapes_that_stay_open_stay_computed():
    result = simplified(FLATTENED, {"x": ("n", 2, 3)})
    assert operators(result) == ["Shape", "Gather", "Unsqueeze", "Concat", "Reshape"]
    for rows in (1, 5):
        assert_same(FLATTENED, result, {"x": np.ones((rows, 2, 3), np.float32)})
    assert result.intermediate_bytes is None


@pytest.mark.parametrize("opset", [11, 17])
def test_attributes_of_shape_are_honoured(opset):
    attributes = "" if opset < 15 else "<start = 1, end = -1>"
    text = f"(int64[k] s, int64 n) {{ s = Shape {attributes} (x)  n = Size (x) }}"
    model = made(text, "float[a,b,c] x", opset)
    result = simplified(model, {"x": (2, 3, 4)})
    assert operators(result) == ["Constant", "Constant"]  # outputs are no initializers
    assert_same(model, result, {"x": np.ones((2, 3, 4), np.float32)})


CONDITIONAL = """(float[2] sum) {
  t0 = Abs (z)
  y = If (flag) <
    then_branch = c () => (float[2] out) <float w = {3}> {
      t = Mul (x, w)
      out = If (flag) <then_branch = a () => (float[2] u) <float w1 = {10}> { u = Add (t, w1) },
        else_branch = b () => (float[2] u) <float w2 = {20}> { u = Sub (t, w2) }>
    },
    else_branch = d () => (float[2] t) { t = Neg (t0) }
  >
  sum = Add (y, t0)
}"""
"""A conditional in another one's branch, which uses values from outside of both."""
OF_THE_CONDITIONAL = "float[2] x, float[2] z, bool flag"


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_takes_the_place_of_its_node(flag):
    model = made(CONDITIONAL, OF_THE_CONDITIONAL)
    result = simplified(model, {}, {"flag": np.array(flag)})
    assert operators(result) == (["Abs", "Mul", "Add", "Add"] if flag else ["Abs", "Neg", "Add"])
    assert [item.name for item in result.proto.graph.input] == ["x", "z"]
    feeds = {"x": np.float32([1, -2]), "z": np.float32([3, -4]), "flag": np.array(flag)}
    assert_same(model, result, feeds)


def test_names_of_branches_that_are_taken_are_changed():
    choice = """{0} = If (yes) <then_branch = a () => (float[2] u) <float w = {{{1}}}> {{ u = Mul (x, w) }},
      else_branch = b () => (float[2] u) {{ u = Neg (x) }}>"""
    nodes = "\n".join(choice.format(*of) for of in (("y", 2), ("z", 3)))
    result = simplified(made(f"(float[2] y, float[2] z) <bool yes = {{1}}> {{ {nodes} }}"))
    y, z = run(result.proto.SerializeToString(), {"x": np.float32([1, -2])})
    assert (y.tolist(), z.tolist()) == ([2, -4], [3, -6])


def test_each_pass_reports_the_nodes_that_it_removed():
    model = made(FLATTEN.replace("\n}", "  unused = Identity (y)\n}"), "float[n,2,3] x")
    known, unused = simplified(model, {"x": (4, 2, 3)}).passes
    assert (known.names, known.nodes_before, known.nodes_after) == (("known-values",), 5, 1)
    assert [(one.rule, one.where) for one in known.applied] == [
        ("known inputs", name) for name in ("Shape", "Gather", "Unsqueeze", "Concat")
    ]
    assert (unused.names, unused.is_changed) == (("unused-nodes",), False)


@pytest.mark.parametrize("names", [["known-values"], ["unused-nodes"], ["known-values", "unused-nodes"]], ids=str)
def test_any_pass_can_be_left_out(names):
    with passes_left_out(*names):
        result = simplified(FLATTENED, {"x": (4, 2, 3)})
        frozen = simplified(FLATTENED, values=TABLES)
    assert_same(FLATTENED, result, TABLES)
    np.testing.assert_array_equal(*run(FLATTENED, TABLES), *run(frozen.proto.SerializeToString(), {}))


def test_a_condition_that_is_not_known_keeps_its_node():
    alias = "before = Abs (z)  t0 = Identity (before)"  # which a branch uses
    model = made(CONDITIONAL.replace("t0 = Abs (z)", alias), OF_THE_CONDITIONAL)
    result = simplified(model)
    assert operators(result) == ["Abs", "If", "Add"]
    for flag in (True, False):
        assert_same(model, result, {"x": np.float32([1, 2]), "z": np.float32([3, 4]), "flag": np.array(flag)})


def test_other_names_of_values_are_gone_but_those_of_outputs():
    nodes = "a = Identity (x)  b = Identity (a)  c = Add (a, b)  y = Identity (c)  gone = Neg (unneeded)"
    model = made(f"(float[2] y) {{ {nodes} }}", "float[2] x, float[2] unneeded")
    result = simplified(model)
    assert operators(result) == ["Add", "Identity"]
    assert [item.name for item in result.proto.graph.input] == ["x", "unneeded"]  # callers give it
    assert_same(model, result, {"x": np.float32([1, 2]), "unneeded": np.float32([1, 2])})


@pytest.mark.parametrize("opset", [17, 21])
def test_weights_stay_quantized(opset):
    known = "int8[2] q = {1, -2}, float s = {0.5}"
    model = made(f"(float[2] y) <{known}> {{ w = DequantizeLinear (q, s)  y = Mul (x, w) }}", opset=opset)
    result = simplified(model)
    assert operators(result) == ["DequantizeLinear", "Mul"]
    assert_same(model, result, {"x": np.float32([1, 2])})


@pytest.mark.parametrize(("rows", "kept"), [(8, False), (100_000, True)])
def test_a_large_value_of_small_ones_stays_computed(rows, kept):
    known = f"float[1] one = {{3}}, int64[1] shape = {{{rows}}}"
    text = f"(float[{rows}] y) <{known}> {{ w = Expand (one, shape)  y = Mul (x, w) }}"
    model = made(text, f"float[{rows}] x")
    result = simplified(model)
    assert operators(result) == (["Expand", "Mul"] if kept else ["Mul"])
    assert_same(model, result, {"x": np.ones(rows, np.float32)})


LARGE = {"w": np.ones((200, 100), np.float32), "v": np.ones((200, 1), np.float32)}


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_large_weight_is_transposed_unless_others_use_it(is_shared):
    nodes = f"t = Transpose <perm = [1, 0]> (w)  y = MatMul (x, t)  z = MatMul (y, {'w' if is_shared else 'v'})"
    model = made(f"(float[1,k] z) {{ {nodes} }}", "float[1,100] x", **LARGE)
    result = simplified(model)
    assert operators(result) == (["Transpose"] if is_shared else []) + ["MatMul", "MatMul"]
    assert len(result.proto.SerializeToString()) < 1.1 * len(model)


def test_a_split_into_billions_takes_no_time_and_stays():
    text = f"(float[2] a, float[2] b) {{ a, b = Split <axis = 0, num_outputs = {2**31 - 1}> (x) }}"
    started = time.thread_time()
    result = simplify(read_model(made(text, "float[4] x", opset=18), LIMITS), {}, {})
    assert operators(result) == ["Split"]
    assert time.thread_time() - started < 2


def test_metadata_of_the_file_stay():
    source = onnx.load_model_from_string(made(FLATTEN, "float[1,2,3] x"))
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
    read = read_model(FLATTENED, ModelLimits())
    before = read.proto.SerializeToString()
    simplify(read, {"x": (4, 2, 3)}, {})
    assert read.proto.SerializeToString() == before


def test_memory_is_that_of_the_values_which_are_needed_at_once():
    model = made("(float[100] y) { a = Neg (x)  b = Abs (a)  c = Exp (b)  y = Add (a, c) }", "float[100] x")
    assert simplified(model).intermediate_bytes == 3 * 400


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
