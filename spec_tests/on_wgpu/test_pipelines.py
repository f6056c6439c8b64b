"""Pipelines: those that compile, and those that do not."""

import numpy as np
import pytest
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import ONES, buffers
from webnn_py import MLGraphBuilder, OperationError
from webnn_py.device.on_wgpu.records.table import find
from webnn_py.device.on_wgpu.runtime import native
from webnn_py.device.on_wgpu.runtime.pipelines import Pipelines
from webnn_py.operators.registry import OPERATORS

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


async def test_ordinary_modules_do_where_the_library_has_no_others(gpu, monkeypatch):
    library = native._api.libf

    class Library:
        def __getattr__(self, name):
            if name.endswith("Trusted"):
                raise AttributeError(name)
            return getattr(library, name)

    monkeypatch.setattr(native._api, "libf", Library())
    graph = await build_add_one(gpu, [4])
    x, y = await buffers(gpu, 2)
    gpu.write_buffer(x, ONES)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), 2 * ONES)


async def test_a_kernel_that_does_not_compile_rejects_build_with_its_operator_and_types(gpu, monkeypatch):
    monkeypatch.setattr(find(OPERATORS["tanh"]), "expression", lambda _node, _x: "nonsense")
    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[4])
    with pytest.raises(OperationError, match="'tanh float32' does not compile"):
        await builder.build({"y": builder.tanh(x)})
    await build_add_one(gpu, [4])


async def test_contexts_of_one_gpu_device_share_its_pipelines_until_the_last_one_ends(ml, shared_gpu, monkeypatch):
    made = []
    make = Pipelines._make

    def make_and_tell(self, kernel, layout):
        made.append(kernel.label)
        return make(self, kernel, layout)

    monkeypatch.setattr(Pipelines, "_make", make_and_tell)
    monkeypatch.setattr(Pipelines, "_of_devices", {})  # without what other tests have compiled
    first, second = [await ml.create_context(gpu_device=shared_gpu) for _ in range(2)]
    await build_add_one(first, [4])
    assert len(made) == 1
    first.destroy()
    await first.drain()
    graph = await build_add_one(second, [4])
    assert len(made) == 1, "compiled again, though the other context of the device had done so"
    x, y = await buffers(second, 2)
    second.write_buffer(x, ONES)
    second.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await second.read_buffer(y), 2 * ONES)
    second.destroy()
    await second.drain()
    await wait_all_tasks_blocked()
    assert not Pipelines._of_devices
    await build_add_one(await ml.create_context(gpu_device=shared_gpu), [4])
    assert len(made) == 2
