"""The proposal "compute policy": one option that chooses a device, and the policy by which a graph really runs."""

import attrs
import numpy as np
import pytest

import webnn_py
from spec_tests.support.backends import BACKENDS
from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder, NotSupportedError
from webnn_py.core.device import registry
from webnn_py.extensions.compute_policy import POLICIES, effective


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"compute-policy"}) as opened:
        yield opened


@pytest.fixture
def with_gpu(monkeypatch):
    """Register a second numpy device, which claims to compute on a GPU."""
    numpy = registry.find("numpy")
    info = attrs.evolve(numpy.adapters()[0], name="gpu of numpy", device_types=("gpu", "cpu"))

    def open_gpu(request):
        backend = numpy.open(request)
        backend.info = info
        return backend

    gpu = attrs.evolve(
        numpy,
        is_accelerated=True,
        open=open_gpu,
        adapters=lambda: [info],
        probe=lambda _preference: registry.Suitability.HARDWARE,
    )
    monkeypatch.setattr(registry, "built_in", lambda: (numpy, gpu))


async def negation(context):
    builder = MLGraphBuilder(context)
    return await builder.build({"y": builder.neg(builder.input("x", data_type="float32", shape=[2]))})


@pytest.mark.parametrize(
    ("policy", "kind", "runs_by"),
    [
        ("default", "gpu", "default"),
        ("high-performance", "gpu", "high-performance"),
        ("low-power", "gpu", "low-power"),
        ("fallback", "cpu", "fallback"),
        (None, "gpu", "default"),
    ],
)
@pytest.mark.usefixtures("with_gpu")
async def test_a_policy_chooses_a_device(ml, policy, kind, runs_by):
    context = await ml.create_context(compute_policy=policy)
    assert context.backend.device_types[0] == kind
    assert effective(await negation(context)) == runs_by


@pytest.mark.parametrize("policy", ["default", "high-performance", "low-power"])
async def test_on_a_processor_a_graph_runs_by_fallback_whatever_was_asked_for(ml, policy):
    context = await ml.create_context(backend="numpy", compute_policy=policy)
    graph = await negation(context)
    assert effective(graph) == "fallback"
    graph.destroy()
    context.destroy()
    assert effective(graph) == "fallback"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_every_device_runs_by_each_policy_and_says_by_which(ml, backend, policy):
    context = await ml.create_context(backend=backend, compute_policy=policy)
    assert context.backend.name == backend  # a backend that is named goes before a policy
    graph = await negation(context)
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await context.read_buffer(y), [-1, -2])
    on_gpu = "default" if policy == "fallback" else policy  # a GPU that is named is no fallback
    assert effective(graph) == ("fallback" if context.backend.device_types[0] == "cpu" else on_gpu)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"compute_policy": "fast"}, "compute_policy is 'fast'; it must be one of default, high-performance"),
        ({"compute_policy": 1}, "compute_policy is 1"),
        ({"compute_policy": "fallback", "accelerated": False}, "replaces power_preference and accelerated"),
        ({"compute_policy": "default", "power_preference": "low-power"}, "give one or the others"),
    ],
)
async def test_what_is_no_policy_or_contradicts_one_is_refused(ml, options, words):
    with pytest.raises(TypeError, match=words):
        await ml.create_context(**options)


async def test_nothing_of_it_is_there_unless_it_is_asked_for():
    async with webnn_py.open_ml() as ml:
        with pytest.raises(TypeError, match="compute_policy"):
            await ml.create_context(compute_policy="fallback")
        context = await ml.create_context(backend="numpy")
        for runs in context, await negation(context):
            with pytest.raises(NotSupportedError, match=r"effective\(\): this is of .*context\.backend says"):
                effective(runs)
