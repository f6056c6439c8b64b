"""Sequences of tensors, of which nothing is left in the graph, against onnxruntime."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import ModelLimits, OnnxModel, UnsupportedModelError

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

COLLECTED = """(float[n,4] all, float[m,3,4] apart, int64 count)
<int64 three = {3}, bool yes = {1}, int64 first = {0}> {
  none = SequenceEmpty ()
  rows, tables = Loop (three, yes, none, none)
    <body = b (int64 i, bool c, seq(float[k,4]) a, seq(float[3,4]) d)
      => (bool c2, seq(float[k,4]) ao, seq(float[3,4]) do)
  {
    c2 = Identity (c)
    nought = Constant <value_ints = [0]> ()
    at = Unsqueeze (i, nought)
    row = Gather <axis = 0> (x, at)
    ao = SequenceInsert (a, row)
    f = Cast <to = 1> (i)
    table = Mul (x, f)
    zero = Constant <value_int = 0> ()
    do = SequenceInsert (d, table, zero)
  }>
  same = Identity (rows)
  all = ConcatFromSequence <axis = 0> (same)
  fewer = SequenceErase (tables, first)
  apart = ConcatFromSequence <axis = -3, new_axis = 1> (fewer)
  count = SequenceLength (fewer)
}"""
CUT = """(float[3] single, float[2,4] two, float[3,2] sized, float[1,4] rest, float[3,4] known, float[3,4] back)
<int64 first = {0}, int64 last = {-1}, int64 second = {1}, int64 two_ = {2}, int64[3] sizes = {1, 2, 1},
 float[2,3,4] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}> {
  columns = SplitToSequence <axis = 1, keepdims = 0> (x)
  single = SequenceAt (columns, last)
  pairs = SplitToSequence <axis = 0> (x, two_)
  two = SequenceAt (pairs, first)
  rest = SequenceAt (pairs, second)
  pieces = SplitToSequence <axis = -1> (x, sizes)
  sized = SequenceAt (pieces, second)
  tables = SplitToSequence <keepdims = 0> (table)
  plane = SequenceAt (tables, second)
  known = Add (plane, x)
  made = SequenceConstruct (plane, x)
  back = SequenceAt (made, last)
}"""


@pytest.mark.parametrize("text", [COLLECTED, CUT], ids=["collected", "cut"])
async def test_sequences_give_what_onnxruntime_computes(context, text):
    data = parsed(text)
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


ROWS = "s = SplitToSequence (x)  "
REFUSED = [
    ("y = SequenceAt (x, zero)", "its first input is no sequence of tensors; it must be one"),
    (ROWS + "y = SequenceAt (s, p)", "input position is computed when the graph runs; it must be known while build"),
    (ROWS + "y = SequenceAt (s, far)", "input position is 7; it must be from -3 to 2"),
    (ROWS + "y = SequenceAt (s)", "input position is missing; it is needed"),
    (ROWS + "t = SequenceInsert (s, x, far)  y = SequenceAt (t, zero)", "input position is 7; it must be from -3 to 3"),
    (ROWS + "t = SequenceInsert (s)  y = SequenceAt (t, zero)", "a tensor that is needed is absent"),
    (ROWS + "t = SequenceInsert (s, s)  y = SequenceAt (t, zero)", "a sequence of tensors stands where a tensor"),
    (ROWS + "t = SequenceErase (s, far)  y = SequenceAt (t, zero)", "input position is 7; it must be from -3 to 2"),
    (ROWS + "y = Neg (s)", "a sequence of tensors stands where a tensor is needed"),
    (ROWS + "o = Optional (s)  y = Neg (o)", "the operator is not supported"),
    (ROWS + "t = SequenceInsert (s, x)  y = ConcatFromSequence <axis = 1> (t)", "differ in more than the size of axis"),
    (ROWS + "t = SequenceInsert (s, x)  y = ConcatFromSequence <axis = 0, new_axis = 1> (t)", "have the shapes [(1, "),
    (ROWS + "y = ConcatFromSequence <axis = 2> (s)", "the axis of the sequence is 2; it must be from -2 to 1"),
    (ROWS + "y = ConcatFromSequence (s)", "its sequence is empty, or attribute axis is missing; both must be there"),
    ("s = SequenceEmpty ()  y = ConcatFromSequence <axis = 0> (s)", "its sequence is empty, or attribute axis is"),
    ("s = SplitToSequence (x, far)  y = SequenceAt (s, one)", "input position is 1; it must be from -1 to 0"),
    ("s = SplitToSequence (x, four)  y = SequenceAt (s, one)", "input split is [2, 2]; it must be at least 0 every"),
    ("s = SplitToSequence (x, zero)  y = SequenceAt (s, one)", "input split is [0]; it must be at least 0 everywhere"),
    ("s = SequenceEmpty ()  t = SequenceErase (s)  y = SequenceAt (t, zero)", "is -1; it must be from 0 to -1"),
    (ROWS + "y = If (s) <then_branch = t () => (float[3,4] q) { q = Neg (x) }>", "a sequence of tensors stands where"),
]  # fmt: skip


def problem(context, nodes, *, outputs="float[3,4] y", opset=16, **limits):
    known = "int64 zero = {0}, int64 one = {1}, int64 far = {7}, int64[2] four = {2, 2}, bool yes = {1}"
    data = parsed(f"({outputs}) <{known}> {{ {nodes} }}", inputs="float[3,4] x, int64 p", opset=opset)
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(data, limits=ModelLimits(**limits)).convert(MLGraphBuilder(context))
    (found,) = caught.value.problems
    return str(found)


@pytest.mark.parametrize(("nodes", "text"), REFUSED, ids=[text[:60] for _, text in REFUSED])
async def test_invalid_uses_of_sequences_are_refused(context, nodes, text):
    assert text in problem(context, nodes)


async def test_an_operator_of_sequences_without_a_rule_is_not_supported(context):
    nodes = "s = SplitToSequence (x)  t = SequenceMap (s) <body = b (float[1,4] a) => (float[1,4] c) { c = Neg (a) }>"
    told = problem(context, f"{nodes}  y = ConcatFromSequence <axis = 0> (t)", opset=17)
    assert told == "node 'SequenceMap of t' (SequenceMap, opset 17): the operator is not supported"


async def test_a_sequence_is_no_output(context):
    told = problem(context, "y = SplitToSequence (x)", outputs="seq(float[1,4]) y")
    assert told == "output 'y': a sequence of tensors stands where a tensor is needed"


async def test_the_items_of_sequences_count_as_bytes(context):
    nodes = """s = SequenceConstruct (x)  t = Loop (, yes, s)
      <body = b (int64 i, bool c, seq(float[3,4]) a) => (bool c, seq(float[3,4]) d) { d = SequenceInsert (a, x) }>
      y = SequenceAt (t, zero)"""
    assert "limits.bytes allows 4,000" in problem(context, nodes, bytes=4000)
