"""Large constants of a build go through a few slices of mapped memory, which are used in turn; small ones here."""

import numpy as np
import pytest

from spec_tests.support.drawing import run
from spec_tests.support.stand_ins import failing, noted
from webnn_py import MLGraphBuilder, OperationError
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.runtime import executable, uploads

LEAST, SLICE = 256, 4096


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    for name, value in {"SLICE": SLICE, "LEAST_CONSTANT": LEAST}.items():
        monkeypatch.setattr(uploads, name, value)


@pytest.fixture
def slices(gpu, monkeypatch):
    """The labels of the buffers that are made, "constants" for slices."""
    return noted(monkeypatch, gpu.device.backend.device, "create_buffer", lambda **options: options["label"])


def numbers(data_type, count, seed):
    return np.random.default_rng(seed).integers(0, 100, count).astype(data_type)


async def build(context, constants):
    """Return a graph whose outputs are an input and each constant, in the constant's data type."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="int32", shape=[1])
    outputs = {}
    for number, array in enumerate(constants):
        one = builder.cast(x, array.dtype.name)
        outputs[f"y{number}"] = builder.add(one, builder.constant(array))
    return await builder.build(outputs)


async def check(context, graph, constants):
    results = await run(context, graph, x=np.array([0], np.int32))
    for number, array in enumerate(constants):
        np.testing.assert_array_equal(results[f"y{number}"], array)


async def test_constants_of_all_sizes_arrive(gpu, slices):
    sizes = [("float32", 10), ("int32", LEAST // 4), ("uint8", LEAST + 3), ("uint8", 2 * LEAST + 1), ("float32", LEAST)]
    constants = [numbers(*kind, seed) for seed, kind in enumerate(sizes)]
    graph = await build(gpu, constants)
    assert "constants" in slices
    await check(gpu, graph, constants)


async def test_a_few_slices_serve_constants_of_any_size(gpu, slices):
    constants = [numbers("int32", count, count) for count in (SLICE // 4 + 1, 3 * LEAST, SLICE, SLICE + 1)]
    graph = await build(gpu, constants)
    assert sum(array.nbytes for array in constants) > 8 * SLICE
    assert 1 < slices.count("constants") <= uploads.MOST_SLICES
    await check(gpu, graph, constants)
    graph.destroy()
    await check(gpu, await build(gpu, constants[:2]), constants[:2])


async def test_a_build_that_fails_gives_its_slices_back(gpu, slices, monkeypatch):
    constants = [numbers("float32", LEAST, 0)]
    destroyed = noted(monkeypatch, uploads.ConstantUploads, "end")
    with monkeypatch.context() as patched:
        patched.setattr(executable, "CompiledPlan", type("Plan", (), {"from_kernels": failing(ValueError("too much"))}))
        with pytest.raises(OperationError, match="too much"):
            await build(gpu, constants)
    assert "constants" in slices
    assert destroyed
    await gpu.drain()
    assert gpu.statistics().live_bytes == 0
    await check(gpu, await build(gpu, constants), constants)


async def test_constants_of_a_device_that_its_user_may_destroy_go_through_the_queue(ml, monkeypatch):
    device = request_device(choose("default", software=True))
    labels = noted(monkeypatch, device, "create_buffer", lambda **options: options["label"])
    context = await ml.create_context(gpu_device=device)
    constants = [numbers("float32", LEAST, 0)]
    await check(context, await build(context, constants), constants)
    assert "constants" not in labels
    assert "constant" in labels
