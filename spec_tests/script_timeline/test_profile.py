"""``profile()`` reports the time of a dispatch, kernel by kernel."""

import json

import attrs
import numpy as np
import pytest

from webnn_py import InvalidStateError, MLGraphBuilder, NotSupportedError, UnknownError, open_ml, profiling
from webnn_py.core.device.backend import KernelNode, KernelTiming
from webnn_py.profiling import measuring
from webnn_py.profiling.measuring import DeviceRates, MeasuredRun, Measurement, rates_of
from webnn_py.profiling.report import GraphProfile
from webnn_py.saved_graphs import SavedGraphs

RATES = DeviceRates("float32", copied_bytes_per_second=2e9, multiplied_flops_per_second=1e12)
X = np.linspace(-1, 1, 2 * 8, dtype=np.float32).reshape(2, 8)


@pytest.fixture
def _times_kernels(backend):
    if backend == "onnxruntime":
        pytest.skip("it does not time kernels")


@pytest.fixture
def rated(context, _times_kernels):
    """Return a context whose device has known rates, since measuring them takes a while."""
    rates_of(context.device)["float32"] = RATES
    return context


async def perceptron(context):
    """softmax(relu(x · w)), 2 × 8 × 4."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    product = builder.matmul(x, builder.constant(np.full((8, 4), 0.5, np.float32)), label="dense")
    return await builder.build({"y": builder.softmax(builder.relu(product, label="act"), 1)}, keep_source=True)


async def test_kernels_have_their_nodes_and_counts(rated, backend):
    profile = await profiling.profile(await perceptron(rated), {"x": X}, repeat=2)
    nodes = [(node.operator, node.label, node.flops) for kernel in profile.kernels for node in kernel.nodes]
    assert nodes == [("matmul", "dense", 2 * 2 * 4 * 8), ("relu", "act", 8), ("softmax", "", 5 * 8)]
    fused = [[node.operator for node in kernel.nodes] for kernel in profile.kernels]
    assert fused == ([["matmul", "relu"], ["softmax"]] if backend == "wgpu" else [["matmul"], ["relu"], ["softmax"]])
    assert profile.kernels[0].bytes_moved == X.nbytes + 4 * 8 * 4 + 4 * 2 * 4
    assert sum(kernel.flops for kernel in profile.kernels) == 128 + 8 + 40
    assert profile.clock == ("gpu" if backend == "wgpu" else "host")
    assert profile.device == str(rated.backend)
    assert profile.repeat == 2


async def test_kernels_and_waiting_are_the_whole_dispatch(rated):
    profile = await profiling.profile(await perceptron(rated), {"x": X})
    kernels = sum(kernel.seconds for kernel in profile.kernels)
    assert profile.kernel_seconds == pytest.approx(kernels)
    assert 0 < profile.device_seconds <= profile.seconds
    assert profile.plain_seconds > 0
    assert profile.row_seconds > 0
    # With timings kernels may take a little more than the whole does without: then there is no waiting to tell of.
    whole = max(profile.plain_seconds, kernels)
    assert kernels + profile.waiting_seconds == pytest.approx(whole)
    assert sum(kernel.share for kernel in profile.kernels) == pytest.approx(kernels / whole)
    assert sum(item.seconds for item in profile.operators) == pytest.approx(kernels)


async def test_kernels_add_up_to_the_dispatch_by_the_clock_that_has_timed_them(rated):
    """Compare times that a busy machine makes longer alike."""
    is_fast = rated.backend.name == "wgpu" and "(software)" not in str(rated.backend)
    size = 2048 if is_fast else 192  # what lies between two kernels is microseconds
    builder = MLGraphBuilder(rated)
    x = value = builder.input("x", data_type="float32", shape=(size, size))
    for _ in range(3):
        value = builder.matmul(value, x)
    graph = await builder.build({"y": value})
    feeds = {"x": np.eye(size, dtype=np.float32)}
    async with measuring.storages(rated.device, feeds, graph.output_descriptors) as (inputs, outputs):
        dispatches = measuring.Dispatches(rated.device, graph.handle, inputs, outputs)
        runs = [await dispatches.timed() for _ in range(5)]
    shares = [sum(kernel.duration_ns for kernel in run.kernels) / 1e9 / run.device_seconds for run in runs]
    assert 0.9 < max(shares) < 1.0001, shares
    for run in runs:
        assert run.device_seconds <= run.seconds, "what the host has waited for cannot take longer"


@pytest.mark.parametrize(
    ("feeds", "repeat", "words"),
    [
        ({}, 1, r"feeds are of \[\]; the graph's inputs are \['x'\]"),
        ({"x": X, "y": X}, 1, r"feeds are of \['x', 'y'\]; the graph's inputs are \['x'\]"),
        ({"x": X[:1]}, 1, r"feeds\['x'\]: "),
        ({"x": X.astype(np.float16)}, 1, r"feeds\['x'\]: "),
        ([X], 1, "feeds is .*; it must be a mapping"),
        ({"x": X}, 0, "repeat is 0; it must be at least 1"),
        ({"x": X}, "often", "repeat is 'often'"),
    ],
)
async def test_wrong_arguments_are_refused_and_nothing_is_made(rated, feeds, repeat, words):
    graph = await perceptron(rated)
    before = rated.statistics()
    with pytest.raises(TypeError, match=rf"^profile\(\): {words}"):
        await profiling.profile(graph, feeds, repeat=repeat)
    assert rated.statistics() == before


async def test_a_destroyed_graph_and_a_lost_context_are_refused(rated):
    graph = await perceptron(rated)
    for thing, words in ((graph, "the graph is destroyed"), (rated, "the context is lost")):
        thing.destroy()
        with pytest.raises(InvalidStateError, match=words):
            await profiling.profile(graph, {"x": X})


async def test_a_graph_may_be_destroyed_while_it_is_profiled(rated):
    graph = await perceptron(rated)
    promise = profiling.profile(graph, {"x": X}, repeat=1)
    graph.destroy()
    assert (await promise).kernels
    await rated.drain()
    assert rated.statistics().live_buffers == 0


async def test_a_context_may_be_destroyed_while_a_graph_is_profiled(rated):
    promise = profiling.profile(await perceptron(rated), {"x": X}, repeat=1)
    rated.destroy()
    with pytest.raises(InvalidStateError, match=r"^profile\(\): the context is lost"):
        await promise


async def test_nothing_is_left_after_a_profile_and_after_one_that_fails(rated, device):
    graph = await perceptron(rated)
    await rated.drain()
    before = rated.statistics()
    promise = profiling.profile(graph, {"x": X}, repeat=1)
    await promise
    lives = rated.statistics()
    device.failing["dispatch"] = RuntimeError("out of order")
    with pytest.raises(UnknownError, match=r"^profile\(\) failed on the device: out of order"):
        await profiling.profile(graph, {"x": X}, repeat=1)
    for after in (lives, rated.statistics()):
        assert (after.live_buffers, after.live_bytes) == (before.live_buffers, before.live_bytes)


@pytest.mark.usefixtures("_times_kernels")
async def test_a_loaded_graph_has_the_kernels_of_the_built_one(tmp_path, options):
    saved = SavedGraphs(tmp_path)
    async with open_ml() as ml:
        context = await ml.create_context(**options)
        rates_of(context.device)["float32"] = RATES
        graph = await perceptron(context)
        built = await profiling.profile(graph, {"x": X}, repeat=1)
        await saved.save("perceptron", graph)
        loaded = await profiling.profile(await saved.load(context, "perceptron"), {"x": X}, repeat=1)
        assert [kernel.nodes for kernel in loaded.kernels] == [kernel.nodes for kernel in built.kernels]
        assert [kernel.bytes_moved for kernel in loaded.kernels] == [kernel.bytes_moved for kernel in built.kernels]


async def test_a_device_that_does_not_time_kernels_is_refused(ml):
    context = await ml.create_context(backend="reference")
    with pytest.raises(NotSupportedError, match=r"^profile\(\): reference .* does not time kernels"):
        await profiling.profile(await perceptron(context), {"x": X})


@pytest.mark.usefixtures("_times_kernels")
async def test_a_graph_of_float16_is_held_against_rates_in_float16(context):
    rates_of(context.device)["float16"] = attrs.evolve(RATES, data_type="float16")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float16", shape=X.shape)
    graph = await builder.build({"y": builder.relu(x)})
    profile = await profiling.profile(graph, {"x": X.astype(np.float16)}, repeat=1)
    assert profile.rates.data_type == "float16"
    assert [kernel.bytes_moved for kernel in profile.kernels] == [2 * X.size * 2]


# --- profiles of measurements --------------------------------------------------------------------------------------

MATMUL, RELU = KernelNode("matmul", "dense", 4_000_000), KernelNode("relu", "", 1000)


def timing(milliseconds, nodes, byte_length, begin=0.0):
    names = tuple(node.operator for node in nodes)
    name, (start, took) = " ".join(names) or "copy float32", (int(time * 1e6) for time in (begin, milliseconds))
    return KernelTiming(name, names, start, took, byte_length, "gpu", nodes)


def run(whole, first, second, third=1.0):
    """Three kernels, 0.1 ms apart."""
    then = first + 0.1
    kernels = [
        timing(first, (RELU, MATMUL), 4_000_000),
        timing(second, (RELU,), 1000, then),
        timing(third, (), 2_000_000, then + second + 0.1),
    ]
    return MeasuredRun(whole / 1000, kernels)


FAST, DISTURBED = [run(10, 4, 2), run(11, 5, 2.5), run(9, 6, 30)], [run(90, 50, 3), run(95, 6, 60)]
MEASURED = Measurement([*DISTURBED, *FAST], [0.5, 0.010, 0.011, 0.009, 0.6], [0.007, 0.0068, 0.0072, 0.1, 0.2], RATES)


def test_times_are_medians_of_runs_that_nothing_disturbed_and_rates_are_held_against_the_devices():
    profile = GraphProfile.from_measurement("a device", MEASURED)
    assert (profile.seconds, profile.plain_seconds, profile.repeat, profile.clock) == (0.010, 0.010, 5, "gpu")
    assert [kernel.seconds for kernel in profile.kernels] == [0.005, 0.0025, 0.001]
    first = profile.kernels[0]
    assert (first.share, first.bytes_per_second, first.flops_per_second) == pytest.approx((0.5, 8e8, 8.002e8))
    assert (first.copy_share, first.multiply_share) == pytest.approx((0.4, 0.0008002))
    assert profile.waiting_seconds == pytest.approx(0.0015)
    assert (profile.kernel_seconds, profile.device_seconds) == pytest.approx((0.0085, 0.0087))
    assert profile.row_seconds == 0.007
    sums = [(item.operator, item.kernels, item.seconds, item.share) for item in profile.operators]
    assert sums == [("matmul", 1, 0.005, 0.5), ("relu", 1, 0.0025, 0.25), ("copy", 1, 0.001, 0.1)]


def test_the_text_is_a_table_by_time_that_fits_a_hundred_columns():
    assert str(GraphProfile.from_measurement("a device", MEASURED)).splitlines() == [
        "a device",
        "a dispatch takes 10.0 ms, 7.00 ms in a row, 10.0 ms with timings; the faster half of 5 runs",
        "kernels take 8.50 ms of 8.70 ms by the GPU's clock, 121.4% of a dispatch in a row",
        "the device copies 2.00 GB/s and multiplies 1.00 TF/s in float32",
        "",
        "   time  share    moved   GB/s   %copy     work   TF/s  %mult  kernel",
        "5.00 ms  50.0%  4.00 MB  0.800   40.0%  4.00 MF  0.001   0.1%  relu + matmul [dense]",
        "2.50 ms  25.0%  1.00 kB  0.000    0.0%  1.00 kF  0.000   0.0%  relu",
        "1.00 ms  10.0%  2.00 MB   2.00  100.0%                         copy float32",
        "1.50 ms  15.0%                                                 waiting and launch",
        "",
        "   time  share    moved     work  kernels  operator, with what is fused into it",
        "5.00 ms  50.0%  4.00 MB  4.00 MF        1  matmul",
        "2.50 ms  25.0%  1.00 kB  1.00 kF        1  relu",
        "1.00 ms  10.0%  2.00 MB                 1  copy",
    ]


def test_the_cost_of_timing_is_subtracted_from_each_kernel():
    profile = GraphProfile.from_measurement(
        "a device", attrs.evolve(MEASURED, rates=attrs.evolve(RATES, timing_seconds=0.002))
    )
    assert [kernel.seconds for kernel in profile.kernels] == pytest.approx([0.003, 0.0005, 0.0001])
    assert str(profile).splitlines()[2:4] == [
        "kernels take 3.60 ms of 8.70 ms by the GPU's clock, 51.4% of a dispatch in a row",
        "timing makes a kernel 2.00 ms longer, which is subtracted",
    ]


def test_the_dictionary_is_json():
    document = json.loads(json.dumps(GraphProfile.from_measurement("a device", MEASURED).as_dict(), allow_nan=False))
    assert document["kernels"][0]["nodes"][1] == {"operator": "matmul", "label": "dense", "flops": 4_000_000}
    assert document["kernels"][0]["operator"] == "matmul"
    assert document["operators"][2]["operator"] == "copy"
    assert (document["waiting_seconds"], document["kernel_seconds"]) == pytest.approx((0.0015, 0.0085))
    assert document["rates"]["copied_bytes_per_second"] == 2e9
