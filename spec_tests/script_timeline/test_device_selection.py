"""The proposals "graph devices" and "device selection": properties of devices, and their choice."""

import attrs
import pytest

import webnn_py
from spec_tests.support.backends import BACKENDS
from webnn_py import InvalidStateError, MLGraphBuilder, NotSupportedError
from webnn_py.device import registry

BOTH = {"device-selection", "graph-devices"}


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental=BOTH) as opened:
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
    records = (numpy, gpu)
    monkeypatch.setattr(registry, "built_in", lambda: records)
    return info


async def negation(context):
    builder = MLGraphBuilder(context)
    return await builder.build({"y": builder.neg(builder.input("x", data_type="float32", shape=[2]))})


async def test_both_proposals_are_refused_where_they_are_not_enabled():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        graph = await negation(context)
        with pytest.raises(NotSupportedError, match=r'devices: this is of a proposal that .*\{"graph-devices"\}'):
            _ = graph.devices
        with pytest.raises(NotSupportedError, match=r'cpu_fallback_active: this is of .*\{"device-selection"\}'):
            _ = context.cpu_fallback_active
        for promise in (ml.op_support_limits_per_device(), context.query_support()):
            with pytest.raises(NotSupportedError, match="proposal that open_ml"):
                await promise
        for name in ("fallback", "limits"):
            with pytest.raises(TypeError, match=f"{name}: no device has it"):
                await ml.create_context(**{name: ["cpu"]})
        assert context.accelerated is True
        graph.destroy()


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_graph_has_the_devices_that_compute_it(ml, backend):
    context = await ml.create_context(backend=backend)
    graph = await negation(context)
    assert graph.devices == context.backend.device_types
    assert (graph.devices == ("gpu",)) == ("GPU)" in context.backend.adapter), context.backend
    assert context.accelerated is (graph.devices[0] == "gpu")
    assert context.cpu_fallback_active is not context.accelerated
    graph.destroy()
    assert graph.devices == context.backend.device_types


async def test_every_device_has_its_limits_before_there_is_a_context(ml):
    found = await ml.op_support_limits_per_device()
    assert len(found) >= len(BACKENDS)
    assert sorted(found) == [f"cpu{number + 1}" for number in range(len(found))] or "gpu1" in found
    contexts = [await ml.create_context(backend=backend) for backend in BACKENDS]
    for context in contexts:
        assert context.op_support_limits() in found.values(), context.backend
    for name, limits in found.items():
        context = await ml.create_context(limits=limits)
        has = context.op_support_limits()
        assert set(limits["input"]["data_types"]) <= set(has["input"]["data_types"]), name


async def test_the_best_device_of_the_first_available_kind_is_chosen(ml, with_gpu):
    for fallback, device_types in (
        (["gpu", "cpu"], ("gpu", "cpu")),
        (["npu", "cpu", "gpu"], ("cpu",)),
        (("cpu",), ("cpu",)),
    ):
        context = await ml.create_context(fallback=fallback)
        assert context.backend.device_types == device_types, fallback
        assert context.accelerated is (device_types[0] == "gpu")
        assert context.cpu_fallback_active is (device_types[0] == "cpu")
    assert [*await ml.op_support_limits_per_device()] == ["gpu1", "cpu1"]
    context = await ml.create_context(fallback=["gpu", "cpu"], accelerated=False)
    assert (context.backend.device_types, context.cpu_fallback_active) == (("cpu",), False)
    with pytest.raises(NotSupportedError, match="no such device among npu; wish for less"):
        await ml.create_context(fallback=["npu"])
    with pytest.raises(NotSupportedError, match=r"gpu of numpy .* lacks max_tensor_byte_length of 4294967296"):
        await ml.create_context(limits={"max_tensor_byte_length": 2**32})


FLOATS = {"data_types": ["float32"]}


@pytest.mark.parametrize(
    ("limits", "lacking"),
    [
        ({"input": {"data_types": ["int4"]}}, "int4 as input data_types"),
        ({"add": {"a": {**FLOATS, "rank_range": {"min": 0, "max": 9}}}}, "add a rank_range from 0 to 9"),
        ({"fft": {"input": FLOATS}}, "float32 as fft input data_types"),
        ({"fft": {"min": 1, "max": 2}}, "fft from 1 to 2"),
        ({"relu": {"min": 1, "max": 2}}, "relu from 1 to 2"),
    ],
)
async def test_limits_that_no_device_has_are_refused_and_named(ml, limits, lacking):
    with pytest.raises(NotSupportedError, match=f"numpy .* lacks {lacking}"):
        await ml.create_context(limits=limits)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fallback": ["tpu"]}, r"fallback\[0\] is 'tpu'; it must be one of cpu, gpu, npu"),
        ({"fallback": "cpu"}, "fallback is 'cpu'; it must be a sequence of kinds of devices"),
        ({"limits": 5}, "limits is 5; it must be a mapping"),
        ({"limits": {"relu": {"input": None}}}, r"limits\['relu'\]\['input'\] is None; it must be as op_support"),
        ({"limits": {"a": {"min": 0, "max": "8"}}}, r"limits\['a'\]\['max'\] is '8'; it must be as op_support_limits"),
        ({"fallback": ["cpu"], "backend": "numpy"}, "fallback and limits choose a device; give no backend"),
        ({"limits": {}, "adapter": 0}, "none of a device's options"),
    ],
)
async def test_wrong_wishes_are_refused(ml, options, words):
    with pytest.raises(TypeError, match=words):
        await ml.create_context(**options)


async def test_a_context_reports_how_graphs_would_run(ml, with_gpu):
    gpu, cpu = [await ml.create_context(fallback=[kind]) for kind in ("gpu", "cpu")]
    asked = {"data_types": ["float16", "int8"], "maximum_rank": 6, "operators": ["lstm", "hard_swish", "hardSwish"]}
    assert (await gpu.query_support(**asked), await cpu.query_support(**asked)) == ("optimized", "fallback")
    assert await gpu.query_support() == "optimized"
    for refused, words in (
        ({"maximum_rank": 9}, "maximum_rank is 9; this device has at most 8"),
        ({"operators": ["lstm"], "data_types": ["int8"]}, r"lstm runs here in none of \['int8'\]"),
    ):
        with pytest.raises(NotSupportedError, match=words):
            await gpu.query_support(**refused)
    with pytest.raises(TypeError, match=r"operators\[1\] is 'fft', which is no operator"):
        await gpu.query_support(operators=["add", "fft"])


async def test_an_operator_that_is_expanded_is_a_fallback(ml):
    context = await ml.create_context(backend="reference")
    context._device.backend.info = attrs.evolve(context.backend, device_types=("npu",))
    assert await context.query_support(operators=["add"]) == "optimized"
    assert await context.query_support(operators=["add", "softmax"]) == "fallback"


async def test_an_open_ml_block_waits_for_the_devices_that_are_asked(with_gpu):
    async with webnn_py.open_ml(experimental=BOTH) as ml:
        promise = ml.op_support_limits_per_device()
    assert [*await promise] == ["gpu1", "cpu1"]


async def test_a_device_that_cannot_be_opened_is_passed_over(ml, with_gpu, monkeypatch):
    def refuse(request):
        raise NotSupportedError("the driver is broken")

    numpy, gpu = registry.built_in()
    monkeypatch.setattr(registry, "built_in", lambda: (numpy, attrs.evolve(gpu, open=refuse)))
    context = await ml.create_context(fallback=["gpu", "cpu"])
    assert context.backend.name == "numpy"
    assert list(await ml.op_support_limits_per_device()) == ["cpu1"]
    with pytest.raises(NotSupportedError, match=r"gpu of numpy .* cannot be opened: the driver is broken; wish"):
        await ml.create_context(fallback=["gpu"])


async def test_limits_that_contain_themselves_are_refused(ml):
    limits = {}
    limits["add"] = limits
    with pytest.raises(TypeError, match=r"limits\['add'\].* must be as op_support_limits\(\) returns it"):
        await ml.create_context(limits=limits)


async def test_limits_are_refused_after_the_block():
    async with webnn_py.open_ml(experimental=BOTH) as ml:
        pass
    with pytest.raises(InvalidStateError, match=r"per_device\(\): the open_ml\(\) block has been left"):
        await ml.op_support_limits_per_device()
