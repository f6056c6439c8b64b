"""Contexts on the CUDA provider, with a stand-in for CUDA's runtime: sessions compute on the CPU in the GPU's place."""

from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import trio

from spec_tests.runtime.test_in_place import CACHES, decoder
from spec_tests.support.buffers import constant, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_one, run
from spec_tests.support.fake_cuda import Error, FakeCuda, with_cuda_bindings
from webnn_py import MLGraphBuilder, NotSupportedError, UnknownError
from webnn_py.devices.onnxruntime import device_record
from webnn_py.devices.rewriting.report import describe
from webnn_py.onnx_models import OnnxModel

onnxruntime = pytest.importorskip("onnxruntime")

from webnn_py.devices.onnxruntime import engine, providers  # noqa: E402 - an extra

with with_cuda_bindings():
    from webnn_py.devices.onnxruntime import cuda_memory
from webnn_py.buffer_copies import clear_buffer, copy_buffer  # noqa: E402 - an extra
from webnn_py.devices.onnxruntime.session import BoundSession  # noqa: E402 - an extra

LARGE = 2**15
"""The elements of a buffer that is copied by pinned memory."""

PARALLEL = 2**20 + 3
"""The elements of a buffer that several threads copy."""


@pytest.fixture
def cuda(monkeypatch):
    """The stand-in; the CPU provider takes the place of CUDA's, and its runs that of work on the stream.

    ``elsewhere`` has the operators that the CPU computes for the provider, ``runs`` the number under which each run of
    a session is captured, ``capture_error`` what such runs raise.
    """
    fake = FakeCuda()
    fake.elsewhere, fake.runs, fake.capture_error = [], [], None
    for name, stand_in in (("runtime", fake), ("DEVICE", "cpu")):
        monkeypatch.setattr(cuda_memory, name, stand_in)
    provider = attrs.evolve(providers.CUDA, options={})
    monkeypatch.setattr(engine, "find", lambda _name: provider)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    make = engine.EngineOptions.session

    def session(options, model, values, **more):
        on_cpu = attrs.evolve(options.provider, name=engine.CPU.name)
        made = make(attrs.evolve(options, provider=on_cpu, provider_options={}), model, values)
        nodes = [SimpleNamespace(op_type=operator, name="") for operator in fake.elsewhere]
        part = SimpleNamespace(ep_name="CPU", get_nodes=lambda: nodes)
        made.get_provider_graph_assignment_info = lambda: [part]
        on_gpu = [SimpleNamespace(name="Cuda")]
        made.get_input_memory_infos = made.get_output_memory_infos = lambda: on_gpu
        return made

    monkeypatch.setattr(engine.EngineOptions, "session", session)
    initialize = BoundSession.__init__

    def bound(self, *arguments):
        initialize(self, *arguments)
        compute = self.compute

        def submit(binding, options):
            fake.runs.append(options.get_run_config_entry("gpu_graph_id"))
            if fake.runs[-1] != "-1" and fake.capture_error is not None:
                fake.is_capturing = True
                raise fake.capture_error
            fake.run_queued()  # the session cannot wait: its binding may change
            compute(binding, onnxruntime.RunOptions())

        self.compute = submit

    monkeypatch.setattr(BoundSession, "__init__", bound)
    return fake


@pytest.fixture
async def context(ml, cuda):
    return await ml.create_context(backend="onnxruntime")


async def test_a_context_says_which_gpu_it_is_on(context):
    assert context.backend.adapter == "a fake GPU"
    assert context.backend.device_types[0] == "gpu"


def test_devices_are_listed_with_the_name_of_the_gpu(cuda):
    assert device_record.RECORD.adapters()[0].adapter == "a fake GPU"


@pytest.mark.parametrize("count", [2, LARGE])
async def test_nothing_waits_before_a_read(context, cuda, count):
    graph = await build_add_one(context, [count])
    x, y = await zeroed(context, [count]), await zeroed(context, [count])
    await context.drain()
    cuda.waits = 0
    for number in range(3):
        context.write_buffer(x, np.full(count, number, np.float32))
        context.dispatch(graph, {"x": x}, {"y": y})
    await trio.testing.wait_all_tasks_blocked()
    assert cuda.waits == 0
    np.testing.assert_array_equal(await context.read_buffer(y), np.full(count, 3, np.float32))
    assert cuda.waits == 1


@pytest.mark.parametrize("count", [2, LARGE])
async def test_the_bytes_of_a_write_are_those_at_the_call(context, count):
    x = await zeroed(context, [count])
    data = np.ones(count, np.float32)
    context.write_buffer(x, data)
    first = context.read_buffer(x)
    data[:] = 7
    context.write_buffer(x, data)
    second = context.read_buffer(x)
    data[:] = 9
    assert [set((await read).tolist()) for read in (first, second)] == [{1.0}, {7.0}]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("shape", [[PARALLEL], [2, PARALLEL]])
async def test_several_threads_copy_large_arrays_whole(context, monkeypatch, threads, shape):
    monkeypatch.setattr(cuda_memory, "COPYING_THREADS", threads)
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape[::-1]).T
    x = await zeroed(context, shape)
    context.write_buffer(x, data)
    np.testing.assert_array_equal(await context.read_buffer(x), data)


@pytest.mark.parametrize("count", [2, LARGE])
async def test_bytes_are_kept_until_the_gpu_has_read_them(context, count):
    buffers = [await zeroed(context, [count]) for _ in range(8)]
    await context.drain()
    for number, buffer in enumerate(buffers):
        context.write_buffer(buffer, np.full(count, number, np.float32))
    reads = [context.read_buffer(buffer) for buffer in buffers]
    assert [set((await read).tolist()) for read in reads] == [{float(number)} for number in range(8)]


async def test_copies_and_clears_stay_on_the_gpu(context, cuda):
    a, b = await zeroed(context, [4]), await zeroed(context, [4])
    context.write_buffer(a, np.arange(4, dtype=np.float32))
    copy_buffer(context, a, b, source_offset=1, destination_offset=2, count=2)
    clear_buffer(context, a)
    waits = cuda.waits
    await trio.testing.wait_all_tasks_blocked()
    assert cuda.waits == waits
    np.testing.assert_array_equal(await context.read_buffer(b), np.float32([0, 0, 1, 2]))
    np.testing.assert_array_equal(await context.read_buffer(a), np.zeros(4, np.float32))


async def test_destroyed_buffers_are_freed_behind_the_work_that_uses_them(context, cuda):
    graph = await build_add_one(context, [2])
    x, y = await zeroed(context, [2]), await zeroed(context, [2])
    await context.drain()
    context.write_buffer(x, np.ones(2, np.float32))
    context.dispatch(graph, {"x": x}, {"y": y})
    x.destroy()
    await trio.testing.wait_all_tasks_blocked()
    assert len(cuda.memory) == 2
    np.testing.assert_array_equal(await context.read_buffer(y), np.float32([2, 2]))
    assert len(cuda.memory) == 1


async def test_runs_on_the_same_buffers_are_captured_and_replayed(context, cuda):
    graph = await build_add_one(context, [2])
    pairs = [[await zeroed(context, [2]), await zeroed(context, [2])] for _ in range(2)]
    for x, y in (*[pairs[0]] * 5, *[pairs[1]] * 4):
        context.dispatch(graph, {"x": x}, {"y": y})
    await context.drain()
    assert cuda.runs == ["-1", "-1", "1", "1", "1", "-1", "-1", "2", "2"]


async def test_a_run_that_cannot_be_captured_is_run_again_and_the_graph_says_why(context, cuda):
    cuda.capture_error = RuntimeError("Concat supports at most 32 inputs")
    graph = await build_add_one(context, [2])
    x, y = await zeroed(context, [2]), await zeroed(context, [2])
    reads = []
    for number in range(5):
        context.write_buffer(x, np.full(2, number, np.float32))
        context.dispatch(graph, {"x": x}, {"y": y})
        reads.append(context.read_buffer(y))
    assert [(await read).tolist() for read in reads] == [[number + 1] * 2 for number in range(5)]
    assert cuda.runs == ["-1", "-1", "1", "-1", "-1", "-1"]
    assert "cannot capture it: Concat supports at most 32 inputs" in describe(graph.handle.compiled.passes)


@pytest.fixture(params=["a stand-in", "a GPU"])
def on_cuda(request):
    """Return the options of a context on the CUDA provider, with the stand-in or on a GPU, where there is one."""
    if request.param == "a stand-in":
        request.getfixturevalue("cuda")
        return {"backend": "onnxruntime"}
    if providers.CUDA.name not in onnxruntime.get_available_providers():
        pytest.skip("needs onnxruntime-gpu and an NVIDIA GPU")
    return {"backend": "onnxruntime", "execution_provider": providers.CUDA.name}


@pytest.mark.parametrize("data_type", ["float32", "float16"])
async def test_a_step_that_writes_into_its_caches_is_replayed(ml, on_cuda, numpy_context, rng, data_type):
    graphs, tolerance = [], {"float32": 1e-5, "float16": 5e-3}[data_type]
    for context in (await ml.create_context(**on_cuda), numpy_context):
        builder = MLGraphBuilder(context)
        graph = await builder.build(OnnxModel.load(decoder(1, 2, data_type)).convert(builder))
        assert graph.in_place == CACHES
        inputs, outputs = [
            {
                name: await context.create_buffer(
                    data_type=item.data_type, shape=item.shape, readable=True, writable=True
                )
                for name, item in descriptors.items()
                if name not in CACHES
            }
            for descriptors in (graph.input_descriptors, graph.output_descriptors)
        ]
        graphs.append((context, graph, inputs, outputs | {name: inputs[past] for name, past in CACHES.items()}))
    for step in range(6):
        last = np.int32([step, step + 1])
        feeds = {"query": rng.standard_normal((2, 1, 128)).astype(data_type), "last": last, "total": last.max() + 1}
        results = []
        for context, graph, inputs, outputs in graphs:
            for name, array in feeds.items():
                context.write_buffer(inputs[name], array)
            context.dispatch(graph, inputs, outputs)
            results.append([await context.read_buffer(buffer) for buffer in outputs.values()])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
    text = describe(graphs[0][1].handle.compiled.passes)
    assert "the CPU computes" not in text
    assert "cannot capture" not in text


async def test_buffers_of_their_own_for_every_run_are_not_captured(context, cuda):
    graph = await build_add_one(context, [2])
    for _ in range(6):
        x, y = await zeroed(context, [2]), await zeroed(context, [2])
        context.dispatch(graph, {"x": x}, {"y": y})
        x.destroy()
        y.destroy()
    await context.drain()
    assert set(cuda.runs) == {"-1"}


async def test_a_graph_of_which_the_cpu_computes_a_part_runs_on_the_host_and_says_why(context, cuda):
    cuda.elsewhere += ["Tile", "ArgMax"]
    graph = await build_add_one(context, [2])
    x, y = await zeroed(context, [2]), await zeroed(context, [2])
    reads = []
    for number in range(4):
        context.write_buffer(x, np.full(2, number, np.float32))
        context.dispatch(graph, {"x": x}, {"y": y})
        reads.append(context.read_buffer(y))
    assert [(await read).tolist() for read in reads] == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert not cuda.runs
    assert "the CPU computes Tile, ArgMax" in describe(graph.handle.compiled.passes)


async def test_a_full_gpu_rejects_the_buffer_and_nothing_else(context, cuda):
    cuda.capacity = 100
    with pytest.raises(UnknownError, match="the GPU has not enough memory"):
        await zeroed(context, [1000])
    x = await zeroed(context, [2])
    context.write_buffer(x, np.ones(2, np.float32))
    np.testing.assert_array_equal(await context.read_buffer(x), np.ones(2))


async def test_statistics_have_the_memory_of_the_gpu(context, cuda):
    before = context.statistics().of_backend
    assert before["total_bytes"] == cuda.capacity
    buffer = await zeroed(context, [LARGE])
    context.write_buffer(buffer, np.ones(LARGE, np.float32))
    await context.drain()
    after = context.statistics().of_backend
    assert before["free_bytes"] - after["free_bytes"] == 4 * LARGE
    assert after["pinned_bytes"] == sum(map(len, cuda.pinned.values())) == before["pinned_bytes"] + 4 * LARGE
    buffer.destroy()
    await context.drain()
    assert context.statistics().of_backend["free_bytes"] == before["free_bytes"]
    context.destroy()
    await context.drain()
    assert context.statistics().of_backend == {}


async def test_an_error_of_the_gpu_loses_the_context_and_not_the_process(context, cuda):
    x = await zeroed(context, [2])
    cuda.error = Error.cudaErrorIllegalAddress
    read = context.read_buffer(x)
    with pytest.raises(Exception, match="the text of the error"):
        await read
    lost = await context.lost
    assert "CUDA reports the text of the error (cudaErrorIllegalAddress)" in lost.message


async def test_pinned_memory_is_used_again_and_freed_with_the_context(context, cuda):
    x = await zeroed(context, [LARGE])
    for number in range(8):
        context.write_buffer(x, np.full(LARGE, number, np.float32))
        kept = await context.read_buffer(x)
    assert len(cuda.pinned) <= 4
    context.destroy()
    await context.drain()
    assert len(cuda.pinned) == 1
    assert set(kept.tolist()) == {7.0}
    del kept
    assert not cuda.pinned
    assert not cuda.memory
    assert not cuda.streams


async def test_memory_of_the_host_is_freed_once_the_gpu_has_read_it(context, cuda):
    x = await zeroed(context, [LARGE])
    await context.drain()
    cuda.calls.clear()
    context.write_buffer(x, np.ones(LARGE, np.float32))
    context.destroy()
    await context.drain()
    assert cuda.calls.index("cudaStreamSynchronize") < cuda.calls.index("cudaFreeHost")


async def test_constant_buffers_can_be_read_by_the_compiler(context):
    graph = await build_add_buffer(context, await constant(context, [1, 2]))
    assert (await run(context, graph, x=[3, 4])) == {"y": [4, 6]}


async def test_a_gpu_that_is_not_there_is_refused(ml, cuda):
    with pytest.raises(NotSupportedError, match=r"cannot be used: the text of the error .*start another process"):
        await ml.create_context(backend="onnxruntime", provider_options={"device_id": 3})
