import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from webnn_py import MLGraphBuilder, open_ml
from webnn_py.graph import ContentKey
from webnn_py.onnx_models import ModelLimits, OnnxModel, UnsupportedModelError
from webnn_py.onnx_models.conversion import model_conversion
from webnn_py.onnx_models.folding import evaluation
from webnn_py.onnx_models.limits import Expenses
from webnn_py.operators.declaration import Operator


def looped(nodes, trips):
    """A model of a loop of so many steps, which carries a state of four floats, ``s`` to ``t``."""
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["on"], ["goes_on"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [4]),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, [4]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
        "looped",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [
            numpy_helper.from_array(np.array(trips), "trips"),
            numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(2, 4), "rows"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


async def run(model):
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        graph = await builder.build(OnnxModel.load(model).convert(builder))
        x = await context.create_buffer(data_type="float32", shape=[4], writable=True)
        y = await context.create_buffer(data_type="float32", shape=[4], readable=True)
        context.write_buffer(x, np.array([1, -2, 0.5, 3], np.float32))
        context.dispatch(graph, {"x": x}, {"y": y})
        return await context.read_buffer(y)


@pytest.mark.trio
async def test_the_steps_of_a_loop_are_drawn_alike_without_being_checked_again(monkeypatch):
    nodes = [helper.make_node("Tanh", ["s"], ["u"]), helper.make_node("Add", ["u", "s"], ["t"])]
    checked = []
    infer = Operator.infer
    monkeypatch.setattr(Operator, "infer", lambda self, given: checked.append(self.name) or infer(self, given))
    result = await run(looped(nodes, 20))
    expected = np.array([1, -2, 0.5, 3], np.float32)
    for _ in range(20):
        expected = np.tanh(expected) + expected
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    # The state of the first step is an input, that of the others is not: each kind is checked once.
    assert checked.count("tanh") == 2, checked


@pytest.mark.trio
async def test_nodes_that_are_drawn_again_one_behind_the_other_are_drawn_as_one(monkeypatch):
    nodes = [
        helper.make_node("Tanh", ["s"], ["u"]),
        helper.make_node("Split", ["u"], ["p", "q"], axis=0),
        helper.make_node("Concat", ["q", "p"], ["r"], axis=0),
        helper.make_node("Add", ["i", "i"], ["double"]),
        helper.make_node("Cast", ["double"], ["factor"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["r", "factor"], ["v"]),
        helper.make_node("Sub", ["v", "u"], ["t"]),
    ]
    drawn = []
    alike = MLGraphBuilder._drawn_alike
    monkeypatch.setattr(MLGraphBuilder, "_drawn_alike", lambda *given: drawn.append(given[1]) or alike(*given))
    result = await run(looped(nodes, 20))
    expected = np.array([1, -2, 0.5, 3], np.float32)
    for step in range(20):
        tanh = np.tanh(expected)
        expected = np.roll(tanh, 2) + 2 * step - tanh
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert max(map(len, drawn)) == 3, "the first three nodes are not drawn as one"


@pytest.mark.trio
async def test_nodes_whose_inputs_change_at_each_step_are_separate_again():
    """Every second step adds a float, which is looked up by its value: runs that hold the addition come and go."""
    nodes = [
        helper.make_node("Tanh", ["s"], ["u"]),
        helper.make_node("Constant", [], ["period"], value_int=7),
        helper.make_node("Mod", ["i", "period"], ["place"]),
        helper.make_node("Cast", ["place"], ["term"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["u", "term"], ["v"]),
        helper.make_node("Mul", ["v", "v"], ["w"]),
        helper.make_node("Sub", ["w", "u"], ["t"]),
    ]
    result = await run(looped(nodes, 40))
    expected = np.array([1, -2, 0.5, 3], np.float32)
    for step in range(40):
        tanh = np.tanh(expected)
        expected = (tanh + step % 7) ** 2 - tanh
    np.testing.assert_allclose(result, expected, rtol=1e-4)


@pytest.mark.trio
async def test_what_an_inner_loop_takes_from_a_run_is_there():
    """The values that only an inner graph uses, by name, are among what a run gives."""
    inner = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["goes_on"]), helper.make_node("Add", ["a", "u"], ["b"])],
        "inner",
        [
            helper.make_tensor_value_info("j", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [4]),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [4]),
        ],
    )
    nodes = [
        helper.make_node("Tanh", ["s"], ["u"]),
        helper.make_node("Neg", ["u"], ["v"]),
        helper.make_node("Constant", [], ["three"], value_int=3),
        helper.make_node("Loop", ["three", "", "v"], ["t"], body=inner),
    ]
    result = await run(looped(nodes, 10))
    expected = np.array([1, -2, 0.5, 3], np.float32)
    for _ in range(10):
        expected = 2 * np.tanh(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.trio
async def test_what_depends_on_the_number_of_the_step_is_not_drawn_alike():
    nodes = [
        helper.make_node("Constant", [], ["two"], value_int=2),
        helper.make_node("Mod", ["i", "two"], ["place"]),
        helper.make_node("Gather", ["rows", "place"], ["row"]),
        helper.make_node("Sub", ["row", "s"], ["t"]),
    ]
    result = await run(looped(nodes, 5))
    expected = np.array([1, -2, 0.5, 3], np.float32)
    for step in range(5):
        expected = np.arange(8, dtype=np.float32).reshape(2, 4)[step % 2] - expected
    np.testing.assert_array_equal(result, expected)


@pytest.mark.trio
async def test_what_is_computed_at_each_step_is_decided_once(monkeypatch):
    nodes = [
        helper.make_node("Mul", ["i", "i"], ["square"]),
        helper.make_node("Cast", ["square"], ["factor"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["s", "factor"], ["t"]),
    ]
    decided = []
    original = model_conversion.results_of
    monkeypatch.setattr(
        model_conversion, "results_of", lambda node, *given: decided.append(node.output[0]) or original(node, *given)
    )
    result = await run(looped(nodes, 20))
    np.testing.assert_array_equal(result, np.array([1, -2, 0.5, 3]) + sum(step * step for step in range(20)))
    assert (decided.count("square"), decided.count("factor")) == (1, 1), decided


@pytest.mark.trio
async def test_what_is_computed_at_a_later_step_is_within_the_limits():
    nodes = [
        helper.make_node("Constant", [], ["many"], value_ints=[20_000]),
        helper.make_node("Constant", [], ["row"], value_floats=[1.0]),
        helper.make_node("Mul", ["i", "many"], ["length"]),
        helper.make_node("Tile", ["row", "length"], ["wide"]),
        helper.make_node("ReduceSum", ["wide"], ["sum"], keepdims=0),
        helper.make_node("Add", ["s", "sum"], ["t"]),
    ]
    async with open_ml() as ml:
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        model = OnnxModel.load(looped(nodes, 20), limits=ModelLimits(bytes=1_000_000))
        with pytest.raises(UnsupportedModelError, match=r"limits\.bytes allows 1,000,000"):
            model.convert(builder)


@pytest.mark.trio
async def test_an_operand_that_is_given_twice_is_told_from_two():
    """The first step adds the state to itself, the others add what was doubled to what was not."""
    nodes = [helper.make_node("Add", ["s", "s"], ["d"]), helper.make_node("Mul", ["d", "s"], ["t"])]
    result = await run(looped(nodes, 3))
    expected = np.array([1, -2, 0.5, 3], np.float32)
    for _ in range(3):
        expected = 2 * expected * expected
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_nodes_that_compute_the_same_have_one_evaluator():
    evaluation._evaluator.cache_clear()
    evaluation._kept.cache_clear()
    for index in range(10):
        node = helper.make_node("Unsqueeze", [f"a{index}", "axes"], [f"b{index}"], name=f"n{index}")
        inputs = [np.array(index), np.array([0])]
        (result,) = evaluation.fold(node, inputs, {"": 17}, Expenses(ModelLimits(), 0))
        np.testing.assert_array_equal(result, [index])
    assert evaluation._evaluator.cache_info().misses == 1


def test_keys_are_equal_where_bytes_are_and_digest_only_what_looks_alike():
    array = np.arange(4096, dtype=np.float32)
    keys = [ContentKey(array), ContentKey(array.copy()), ContentKey(array + 1)]
    assert keys[0] != keys[2]
    assert keys[0]._digest is None, "what differs at its ends was hashed"
    assert keys[0] == keys[1]
    assert hash(keys[0]) == hash(keys[1])
    other = array.copy()
    other[1500] = 0
    assert ContentKey(other) != keys[0]
    assert repr(ContentKey(array, keys[0].digest)) == repr(keys[1])
