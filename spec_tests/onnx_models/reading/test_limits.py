"""The limits of a model: estimated before they are exceeded, with the node that would exceed them."""

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models import test_table
from spec_tests.onnx_models.single_node import assert_same, int64s, make_model, node, parsed, run
from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, ModelLimits, OnnxModel, UnsupportedModelError
from webnn_py.onnx_models.folding.costs import COSTS, FoldedNode
from webnn_py.onnx_models.folding.evaluation import UNCHANGED, _plain_node, _results

X = np.array([[1, -2, 3]], np.float32)
LITTLE = 8 << 20
HUGE = 2**29


def known(operator, version, *inputs, **attributes):
    """A node whose inputs are all known."""
    present = [index for index, item in enumerate(inputs) if item is not None]
    return node(operator, version, *inputs, known=present, **attributes)[0]


LARGE = [
    known("ConstantOfShape", 9, int64s(HUGE)),
    known("ConstantOfShape", 9, int64s(2**40, 0, 2**40), int64s()),
    known("Expand", 13, X, int64s(HUGE, 1, 3)),
    known("Tile", 13, X, int64s(HUGE, 2)),
    known("Range", 11, np.array(0), np.array(HUGE), np.array(1)),
    known("Range", 11, np.array(0.0), np.array(1e300), np.array(1e-300)),
    known("Pad", 13, X, int64s(0, HUGE, 0, HUGE)),
    known("Pad", 18, X, int64s(HUGE, HUGE), None, int64s(-1), mode="reflect"),
    known("OneHot", 11, int64s(1), np.array(HUGE), X[0, :2]),
    known("EyeLike", 9, np.zeros(30_000, np.float32)),
    known("Gather", 13, np.zeros([1, 100_000], np.float32), np.zeros(10_000, np.int64)),
    known("GatherND", 13, np.zeros([1, 100_000], np.float32), np.zeros([10_000, 1], np.int64)),
    known("TopK", 11, X, int64s(HUGE), outputs=2),
    known("Einsum", 12, np.zeros(30_000, np.float32), np.zeros(30_000, np.float32), equation="i,j->ij"),
    known("Einsum", 12, np.zeros(30_000, np.float32), np.zeros(30_000, np.float32), equation="i,j->"),
    known("HannWindow", 17, np.array(HUGE)),
    known("MelWeightMatrix", 17, np.array(9), np.array(HUGE), np.array(8000), X[0, 0], X[0, 2]),
    known("Add", 14, np.zeros([30_000, 1], np.float32), np.zeros(30_000, np.float32)),
    known("GatherElements", 13, X[0], int64s(2**62)),
    node("Resize", 13, X, None, None, int64s(1, 2**40), known=[3])[0],
    node("Resize", 13, X, None, np.array([1, 1e30], np.float32), known=[2])[0],
    node("Resize", 13, np.zeros([1, 30_000], np.float32), None, None, int64s(1, 60_000), known=[3], mode="linear")[0],
    node("Split", 18, X, axis=1, num_outputs=2**60)[0],
    node("OneHot", 11, int64s(1), np.array(HUGE), X[0, :2], known=[1])[0],
    node("Pad", 19, X, int64s(0, HUGE, 0, HUGE), known=[1], mode="wrap")[0],
    node("DFT", 17, np.zeros([1, 30_000, 1], np.float32), np.array(HUGE), known=[1])[0],
    node("STFT", 17, np.zeros([1, 30_000, 1], np.float32), np.array(1), None, np.array(9_000), known=[1, 3])[0],
    node("AffineGrid", 20, np.zeros([1, 2, 3], np.float32), int64s(1, 1, 30_000, 30_000), known=[1])[0],
    node("Col2Im", 18, np.zeros([1, 90_000, 1], np.float32), int64s(300, 300), int64s(300, 300), known=[1, 2])[0],
    node(
        "Conv", 11, np.zeros([1, 1, 3, 1, 1], np.float32), np.zeros([1, 1, 3, 1, 1], np.float32), pads=[2**28, 0, 0] * 2
    )[0],
]


def test_the_hungriest_model_is_small():
    assert len(LARGE[0].model()) < 200


@pytest.mark.parametrize("case", LARGE, ids=str)
async def test_large_values_are_refused_before_they_are_made(context, case):
    model = OnnxModel.load(case.model())
    builder = MLGraphBuilder(context)
    tracemalloc.start()
    try:
        with pytest.raises(UnsupportedModelError, match=rf"node 'the node' \({case.operator}, opset \d+\): "):
            model.convert(builder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LITTLE


def folded_cases():
    return [
        case
        for category in test_table.CATEGORIES
        for case in test_table.cases_of(category)
        if case.operator in COSTS and case.operator not in UNCHANGED and "broadcast" not in case.attributes
    ]


@cells("operator", sorted({case.operator for case in folded_cases()}))
def test_an_estimate_is_at_least_the_size_of_the_outputs(operator):
    compared = 0
    for case in (item for item in folded_cases() if item.operator == operator):
        proto = onnx.load_model_from_string(case.model())
        attributes = {item.name: helper.get_attribute_value(item) for item in proto.graph.node[0].attribute}
        cost = COSTS[operator](FoldedNode(case.inputs, attributes, case.outputs))
        try:
            # As one that is not kept: what is kept is a copy, and shares no memory with the inputs.
            plain = _plain_node(proto.graph.node[0], case.inputs)
            results = _results(plain.encoded, (("", case.opset),), case.inputs)
        except (RuntimeError, TypeError, ValueError):
            continue  # the reference implementation has no such version, or not all of what it says
        compared += 1
        made = [item for item in map(np.asarray, results) if not shares_memory(item, case.inputs)]
        assert cost.bytes >= sum(item.nbytes for item in made), str(case)
    assert compared


def shares_memory(item, inputs):
    return any(np.may_share_memory(item, value) for value in inputs if value is not None)


def chain(operators, opset=14, **initializers):
    """One node after another, each named by its place; the last is added to x."""
    nodes = [
        helper.make_node(operator, [item.format(f"v{index - 1}") for item in inputs], [f"v{index}"], name=f"n{index}")
        for index, (operator, inputs) in enumerate(operators)
    ]
    nodes.append(helper.make_node("Add", ["x", f"v{len(operators) - 1}"], ["y"]))
    return make_model(nodes, {"x": X, **initializers}, ["y"], initializers, opset=opset)


@pytest.mark.parametrize("limit", [10_000_000, 30_000_000])
async def test_bytes_add_up(context, limit):
    model = OnnxModel.load(
        chain([("Neg", ["w"]), *[("Neg", ["{}"])] * 40], w=np.zeros([250_000], np.float32)),
        limits=ModelLimits(bytes=limit),
    )
    at = limit // 1_000_000
    text = rf"node 'n{at}' \(Neg, opset 14\): it takes up to 1,000,000 bytes beside {at},000,000 so far; limits\.bytes "
    with pytest.raises(UnsupportedModelError, match=text):
        model.convert(MLGraphBuilder(context))


async def test_a_view_of_known_data_costs_nothing(context):
    operators = [("Identity", ["w"]), *[("Transpose", ["{}"])] * 40, ("Reshape", ["{}", "s"]), ("Identity", ["{}"])]
    w = np.zeros([1000, 250], np.float32)
    nodes = chain(
        [*operators, ("Slice", ["{}", "nought", "three"])], w=w, s=int64s(-1), nought=int64s(0), three=int64s(3)
    )
    OnnxModel.load(nodes, limits=ModelLimits(bytes=100)).convert(MLGraphBuilder(context))


async def test_seconds_are_limited_and_the_node_is_named(context):
    large = np.ones(1000, np.float32)  # the results of small ones are kept, and take no time again
    model = OnnxModel.load(chain([("Neg", ["w"]), ("Neg", ["{}"])], w=large), limits=ModelLimits(seconds=0))
    with pytest.raises(UnsupportedModelError, match=r"node 'n1' \(Neg, opset 14\): .*limits\.seconds allows 0"):
        model.convert(MLGraphBuilder(context))


async def test_the_seconds_of_slow_operators_are_estimated(context):
    model = OnnxModel.load(chain([("Erf", ["w"])], w=np.zeros(1_000_000, np.float32)), limits=ModelLimits(seconds=2))
    with pytest.raises(UnsupportedModelError, match=r"node 'n0' \(Erf, opset 14\): it takes up to 5 seconds"):
        model.convert(MLGraphBuilder(context))


def calling(name, *functions):
    """Return a model that calls a function of x."""
    return parsed(f"(float[1,3] y) {{ [top] y = own.{name} (x) }}", *functions, inputs="float[1,3] x", opset=14)


def nested_functions(count, body="m = own.{0} (a)  b = own.{0} (m)"):
    """Return a model of functions, each of which calls the one before it, twice unless ``body`` is another."""
    bodies = ["b = Neg (a)", *(body.format(f"F{index}") for index in range(count - 1))]
    functions = [f"F{index} (a) => (b) {{ {nodes} }}" for index, nodes in enumerate(bodies)]
    return calling(f"F{count - 1}", *functions)


ONE_CALL = "b = own.{0} (a)"


async def test_functions_are_counted_at_each_call(context):
    data = nested_functions(5)
    assert_same(await run(context, data, {"x": X}), [X])
    OnnxModel.load(data, limits=ModelLimits(nodes=47))
    with pytest.raises(UnsupportedModelError, match=r"node 'top' \('F4'\): .* has 47 nodes; limits\.nodes allows 46"):
        OnnxModel.load(data, limits=ModelLimits(nodes=46))


@pytest.mark.parametrize("count", [25, 60])
def test_functions_that_would_never_end_are_refused_at_once(count):
    with pytest.raises(UnsupportedModelError, match=r"node 'top' .* has [\d,]+ nodes; limits\.nodes allows 100,000"):
        OnnxModel.load(nested_functions(count))


@pytest.mark.parametrize("count", [66, 500])
def test_functions_too_deep_in_each_other_are_refused(count):
    text = r"functions and inner graphs stand \d+ deep in each other; at most 64"
    with pytest.raises(UnsupportedModelError, match=text):
        OnnxModel.load(nested_functions(count, ONE_CALL))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_functions_that_call_themselves_are_refused(length):
    functions = [
        f"F{index} (a) => (b) {{ [in_{index}] b = own.F{(index + 1) % length} (a) }}" for index in range(length)
    ]
    with pytest.raises(InvalidModelError, match=rf"the function 'F0' calls itself, in node 'in_{length - 1}'"):
        OnnxModel.load(calling("F0", *functions))


def test_nodes_are_limited():
    nodes = [helper.make_node("Neg", ["x"], [f"y{index}"], name=f"n{index}") for index in range(10)]
    data = make_model(nodes, {"x": X}, ["y9"], opset=14)
    OnnxModel.load(data, limits=ModelLimits(nodes=10))
    with pytest.raises(
        UnsupportedModelError, match=r"node 'n9': the model has more nodes than limits\.nodes allows, 9"
    ):
        OnnxModel.load(data, limits=ModelLimits(nodes=9))


async def test_a_long_name_or_value_makes_no_long_message(context):
    attribute = helper.make_attribute(
        "unheard of", helper.make_tensor("t", TensorProto.FLOAT, [10_000], [1.0] * 10_000)
    )
    neg = helper.make_node("Neg", ["x"], ["a" * 1_000_000], name="b" * 1_000_000)
    neg.attribute.append(attribute)
    neg.attribute.append(helper.make_attribute("c" * 1_000_000, list(range(10_000))))
    model = make_model([neg], {"x": X}, ["a" * 1_000_000], opset=14)
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(model).convert(MLGraphBuilder(context))
    assert len(str(caught.value)) < 3000
