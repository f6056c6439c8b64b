"""The data types of contexts on onnxruntime's WebGPU provider: a GPU may lack float16."""

from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import webnn_py
from spec_tests.support.computing import compute_graph
from spec_tests.support.stand_ins import failing

pytest.importorskip("onnxruntime")

from onnxruntime.capi.onnxruntime_pybind11_state import EPFail, Fail

from webnn_py.devices.onnxruntime import engine, providers, webgpu_adapter


class Sessions(list):
    """The options of the sessions that are made; with an ``error``, they raise it when they run."""

    error = None


@pytest.fixture(autouse=True)
def tried(monkeypatch):
    """The sessions that are made; the CPU provider computes in the place of WebGPU's, which nothing is known of yet."""
    made = Sessions()
    monkeypatch.setattr(webgpu_adapter, "_lacking", {})
    monkeypatch.setattr(engine, "CPU", attrs.evolve(providers.WEBGPU, name=engine.CPU.name))
    make = engine.EngineOptions.session

    def session(options, *arguments, **more):
        made.append(options)
        if made.error is not None:
            return SimpleNamespace(run=failing(made.error))
        return make(options, *arguments, **more)

    monkeypatch.setattr(engine.EngineOptions, "session", session)
    return made


async def test_a_gpu_with_float16_computes_it_and_is_asked_once(ml, tried):
    for _ in range(2):
        context = await ml.create_context(backend="onnxruntime")
    assert len(tried) == 1
    builder = webnn_py.MLGraphBuilder(context)
    x = builder.input("x", data_type="float16", shape=[2])
    graph = await builder.build({"y": builder.add(x, x)})
    result = await compute_graph(context, graph, {"x": np.float16([1, 2])})
    np.testing.assert_array_equal(result["y"], np.float16([2, 4]))


async def test_a_gpu_without_float16_refuses_it(ml, tried):
    tried.error = Fail("Program Cast requires f16 but the device does not support it.")
    context = await ml.create_context(backend="onnxruntime")
    assert "float16" not in context.op_support_limits()["add"]["a"]["data_types"]
    with pytest.raises(TypeError, match="data type is float16; this device has float32"):
        webnn_py.MLGraphBuilder(context).input("x", data_type="float16", shape=[2])


async def test_a_provider_without_a_gpu_is_refused(ml, tried):
    tried.error = EPFail("No supported adapters")
    with pytest.raises(webnn_py.NotSupportedError, match="cannot be used: No supported adapters"):
        await ml.create_context(backend="onnxruntime")
