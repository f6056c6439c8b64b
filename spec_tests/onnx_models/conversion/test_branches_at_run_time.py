"""An If whose condition is an input of the graph: both branches are drawn, and the condition chooses."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS, on_each
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
INPUTS = "float[3,4] x, bool[1] c, bool d"


backend = on_each(BACKENDS)


def model(then_branch, else_branch, rest="", outputs="y", shape="3,4"):
    text = f"""(float[{shape}] y) {{
      {outputs} = If (c) <then_branch = t () => {then_branch}, else_branch = e () => {else_branch}>
      {rest}
    }}"""
    return parsed(text, inputs=INPUTS)


async def check(context, data, *, c, d=True):
    feeds = {"x": X, "c": np.array([c]), "d": np.array(d)}
    assert_same(await run(context, data, feeds), run_onnxruntime(data, feeds))


@pytest.mark.parametrize("c", [True, False])
async def test_the_condition_chooses_while_the_graph_runs(context, c):
    inner = """If (d) <then_branch = p () => (float[3,4] i) { i = Exp (x) },
      else_branch = q () => (float[3,4] j) { k = Constant <value_float = 2.0> ()  j = Mul (x, k) }>"""
    data = model(f"(float[3,4] a) {{ b = {inner} a = Tanh (b) }}", "(float[3,4] f) { g = Log (x)  f = Neg (g) }")
    await check(context, data, c=c, d=not c)


async def test_equal_known_values_of_both_branches_stay_known(context):
    branches = [
        f"""(int64[2] {name}s, float[3,4] {name}) {{
          {name} = {operator} (x)
          {name}s = Constant <value_ints = [2, 6]> ()
        }}"""
        for name, operator in (("a", "Sin"), ("f", "Cos"))
    ]
    await check(context, model(*branches, "y = Reshape (z, s)", "s, z", "2,6"), c=False)


@pytest.mark.parametrize(
    ("then_branch", "reason"),
    [
        (
            "(float[4] a) { zero = Constant <value_int = 0> ()  a = Gather (x, zero) }",
            "for output 'y' the branches give the shapes [4] and [3, 4]; they must be the same",
        ),
        (
            "(float[3,4] a) { a = RandomNormalLike (x) }",
            "in one of the branches node 'RandomNormalLike of a' (RandomNormalLike, opset 16)",
        ),
    ],
    ids=["other shapes", "an operator that is not supported"],
)
async def test_branches_between_which_nothing_can_choose_are_refused(context, then_branch, reason):
    data = model(then_branch, "(float[3,4] f) { f = Exp (x) }")
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(data).convert(MLGraphBuilder(context))
    (problem,) = caught.value.problems
    assert problem.name == "If of y"
    assert problem.reason.startswith(f"its condition is computed when the graph runs, and {reason}")
    assert problem.way_out == "freeze input 'c', by input_values"
    assert_same(await run(context, data, {"x": X}, input_values={"c": np.array([False])}), [np.exp(X)])
