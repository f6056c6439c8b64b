"""float64, which WebNN lacks, and int64, which some devices lack: refused, or narrower where the caller allows it."""

import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS, on_each
from spec_tests.support.watched_device import context_on
from webnn_py import MLGraphBuilder
from webnn_py.core.reference import ReferenceBackend
from webnn_py.onnx_models import OnnxModel, TensorInfo, UnsupportedModelError

X = np.linspace(-1, 1, 12).reshape(3, 4)
WAY_OUT = "allow float64 → float32: OnnxModel.load(…, narrow_float64=True)"
MIXED = """(double[3,4] y, float[3,4] single, double[4] known, double[3,4] like)
<double[4] row = {1e300, -1e300, 1e-300, 0.5}, double[1] small = {1e-9}> {
  one = Constant <value = double[1] {1.0}> ()
  nearly = Add (one, small)
  known = Mul (row, one)
  difference = Sub (nearly, one)
  billion = Constant <value = double {1e9}> ()
  unit = Mul (difference, billion)
  y = Mul (x, unit)
  single = Cast <to = 1> (y)
  again = Cast <to = 11> (single)
  like = CastLike (again, one)
}"""
DATA = parsed(MIXED, inputs="double[3,4] x")


backend = on_each(BACKENDS)


async def test_float64_becomes_float32_where_it_is_allowed(context):
    model = OnnxModel.load(DATA, narrow_float64=True)
    assert model.narrow_float64
    assert model.inputs["x"] == TensorInfo("float32", (3, 4))
    assert model.outputs["y"] == TensorInfo("float32", (3, 4))
    actual = await run(context, model, {"x": X})
    wanted = run_onnxruntime(DATA, {"x": X})
    largest = np.finfo(np.float32).max
    wanted[2] = wanted[2].clip(-largest, largest)  # finite values stay finite
    with np.errstate(under="ignore"):
        assert_same(actual, [item.astype(np.float32) for item in wanted])


async def test_values_of_inputs_may_have_either_type(context):
    model = OnnxModel.load(DATA, narrow_float64=True)
    for dtype in (np.float32, np.float64):
        outputs = model.convert(MLGraphBuilder(context), input_values={"x": X.astype(dtype)})
        assert [operand.data_type for operand in outputs.values()] == ["float32"] * 4
    with pytest.raises(ValueError, match="the value of input 'x' is int64; it must be float64"):
        model.convert(MLGraphBuilder(context), input_values={"x": X.astype(np.int64)})


async def test_float64_is_refused_and_the_refusal_names_the_option(context):
    model = OnnxModel.load(DATA)
    assert not model.narrow_float64
    assert model.inputs["x"] == TensorInfo("float64", (3, 4))
    with pytest.raises(UnsupportedModelError) as caught:
        model.convert(MLGraphBuilder(context))
    assert [(item.subject, item.way_out) for item in caught.value.problems] == [
        ("input 'x'", WAY_OUT),
        ("output 'known'", WAY_OUT),
    ]
    with pytest.raises(UnsupportedModelError) as caught:
        model.convert(MLGraphBuilder(context), input_values={"x": X})
    assert {item.way_out for item in caught.value.problems} == {WAY_OUT}


async def test_a_cast_to_float64_is_refused_by_name(context):
    text = "(double[3,4] y) { y = Cast <to = 11> (x) }"
    with pytest.raises(UnsupportedModelError, match=r"node 'Cast of y' .* attribute to is float64; .*; allow"):
        OnnxModel.load(parsed(text)).convert(MLGraphBuilder(context))


INTEGERS = """(int64[2,3] y, float[2,3,4] rows, int64[2] places, int64[2,3] counted, int64[4] known, float[2,3] f)
<float[8,4] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
 27, 28, 29, 30, 31}, int64[3] add = {1, -1, 4}, int64 most = {9223372036854775807}> {
  moved = Add (x, add)
  y = Min (moved, most)
  rows = Gather (table, x)
  sums = ReduceSum <keepdims = 0> (rows, last)
  last = Constant <value_ints = [2]> ()
  places = ArgMax <axis = 1, keepdims = 0> (sums)
  counted = Cast <to = 7> (sums)
  shape = Shape (rows)
  known = Concat <axis = 0> (shape, last)
  f = Cast <to = 1> (x)
}"""
INTEGER_DATA = parsed(INTEGERS, inputs="int64[2,3] x")
INTEGER_X = np.array([[0, 3, 1], [2, 7, 4]])


@pytest.fixture
async def without_int64(ml):
    """A context whose device lacks 64-bit integers, as GPUs do whose shaders have none."""
    backend = ReferenceBackend()
    types = tuple(name for name in backend.capabilities.data_types if not name.endswith("int64"))
    backend.capabilities = attrs.evolve(backend.capabilities, data_types=types)
    return await context_on(ml, backend)


async def test_int64_becomes_int32_where_it_is_allowed(without_int64):
    model = OnnxModel.load(INTEGER_DATA, narrow_int64=True)
    assert model.narrow_int64
    assert model.inputs["x"] == TensorInfo("int32", (2, 3))
    assert model.outputs["y"] == TensorInfo("int32", (2, 3))
    actual = await run(without_int64, model, {"x": INTEGER_X})
    wanted = run_onnxruntime(INTEGER_DATA, {"x": INTEGER_X})
    assert_same(actual, [item.astype(np.int32) if item.dtype == np.int64 else item for item in wanted])


async def test_int64_is_refused_where_the_device_lacks_it_and_the_refusal_names_the_option(without_int64):
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(INTEGER_DATA).convert(MLGraphBuilder(without_int64))
    way_out = "allow int64 → int32: OnnxModel.load(…, narrow_int64=True)"
    assert [(item.subject, item.way_out) for item in caught.value.problems] == [("input 'x'", way_out)]
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(INTEGER_DATA).convert(MLGraphBuilder(without_int64), input_values={"x": INTEGER_X})
    assert {item.way_out for item in caught.value.problems} == {way_out}
