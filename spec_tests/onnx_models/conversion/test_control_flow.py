"""If, Loop and Scan, unrolled, against onnxruntime, which runs them."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS, on_each
from webnn_py import MLGraphBuilder
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import OnnxModel

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


backend = on_each(BACKENDS)


LOOPS = """
(float[3,4] v, float[n,3,4] s, float[3,4] w, float[m,4] t, float[3,4] early, float[k] counts, float[3,4] none)
<int64 four = {4}, bool yes = {1}, bool no = {0}, float[4] row = {1, 2, 3, 4}, int64[1] zero = {0}>
{
  v, s = Loop (four, yes, x) <body = both (int64 i, bool c, float[3,4] a) => (bool co, float[3,4] ao, float[3,4] so)
    <float[1] half = {0.5}>
  {
    co = Identity (c)
    f = Cast <to = 1> (i)
    p = Mul (f, row)
    h = Mul (p, half)
    ao = Add (a, h)
    so = Mul (ao, x)
  }>
  shape = Shape (x)
  rows = Gather (shape, zero)
  w, t = Loop (rows, , x) <body = by_row (int64 i2, bool c2, float[3,4] a2) => (bool co2, float[3,4] ao2, float[4] so2)
  {
    co2 = Identity (c2)
    so2 = Gather (a2, i2)
    ao2 = Sub (a2, so2)
  }>
  early, unused, counts = Loop (, yes, x, row)
    <body = until (int64 i3, bool c3, float[3,4] a3, float[4] r3)
      => (bool co3, float[3,4] ao3, float[4] ro3, float counts3)
  {
    two = Constant <value = int64 {2}> ()
    co3 = Less (i3, two)
    ao3 = Mul (a3, r3)
    ro3 = Add (r3, r3)
    counts3 = Cast <to = 1> (i3)
  }>
  none = Loop (four, no, x) <body = never (int64 i4, bool c4, float[3,4] a4) => (bool co4, float[3,4] ao4)
  {
    co4 = Identity (c4)
    ao4 = Exp (a4)
  }>
}"""

NESTED = """(float[3,4] v, float[n,m] s)
<int64 two = {2}, int64 three = {3}, bool yes = {1}, int64[1] nought = {0}, int64 one = {1}>
{
  v, s = Loop (three, yes, x) <body = outer (int64 i, bool c, float[3,4] a) => (bool c, float[3,4] ao, float[m] so)
  {
    is_one = Equal (i, one)
    even_rows = Neg (a)
    even = If (is_one) <
      then_branch = plus () => (float[3,4] p) { e = Exp (x)  p = Add (a, e) },
      else_branch = inner_loop () => (float[3,4] q) {
        q = Loop (two, yes, a) <body = inner (int64 j, bool d, float[3,4] b) => (bool d, float[3,4] bo) {
          sum = Add (i, j)
          picked = Gather (even_rows, j)
          f = Cast <to = 1> (sum)
          g = Mul (picked, f)
          bo = Add (b, g)
        }>
      }
    >
    ao = Mul (even, x)
    so = ReduceSum <keepdims = 0> (ao, nought)
  }>
}"""

SCANS = """(float[4] state, float[3,4] sums, float[4,3] across, float[4,3] swapped, float[3,4] back, float[2,3] known)
<float[4] start = {0, 1, 0, 1}, float[2,3] table = {1, 2, 3, 4, 5, 6}, float[3] zeros = {0, 0, 0}>
{
  state, sums = Scan <num_scan_inputs = 1, body = forward (float[4] a, float[4] b) => (float[4] c, float[4] c2)
  {
    c = Add (a, b)
    c2 = Mul (c, b)
  }> (start, x)
  across, swapped = Scan <num_scan_inputs = 2, scan_input_axes = [1, -1], scan_input_directions = [0, 1],
    scan_output_axes = [0, 0], scan_output_directions = [0, 1],
    body = both (float[3] d, float[3] e) => (float[3] f, float[3] g)
  {
    f = Sub (d, e)
    g = Mul (d, x_0)
  }> (x, x)
  x_0 = Gather <axis = 1> (x, first)
  first = Constant <value_int = 1> ()
  back = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], scan_output_directions = [0],
    body = columns (float[3] k) => (float[3] l)
  {
    l = Exp (k)
  }> (x)
  final, known = Scan <num_scan_inputs = 1, body = sums (float[3] m, float[3] n) => (float[3] o, float[3] o2)
  {
    o = Add (m, n)
    o2 = Identity (o)
  }> (zeros, table)
}"""

MODELS = {"loops": LOOPS, "nested": NESTED, "scans": SCANS}


@pytest.mark.parametrize("name", MODELS)
async def test_iterations_give_what_onnxruntime_computes(context, name):
    data = parsed(MODELS[name])
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


@pytest.mark.parametrize("opset", [7, 11, 13, 16, 19, 21, 23, 24, 25])
async def test_loop_and_if_mean_the_same_in_all_versions(context, opset):
    text = """(float[3,4] y) <int64 two = {2}, bool yes = {1}> {
      y = Loop (two, yes, x) <body = b (int64 i, bool c, float[3,4] a) => (bool c, float[3,4] n)
      {
        n = If (c) <
          then_branch = t () => (float[3,4] p) { p = Tanh (a) },
          else_branch = e () => (float[3,4] q) { q = Neg (a) }
        >
      }>
    }"""
    assert_same(await run(context, parsed(text, opset=opset), {"x": X}), [np.tanh(np.tanh(X))])


@pytest.mark.parametrize("lengths", ["", "lengths"])
async def test_the_first_scan_takes_a_batch(context, lengths):
    text = f"""(float[2,2] state, float[2,3,2] sums) <float[2,2] start = {{0, 1, 2, 3}}, int64[2] lengths = {{3, 3}}> {{
      state, sums = Scan <num_scan_inputs = 1, directions = [1],
        body = b (float[2] a, float[2] e) => (float[2] n, float[2] o) {{ n = Add (a, e)  o = Neg (n) }}
      > ({lengths}, start, x)
    }}"""
    data, feeds = parsed(text, inputs="float[2,3,2] x", opset=8), {"x": X.reshape(2, 3, 2)}
    assert_same(await run(context, data, feeds), run_onnxruntime(data, feeds))


async def test_known_iterations_leave_no_nodes(context):
    text = """(float[3,4] y) <int64 count = {5}, bool yes = {1}, int64 one = {1}> {
      total, steps = Loop (count, yes, one) <body = b (int64 i, bool c, int64 a) => (bool c, int64 n, int64 i)
      {
        n = Add (a, i)
      }>
      all = ReduceSum <keepdims = 0> (steps)
      sum = Add (total, all)
      f = Cast <to = 1> (sum)
      y = Add (x, f)
    }"""
    data = parsed(text)
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(data).convert(builder)
    assert [node.operator.name for node in drawing_of("a test", outputs).nodes] == ["add"]
    assert_same(await run(context, data, {"x": X}), [X + 21])


async def test_a_body_may_end_a_loop_that_has_no_condition(context):
    text = """(float[3,4] y) <int64 four = {4}, int64 one = {1}> {
      y = Loop (four, , x) <body = b (int64 i, bool c, float[3,4] a) => (bool d, float[3,4] n)
      {
        d = Less (i, one)
        n = Add (a, x)
      }>
    }"""
    data = parsed(text)
    assert_same(await run(context, data, {"x": X}), [3 * X])
    assert_same(run_onnxruntime(data, {"x": X}), [3 * X])


async def test_a_loop_without_iterations_gives_empty_tensors(context):
    text = """(float[3,4] y) <int64 zero = {0}, bool yes = {1}> {
      same, none = Loop (zero, yes, x) <body = b (int64 i, bool c, float[3,4] a) => (bool c, float[3,4] n, float[4] r)
      {
        n = Exp (a)
        r = Gather (a, i)
      }>
      both = Concat <axis = 0> (same, none)
      y = Neg (both)
    }"""
    data = parsed(text)
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


async def test_a_body_s_nodes_are_labelled_with_the_iteration(context):
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(parsed(NESTED)).convert(builder)
    labels = {node.label for node in drawing_of("a test", outputs).nodes}
    assert {"Loop of v[0]/Loop of q[1]/Add of bo", "Loop of v[1]/Add of p"} <= labels
