import numpy as np
import pytest
from onnx import helper

from spec_tests.onnx_models import single_node
from spec_tests.onnx_models.single_node import parsed
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder
from webnn_py.core.operators.declaration import Operator
from webnn_py.onnx_models import ModelLimits, OnnxModel, UnsupportedModelError
from webnn_py.onnx_models.conversion import model_conversion
from webnn_py.onnx_models.folding import evaluation
from webnn_py.onnx_models.limits import Expenses

X = np.array([1, -2, 0.5, 3], np.float32)
ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)


def looped(nodes, trips):
    """Return a model of a loop that carries a state of four floats, ``s`` to ``t``."""
    known = f"int64 trips = {{{trips}}}, float[2,4] rows = {{0, 1, 2, 3, 4, 5, 6, 7}}"
    body = f"b (int64 i, bool on, float[4] s) => (bool goes_on, float[4] t) {{ goes_on = Identity (on) {nodes} }}"
    return parsed(f"(float[4] y) <{known}> {{ y = Loop (trips, , x) <body = {body}> }}", inputs="float[4] x", opset=17)


async def run(context, nodes, trips):
    (result,) = await single_node.run(context, looped(nodes, trips), {"x": X})
    return result


def repeated(step, trips):
    """Return the state after each step of a loop in numpy."""
    state = X
    for index in range(trips):
        state = step(state, index)
    return state


async def test_the_steps_of_a_loop_are_drawn_alike_without_being_checked_again(context, monkeypatch):
    checked = noted(monkeypatch, Operator, "infer", lambda operator, _given: operator.name)
    result = await run(context, "u = Tanh (s) t = Add (u, s)", 20)
    np.testing.assert_allclose(result, repeated(lambda s, _: np.tanh(s) + s, 20), rtol=1e-5)
    # The state of the first step is an input, that of the others is not: each kind is checked once.
    assert checked.count("tanh") == 2, checked


LOOPS = {
    "an operator has two outputs": (
        """u = Tanh (s)  p, q = Split <axis = 0> (u)  r = Concat <axis = 0> (q, p)
        double = Add (i, i)  factor = Cast <to = 1> (double)  v = Add (r, factor)  t = Sub (v, u)""",
        20,
        lambda s, step: np.roll(np.tanh(s), 2) + 2 * step - np.tanh(s),
        1e-5,
    ),
    # Every second step adds a float, which is looked up by its value.
    "inputs change at each step": (
        """u = Tanh (s)  period = Constant <value_int = 7> ()  place = Mod (i, period)  term = Cast <to = 1> (place)
        v = Add (u, term)  w = Mul (v, v)  t = Sub (w, u)""",
        40,
        lambda s, step: (np.tanh(s) + step % 7) ** 2 - np.tanh(s),
        1e-4,
    ),
    "an inner loop uses a value": (
        """u = Tanh (s)  v = Neg (u)  three = Constant <value_int = 3> ()
        t = Loop (three, , v) <body = inner (int64 j, bool c, float[4] a) => (bool d, float[4] b)
        { d = Identity (c)  b = Add (a, u) }>""",
        10,
        lambda s, _: 2 * np.tanh(s),
        1e-5,
    ),
    "a value depends on the number of the step": (
        "two = Constant <value_int = 2> ()  place = Mod (i, two)  row = Gather (rows, place)  t = Sub (row, s)",
        5,
        lambda s, step: ROWS[step % 2] - s,
        0,
    ),
    # The first step adds the state to itself, the others add what was doubled to what was not.
    "an operand is given twice": ("d = Add (s, s)  t = Mul (d, s)", 3, lambda s, _: 2 * s * s, 1e-6),
}


@pytest.mark.parametrize("name", LOOPS)
async def test_steps_that_differ_are_drawn_separately(context, name):
    nodes, trips, step, relative = LOOPS[name]
    np.testing.assert_allclose(await run(context, nodes, trips), repeated(step, trips), rtol=relative)


async def test_values_computed_at_each_step_are_classified_once(context, monkeypatch):
    decided = noted(monkeypatch, model_conversion, "results_of", lambda node, *_given: node.output[0])
    result = await run(context, "square = Mul (i, i)  factor = Cast <to = 1> (square)  t = Add (s, factor)", 20)
    np.testing.assert_array_equal(result, X + sum(step * step for step in range(20)))
    assert (decided.count("square"), decided.count("factor")) == (1, 1), decided


async def test_values_computed_at_a_later_step_are_within_the_limits(context):
    nodes = """many = Constant <value_ints = [20000]> ()  row = Constant <value_floats = [1.0]> ()
      length = Mul (i, many)  wide = Tile (row, length)  sum = ReduceSum <keepdims = 0> (wide)  t = Add (s, sum)"""
    model = OnnxModel.load(looped(nodes, 20), limits=ModelLimits(bytes=1_000_000))
    with pytest.raises(UnsupportedModelError, match=r"limits\.bytes allows 1,000,000"):
        model.convert(MLGraphBuilder(context))


def test_nodes_that_compute_the_same_have_one_evaluator():
    evaluation._evaluator.cache_clear()
    evaluation._kept.cache_clear()
    for index in range(10):
        node = helper.make_node("Unsqueeze", [f"a{index}", "axes"], [f"b{index}"], name=f"n{index}")
        inputs = [np.array(index), np.array([0])]
        (result,) = evaluation.fold(node, inputs, {"": 17}, Expenses(ModelLimits(), 0))
        np.testing.assert_array_equal(result, [index])
    assert evaluation._evaluator.cache_info().misses == 1
