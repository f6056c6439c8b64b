"""Pipelines: those that compile, and those that do not."""

import numpy as np
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import ONES, buffers
from webnn_py import MLGraphBuilder, OperationError
from webnn_py.device.on_wgpu.records.table import find
from webnn_py.device.on_wgpu.runtime import native
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
