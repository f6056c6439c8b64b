"""If, Loop and Scan that cannot be unrolled, and why."""

import pytest

from spec_tests.onnx_models.single_node import parsed
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import ModelLimits, OnnxModel, UnsupportedModelError

KNOWN = """int64 four = {4}, bool yes = {1}, int64[2] pair = {1, 2}, float[4] row = {1, 2, 3, 4},
float[3,4] wide = {0,0,0,0,0,0,0,0,0,0,0,0}"""
AT_RUN_TIME = (
    "its {} is computed when the graph runs; it must be known while building; freeze input {}, by input_values"
)


def loop(inputs, *, outputs="y", body="(int64 i, bool c, float[3,4] a) => (bool c, float[3,4] n) { n = Exp (a) }"):
    return f"{outputs} = Loop ({inputs}) <body = b {body}>"


def scan(inputs, attributes="num_scan_inputs = 1"):
    return f"""z, y = Scan <{attributes},
      body = b (float[4] a, float[4] e) => (float[4] n, float[4] o) {{ n = Add (a, e)  o = Neg (n) }}> ({inputs})"""


def if_else(condition, branch="t () => (float[3,4] p) { p = Exp (x) }"):
    return f"y = If ({condition}) <then_branch = {branch}, else_branch = e () => (float[3,4] q) {{ q = Neg (x) }}>"


UNKNOWN_CONDITION = """(int64 i, bool c, float[3,4] a) => (bool d, float[3,4] n)
{ f = Cast <to = 1> (b0)  n = Mul (a, f)  s = ReduceSum <keepdims = 0> (n)  d = Cast <to = 9> (s) }"""
OTHER_SHAPES = """(int64 i, bool c, float[3,4] a) => (bool c, float[3,4] a, int64[k] r)
{ zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()  r = Range (zero, i, one) }"""
TOO_MANY = "with its iterations and functions the model has more nodes than limits.nodes allows, 1,000"

REFUSED = [
    (loop("m, yes, x"), AT_RUN_TIME.format("trip count", "'m'")),
    (loop("four, b0, x"), AT_RUN_TIME.format("condition", "'b0'")),
    (loop("pair, yes, x"), "its trip count is int64 [2]; it must be a single integer"),
    (loop("four, pair, x"), "its condition has the shape [2]; it must be a single boolean"),
    (loop("four, yes, x, x"), "its body has 3 inputs and 2 outputs; it must have 4, and at least 3"),
    (loop(""), "its body has 3 inputs and 2 outputs; it must have 2, and at least 1"),
    (loop("four, yes, x", outputs="y, z"), "it has 2 outputs; its body gives 1"),
    (loop("four, yes, x").replace("body =", "other ="), "it has 0 graphs called body; it must have one"),
    (loop(", yes, x"), TOO_MANY),
    (loop(", , x"), TOO_MANY),
    (
        loop("four, yes, x", body=UNKNOWN_CONDITION),
        "the condition that its body gives is computed when the graph runs; it must be known while building",
    ),
    (
        loop("four, yes, wide", outputs="z, y", body=OTHER_SHAPES),
        "the parts of 'r' have the shapes [(0,), (1,), (2,), (3,)]; they must be the same",
    ),
    (scan("row, x", "num_scan_inputs = 3"), "attribute num_scan_inputs is [3]; it must be given once, from 1 to 2"),
    (scan("row, x, x"), "its body has 2 inputs and 2 outputs; it must have 3, and at least 2"),
    (
        scan("row, x", "num_scan_inputs = 1, scan_input_axes = [0, 1]"),
        "attribute scan_input_axes is [0, 1]; it must be given once, of 1 integers",
    ),
    (
        scan("row, x", "num_scan_inputs = 1, scan_input_axes = [2]"),
        "attribute scan_input_axes is 2; it must be from -2 to 1",
    ),
    (
        scan("row, x", "num_scan_inputs = 1, scan_output_axes = [2]"),
        "the axis of 'o' is 2; it must be from -2 to 1",
    ),
    (
        scan("row, x", "num_scan_inputs = 1, scan_output_directions = [2]"),
        "attribute scan_output_directions is [2]; it must be of 0, 1 only",
    ),
    (scan("x, row", "num_scan_inputs = 2"), "the lengths of the sequences is [3, 4]; it must be the same"),
    (if_else("pair"), "its condition has the shape [2]; it must be a single boolean"),
    (if_else(""), "its condition is missing; it is needed"),
]


def model(nodes, opset=16):
    return parsed(f"(float[3,4] y) <{KNOWN}> {{ {nodes} }}", inputs="float[3,4] x, int64 m, bool b0", opset=opset)


def problems(context, data):
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(data, limits=ModelLimits(nodes=1000)).convert(MLGraphBuilder(context))
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(("nodes", "text"), REFUSED, ids=[text[:70] for _, text in REFUSED])
async def test_control_flow_that_cannot_be_unrolled_is_refused(context, nodes, text):
    (problem,) = problems(context, model(nodes))
    assert problem.partition(" (")[0].startswith("node ")
    assert text in problem


@pytest.mark.parametrize(
    ("inputs", "attributes", "text"),
    [
        ("few, states, xs", "", "input sequence_lens is [1, 3]; it must be 3 everywhere, the length of the sequences"),
        (
            "runs, states, xs",
            "",
            "input sequence_lens is computed when the graph runs; it must be known while building",
        ),
        (", x, xs", "", "the lengths of the sequences is [2, 3]; it must be the same"),
        (", states, xs", ", directions = [2]", "attribute directions is [2]; it must be of 0, 1 only"),
    ],
)
async def test_a_scan_of_a_batch_that_cannot_be_unrolled_is_refused(context, inputs, attributes, text):
    known = """int64[2] few = {1, 3}, float[2,2] states = {1, 2, 3, 4}"""
    nodes = f"""z, y = Scan <num_scan_inputs = 1{attributes},
      body = b (float[2] a, float[2] e) => (float[2] n, float[2] o) {{ n = Add (a, e)  o = Neg (n) }}> ({inputs})"""
    given = "float[3,2] x, float[2,3,2] xs, int64[2] runs"
    (problem,) = problems(context, parsed(f"(float[2,3,2] y) <{known}> {{ {nodes} }}", inputs=given, opset=8))
    assert text in problem


async def test_a_problem_in_a_body_is_reported_once_without_those_that_follow(context):
    body = """(int64 i, bool c, float[3,4] a) => (bool c, float[3,4] n)
    { d = RandomNormalLike (x)  e = Add (a, d)  k = Elu <gamma = 2.0> (x)  n = Add (e, k) }"""
    nodes = f"{loop('four, yes, x', outputs='z', body=body)}  {loop('four, yes, z', body=body)}"
    told = problems(context, model(nodes))
    assert [problem.partition(":")[0] for problem in told] == [
        "node 'Loop of z[0]/RandomNormalLike of d' (RandomNormalLike, opset 16)",
        "node 'Loop of z[0]/Elu of k' (Elu, opset 16)",
        "node 'Loop of y[0]/RandomNormalLike of d' (RandomNormalLike, opset 16)",
        "node 'Loop of y[0]/Elu of k' (Elu, opset 16)",
    ]


@pytest.mark.parametrize(
    "nodes",
    ["c = RandomNormalLike (x)  y = If (c) <{}>", "c = RandomNormalLike (x)  y = Loop (c, yes, x) <body = b {}>"],
)
async def test_nodes_that_depend_on_a_refused_node_are_not_reported(context, nodes):
    branches = """then_branch = t () => (float[3,4] p) { p = Exp (x) },
    else_branch = e () => (float[3,4] q) { q = Neg (x) }"""
    body = "(int64 i, bool d, float[3,4] a) => (bool d, float[3,4] n) { n = Exp (a) }"
    (problem,) = problems(context, model(nodes.format(branches if "If" in nodes else body)))
    assert problem.startswith(
        "node 'RandomNormalLike of c' (RandomNormalLike, opset 16): the operator is not supported"
    )


async def test_nested_loops_end_at_the_limit(context):
    inner = "(int64 j, bool d, float[3,4] e) => (bool d, float[3,4] o) { o = Exp (e) }"
    middle = f"(int64 k, bool g, float[3,4] f) => (bool g, float[3,4] p) {{ p = Loop (m9, g, f) <body = i {inner}> }}"
    outer = f"(int64 i, bool c, float[3,4] a) => (bool c, float[3,4] n) {{ n = Loop (m9, c, a) <body = m {middle}> }}"
    nodes = f"m9 = Constant <value_int = 1000000000> ()  {loop('m9, yes, x', body=outer)}"
    (problem,) = problems(context, model(nodes))
    assert problem.startswith("node 'Loop of y[0]/Loop of n[0]/Loop of p'")
    assert TOO_MANY in problem
