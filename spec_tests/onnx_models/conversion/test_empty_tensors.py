"""Tensors without elements: WebNN has none, but what has no elements is known."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
PASSING = """(float[3,4] y, int64[2] shape, float[3] sums, float[a,b] split)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] three = {3}, int64[2] sizes = {0, 3}, float[1,4] row = {1, 2, 3, 4},
 int64[3] nowhere = {-1, 2, 0}> {
  nothing = Slice (x, three, three, zero)
  bare = Add (nothing, row)
  turned = Mul (bare, last)
  last = Slice (x, zero, one, zero)
  many = Cast <to = 7> (turned)
  few = Cast <to = 1> (many)
  wide = Where (less, few, nothing)
  less = Less (nothing, few)
  y = Concat <axis = 0> (nothing, x, wide)
  shape = Shape (few)
  none, all = Split <axis = 0> (x, sizes)
  split = Concat <axis = 1> (all, all)
  upright = Transpose (none)
  flat = MatMul (x, upright_4)
  upright_4 = Transpose (last)
  sums = Squeeze (flat, one)
}"""


async def test_empty_tensors_pass(context):
    data = parsed(PASSING)
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


CACHED = parsed(
    """(float[1,n,4] present, float[1,1,n] weights) {
  present = Concat <axis = 1> (past, x)
  turned = Transpose <perm = [0, 2, 1]> (present)
  last = Gather <axis = 1> (present, place)
  place = Constant <value_ints = [-1]> ()
  weights = MatMul (last, turned)
}""",
    inputs="float[1,n,4] past, float[1,3,4] x",
)


async def test_an_input_without_elements_is_none_of_the_graph(context):
    feeds = {"x": X[None], "past": X[None, :0]}
    builder = MLGraphBuilder(context)
    OnnxModel.load(CACHED).convert(builder, {"past": [1, 0, 4]})
    assert builder.input_names == {"x"}
    actual = await run(context, CACHED, feeds, input_shapes={"past": [1, 0, 4]})
    assert_same(actual, run_onnxruntime(CACHED, feeds))


@pytest.mark.parametrize("shape", [[0, 2**40, 2**40], [0, -1, 4], [0, 2**31 + 1, 1]])
async def test_a_shape_that_cannot_be_is_refused(context, shape):
    model = OnnxModel.load(parsed("(float[a,b,c] y) { y = Identity (x) }", inputs="float[a,b,c] x"))
    with pytest.raises(ValueError, match=r"the shape of input 'x' is \[0, .*\]; it must be at least 0 everywhere"):
        model.convert(MLGraphBuilder(context), {"x": shape})


async def test_an_input_without_elements_has_a_type_that_can_be(context):
    model = OnnxModel.load(parsed("(string[a] y) { y = Identity (x) }", inputs="string[a] x"))
    with pytest.raises(UnsupportedModelError, match="input 'x': the data type is string; WebNN has no"):
        model.convert(MLGraphBuilder(context), {"x": [0]})


@pytest.mark.parametrize("kind", ["string", "bfloat16"])
async def test_a_type_that_webnn_lacks_is_refused_before_an_open_shape(context, kind):
    text = "(float[n] y, float[n] z) { y = Relu (x) z = CastLike (s, x) }"
    model = OnnxModel.load(parsed(text, inputs=f"float[n] x, {kind}[n] s"))
    with pytest.raises(UnsupportedModelError, match=f"input 's': the data type is {kind}; ") as caught:
        model.convert(MLGraphBuilder(context))
    assert [problem.name for problem in caught.value.problems] == ["s"]
    with pytest.raises(ValueError, match="give its shape in input_shapes"):  # of what is left out, nobody asks
        model.convert(MLGraphBuilder(context), outputs=["y"])


async def test_an_input_that_is_no_tensor_is_refused_before_an_open_shape(context):
    model = OnnxModel.load(parsed("(float[n] y) { y = SequenceAt (s, x) }", inputs="seq(float[n]) s, int64 x"))
    with pytest.raises(UnsupportedModelError, match="input 's': it is no tensor; an input of the graph must be one"):
        model.convert(MLGraphBuilder(context))
