"""Other providers' rules compute on the CPU, too, what the oracles say: what they avoid differs there only."""

from functools import partial

import attrs
import numpy as np
import pytest
from onnx import helper

import webnn_py
from spec_tests.on_onnxruntime.both import assert_both, assert_written
from spec_tests.onnx_models.rules.random_attention import cached_attention, group_query
from spec_tests.onnx_models.rules.test_random_attention import assert_near
from spec_tests.onnx_models.single_node import run
from spec_tests.operators.cases import load_all
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from spec_tests.runtime.test_in_place import CACHES, decoder
from spec_tests.support.cache_facts import COPYING
from spec_tests.support.computing import compute_graph
from spec_tests.support.onnx_programs import make_model
from webnn_py.core.operators.composite import COMPOSITES
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.onnx_models import OnnxModel
from webnn_py.testing.device_cases.graphs import DRAWERS

onnxruntime = pytest.importorskip("onnxruntime")

from webnn_py.devices.onnxruntime import device_record, engine, executable, providers  # noqa: E402 - an extra
from webnn_py.devices.onnxruntime.lowering import cuda_rules, rules, webgpu_rules  # noqa: E402 - an extra

RANK_OF_CACHES = 4
OF_PROVIDER = {providers.CUDA: cuda_rules, providers.WEBGPU: webgpu_rules}
OWN = {
    provider: {name for name, rule in provider.rules.items() if rule is not rules.RULES.get(name)} - COMPOSITES.keys()
    | module.DECOMPOSED.keys()
    for provider, module in OF_PROVIDER.items()
}
FILES = [
    pytest.param(
        provider,
        file,
        id=f"{provider.name}-{file.operator}",
    )
    for provider, own in OWN.items()
    for file in load_all()
    if file.operator in own
]
KNOWN = {(operator, name) for owner, operator, name in EXCEPTIONS if owner == "onnxruntime"}


def use_rules(monkeypatch, provider):
    """Let the CPU provider have the rules and passes of another one."""
    mixed = attrs.evolve(engine.CPU, has_guards=False, rules=provider.rules, capabilities=provider.capabilities)
    monkeypatch.setattr(engine, "CPU", mixed)
    monkeypatch.setattr(device_record, "DEFAULT_PROVIDER", mixed.name)
    monkeypatch.setattr(
        executable, "PassContext", lambda contents, _target, **more: PassContext(contents, provider.name, **more)
    )


@pytest.fixture
def mixed(monkeypatch):
    """The CPU provider, with the rules and passes of CUDA's."""
    use_rules(monkeypatch, providers.CUDA)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("provider", "file"), FILES)
def test_cases_compute_what_their_oracles_say(monkeypatch, provider, file):
    use_rules(monkeypatch, provider)
    computed = Computed.of("onnxruntime", file, DRAWERS["as_written"])
    wrong = {
        case.name: words
        for case in file.cases
        if (words := computed.what_is_wrong(case)) and (file.operator, case.name) not in KNOWN
    }
    assert not wrong


def test_every_rule_of_its_own_has_cases():
    for provider, own in OWN.items():
        assert {param.values[1].operator for param in FILES if param.values[0] is provider} == own


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("data_type", ["float32", "float16"])
async def test_a_max_pool_of_what_is_never_minus_infinity_is_one_node(ml, written, data_type):
    context = await ml.create_context(backend="onnxruntime")
    for activation, pools in (("relu", {"MaxPool": 1}), ("neg", {"MaxPool": 2, "AveragePool": 1})):
        written.clear()
        builder = webnn_py.MLGraphBuilder(context)
        x = builder.input("x", data_type=data_type, shape=[1, 2, 5, 5])
        y = builder.max_pool2d(getattr(builder, activation)(x), window_dimensions=[3, 3])
        graph = await builder.build({"y": y})
        assert {name: count for name, count in written.items() if name.endswith("Pool")} == pools
        data = np.arange(50, dtype=data_type).reshape(1, 2, 5, 5)
        result = await compute_graph(context, graph, {"x": data})
        furthest = data[:, :, 2:, 2:] if activation == "relu" else -data[:, :, :3, :3]
        np.testing.assert_array_equal(result["y"], furthest)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
async def test_a_network_of_a_model_is_one_node(ml, written, operator):
    context = await ml.create_context(backend="onnxruntime")
    rng, gates = np.random.default_rng(1), {"GRU": 3, "LSTM": 4}[operator]
    shapes = {"x": (5, 1, 6), "w": (1, gates * 2, 6), "r": (1, gates * 2, 2), "b": (1, gates * 4)}
    values = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    options = {"hidden_size": 2, **({"linear_before_reset": 1} if operator == "GRU" else {})}
    node = helper.make_node(operator, [*values], ["y"], **options)
    weights = {name: values[name] for name in "wrb"}
    model = make_model([node], values, ["y"], weights, opset=17)
    builder = webnn_py.MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(model).convert(builder, {"x": [5, 1, 6]}))
    assert written[operator] == 1
    assert not written["Split"]
    result = await compute_graph(context, graph, {"x": values["x"]})
    (wanted,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": values["x"]})
    np.testing.assert_allclose(result["y"], wanted, atol=1e-6)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize(
    ("operator", "data_type", "nodes"),
    [
        ("sigmoid", "float32", {"Min": 1, "Exp": 1, "Softsign": 1}),
        ("sigmoid", "float16", {"Cast": 2, "Sigmoid": 1}),
        ("hard_swish", "float32", {"Clip": 1, "HardSwish": 1}),
        ("hard_swish", "float16", {"Cast": 2, "Clip": 1, "HardSwish": 1}),
        ("clamp", "float32", {"Clip": 1}),
    ],
)
async def test_an_activation_is_few_nodes(ml, written, operator, data_type, nodes):
    context = await ml.create_context(backend="onnxruntime")
    builder = webnn_py.MLGraphBuilder(context)
    x = builder.input("x", data_type=data_type, shape=[5])
    await builder.build({"y": getattr(builder, operator)(x)})
    assert dict(written) == nodes


@pytest.mark.parametrize(
    ("provider", "has_whole", "is_in_place"),
    [(providers.CPU, True, True), (providers.CUDA, True, True), (providers.WEBGPU, False, False)],
    ids=lambda given: getattr(given, "name", None),
)
def test_a_provider_takes_attention_whole_and_updates_its_caches_in_place(provider, has_whole, is_in_place):
    assert (provider.capabilities.supports(GROUP_QUERY_ATTENTION) != ()) == has_whole
    assert provider.writes_in_place == is_in_place
    assert (provider.name in COPYING) == (not is_in_place)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("new", [1, 3])
async def test_a_cache_is_read_by_what_writes_into_it_alone(ml, models, new):
    context = await ml.create_context(backend="onnxruntime")
    builder = webnn_py.MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(decoder(new)).convert(builder))
    assert graph.in_place == CACHES
    (model,) = models
    caches = [item.name for item in model.input if len(item.type.tensor_type.shape.dim) == RANK_OF_CACHES]
    assert len(caches) == 2
    readers = [node for node in model.node if {*node.input} & {*caches}]
    assert [(node.op_type, node.input[0]) for node in readers] == [("ScatterElements", name) for name in caches]
    assert not {"Clip", "Pad", "Tile", "Range", "Shape"} & models.operators.keys(), "the CPU computes them of integers"


@pytest.mark.usefixtures("mixed")
async def test_attention_to_a_cache_that_is_written_into_is_onnxruntimes(ml):
    context = await ml.create_context(backend="onnxruntime")
    for seed in range(24):
        case, counts = group_query(np.random.default_rng(seed))
        wanted = cached_attention(case, keeps=True)
        assert_near(await run(context, case.model(), case.feeds), wanted, counts)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize(("last", "begin"), [(-(2**30), 0), (-1, 0), (1, 0), (7, 5), (8, 5), (2**31 - 1, 5)])
async def test_rows_that_do_not_fit_are_moved_into_the_cache(ml, rng, last, begin):
    context = await ml.create_context(backend="onnxruntime")
    builder = webnn_py.MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(decoder(3)).convert(builder))
    shapes = {name: item.shape for name, item in graph.input_descriptors.items()}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds |= {"last": np.int32([last]), "total": np.int32(8)}
    results = await compute_graph(context, graph, feeds)
    is_there = last == 7
    assert np.isnan(results["output"]).all() == (not is_there)
    keys = feeds["query"][0, :, 64:96].reshape(3, 2, 16).transpose(1, 0, 2)
    wanted = feeds["past_key"].copy()
    wanted[0, :, begin : begin + 3] = keys
    np.testing.assert_array_equal(results["present_key"], wanted)


@pytest.mark.usefixtures("mixed")
async def test_a_hard_swish_is_one_node_behind_a_convolution(ml, written):
    context = await ml.create_context(backend="onnxruntime")
    builder = webnn_py.MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[1, 1, 3, 3])
    y = builder.conv2d(x, builder.constant(np.ones([1, 1, 1, 1], np.float32)))
    await builder.build({"y": builder.hard_swish(y), "z": builder.hard_swish(builder.relu(y))})
    assert (written["Clip"], written["HardSwish"]) == (1, 2)


def exact_sigmoid(x):
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def exact_hard_swish(x):
    return np.where(x < -3, 0, np.maximum(x, -3) * np.clip(x + 3, 0, 6) / 6)


@pytest.mark.skipif(
    providers.CUDA.name not in onnxruntime.get_available_providers(), reason="needs onnxruntime-gpu and an NVIDIA GPU"
)
@pytest.mark.parametrize(
    ("operator", "data_type", "exact", "most_off"),
    [
        ("sigmoid", "float32", exact_sigmoid, (4, 0)),
        ("hard_swish", "float32", exact_hard_swish, (2, 1e-7)),
        ("hard_swish", "float16", exact_hard_swish, (1, 0)),
    ],
)
async def test_an_activation_on_cuda_is_close_to_the_exact_one(ml, operator, data_type, exact, most_off):
    context = await ml.create_context(backend="onnxruntime", execution_provider=providers.CUDA.name)
    near = np.arange(-(2**10), 2**10) * 2.0**-22
    special = [np.nan, np.inf, -np.inf, 3e38, -3e38, 88.8, -87.3, -103]
    numbers = [special, near - 3, near + 3, np.linspace(-4, 4, 2**14), np.linspace(-87, 87, 2**16)]
    with np.errstate(over="ignore"):
        x = np.concatenate(numbers).astype(data_type)
    if data_type == "float16":
        x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    builder = webnn_py.MLGraphBuilder(context)
    operand = builder.input("x", data_type=data_type, shape=x.shape)
    graph = await builder.build({"y": getattr(builder, operator)(operand)})
    result = (await compute_graph(context, graph, {"x": x}))["y"]
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64)).astype(data_type)
    is_finite = np.isfinite(expected)
    np.testing.assert_array_equal(result[~is_finite], expected[~is_finite])
    result, expected = (array[is_finite].astype(np.float64) for array in (result, expected))
    units, off = most_off
    sizes = np.minimum(np.abs(expected), float(np.finfo(data_type).max) / 2).astype(data_type)
    with np.errstate(under="ignore"):
        allowed = units * np.spacing(sizes) + off
    worst = np.argmax(np.abs(result - expected) - allowed)
    assert abs(result[worst] - expected[worst]) <= allowed[worst], (x[is_finite][worst], result[worst], expected[worst])


def gates(b, x, *, splits=4, read=(0, 1, 3)):
    """Draw what a step of an LSTM computes of its gates."""
    parts = b.split(x, splits, axis=1)
    y = b.tanh(parts[2])
    for index in read:
        y = b.mul(y, b.sigmoid(parts[index]))
    return y


GATES = {
    "three of four": ((2, 8), gates, {"Split": 2, "Min": 1, "Exp": 1, "Softsign": 1}),
    "parts of other sizes": ((2, 9), partial(gates, splits=(2, 3, 2, 2), read=(0, 3)), {"Split": 2, "Softsign": 1}),
    "the same part twice": ((2, 8), partial(gates, read=(1, 1)), {"Split": 1, "Softsign": 1}),
    "one part": ((2, 8), partial(gates, read=(1,)), {"Split": 1, "Softsign": 1}),
    "two steps": ((2, 32), lambda b, x: gates(b, gates(b, x)), {"Split": 4, "Softsign": 2}),
    "many elements": ((64, 4096), gates, {"Split": 1, "Softsign": 3}),
}


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("name", GATES)
async def test_sigmoids_of_parts_are_computed_before_the_split(ml, numpy_context, written, name):
    context = await ml.create_context(backend="onnxruntime")
    shape, draw, nodes = GATES[name]
    x = np.random.default_rng(4).normal(size=shape).astype(np.float32) * 9
    x[0, :3] = np.nan, np.inf, -np.inf
    await assert_both((context, numpy_context), draw, x, rtol=4e-6)
    assert_written(written, **nodes)


@pytest.mark.usefixtures("mixed")
async def test_sigmoids_of_parts_of_float16_stay_single_nodes(ml, written):
    context = await ml.create_context(backend="onnxruntime")
    builder = webnn_py.MLGraphBuilder(context)
    x = builder.input("x", data_type="float16", shape=[2, 8])
    await builder.build({"y": gates(builder, x)})
    assert_written(written, Split=1, Sigmoid=3)
