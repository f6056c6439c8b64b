"""Other providers' rules compute on the CPU, too, what the oracles say: what they avoid differs there only."""

import attrs
import numpy as np
import pytest
from onnx import helper

import webnn_py
from spec_tests.operators.cases import load_all
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from spec_tests.support.computing import compute_graph
from spec_tests.support.onnx_programs import make_model
from webnn_py.onnx_models import OnnxModel
from webnn_py.testing.device_cases.drawing import DRAWERS

onnxruntime = pytest.importorskip("onnxruntime")

from webnn_py.device.on_onnxruntime import engine, providers  # noqa: E402 - an extra
from webnn_py.device.on_onnxruntime.lowering import cuda_rules, rules, webgpu_rules  # noqa: E402 - an extra

OF_PROVIDER = {providers.CUDA: cuda_rules, providers.WEBGPU: webgpu_rules}
OWN = {
    provider: {name for name, rule in provider.rules.items() if rule is not rules.RULES.get(name)}
    | module.DECOMPOSED.keys()
    for provider, module in OF_PROVIDER.items()
}
FILES = [
    pytest.param(
        provider,
        file,
        id=f"{provider.name}-{file.operator}",
        marks=[pytest.mark.sampled(3)] if provider is providers.WEBGPU else [],
    )
    for provider, own in OWN.items()
    for file in load_all()
    if file.operator in own
]
KNOWN = {(operator, name) for owner, operator, name in EXCEPTIONS if owner == "onnxruntime"}


def use_rules(monkeypatch, provider):
    """Let the CPU provider have the rules of another one."""
    mixed = attrs.evolve(engine.CPU, has_guards=False, rules=provider.rules, capabilities=provider.capabilities)
    monkeypatch.setattr(engine, "CPU", mixed)


@pytest.fixture
def mixed(monkeypatch):
    """The CPU provider, with the rules of CUDA's."""
    use_rules(monkeypatch, providers.CUDA)


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
